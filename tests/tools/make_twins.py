#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Write what twins of a job that never was have left: their reports, and records of messages that differed. A message is wrong in one twin from
--begin on and taints whoever receives it; so does what a tainted rank sends.

usage: make_twins.py FOLDER [options]; the same options give the same files.
"""
import argparse
import json
import random
from pathlib import Path

BEGIN = 1795254255.0
RECORDS = 100  # of a process
HOSTILE = "<script>document.title='owned'</script>\"'&\u202e\x1b[31m"


def host_of(twin, rank, options):
    """Each twin has hosts of its own."""
    return HOSTILE if options.hostile else f"node{twin * 100 + rank // options.per_host + 1:03}"


def pid_of(twin, rank):
    return 10000 * (twin + 1) + rank


def messages_of(options, rng):
    """(seconds, sender, receiver, number in the channel, is it wrong) of all messages, in order."""
    numbers, tainted = {}, set()
    for step in range(options.messages):
        time = options.seconds * step / options.messages
        sender = rng.randrange(options.ranks)
        receiver = (sender + rng.choice((1, options.ranks - 1))) % options.ranks if options.near else rng.randrange(options.ranks)
        if options.all_differ:
            tainted.add(sender)
        elif options.wrong_twin is not None and not tainted and time >= options.begin and sender == options.culprit:
            tainted.add(sender)
        is_wrong = sender in tainted
        if is_wrong and not options.correct:
            tainted.add(receiver)
        if options.correct:
            tainted.discard(sender)
            if is_wrong:
                options.culprit = -1  # once
        number = numbers.get((sender, receiver), 0)
        numbers[sender, receiver] = number + 1
        yield time, sender, receiver, number, is_wrong


class Process:
    """One process of a twin, as it counts."""

    def __init__(self, twin, rank, options):
        self.twin, self.rank, self.options = twin, rank, options
        self.sources, self.records, self.wrong = {}, [], 0
        self.width = options.seconds / options.bins
        self.bins = [[0, 0] for _ in range(options.bins + 1)]
        self.wrong_bins = [[0] * options.twins for _ in self.bins]

    def add(self, time, sender, number, is_wrong):
        options = self.options
        row = self.sources.setdefault(sender, [0, 0])
        row[0] += 1
        index = int(time / self.width)
        self.bins[index][0] += 1
        if not is_wrong:
            return
        row[1] += 1
        self.wrong += 1
        self.bins[index][1] += 1
        if options.twins > 2:
            self.wrong_bins[index][options.wrong_twin or 0] += 1
        if len(self.records) < RECORDS:
            self.records.append(self.record(time, sender, number))

    def record(self, time, sender, number):
        options = self.options
        wrong = options.wrong_twin if options.twins > 2 else None
        is_corrected = options.correct and self.twin == wrong
        return {"schema": 2, "verdict": "corrected" if is_corrected else "twins differ", "cause": "computed",
                "evidence": HOSTILE if options.hostile else "2 twins have other content", "time": BEGIN + time + .01 * self.twin,
                "monotonic_ns": int(time * 1e9), "job": f"hydra:made.{self.twin}", "host": host_of(self.twin, self.rank, options),
                "rank": self.rank, "pid": pid_of(self.twin, self.rank), "core": self.rank, "peer_host": host_of(self.twin, sender, options),
                "peer_rank": sender, "peer_pid": pid_of(self.twin, sender), "tag": f"0x{0x500000000000 + sender:016x}",
                "mpi": {"library": "Open MPI", "tag": 5, "source": sender, "context": 0, "collective": HOSTILE if options.hostile else None},
                "seq": number, "length": 8192, "twin": self.twin, "twins": options.twins, "wrong_twin": wrong,
                "values": [f"{index == (options.wrong_twin or 0):016x}" for index in range(options.twins)]}

    def report(self):
        options = self.options
        compared = sum(row[0] for row in self.sources.values())
        corrected = self.wrong if options.correct and self.twin == options.wrong_twin else 0
        minority = [0] * options.twins
        if options.twins > 2 and options.wrong_twin is not None:
            minority[options.wrong_twin] = self.wrong
        return {"twins": 1, "twin": self.twin, "of": options.twins, "mode": "correct" if options.correct else "compare", "rank": self.rank,
                "ranks": options.ranks, "host": host_of(self.twin, self.rank, options), "pid": pid_of(self.twin, self.rank),
                "cores": f"{2 * self.rank}-{2 * self.rank + 1}", "core": 2 * self.rank, "program": "/home/user/solver", "start": BEGIN - 1,
                "end": BEGIN + options.seconds, "verdict": "not deterministic" if options.all_differ else "differs" if self.wrong else "same",
                "partners": [{"twin": twin, "host": host_of(twin, self.rank, options), "pid": pid_of(twin, self.rank),
                              "state": "lost" if twin == options.lost else "done"} for twin in range(options.twins) if twin != self.twin],
                "compared": compared, "agreed": compared - self.wrong, "differed": self.wrong, "corrected": corrected, "unlike": 0, "alone": 0,
                "minority": minority, "split": 0, "choices_followed": 3, "choices_given_up": 0,
                "bins": {"start": BEGIN, "seconds": self.width, "compared": [row[0] for row in self.bins],
                         "differed": [row[1] for row in self.bins], "wrong": self.wrong_bins},
                "sources": [[sender, *row] for sender, row in sorted(self.sources.items())], "first": self.records[0] if self.records else None}

    def write(self, folder):
        name = f"n.{pid_of(self.twin, self.rank)}"
        if self.records:
            (folder / f"events.{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in self.records), encoding="utf-8")
        if self.twin == self.options.lost:
            return
        (folder / f"twins.{name}.json").write_text(json.dumps(self.report()), encoding="utf-8")
        compared = sum(row[0] for row in self.sources.values())
        counters = {"version": "0.1.0", "ucx_version": "1.18.1", "host": host_of(self.twin, self.rank, self.options), "digest": "xxh3",
                    "mode": "repair", "pid": pid_of(self.twin, self.rank), "rank": self.rank, "messages_sent": compared,
                    "messages_received": compared, "bytes_sent": compared * 8192, "bytes_received": compared * 8192}
        (folder / f"stats.{name}.json").write_text(json.dumps(counters), encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--twins", type=int, default=3)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--per-host", type=int, default=4)
    parser.add_argument("--messages", type=int, default=4000)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--bins", type=int, default=100, help="of a process")
    parser.add_argument("--wrong-twin", type=int, help="that computes wrong; none: nobody does")
    parser.add_argument("--culprit", type=int, default=2, help="its rank")
    parser.add_argument("--begin", type=float, default=20, help="seconds")
    parser.add_argument("--near", action="store_true", help="ranks send to their neighbours only")
    parser.add_argument("--correct", action="store_true", help="the first wrong message is the last one")
    parser.add_argument("--all-differ", action="store_true", help="not deterministic")
    parser.add_argument("--lost", type=int, help="a twin that has died")
    parser.add_argument("--only", type=int, help="write this twin alone, into the folder itself")
    parser.add_argument("--hostile", action="store_true", help="texts that would be markup")
    options = parser.parse_args()
    twins = range(options.twins) if options.only is None else [options.only]
    processes = {(twin, rank): Process(twin, rank, options) for twin in twins for rank in range(options.ranks)}
    for time, sender, receiver, number, is_wrong in messages_of(options, random.Random(1)):
        for twin in twins:
            processes[twin, receiver].add(time, sender, number, is_wrong)
    for (twin, _), process in processes.items():
        folder = options.folder if options.only is not None else options.folder / f"twin.{twin}"
        folder.mkdir(parents=True, exist_ok=True)
        process.write(folder)


if __name__ == "__main__":
    main()
