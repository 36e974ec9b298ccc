# SPDX-License-Identifier: BSD-3-Clause
"""What the ranks of one job have left in its folder: statistics (UCI_STATS) and records of damaged messages (UCI_EVENTS).

    stats.HOST.PID.json     one object of counters a process, written when it ends
    events.HOST.PID.jsonl   one object a damaged message
    HOST.PID.live           counters of a process while it runs; left by one that was killed
"""
import json
from collections import Counter
from pathlib import Path

import uci_job

STATS, EVENTS, LIVE = "stats.%h.%p.json", "events.%h.%p.jsonl", ".live"
NOT_COUNTERS = ("pid", "rank", "schema")
DAMAGE = ("mismatched_headers", "mismatched_control", "mismatched_roots")


def add_up(processes):
    """Sums of all counters."""
    sums = Counter()
    for counters in processes:
        sums.update({name: value for name, value in counters.items()
                     if isinstance(value, int) and not isinstance(value, bool) and name not in NOT_COUNTERS})
    return sums


def describe(record, side=""):
    """'rank 3 (node2)' of a record's receiver, or with 'peer_' its sender."""
    return f"rank {record.get(side + 'rank', -1)} ({record.get(side + 'host', 'unknown')})"


class Damage:
    """Records of damaged messages, added up: there may be millions of them, so none is kept."""

    def __init__(self):
        self.records = self.unreadable = 0
        self.causes, self.verdicts = Counter(), Counter()
        self.ranks, self.pairs, self.hosts = Counter(), Counter(), Counter()

    def add_file(self, path):
        """All lines of a file; a process that is killed may leave half a one."""
        with open(path, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                try:
                    self.add(json.loads(line))
                except (ValueError, AttributeError):
                    self.unreadable += 1

    def add(self, record):
        """One record. Those of before schema 2 name no cause."""
        verdict = record.get("verdict", "unknown")
        self.records += 1
        self.verdicts[verdict] += 1
        self.causes[record.get("cause") or ("source_changed" if verdict == "source changed" else "unknown")] += 1
        receiver, sender = describe(record), describe(record, "peer_")
        self.ranks[receiver] += 1
        self.pairs[f"{sender} -> {receiver}"] += 1
        self.hosts.update({record.get("host", "unknown"), record.get("peer_host", "unknown")})


class JobFolder:
    """All that is in the folder of one job."""

    def __init__(self, folder):
        self.folder = Path(folder)
        self.processes, self.killed, self.broken, self.damage = [], [], [], Damage()
        for path in sorted(self.folder.glob("stats.*.json")):
            self._add_statistics(path)
        self._add_killed()
        for path in sorted(self.folder.glob("events.*.jsonl")):
            self.damage.add_file(path)
        self.sums = add_up(self.processes + self.killed)

    def _add_statistics(self, path):
        try:
            self.processes.append(json.loads(path.read_text(encoding="utf-8")))
        except ValueError:
            self.broken.append(path.name)

    def _add_killed(self):
        """Processes that had UCI and ended without a word: counters of a running process, and no statistics. uci_top reads them;
        without it only their names are known."""
        ended = {(process.get("host"), process.get("pid")) for process in self.processes}
        known = {}
        for name in (path.name[:-len(LIVE)] for path in sorted(self.folder.glob("*" + LIVE))):
            host, _, pid = name.rpartition(".")
            if pid.isdigit() and (host, int(pid)) not in ended:
                known[host, int(pid)] = {"host": host, "pid": int(pid), "rank": -1}
        tool = uci_job.find_tool("uci_top") if known else None
        try:
            look = json.loads(uci_job.read_output([tool, "--once", "--json", str(self.folder)])) if tool else {}
        except ValueError:
            look = {}
        for process in (process for job in look.get("jobs", ()) for process in job["processes"]):
            key = process["host"], process["pid"]
            if key in known:
                known[key] |= process["counters"] | {"rank": -1 if process["rank"] is None else process["rank"]}
        self.killed = list(known.values())

    def ranks(self):
        """Numbers of the ranks that had UCI."""
        return {process.get("rank", -1) for process in self.processes + self.killed} - {-1}

    def damaged_chunks(self):
        """Chunks that arrived damaged; what the program itself changed is none of them."""
        return self.sums["mismatched_chunks"] - self.sums["source_changed"] + sum(self.sums[name] for name in DAMAGE)

    def is_unrepaired(self):
        """Was anything damaged, or a lie, and delivered or refused as it was?"""
        return bool(self.sums["unrepaired_chunks"] or self.sums["refused_messages"] or self.damage.verdicts["not repaired"])
