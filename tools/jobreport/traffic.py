# SPDX-License-Identifier: BSD-3-Clause
"""How much of all traffic has crossed a thing: a node, a cable, a switch.

Statistics say what each node has received and sent, not from whom. Between two nodes of a job it is estimated by the gravity model: what a node receives
comes from each node of the job by the part that this one has of all that was sent; less from itself, as no process sends to itself.

A thing is ("node", name), either way; ("receiver", name); ("sender", name); ("link", lower end, upper end); ("switch", name); ("pair", sender, receiver).
"""
from collections import Counter, namedtuple

GUESS = 1000  # messages received for each damaged one, in a job without any statistics
# What it received; its part of what all sent, and its pull: their product for two nodes is what one gets from the other; what it got from itself
Node = namedtuple("Node", "received pull part inside")


class Traffic:
    """Of some unit (messages, bytes), over jobs."""

    def __init__(self, topology, unit):
        self.topology, self.unit = topology, unit
        self.total, self.through, self.nodes = 0, Counter(), set()

    def add(self, entries, pairs):
        """A job by its entries. @param pairs  of nodes between which it is wanted"""
        nodes = self.weigh(entries)
        pull = sum(node.pull for node in nodes.values())
        self.total += sum(node.received for node in nodes.values())
        self.nodes |= set(nodes)
        sums, below = {}, Counter()  # of each switch: [pull, part] of the nodes below it; what stays below one of its cables
        for name, node in nodes.items():
            self.add_node(name, node, pull)
            below[self.topology.leaf.get(name)] += node.pull * node.part
            for switch in self.topology.upward(name):
                amount = sums.setdefault(switch, [0, 0])
                amount[0] += node.pull
                amount[1] += node.part
        self.add_switches(sums, below, pull)
        for sender, receiver in pairs:
            if sender in nodes and receiver in nodes:
                self.through["pair", sender, receiver] += nodes[receiver].inside if sender == receiver else \
                    nodes[receiver].pull * nodes[sender].part

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
        return {name: weigh_node(received[name], parts[name], number) for name, number in numbers.items()}

    def add_node(self, name, node, pull):
        """What it received, what it sent, and both. @param pull  of all nodes of the job"""
        between = crossing(node.pull, node.part, pull)
        self.through["receiver", name] += node.received
        self.through["sender", name] += (pull - node.pull) * node.part + node.inside
        self.through["node", name] += between + node.inside
        if name in self.topology.leaf:
            self.through["link", name, self.topology.leaf[name]] += between

    def add_switches(self, sums, below, pull):
        """What has crossed switches, and the cables above them."""
        for switch, (own, part) in sums.items():
            upper = self.topology.above.get(switch)
            below[upper] += own * part
            if upper is not None:
                self.through["link", switch, upper] += crossing(own, part, pull)
        for switch, (own, part) in sums.items():
            self.through["switch", switch] += own + part * pull - own * part - below[switch]


def weigh_node(received, part, processes):
    """The Node. Of each of its processes, all others may be the senders."""
    own = part / max(processes, 1)
    pull = received / (1 - own) if own < 1 else received
    return Node(received, pull, part, received if own == 1 else pull * (part - own))


def crossing(own, part, pull):
    """What goes from or to nodes of such a pull and part, to or from others."""
    return own * (1 - part) + (pull - own) * part
