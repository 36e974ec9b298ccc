# SPDX-License-Identifier: BSD-3-Clause
"""The report as one dictionary: what --json writes, and what the text and the page are made from."""
import heapq
import os

from jobreport import maps
from jobreport.counters import DAMAGE
from jobreport.hexview import hex_view
from jobreport.stacks import STACKS, Symbols, of_program
from jobreport.tally import NOT_RECORDED, STACK_FRAMES, sides_of, text_of
from jobreport.timeline import timeline
from jobreport.twin_pictures import twin_pictures
from jobreport.verdict import host_of, patterns
from jobreport.wording import clean, count_ranges, instant, name_ranges, size

VERSION = 1
ROWS = 12      # of a table of kinds
PAIRS = 25     # worst pairs of ranks, and ranks with damage
CHUNKS = 256   # damaged chunks of one message that are shown

BREAKDOWNS = (("cause", "Cause"), ("class", "Class of damage"), ("verdict", "What became of it"), ("path", "Path"),
              ("carrier", "Carrier"), ("device", "Device and port"), ("transports", "Transports"), ("healed by", "Repaired by"),
              ("message kind", "Kind of message"), ("communication", "Communication"))


def build_model(job):
    """All of the report."""
    tally, hosts = job.tally, job.hosts
    worst, symbols, stacks = show_worst(tally)
    return {"uci_report": VERSION, "verdict": job.verdict, "twins": job.compared and job.compared | twin_pictures(job.twins), "job": job_of(job),
            "inputs": inputs_of(job), "patterns": patterns(tally),
            "calls": job.watched.model(job.ending.status(), job.counters.sums),
            "totals": {"records": tally.records, "wrong_bytes": tally.wrong_bytes, "unplaced": tally.unplaced,
                       **{name: tally.kinds["verdict"][name] for name in ("repaired", "not repaired", "source changed")}},
            "statistics": statistics_of(job), "time": timeline(tally.ticks, tally.tick),
            "maps": {"ranks": maps.rank_map(tally.pairs, tally.lost_pairs, job.ranks),
                     "hosts": maps.host_map(tally.host_pairs, tally.lost_host_pairs,
                                            hosts | ({"unknown"} if any("unknown" in pair for pair in tally.host_pairs) else set()))},
            "pairs": worst_pairs(tally), "breakdowns": list(breakdowns(tally)),
            "ports": [[*map(clean, key), rise] for key, rise in sorted(tally.ports.items(), key=lambda item: -item[1])],
            "worst": worst, "stacks": stacks, "symbols": symbols}


def job_of(job):
    """What job it was."""
    tally, counters = job.tally, job.counters
    is_timed = tally.first_time <= tally.last_time
    return {"jobs": list(tally.kinds["job"]), "ranks": job.ranks, "hosts": sorted(job.hosts, key=maps.natural),
            "statuses": job.ending.statuses,
            "first": instant(tally.first_time) if is_timed else None, "last": instant(tally.last_time) if is_timed else None,
            "seconds": tally.last_time - tally.first_time if is_timed else None, "versions": list(counters.about["version"]),
            "ucx": list(dict.fromkeys([*counters.about["ucx_version"], *tally.kinds["UCX"]])), "modes": list(counters.about["mode"]),
            "digests": list(counters.about["digest"] or tally.kinds["digest"])}


def inputs_of(job):
    """What was read, and what could not be."""
    run, tally = job.run, job.tally
    return {"folders": [clean(name, 4096) for name in run.folders], "event_files": len(run.events), "lines": tally.lines,
            "records": tally.records, "schemas": {str(schema): number for schema, number in sorted(tally.schemas.items())},
            "damaged_lines": tally.damaged_lines, "newer_schemas": {str(schema): number for schema, number in sorted(tally.newer.items())},
            "damaged_examples": [{"file": clean(path, 4096), "offset": offset, "why": clean(why)} for path, offset, why in tally.damaged],
            "unread": [{"file": clean(path, 4096), "why": why} for path, why in job.unreadable()],
            "twin_reports": len(run.twins), "twin_records": tally.differences.records,
            "statistics_files": len(run.statistics), "live_files": len(run.live), "captures": len(run.captures), "ignored": run.ignored}


def statistics_of(job):
    """Sums, and the processes that have counted damage."""
    counters, missing = job.counters, job.missing()
    hurt = sorted((process for process in counters.processes if process.damage), key=lambda process: -sum(process.damage.values()))
    return {"processes": len(counters.processes), "from_live_files": counters.live, "sums": dict(counters.sums),
            "damage": [name for name in DAMAGE if name in counters.sums], "ranks_without": name_ranges(missing) if counters.processes else [],
            "ranks_without_count": count_ranges(missing), "unverified_messages": counters.sums["passthrough_messages"],
            "unverified": counters.unverified(), "unverified_bytes": counters.unverified_bytes(), "unverified_text": counters.unverified_text(),
            "damaged_processes": [{"rank": process.rank, "host": process.host, "pid": process.pid if isinstance(process.pid, int) else None,
                                   "damage": process.damage} for process in hurt[:PAIRS]]}


