#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Was told of a program's messages what it says has to be told?

usage: tests/signatures/judge.py [--faults | --collectives] OUTPUT EVENTS STATS

OUTPUT is what rank 1 of the program printed: a line "TAG|CALL|SENT|RECEIVED" for each of its messages whose types do not match, and "compared N":
so many messages it has received that carry types. EVENTS are the records of the job (UCI_EVENTS), STATS the JSON statistics of rank 1.
Exit status 1, with what is wrong, if rank 1 told more, less or anything else; with --faults there must be records of repaired messages as well.
With --collectives, OUTPUT has a line "rank A calls ..., rank B calls ..." for each collective that does not match, which is what records of any rank say.
"""
import json
import sys
from collections import Counter
from pathlib import Path


def expected(output):
    """(what is to be told, how many are to be compared)"""
    lines = [line.strip() for line in output.splitlines()]
    counts = [int(line.split()[1]) for line in lines if line.startswith("compared ")]
    if len(counts) != 1:
        sys.exit("the program has not come to its end")
    return Counter(tuple(line.split("|")) for line in lines if line.count("|") == 3), counts[0]


def told(events, with_faults):
    """What rank 1 has told."""
    records = [json.loads(line) for line in events.splitlines()]
    other = [record["verdict"] for record in records if (record["verdict"], record["cause"]) != ("types differ", "types")]
    if with_faults != bool(other) or set(other) - {"repaired"}:
        sys.exit(f"records of other kinds: {set(other)}")
    return Counter((str(record["mpi"]["tag"]), record["types"]["call"], record["types"]["sent"], record["types"]["received"])
                   for record in records if record["rank"] == 1 and record["verdict"] == "types differ")


def judge_collectives(output, events):
    """@return exit status"""
    want = Counter(line.strip() for line in output.splitlines() if line.strip().startswith("rank "))
    have = Counter(record["evidence"] for record in map(json.loads, events.splitlines()) if record["kind"] == "collective")
    for text, lines in (("not told", want - have), ("told, and should not be", have - want)):
        for line, number in sorted(lines.items()):
            print(f"{text}: {line} ({number} x)")
    print(f"{sum(want.values())} collectives do not match" if want == have else "FAILED")
    return 0 if want == have else 1


def main():
    """Compare."""
    with_faults = "--faults" in sys.argv
    output, events, stats = (Path(name).read_text(encoding="utf-8") for name in sys.argv[-3:])
    if "--collectives" in sys.argv:
        return judge_collectives(output, events)
    want, compared = expected(output)
    have = told(events, with_faults)
    counters = json.loads(stats)
    for text, lines in (("not told", want - have), ("told, and should not be", have - want)):
        for line, number in sorted(lines.items(), key=lambda item: int(item[0][0])):
            print(f"{text}: {'|'.join(line)} ({number} x)")
    if counters["signatures_compared"] != compared:
        print(f"{counters['signatures_compared']} were compared, should be {compared}")
    if counters["signatures_differ"] != sum(want.values()):
        print(f"{counters['signatures_differ']} were counted, should be {sum(want.values())}")
    good = want == have and counters["signatures_compared"] == compared and counters["signatures_differ"] == sum(want.values())
    print(f"{compared} compared, {sum(want.values())} do not match" if good else "FAILED")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
