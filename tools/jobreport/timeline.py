# SPDX-License-Identifier: BSD-3-Clause
"""When damage was seen: records in bins of an even length, by verdict, cause or class."""
import itertools
from collections import Counter

from jobreport.wording import clean

BINS = 120   # at most
SERIES = 6   # told apart, with the others
LENGTHS = [.01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400]


def bin_length(seconds):
    """The shortest even length that needs no more than BINS bins."""
    lengths = itertools.chain(LENGTHS, (LENGTHS[-1] << doubled for doubled in itertools.count(1)))
    return next(length for length in lengths if seconds / length < BINS)


def timeline(ticks, tick_length):
    """For JSON: bins from "begin" on, "length" seconds each, and the numbers in them. None if no record has a time.
    @param ticks  records by (tick, verdict, cause, class); a tick is so many tick_length since the epoch, or -1."""
    timed = [tick for tick, *_ in ticks if tick >= 0]
    if not timed:
        return None
    ticks_per_bin = max(1, round(bin_length((max(timed) - min(timed)) * tick_length) / tick_length))
    length = round(ticks_per_bin * tick_length, 2)
    first = min(timed) // ticks_per_bin
    bins = max(timed) // ticks_per_bin - first + 1
    views = {}
    for position, name in enumerate(("verdict", "cause", "class"), start=1):
        views[name] = series_of(ticks, position, ticks_per_bin, first, bins)
    return {"begin": round(first * length, 2), "length": length, "bins": bins, "views": views,
            "without_time": sum(number for (tick, *_), number in ticks.items() if tick < 0)}


def series_of(ticks, position, ticks_per_bin, first, bins):
    """[name, numbers of all bins] by one part of the key, the most frequent first."""
    totals = Counter()
    for key, number in ticks.items():
        totals[key[position]] += number if key[0] >= 0 else 0
    names = [name for name, number in totals.most_common() if number]
    kept = names if len(names) <= SERIES else names[:SERIES - 1]
    rows = {name: [0] * bins for name in kept}
    if len(names) > len(kept):
        rows["others"] = [0] * bins
    for key, number in ticks.items():
        if key[0] >= 0:
            rows[key[position] if key[position] in rows else "others"][key[0] // ticks_per_bin - first] += number
    return [[clean(name), numbers] for name, numbers in rows.items()]
