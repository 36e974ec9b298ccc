# SPDX-License-Identifier: BSD-3-Clause
"""Is what two runs of a program have printed the same? Lines of different ranks come in any order."""
import filecmp
from collections import Counter

SHOWN = 100            # characters of a line
LIMIT = 256 << 20      # bytes: larger outputs are compared byte by byte alone


def compare_outputs(first, second):
    """(state, where) of two files. State is "same", "other order", or "differs", and then where is (line of the first, its number, line of the
    second, its number): the first line of each that the other has not, None if there is none."""
    if filecmp.cmp(first, second, shallow=False):
        return "same", None
    if max(first.stat().st_size, second.stat().st_size) > LIMIT:
        return "differs", None
    lines = [path.read_bytes().splitlines() for path in (first, second)]
    counts = [Counter(those) for those in lines]
    if counts[0] == counts[1]:
        return "other order", None
    return "differs", (*find_surplus(lines[0], counts[1]), *find_surplus(lines[1], counts[0]))


def find_surplus(lines, others):
    """(line, its number from 1): the first that there are fewer of among the others; (None, 0) if there is none."""
    left = others.copy()
    for number, line in enumerate(lines, start=1):
        if left[line] == 0:
            return shorten(line), number
        left[line] -= 1
    return None, 0


def shorten(line):
    """A line that can be shown."""
    text = line.decode(errors="backslashreplace")
    text = "".join(char if char.isprintable() else "?" for char in text)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."


def describe(state, where, twin):
    """What is said of twin's output beside that of twin 0."""
    if state == "same":
        return f"twin {twin} has printed the same"
    if state == "other order":
        return f"twin {twin} has printed the same lines in another order"
    if where is None:
        return f"twin {twin} has printed something else"
    line, number, other, other_number = where
    parts = [f"line {number} of twin 0, '{line}', is not in twin {twin}" if number else "",
             f"line {other_number} of twin {twin}, '{other}', is not in twin 0" if other_number else ""]
    return "differs: " + "; ".join(filter(None, parts))
