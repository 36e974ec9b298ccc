# SPDX-License-Identifier: BSD-3-Clause
"""The verdict on a job: what was damaged, between whom, why as far as is known, what was verified, how the job ended, and what to do next.

Nothing is claimed that the files do not show: a place is named only where others were possible, a cause only if the library
has named it, and what is not known is said.
"""
from collections import Counter

from jobreport.ending import ended
from jobreport.levels import LEVELS, worst_first
from jobreport.tally import NOT_RECORDED
from jobreport.types import types_cause, types_finding, types_steps
from jobreport.wording import count, count_ranges, listing, name_ranges, rank, share, were

MOST = .9      # a place or cause that has this part of all damage stands out
FEW = 5        # records, below which a pattern may be chance
PATTERN = 8    # records that a pattern needs

CAUSES = {
    "source_changed": "the program has changed messages while they were being sent",
    "transport": "messages were damaged on the way",
    "memory": "data was damaged in the memory of a host",
    "ucx": "UCX, or a registration of memory, has brought wrong bytes",
    "unknown": "the cause could not be told",
    NOT_RECORDED: "the records do not name a cause",
}

CHECK_SOURCES = "Run once more with UCI_CHECK_SOURCES=on, which sees every such send and not only those that a repair looked at."
NEXT_STEPS = {
    "source_changed": [
        "Look in the program for a store to the buffer of a send that is not complete: between MPI_Isend and its MPI_Wait.",
        CHECK_SOURCES],
    "transport": [
        "Look at the error counters of the devices named below (uci_info -d, on both hosts), at cables and switch ports.",
        "Run the same job without the host or the device that stands out, or over another transport (UCX_TLS, UCX_NET_DEVICES): "
        "does the damage stay behind?"],
    "memory": [
        "Take the host that stands out from service, and test its memory; look for corrected errors in its log (EDAC, ras-mc-ctl).",
        "If no host stands out, look for a stray store: run the program with AddressSanitizer or valgrind."],
    "ucx": [
        "Run with UCX_RCACHE_ENABLE=n, and with UCX_TLS=tcp,self or another transport, and see which of them ends the damage.",
        "Report it to the project of UCX, with this report and the output of ucx_info -v; then try another version."],
    "unknown": [
        "Run with UCI_CAPTURE=FOLDER, which keeps both versions of what was damaged.",
        "Narrow it down by transport, path and host, as UCI's docs/debugging.md tells (Narrow it down)."],
    NOT_RECORDED: [
        "Narrow it down by transport, path and host, as UCI's docs/debugging.md tells (Narrow it down).",
        "Use a newer UCI, whose records name a cause with its evidence."],
}


def job_verdict(job):
    """The verdict, as a dictionary for JSON: its worst finding, then the others."""
    tally, counters = job.tally, job.counters
    about_damage = seen(job)
    findings = worst_first([*job.twin_findings(), *types_finding(tally.mistyped, counters.sums), *job.watched.findings(job.ending.status()), about_damage,
                            *gaps(job, about_damage[0] in ("lost", "repaired", "source", "failed")), *ended(job.ending, counters)])
    level, sentences = findings[0][0], [sentence for _, sentence in findings]
    compared = job.compared or {"next": [], "notes": []}
    title = LEVELS[level].title + (", on purpose" if level in ("lost", "repaired") and counters.is_all_injected() else "")
    return {"level": level, "title": title, "sentence": " ".join(sentences), "sentences": sentences,
            "where": where(tally, job.ranks, job.hosts) if tally.records else None,
            "causes": causes(tally) + types_cause(tally.mistyped, counters.sums),
            "next": list(dict.fromkeys(compared["next"] + next_steps(job, level) + types_steps(tally.mistyped, counters.sums) + job.watched.steps())),
            "notes": compared["notes"] + notes(tally, counters)}


def seen(job):
    """The finding: was anything damaged? Nothing of it is said where nothing was verified."""
    tally, counters, unfinished = job.tally, job.counters, cut_short(job)
    kinds = tally.kinds["verdict"]
    if kinds["not repaired"] or counters.is_lost():
        return "lost", damage_sentence(tally, counters, unfinished)
    if counters.damaged() or tally.records > kinds["source changed"]:
        return "failed" if unfinished else "repaired", damage_sentence(tally, counters, unfinished)
    if counters.changed() or tally.records:
        return "source", damage_sentence(tally, counters, unfinished)
    if tally.newer or tally.damaged_lines or not counters.verified():
        return nothing_known(job)
    unverified = counters.unverified_text()
    has_ended = all(level == "clean" for level, _ in ended(job.ending, counters))
    return "partly" if unverified else "clean", (
        f"{'Nothing' if has_ended else 'Up to then nothing'} was damaged: {counters.verified_text()} {were(counters.verified())} verified in "
        f"{count(len(counters.processes), 'process', 'processes')}; not verified: {unverified or 'none'}.")


