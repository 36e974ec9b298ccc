# SPDX-License-Identifier: BSD-3-Clause
"""Which switches and cables lie between two nodes, from Slurm's topology.conf(5): a tree of switches.

A cable is named by its ends: several between the same two switches cannot be told apart.
"""
import re

from jobreport.hostlist import NAMES, HostlistError, expand
from jobreport.wording import clean

WORDS = ("switchname", "nodes", "switches", "linkspeed")


class TopologyError(ValueError):
    """A file that is none."""


class Topology:
    """A tree; one without nodes knows no way."""

    def __init__(self):
        self.leaf = {}   # node: its switch
        self.above = {}  # switch: the switch above it

    def node(self, host):
        """The node's name of a host, whose own may have a domain behind it."""
        short = host.split(".", 1)[0]
        return short if host not in self.leaf and short in self.leaf else host

    def upward(self, node):
        """Its switches, from the leaf to the top."""
        switch, found = self.leaf.get(node), []
        while switch is not None:
            found.append(switch)
            switch = self.above.get(switch)
        return found

    def way(self, sender, receiver):
        """Things between two nodes: ("link", lower end, upper end) and ("switch", name). None if they are the same, or nothing is known."""
        ups = [self.upward(node) for node in (sender, receiver)]
        meeting = next((switch for switch in ups[0] if switch in ups[1]), None)
        if sender == receiver or meeting is None:
            return []
        found = [("switch", meeting)]
        for node, up in zip((sender, receiver), ups):
            for switch in up[:up.index(meeting) + 1]:
                found.append(("link", node, switch))
                node = switch
            found += [("switch", switch) for switch in up[:up.index(meeting)]]
        return found


def read_topology(path):
    """The Topology of a file. Raises OSError and TopologyError."""
    topology, begin = Topology(), 1
    text = path.read_text(encoding="utf-8", errors="replace")
    for line in re.split(r"(?<!\\)\n", text):  # one that ends in a backslash goes on
        try:
            add_line(topology, [clean(word, NAMES) for word in line.replace("\\\n", " ").split("#", 1)[0].split()])
        except (TopologyError, HostlistError) as error:
            raise TopologyError(f"line {begin}: {error}") from None
        begin += line.count("\n") + 1
    check_tree(topology)
    return topology


def add_line(topology, words):
    """SwitchName=s0 Nodes=n[0-15], or Switches=s[0-3]."""
    if not words:
        return
    pairs = [word.partition("=") for word in words]
    values = {name.lower(): value for name, separator, value in pairs if separator and value}
    if len(values) != len(words) or set(values) - set(WORDS) or "switchname" not in values or not {"nodes", "switches"} & set(values):
        raise TopologyError("expected SwitchName=NAME with Nodes=LIST or Switches=LIST, as in Slurm's topology.conf")
    switch = values["switchname"]
    for places, names, what in ((topology.leaf, values.get("nodes", ""), "node"), (topology.above, values.get("switches", ""), "switch")):
        for name in expand(names):
            if places.setdefault(name, switch) != switch:
                raise TopologyError(f"{what} {clean(name)} is below {clean(places[name])} already, and below {clean(switch)}: only a tree can be followed")


def check_tree(topology):
    """No switch is above itself."""
    for switch in topology.above:
        seen = set()
        while switch is not None:
            if switch in seen:
                raise TopologyError(f"switch {clean(switch)} is above itself")
            seen.add(switch)
            switch = topology.above.get(switch)
