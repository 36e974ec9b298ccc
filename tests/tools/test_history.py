#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
uci_report --history, --ledger and --drain-list over jobs of make_history.py: what is bad is named, and nothing else; ledgers survive what befalls files.

usage: test_history.py UCI_REPORT [RUN...]; each RUN is the folder of a real job with injected faults. Ends with "N passed, N failed, N skipped".
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from make_history import NODES, TOPOLOGY, Cluster
from test_report import RUNS, TOOL, report, run_tests

sys.path.insert(0, str(Path(TOOL).resolve().parent))
from jobreport.hostlist import expand  # noqa: E402

ALL_BAD = [f"node {node}" for node in NODES]
ESCAPE = "\x1b[31mred\x1b[0m"


class HistoryTest(unittest.TestCase):
    """Each test has a cluster of its own."""

    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="uci-history."))
        self.addCleanup(shutil.rmtree, self.work)
        self.jobs, self.topology, self.ledger = self.work / "jobs", self.work / "topology.conf", self.work / "site.ledger"
        self.topology.write_text(TOPOLOGY)
        self.cluster = Cluster(self.jobs)

    def run_jobs(self, bad, number=8, size=16, **options):
        """Jobs on nodes drawn at random, over three months."""
        for job in range(number):
            self.cluster.run(self.cluster.some(size), bad, month=job % 3, **options)

    def history(self, *places, topology=True):
        """What --json says."""
        done = report("--history", "--json", *(["--topology", self.topology] if topology else []), *(places or [self.jobs]))
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout, parse_constant=self.fail)

    def named(self, *places, **options):
        """[(kind, names...)] of places that are named, in order."""
        return sorted((place["kind"], *place["names"]) for place in self.history(*places, **options)["places"] if place["named"])

    def drained(self, *arguments):
        """Lines of --drain-list, and what was said beside them."""
        done = report("--history", "--drain-list", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.splitlines(), done.stderr

    def keep(self, *places):
        """--ledger. @return what it says"""
        done = report("--ledger", self.ledger, *places)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def lines(self):
        """Of the ledger, each whole."""
        return [json.loads(line) for line in self.ledger.read_text().splitlines()]

    # what is bad

    def test_cable_between_switches(self):
        self.run_jobs(["cable s1"])
        self.assertEqual(self.named(), [("link", "s1", "top")])
        self.assertEqual(self.drained("--topology", self.topology, self.jobs)[0], [], "no node is to blame")
        text = report("--history", "--topology", self.topology, self.jobs).stdout
        self.assertIn("The cable from s1 to top: 100 % of the damage", text)

    def test_switch(self):
        self.run_jobs(["s1"])
        self.assertEqual(self.named(), [("switch", "s1")])

    def test_top_switch(self):
        self.run_jobs(["top"])
        self.assertEqual(self.named(), [("switch", "top")])

    def test_neighbours_talk_most(self):
        for bad, name in ((["s1"], ("switch", "s1")), (["cable s1"], ("link", "s1", "top"))):
            folder = self.work / name[0]
            cluster = Cluster(folder)
            for _ in range(2):
                cluster.run(NODES, bad, halo=30, messages=20)
            self.assertEqual(self.named(folder), [name])

    def test_node(self):
        self.run_jobs(["node n5"], rate=.02)
        history = self.history()
        self.assertEqual([(place["kind"], place["names"]) for place in history["places"] if place["named"]], [("node", ["n5"])])
        self.assertEqual([node["node"] for node in history["drain"]], ["n5"])
        tables = {table["name"]: table["rows"] for table in history["tables"]}
        self.assertEqual(tables["node"][0]["name"], "n5")
        self.assertEqual([row["name"] for row in tables["month"]], ["2026-09", "2026-10"])
        self.assertEqual(sum(row["damaged"] for row in tables["month"]), history["totals"]["damaged"])
        self.assertEqual(sum(row["received"] for row in tables["node"]), history["totals"]["damaged"])
        self.assertEqual(sum(row["sent"] for row in tables["node"]), history["totals"]["damaged"])
        self.assertEqual(tables["transports"][0]["name"], "rc_mlx5")
        self.assertEqual({row["name"].split()[1] for row in tables["device"]}, {"mlx5_0:1"})

    def test_cable_of_a_node(self):
        self.run_jobs(["cable n5"], rate=.05)
        self.assertEqual(self.named(), [("link", "n5", "s0")])
        self.assertEqual(self.drained("--topology", self.topology, self.jobs)[0], ["n5"])

    def test_one_process_a_node_cannot_tell_the_cable(self):
        self.run_jobs(["cable n5"], processes=1)
        [place] = [place for place in self.history()["places"] if place["named"]]
        self.assertEqual(place["text"], "node n5 or the cable from n5 to s0")

    def test_what_a_node_receives(self):
        self.run_jobs(["into n5"], rate=.02)
        self.assertEqual(self.named(), [("receiver", "n5")])

    def test_node_before_a_background(self):
        """All nodes have a little, and one more."""
        for _ in range(3):
            self.cluster.run(self.cluster.some(24), ALL_BAD, rate=2e-3, messages=100)
            self.cluster.run(self.cluster.some(16, "n5"), ["node n5"], messages=100)
        self.assertEqual([node["node"] for node in self.history()["drain"]], ["n5"])

    def test_two_nodes_below_one_switch(self):
        self.cluster.run(NODES, ["node n9", "node n10"], rate=.05, messages=100)
        self.assertEqual(self.named(), [("node", "n10"), ("node", "n9")])

    def test_three_nodes_below_one_switch(self):
        """The switch explains more than each, and less than all of them."""
        self.cluster.run(NODES, ["node n9", "node n10", "node n12"], rate=.05, messages=100)
        self.assertEqual([node["node"] for node in self.history()["drain"]], [])
        self.assertEqual({place["node"] for place in self.history()["places"] if place["named"]}, {"n9", "n10", "n12"})

    def test_node_and_cable(self):
        self.run_jobs(["node n5", "cable s3"], number=12)
        self.assertEqual(self.named(), [("link", "s3", "top"), ("node", "n5")])
        self.assertEqual(self.drained("--topology", self.topology, self.jobs)[0], ["n5"])

    def test_pair_drains_neither(self):
        self.run_jobs(["n5>n9"], number=4, size=32, rate=.1)
        self.assertEqual(self.named(), [("pair", "n5", "n9")])
        self.assertEqual(self.drained(self.jobs)[0], [])

    def test_within_a_node_drains_it(self):
        self.run_jobs(["n5>n5"], number=4, size=32, rate=.1)
        self.assertEqual(self.named(), [("pair", "n5", "n5")])
        self.assertEqual(self.drained(self.jobs), (["n5"], ""))
        self.assertIn("What goes within node n5: 100 % of the damage", report("--history", self.jobs).stdout)

    def test_records_of_no_node(self):
        job = self.jobs / "nowhere"
        job.mkdir(parents=True)
        (job / "events.a.1.0.jsonl").write_text('{"verdict": "repaired", "schema": 2}\n')
        self.assertEqual(self.history()["places"], [])

    def test_most_nodes_of_a_switch_are_the_switch(self):
        for _ in range(3):
            self.cluster.run([*NODES[8:13], *NODES[16:32]], ["node n8", "node n9", "node n10"], rate=.02)
        self.assertEqual(self.named(), [("switch", "s1")])
        self.assertEqual(self.named(topology=False), [("node", "n10"), ("node", "n8"), ("node", "n9")])

    def test_memory_of_most_nodes_of_a_switch_is_not_the_switch(self):
        for _ in range(3):
            self.cluster.run([*NODES[8:12], *NODES[16:32]], ["out of n8", "out of n9", "out of n10"], cause="memory", evidence="the memory of host {sender}")
        self.assertEqual(self.named(), [("node", "n10"), ("node", "n8"), ("node", "n9")])

    # what is not

    def test_switch_that_everything_crosses(self):
        for _ in range(4):
            self.cluster.run(["n0", "n8", "n16", "n24"], ALL_BAD, processes=1)
        places = self.history()["places"]
        self.assertEqual([place for place in places if place["named"]], [])
        [top] = [place for place in places if place["names"] == ["top"]]
        self.assertEqual(top["damaged"], top["of"])
        self.assertIn("proves nothing", top["verdict"])

    def test_damage_everywhere(self):
        self.run_jobs(ALL_BAD, messages=50)
        self.assertEqual(self.named(), [])
        self.assertIn("No node, cable or switch stands out.", report("--history", self.jobs).stdout)

    def test_one_node_that_all_talk_to(self):
        for _ in range(2):
            self.cluster.run(NODES[:16], ALL_BAD, star=True, messages=1000)
        history = self.history()
        self.assertEqual([place["names"] for place in history["places"] if place["node"] and place["named"]], [])
        self.assertEqual(history["drain"], [])

    def test_healthy_traffic_acquits(self):
        self.cluster.run(["n1", "n2"], ["node n1"], processes=1)
        self.cluster.run(["n1", "n3"], ["node n1"], processes=1)
        for other in NODES[4:10]:
            self.cluster.run([other, "n2"])
            self.cluster.run([other, "n3"])
        self.assertEqual(self.named(topology=False), [("node", "n1")])

    def test_injected_faults_are_left_out(self):
        self.run_jobs(["node n5"], faults=9)
        self.run_jobs(["node n6"])
        history = self.history()
        self.assertEqual((history["jobs"]["counted"], history["jobs"]["injected"]), (8, 8))
        self.assertEqual([node["node"] for node in history["drain"]], ["n6"])
        self.assertIn("8 jobs with faults injected on purpose (UCI_FAULT) were left out.", history["verdict"]["sentences"])

    def test_changed_by_the_program(self):
        self.run_jobs(["node n5"], verdict="source changed", cause="source_changed")
        history = self.history()
        self.assertEqual(history["totals"]["damaged"], 0)
        self.assertGreater(history["totals"]["by_program"], 0)
        self.assertEqual((history["places"], history["drain"]), ([], []))
        self.assertFalse(any(row["received"] or row["sent"] for table in history["tables"] if table["name"] == "node" for row in table["rows"]))

    def test_software(self):
        self.run_jobs(["node n5"], cause="ucx")
        history = self.history()
        self.assertGreater(history["totals"]["damaged"], 0)
        self.assertEqual((history["places"], history["drain"]), ([], []))

    def test_memory_by_the_evidence(self):
        self.run_jobs(["out of n5"], cause="memory", evidence="its sender's copy has not the digest any more: the memory of host {sender}, or a stray store")
        [place] = [place for place in self.history()["places"] if place["named"]]
        self.assertEqual((place["names"], place["common"]["memory"][0]), (["n5"], "n5"))

    def test_without_statistics(self):
        self.run_jobs(["node n5"])
        for path in self.jobs.glob("*/stats.*"):
            path.unlink()
        history = self.history()
        self.assertEqual([place["node"] for place in history["places"] if place["named"]], ["n5"])
        self.assertTrue(all(place["traffic_share"] is None for place in history["places"]))

    def test_node_without_statistics(self):
        """It is taken to be as the others are."""
        self.run_jobs(["node n5"], rate=.05)
        for path in self.jobs.glob("*/stats.n5.*"):
            path.unlink()
        [place] = [place for place in self.history()["places"] if place["named"]]
        self.assertEqual(place["node"], "n5")
        self.assertGreater(place["traffic_share"], .02)

    def test_counters_alone(self):
        folder = self.cluster.run(["n1", "n2"])
        for path in folder.glob("stats.n1.*"):
            path.write_text(json.dumps(json.loads(path.read_text()) | {"mismatched_chunks": 5, "unrepaired_chunks": 2, "mismatched_headers": 1}))
        totals = self.history()["totals"]
        self.assertEqual((totals["damaged"], totals["not_repaired"]), (12, 4))

    def test_repairs_that_were_not_finished(self):
        """A process that ended between damage and repair has repaired nothing."""
        folder = self.cluster.run(["n1", "n2"])
        [path, *_] = folder.glob("stats.n1.*")
        path.write_text(json.dumps(json.loads(path.read_text()) | {"mismatched_chunks": 5, "repaired_chunks": 2}))
        self.keep(self.jobs)
        [found] = [entry["damage"] for entry in self.lines() if entry["damage"]]
        self.assertEqual({kind["verdict"]: kind["messages"] for kind in found}, {"repaired": 2, "not yet repaired": 3})

    # ledgers

    def test_ledger_is_as_the_folders(self):
        self.run_jobs(["node n5"], number=4)
        whole = self.history()
        self.assertIn(f"{4 * 16} lines added", self.keep(self.jobs))
        shutil.rmtree(self.jobs)
        kept = self.history(self.ledger)
        self.assertEqual({**whole, "inputs": 0}, {**kept, "inputs": 0})

    def test_ledger_has_each_job_once(self):
        self.run_jobs(["node n5"], number=3)
        self.keep(self.jobs)
        before = self.ledger.read_bytes()
        self.jobs.rename(self.work / "moved")
        self.assertIn("0 lines added, 48 there already", self.keep(self.work / "moved"))
        self.assertEqual(self.ledger.read_bytes(), before)
        self.assertEqual(self.history(self.ledger, self.work / "moved")["jobs"]["counted"], 3)

    def test_ledgers_are_merged(self):
        folders = [self.cluster.run(["n1", "n2"]) for _ in range(2)]
        parts = [self.work / "a.ledger", self.work / "b.jsonl"]
        for part, folder in zip(parts, folders):
            self.assertEqual(report("--ledger", part, folder).returncode, 0)
        self.assertIn("4 lines added", self.keep(*parts, *parts))
        shutil.rmtree(self.jobs)
        self.assertEqual(self.history(self.work)["jobs"]["counted"], 2, "ledgers in a folder are found, whatever their names are")

    def test_writers_at_once(self):
        """Each has one job of its own, and one that all have."""
        folders = [self.cluster.run(self.cluster.some(8), ["top"]) for _ in range(9)]
        writers = [subprocess.Popen([TOOL, "--ledger", self.ledger, folder, folders[8]], stdout=subprocess.DEVNULL) for folder in folders[:8]]
        self.assertEqual([writer.wait() for writer in writers], [0] * 8)
        keys = [(line["id"], line["node"]) for line in self.lines()]
        self.assertEqual((len(keys), len(set(keys))), (72, 72))

    def test_writer_waits_for_the_lock(self):
        folder = self.cluster.run(["n1", "n2"])
        with subprocess.Popen(["flock", self.ledger, "sleep", "1"]):
            time.sleep(.3)
            begin = time.monotonic()
            self.keep(folder)
            self.assertGreater(time.monotonic() - begin, .4)

    def test_last_line_is_cut_off(self):
        self.run_jobs(["node n5"], number=2, size=4)
        self.keep(self.jobs)
        whole = self.ledger.read_bytes()
        self.ledger.write_bytes(whole[:-20])
        history = self.history(self.ledger)
        self.assertEqual((history["inputs"]["damaged_lines"], history["inputs"]["lines"]), (1, 8))
        self.assertIn("cut off", history["inputs"]["unread"][0]["why"])
        self.assertIn("cut off", report("--history", self.ledger).stdout)
        self.assertIn("1 line added", self.keep(self.jobs))
        self.assertEqual(self.history(self.ledger)["totals"], self.history(self.jobs)["totals"])

    def test_disk_is_full(self):
        folder = self.cluster.run(["n1", "n2"])
        done = report("--ledger", "/dev/full", folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("uci_report: /dev/full: ", done.stderr)

    def test_running_jobs_are_left_for_later(self):
        folder, tools = self.cluster.run(["n1", "n2"]), self.work / "bin"
        shutil.copytree(Path(TOOL).resolve().parent / "jobreport", tools / "jobreport")
        for name in (TOOL, *(Path(TOOL).resolve().with_name(part) for part in ("uci_job.py", "uci_version.py", "version.txt"))):
            shutil.copy(name, tools)
        (folder / "n1.1.live").write_bytes(b"")
        process = {"host": "n1", "pid": 1, "rank": 0, "state": "running", "counters": {"messages_received": 7}}
        (tools / "uci_top").write_text(f"#!/bin/sh\necho '{json.dumps({'jobs': [{'processes': [process]}], 'skipped': []})}'\n")
        (tools / "uci_top").chmod(0o755)
        done = subprocess.run([tools / "uci_report", "--ledger", self.ledger, self.jobs], capture_output=True, text=True, check=True)
        self.assertIn("0 lines added, 0 there already; 0 jobs read, 1 still running", done.stdout)

    def test_lines_that_are_none(self):
        self.run_jobs(["node n5"], number=1, size=2)
        self.keep(self.jobs)
        bad = [b"{", b"[]", b"{}", b"\xff\xfe", b'"uci_ledger"', b'{"uci_ledger": 2}', b'{"uci_ledger": true}', b"[" * 50000, b"1" * 9000]
        with self.ledger.open("ab") as file:
            file.write(b"\n".join(bad) + b"\n\n")
        inputs = self.history(self.ledger)["inputs"]
        self.assertEqual((inputs["lines"], inputs["damaged_lines"]), (2 + len(bad), len(bad)))
        self.assertIn("newer ledger", " ".join(file["why"] for file in inputs["unread"]))

    def test_any_value_of_any_type(self):
        self.cluster.run(NODES[:8], ["node n5"], messages=20, rate=1)
        self.keep(self.jobs)
        line = next(line for line in self.lines() if line["damage"])
        values = (None, True, -1, 1e300, float("nan"), 10 ** 30, "text", "\ud800", ESCAPE, [], [[]], [{}], {}, {"a": []})
        odd = [{**line, name: value} for name in line for value in values]
        kind = line["damage"][0]
        odd += [{**line, "id": f"{name} {number}", "damage": [{**kind, name: value}]} for name in kind for number, value in enumerate(values)]
        self.ledger.write_text("".join(json.dumps(one) + "\n" for one in odd))
        for form in (("--text",), ("--json",), ("-o", self.work / "page.html"), ("--drain-list",)):
            done = report("--history", *form, "--topology", self.topology, self.ledger)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertNotIn("\x1b", done.stdout + done.stderr)
        self.assertEqual(report("--ledger", self.work / "other", self.ledger).returncode, 0)

    # hostile names

    def test_hostile_names(self):
        markup = "<script>document.title='owned'</script>"
        names = ["ALL", "-x", "a b", "a\nb", "n1;reboot", "$(reboot)", ESCAPE, markup, "\u202egnp.exe", "", "n" * 300, "[1-9]", "n1,n2"]
        for name in names:
            for _ in range(2):
                folder = self.cluster.run(["n1", "n2", "n3", "n4"], ["into n2"], rate=.1, processes=1)
                for path in folder.iterdir():
                    path.write_text(path.read_text().replace('"n2"', json.dumps(name)))
            nodes, said = self.drained(self.jobs)
            self.assertEqual(nodes, [], name)
            self.assertNotIn("\x1b", said)
            self.assertIn("no name of a node", said)
            page = self.work / "page.html"
            self.assertEqual(report("--history", "-o", page, self.jobs).returncode, 0)
            self.assertNotIn("<script", page.read_text())
            self.assertTrue(report("--history", self.jobs).stdout.replace("\n", "").isprintable())
            shutil.rmtree(self.jobs)
            self.cluster = Cluster(self.jobs)

    # --drain-list

    def test_rule_of_the_drain_list(self):
        def bad_job():
            self.cluster.run(NODES[:8], ["node n5"])
        bad_job()
        nodes, said = self.drained(self.jobs)
        self.assertEqual(nodes, [], "one job, and all repaired")
        self.assertIn("is less than --drain-jobs and --drain-lost", said)
        self.assertEqual(self.drained("--drain-jobs", 1, self.jobs)[0], ["n5"])
        bad_job()
        self.assertEqual(self.drained(self.jobs)[0], ["n5"])
        self.assertEqual(self.drained("--drain-jobs", 3, self.jobs)[0], [])

    def test_one_not_repaired_is_enough(self):
        folder = self.cluster.run(NODES[:8], ["node n5"])
        path = next(folder.glob("events.*"))
        path.write_text(path.read_text().replace('"repaired"', '"not repaired"', 1))
        self.assertEqual(self.drained(self.jobs)[0], ["n5"])
        self.assertEqual(self.drained("--drain-lost", 2, self.jobs)[0], [])

    def test_drain_list_with_reasons(self):
        self.run_jobs(["node n5"])
        done = report("--history", "--drain-list", "--json", self.jobs)
        [node] = json.loads(done.stdout)["drain"]
        self.assertEqual((node["node"], node["not_repaired"]), ("n5", 0))
        self.assertIn("UCI: node n5: ", node["reason"])

    def test_only_nodes_of_the_topology(self):
        self.run_jobs(["node n5"])
        self.topology.write_text(TOPOLOGY.replace("n[0-7]", "n[0-4,6-7]"))
        nodes, said = self.drained("--topology", self.topology, self.jobs)
        self.assertEqual(nodes, [])
        self.assertIn("the topology has no such node", said)

    def test_node_that_a_switch_explains(self):
        """The only node of its switch that is ever used."""
        for job in range(3):
            self.cluster.run(["n5", *NODES[8 + job:12 + job], *NODES[16:20], *NODES[24:28]], ["node n5"], processes=1)
        nodes, said = self.drained("--topology", self.topology, self.jobs)
        self.assertEqual(nodes, [])
        self.assertIn(": the cable from s0 to top or switch s0 explains it as well", said)
        self.assertEqual(self.drained(self.jobs)[0], ["n5"])

    def test_names_with_a_domain(self):
        self.run_jobs(["node n5"])
        for path in self.jobs.glob("*/*.*"):
            path.write_text(path.read_text().replace('"n5"', '"n5.example.org"'))
        self.assertEqual(self.drained("--topology", self.topology, self.jobs)[0], ["n5"])
        self.assertEqual(self.drained(self.jobs)[0], ["n5.example.org"])

    def test_nothing_to_drain(self):
        self.cluster.run(["n1", "n2"])
        self.ledger.touch()
        for place in (self.jobs, self.ledger):
            self.assertEqual(self.drained(place), ([], ""))
        shell = f"'{TOOL}' --history --drain-list '{self.ledger}' | xargs -rI NODE echo scontrol NODE"
        self.assertEqual(subprocess.run(shell, shell=True, capture_output=True, text=True, check=True).stdout, "")

    def test_drain_list_for_a_command(self):
        self.run_jobs(["node n5", "node n20"])
        shell = f"'{TOOL}' --history --drain-list '{self.jobs}' | xargs -rI NODE echo scontrol update nodename=NODE state=drain"
        said = subprocess.run(shell, shell=True, capture_output=True, text=True, check=True).stdout.splitlines()
        self.assertEqual(sorted(said), [f"scontrol update nodename={node} state=drain" for node in ("n20", "n5")])

    # topology, folders, options

    def test_lists_of_names(self):
        for text, names in (("n[0-2,7],gpu[01-03]", "n0 n1 n2 n7 gpu01 gpu02 gpu03"), ("r[0-1]n[8-10]", "r0n8 r0n9 r0n10 r1n8 r1n9 r1n10"),
                            ("a,b,c[5]d", "a b c5d"), ("n[098-101]", "n098 n099 n100 n101"), ("", "")):
            self.assertEqual(expand(text), names.split())

    def test_topologies_that_are_none(self):
        self.cluster.run(["n1", "n2"])
        for text, why in (("Nodes=n1", "line 1"), ("\nSwitchName=s0", "line 2"), ("SwitchName=s0 Nodes=n[1-", "bracket"),
                          ("SwitchName=s0 Nodes=n[2-1]", "no range"), ("SwitchName=s0 Nodes=n[0-99999999]", "no range"),
                          ("SwitchName=s0 Nodes=n[0-9999]m[0-9999]", "more than"),
                          ("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n1", "only a tree"), ("SwitchName=a Switches=b\nSwitchName=b Switches=a", "above itself"),
                          (f"SwitchName=a Nodes={ESCAPE}[", "bracket"), ("garbage \x00\xff", "expected SwitchName")):
            self.topology.write_text(text)
            done = report("--history", "--topology", self.topology, self.jobs)
            self.assertEqual(done.returncode, 1, text)
            self.assertIn(why, done.stderr)
            self.assertNotIn("\x1b", done.stderr)
        self.assertEqual(report("--history", "--topology", self.work / "none", self.jobs).returncode, 1)

    def test_nodes_that_the_topology_lacks(self):
        self.run_jobs(["node n5"])
        self.topology.write_text("SwitchName=s9 Nodes=other[1-3]\n")
        self.assertEqual(self.named(), [("node", "n5")])

    def test_folders_of_folders(self):
        self.run_jobs([], number=3, size=2)
        deep = self.work / "a" / "b"
        deep.mkdir(parents=True)
        self.jobs.rename(deep / "jobs")
        (self.work / "again").symlink_to(deep / "jobs")
        (self.work / "notes.txt").write_text("nothing of UCI's")
        jobs = self.history(self.work)["jobs"]
        self.assertEqual((jobs["counted"], jobs["twice"]), (3, 0))
        self.assertEqual(self.history(*(deep / "jobs").iterdir())["jobs"]["counted"], 3)

    def test_refusals(self):
        self.cluster.run(["n1", "n2"])
        empty = self.work / "empty"
        empty.mkdir()
        for arguments, status, text in ((("--history", empty), 1, "nothing of UCI's"), (("--history", self.work / "none"), 1, "No such file"),
                                        (("--ledger", empty / "no" / "x", self.jobs), 1, "No such file"), (("--drain-list", self.jobs), 2, "for --history"),
                                        (("--history", "--ledger", "x", self.jobs), 2, "not allowed"), (("--ledger", "x", "--json", self.jobs), 2, "no report"),
                                        (("--history", "--drain-jobs", 0, self.jobs), 2, "at least 1"), (("--history", ""), 2, "is empty"),
                                        (("--ledger", "", self.jobs), 2, "is empty"), (("--text", "-o", "", self.jobs), 2, "is empty")):
            done = report(*arguments)
            self.assertEqual(done.returncode, status, arguments)
            self.assertIn(text, done.stderr)

    def test_records_are_no_ledger(self):
        folder = self.cluster.run(["n1", "n2"], ["node n1"], rate=.1)
        inputs = self.history(next(folder.glob("events.*")))["inputs"]
        self.assertEqual(inputs["damaged_lines"], inputs["lines"])
        self.assertIn("no line of a ledger", inputs["unread"][0]["why"])

    def test_page(self):
        self.run_jobs(["node n5", "cable s3"])
        page = self.work / "page.html"
        done = report("--history", "--topology", self.topology, "-o", page, self.jobs)
        self.assertEqual(done.returncode, 0, done.stderr)
        text = page.read_text()
        for part in ("<b>the cable from s3 to top</b>", "<b>n5</b>", "2026-09", "By month"):
            self.assertIn(part, text)
        self.assertNotIn("script", text.split("<body>")[0])

    def test_real_runs(self):
        if not RUNS:
            self.skipTest("no real run was given")
        self.assertEqual(self.history(*RUNS, topology=False)["jobs"], {"counted": 0, "injected": len(RUNS), "running": 0, "twice": 0, "first": None,
                                                                       "last": None, "nodes": 0})
        self.assertIn(f"{len(RUNS)} lines added", self.keep(*RUNS))
        self.assertEqual(self.drained(self.ledger)[0], [])
        self.assertTrue(all(line["messages"] and line["bytes"] and line["faults"] and line["damage"] for line in self.lines()))
        self.assertTrue(all(line["node"] == os.uname().nodename for line in self.lines()))


if __name__ == "__main__":
    sys.exit(run_tests(HistoryTest))
