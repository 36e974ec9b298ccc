# SPDX-License-Identifier: BSD-3-Clause
"""What uci_run says of a job at its end, and the exit status that tells it to scripts."""
import json
import sys
from pathlib import Path

import uci_folder

EXIT_TYPES = 117  # what was received is not what was meant
EXIT_CORRECTED = 118  # twins differed
EXIT_TWINS_DIFFER = 119
EXIT_NO_UCI = 120  # --require, and a rank without UCI
EXIT_CHANGED = 121
EXIT_REPAIRED = 122
EXIT_DAMAGED = 123
EXIT_FAILED = 125  # uci_run itself, as timeout(1) and env(1) do
EXIT_NOT_FOUND = 127
WORST = 5


def warn(text):
    """A line on stderr."""
    print(f"uci_run: {text}", file=sys.stderr)


def name_process(process):
    """'rank 3 (node2:4711)', or without the rank where it is not known."""
    rank, host, pid, _ = process
    place = f"{host}:{pid}"
    return f"rank {rank} ({place})" if rank >= 0 else place


def number_ranks(ranks):
    """'ranks 1, 4, 5 and 20 more'."""
    shown = ", ".join(str(rank) for rank in ranks[:16])
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}" + (f" and {len(ranks) - 16} more" if len(ranks) > 16 else "")


