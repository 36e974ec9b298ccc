# SPDX-License-Identifier: BSD-3-Clause
"""What a verdict can be, the worst first: as the page, the text, uci_run and its exit status have it."""
from typing import NamedTuple, Optional


class Level(NamedTuple):
    """One of them. A status of None: that of the job."""
    title: str
    mark: str
    colour: str  # of a terminal
    status: Optional[int] = None
    meaning: str = ""


LEVELS = {
    "lost": Level("Not delivered intact", "✕", "31", 123, "a message arrived damaged and could not be repaired"),
    "unprotected": Level("Not protected", "✕", "31", 120, "--require: a rank of a job that ended well had no UCI, its messages go past UCX, or twins have compared nothing"),
    "differs": Level("Twins differ", "✕", "31", 119, "--twins: they differ, and not all was corrected"),
    "repaired": Level("Damaged and repaired", "!", "33", 122, "messages arrived damaged, and all were repaired"),
    "corrected": Level("Computed wrong and corrected", "!", "33", 118, "--twins --correct: they differed, and all was corrected"),
    "source": Level("Changed by the program", "!", "33", 121, "the program changed the buffer of a send that was pending; nothing was damaged"),
    "types": Level("Types do not match", "!", "33", 117, "--signatures: types of messages, or collectives, do not match; nothing was damaged"),
    "misuse": Level("Rules of MPI are broken", "!", "33", 116, "--debug: the program breaks rules of MPI's; nothing was damaged"),
    "failed": Level("The job did not end well", "✕", "31"),
    "unknown": Level("Not known", "?", "35"),
    "partly": Level("Intact, as far as it was verified", "?", "35"),
    "clean": Level("Intact", "✓", "32"),
}
ORDER = {name: number for number, name in enumerate(LEVELS)}


def exit_status(level, job_status):
    """Of uci_run."""
    status = LEVELS[level].status
    return job_status if status is None else status


def worst_first(findings):
    """(level, sentence) of each, the worst first; those as bad as each other stay as they are."""
    return sorted((finding for finding in findings if finding), key=lambda finding: ORDER[finding[0]])
