# SPDX-License-Identifier: BSD-3-Clause
"""What uci_run says of a job at its end. The verdict is that of uci_report."""
import json
import os
import sys
from collections import Counter
from pathlib import Path

from jobreport.ending import name_process
from jobreport.job import Job
from jobreport.levels import exit_status
from jobreport.wording import clean, count, count_ranges, ranks_of
from jobreport.wording import rank as name_rank

WORST = 5
CALLS = 10      # of --debug that are shown
MANY = 1 << 16  # ranks that --json names at most


def put(text, stream):
    """A text and the end of its line, now. @return whether it could be written. The job's status matters more than who looks at its output."""
    try:
        print(text, file=stream, flush=True)
        return True
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())  # what is left is not tried again
        if stream is not sys.stderr:
            warn(f"cannot write to standard output: {error.strerror}")
        return False


def warn(text):
    """A line on stderr."""
    put(f"uci_run: {text}", sys.stderr)


class Summary:
    """What a job has left in its folder, and its exit status among it (note_end())."""

    def __init__(self, folder):
        self.folder, self.job = folder, Job([folder])
        self.status = self.job.ending.status()
        self.missing, self.idle = self.job.missing(), sorted(self.job.counters.idle)
        self.worst = self._name_damage()

    def exit_code(self):
        """See EPILOG of uci_run."""
        return exit_status(self.job.verdict["level"], self.status)

    def _name_damage(self):
        """Records by receiver, by sender and receiver, and by host."""
        worst, tally = {name: Counter() for name in ("worst ranks", "worst pairs", "worst hosts")}, self.job.tally
        for (sender, receiver), number in tally.pairs.items():
            worst["worst ranks"][self._describe(receiver)] += number
            worst["worst pairs"][f"{self._describe(sender)} -> {self._describe(receiver)}"] += number
        for hosts, number in tally.host_pairs.items():
            worst["worst hosts"].update({host: number for host in hosts})
        return worst

    def _describe(self, rank):
        """'rank 3 (node2)'."""
        return f"{name_rank(rank)} ({self.job.tally.hosts.get(rank, 'unknown')})" if rank >= 0 else name_rank(rank)

    def record(self, command):
        """What --json writes."""
        job, counters, tally = self.job, self.job.counters, self.job.tally
        sums, missing = counters.sums, [rank for first, last in self.missing for rank in range(first, min(last + 1, first + MANY))]
        return {"uci_run": 1, "folder": str(self.folder), "command": command, "level": job.verdict["level"], "verdict": job.verdict["sentence"],
                "exit_code": self.exit_code(), "job_status": self.status, "ranks": job.ranks, "ranks_with_uci": job.ranks - count_ranges(self.missing),
                "ranks_without_statistics": missing, "ranks_without_messages": self.idle,
                "killed": [name_process(process) for process in counters.by_state("killed")],
                "messages_sent": sums["messages_sent"], "messages_received": sums["messages_received"],
                "bytes_sent": sums["bytes_sent"], "bytes_received": sums["bytes_received"],
                "unverified_messages": sums["passthrough_messages"], "unverified": counters.unverified(),
                "unverified_bytes": counters.unverified_bytes(), "damaged_chunks": counters.damaged(),
                "source_changed_chunks": counters.changed(), "source_changed_delivered": sums["source_changed"],
                "types_differ": sums["signatures_differ"], "records": tally.records, "records_unreadable": tally.damaged_lines,
                "records_lost": sums["events_lost"], "files_unreadable": self.unreadable(), "by_cause": dict(tally.kinds["cause"]),
                "misuse": [text for text, _ in job.watched.misuse.sentences()],
                "left": [text for text, _ in job.watched.misuse.left()], "calls_lost": job.watched.lost, "waits": list(job.watched.waits.lines()) if self.status else [],
                "by_verdict": dict(tally.kinds["verdict"]), "counters": dict(sums),
                **{name.replace(" ", "_"): counts.most_common(WORST) for name, counts in self.worst.items()}}

    def calls(self):
        """(name, text) of what --debug has found out."""
        watched = self.job.watched
        for name, found in (("rules", watched.misuse.sentences()), ("left", watched.misuse.left())):
            yield from ((name, f"{text} ({ranks})") for text, ranks in found[:CALLS])
            if len(found) > CALLS:
                yield name, f"and at {count(len(found) - CALLS, 'more place')}: uci_report has them all"
        if watched.lost:
            yield "calls", f"{count(watched.lost, 'entry', 'entries')} had no room in the files about calls, and are missing here"
        if self.status != 0:
            yield from (("waits", text) for text in watched.waits.lines())

    def unreadable(self):
        """Files, and why."""
        return [f"{clean(Path(path).name)} ({why})" for path, why in self.job.unreadable()]

    def lines(self):
        """(name, text) of what there is to say."""
        sums = self.job.counters.sums
        yield from self.verdict_lines()
        yield "job", f"{count(self.job.ranks, 'rank')}, exit status {self.status}"
        yield "messages", f"{sums['messages_sent']:,} sent, {sums['messages_received']:,} received"
        yield "bytes", f"{sums['bytes_sent']:,} sent, {sums['bytes_received']:,} received"
        yield from self.troubles()

    def verdict_lines(self):
        """The verdict in a word, and why."""
        for text in (self.job.verdict["title"], *self.job.verdict["sentences"]):
            yield "verdict", text

    def troubles(self):
        """(name, text) of what is not as it should be, beside the verdict."""
        counters, tally = self.job.counters, self.job.tally
        sums, own = counters.sums, counters.own_damage()
        if counters.damaged() > own:
            yield "damaged", (f"{count(counters.damaged() - own, 'part of a message', 'parts of messages')}: {sums['repaired_chunks']:,} repaired, "
                              f"{sums['unrepaired_chunks']:,} not repaired")
        if own:
            yield "damaged", f"{own:,} of UCI's own headers and confirmations, which came again"
        if counters.changed():
            yield "changed", (f"{count(counters.changed(), 'part of a message', 'parts of messages')}, by the program, while being sent; "
                              f"{sums['source_changed']:,} of them arrived as they were after that")
        if sums["signatures_compared"] or sums["signatures_differ"]:
            yield "types", (f"{sums['signatures_compared']:,} compared; {sums['signatures_differ']:,} do not match" +
                            (f"; {sums['signatures_missing']:,} came without types" if sums["signatures_missing"] else ""))
        yield from self.calls()
        if sums["faults_injected"]:
            yield "injected", f"{count(sums['faults_injected'], 'fault')}, on purpose (UCI_FAULT)"
        for name, counts in (("by cause", tally.kinds["cause"]), ("outcome", tally.kinds["verdict"]), *self.worst.items()):
            if counts:
                yield name, "; ".join(f"{text}: {number:,}" for text, number in counts.most_common(WORST))
        if tally.damaged_lines or sums["events_lost"]:
            yield "records", f"{tally.damaged_lines:,} unreadable, {sums['events_lost']:,} could not be written"
        if self.idle:
            yield "no messages", ranks_of(self.idle)
        if self.unreadable():
            yield "unreadable", ", ".join(self.unreadable())


def print_summary(summary):
    """For a person, on stderr: the program's own output is not mixed with it."""
    lines, before = ["\nUCI summary"], None
    for name, text in (*summary.lines(), ("folder", summary.folder)):
        lines.append(f"    {name if name != before else '':<14}{text}")
        before = name
    put("\n".join(lines), sys.stderr)


def write_json(path, record):
    """The summary for programs. @return whether it could be written"""
    text = json.dumps(record, indent=1)
    if path == "-":
        return put(text, sys.stdout)
    try:
        Path(path).write_text(f"{text}\n", encoding="utf-8")
        return True
    except OSError as error:
        warn(f"cannot write {path}: {error.strerror}")
        return False
