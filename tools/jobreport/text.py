# SPDX-License-Identifier: BSD-3-Clause
"""The report for a terminal."""
import textwrap

from jobreport.levels import LEVELS
from jobreport.twin_verdict import share_text
from jobreport.wording import count, listing, share, size

WIDTH = 110
WORST = 5
RANKS = 12  # that are named, in the order in which they were tainted
TIMES = 16  # lines of what was compared when


def render_text(model, is_coloured):
    """All of it, one string."""
    lines = []
    verdict = model["verdict"]
    sentence = textwrap.fill(f"{verdict['title']}: {verdict['sentence']}", WIDTH)
    lines += [f"\033[1;{LEVELS[verdict['level']].colour}m{sentence}\033[0m" if is_coloured else sentence, ""]
    lines += paragraph("where", verdict["where"]["sentence"] if verdict["where"] else "")
    for cause in verdict["causes"]:
        lines += paragraph("cause", f"{cause['text']} ({cause['share']}, {count(cause['records'], 'message')})")
        lines += paragraph("", *(f"{text} ({count(times)} x)" for text, times in cause["evidence"]))
    lines += paragraph("patterns", *model["patterns"])
    lines += paragraph("next", *verdict["next"])
    lines += paragraph("note", *verdict["notes"], *input_notes(model["inputs"]))
    lines += call_lines(model["calls"]) if model["calls"] else []
    lines += ["", *job_lines(model)] + (twin_lines(model["twins"]) if model["twins"] else [])
    for table in model["breakdowns"]:
        lines += ["", table["title"]] + [f"  {name:<40.40} {count(number):>12} {share(number, model['totals']['records']):>7}"
                                         for name, number in table["rows"]]
    lines += pair_lines(model) + damage_lines(model["statistics"])
    for number, record in enumerate(model["worst"][:WORST], start=1):
        lines += ["", *record_lines(number, record)]
    return "\n".join(lines) + "\n"


def call_lines(calls):
    """What the program's calls of MPI show."""
    lines = [line for name, key in (("rules", "misuse"), ("left", "left")) for line in paragraph(name, *(f"{text} ({ranks})" for text, ranks in calls[key]))]
    lines += paragraph("waits", *calls["waits"])
    if calls["others"]:
        lines += paragraph("note", f"Calls of {count(calls['others'], 'process', 'processes')} that the job has started (MPI_Comm_spawn) are not shown.")
    profile = calls["profile"]
    if not profile:
        return lines
    lines += ["", f"Time in MPI: {profile['seconds']:,.3f} s of {count(profile['ranks'], 'rank')}" +
              (", {:.0%} to {:.0%} of their time, {:.0%} on average".format(profile["share"][0], profile["share"][2], profile["share"][1])
               if profile["share"] else ""), f"{'Seconds':>12} {'share':>6} {'calls':>12} {'longest':>10} {'sent':>12}  call"]
    lines += [f"{row['seconds']:>12,.3f} {row['share']:>6.0%} {count(row['count']):>12} {row['longest']:>10,.3f} {size(row['bytes']):>12}  "
              f"{row['call']} at {row['place']} ({count(row['ranks'], 'rank')})" for row in profile["rows"]]
    if profile["places"] > len(profile["rows"]):
        lines.append(f"{'':>12} and {count(profile['places'] - len(profile['rows']), 'more place')}")
    for pair in profile["pairs"]:
        lines += paragraph("sent", f"rank {pair['sender']} -> rank {pair['receiver']}: {count(pair['messages'], 'message')}, {size(pair['bytes'])}")
    lines += paragraph("paths", ", ".join(f"{path['path']}: {count(path['messages'])}" + (f" ({size(path['bytes'])})" if path["bytes"] is not None else "")
                                          for path in profile["paths"]))
    return lines + paragraph("note", f"{count(profile['lost'], 'entry', 'entries')} had no room and are missing" if profile["lost"] else "")


def paragraph(label, *texts):
    """Label to the left, texts wrapped to the right of it."""
    found = []
    for text in filter(None, texts):
        found += textwrap.wrap(text, WIDTH, initial_indent=f"{label:<10}", subsequent_indent=" " * 10)
        label = ""
    return found


def input_notes(inputs):
    """What could not be read."""
    if inputs["damaged_lines"]:
        example = inputs["damaged_examples"][0]
        yield (f"{count(inputs['damaged_lines'], 'line')} of {count(inputs['lines'])} could not be read and are not counted; the first: "
               f"{example['file']}, byte {example['offset']}: {example['why']}.")
    for schema, number in inputs["newer_schemas"].items():
        yield (f"{count(number, 'record')} of the newer schema {schema} {'is' if number == 1 else 'are'} not counted: use the uci_report of "
               "the UCI that wrote them.")
    for file in inputs["unread"][:5]:
        yield f"{file['file']}: {file['why']}."
    if len(inputs["unread"]) > 5:
        yield f"{count(len(inputs['unread']) - 5, 'more file')} could not be read."


