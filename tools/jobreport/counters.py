# SPDX-License-Identifier: BSD-3-Clause
"""The statistics of all processes of a job, added up."""
import json
import os
from collections import Counter
from dataclasses import dataclass

from jobreport.wording import clean, count, size

NOT_COUNTERS = {"pid", "rank", "job_size", "schema", "monotonic_ns"}
DAMAGE = ("mismatched_chunks", "repaired_chunks", "unrepaired_chunks", "source_changed", "mismatched_headers",
          "mismatched_control", "mismatched_roots", "mismatched_gets", "refused_messages")
# ways past UCI, each with what one operation is; libraries of before have counted messages alone, and no bytes
UNVERIFIED = {"messages": "message", "am": "active message", "put": "put", "get": "get", "atomic": "atomic operation", "stream": "stream send"}
VERIFIED = {"messages_received": "message", "stream_sent": "stream send", "put_sent": "put", "get_sent": "get", "atomic_sent": "atomic operation"}
BYPASSED = "MPI's messages do not go through UCX: "  # how the mode of such processes begins (ucx_plugin/attach/bypass.c)
TRAFFIC = ("messages_sent", *VERIFIED, "chunks_verified", "mismatched_chunks", *(f"passthrough_{way}" for way in UNVERIFIED))


@dataclass
class Process:
    """One of them."""
    rank: int  # -1: not known
    host: str
    pid: object
    damage: dict
    state: str = ""   # what its live file shows: "running", "ended", "aborted", "killed", "silent"
    wait: str = ""    # what it has waited for longest, at last
    waited: float = 0  # seconds


