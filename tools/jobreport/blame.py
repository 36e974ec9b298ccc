# SPDX-License-Identifier: BSD-3-Clause
"""Which node, cable or switch is in the damage, and not in all traffic anyway.

Named are the fewest places that explain the damage best, by minimum description length: each damaged message is laid to the smallest named place
on its way (smallest: with the least of all traffic), or to none; n messages of which k are laid to a place with the part p of all traffic are worth
k ln(k / n / p), and each place that is named costs what it takes to name it. So a switch that everything crosses explains nothing, a switch is not
named where two of its nodes explain it better, and a node is not where all those beside it have the same. What is named first is what explains most,
and then what improves it most.
"""
import math
from collections import Counter, namedtuple

from jobreport.traffic import Traffic
from jobreport.verdict import MOST

SOFTWARE = {"source_changed", "ucx"}  # causes for which no machine is to blame
KINDS = ("node", "link", "receiver", "sender", "switch", "pair")  # of what explains as much, the first is named
SCREEN = 60      # places that are looked at more closely
NAMED = 8        # places at most
OF_ALL = 1 / 3   # of the damage must lie between two nodes for them to be named together: who talks to whom is known least
CHANCE = 3       # messages that are expected and do not come: one time in 20
TWICE = 2        # times as much damage as traffic, at least, at a node that is named: in programs that talk to one node most, estimates are off by less

Damaged = namedtuple("Damaged", "job number verdict cause memory sender receiver device path transports things")


def damaged_of(jobs, topology):
    """All damage for which a machine may be to blame, each kind with the things on its way."""
    return [damage_of(number, entry, kind, topology) for number, entries in enumerate(jobs) for entry in entries for kind in entry["damage"]
            if kind["cause"] not in SOFTWARE and kind["messages"]]


def damage_of(job, entry, kind, topology):
    """One kind of damage."""
    receiver, sender, memory = (topology.node(name) for name in (entry["node"], kind["peer"], kind["memory"]))
    if memory != "unknown":
        things = [("node", memory)]
    else:
        things = [("receiver", receiver), ("node", receiver)] + ([("sender", sender), ("pair", sender, receiver)] if sender != "unknown" else [])
        things += [("node", sender)] if sender not in ("unknown", receiver) else []
        things += topology.way(sender, receiver)
    return Damaged(job, kind["messages"], kind["verdict"], kind["cause"], memory, sender, receiver, kind["device"], kind["path"], kind["transports"],
                   () if receiver == "unknown" else tuple(things))


class Blame:
    """What is known of each thing: how much damage, and how much traffic, has crossed it."""

    def __init__(self, jobs, topology):
        self.topology, self.damaged = topology, damaged_of(jobs, topology)
        self.crossed = count_things(self.damaged)
        self.all = sum(damage.number for damage in self.damaged)
        pairs = {thing[1:] for thing, number in self.crossed.items() if thing[0] == "pair" and number >= OF_ALL * self.all}
        self.traffic = {unit: Traffic(topology, unit) for unit in ("messages", "bytes")}
        for traffic in self.traffic.values():
            for entries in jobs:
                traffic.add(entries, pairs)
        self.is_guessed = not any(entry["messages"] for entries in jobs for entry in entries)
        self.named = self.choose() if self.all else []

    def share(self, thing):
        """Its part of all traffic; what was damaged has been there at least."""
        traffic = self.traffic["messages"]
        return min(max(traffic.through[thing], self.crossed[thing]) / max(traffic.total, self.all), 1)

    def choose(self):
        """The places that are named."""
        places = max(1, len(self.traffic["messages"].through) + len(self.traffic["messages"].nodes) ** 2)
        candidates = sorted((thing for thing in self.crossed if self.may_be_named(thing)),
                            key=lambda thing: (-self.worth_alone(thing), KINDS.index(thing[0]), thing))
        candidates = sorted(candidates[:SCREEN], key=lambda thing: (self.share(thing), KINDS.index(thing[0])))
        ways = Counter()  # candidates on the way, the smallest first: damaged messages
        for damage in self.damaged:
            ways[tuple(thing for thing in candidates if thing in damage.things)] += damage.number
        cost = math.log(places) + math.log(self.all) / 2

        def worth(named):
            laid = Counter()
            for way, number in ways.items():
                laid[next((thing for thing in way if thing in named), None)] += number
            return round(worth_of(laid, self.share) - cost * len(named), 6)

        named, best = (), 0
        while True:
            options = [(*named, thing) for thing in candidates if thing not in named and len(named) < NAMED]
            options += [tuple(other for other in named if other != thing) for thing in named]
            option = max(options, key=worth, default=())
            if worth(option) <= best:
                return sorted(named, key=lambda thing: -self.crossed[thing])
            named, best = option, worth(option)

    def worth_alone(self, thing):
        """How well this alone explains the damage."""
        return worth_of({thing: self.crossed[thing], None: self.all - self.crossed[thing]}, self.share)

    def may_be_named(self, thing):
        """Has it more of the damage than of all traffic? Two nodes, much of it?"""
        least = max(self.share(thing) * (TWICE if self.node_of(thing) else 1), OF_ALL if thing[0] == "pair" else 0)
        return self.crossed[thing] > least * self.all

    def node_of(self, thing):
        """The node that a thing is, or whose cable; None if it is none's."""
        is_own = thing[0] in ("node", "receiver", "sender") or thing[0] == "link" and self.topology.leaf.get(thing[1]) == thing[2] or \
            thing[0] == "pair" and thing[1] == thing[2]
        return thing[1] if is_own else None

    def alike(self, thing):
        """Others with the same damage, and hardly more traffic: had they been bad, no more damage need have been seen."""
        return [other for other in sorted(self.crossed) if other != thing and self.crossed[other] == self.crossed[thing] and
                self.crossed[thing] * abs(1 - self.share(thing) / self.share(other)) < CHANCE and self.with_thing(other) == self.with_thing(thing)]

    def common(self):
        """Things that are in nearly all of the damage, those with least traffic first."""
        return sorted((thing for thing, number in self.crossed.items() if number >= MOST * self.all and thing[0] != "pair" or
                       thing[0] == "pair" and number == self.all), key=lambda thing: (self.share(thing), KINDS.index(thing[0])))

    def with_thing(self, thing):
        """The damage that has crossed it."""
        return [damage for damage in self.damaged if thing in damage.things]


def worth_of(laid, share):
    """How well it explains damage to lay so much of it to each thing, and the rest to None. @param share  a function"""
    whole = sum(laid.values())
    return sum(number * math.log(number / whole / (1 if thing is None else share(thing))) for thing, number in laid.items() if number)


def count_things(damaged):
    """Thing: damaged messages."""
    found = Counter()
    for damage in damaged:
        for thing in set(damage.things):
            found[thing] += damage.number
    return found