def job_lines(model):
    """What job it was, and what was read."""
    job, statistics, inputs = model["job"], model["statistics"], model["inputs"]
    yield from paragraph("job", listing(job["jobs"]))
    yield from paragraph("ranks", f"{count(job['ranks'])} on {count(len(job['hosts']), 'host')}: {listing(job['hosts'])}")
    if job["first"]:
        yield from paragraph("damage", f"first {job['first']}, last {job['last']}")
    yield from paragraph("UCI", ", ".join(filter(None, (listing(job["versions"]), f"UCX {listing(job['ucx'])}" if job["ucx"] else "",
                                                        f"mode {listing(job['modes'])}" if job["modes"] else ""))))
    yield from paragraph("read", f"{count(inputs['lines'], 'line')} of {count(inputs['event_files'], 'file')} of records, statistics of "
                         f"{count(statistics['processes'], 'process', 'processes')}")
    if statistics["ranks_without"]:
        yield from paragraph("", f"without statistics: {'rank' if statistics['ranks_without_count'] == 1 else 'ranks'} "
                             f"{listing(statistics['ranks_without'], 20)}")
    if statistics["processes"]:
        sums = statistics["sums"]
        yield from paragraph("messages", f"{count(sums.get('messages_received', 0))} received, {size(sums.get('bytes_received', 0))}; "
                             f"not verified: {statistics['unverified_text'] or 'none'}")


def twin_lines(twins):
    """What twins have found in each other."""
    lines = [""] + paragraph("twins", f"{count(twins['of'])}, mode {twins['mode']}, processes with a report: {', '.join(map(str, twins['processes']))}")
    lines += paragraph("compared", f"{count(twins['sums']['compared'], 'message')}; differed: {share_text(twins)}; corrected: "
                       f"{count(twins['sums']['corrected'])}" +
                       "".join(f"; twin {twin} was in the minority in {count(number)}" for twin, number in enumerate(twins["minority"]) if number))
    if twins["first"]:
        lines += paragraph("first", f"{twins['first']['text']}, {twins['first']['time']}")
    lines += paragraph("spread", listing((f"rank {rank} {'first' if index == 0 else f'after {seconds:.3f} s'}"
                                          for index, (rank, seconds) in enumerate(twins["tainted"]["ranks"])), RANKS))
    return lines + spread_lines(twins["spread"]) if twins["spread"] else lines


def spread_lines(spread):
    """What differed when."""
    step = -(-spread["columns"] // TIMES)
    lines = ["", f"{'Seconds':>10} {'messages':>12} {'differed':>12} {'share':>7} {'ranks':>7}"]
    for begin in range(0, spread["columns"], step):
        columns = slice(begin, begin + step)
        compared, differed = sum(spread["compared"][columns]), sum(spread["differed"][columns])
        lines.append(f"{begin * spread['length']:>10g} {count(compared):>12} {count(differed):>12} {share(differed, compared):>7} "
                     f"{count(max(spread['tainted'][columns])):>7}")
    return lines


def pair_lines(model):
    """The worst pairs of ranks."""
    if not model["pairs"]:
        return []
    return ["", f"{'From':<30} {'to':<30} {'messages':>12} {'not repaired':>13}"] + [
        f"  {name_of(pair, 'sender'):<28.28} {name_of(pair, 'receiver'):<30.30} {count(pair['records']):>12} {count(pair['lost']):>13}"
        for pair in model["pairs"][:10]]


def name_of(pair, end):
    """rank (host)"""
    return f"{pair[end] if pair[end] >= 0 else 'unknown'} ({pair[end + '_host']})"


def damage_lines(statistics):
    """Counters of damage."""
    names = [name for name in statistics["damage"] if statistics["sums"][name]]
    return ["", "Counted by all processes"] + [f"  {name.replace('_', ' '):<40} {count(statistics['sums'][name]):>12}"
                                               for name in names] if names else []


def record_lines(number, record):
    """One message with its bytes."""
    yield f"{number}. {record['verdict']}, {record['class']}, {record['sender']} to {record['receiver']}, {record['length_text']}, " \
          f"{record['time'] or 'time not recorded'}"
    for text in filter(None, (record["evidence"], record["reason"])):
        yield from textwrap.wrap(text, WIDTH, initial_indent="   ", subsequent_indent="   ")
    for line in record["hex"]:
        for label, cells in (("got", line["bad"]), ("expected", line["good"])):
            yield f"   {line['offset']}  {label:<9} {' '.join(cell[0] for cell in cells):<47}  {''.join(cell[1] for cell in cells)}"
        if any(cell[2] for cell in line["bad"]):
            yield "   " + " " * 20 + " ".join("^^" if cell[2] else "  " for cell in line["bad"]).rstrip()
    for call in record["frames"][:12]:
        yield "   at " + " ".join(filter(None, (call["function"], call["file"], call["place"])))
