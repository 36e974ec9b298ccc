# SPDX-License-Identifier: BSD-3-Clause
"""What is known of a job's calls of MPI (uci_run --profile and --debug): its processes' files, and what follows from them."""
import time
from functools import cached_property

from jobreport.calls import read_calls
from jobreport.misuse import Misuse
from jobreport.places import Places
from jobreport.profile import build_profile
from jobreport.waits import ENDING, PATIENCE, Waits


class Watched:
    """Of a job that may have none. @param ends  files of note_end(): who waits is asked as of then. @param told  the signal that somebody has ended it with"""

    def __init__(self, paths, ends=(), told=""):
        self.processes, self.others, self.complaints = read_calls(paths)
        self.ends, self.patience = ends, ENDING if ends and not told else PATIENCE

    @cached_property
    def places(self):
        """Their places in words."""
        return Places(self.processes)

    @cached_property
    def misuse(self):
        """What MPI forbids."""
        return Misuse(self.processes, self.places)

    @property
    def lost(self):
        """Of how much more their files had no room."""
        return sum(process.lost for process in self.processes)

    @cached_property
    def waits(self):
        """Who waited for whom at the job's end."""
        return self.waits_at(max((path.stat().st_mtime for path in self.ends), default=time.time()), self.patience)

    def waits_at(self, now, patience=PATIENCE):
        """The same at a moment."""
        return Waits(self.processes, self.places, now, patience)

    def findings(self, status):
        """(level, sentence) for the verdict. @param status  of the job; None: it runs, or nobody knows"""
        found = self.misuse.finding() if self.processes else []
        if self.processes and status != 0:
            found += [("failed", f"At its end: {text}.") for text in self.waits.conclusions()]
        return found

    def steps(self):
        """What to do."""
        return self.misuse.steps() if self.processes else []

    def model(self, status, sums):
        """For JSON; None if there is nothing."""
        if not self.processes:
            return None
        return {"checked": any(process.checks for process in self.processes), "misuse": [list(pair) for pair in self.misuse.sentences()],
                "left": [list(pair) for pair in self.misuse.left()],
                "others": len(self.others), "waits": list(self.waits.lines()) if status != 0 else [], "profile": build_profile(self.processes, self.places, sums, self.lost)}
