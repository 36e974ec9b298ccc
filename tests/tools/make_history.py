# SPDX-License-Identifier: BSD-3-Clause
"""
Folders of jobs that never were, on a simulated cluster: a tree of switches, traffic between all nodes of a job, and damage to what crosses a bad thing.
Damage is drawn from the traffic itself, and statistics are its sums: nothing here knows how uci_report estimates.
"""
import json
import os
import random

BEGIN = 1788220800.0  # 2026-09-01
MONTH = 30 * 86400
LEAVES, WIDTH = 4, 8
NODES = [f"n{number}" for number in range(LEAVES * WIDTH)]
TOPOLOGY = ("# four leaves, one top\n" +
            "".join(f"SwitchName=s{leaf} Nodes=n[{leaf * WIDTH}-{leaf * WIDTH + WIDTH - 1}] LinkSpeed=100\n" for leaf in range(LEAVES)) +
            f"SwitchName=top \\\n  Switches=s[0-{LEAVES - 1}]\n")


def leaf_of(node):
    """s0"""
    return f"s{int(node[1:]) // WIDTH}"


def things_between(sender, receiver):
    """What a message from one node to another crosses, by names of its own."""
    things = {f"node {sender}", f"node {receiver}", f"into {receiver}", f"out of {sender}", f"{sender}>{receiver}"}
    if sender != receiver:
        leaves = leaf_of(sender), leaf_of(receiver)
        things |= {f"cable {sender}", f"cable {receiver}", *leaves}
        things |= {"top", *(f"cable {leaf}" for leaf in leaves)} if leaves[0] != leaves[1] else set()
    return things


def neighbours(number, count):
    """Of a ring: messages to both sides for each one to anybody else."""
    return {(number + 1) % count, (number - 1) % count}


class Cluster:
    """Its jobs go into folders of one folder."""

    def __init__(self, folder, seed=1):
        self.folder, self.rng, self.jobs = folder, random.Random(seed), 0

    def run(self, nodes, bad=(), rate=1e-2, messages=200, processes=2, halo=1, star=False, **about):
        """A job. @param bad  names of things_between() that damage this part of what crosses them. @param halo  times as many between neighbours. @param star  only to
        and from the first node"""
        self.jobs += 1
        folder = self.folder / f"uci-run-{self.jobs:03}"
        folder.mkdir(parents=True)
        received, sent, records = dict.fromkeys(nodes, 0), dict.fromkeys(nodes, 0), []
        for sender_number, sender in enumerate(nodes):
            for receiver_number, receiver in enumerate(nodes):
                number = messages if sender != receiver else messages * (processes > 1)
                number *= halo if receiver_number in neighbours(sender_number, len(nodes)) else 1
                number = 0 if star and sender_number and receiver_number else number
                received[receiver] += number
                sent[sender] += number
                if set(bad) & things_between(sender, receiver):
                    records += [self.record(sender, receiver, **about) for _ in range(number) if self.rng.random() < rate]
        self.write(folder, received, sent, records, processes, about.get("faults", 0))
        for path in folder.iterdir():
            os.utime(path, (self.time(about.get("month", 0)),) * 2)
        return folder

    def time(self, month):
        """Of the present job."""
        return BEGIN + month * MONTH + self.jobs * 3600

    def record(self, sender, receiver, verdict="repaired", cause="transport", month=0, evidence="", **_):
        """A damaged message."""
        return {"schema": 2, "time": self.time(month) + self.rng.random(), "job": f"slurm:{self.jobs}", "verdict": verdict,
                "cause": cause, "evidence": evidence.format(sender=sender, receiver=receiver), "role": "receiver", "host": receiver, "rank": 0,
                "peer_host": sender, "peer_rank": 1, "path": "get", "device": "mlx5_0", "port": 1, "transports": "rc_mlx5", "length": 65536,
                "wrong_bytes": 1, "class": "bit flip"}

    def write(self, folder, received, sent, records, processes, faults):
        """Statistics of each process, and records of each node."""
        for node in received:
            for process in range(processes):
                pid = self.jobs * 1000 + process
                counters = {"version": "0.1.0", "host": node, "pid": pid, "rank": process, "mode": "repair", "messages_sent": sent[node] // processes,
                            "messages_received": received[node] // processes, "bytes_received": received[node] // processes * 65536, "faults_injected": faults}
                (folder / f"stats.{node}.{pid}.json").write_text(json.dumps(counters))
            mine = [json.dumps(record) + "\n" for record in records if record["host"] == node]
            if mine:
                (folder / f"events.{node}.{self.jobs}.jsonl").write_text("".join(mine))
        (folder / "ended.json").write_text(json.dumps({"status": 0, "ranks": None, "required": False, "signal": ""}))

    def some(self, number, *always):
        """Nodes drawn at random."""
        return [*always, *self.rng.sample([node for node in NODES if node not in always], number - len(always))]
