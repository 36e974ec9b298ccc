# SPDX-License-Identifier: BSD-3-Clause
"""Jobs of the past: from their folders, from folders of such folders, and from ledgers. A job that is found twice is one job."""
import os
from pathlib import Path

from jobreport.job import Job
from jobreport.ledger import key, read_ledger
from jobreport.node_entries import entries_of_job
from jobreport.reading import EXAMPLES, Run
from jobreport.wording import clean

DEPTH = 4  # of folders below one that is given


class Past:
    """What was found."""

    def __init__(self, names, processes):
        """Of folders and ledgers. @param processes  that read the records of a job. Raises OSError."""
        self.processes = processes
        self.entries = {}   # key: entry
        self.folders = self.ledgers = self.lines = self.damaged_lines = self.twice = self.running = 0
        self.complaints = []  # (file, what is wrong with it), as they can be shown
        for name in names:
            self.add(name)

    def add(self, name):
        """A ledger, or a folder. Raises OSError for what cannot be read."""
        path = Path(name)
        if path.is_dir():
            self.add_folder(path, DEPTH)
        else:
            self.add_ledger(path)

    def add_folder(self, folder, depth):
        """Of a job, with all that is in it; else what is below it."""
        run = Run()
        run.add_folder(folder)
        for ledger in run.ledgers:
            self.attempt(self.add_ledger, ledger)
        if not run.is_empty():
            self.add_job(folder)
        elif depth > 0:
            for below in sorted(path for path in folder.iterdir() if path.is_dir() and not path.is_symlink()):
                self.attempt(self.add_folder, below, depth - 1)

    def attempt(self, add, path, *more):
        """One of many that were not named: what cannot be read is told."""
        try:
            add(path, *more)
        except OSError as error:
            self.complain(error.filename or path, os.strerror(error.errno) if error.errno else str(error))

    def add_job(self, folder):
        """One that runs will tell more later."""
        job = Job([folder], processes=self.processes)
        if job.counters.by_state("running"):
            self.running += 1
            return
        self.folders += 1
        self.lines += job.tally.lines
        self.damaged_lines += job.tally.damaged_lines + sum(job.tally.newer.values())
        for path, why in [*job.unreadable(), *((path, f"byte {offset}: {why}") for path, offset, why in job.tally.damaged)]:
            self.complain(path, why)
        for schema, number in job.tally.newer.items():
            self.complain(folder, f"{number} records of the newer schema {schema} are not counted")
        for entry in entries_of_job(job, clean(folder.resolve().name)):
            self.keep(entry)

    def add_ledger(self, path):
        """Its good lines."""
        self.ledgers += 1
        for offset, entry, complaint in read_ledger(path):
            self.lines += 1
            if entry:
                self.keep(entry)
            else:
                self.damaged_lines += 1
                self.complain(path, f"byte {offset}: {complaint}")

    def keep(self, entry):
        """The first of its key."""
        if self.entries.setdefault(key(entry), entry) is not entry:
            self.twice += 1

    def complain(self, path, why):
        """For a person; the first few are enough."""
        if len(self.complaints) < EXAMPLES:
            self.complaints.append((clean(str(path), 4096), clean(why)))

    def jobs(self):
        """Lists of the entries of each job, by time."""
        found = {}
        for entry in self.entries.values():
            found.setdefault(entry["id"], []).append(entry)
        return sorted(found.values(), key=lambda entries: (entries[0]["time"], entries[0]["id"]))

    def is_empty(self):
        """Was there nothing of UCI's?"""
        return not (self.folders or self.ledgers or self.running)
