# SPDX-License-Identifier: BSD-3-Clause
"""How far what twins differ in has spread: ranks against time, rank against rank, and the share of all messages, from the counts that each
process keeps for itself, so that they are of all messages and not only of those that are recorded."""
import math
from collections import Counter

from jobreport import maps
from jobreport.timeline import bin_length

ROWS = 64  # of the picture of ranks at most


def twin_pictures(twins):
    """{"spread": ..., "map": ...} for JSON; None as a value of what cannot be drawn."""
    processes = [twins.widest(found) for found in twins.by_rank().values()]
    return {"spread": spread(processes, twins.ranks()), "map": pair_map(processes, twins.ranks())}


def pair_map(processes, ranks):
    """Messages that differed by sender (row) and receiver (column)."""
    pairs = Counter({(sender, process.rank): differed for process in processes for sender, _, differed in process.sources if differed})
    return maps.rank_map(pairs, {}, ranks) if pairs else None


def spread(processes, ranks):
    """Messages by time and rank. Cells are [row, column, differed, compared] where any differed."""
    timed = [process for process in processes if process.bins and any(process.bins[2])]
    if not timed or not any(any(process.bins[3]) for process in timed):
        return None
    begin = min(process.bins[0] for process in timed)
    end = max(start + seconds * len(trim(compared)) for start, seconds, compared, _ in (process.bins for process in timed))
    width = max(process.bins[1] for process in timed)
    length = round(width * max(math.ceil(bin_length(end - begin) / width - 1e-9), 1), 6)  # else columns get one bin, or two
    columns = max(int((end - begin) / length - 1e-9) + 1, 1)
    per_row = max(-(-ranks // ROWS), 1)
    compared, differed, cells, tainted = [0] * columns, [0] * columns, {}, [set() for _ in range(columns)]
    for process in timed:
        row = process.rank // per_row
        for column, number, wrong in columns_of(process.bins, begin, length, columns):
            compared[column] += number
            differed[column] += wrong
            cell = cells.setdefault((row, column), [0, 0])
            cell[0] += wrong
            cell[1] += number
            if wrong:
                tainted[column].add(process.rank)
    rows = -(-ranks // per_row)
    return {"begin": begin, "length": length, "columns": columns, "ranks_per_row": per_row,
            "labels": [str(first) if per_row == 1 else f"{first}-{min(first + per_row, ranks) - 1}" for first in range(0, ranks, per_row)],
            "rows": rows, "compared": compared, "differed": differed, "tainted": [len(found) for found in tainted],
            "cells": [[*place, *cell] for place, cell in sorted(cells.items()) if cell[0]]}


def trim(numbers):
    """Without the zeros at the end."""
    last = max((index for index, number in enumerate(numbers) if number), default=-1)
    return numbers[:last + 1]


def columns_of(bins, begin, length, columns):
    """(column, compared, differed) of each bin of a process, by its middle: bins are not longer than columns."""
    start, seconds, compared, differed = bins
    for index, (number, wrong) in enumerate(zip(compared, differed)):
        if number or wrong:
            yield min(max(int((start + (index + .5) * seconds - begin) / length), 0), columns - 1), number, wrong