def cut_short(job):
    """How many damaged parts of messages a bad end has kept from being repaired. Those of a job that runs, or has ended well, are on their way."""
    ended_badly = bool(job.ending.status()) or any(job.counters.by_state(state) for state in ("killed", "silent", "aborted"))
    return job.counters.unfinished() if ended_badly and not job.counters.by_state("running") else 0


def nothing_known(job):
    """The finding, and why: is that good news, or no news?"""
    tally, counters, is_well = job.tally, job.counters, job.ending.status() == 0
    if tally.newer or tally.damaged_lines:
        return "unknown", "It cannot be told whether anything was damaged: there are records, and none could be read."
    if counters.processes and counters.off == len(counters.processes):
        return "unknown", "Nothing was verified: UCI_MODE was off."
    sent = counters.sums["messages_sent"]
    if sent and job.missing():
        return "unknown", (f"It cannot be told whether anything was damaged: {count(sent, 'message')} {were(sent)} sent, and nobody has told of "
                           "receiving one.")
    if counters.bypassed():
        return "unprotected" if job.ending.is_required else "unknown", f"Nothing was verified. {counters.bypassed()}."
    if counters.processes:
        return "unknown", f"Nothing was verified: {counters.unverified_text() or 'no message has'} passed through UCI."
    if is_well and not job.twins.processes:
        return "unprotected" if job.ending.is_required else "unknown", "Nothing was verified: no rank had UCI ('uci_info --check' tells why)."
    return "unknown", "It cannot be told whether anything was damaged: there are no records and no statistics."


def gaps(job, is_damaged):
    """Findings: what was not verified, and what is not known."""
    counters, number, missing = job.counters, len(job.counters.processes), job.missing()
    is_well = job.ending.status() == 0
    if counters.unverified_text() and is_damaged:
        yield "partly", f"Not verified: {counters.unverified_text()}."
    if 0 < counters.off < number:
        yield "partly", f"UCI_MODE was off in {count(counters.off)} of {count(number, 'process', 'processes')}."
    if missing and number:
        why = ": without UCI" if is_well else ": without UCI, or ended before they could tell" if job.ending.statuses else ""
        yield ("unprotected" if job.ending.is_required and is_well else "partly",
               f"Of {count(count_ranges(missing), 'rank')} ({listing(name_ranges(missing))}) nothing is known{why}.")
    pending = counters.never_received()
    if pending and counters.verified() and not missing and not job.ending.status() and counters.have_ended():
        yield "partly", f"{count(pending, 'message')} {were(pending)} sent and never received."


def damage_sentence(tally, counters, unfinished):
    """How many messages, and what became of them. @param unfinished  cut_short()."""
    purpose = ", on purpose (UCI_FAULT)" if counters.is_all_injected() else ""
    if not tally.records:
        return counted_sentence(tally, counters, purpose, unfinished)
    kinds = tally.kinds["verdict"]
    lost, changed, healed = kinds["not repaired"], kinds["source changed"], kinds["repaired"]
    received = counters.sums["messages_received"]
    scale = f" of {count(received)}" if received >= tally.records else ""
    if changed == tally.records and not counters.damaged():
        return (f"{count(changed)}{scale} {'message' if changed == 1 and not scale else 'messages'} {were(changed)} changed by the program "
                f"while being sent; nothing else was damaged.")
    parts = [f"{count(lost)} could not be repaired"] if lost else []
    parts += [f"{count(healed)} {were(healed)} repaired"] if healed and (lost or changed) else []
    parts += [f"{count(changed)} had been changed by the program while being sent"] if changed else []
    outcome = "all were repaired" if not parts else ", ".join(parts)
    if healed == 1 and not parts:
        outcome = "it was repaired"
    if unfinished:
        outcome += f"; {count(unfinished, 'part')} of others {were(unfinished)} not yet repaired when the job ended"
    own = f" So did {count(counters.own_damage())} of UCI's own headers and confirmations, which came again." if counters.own_damage() else ""
    return f"{count(tally.records)}{scale} {'message' if tally.records == 1 and not scale else 'messages'} arrived damaged{purpose}; {outcome}.{own}"


