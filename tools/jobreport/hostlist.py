# SPDX-License-Identifier: BSD-3-Clause
"""Names of hosts, many in a short text, as Slurm has them: node[1-3,7]."""
import itertools
import math
import re

from jobreport.wording import as_ranges, clean

NAMES = 1 << 20  # that one list may stand for
BRACKET = re.compile(r"\[([^\[\]]*)\]")


class HostlistError(ValueError):
    """A text that is no such list."""


def expand(text):
    """Slurm's lists of names: n[0-2,7],gpu[01-16] as n0, n1, n2, n7, gpu01, ..."""
    names = []
    for part in re.findall(r"(?:\[[^\[\]]*\]|[^,\[\]])+|[\[\]]", text):
        if part in "[]":
            raise HostlistError(f"a bracket without its other in {clean(text)}")
        pieces = BRACKET.split(part)  # texts and lists of numbers in turns
        choices = [numbers_of(piece) if index % 2 else [piece] for index, piece in enumerate(pieces)]
        if len(names) + math.prod(map(len, choices)) > NAMES:
            raise HostlistError(f"more than {NAMES} names in {clean(text)}")
        names += map("".join, itertools.product(*choices))
    return names


def numbers_of(text):
    """0-2,7 as texts, as wide as the first of each range."""
    found = []
    for part in text.split(","):
        match = re.fullmatch(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", part)
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if not first <= last < first + NAMES:
            raise HostlistError(f"no range of numbers: [{clean(text)}]")
        found += [f"{number:0{len(match[1])}}" for number in range(first, last + 1)]
    return found


def fold(names):
    """node1, node2, node3, login as login,node[1-3]. 08 and 8 are different names."""
    groups, found = {}, []
    for name in set(names):
        match = re.fullmatch(r"(.*?)(\d+)(\D*)", name)
        if match:
            groups.setdefault((match[1], match[3]), []).append(match[2])
        else:
            found.append(name)
    for (before, after), numbers in groups.items():
        is_padded = any(number.startswith("0") for number in numbers)
        for width in sorted({len(number) if is_padded else 0 for number in numbers}):
            alike = sorted(int(number) for number in numbers if not is_padded or len(number) == width)
            text = ",".join(f"{first:0{width}}" if first == last else f"{first:0{width}}-{last:0{width}}" for first, last in as_ranges(alike))
            found.append(f"{before}[{text}]{after}" if len(alike) > 1 else f"{before}{text}{after}")
    return ",".join(sorted(found))
