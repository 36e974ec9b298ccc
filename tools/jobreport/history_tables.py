# SPDX-License-Identifier: BSD-3-Clause
"""Damage over many jobs by node, device, transports, cause and month: rows of numbers, the worst first."""
import time
from collections import Counter

from jobreport.maps import natural
from jobreport.wording import count, size

ROWS = 12  # of a table that people read; --json has all
HURT = [["jobs", "Jobs", "count"], ["damaged", "Damaged", "count"], ["not_repaired", "Not repaired", "count"]]
TRAFFIC = [["messages", "Verified", "count"], ["bytes", "Bytes", "size"], ["per_gib", "Per GiB", "rate"]]
TABLES = (("node", "By node", [["jobs", "Jobs", "count"], ["received", "Received damaged", "count"], ["sent", "Sent, damaged", "count"],
                               ["not_repaired", "Not repaired", "count"], *TRAFFIC]),
          ("device", "By device of the receiver", HURT), ("transports", "By transports", HURT), ("cause", "By cause", HURT),
          ("month", "By month", [*HURT, *TRAFFIC]))


class Rows:
    """Of one table, by name."""

    def __init__(self):
        self.rows, self.jobs = {}, {}

    def add(self, name, job=None, **amounts):
        """Add amounts to a row. @param job  that it is about"""
        self.rows.setdefault(name, Counter()).update(amounts)
        if job is not None:
            self.jobs.setdefault(name, set()).add(job)


def tables_of(jobs, topology):
    """All of them, for JSON."""
    tables = {name: Rows() for name, _, _ in TABLES}
    for number, entries in enumerate(jobs):
        for entry in entries:
            add_entry(tables, number, entry, topology)
    return [{"name": name, "title": title, "columns": columns, "rows": finish(tables[name], columns, name == "month")} for name, title, columns in TABLES]


def add_entry(tables, job, entry, topology):
    """Into the tables that know traffic, and its damage."""
    node, month = topology.node(entry["node"]), time.strftime("%Y-%m", time.gmtime(entry["time"]))
    tables["node"].add(node, job, messages=entry["messages"], bytes=entry["bytes"])
    tables["month"].add(month, job, messages=entry["messages"], bytes=entry["bytes"])
    for kind in entry["damage"]:
        number = kind["messages"]
        amounts = {"damaged": number, "not_repaired": number if kind["verdict"] == "not repaired" else 0}
        tables["cause"].add(kind["cause"], job, **amounts)
        if kind["verdict"] != "source changed":
            tables["device"].add(f"{node} {kind['device']}", job, **amounts)
            tables["transports"].add(kind["transports"], job, **amounts)
            tables["month"].add(month, job, **amounts)
            tables["node"].add(node, job, received=number, **amounts)
            if kind["peer"] != "unknown":
                tables["node"].add(topology.node(kind["peer"]), job, sent=number)


def finish(table, columns, is_by_name):
    """Rows with all columns, in order."""
    rows = []
    for name, amounts in table.rows.items():
        row = {"name": name} | {key: amounts[key] for key, _, _ in columns} | {"jobs": len(table.jobs[name])}
        if "per_gib" in row:
            row["per_gib"] = amounts["damaged"] / (row["bytes"] / 2**30) if row["bytes"] else None
        rows.append(row)
    return sorted(rows, key=lambda row: natural(row["name"]) if is_by_name else (-weight(row), natural(row["name"])))


def weight(row):
    """What a row is worth."""
    return row["damaged"] if "damaged" in row else row["received"] + row["sent"]


def shown(table):
    """(rows that people see, how many are left out): those without damage only where there is room."""
    rows = table["rows"] if table["name"] in ("node", "month") else [row for row in table["rows"] if weight(row)]
    rows = rows[-ROWS:] if table["name"] == "month" else rows[:ROWS]
    return rows, len(table["rows"]) - len(rows)


def cell(row, column):
    """A number of a row as text."""
    key, _, kind = column
    value = row[key]
    return "" if value is None else size(value) if kind == "size" else f"{value:.3g}" if kind == "rate" else count(value)
