# SPDX-License-Identifier: BSD-3-Clause
"""The history of damage for a terminal."""
from jobreport.history_tables import cell, shown
from jobreport.levels import LEVELS
from jobreport.text import paragraph
from jobreport.wording import count, share

NAME = 36  # characters


def render_history(history, is_coloured):
    """All of it, one string."""
    jobs, colour = history["jobs"], LEVELS[history["verdict"]["level"]].colour
    lines = paragraph("history", *history["verdict"]["sentences"])
    if is_coloured and lines:
        lines[0] = f"\033[1;{colour}m{lines[0]}\033[0m"
    lines += paragraph("in all", *common_lines(history))
    lines += paragraph("drain", *(f"{node['node']} ({node['reason']})" for node in history["drain"]))
    lines += paragraph("", *(f"not for {place['place']}: {place['reason']}" for place in history["spared"]))
    lines += paragraph("jobs", f"{count(jobs['counted'])} on {count(jobs['nodes'], 'node')}" +
                       (f", {jobs['first']} to {jobs['last']}" if jobs["first"] else ""))
    lines += paragraph("read", read_text(history["inputs"], jobs), *(f"{file['file']}: {file['why']}" for file in history["inputs"]["unread"]))
    for table in history["tables"]:
        lines += table_lines(table)
    return "\n".join(lines) + "\n"


def common_lines(history):
    """What is in nearly all of the damage, beside what is named."""
    for name, (value, number) in history["common"].items():
        yield f"{name} {value}: {count(number)} (how much intact traffic has it is not known)"
    for place in history["places"]:
        if not place["named"]:
            part = "" if place["traffic_share"] is None else f", and {share(place['traffic_share'], 1)} of all messages"
            yield f"{place['text']}: {share(place['damaged'], place['of'])} of the damage{part}: {place['verdict']}"


def read_text(inputs, jobs):
    """What was read."""
    return (f"{count(inputs['folders'], 'folder')}, {count(inputs['ledgers'], 'ledger')}, {count(inputs['lines'], 'line')}" +
            (f", of which {count(inputs['damaged_lines'])} could not be read" if inputs["damaged_lines"] else "") +
            (f"; {count(jobs['twice'], 'entry', 'entries')} of nodes found twice" if jobs["twice"] else ""))


def table_lines(table):
    """One table, as wide as a terminal."""
    rows, more = shown(table)
    if not rows:
        return []
    cells = [[heading for _, heading, _ in table["columns"]], *([cell(row, column) for column in table["columns"]] for row in rows)]
    widths = [max(map(len, column)) + 2 for column in zip(*cells)]
    names = [table["title"], *(f"  {row['name']}" for row in rows)]
    lines = ["", *(f"{name:<{NAME}.{NAME}}" + "".join(f"{text:>{width}}" for text, width in zip(texts, widths)) for name, texts in zip(names, cells))]
    return lines + ([f"  and {count(more, 'more row')}, in --json"] if more else [])
