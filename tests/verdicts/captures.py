#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Compare what UCI_CAPTURE has written with what the records say of it.

usage: captures.py EVENTS FOLDER

Both versions of a chunk must be there, of its length, and differ first and last where the record says. Exit status 1, and a line for each
that does not.
"""
import json
import pathlib
import sys


def complaint_about(event, folder):
    """What is wrong with the capture of a record; nothing if all is well."""
    bad_path = folder / event["capture"]
    good_path = bad_path.with_suffix(".good")
    if not bad_path.is_file() or not good_path.is_file():
        return f"{bad_path} or {good_path} is missing"
    bad, good = bad_path.read_bytes(), good_path.read_bytes()
    if len(bad) != event["chunk_length"]:
        return f"{bad_path} has {len(bad)} bytes"
    wrong = [i for i in range(len(good)) if i >= len(bad) or bad[i] != good[i]]
    if not wrong or wrong[0] != event["first"] or wrong[-1] != event["last"]:
        return f"{bad_path} differs at {wrong[:1]} to {wrong[-1:]}"
    begin = event["hex_offset"] - event["offset"]
    for name, version in (("bad", bad), ("good", good)):
        shown = bytes.fromhex(event[name])
        if version[begin:begin + len(shown)] != shown:
            return f"{name} of the record is not in the file"
    return ""


def main():
    events = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    folder = pathlib.Path(sys.argv[2])
    names = [event["capture"] for event in events]
    complaints = [complaint for event in events if (complaint := complaint_about(event, folder))]
    if len(set(names)) != len(names) or not names:
        complaints.append(f"{len(names)} names, {len(set(names))} different ones")
    print(*complaints, sep="\n")
    return 1 if complaints else 0


sys.exit(main())
