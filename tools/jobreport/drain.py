# SPDX-License-Identifier: BSD-3-Clause
"""Which nodes to take from service: those that are named (blame.py) and have harmed enough jobs.

The names go to commands of root's: one that is no name of a node, or that the topology does not have, is not among them.
"""
import re

from jobreport.wording import count

JOBS = 2  # jobs with damage, of which a node must be in so many
LOST = 1  # messages that were not repaired, which are enough in a single one
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
ALL = "all"  # is every node to scontrol


def drain_list(places, topology, jobs=JOBS, lost=LOST):
    """(nodes, spared): dictionaries with node and reason; place and reason."""
    nodes, spared = {}, []
    for place in places:
        if place["named"]:
            why = why_spared(place, topology, jobs, lost)
            if why:
                spared.append({"place": place["text"], "reason": why})
            else:
                nodes.setdefault(place["node"], {"node": place["node"], "reason": f"UCI: {place['text']}: {count(place['damaged'], 'damaged message')} in "
                                                 f"{count(place['jobs'], 'job')}, {count(place['not_repaired'])} not repaired",
                                                 "jobs": place["jobs"], "damaged": place["damaged"], "not_repaired": place["not_repaired"]})
    return list(nodes.values()), spared


def why_spared(place, topology, jobs, lost):
    """Why the node of a place stays in service; nothing if it does not."""
    if place["node"] is None:
        return "it is no node's own"
    if place["beyond"]:
        return f"{' or '.join(place['beyond'])} explains it as well"
    if not NAME.fullmatch(place["node"]) or place["node"].lower() == ALL:
        return "that is no name of a node"
    if topology.leaf and place["node"] not in topology.leaf:
        return "the topology has no such node"
    if place["jobs"] < jobs and place["not_repaired"] < lost:
        return f"damage in {count(place['jobs'], 'job')}, and {count(place['not_repaired'])} not repaired, is less than --drain-jobs and --drain-lost"
    return ""