def worst_pairs(tally):
    """The pairs of ranks with most records."""
    return [{"sender": sender, "receiver": receiver, "sender_host": tally.hosts.get(sender, "unknown"),
             "receiver_host": tally.hosts.get(receiver, "unknown"), "records": number, "lost": tally.lost_pairs[sender, receiver]}
            for (sender, receiver), number in heapq.nsmallest(PAIRS, tally.pairs.items(), key=lambda item: (-item[1], item[0]))]


def breakdowns(tally):
    """Tables of kinds; one whose only row would say that nothing was recorded is left out."""
    for name, title in BREAKDOWNS:
        found = tally.kinds[name].most_common()
        if not found or {kind for kind, _ in found} <= {NOT_RECORDED, "unknown", "none"}:
            continue
        rows = found if len(found) <= ROWS else found[:ROWS - 1]
        others = sum(number for _, number in found[len(rows):])
        yield {"name": name, "title": title, "kinds": len(found),
               "rows": [list(row) for row in rows] + ([[f"{len(found) - len(rows)} others", others]] if others else [])}


def show_worst(tally):
    """Records in full, and the stacks of all: with the names of functions."""
    symbols = Symbols(tally.last_time if tally.first_time <= tally.last_time else None)
    stacks = [(stack, number) for stack, number in tally.stacks.most_common() if stack]
    records = tally.worst_first()
    for_all = [frame for stack, _ in stacks[:STACKS] for frame in stack]
    for_all += [frame for record, _ in records for frame in stack_of(record)]
    symbols.resolve(for_all)
    shown = [show_record(record, place, symbols) for record, place in records]
    about = {"program": os.path.basename(symbols.program) if symbols.program else None, "newer": sorted(map(clean, symbols.newer)),
             "missing": sorted(map(clean, symbols.missing))}
    return shown, about, [{"records": number, "frames": frames_of(stack, symbols)} for stack, number in stacks[:STACKS]]


def stack_of(record):
    """The frames of a record; nothing if there are none."""
    stack = record.get("stack")
    return list(map(text_of, stack[:STACK_FRAMES])) if isinstance(stack, list) else []


def frames_of(stack, symbols):
    """Calls of a stack, innermost first, from the program's own on."""
    return [call for frame in of_program(stack) for call in symbols.describe(frame)]


def number_of(record, name):
    """A number of a record, or None."""
    value = record.get(name)
    return value if type(value) is int else None


def show_record(record, place, symbols):
    """One damaged message, with all that is known of it."""
    sender, receiver = sides_of(record)
    hex_offset = number_of(record, "hex_offset")
    if hex_offset is None:
        hex_offset = (number_of(record, "offset") or 0) + (number_of(record, "first") or 0)
    time = record.get("time")
    return {"verdict": clean(record["verdict"]), "cause": clean(record.get("cause", NOT_RECORDED)), "class": clean(record.get("class")),
            "evidence": clean(record["evidence"], 400) if record.get("evidence") else "",
            "reason": clean(record["reason"], 400) if record.get("reason") else "",
            "sender": end_of(record, sender), "receiver": end_of(record, receiver),
            "length": number_of(record, "length"), "length_text": size(record["length"]) if number_of(record, "length") is not None else "",
            "wrong_bytes": number_of(record, "wrong_bytes"), "path": clean(record.get("path", NOT_RECORDED)),
            "time": instant(time) if type(time) in (int, float) else "", "fields": list(fields_of(record)),
            "hex": hex_view(record.get("bad"), record.get("good"), hex_offset), "chunks": chunks_of(record),
            "frames": frames_of(stack_of(record), symbols),
            "capture": clean(record["capture"], 4096) if record.get("capture") else "",
            "place": f"{clean(place[1], 4096)}, byte {place[2]}"}


def end_of(record, side):
    """Rank and host of one side, whose fields begin so."""
    number = record.get(side + "rank")
    number = -1 if number is None else number
    return host_of({number: clean(record[side + "host"])} if record.get(side + "host") else {}, number)


SHOWN_ELSEWHERE = {"bad", "good", "ranges", "stack", "evidence", "reason", "verdict", "cause", "class", "hex_offset", "capture"}


def fields_of(record):
    """Everything else in a record, by its own names."""
    for name, value in record.items():
        if name not in SHOWN_ELSEWHERE and value is not None and value != "":
            if isinstance(value, dict):
                value = ", ".join(f"{clean(key)} {clean(part)}" for key, part in list(value.items())[:20] if part is not None)
            yield clean(name, 60), clean(value)


def chunks_of(record):
    """Damaged places of a message: [first byte, last byte, class], within its length."""
    length, found = number_of(record, "length"), []
    if not length:
        return []
    for part in record.get("ranges") if isinstance(record.get("ranges"), list) else ():
        if isinstance(part, list) and len(part) >= 4 and all(type(value) is int for value in part[:3]):
            first, last = max(part[1], 0), min(part[2], length - 1)
            if first <= last:
                found.append([first, last, clean(part[3])])
    if not found and number_of(record, "wrong_bytes"):
        begin = number_of(record, "offset") or 0
        first, last = begin + (number_of(record, "first") or 0), begin + (number_of(record, "last") or 0)
        if first <= last < length:
            found.append([first, last, clean(record.get("class"))])
    return found[:CHUNKS]
