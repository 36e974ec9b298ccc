# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of one job have left in its folder, added up: read as uci_report does, so that both say the same.

    stats.HOST.PID.json     one object of counters a process, written when it ends
    events.HOST.PID.jsonl   one object a damaged message
    HOST.PID.live           counters of a process while it runs; left by one that was killed
"""
from collections import Counter
from pathlib import Path

from jobreport.counters import read_counters
from jobreport.live import add_live
from jobreport.reading import find_files, read_records
from jobreport.wording import rank as name_rank

STATS, EVENTS = "stats.%h.%p.json", "events.%h.%p.jsonl"
DAMAGE = ("mismatched_headers", "mismatched_control", "mismatched_roots")


def is_used(folder):
    """Is there anything of a job in a folder?"""
    return not find_files([folder]).is_empty()


class JobFolder:
    """All that is in the folder of one job."""

    def __init__(self, folder):
        run = find_files([folder])
        self.counters = read_counters(run.statistics)
        ended = len(self.counters.processes)
        add_live(self.counters, run.live)
        self.killed = self.counters.processes[ended:]  # they had UCI, and ended without a word
        self.records = read_records(run.events, worst=1)
        self.sums = self.counters.sums
        self.causes, self.verdicts = self.records.kinds["cause"], self.records.kinds["verdict"]
        self.unreadable = [f"{Path(path).name} ({why})" for path, why in self.counters.complaints + self.records.unread]
        self._name_damage()

    def _name_damage(self):
        """Records by receiver, by sender and receiver, and by host."""
        self.worst_ranks, self.worst_pairs, self.worst_hosts = Counter(), Counter(), Counter()
        for (sender, receiver), number in self.records.pairs.items():
            self.worst_ranks[self._describe(receiver)] += number
            self.worst_pairs[f"{self._describe(sender)} -> {self._describe(receiver)}"] += number
        for hosts, number in self.records.host_pairs.items():
            self.worst_hosts.update({host: number for host in hosts})

    def _describe(self, rank):
        """'rank 3 (node2)'."""
        return f"{name_rank(rank)} ({self.records.hosts.get(rank, 'unknown')})" if rank >= 0 else name_rank(rank)

    def ranks(self):
        """Numbers of the ranks that had UCI."""
        return {process[0] for process in self.counters.processes} - {-1}

    def damaged_chunks(self):
        """Chunks that arrived damaged; what the program itself changed is none of them."""
        return self.sums["mismatched_chunks"] - self.sums["source_changed"] + sum(self.sums[name] for name in DAMAGE)

    def changed_chunks(self):
        """Chunks that the program changed while they were sent: their senders count all, receivers those that came changed."""
        return max(self.sums["source_changed"], self.sums["source_changed_late"])

    def is_unrepaired(self):
        """Was anything damaged, or a lie, and delivered or refused as it was?"""
        return bool(self.sums["unrepaired_chunks"] or self.sums["refused_messages"] or self.verdicts["not repaired"])
