# SPDX-License-Identifier: BSD-3-Clause
"""Live files (UCI_LIVE): counters of processes that were killed, or still run. uci_top knows their form, and is asked."""
import json
import subprocess

from jobreport.wording import clean, rank
from uci_job import find_tool

ABOUT = ("host", "pid", "rank", "mode", "digest", "version", "ucx_version")
TIMEOUT = 60  # seconds
RANKS = 1 << 31
WAITS = {"message": ("a message", "from"), "rest of message": ("the rest of a message", "from"), "receive": ("a message to be received", "by"),
         "acknowledgement": ("a confirmation", "by")}


def add_live(counters, files):
    """Count the processes that have left no statistics, and tell of all what became of them."""
    if not files:
        return
    program = find_tool("uci_top")
    if program is None:
        counters.complaints.append((str(files[0]), f"{len(files)} live file(s), and no uci_top here to read them"))
        return
    known = {(process.host, process.pid, process.rank): process for process in counters.processes}
    folders = dict.fromkeys(str(path.resolve().parent) for path in files)
    try:
        done = subprocess.run([program, "-1", "-j", *folders], capture_output=True, timeout=TIMEOUT, check=True)
        answer = json.loads(done.stdout)
        for job in answer["jobs"]:
            if isinstance(job.get("size"), int) and job["size"] < RANKS:
                counters.job_size = max(counters.job_size, job["size"])
            for process in job["processes"]:
                add_end(known.get(key_of(process)) or add_process(counters, process), process, answer.get("time", 0))
        counters.complaints += [(skipped["file"], skipped["reason"]) for skipped in answer["skipped"]]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        counters.complaints.append((program, f"the live files could not be read: {error}"))


def key_of(process):
    """What tells a process of uci_top's from others of its job; ranks in containers of one host may have one pid."""
    return process["host"], process["pid"], -1 if process["rank"] is None else process["rank"]


def add_process(counters, process):
    """One process that has left no statistics."""
    counters.live += 1
    return counters.add({name: process[name] for name in ABOUT if process.get(name) is not None} | process["counters"])


def add_end(known, process, now):
    """What became of a process, and what it has waited for longest when it was last heard of."""
    known.state = process["state"]
    waits = [wait for worker in process.get("workers", ()) for wait in worker["waits"] if wait["seconds"] is not None]
    if waits:
        longest = max(waits, key=lambda wait: wait["seconds"])
        known.waited, known.wait = process["last_seen"] - (now - longest["seconds"]), describe_wait(longest)


def describe_wait(wait):
    """'a message from rank 3 (node2:4711), tag ...', of uci_top's JSON."""
    what, link = WAITS.get(wait["for"], (clean(wait["for"]), "of"))
    who = rank(wait["rank"]) if type(wait["rank"]) is int else ""
    place = f"({clean(wait['host'])}:{clean(wait['pid'])})" if wait["host"] else ""
    tag = f", tag {clean(wait['tag'])}" if wait["tag"] else ""
    if tag.count("(") > tag.count(")"):  # there was no room for all of it
        tag = tag.rpartition(",")[0] + ")"
    return " ".join(filter(None, (what, link if who or place else "", who, place))) + tag