class Summary:
    """What a job of so many ranks (None: as many as they say) has left, judged."""

    def __init__(self, folder, ranks, status, is_required):
        self.job = uci_folder.JobFolder(folder)
        self.ranks = ranks or max(self.job.counters.job_size, max(self.job.ranks(), default=-1) + 1)
        self.status, self.is_required = status, is_required
        self.missing = sorted(set(range(self.ranks)) - self.job.ranks())
        self.idle = sorted(self.job.counters.idle)

    def exit_code(self):
        """See EPILOG."""
        if self.job.is_unrepaired():
            return EXIT_DAMAGED
        if self.is_required and (self.missing or not self.ranks) and self.status == 0:
            return EXIT_NO_UCI
        if self.job.damaged_chunks() > 0:
            return EXIT_REPAIRED
        if self.job.changed_chunks() > 0:
            return EXIT_CHANGED
        if self.job.sums["signatures_differ"] > 0 and self.status == 0:
            return EXIT_TYPES
        return self.status

    def verdict(self):
        """One sentence."""
        texts = {EXIT_DAMAGED: "messages arrived damaged and could not be repaired",
                 EXIT_REPAIRED: "messages arrived damaged, and all were repaired",
                 EXIT_CHANGED: "the program changed buffers of sends that were pending",
                 EXIT_TYPES: "types of messages do not match: what was received is not what was meant"}
        if len(self.missing) == self.ranks:
            return ("no rank had UCI: nothing was verified ('uci_info --check' tells why)" if self.status == 0 else
                    "no rank has left statistics: nothing is known of its messages")
        code = self.exit_code()
        if code == EXIT_NO_UCI or code not in texts:
            text = "no damage was seen"
            if self.missing:
                text += f", but {len(self.missing)} of {self.ranks} ranks said nothing"
            return text
        return texts[code]

    def record(self, folder, command):
        """What --json writes."""
        job, sums = self.job, self.job.sums
        return {"uci_run": 1, "folder": str(folder), "command": command, "verdict": self.verdict(), "exit_code": self.exit_code(),
                "job_status": self.status, "ranks": self.ranks, "ranks_with_uci": self.ranks - len(self.missing),
                "ranks_without_statistics": self.missing, "ranks_without_messages": self.idle,
                "killed": [name_process(process) for process in job.killed],
                "messages_sent": sums["messages_sent"], "messages_received": sums["messages_received"],
                "bytes_sent": sums["bytes_sent"], "bytes_received": sums["bytes_received"],
                "unverified_messages": sums["passthrough_messages"], "unverified": job.counters.unverified(),
                "unverified_bytes": job.counters.unverified_bytes(), "damaged_chunks": job.damaged_chunks(),
                "source_changed_chunks": job.changed_chunks(),
                "source_changed_delivered": sums["source_changed"], "types_differ": sums["signatures_differ"], "records": job.records.records, "records_unreadable": job.records.damaged_lines,
                "records_lost": sums["events_lost"], "files_unreadable": job.unreadable, "by_cause": dict(job.causes),
                "by_verdict": dict(job.verdicts), "worst_ranks": job.worst_ranks.most_common(WORST),
                "worst_pairs": job.worst_pairs.most_common(WORST), "worst_hosts": job.worst_hosts.most_common(WORST),
                "counters": dict(sums)}

    def lines(self):
        """(name, text) of what there is to say."""
        sums, unverified = self.job.sums, self.job.counters.unverified_text()
        yield "verdict", self.verdict()
        yield "job", f"{self.ranks} ranks, exit status {self.status}"
        yield "messages", f"{sums['messages_sent']:,} sent, {sums['messages_received']:,} received"
        yield "bytes", f"{sums['bytes_sent']:,} sent, {sums['bytes_received']:,} received"
        if unverified:
            yield "not verified", f"{unverified} passed through"
        yield from self._damage_lines(sums)
        yield from self._rank_lines()

    def troubles(self):
        """(name, text) of what is not as it should be."""
        for name, text in (*self._damage_lines(self.job.sums), *self._rank_lines()):
            if (name, text) != ("damaged", "nothing"):
                yield name, text

    def _damage_lines(self, sums):
        job = self.job
        damaged = self.job.damaged_chunks()
        yield "damaged", (f"{damaged:,} chunks or frames; {sums['repaired_chunks']:,} chunks repaired, {sums['unrepaired_chunks']:,} not"
                          if damaged else "nothing")
        if job.changed_chunks():
            yield "changed", (f"{job.changed_chunks():,} chunks, by the program, while they were being sent; "
                              f"{sums['source_changed']:,} of them arrived as they were after that")
        if sums["signatures_compared"] or sums["signatures_differ"]:
            yield "types", (f"{sums['signatures_compared']:,} compared; {sums['signatures_differ']:,} do not match" +
                            (f"; {sums['signatures_missing']:,} came without types" if sums["signatures_missing"] else ""))
        if sums["faults_injected"]:
            yield "injected", f"{sums['faults_injected']:,} faults, on purpose (UCI_FAULT)"
        for name, counts in (("by cause", job.causes), ("verdicts", job.verdicts), ("worst ranks", job.worst_ranks),
                             ("worst pairs", job.worst_pairs), ("worst hosts", job.worst_hosts)):
            if counts:
                yield name, "; ".join(f"{text}: {count:,}" for text, count in counts.most_common(WORST))
        if job.records.damaged_lines or sums["events_lost"]:
            yield "records", f"{job.records.damaged_lines:,} unreadable, {sums['events_lost']:,} could not be written"

    def _rank_lines(self):
        if self.missing:
            why = ("without UCI" if self.status == 0 else
                   "without UCI, or ended before it could write (a signal, MPI_Abort)")
            yield "no statistics", f"{number_ranks(self.missing)}: {why}"
        if self.job.killed:
            yield "killed", ", ".join(map(name_process, self.job.killed)) + ": their counters are as of then"
        if self.idle:
            yield "no messages", f"{number_ranks(self.idle)}: UCI was there, and nothing went through it"
        if self.job.unreadable:
            yield "unreadable", ", ".join(self.job.unreadable)


def print_summary(summary, folder):
    """For a person, on stderr: the program's own output is not mixed with it."""
    print("\nUCI summary", file=sys.stderr)
    before = None
    for name, text in (*summary.lines(), ("folder", folder)):
        print(f"    {name if name != before else '':<14}{text}", file=sys.stderr)
        before = name


def write_json(path, record):
    """The summary for programs."""
    text = json.dumps(record, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        warn(f"cannot write {path}: {error.strerror}")