class Counters:
    """Sums, and who they are of."""

    def __init__(self, is_whole=True):
        self.sums = Counter()
        self.by_host = {} if is_whole else None  # host: Counters of its processes alone
        self.processes, self.complaints = [], []  # Process; (file, why it was not read)
        self.idle = []                  # ranks that had UCI, and sent and received nothing
        self.hosts = {}                 # rank: host
        self.about = {name: Counter() for name in ("version", "ucx_version", "mode", "digest")}
        self.off = self.live = 0        # processes with UCI_MODE=off; known from live files alone
        self.bad_roots = 0              # that differ for no change by the program
        self.job_size = 0               # ranks, if any process knew

    def add(self, process):
        """One process: its JSON object. @return the Process."""
        rank = process.get("rank")
        rank = rank if type(rank) is int and 0 <= rank < 1 << 31 else -1
        pid, size_of_job = process.get("pid"), process.get("job_size")
        if type(size_of_job) is int and rank < size_of_job < 1 << 31:
            self.job_size = max(self.job_size, size_of_job)
        roots = self.sums["mismatched_roots"]
        for name, value in process.items():
            if type(value) is int and name not in NOT_COUNTERS and 0 <= value < 1 << 64:
                self.sums[clean(name, 60)] += value
        for name, found in self.about.items():
            if name in process:
                found[clean(process[name])] += 1
        host = clean(process.get("host"))
        if rank >= 0:
            self.hosts[rank] = host
        if self.by_host is not None:
            self.by_host.setdefault(host, Counters(is_whole=False)).add(process)
        if not any(process.get(name) for name in TRAFFIC):
            self.idle.append(rank)
        if not process.get("source_changed"):
            self.bad_roots = self.bad_roots + self.sums["mismatched_roots"] - roots
        self.off += process.get("mode") == "off"
        self.processes.append(Process(rank, host, pid if type(pid) is int else None,
                                      {name: process[name] for name in DAMAGE if type(process.get(name)) is int and process[name] > 0}))
        return self.processes[-1]

    def by_state(self, state):
        """Processes whose live files show this."""
        return [process for process in self.processes if process.state == state]

    def have_ended(self):
        """Have all told all that there is to tell?"""
        return not any(self.by_state(state) for state in ("running", "killed", "silent"))

    def missing(self, ranks, copies=1):
        """[(first, last)] of the ranks of a job of so many, of which each has so many processes, that have left nothing."""
        number = Counter(process.rank for process in self.processes)
        found, begin = [], 0
        for rank in [*sorted(rank for rank in number if 0 <= rank < ranks and number[rank] >= copies), ranks]:
            if rank > begin:
                found.append((begin, rank - 1))
            begin = rank + 1
        return found

    def bypassed(self):
        """Why messages of MPI went past UCX, in a sentence; nothing if nobody has said so."""
        return next((mode for mode in self.about["mode"] if mode.startswith(BYPASSED)), "")

    def own_damage(self):
        """Frames and messages of UCI's own that arrived damaged: they come again."""
        return self.sums["mismatched_headers"] + self.sums["mismatched_control"] + self.bad_roots

    def damaged(self):
        """Parts of messages that arrived damaged, UCI's own among them; what the program itself changed is none of them."""
        return max(self.sums["mismatched_chunks"] - self.sums["source_changed"], 0) + self.own_damage()

    def unfinished(self):
        """Parts of messages that arrived damaged, and were neither repaired nor given up when their processes were last heard of."""
        sums = self.sums
        return max(sums["mismatched_chunks"] - sums["repaired_chunks"] - sums["unrepaired_chunks"] - sums["source_changed"], 0)

    def changed(self):
        """Parts of messages that the program changed while they were sent: their senders count all, receivers those that came changed."""
        return max(self.sums["source_changed"], self.sums["source_changed_late"])

    def is_lost(self):
        """Was anything damaged, or a lie, and delivered or refused as it was?"""
        return bool(self.sums["unrepaired_chunks"] or self.sums["refused_messages"])

    def is_all_injected(self):
        """May all damage be UCI_FAULT's? A swap of chunks is one fault, and damages two. What the program has changed is nobody's fault."""
        return 0 < self.damaged() <= 2 * self.sums["faults_injected"]

    def never_received(self):
        """Messages that were sent and that no receive has taken, if everybody has told. Active messages need not be wanted."""
        return 0 if self.sums["user_am_sent"] else max(self.sums["messages_sent"] - self.sums["messages_received"], 0)

    def verified(self):
        """How many messages, streams' sends and one-sided operations."""
        return sum(self.sums[name] for name in VERIFIED)

    def verified_text(self):
        """'20 messages (10 MiB), 3 puts'."""
        amount = size(self.sums["bytes_received"])
        parts = [f"{count(self.sums[name], noun)}" + (f" ({amount})" if name == "messages_received" else "")
                 for name, noun in VERIFIED.items() if self.sums[name]]
        return ", ".join(parts)

    def unverified(self):
        """What passed through, by way."""
        return {way: self.sums[f"passthrough_{way}"] for way in UNVERIFIED}

    def unverified_bytes(self):
        """Bytes of all that; None if the library has not counted them."""
        return self.sums.get("passthrough_bytes")

    def unverified_text(self):
        """'12 puts, 30 gets (4 MiB)'; nothing if nothing passed through."""
        ways, amount = self.unverified(), self.unverified_bytes()
        parts = [count(number, UNVERIFIED[way]) for way, number in ways.items() if number]
        if self.sums["unverified_connections"]:
            parts.append(count(self.sums["unverified_connections"], "connection"))
        if not parts:
            return ""
        return (", ".join(parts) +
                f" ({'bytes not counted' if amount is None else size(amount)})")


def read_counters(files):
    """Counters of UCI_STATS files. A file that is none is a complaint."""
    counters = Counters()
    for path in files:
        try:
            process = json.loads(path.read_bytes().decode())
        except OSError as error:
            counters.complaints.append((str(path), os.strerror(error.errno)))
        except (ValueError, RecursionError):
            counters.complaints.append((str(path), "not JSON, or cut off"))
        else:
            if isinstance(process, dict) and "messages_received" in process:
                counters.add(process)
            else:
                counters.complaints.append((str(path), "no statistics of UCI"))
    return counters
