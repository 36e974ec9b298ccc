# SPDX-License-Identifier: BSD-3-Clause
"""Live files (UCI_LIVE): counters of processes that were killed, or still run. uci_top knows their form, and is asked."""
import json
import subprocess

from uci_job import find_tool

ABOUT = ("host", "pid", "rank", "mode", "digest", "version", "ucx_version")
TIMEOUT = 60  # seconds
RANKS = 1 << 31


def add_live(counters, files):
    """Count the processes that have left no statistics."""
    if not files:
        return
    program = find_tool("uci_top")
    if program is None:
        counters.complaints.append((str(files[0]), f"{len(files)} live file(s), and no uci_top here to read them"))
        return
    known = {(process[1], process[2]) for process in counters.processes}
    folders = dict.fromkeys(str(path.resolve().parent) for path in files)
    try:
        done = subprocess.run([program, "-1", "-j", *folders], capture_output=True, timeout=TIMEOUT, check=True)
        answer = json.loads(done.stdout)
        for job in answer["jobs"]:
            if isinstance(job.get("size"), int) and job["size"] < RANKS:
                counters.job_size = max(counters.job_size, job["size"])
            for process in job["processes"]:
                if (process["host"], process["pid"]) not in known:
                    add_process(counters, process)
        counters.complaints += [(skipped["file"], skipped["reason"]) for skipped in answer["skipped"]]
    except (OSError, subprocess.SubprocessError, ValueError, KeyError, TypeError) as error:
        counters.complaints.append((program, f"the live files could not be read: {error}"))


def add_process(counters, process):
    """One process, and what became of it."""
    counters.add({name: process[name] for name in ABOUT if process.get(name) is not None} | process["counters"])
    counters.live += 1
    counters.fates[process["state"]] += 1
