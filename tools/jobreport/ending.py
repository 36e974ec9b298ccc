# SPDX-License-Identifier: BSD-3-Clause
"""How a job ended: as uci_run has noted it in the job's folder, and as the live files of its processes show it."""
import json
import os
import signal

from jobreport.wording import clean, count, listing, rank

NAME = "ended.json"
ROOM = NAME + ".room"  # until the end: what a disk or a quota has no room for then, since the job has filled it, has its place
PATIENCE = 1  # seconds, below which nobody says that he has waited


class Ending:
    """What is known of the end of a job, or of several: twins have one each."""

    def __init__(self, files):
        self.statuses, self.complaints = [], []
        self.signal = ""  # that somebody has ended the job with
        self.is_required, self.ranks = False, 0
        for path in files:
            self.add(path)

    def add(self, path):
        """A file of note_end()."""
        try:
            note = json.loads(path.read_bytes().decode())
            status, ranks, is_required = note["status"], note["ranks"] or 0, note["required"]
            if not all(type(number) is int and 0 <= number < 1 << 31 for number in (status, ranks)):
                raise ValueError
        except (OSError, ValueError, KeyError, TypeError, RecursionError):
            self.complaints.append((str(path), "does not tell how the job ended"))
            return
        self.statuses.append(status)
        self.ranks = max(self.ranks, ranks)
        self.is_required |= bool(is_required)
        self.signal = self.signal or clean(note.get("signal", ""))

    def status(self):
        """That of the job: 0 only if all ended well; None if it is not known."""
        return next(filter(None, self.statuses), 0) if self.statuses else None


def make_room(folder):
    """For note_end(), in a job's folder, before it begins. What is there may be a link to something else."""
    (folder / ROOM).unlink(missing_ok=True)
    with open(folder / ROOM, "xb") as file:
        file.write(b" " * 1024)


def note_end(folder, status, ranks, is_required, told=""):
    """Leave in a job's folder how it ended. @param ranks  None: as many as they say. @param told  the signal that was to end it."""
    note = json.dumps({"status": status, "ranks": ranks, "required": is_required, "signal": told}) + "\n"
    with open(folder / ROOM, "r+b" if (folder / ROOM).exists() else "wb") as file:
        file.write(note.encode())
    os.replace(folder / ROOM, folder / NAME)


def name_status(status):
    """'exit status 137, as of a process that is ended by SIGKILL'"""
    try:
        return f"exit status {status}, as of a process that is ended by {signal.Signals(status - 128).name}"
    except ValueError:
        return f"exit status {status}"


def ended(ending, counters):
    """Findings: what is not as it should be at the end of a job, if anything."""
    status, gone = ending.status(), counters.by_state("killed")
    if status == 0:
        yield "clean", "The job ended well."
    failed = [(twin, name_status(status)) for twin, status in enumerate(ending.statuses) if status]
    if failed and ending.signal:
        yield "failed", f"The job was ended from outside, by {ending.signal}."
        failed = []
    for twin, text in failed:
        yield "failed", f"Twin {twin} failed: {text}." if len(ending.statuses) > 1 else f"The job failed: {text}."
    if gone:
        yield ("clean" if status == 0 else "failed",
               f"{count(len(gone), 'process', 'processes')} ended without a word (by a signal, MPI_Abort or _exit): {listing(map(name_process, gone))}.")
    aborted = counters.by_state("aborted")
    if aborted:
        yield "failed", f"UCI ended {count(len(aborted), 'process', 'processes')}: {listing(map(name_process, aborted))}."
    if status != 0:
        yield from waited(gone)
    running, silent = counters.by_state("running"), counters.by_state("silent")
    if running:
        yield "unknown", f"{count(len(running), 'process', 'processes')} still {'runs' if len(running) == 1 else 'run'}: the rest is not known yet."
    if silent:
        yield "unknown", f"Of {count(len(silent), 'process', 'processes')} on other hosts it is not known how they ended: {listing(map(name_process, silent))}."


def waited(gone):
    """Who had waited longest, and for whom: what a job that hangs ends with."""
    waits = [(process.waited, process) for process in gone if process.waited >= PATIENCE]
    if waits:
        seconds, process = max(waits, key=lambda wait: wait[0])
        yield "failed", f"{name_process(process).capitalize()} had then waited {seconds:.0f} s for {process.wait}."


def name_process(process):
    """'rank 3 (node2:4711)', or without the rank where it is not known."""
    place = f"{process.host}:{process.pid}"
    return f"{rank(process.rank)} ({place})" if process.rank >= 0 else place
