#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Hold what uci_top says of a job's live files against what its ranks have noted themselves (dying.c).

usage: live.py END RANKS NOTES_FOLDER <JSON of uci_top

Each rank must be there, with the state that END leaves it in, and with as many messages and bytes as it has noted at least; more by
what one message and the MPI's own are at most. Prints a line; exit status 1 and a line for each condition that fails.
"""
import json
import pathlib
import sys

OWN_MESSAGES, OWN_BYTES = 50, 100_000 + 100_000  # of the MPI at its start and end, and one that was not noted yet
# how rank 1 ends, and what may become of the others, whose launcher ends them
STATES = {"kill": ({"killed"}, {"killed", "ended"}), "abort": ({"killed", "ended"}, {"killed", "ended"}),
          "exit": ({"killed"}, {"killed", "ended"}), "limit": ({"killed"}, {"killed"}), "finish": ({"ended"}, {"ended"}),
          "running": ({"running"}, {"running"})}
NOTED = ("messages_sent", "messages_received", "bytes_sent", "bytes_received")


def complaints_of(process, end, notes):
    """What is wrong with this process."""
    rank, counters = process["rank"], process["counters"]
    if process["state"] not in STATES[end][rank != 1]:
        yield f"rank {rank} is {process['state']}"
    noted = dict(zip(NOTED, map(int, (notes / str(rank)).read_text().split())))
    for name, number in noted.items():
        most = number + (OWN_BYTES if name.startswith("bytes") else OWN_MESSAGES)
        if end != "running" and not number <= counters[name] <= most:
            yield f"rank {rank}: {name} is {counters[name]}, noted were {number}"
        if counters[name] == 0:
            yield f"rank {rank}: {name} is 0"
    if process["damaged"] != sum(counters[name] for name in counters if name.startswith("mismatched_") and name != "mismatched_gets"):
        yield f"rank {rank}: damaged is {process['damaged']}"


def main():
    """Check, and tell."""
    end, ranks, notes = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    look = json.load(sys.stdin)
    processes = [process for job in look["jobs"] for process in job["processes"]]
    wrong = [] if len(look["jobs"]) == 1 else [f"{len(look['jobs'])} jobs"]
    if sorted(process["rank"] for process in processes) != list(range(ranks)):
        wrong.append(f"ranks {[process['rank'] for process in processes]}")
    if look["skipped"]:
        wrong.append(f"skipped: {look['skipped']}")
    for job in look["jobs"]:
        if job["size"] != ranks or job["program"] != "dying" or not job["job"]:
            wrong.append(f"job {job['job']} of {job['size']} ranks, {job['program']}")
        for name in NOTED[:2]:
            if job[name] != sum(process["counters"][name] for process in job["processes"]):
                wrong.append(f"{name} of the job is no sum")
    for process in processes:
        wrong.extend(complaints_of(process, end, notes))
    print(f"{sum(process['messages_sent'] for process in processes)} messages sent, "
          f"states {' '.join(process['state'] for process in processes)}")
    print("\n".join(wrong))
    sys.exit(1 if wrong else 0)


main()
