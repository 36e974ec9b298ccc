# SPDX-License-Identifier: BSD-3-Clause
"""The statistics of all processes of a job, added up."""
import json
import os
from collections import Counter

from jobreport.wording import clean, count, size

NOT_COUNTERS = {"pid", "rank", "schema", "monotonic_ns"}
DAMAGE = ("mismatched_chunks", "repaired_chunks", "unrepaired_chunks", "source_changed", "mismatched_headers",
          "mismatched_control", "mismatched_roots", "mismatched_gets", "refused_messages")
# ways past UCI, each with what one operation is; libraries of before have counted messages alone, and no bytes
UNVERIFIED = {"messages": "message", "am": "active message", "put": "put", "get": "get", "atomic": "atomic operation", "stream": "stream send"}
TRAFFIC = ("messages_sent", "messages_received", "chunks_verified", "mismatched_chunks", *(f"passthrough_{way}" for way in UNVERIFIED))


class Counters:
    """Sums, and who they are of."""

    def __init__(self):
        self.sums = Counter()
        self.processes, self.complaints = [], []  # (rank, host, pid, damage); (file, why it was not read)
        self.idle = []                  # ranks that had UCI, and sent and received nothing
        self.hosts = {}                 # rank: host
        self.about = {name: Counter() for name in ("version", "ucx_version", "mode", "digest")}
        self.off = self.live = 0        # processes with UCI_MODE=off; known from live files alone
        self.job_size = 0               # ranks, if any process knew
        self.fates = Counter()          # what became of those known from live files

    def add(self, process):
        """One process: its JSON object."""
        rank = process.get("rank")
        rank = rank if type(rank) is int and 0 <= rank < 1 << 31 else -1
        for name, value in process.items():
            if type(value) is int and name not in NOT_COUNTERS and 0 <= value < 1 << 64:
                self.sums[clean(name, 60)] += value
        for name, found in self.about.items():
            if name in process:
                found[clean(process[name])] += 1
        host = clean(process.get("host"))
        if rank >= 0:
            self.hosts[rank] = host
        if not any(process.get(name) for name in TRAFFIC):
            self.idle.append(rank)
        self.off += process.get("mode") == "off"
        self.processes.append((rank, host, process.get("pid"), {name: process[name] for name in DAMAGE
                                                                if type(process.get(name)) is int and process[name] > 0}))

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
