# SPDX-License-Identifier: BSD-3-Clause
"""Who sent damage to whom, as squares of a map: of ranks, many of which share a row, and of hosts."""
import re
from collections import Counter

CELLS = 64       # rows and columns of the map of ranks at most
HOST_CELLS = 40  # and of that of hosts


def rank_map(pairs, lost, ranks):
    """Records by sender (row) and receiver (column). @param ranks how many there are; pairs with an unknown rank are left out."""
    width = max(-(-ranks // CELLS), 1)
    labels = [str(first) if width == 1 else f"{first}-{min(first + width, ranks) - 1}" for first in range(0, ranks, width)]
    cells = {}
    for (sender, receiver), number in pairs.items():
        if sender >= 0 and receiver >= 0:
            add_cell(cells, sender // width, receiver // width, number, lost.get((sender, receiver), 0),
                     f"{sender} to {receiver}")
    return finish_map(labels, cells, width)


def host_map(pairs, lost, hosts):
    """The same for hosts. Where there are too many, those without damage or with the least share the last row."""
    weight = Counter()
    for (sender, receiver), number in pairs.items():
        weight[sender] += number
        weight[receiver] += number
    shown = sorted(hosts, key=lambda host: (-weight[host], natural(host)))
    others = len(shown) - HOST_CELLS + 1 if len(shown) > HOST_CELLS else 0
    shown = sorted(shown[:len(shown) - others], key=natural)
    index = {host: number for number, host in enumerate(shown)}
    cells = {}
    for (sender, receiver), number in pairs.items():
        add_cell(cells, index.get(sender, len(shown)), index.get(receiver, len(shown)), number,
                 lost.get((sender, receiver), 0), f"{sender} to {receiver}")
    return finish_map(shown + ([f"{others} other hosts"] if others else []), cells, 1)


def add_cell(cells, row, column, number, lost, name):
    """Count into a cell, and remember its worst pair."""
    cell = cells.setdefault((row, column), [0, 0, 0, "", 0])
    cell[0] += number
    cell[1] += lost
    cell[2] += 1
    if number > cell[4]:
        cell[3], cell[4] = name, number


def finish_map(labels, cells, width):
    """For JSON: cells as [row, column, records, not repaired, pairs, worst pair, its records]."""
    return {"labels": labels, "ranks_per_cell": width, "cells": [[*place, *cell] for place, cell in sorted(cells.items())],
            "most": max((cell[0] for cell in cells.values()), default=0)}


def natural(name):
    """node9 before node10."""
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
