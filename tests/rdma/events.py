#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Check conditions on the records of UCI_EVENTS.

usage: events.py FILE CONDITION...

A CONDITION is a Python expression over `events`, the list of the records, and `fields`, the names that each has. Exit status 1, and a
line for each that does not hold.
"""
import json
import pathlib
import sys

FIELDS = set("""schema time monotonic_ns job verdict cause evidence reason role host rank pid core peer_host peer_rank peer_pid peer_core
    path carrier device port tag mpi active_message seq kind length chunk chunk_size chunk_length offset first last wrong_bytes wrong_bits class bad good
    hex_offset ranges ranges_left_out healed_by gets_wrong attempts microseconds digest transports ucx_version rdma_errors stack
    capture""".split())


def main():
    events = [json.loads(line) for line in pathlib.Path(sys.argv[1]).read_text().splitlines()]
    wrong = [condition for condition in sys.argv[2:]
             if not eval(condition, {"events": events, "fields": FIELDS})]  # the conditions are our own scripts'
    for condition in wrong:
        print(f"not true of the records: {condition}")
    if wrong:
        print(*events, sep="\n")
    return 1 if wrong or not sys.argv[2:] else 0


sys.exit(main())
