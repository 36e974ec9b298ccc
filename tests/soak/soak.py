#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
What a job takes while it runs for long: look at it again and again, and tell whether that grows.

usage: soak.py watch OUT --mark NAME=VALUE --log FILE --live FOLDER --top PATH [--every SECONDS]
       soak.py judge OUT
       soak.py plot OUT.svg TITLE=OUT...

watch: until it is ended, every so many seconds a row of OUT, tab-separated: of the processes that have NAME=VALUE in their environment and have
lived since the first look, the most memory (VmRSS) and descriptors of one; all that lies in /dev/shm; what UCI keeps of messages for retransmission (uci_top);
and the last line of FILE that soak.c has said.
judge: compares the last quarter of the time with the second one, a line for each; exit status 1 if anything has grown. Of the time that a
round takes it is the quickest quarter of the looks, which other programs on the same machine do not change.
plot: by gnuplot, one row of pictures for each OUT.
"""
import argparse
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

COLUMNS = ("seconds", "rounds", "messages", "us_a_round", "rss_kib", "descriptors", "shm_kib", "log_kib")
# how much more it may be at the end: a part of what it was, and so much beside that
MAY_GROW = {"rss_kib": (0.01, 1024), "descriptors": (0, 0), "shm_kib": (0.01, 64), "log_kib": (0.1, 1024), "us_a_round": (0.15, 0)}
SAID = re.compile(r"^soak: (\d+) s, (\d+) rounds, (\d+) messages, (\d+) us a round", re.MULTILINE)
PLOTTED = ("us_a_round", "rss_kib", "descriptors", "shm_kib", "log_kib", "messages")


class Watcher:
    """The processes of one job."""

    def __init__(self, mark):
        self.mark = mark.encode()
        self.pids = None  # those of the first look that found any

    def look(self):
        """@return the most memory and descriptors of one of them"""
        if not self.pids:
            self.pids = [pid for pid in pathlib.Path("/proc").iterdir() if pid.name.isdigit() and self.is_one(pid)]
        found = [(rss_of(pid), descriptors_of(pid)) for pid in self.pids]
        return tuple(max(column, default=0) for column in zip(*found)) or (0, 0)

    def is_one(self, pid):
        try:
            return (pid / "comm").read_text().strip() == "soak" and self.mark in (pid / "environ").read_bytes().split(b"\0")
        except OSError:
            return False


def rss_of(pid):
    try:
        return int(re.search(r"^VmRSS:\s+(\d+)", (pid / "status").read_text(), re.MULTILINE)[1])
    except (OSError, TypeError):
        return 0


def descriptors_of(pid):
    try:
        return len(list((pid / "fd").iterdir()))
    except OSError:
        return 0


def shared_kib():
    """Files that end meanwhile count as nothing."""
    total = 0
    for path in pathlib.Path("/dev/shm").rglob("*"):
        try:
            total += path.stat().st_blocks // 2
        except OSError:
            pass
    return total


def log_kib(top, live):
    """Of all processes of the job; without UCI there is none."""
    if not any(live.glob("*")):
        return 0
    look = json.loads(subprocess.run([top, "--once", "--json", live], check=True, stdout=subprocess.PIPE).stdout)
    return sum(worker["log_bytes"] for job in look["jobs"] for process in job["processes"] if process["state"] == "running"
               for worker in process["workers"]) // 1024


def watch(arguments):
    watcher = Watcher(arguments.mark)
    with open(arguments.out, "w", encoding="ascii") as out:
        print(*COLUMNS, sep="\t", file=out, flush=True)
        while True:
            time.sleep(arguments.every)
            said = SAID.findall(arguments.log.read_text(errors="replace")) if arguments.log.exists() else []
            if said:
                print(*said[-1], *watcher.look(), shared_kib(), log_kib(arguments.top, arguments.live), sep="\t", file=out, flush=True)


def rows_of(path):
    lines = path.read_text(encoding="ascii").splitlines()
    rows = [dict(zip(COLUMNS, map(int, line.split("\t")))) for line in lines[1:]]
    return [row for row in rows if row["rss_kib"] > 0]  # the last look may find nobody any more


def typical(column, rows):
    values = sorted(row[column] for row in rows)
    return statistics.median(values[:(len(values) + 3) // 4] if column == "us_a_round" else values)


def judge(arguments):
    rows = rows_of(arguments.out)
    quarter = rows[-1]["seconds"] / 4 if rows else 0
    before = [row for row in rows if quarter <= row["seconds"] < 2 * quarter]
    after = [row for row in rows if row["seconds"] >= 3 * quarter]
    if len(rows) < 8 or not before or not after:
        print(f"only {len(rows)} looks: too few to tell")
        return 1
    print(f"{rows[-1]['messages']:,} messages, {rows[-1]['rounds']:,} rounds in {rows[-1]['seconds']} s")
    grown = 0
    for column, (part, more) in MAY_GROW.items():
        first, last = typical(column, before), typical(column, after)
        wrong = last > first * (1 + part) + more
        grown += wrong
        print(f"{'GROWS' if wrong else 'flat ':5} {column:12} {first:>12,.0f} {last:>12,.0f}")
    return grown > 0


def plot(arguments):
    jobs = [text.partition("=")[::2] for text in arguments.jobs]
    lines = [f'set terminal svg size {260 * len(PLOTTED)},{200 * len(jobs)} font ",10"', f'set output "{arguments.out}"', "set format y '%.3s%c'",
             f"set multiplot layout {len(jobs)},{len(PLOTTED)}", "set key off", "set xlabel 's'", "set yrange [0:*]", "set xtics autofreq"]
    for title, path in jobs:
        for column in PLOTTED:
            lines += [f"set title '{title}: {column}' noenhanced",
                      f"plot '{path}' using 1:{COLUMNS.index(column) + 1} every ::1 with lines linewidth 1.5"]
    subprocess.run(["gnuplot"], input="\n".join(lines), text=True, check=True)
    return 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ways = parser.add_subparsers(dest="way", required=True)
    watching = ways.add_parser("watch")
    watching.add_argument("out", type=pathlib.Path)
    watching.add_argument("--mark", required=True)
    watching.add_argument("--log", required=True, type=pathlib.Path)
    watching.add_argument("--live", required=True, type=pathlib.Path)
    watching.add_argument("--top", required=True)
    watching.add_argument("--every", type=float, default=10)
    judging = ways.add_parser("judge")
    judging.add_argument("out", type=pathlib.Path)
    plotting = ways.add_parser("plot")
    plotting.add_argument("out", type=pathlib.Path)
    plotting.add_argument("jobs", nargs="+", metavar="TITLE=OUT")
    arguments = parser.parse_args()
    sys.exit({"watch": watch, "judge": judge, "plot": plot}[arguments.way](arguments))


if __name__ == "__main__":
    main()
