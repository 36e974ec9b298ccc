# SPDX-License-Identifier: BSD-3-Clause
"""Damage over many jobs as one dictionary: what --history --json writes, and what the text and the page are made from."""
import time
from collections import Counter

from jobreport.blame import Blame
from jobreport.drain import drain_list
from jobreport.history_tables import tables_of
from jobreport.verdict import MOST
from jobreport.wording import count, listing, share, size, were

VERSION = 1
GIB = 1 << 30
PLACES = 8  # that are shown
CERTAIN = ("cause", "device", "path", "transports")  # what the damage of a place may have in common


def build_history(past, topology, jobs_min, lost_min):
    """All of it. @param jobs_min, lost_min  of drain_list()"""
    jobs = past.jobs()
    counted = [entries for entries in jobs if not any(entry["faults"] for entry in entries)]
    blame = Blame(counted, topology)
    history = {"uci_history": VERSION, "jobs": jobs_of(jobs, counted, past), "totals": totals_of(counted), "places": places_of(blame),
               "common": common_of(blame.damaged), "blamed": blame.all, "is_guessed": blame.is_guessed, "has_topology": bool(topology.leaf),
               "tables": tables_of(counted, topology), "inputs": inputs_of(past)}
    history["drain"], history["spared"] = drain_list(history["places"], topology, jobs_min, lost_min)
    history["verdict"] = {"level": level_of(history["totals"]), "title": "History of damage", "sentences": list(sentences(history))}
    return history


def jobs_of(jobs, counted, past):
    """How many, when, and what was left out."""
    times = [entry["time"] for entries in counted for entry in entries]
    return {"counted": len(counted), "injected": len(jobs) - len(counted), "running": past.running, "twice": past.twice,
            "first": day(min(times)) if times else None, "last": day(max(times)) if times else None,
            "nodes": len({entry["node"] for entries in counted for entry in entries})}


def day(seconds):
    """In UTC."""
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def totals_of(jobs):
    """Sums over all jobs that count."""
    totals = dict.fromkeys(("messages", "bytes", "damaged", "not_repaired", "by_program", "jobs_with_damage"), 0)
    for entries in jobs:
        hurt = 0
        for entry in entries:
            totals["messages"] += entry["messages"]
            totals["bytes"] += entry["bytes"]
            for kind in entry["damage"]:
                is_own = kind["verdict"] == "source changed"
                totals["by_program" if is_own else "damaged"] += kind["messages"]
                totals["not_repaired"] += kind["messages"] if kind["verdict"] == "not repaired" else 0
                hurt += not is_own
        totals["jobs_with_damage"] += hurt > 0
    return totals


def places_of(blame):
    """Those that are named, then what else is in nearly all of the damage."""
    things = [*blame.named, *(thing for thing in blame.common() if thing not in blame.named)]
    return [place_of(blame, thing) for thing in things[:max(PLACES, len(blame.named))]]


def place_of(blame, thing):
    """One of them."""
    damaged, part = blame.with_thing(thing), blame.share(thing)
    number, amount = blame.crossed[thing], blame.traffic["bytes"].through[thing]
    is_named = thing in blame.named
    alike = [other for other in blame.alike(thing) if other[0] in ("node", "link", "switch")] if is_named else []
    return {"kind": thing[0], "names": list(thing[1:]), "node": blame.node_of(thing), "named": is_named,
            "text": " or ".join(map(phrase, [thing, *alike])), "beyond": [phrase(other) for other in alike if blame.node_of(other) != blame.node_of(thing)],
            "damaged": number, "of": blame.all, "not_repaired": sum(one.number for one in damaged if one.verdict == "not repaired"),
            "jobs": len({one.job for one in damaged}), "traffic_share": None if blame.is_guessed else part,
            "times": None if blame.is_guessed else number / blame.all / part, "per_gib": number / (amount / GIB) if amount >= 1 else None,
            "common": common_of(damaged), "verdict": worth_of(part, is_named, blame.is_guessed)}


def phrase(thing):
    """A thing in words."""
    kind, *names = thing
    if kind == "pair" and names[0] == names[1]:
        return f"what goes within node {names[0]}"
    return {"node": "node {}", "receiver": "what node {} receives", "sender": "what node {} sends", "link": "the cable from {} to {}",
            "switch": "switch {}", "pair": "what goes from node {} to node {}"}[kind].format(*names)


