# SPDX-License-Identifier: BSD-3-Clause
"""A job: all that its processes, and uci_run, have left in its folders, and the verdict on it. uci_run and uci_report both read it here."""
from functools import cached_property

from jobreport.counters import read_counters
from jobreport.ending import Ending
from jobreport.live import add_live
from jobreport.reading import find_files, read_records
from jobreport.twin_verdict import LEVELS as TWIN_LEVELS
from jobreport.twin_verdict import twins_model
from jobreport.twins import read_twins
from jobreport.verdict import job_verdict
from jobreport.watched import Watched


class Job:
    """What was found in folders and files."""

    def __init__(self, names, worst=1, processes=None):
        """@param worst  records that are kept. @param processes  that read records (None: as many as cores). Raises OSError."""
        self.run = find_files(names)
        self.counters = read_counters(self.run.statistics)
        add_live(self.counters, self.run.live)
        self.tally = read_records(self.run.events, worst, processes)
        self.twins = read_twins(self.run.twins)
        self.ending = Ending(self.run.ends)
        self.watched = Watched(self.run.calls, self.run.ends, self.ending.signal)
        self.compared = twins_model(self.twins, self.tally.differences)
        self.hosts_by_rank = {**{rank: host for rank, host in self.tally.hosts.items() if rank >= 0}, **self.counters.hosts}
        self.ranks = max(max(self.hosts_by_rank, default=-1) + 1, self.counters.job_size, self.twins.ranks(), self.ending.ranks)
        self.hosts = {host for pair in self.tally.host_pairs for host in pair} | {process.host for process in self.counters.processes}
        self.hosts |= {process.host for process in self.twins.processes.values()}
        self.hosts.discard("unknown")

    @cached_property
    def verdict(self):
        """For JSON."""
        return job_verdict(self)

    def missing(self):
        """Ranks that have left neither statistics nor a live file, of twins in any of them."""
        return self.counters.missing(self.ranks, max(len(self.ending.statuses), 1))

    def twin_findings(self):
        """Findings: what the comparison of twins has shown."""
        if not self.compared and len(self.ending.statuses) < 2:
            return []
        compared = self.compared or {"level": "not compared", "sentence": "The twins have compared nothing: no process has left a report of it."}
        is_missed = compared["level"] == "not compared" and self.ending.is_required and self.ending.status() == 0
        return [("unprotected" if is_missed else TWIN_LEVELS[compared["level"]], compared["sentence"])]

    def unreadable(self):
        """(file, why) of what could not be read."""
        return self.tally.unread + self.counters.complaints + self.twins.complaints + self.ending.complaints + self.watched.complaints
