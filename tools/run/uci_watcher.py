# SPDX-License-Identifier: BSD-3-Clause
"""While a job runs with --debug: does anything move? If not, who waits for whom."""
import sys
import time

from jobreport.calls import mark_of
from jobreport.waits import PATIENCE
from jobreport.watched import Watched
from uci_summary import put


class Watcher:
    """Of the job whose processes leave their files in FOLDER."""

    def __init__(self, folder, still):
        """@param still  seconds in which no rank has come from one call to another"""
        self.folder, self.still = folder, max(still, PATIENCE)  # until then nobody is said to wait
        self.interval = min(1, self.still / 4)  # seconds from look to look
        self.marks, self.since, self.has_told = None, time.monotonic(), False

    def look(self):
        """At each interval: says what it is about once, until something has moved."""
        paths = sorted(self.folder.glob("calls.*"))
        marks = [mark_of(path) for path in paths]
        if marks != self.marks:
            self.marks, self.since, self.has_told = marks, time.monotonic(), False
        elif any(marks) and not self.has_told and time.monotonic() - self.since >= self.still:
            self.has_told = True
            self.tell(Watched(paths).waits_at(time.time()))

    def tell(self, waits):
        """On stderr."""
        if not waits.waiting:
            return  # it computes
        put("\n    ".join((f"\nuci_run: for {self.still:g} s no rank has come from one call of MPI's to another:", *waits.lines())), sys.stderr)
