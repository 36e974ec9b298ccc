# SPDX-License-Identifier: BSD-3-Clause
"""What is kept of a job when its folder goes: an entry for each of its nodes, which is a line of a ledger.

An entry is of what its node has received: how much was verified, and what of it was damaged, from whom, why and by what device.
"""
import hashlib
import time

from jobreport.counters import Counters
from jobreport.live import add_process
from jobreport.tally import NOT_RECORDED, WAYS

VERSION = 1
HEAD = 4096           # bytes of a file of records, or of a live one, that tell it from others
KINDS_OF_DAMAGE = 1000  # of an entry; what is rarer is one more
COUNTED = ("processes", "messages", "sent", "bytes", "faults")
TEXTS = WAYS[2:]      # of a kind of damage, beside the peer


def entries_of_job(job, name):
    """One for each node. @param name  for a job that does not know its own."""
    kinds = damage_by_node(job)
    about = {"uci_ledger": VERSION, "id": identity(job.run), "job": next(iter(job.tally.kinds["job"]), name), "time": round(time_of(job)),
             "faults": job.counters.sums["faults_injected"]}
    return entries_of_nodes(about, job.counters, kinds)


def entries_of_nodes(about, counters, kinds):
    """The same of counters, and of damage by node; {} where there are no records."""
    entries = []
    for node in sorted({*counters.by_host, *kinds}):
        part = counters.by_host.get(node)
        damage = kinds.get(node, []) + (counted_alone(part, node in kinds) if part else [])
        known = {"processes": len(part.processes), "messages": part.verified(), "sent": part.sums["messages_sent"],
                 "bytes": part.sums["bytes_received"]} if part else dict.fromkeys(("processes", "messages", "sent", "bytes"), 0)
        entries.append(about | {"node": node} | known | {"damage": damage})
    return entries


def entries_of_processes(job, begun, processes):
    """The same of processes as uci_top --json has them, of a job that has just ended. @param begun  when it began: jobs may begin anew"""
    counters = Counters()
    for process in processes:
        add_process(counters, process)
    return entries_of_nodes({"uci_ledger": VERSION, "id": f"{job}@{begun}", "job": job, "time": round(time.time()),
                             "faults": counters.sums["faults_injected"]}, counters, {})


def damage_by_node(job):
    """Receiver: its kinds of damage, the most frequent first."""
    found = {}
    for (sender, receiver, *texts), number in job.tally.ways.most_common():
        kinds = found.setdefault(receiver, [])
        if len(kinds) < KINDS_OF_DAMAGE:
            kinds.append({"peer": sender, **dict(zip(TEXTS, texts)), "messages": number})
        else:
            rest = kinds[KINDS_OF_DAMAGE:] or [damage_of("unknown", texts[0], "others", 0)]
            rest[0]["messages"] += number
            kinds[KINDS_OF_DAMAGE:] = rest
    return found


def damage_of(peer, verdict, path, number):
    """A kind of damage of which little is known."""
    return {"peer": peer, "verdict": verdict, "cause": NOT_RECORDED, "memory": "unknown", "path": path, "device": NOT_RECORDED,
            "transports": "unknown", "messages": number}


def counted_alone(part, has_records):
    """Damage that counters know and records do not: UCI's own headers always, and parts of messages where nobody has written records."""
    kinds = [("repaired", "headers", part.own_damage())]
    if not has_records:
        own, lost, pending = part.own_damage(), part.sums["unrepaired_chunks"], part.unfinished()
        parts = max(part.damaged() - own, lost)
        kinds += [("repaired", NOT_RECORDED, parts - lost - pending), ("not repaired", NOT_RECORDED, lost), ("not yet repaired", NOT_RECORDED, pending)]
    return [damage_of("unknown", verdict, path, number) for verdict, path, number in kinds if number > 0]


def identity(run):
    """Tells a job from all others, wherever its folder lies: by what its files hold, of those that grow by how they begin."""
    digest = hashlib.sha256()
    for files, limit in ((run.statistics, -1), (run.ends, -1), (run.events, HEAD), (run.live, HEAD)):
        for path in sorted(files, key=lambda path: (path.name, path.parent.name)):
            with open(path, "rb") as file:
                digest.update(file.read(limit))
    return digest.hexdigest()[:32]


def time_of(job):
    """When it ended: its last damage, else what was written last."""
    if job.tally.first_time <= job.tally.last_time:
        return job.tally.last_time
    run = job.run
    return max((path.stat().st_mtime for path in [*run.statistics, *run.ends, *run.events, *run.live, *run.twins]), default=0)
