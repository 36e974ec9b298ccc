# SPDX-License-Identifier: BSD-3-Clause
"""How much of all traffic has crossed a thing: a node, a cable, a switch.

Statistics say what each node has received and sent, not from whom. Between two nodes of a job it is estimated by the gravity model: what a node receives
comes from each node of the job by the part that this one has of all that was sent. A node with one process sends nothing to itself.

A thing is ("node", name), either way; ("receiver", name); ("sender", name); ("link", lower end, upper end); ("switch", name); ("pair", sender, receiver).
"""
from collections import Counter, namedtuple

GUESS = 1000  # messages received for each damaged one, in a job without any statistics
Node = namedtuple("Node", "received part inside")  # what it received, its part of what all sent, and what of the first it sent itself


class Traffic:
    """Of some unit (messages, bytes), over jobs."""

    def __init__(self, topology, unit):
        self.topology, self.unit = topology, unit
        self.total, self.through, self.nodes = 0, Counter(), set()

    def add(self, entries, pairs):
        """A job by its entries. @param pairs  of nodes between which it is wanted"""
        nodes = self.weigh(entries)
        total = sum(node.received for node in nodes.values())
        self.total += total
        self.nodes |= set(nodes)
        sums, below = {}, Counter()  # of each switch: [received, part] of the nodes below it; what stays below one of its cables
        for name, node in nodes.items():
            self.add_node(name, node, total)
            below[self.topology.leaf.get(name)] += node.received * node.part
            for switch in self.topology.upward(name):
                amount = sums.setdefault(switch, [0, 0])
                amount[0] += node.received
                amount[1] += node.part
        self.add_switches(sums, below, total)
        for sender, receiver in pairs:
            if sender in nodes and receiver in nodes:
                self.through["pair", sender, receiver] += nodes[receiver].inside if sender == receiver else \
                    nodes[receiver].received * nodes[sender].part

    def weigh(self, entries):
        """Name: Node. Those of one name, by a domain, are one. A node without statistics is taken to be as the others are."""
        known, numbers = {name: Counter() for name in ("received", "sent")}, Counter()
        damaged = 0
        for entry in entries:
            name = self.topology.node(entry["node"])
            numbers[name] += entry["processes"]
            known["received"][name] += entry[self.unit]
            known["sent"][name] += entry["sent"]
            for kind in entry["damage"]:
                damaged += kind["messages"]
                numbers[self.topology.node(kind["peer"])] += 0
        del numbers["unknown"]
        for amounts in known.values():
            told = [name for name, number in numbers.items() if number]
            usual = sum(amounts[name] for name in told) / len(told) if told else GUESS * damaged
            amounts.update({name: usual for name, number in numbers.items() if not number})
        received, sent = known["received"], known["sent"]
        all_sent = sum(sent[name] for name in numbers)
        parts = {name: sent[name] / all_sent if all_sent else 1 / len(numbers) for name in numbers}
        return {name: Node(received[name], parts[name], received[name] * parts[name] * (1 - 1 / max(number, 1))) for name, number in numbers.items()}

    def add_node(self, name, node, total):
        """What it received, what it sent, and both."""
        between = crossing(node.received, node.part, total)
        self.through["receiver", name] += node.received
        self.through["sender", name] += (total - node.received) * node.part + node.inside
        self.through["node", name] += between + node.inside
        if name in self.topology.leaf:
            self.through["link", name, self.topology.leaf[name]] += between

    def add_switches(self, sums, below, total):
        """What has crossed switches, and the cables above them."""
        for switch, (received, part) in sums.items():
            upper = self.topology.above.get(switch)
            below[upper] += received * part
            if upper is not None:
                self.through["link", switch, upper] += crossing(received, part, total)
        for switch, (received, part) in sums.items():
            self.through["switch", switch] += received + part * total - received * part - below[switch]


def crossing(received, part, total):
    """What goes from or to nodes that receive so much, and send such a part of all, to or from others."""
    return received * (1 - part) + (total - received) * part