def counted_sentence(tally, counters, purpose, unfinished):
    """The same where there are only counters."""
    sums, own, changed, lost = counters.sums, counters.own_damage(), counters.changed(), counters.sums["unrepaired_chunks"]
    damaged, refused = counters.damaged() - own, sums["refused_messages"]
    parts = []
    if damaged or lost:
        healed, others = sums["repaired_chunks"], [f"{count(lost)} could not be repaired"] if lost else []
        others += [f"{count(unfinished)} not yet when the job ended"] if unfinished else []
        outcome = ", ".join([f"{count(healed)} {were(healed)} repaired", *others]) if others else "all were repaired"
        parts.append(f"{count(max(damaged, lost), 'part of a message', 'parts of messages')} arrived damaged{purpose}; {outcome}")
    if refused:
        parts.append(f"{count(refused, 'message')} could not be repaired, and {were(refused)} refused")
    if changed:
        parts.append(f"{count(changed, 'part of a message', 'parts of messages')} {were(changed)} changed by the program while being sent")
    if own:
        parts.append(f"{count(own)} of UCI's own headers and confirmations arrived damaged{purpose}, and came again")
    if not (damaged or lost or refused):
        parts.append("no message was damaged" if own else "nothing else was damaged")
    what = "no record of it could be read" if tally.newer or tally.damaged_lines else "there is no record of it"
    return "; ".join(parts) + (f" ({what})." if damaged or changed else ".")


def where(tally, ranks, hosts):
    """Between whom: {"sentence", "stands_out"}, the closest description that most of the damage fits."""
    total = tally.records
    by = {"pair": tally.pairs, "receiver": totals(tally.pairs, 1), "sender": totals(tally.pairs, 0), "host pair": tally.host_pairs,
          "receiving host": totals(tally.host_pairs, 1), "sending host": totals(tally.host_pairs, 0), "host": totals(tally.host_pairs, 0, 1)}
    others = {"pair": ranks > 2, "receiver": ranks > 2, "sender": ranks > 2, "host pair": len(hosts) > 2,
              "receiving host": len(hosts) > 1, "sending host": len(hosts) > 1, "host": len(hosts) > 2}
    few = f" These are only {total}, so that it may be chance." if total < FEW else ""
    for kind, counts in by.items():
        name, number = counts.most_common(1)[0]
        if others[kind] and number >= MOST * total and is_known(name):
            return {"stands_out": kind, "sentence": f"{part(number, total).capitalize()} the damaged messages "
                                                    f"{phrase(kind, name, tally.hosts)}{other_ends(kind, name, tally.pairs)}.{few}"}
    if ranks <= 2 and len(tally.pairs) <= 2:
        return {"stands_out": None, "sentence": f"There are only two ranks, {listing(host_of(tally.hosts, number) for number in range(ranks))}."}
    pairs, receivers = len(tally.pairs), len(by["receiver"])
    scope = "All of it was on one host." if len(hosts) == 1 else f"{count(len(tally.host_pairs), 'pair')} of hosts are affected."
    return {"stands_out": None, "sentence": f"No rank{'' if len(hosts) == 1 else ', host'} or pair stands out: {count(pairs, 'pair')} of ranks, "
                                            f"{count(receivers, 'receiver')}. {scope}{few}"}


def totals(pairs, *sides):
    """Records by one side of the pairs, or by either."""
    found = Counter()
    for pair, number in pairs.items():
        found.update(dict.fromkeys((pair[side] for side in sides), number))
    return found


def is_known(name):
    """Is it the name of somebody?"""
    return all(is_known(part) for part in name) if isinstance(name, tuple) else name not in (-1, "unknown")


def host_of(hosts, number):
    """rank 3 (node1)"""
    return f"{rank(number)} ({hosts[number]})" if number in hosts else rank(number)


def phrase(kind, name, hosts):
    """What is common to the damage."""
    if kind == "pair":
        return f"went from {host_of(hosts, name[0])} to {host_of(hosts, name[1])}"
    return {"receiver": lambda: f"were received by {host_of(hosts, name)}",
            "sender": lambda: f"were sent by {host_of(hosts, name)}",
            "host pair": lambda: f"went from host {name[0]} to host {name[1]}" if name[0] != name[1] else f"stayed on host {name[0]}",
            "receiving host": lambda: f"were received on host {name}",
            "sending host": lambda: f"were sent from host {name}",
            "host": lambda: f"have host {name} at one end"}[kind]()


def other_ends(kind, name, pairs):
    """How many are at the other end of a rank that stands out: more than one, and it is likely that rank's fault."""
    number = len({pair for pair in pairs if pair[1 if kind == "receiver" else 0] == name}) if kind in ("receiver", "sender") else 0
    if number < 2:
        return ""
    return f", {'from' if kind == 'receiver' else 'to'} {count(number, 'other rank')}"


