#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Count the tests inside the executables that `meson test` ran.

usage: count_meson.py TESTLOG.JSON

Names those that failed, with Criterion's lines of failures, or else their last three; then prints "N passed, N failed, N skipped". A Criterion executable counts as the tests of its synthesis line, and as one
failed test more if it ended badly without admitting any; everything else counts as one test.
"""
import json
import re
import sys

SYNTHESIS = re.compile(r"Synthesis: Tested: (\d+) \| Passing: (\d+) \| Failing: (\d+) \| Crashing: (\d+)")
ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


def count(record):
    """(passed, failed, skipped) of one executable."""
    output = ESCAPES.sub("", record.get("stdout", "") + record.get("stderr", ""))
    found = SYNTHESIS.search(output)
    good = record["result"] in ("OK", "EXPECTEDFAIL")
    if found:
        _, passing, failing, crashing = map(int, found.groups())
        failed = failing + crashing
        return passing, failed or int(not good), 0
    if record["result"] == "SKIP":
        return 0, 0, 1
    return int(good), int(not good), 0


def reason(record):
    """Why an executable failed, in a line."""
    lines = ESCAPES.sub("", record.get("stdout", "") + record.get("stderr", "")).strip().splitlines()
    return "; ".join([line for line in lines if "[FAIL]" in line] or lines[-3:] or [record["result"]])


def main():
    with open(sys.argv[1], encoding="utf-8") as stream:
        records = [json.loads(line) for line in stream]
    counts = [count(record) for record in records]
    for record, (_, failed, _) in zip(records, counts):
        if failed:
            print(f"FAIL {record['name']}: {reason(record)}")
    passed, failed, skipped = map(sum, zip(*counts)) if counts else (0, 1, 0)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


main()
