#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
uci_report over folders of make_run.py: sums, verdicts, what is damaged or hostile in the input, symbols, refusals.

usage: test_report.py UCI_REPORT [RUN...]; each RUN is the folder of a real job with injected faults. Ends with "N passed, N failed, N skipped".
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

MAKE_RUN = Path(__file__).resolve().parent / "make_run.py"
MAKE_TWINS = MAKE_RUN.with_name("make_twins.py")
TOOL, *RUNS = sys.argv[1:] or ["uci_report"]


def report(*arguments, environment=None):
    """Run the tool; never a traceback."""
    done = subprocess.run([TOOL, *map(str, arguments)], capture_output=True, text=True, check=False, env={**os.environ, **(environment or {})})
    assert "Traceback" not in done.stderr, done.stderr
    return done


class ReportTest(unittest.TestCase):
    """Each test has a folder of its own."""

    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="uci-report."))
        self.addCleanup(shutil.rmtree, self.work)

    def make(self, *options, name="run"):
        """A synthetic run."""
        subprocess.run([sys.executable, MAKE_RUN, self.work / name, *map(str, options)], check=True)
        return self.work / name

    def copy_tool(self):
        """A folder with uci_report and its parts, and nothing else of UCI's."""
        folder, built = self.work / "bin", Path(TOOL).resolve().parent
        shutil.copytree(built / "jobreport", folder / "jobreport")
        for name in (TOOL, *(built / part for part in ("uci_job.py", "uci_version.py", "version.txt"))):
            shutil.copy(name, folder)
        return folder

    def make_twins(self, *options, name="twins"):
        """A synthetic run with twins."""
        subprocess.run([sys.executable, MAKE_TWINS, self.work / name, *map(str, options)], check=True)
        return self.work / name

    def model(self, *arguments):
        """What --json says."""
        done = report("--json", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout, parse_constant=self.fail)

    def test_one_receiver_stands_out(self):
        model = self.model(self.make("--records", 300, "--ranks", 8, "--bad", 5))
        self.assertEqual(model["verdict"]["level"], "repaired")
        self.assertEqual(model["verdict"]["where"]["stands_out"], "receiver")
        self.assertIn("received by rank 5 (node003), from 7 other ranks", model["verdict"]["where"]["sentence"])
        self.assertEqual(model["totals"]["records"], 300)
        self.assertEqual(sum(cell[2] for cell in model["maps"]["ranks"]["cells"]), 300)
        self.assertEqual(sum(cell[2] for cell in model["maps"]["hosts"]["cells"]), 300)
        for view in model["time"]["views"].values():
            self.assertEqual(sum(sum(numbers) for _, numbers in view), 300)
        self.assertIn("transport", [cause["cause"] for cause in model["verdict"]["causes"]])
        self.assertTrue(any("bit 3" in text for text in model["patterns"]))

    def test_nobody_stands_out(self):
        model = self.model(self.make("--records", 300, "--ranks", 8, "--spread"))
        self.assertIsNone(model["verdict"]["where"]["stands_out"])

    def test_few_may_be_chance(self):
        self.assertIn("chance", self.model(self.make("--records", 2, "--ranks", 8))["verdict"]["where"]["sentence"])

    def test_lost(self):
        model = self.model(self.make("--records", 100, "--lost", .1, "--changed", .1))
        totals = model["totals"]
        self.assertEqual(model["verdict"]["level"], "lost")
        self.assertTrue(0 < totals["not repaired"] == sum(pair["lost"] for pair in model["pairs"]))
        self.assertEqual(totals["repaired"] + totals["not repaired"] + totals["source changed"], 100)
        self.assertEqual(model["worst"][0]["verdict"], "not repaired")
        self.assertIn("source changed", {record["verdict"] for record in model["worst"]})

    def test_all_changed_by_the_program(self):
        model = self.model(self.make("--records", 20, "--changed", 1))
        self.assertEqual(model["verdict"]["level"], "source")
        self.assertIn("by the program", model["verdict"]["sentence"])
        self.assertIn("received by rank 2", model["verdict"]["where"]["sentence"], "whichever side has told it")

    def test_clean(self):
        model = self.model(self.make("--unverified", 3, "--without", 1))
        self.assertEqual(model["verdict"]["level"], "partly")
        self.assertIn("3,000 messages (3 GiB) were verified", model["verdict"]["sentence"])
        self.assertIn("not verified: 9 messages (bytes not counted).", model["verdict"]["sentence"])
        self.assertEqual(model["statistics"]["ranks_without"], ["1"])
        self.assertIn("Of 1 rank (1) nothing is known.", model["verdict"]["sentence"])
        self.assertEqual(self.model(self.make(name="all"))["verdict"]["level"], "clean")

    def test_passed_through(self):
        folder = self.make("--ranks", 2, "--unverified", 1, "--passed", "put=6", "get=15", "atomic=0", "stream=1000", "bytes=2097152")
        model, told = self.model(folder), "not verified: 2 messages, 12 puts, 30 gets, 2,000 stream sends (4 MiB)"
        self.assertEqual(model["verdict"]["level"], "partly")
        self.assertIn(told + ".", model["verdict"]["sentence"])
        self.assertTrue(any("docs/protected.md" in step for step in model["verdict"]["next"]))
        self.assertEqual(model["statistics"]["unverified"], {"messages": 2, "am": 0, "put": 12, "get": 30, "atomic": 0, "stream": 2000})
        self.assertEqual(model["statistics"]["unverified_bytes"], 4 << 20)
        self.assertEqual(" ".join(report("--text", folder).stdout.split()).count(told), 2, "in the sentence, and beside what was received")

    def test_nothing_but_passed_through(self):
        folder = self.make("--ranks", 1, "--passed", "am=1", "bytes=1")
        [path] = folder.glob("stats.*.json")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"messages_received": 0}))
        verdict = self.model(folder)["verdict"]
        self.assertEqual((verdict["level"], verdict["sentence"]),
                         ("unknown", "Nothing was verified: 1 active message (1 byte) passed through UCI."))
        self.assertFalse(any("Is UCI on?" in step for step in verdict["next"]))

    def test_nothing_passed_through(self):
        verdict = self.model(self.make("--ranks", 1, "--passed", "put=0", "bytes=0"))["verdict"]
        self.assertIn("not verified: none.", verdict["sentence"])
        self.assertEqual(verdict["next"], [])

    def add_types(self, folder, number, **broken):
        """Records of messages whose types do not match, in a run."""
        types = {"sent": "4 x MPI_INT", "received": "2 x MPI_DOUBLE", "call": "MPI_Recv", "communicator": "MPI_COMM_WORLD", **broken}
        record = {"schema": 2, "time": 1.8e9, "verdict": "types differ", "cause": "types",
                  "evidence": "4 x MPI_INT were sent, 2 x MPI_DOUBLE are received", "role": "receiver", "rank": 1, "peer_rank": 0, "types": types}
        with (folder / "events.node001.7.jsonl").open("a", encoding="utf-8") as events:
            events.write((json.dumps(record) + "\n") * number)

    def test_types_that_differ(self):
        folder = self.make("--ranks", 4)
        self.add_types(folder, 3)
        model = self.model(folder)
        self.assertEqual(model["verdict"]["level"], "types")
        self.assertTrue(model["verdict"]["sentence"].startswith("3 messages were received as other types than they were sent as. Nothing was damaged"))
        self.assertEqual(model["totals"]["records"], 0, "nothing was damaged")
        self.assertEqual(model["verdict"]["causes"][0]["evidence"],
                         [["4 x MPI_INT were sent, 2 x MPI_DOUBLE are received, by MPI_Recv on MPI_COMM_WORLD", 3]])

    def test_collectives_that_differ(self):
        folder = self.make("--ranks", 4)
        self.add_types(folder, 1)
        evidence = "rank 0 calls MPI_Bcast of 4 x MPI_INT, root 0, rank 1 calls MPI_Barrier"
        record = {"schema": 2, "time": 1.8e9, "verdict": "types differ", "cause": "types", "kind": "collective", "evidence": evidence, "rank": 0,
                  "types": {"sent": "MPI_Bcast of 4 x MPI_INT, root 0", "received": "MPI_Barrier", "call": "MPI_Bcast", "communicator": "MPI_COMM_WORLD"}}
        with (folder / "events.node001.7.jsonl").open("a", encoding="utf-8") as events:
            events.write((json.dumps(record) + "\n") * 2)
        model = self.model(folder)
        self.assertTrue(model["verdict"]["sentence"].startswith(
            "1 message was received as other types than it was sent as. 2 collectives did not match between ranks. Nothing was damaged"))
        self.assertEqual(model["verdict"]["causes"][0]["evidence"][0], [f"{evidence} on MPI_COMM_WORLD", 2])

    def test_types_beside_damage(self):
        folder = self.make("--records", 100, "--ranks", 8)
        self.add_types(folder, 1)
        self.add_types(folder, 2, sent=4)
        model = self.model(folder)
        self.assertEqual(model["verdict"]["level"], "repaired")
        self.assertIn("1 message was received as other types than it was sent as.", model["verdict"]["sentence"])
        self.assertEqual(model["totals"]["records"], 100)
        self.assertEqual(model["inputs"]["damaged_lines"], 2)

    def test_silence_is_no_good_news(self):
        model = self.model(self.make("--ranks", 0, "--damaged"))
        self.assertEqual(model["verdict"]["level"], "unknown")

    def test_schema_1(self):
        model = self.model(self.make("--records", 20, "--schema", 1, "--changed", .2))
        self.assertIsNone(model["time"])
        self.assertEqual({cause["cause"] for cause in model["verdict"]["causes"]}, {"not recorded", "source_changed"})

    def test_newer_schema_is_said(self):
        run = self.make("--records", 5, "--schema", 3)
        self.assertEqual(self.model(run)["inputs"]["newer_schemas"], {"3": 5})
        self.assertIn("newer schema 3", report("--text", run).stdout)

    def test_damaged_lines_are_counted(self):
        inputs = self.model(self.make("--records", 30, "--damaged"))["inputs"]
        self.assertEqual((inputs["records"], inputs["damaged_lines"], inputs["lines"]), (30, 12, 42))
        self.assertEqual(len(inputs["damaged_examples"]), 12)

    def test_endless_line(self):
        run = self.make("--records", 3)
        with open(run / "events.z.1.jsonl", "wb") as file:
            file.write(b"x" * (40 << 20) + b"\n" + next(run.glob("events.n*")).read_bytes().splitlines()[0] + b"\n")
        inputs = self.model(run)["inputs"]
        self.assertEqual((inputs["records"], inputs["damaged_lines"]), (4, 1))

    def test_broken_statistics_are_named(self):
        run = self.make()
        (run / "stats.n.1000.json").write_text('{"messages_received": 1', encoding="utf-8")
        self.assertEqual(self.model(run)["inputs"]["unread"][0]["why"], "not JSON, or cut off")

    def test_parts_are_as_the_whole(self):
        run = self.make("--records", 60000, "--ranks", 300, "--lost", .01, "--spread")  # more than two units
        one, two = self.model("--jobs", 1, run), self.model("--jobs", 2, run)
        self.assertEqual(one, two)
        self.assertEqual(one["totals"]["records"], 60000)

    def test_maps_are_binned(self):
        model = self.model(self.make("--records", 2000, "--ranks", 1000, "--spread", "--no-statistics"))
        self.assertLessEqual(len(model["maps"]["ranks"]["labels"]), 64)
        self.assertEqual(sum(cell[2] for cell in model["maps"]["ranks"]["cells"]), 2000)
        self.assertLessEqual(len(model["maps"]["hosts"]["labels"]), 40)
        self.assertEqual(sum(cell[2] for cell in model["maps"]["hosts"]["cells"]), 2000)

    def test_hostile_text_is_text(self):
        run = self.make("--records", 30, "--hostile")
        page = self.work / "page.html"
        self.assertEqual(report(run, "-o", page).returncode, 0)
        text = page.read_text(encoding="utf-8")
        self.assertNotIn("<script>document", text)
        self.assertNotIn("<img", text)
        self.assertIn("&lt;script&gt;document", text)
        self.assertNotIn("\x1b", report("--text", run).stdout)

    def test_any_value_of_any_type(self):
        """Each field of a record replaced by what does not belong there: a report, or a line counted as damaged."""
        run = self.make("--records", 1)
        record = json.loads(next(run.glob("events.*")).read_text(encoding="utf-8"))
        lines = [json.dumps({**record, name: value}) for name in record
                 for value in (None, True, -1, 1e300, 10 ** 30, "text", "1\u00b2", "\ud800", [], [[]], [{}], {}, {"a": []}, {"a": {"b": 1}})]
        (run / "events.any.1.jsonl").write_text("\n".join(lines), encoding="utf-8")
        for form in ("--json", "--text"):
            self.assertEqual(report(form, "--worst", 1000, run).returncode, 0)
        self.assertEqual(report(run, "--worst", 1000, "-o", self.work / "page.html").returncode, 0)
        inputs = self.model(run)["inputs"]
        self.assertEqual(inputs["records"] + inputs["damaged_lines"] + sum(inputs["newer_schemas"].values()), len(lines) + 1)

    def test_stacks_have_names(self):
        source, program = self.work / "spot.c", self.work / "spot"
        source.write_text("int spot(int x)\n{\n    return x + 1;\n}\nint main(void)\n{\n    return spot(1);\n}\n", encoding="utf-8")
        for options in ((), ("-no-pie",)):
            subprocess.run(["gcc", "-g", "-O0", *options, source, "-o", program], check=True)
            code = subprocess.run(["objdump", "-d", program], capture_output=True, text=True, check=True).stdout.splitlines()
            call = next(number for number, line in enumerate(code) if "call" in line and "<spot>" in line)
            address = int(code[call + 1].split(":")[0], 16)
            base = 0x400000 if options else 0
            run = self.make("--records", 3, name=f"run{base}")
            name = next(run.glob("events.*"))
            record = json.loads(name.read_text(encoding="utf-8").splitlines()[0]) | {"stack": [f"{program}+{address - base:#x}", "/no/such+0x1"]}
            name.write_text(json.dumps(record), encoding="utf-8")
            model = self.model(run)
            self.assertEqual([(frame["function"], frame["file"]) for frame in model["worst"][0]["frames"][:1]], [("main", "spot")])
            self.assertIn("spot.c:7", model["worst"][0]["frames"][0]["place"])
            self.assertIn(str(program), model["symbols"]["newer"], "it is newer than the record")
            self.assertIn("/no/such", model["symbols"]["missing"])

    def test_refusals(self):
        for arguments, text in (((self.work / "none",), "No such file"), ((self.work,), "nothing of UCI's"),
                                ((self.make(), "--d3", self.work, "-o", self.work / "x"), "apt-get install"),
                                ((self.work / "run", "-o", "/no/such/folder/x"), "No such file")):
            done = report(*arguments)
            self.assertEqual(done.returncode, 1)
            self.assertIn(text, done.stderr)
        self.assertEqual(report("--worst", "0", self.work).returncode, 2)

    def test_into_what_is_no_file(self):
        """Root's -o /dev/null must not make a file of it, nor -o /dev/stdout."""
        run, pipe, link = self.make("--records", 3), self.work / "pipe", self.work / "link"
        os.mkfifo(pipe)
        link.symlink_to(pipe)
        for name in (pipe, link):
            reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
            self.addCleanup(os.close, reader)
            self.assertEqual(report("--text", "-o", name, run).returncode, 0)
            self.assertIn(b"3 of ", os.read(reader, 1 << 16))
        self.assertTrue(pipe.is_fifo() and link.is_symlink())
        self.assertIn("Is a directory", report("--text", "-o", self.work, run).stderr)

    def test_closed_output(self):
        """A page needs none; text can't be written."""
        run = self.make("--records", 3)
        for words, status, said in (("-o page --text", 0, ""), ("--text", 1, "uci_report: standard output: ")):
            done = subprocess.run(f"'{os.path.abspath(TOOL)}' {words} '{run}' >&- <&-", shell=True, cwd=self.work, stderr=subprocess.PIPE, text=True, check=False)
            self.assertEqual(done.returncode, status, done.stderr)
            self.assertIn(said, done.stderr)
            self.assertNotIn("Traceback", done.stderr)

    def test_no_link_in_the_way_is_followed(self):
        """The name of the file that becomes the page can be guessed."""
        run, precious = self.make("--records", 3), self.work / "precious"
        precious.write_text("precious", encoding="utf-8")
        (self.work / "page").write_text("old", encoding="utf-8")
        command = f'ln -s precious .page.$$ && exec "{os.path.abspath(TOOL)}" --text -o page "{run}"'
        subprocess.run(["sh", "-c", command], cwd=self.work, check=True, stderr=subprocess.DEVNULL)
        self.assertEqual(precious.read_text(encoding="utf-8"), "precious")
        self.assertIn("3 of ", (self.work / "page").read_text(encoding="utf-8"))

    @unittest.skipIf(os.geteuid(), "only root can make a link another user's")
    def test_root_follows_no_link_of_another_user(self):
        run, precious, link = self.make("--records", 3), self.work / "precious", self.work / "link"
        link.symlink_to(precious)
        os.chown(link, 65534, 65534, follow_symlinks=False)
        done = report("--text", "-o", link, run)
        self.assertEqual(done.returncode, 1)
        self.assertIn("is a link of another user's", done.stderr)
        self.assertFalse(precious.exists())

    def test_into_what_a_link_leads_to(self):
        run, page, link = self.make("--records", 3), self.work / "pages" / "page", self.work / "link"
        page.parent.mkdir()
        link.symlink_to(page)
        for _ in range(2):  # a page that is not there yet, and one that is
            self.assertEqual(report("--text", "-o", link, run).returncode, 0)
            self.assertTrue(link.is_symlink())
            self.assertIn("3 of ", page.read_text(encoding="utf-8"))
            self.assertEqual(os.listdir(page.parent), ["page"])

    def test_what_a_terminal_has_no_character_for(self):
        run = self.make("--records", 3)
        (run / "events.z.1.jsonl").write_text('{"verdict": "repaired", "rank": 1, "host": "n\u2192\u00e4"}', encoding="utf-8")
        for encoding in ("ascii", "latin-1"):
            done = subprocess.run([TOOL, "--text", run], capture_output=True, check=True, env={**os.environ, "PYTHONIOENCODING": encoding})
            self.assertIn(b"n\\u2192", done.stdout)

    def test_ranks_of_no_job(self):
        run = self.make("--records", 3)
        (run / "events.z.1.jsonl").write_text('{"verdict": "repaired", "rank": 2147483647, "peer_rank": 5}', encoding="utf-8")
        self.assertEqual(self.model(run)["statistics"]["ranks_without"], ["4-2147483647"])

    def test_live_files_without_uci_top(self):
        run, folder = self.make(), self.copy_tool()
        (run / "vm.1.live").write_bytes(b"")
        done = subprocess.run([folder / "uci_report", "--text", run], capture_output=True, text=True, check=True)
        self.assertIn("no uci_top here", done.stdout)

    def test_live_files_by_uci_top(self):
        """A uci_top that says what a real one would of a process that was killed."""
        run, folder = self.make("--without", 3), self.copy_tool()
        (run / "node002.1003.live").write_bytes(b"")
        process = {"host": "node002", "pid": 1003, "rank": 3, "mode": "repair", "state": "killed", "counters": {"messages_received": 7}}
        again = process | {"pid": 1002, "rank": 2, "state": "ended"}  # has left statistics as well
        answer = {"jobs": [{"size": 5, "processes": [process, again]}], "skipped": [{"file": "x.live", "reason": "half of it"}]}
        (folder / "uci_top").write_text(f"#!/bin/sh\necho '{json.dumps(answer)}'\n", encoding="utf-8")
        (folder / "uci_top").chmod(0o755)
        model = json.loads(subprocess.run([folder / "uci_report", "--json", run], capture_output=True, check=True).stdout)
        self.assertEqual(model["statistics"]["sums"]["messages_received"], 3007)
        self.assertEqual((model["statistics"]["from_live_files"], model["statistics"]["ranks_without"]), (1, ["4"]))
        self.assertIn({"file": "x.live", "why": "half of it"}, model["inputs"]["unread"])
        self.assertEqual(model["verdict"]["level"], "failed")
        self.assertIn("1 process ended without a word (by a signal, MPI_Abort or _exit): rank 3 (node002:1003).", model["verdict"]["sentence"])
        self.assertIn("Up to then nothing was damaged", model["verdict"]["sentence"])

    def with_statistics(self, *processes):
        """A folder with nothing but such statistics."""
        run = self.work / "plain"
        run.mkdir()
        for number, process in enumerate(processes):
            (run / f"stats.h.{number}.json").write_text(json.dumps({"host": "h", "messages_sent": 5, "messages_received": 5, "mode": "repair"} | process), encoding="utf-8")
        return run

    def test_ranks_above_all_that_told(self):
        """Statistics know how many ranks the job had: the last ones may have left none."""
        run = self.with_statistics({"rank": 0, "pid": 1, "job_size": 4}, {"rank": 1, "pid": 2, "job_size": 4})
        model = self.model(run)
        self.assertEqual(model["statistics"]["ranks_without"], ["2-3"])
        self.assertEqual(model["verdict"]["level"], "partly")

    def test_killed_before_it_was_repaired(self):
        run = self.with_statistics({"rank": 0, "pid": 1, "mismatched_chunks": 3, "repaired_chunks": 1, "source_changed": 1})
        (run / "ended.json").write_text('{"status": 143, "ranks": 1, "required": false, "signal": ""}', encoding="utf-8")
        verdict = self.model(run)["verdict"]
        self.assertEqual(verdict["level"], "failed")
        self.assertIn("1 was repaired, 1 not yet when the job ended", " ".join(verdict["sentences"]))
        self.assertNotIn("all were repaired", verdict["sentence"])

    def test_hostile_numbers(self):
        run = self.with_statistics({"rank": 0, "pid": [], "job_size": "x"}, {"rank": 1, "pid": {}, "job_size": 1 << 70})
        (run / "vm.1.live").write_bytes(b"")
        self.assertEqual(self.model(run)["statistics"]["ranks_without"], [])

    def test_without_jinja2(self):
        (self.work / "jinja2.py").write_text("raise ImportError('not here')", encoding="utf-8")
        run, path = self.make("--records", 3), {"PYTHONPATH": str(self.work)}
        done = report(run, "-o", self.work / "x", environment=path)
        self.assertEqual(done.returncode, 1)
        self.assertIn("apt-get install python3-jinja2", done.stderr)
        self.assertEqual(report("--text", run, environment=path).returncode, 0)

    def test_three_twins_name_who_is_wrong(self):
        model = self.model(self.make_twins("--wrong-twin", 1, "--culprit", 5, "--near", "--ranks", 32, "--messages", 20000))
        twins, verdict = model["twins"], model["verdict"]
        self.assertEqual((twins["level"], verdict["level"]), ("differs", "differs"))
        self.assertIn("Rank 5 of twin 1 (node102, process 20005, cores 10-11", verdict["sentence"])
        self.assertIn("Nothing was damaged", verdict["sentences"][1])
        self.assertEqual(twins["minority"], [0, twins["sums"]["differed"], 0])
        self.assertEqual(twins["sums"]["compared"], 20000)
        self.assertEqual([twins["tainted"]["ranks"][0][0], twins["tainted"]["count"]], [5, 32])
        self.assertEqual((twins["first"]["sender"], twins["first"]["wrong_twin"]), (5, 1))
        spread = twins["spread"]
        self.assertEqual((sum(spread["compared"]), sum(spread["differed"])), (20000, twins["sums"]["differed"]))
        self.assertEqual(sum(cell[2] for cell in spread["cells"]), twins["sums"]["differed"])
        self.assertEqual(sum(cell[2] for cell in twins["map"]["cells"]), twins["sums"]["differed"])
        begin = next(column for column, number in enumerate(spread["differed"]) if number)
        self.assertAlmostEqual(begin * spread["length"], 20, delta=2 * spread["length"])
        self.assertEqual({cell[0] for cell in spread["cells"] if cell[1] == begin} - {3, 4, 5, 6, 7}, set(), "it goes from neighbour to neighbour")
        self.assertTrue(all(abs(cell[0] - cell[1]) in (1, 31) for cell in twins["map"]["cells"]))
        self.assertTrue(any("records its first 100" in note for note in verdict["notes"]))
        self.assertEqual(model["totals"]["records"], 0, "nothing was damaged on its way")

    def test_two_twins_can_not_tell(self):
        model = self.model(self.make_twins("--twins", 2, "--wrong-twin", 0))
        self.assertEqual([one["twin"] for one in model["twins"]["culprits"]], [0, 1])
        self.assertIn("two twins can't tell which", model["verdict"]["sentence"])
        self.assertIn("uci_run --twins 3", " ".join(model["verdict"]["next"]))

    def test_twins_that_are_the_same(self):
        model = self.model(self.make_twins())
        self.assertEqual((model["verdict"]["level"], model["twins"]["level"], model["twins"]["spread"]), ("clean", "same", None))
        self.assertIn("the same in all 4,000 messages", model["verdict"]["sentence"])
        self.assertIsNone(self.model(self.make("--records", 2))["twins"])

    def test_corrected_twins(self):
        model = self.model(self.make_twins("--wrong-twin", 2, "--correct"))
        self.assertEqual((model["verdict"]["level"], model["twins"]["sums"]["corrected"]), ("corrected", 1))

    def test_twins_of_a_program_that_is_not_deterministic(self):
        model = self.model(self.make_twins("--all-differ"))
        self.assertEqual((model["verdict"]["level"], model["twins"]["culprits"]), ("unknown", []))
        self.assertIn("This is no sign of a fault", model["verdict"]["sentence"])
        self.assertFalse(any("from service" in step for step in model["verdict"]["next"]))

    def test_damage_is_worse_than_twins_that_differ(self):
        run = self.make_twins("--wrong-twin", 1)
        self.make("--records", 10, "--lost", 1, name="twins/twin.3")
        verdict = self.model(run)["verdict"]
        self.assertEqual(verdict["level"], "lost")
        self.assertIn("could not be repaired", verdict["sentences"][0])
        self.assertIn("Rank 2 of twin 1", verdict["sentences"][1])

    def test_a_twin_that_died(self):
        model = self.model(self.make_twins("--wrong-twin", 1, "--lost", 1))
        self.assertEqual(model["twins"]["processes"], [8, 0, 8])
        self.assertIn("rank 2 of twin 1 (node101, process 20002) has computed", model["verdict"]["sentence"].lower())
        self.assertTrue(any("8 ranks went on without twin 1: it had gone" in note for note in model["verdict"]["notes"]))

    def test_twin_files_that_are_none(self):
        run = self.make_twins("--wrong-twin", 1)
        bad = ["{", "[]", '{"twins": 2}', '{"twins": 1, "twin": 7, "of": 3, "rank": 1}', '{"twins": 1, "twin": 1, "of": 3, "rank": -1}',
               '{"twins": 1, "twin": 1, "of": "3", "rank": 1}']
        for number, text in enumerate(bad):
            (run / f"twin.0/twins.bad.{number}.json").write_text(text)
        odd = {"twins": 1, "twin": 0, "of": 3, "rank": 99, "compared": -1, "minority": "x", "sources": [[1], [1, 2, "3"]], "partners": [1, {"twin": []}],
               "bins": {"start": 1e300, "seconds": 0, "compared": [1], "differed": []}, "host": ["a"], "pid": "x", "cores": 3, "start": "now"}
        (run / "twin.0/twins.odd.json").write_text(json.dumps(odd))
        record = {"verdict": "twins differ", "schema": 2, "twin": 0, "rank": 1, "peer_rank": 2, "tag": "0x1", "seq": 1, "time": 1.0}
        lines = [{**record, "twin": 3}, {**record, "rank": "1"}, {**record, "tag": None}, {**record, "seq": -1}, {**record, "time": None},
                 {**record, "tag": "x" * 99}, {**record, "wrong_twin": "one", "values": [1, None, "ff"], "mpi": [1], "length": "8", "seq": 999}]
        (run / "twin.0/events.bad.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        model = self.model(run)
        self.assertEqual(len(model["inputs"]["unread"]), len(bad))
        self.assertEqual(model["inputs"]["damaged_lines"], len(lines) - 1)
        self.assertEqual(report("--text", run).returncode, 0)
        self.assertEqual(report(run, "-o", self.work / "page.html").returncode, 0)

    def test_hostile_twins(self):
        done = report("--text", self.make_twins("--wrong-twin", 1, "--hostile"))
        self.assertNotIn("\x1b", done.stdout)
        self.assertNotIn("\u202e", done.stdout)

    def test_real_runs(self):
        if not RUNS:
            self.skipTest("no real run was given")
        for run in RUNS:
            model = self.model(run)
            sums = model["statistics"]["sums"]
            self.assertGreater(model["totals"]["records"], 0)
            self.assertEqual(model["inputs"]["damaged_lines"], 0)
            self.assertEqual(model["verdict"]["level"], "repaired")
            self.assertEqual(model["statistics"]["ranks_without"], [])
            self.assertGreaterEqual(sums["mismatched_chunks"], model["totals"]["records"])
            self.assertTrue(any("injected on purpose" in note for note in model["verdict"]["notes"]))
            self.assertTrue(any("run the job without it" in step for step in model["verdict"]["next"]), model["verdict"]["next"])
            self.assertFalse(any("out of service" in step for step in model["verdict"]["next"]), model["verdict"]["next"])
            shown = [record for record in model["worst"] if record["hex"]]
            self.assertTrue(any(cell[2] for record in shown for line in record["hex"] for cell in line["bad"]))


class Result(unittest.TextTestResult):
    """Counts as the other suites do."""

    def addSuccess(self, test):
        super().addSuccess(test)
        self.successes = getattr(self, "successes", 0) + 1


def run_tests(case):
    """All tests of a case, and their count in the words of the other suites. @return exit status"""
    outcome = unittest.TextTestRunner(stream=sys.stdout, verbosity=2, resultclass=Result).run(
        unittest.defaultTestLoader.loadTestsFromTestCase(case))
    failures = len(outcome.failures) + len(outcome.errors)
    print(f"{getattr(outcome, 'successes', 0)} passed, {failures} failed, {len(outcome.skipped)} skipped")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(run_tests(ReportTest))