def worth_of(part, is_named, is_guessed):
    """What it says that the damage has this in common."""
    if is_named:
        return "explains it"
    if is_guessed:
        return "there are no statistics of what was intact"
    return "nearly all traffic crosses it as well, which proves nothing" if part >= MOST else "explained by what is named, or chance"


def common_of(damaged):
    """What nearly all of some damage has in common: {name: (value, messages)}. How much intact traffic has it is not known."""
    found, number = {}, sum(one.number for one in damaged)
    for name in CERTAIN:
        values = Counter()
        for one in damaged:
            values[getattr(one, name)] += one.number
        value, most = values.most_common(1)[0] if values else (None, 0)
        if number and most >= MOST * number and value not in ("not recorded", "unknown"):
            found[name] = [value, most]
    memories = Counter()
    for one in damaged:
        memories[one.memory] += one.number
    if number and memories["unknown"] <= (1 - MOST) * number:
        found["memory"] = [listing(name for name, _ in memories.most_common() if name != "unknown"), number - memories["unknown"]]
    return found


def inputs_of(past):
    """What was read, and what could not be."""
    return {"folders": past.folders, "ledgers": past.ledgers, "lines": past.lines, "damaged_lines": past.damaged_lines,
            "unread": [{"file": path, "why": why} for path, why in past.complaints]}


def level_of(totals):
    """As levels.py has them."""
    return "lost" if totals["not_repaired"] else "repaired" if totals["damaged"] else "source" if totals["by_program"] else \
        "clean" if totals["messages"] else "unknown"


def sentences(history):
    """What there is to say, the most important first."""
    jobs, totals = history["jobs"], history["totals"]
    verified = f"{count(totals['messages'], 'message')} ({size(totals['bytes'])}) {were(totals['messages'])} verified in {count(jobs['counted'], 'job')}"
    if totals["damaged"]:
        lost = f"{count(totals['not_repaired'])} of them could not be repaired" if totals["not_repaired"] else "all were repaired"
        yield (f"{count(totals['damaged'], 'message')} arrived damaged in {count(totals['jobs_with_damage'])} of {count(jobs['counted'], 'job')}, {lost}; "
               f"{verified}.")
    else:
        yield f"Nothing was damaged: {verified}." if totals["messages"] else "Nothing is known: nothing was verified."
    if totals["by_program"]:
        yield f"{count(totals['by_program'], 'message')} {were(totals['by_program'])} changed by the program while being sent, which is no node's fault."
    if jobs["injected"]:
        yield f"{count(jobs['injected'], 'job')} with faults injected on purpose (UCI_FAULT) {were(jobs['injected'])} left out."
    if jobs["running"]:
        yield f"{count(jobs['running'], 'job')} that still {'runs' if jobs['running'] == 1 else 'run'} {were(jobs['running'])} left out."
    yield from place_sentences(history)


def place_sentences(history):
    """What the damage has in common."""
    named = [place for place in history["places"] if place["named"]]
    for place in named:
        yield describe(place)
    if history["totals"]["damaged"] and not named:
        why = "" if history["blamed"] else " No machine is to blame for causes like these."
        yield f"No node, cable or switch stands out.{why}"
    if named and not history["has_topology"]:
        yield "Cables and switches are not known: --topology."


def describe(place):
    """A named place, with what speaks for it."""
    traffic = f", and {share(place['traffic_share'], 1)} of all messages (estimated), {place['times']:.3g} times as many as by chance" \
        if place["traffic_share"] is not None else ""
    rate = f"; {place['per_gib']:.3g} damaged per GiB" if place["per_gib"] is not None and place["traffic_share"] is not None else ""
    common = "; ".join(f"{name} {value}" for name, (value, _) in place["common"].items())
    return (f"{place['text'][0].upper()}{place['text'][1:]}: {share(place['damaged'], place['of'])} of the damage ({count(place['damaged'])}, in "
            f"{count(place['jobs'], 'job')}, {count(place['not_repaired'])} not repaired){traffic}{rate}{f'; {common}' if common else ''}.")
