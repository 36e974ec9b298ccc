#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Random worlds and fuzzers for as long as there is time: on all cores, on any number of machines that share a folder, with a page at the end.

Work is cut into units, which are numbered: what a unit does, and its seed, follow from its number. Who does one claims it, by a file in FOLDER that only one can make,
and writes there what came out. Begin it again with the same FOLDER, here or elsewhere, and it goes on with what nobody has done; what was claimed on this machine by a
process that is gone is done again. A folder belongs to one revision. Ctrl-C, or the end of the time, ends units that are not done, and writes the page.

Builds are those of tests/run.sh, and of run_fuzz.sh --build: "tests/run.sh marathon" makes them first. Ends with "N passed, N failed, N skipped".
"""
import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import threading
import time
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = ("worlds", "worlds", "fuzz", "worlds, encrypted", "worlds", "worlds", "fuzz", "worlds, signed", "worlds, with sanitizers", "worlds")
TRIED = ("core", "pipeline", "mpi", "libuci", "ucx_plugin", "tools", "tests/unit", "tests/fuzz")
SUMMARY = re.compile(r"(\d+) worlds, (\d+) turns, (\d+) messages, (\d+) faults in [\d.]+ s .*?(\d+) failed")
EXECUTED = re.compile(r"stat::number_of_executed_units: *(\d+)")
COUNTS = ("worlds", "messages", "faults", "executions", "failed")
SANITIZED = {"ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1", "UBSAN_OPTIONS": "halt_on_error=1:print_stacktrace=1"}


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, default=Path("uci-marathon"), help="where its place is kept (default uci-marathon)")
    parser.add_argument("--hours", type=float, default=1, metavar="H", help="for so long (default 1)")
    parser.add_argument("--faults", type=float, default=0, metavar="N", help="or until there have been so many faults in all (1e8; default 0: no such end)")
    parser.add_argument("--only", action="append", choices=sorted(set(KINDS)), metavar="KIND",
                        help=f"units of this kind only, and of others so named: {'; '.join(sorted(set(KINDS)))}. Numbers of other kinds are left for others to claim")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), metavar="N", help="units at a time (default: as there are cores)")
    parser.add_argument("--first", type=int, default=0, metavar="N",
                        help="units from this number on (default 0): other worlds than a marathon before this one had, or one elsewhere that shares no folder")
    parser.add_argument("--unit-faults", type=float, default=1e6, metavar="N", help="faults of a unit of worlds (default 1e6; a tenth with sanitizers)")
    parser.add_argument("--unit-seconds", type=int, default=60, metavar="S", help="duration of a unit of fuzzing (default 60)")
    parser.add_argument("--page", type=Path, metavar="FILE", help="where the page goes (default: page.md in the folder)")
    parser.add_argument("--build", type=Path, default=ROOT / "build")
    parser.add_argument("--asan-build", type=Path, default=ROOT / "build-asan")
    return parser.parse_args()


def git(*arguments):
    return subprocess.run(["git", "-C", ROOT, "-c", f"safe.directory={ROOT}", *arguments, "--", *TRIED], stdout=subprocess.PIPE, text=True, check=False).stdout.strip()


def revision():
    """Of the sources of what is tried, with a mark if they have been changed since."""
    return (git("log", "-1", "--format=%h", "--abbrev=12") or "unknown") + ("-dirty" if git("status", "--porcelain") else "")


def processor():
    """'AMD EPYC, 2 cores'."""
    names = re.findall(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return f"{names[0] if names else platform.machine()}, {os.cpu_count()} cores"


class Units:
    """What has been claimed and done, in files that machines share."""

    def __init__(self, folder, first):
        self.folder, self.lock, self.next = folder, threading.Lock(), first
        folder.mkdir(parents=True, exist_ok=True)
        self._belongs_here()
        for path in folder.glob("unit.*.json"):
            self._free_if_gone(path)

    def _belongs_here(self):
        mark = self.folder / "revision"
        ours = revision()
        try:
            with open(mark, "x") as file:
                file.write(ours + "\n")
        except FileExistsError:
            theirs = mark.read_text().strip()
            if theirs != ours:
                sys.exit(f"run_marathon.py: {self.folder} is of revision {theirs}, this is {ours}: give another --folder")

    @staticmethod
    def _free_if_gone(path):
        try:
            unit = json.loads(path.read_text())
        except ValueError:
            return  # being written
        if "seconds" not in unit and unit["host"] == platform.node() and not Path(f"/proc/{unit['pid']}").exists():
            path.unlink()

    def path(self, number):
        return self.folder / f"unit.{number:06}.json"

    def claim(self, kinds):
        """The number of a unit of one of these kinds, which is ours from now on."""
        with self.lock:
            while True:
                number, self.next = self.next, self.next + 1
                if KINDS[number % len(KINDS)] not in kinds:
                    continue
                try:
                    with open(self.path(number), "x") as file:
                        json.dump({"host": platform.node(), "pid": os.getpid()}, file)
                    return number
                except FileExistsError:
                    continue

    def drop(self, number):
        self.path(number).unlink()

    def write(self, number, unit):
        new = self.path(number).with_suffix(".new")
        new.write_text(json.dumps(unit))
        new.replace(self.path(number))

    def done(self):
        """All that are done, by whomever."""
        found = []
        for path in sorted(self.folder.glob("unit.*.json")):
            try:
                unit = json.loads(path.read_text())
            except (ValueError, FileNotFoundError):
                continue
            if "seconds" in unit:
                found.append(unit)
        return found


class Marathon:
    """Units at a time, until it is over."""

    def __init__(self, options):
        self.options = options
        self.units = Units(options.folder, options.first)
        self.harnesses = sorted(path.name for path in (options.build / "fuzz").glob("fuzz_*") if path.suffix == "" and os.access(path, os.X_OK))
        self.end = time.monotonic() + options.hours * 3600
        self.running, self.lock, self.is_over = set(), threading.Lock(), False
        self.total = defaultdict(int)
        for unit in self.units.done():
            self._add(unit)

    def _add(self, unit):
        for name in COUNTS:
            self.total[name] += unit.get(name, 0)

    def command(self, number):
        """(kind, command, environment) of a unit."""
        kind, options = KINDS[number % len(KINDS)], self.options
        if kind == "fuzz":
            turn = number // len(KINDS) * KINDS.count("fuzz") + KINDS[:number % len(KINDS)].count("fuzz")
            name = self.harnesses[turn % len(self.harnesses)]
            corpus = options.build / "fuzz" / "corpus" / name.removeprefix("fuzz_")
            corpus.mkdir(parents=True, exist_ok=True)
            kept = ROOT / "tests/fuzz/corpus" / name.removeprefix("fuzz_")  # none where nothing is worth keeping
            return name, [options.build / "fuzz" / name, f"-max_total_time={options.unit_seconds}", f"-seed={number + 1}", "-timeout=10", "-rss_limit_mb=2000",
                          "-max_len=4096", "-print_final_stats=1", f"-artifact_prefix={options.folder}/crash.{number}.", corpus,
                          *([kept] if kept.exists() else [])], SANITIZED
        is_sanitized = "sanitizers" in kind
        faults = options.unit_faults / (10 if is_sanitized else 1)
        seal = ["--seal", "encrypt"] if "encrypted" in kind else ["--seal", "sign"] if "signed" in kind else []
        build = options.asan_build if is_sanitized else options.build
        return kind, [build / "tests/unit/random/test_random", "--faults", "all", "--faults-total", f"{faults:.0f}", "--seed", str(1_000_000 * (number + 1)), "--failures", "3",
                      *seal], SANITIZED if is_sanitized else {}

    def run_unit(self, number):
        """None: it was ended."""
        kind, command, environment = self.command(number)
        begin = time.time()
        with subprocess.Popen([*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", env=os.environ | environment,
                              start_new_session=True) as process:
            with self.lock:
                self.running.add(process)
            if self.is_over:
                self.kill(process)
            text = process.communicate()[0]
        with self.lock:
            self.running.discard(process)
        if self.is_over and process.returncode != 0:
            return None
        unit = {"host": platform.node(), "pid": os.getpid(), "kind": kind, "begin": begin, "seconds": time.time() - begin, "processor": processor(), "command": " ".join(map(str, command))}
        worlds, executed = SUMMARY.search(text), EXECUTED.search(text)
        if worlds:
            unit |= dict(zip(("worlds", "turns", "messages", "faults", "failed"), map(int, worlds.groups())))
        if executed:
            unit["executions"] = int(executed[1])
        unit["failed"] = unit.get("failed", 0) or int(process.returncode != 0 or not (worlds or executed))
        if unit["failed"]:
            unit["log"] = f"failed.{number:06}.log"
            (self.options.folder / unit["log"]).write_text(text)
        return unit

    def is_enough(self):
        return self.is_over or time.monotonic() >= self.end or (0 < self.options.faults <= self.total["faults"])

    def work(self):
        while not self.is_enough():
            number = self.units.claim(self.options.only or KINDS)
            unit = self.run_unit(number)
            if unit is None:
                self.units.drop(number)
                continue
            self.units.write(number, unit)
            with self.lock:
                self._add(unit)
                what = f"{unit['executions']:,} executions" if "executions" in unit else f"{unit.get('faults', 0):,} faults"
                print(f"[{time.strftime('%H:%M:%S')}] {'FAIL' if unit['failed'] else 'ok  '} unit {number}, {unit['kind']}: {what}, {unit['seconds']:.0f} s; in all "
                      f"{self.total['faults']:,} faults, {self.total['executions']:,} executions, {self.total['failed']:,} failed", flush=True)

    def stop(self, *_):
        """What runs now is ended, and done again the next time."""
        self.is_over = True
        for process in list(self.running):
            self.kill(process)

    @staticmethod
    def kill(process):
        """With what it has started: the worlds are played by processes of its own, which would go on, and hold its output open."""
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def run(self):
        if not self.harnesses:
            sys.exit(f"run_marathon.py: there are no fuzzers in {self.options.build}/fuzz: tests/fuzz/run_fuzz.sh --build")
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self.stop)
        threads = [threading.Thread(target=self.work) for _ in range(self.options.jobs)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            if time.monotonic() >= self.end:
                self.stop()
            for thread in threads:
                thread.join(timeout=0.5)
        return self.units.done()


def page_of(units, revision_text):
    """Markdown: what was tried, how much, what was found."""
    rows = defaultdict(lambda: defaultdict(float))
    for unit in units:
        row = rows[unit["kind"]]
        row["units"] += 1
        row["hours"] += unit["seconds"] / 3600
        for name in COUNTS:
            row[name] += unit.get(name, 0)
    hosts = len({unit["host"] for unit in units})
    first, last = min(unit["begin"] for unit in units), max(unit["begin"] + unit["seconds"] for unit in units)
    lines = ["# A marathon of random worlds and fuzzers", "",
             f"Revision {revision_text}, {time.strftime('%F %H:%M', time.gmtime(first))} to {time.strftime('%F %H:%M', time.gmtime(last))} UTC, on "
             f"{'; '.join(sorted({unit['processor'] for unit in units}))} ({hosts} {'machine' if hosts == 1 else 'machines'}). By tests/marathon/run_marathon.py.", "",
             "| what | units | core hours | worlds | messages | faults | executions | failed |", "|---|--:|--:|--:|--:|--:|--:|--:|"]
    for kind, row in [*sorted(rows.items()), ("in all", {name: sum(row[name] for row in rows.values()) for name in ("units", "hours", *COUNTS)})]:
        lines.append(f"| {kind} | {row['units']:,.0f} | {row['hours']:.2f} | " + " | ".join(f"{row[name]:,.0f}" for name in COUNTS) + " |")
    found = [unit for unit in units if unit["failed"]]
    lines += ["", "Nothing failed." if not found else "What failed, and how to see it again:", ""]
    lines += [f"- {unit['kind']}: `{unit['command']}` ({unit['log']})" for unit in found]
    return "\n".join(lines).rstrip() + "\n"


def main():
    options = parse_options()
    marathon = Marathon(options)
    units = marathon.run()
    if units:
        page = options.page or options.folder / "page.md"
        page.write_text(page_of(units, (options.folder / "revision").read_text().strip()))
        print(f"the page: {page}")
    failed = sum(unit["failed"] > 0 for unit in units)
    print(f"{len(units) - failed} passed, {failed} failed, 0 skipped")
    return 1 if failed or not units else 0


if __name__ == "__main__":
    sys.exit(main())