def causes(tally):
    """Causes by frequency, each with the evidence that was given most often."""
    found = []
    for cause, number in tally.kinds["cause"].most_common():
        evidence = [(text, times) for text, times in tally.evidence.get(cause, Counter()).most_common() if text is not None]
        found.append({"cause": cause, "text": CAUSES.get(cause, f"the cause is given as '{cause}'"), "records": number,
                      "share": share(number, tally.records), "evidence": [list(pair) for pair in evidence[:3]],
                      "kinds_of_evidence": len(evidence)})
    return found


def next_steps(job, level):
    """What to do, the most frequent cause first."""
    steps, tally, unverified = [], job.tally, job.counters.unverified_text()
    if level == "lost":
        steps.append("Do not use the results of this job: what could not be repaired was either refused, or delivered as it was "
                     "(UCI_ON_ERROR).")
    if job.counters.is_all_injected():
        steps.append("No more was damaged than UCI_FAULT may have damaged on purpose: to learn about the hosts, run the job without it.")
    else:
        for cause, _ in tally.kinds["cause"].most_common(2):
            steps += NEXT_STEPS.get(cause, NEXT_STEPS["unknown"])
    if job.counters.sums["sources_checked"]:
        steps = [step for step in steps if step != CHECK_SOURCES]
    if not tally.records and not tally.newer and level in ("repaired", "lost"):
        steps.append("Run once more with UCI_EVENTS set, or with uci_run: then each damaged message is recorded.")
    if level == "unknown" and not job.counters.processes:
        steps.append("Is UCI on? uci_info --check tells; and the job must have been run with UCI_STATS and UCI_EVENTS, or with uci_run.")
    if unverified:
        steps.append("See UCI's docs/protected.md for what is not verified, and why.")
    return steps


def notes(tally, counters):
    """What limits all of this, or should be known before one acts."""
    found, sums = [], counters.sums
    if sums["faults_injected"]:
        found.append(f"{count(sums['faults_injected'], 'fault')} were injected on purpose in this job (UCI_FAULT).")
    if sums["events_lost"]:
        found.append(f"{count(sums['events_lost'], 'record')} could not be written by the job, and are missing here.")
    if sums["log_dropped"]:
        found.append(f"{count(sums['log_dropped'], 'copy', 'copies')} for repairs were dropped: UCI_LOG_SIZE is too small.")
    if tally.records and counters.processes and not (sums["mismatched_chunks"] or counters.changed()):
        found.append("The statistics know of no damage, and the records do: they may be of different jobs.")
    if len(tally.kinds["job"]) > 1:
        found.append(f"The records are of {count(len(tally.kinds['job']))} jobs ({listing(tally.kinds['job'])}): ranks of the same "
                     "number are counted together.")
    if not counters.processes and tally.records:
        found.append("There are no statistics: how many messages were intact, or not verified, is not known.")
    return found


def part(number, total):
    """95 % of, or all."""
    return "all" if number == total else f"{share(number, total)} of"


def patterns(tally):
    """What is the same in too many records to be chance."""
    found = []
    devices = tally.kinds["device"]
    device, number = devices.most_common(1)[0] if devices else (None, 0)
    if len(devices) > 1 and number >= max(PATTERN, MOST * tally.records) and device != NOT_RECORDED:
        found.append(f"{part(number, tally.records).capitalize()} messages came by device {device}.")
    placed = sum(tally.alignments.values())
    if placed >= PATTERN:
        page, line = tally.alignments["page"], tally.alignments["page"] + tally.alignments["line"]
        if page >= MOST * placed:
            found.append(f"In {part(page, placed)} messages the first wrong byte is at a multiple of 4096 in its message: pages or fragments, "
                         "so rather software than flipped bits.")
        elif line >= MOST * placed:
            found.append(f"In {part(line, placed)} messages the first wrong byte is at a multiple of 64 in its message: cache lines.")
        place, number = tally.places.most_common(1)[0]
        if place is not None and number >= MOST * placed and len(tally.places) > 1 or len(tally.places) == 1:
            found.append(f"In {part(number, placed)} messages the first wrong byte is at offset {count(place)} of its message: software.")
    flipped = sum(tally.bits.values())
    bit, number = tally.bits.most_common(1)[0] if flipped else (None, 0)
    if bit is not None and flipped >= PATTERN and number >= MOST * flipped:
        found.append(f"In {part(number, flipped)} bit flips it is bit {bit} of the byte: one line of a memory or a bus.")
    if tally.gets_wrong:
        found.append(f"{count(tally.gets_wrong, 'RDMA get')} ended well and brought other bytes than the sender had just digested: "
                     "a stale registration, or a wrong key.")
    return found
