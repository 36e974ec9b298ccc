# SPDX-License-Identifier: BSD-3-Clause
"""Numbers, sizes, times and names for people, and text from records that is safe to show."""
import datetime

TEXT_LIMIT = 200  # characters of one value of a record that are shown


def clean(value, limit=TEXT_LIMIT):
    """A value of a record as text. What a terminal or a page could take for more than text (control characters, lone
    surrogates, changes of direction) is written as its number."""
    if value is None:
        return "unknown"
    text = value if isinstance(value, str) else repr(value)
    if len(text) > limit:
        text = text[:limit] + "..."
    return text if text.isprintable() else "".join(
        char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)


def count(number, noun=None, nouns=None):
    """1234567 as 1,234,567; with a noun in the right number behind."""
    text = f"{number:,}"
    if noun is None:
        return text
    return f"{text} {noun if number == 1 else nouns or noun + 's'}"


def were(number):
    """What goes with so many."""
    return "was" if number == 1 else "were"


def size(number):
    """Bytes in the largest binary unit that leaves a number of at least 1."""
    value = float(number)
    for unit in ("bytes", "KiB", "MiB", "GiB", "TiB"):
        if value < 1024 or unit == "TiB":
            break
        value /= 1024
    if unit == "bytes":
        return f"{number:,} byte{'' if number == 1 else 's'}"
    return f"{value:,.4g} {unit}" if value < 1000 else f"{value:,.0f} {unit}"


def share(part, whole):
    """A part in percent, which says 0 and 100 only where that is exact."""
    if not whole or not part:
        return "0 %"
    if part == whole:
        return "100 %"
    percent = 100 * part / whole
    return "< 1 %" if percent < 1 else "> 99 %" if percent > 99 else f"{percent:.0f} %"


def listing(names, limit=8):
    """The first of many names, and how many more there are."""
    names = list(names)
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {count(more)} more" if more > 0 else "")


def rank(number):
    """A rank, or that it is not known."""
    return f"rank {number}" if number >= 0 else "a rank that is not known"


def as_ranges(numbers):
    """[(first, last)] of numbers in order."""
    found = []
    for number in numbers:
        if found and number == found[-1][1] + 1:
            found[-1] = (found[-1][0], number)
        else:
            found.append((number, number))
    return found


def name_ranges(ranges):
    """1, 4-7, as a list."""
    return [str(first) if first == last else f"{first}-{last}" for first, last in ranges]


def ranks_of(ranks):
    """'rank 3', 'ranks 0-3, 5'"""
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {listing(name_ranges(as_ranges(sorted(ranks))), 16)}"


def count_ranges(ranges):
    """How many numbers there are in [(first, last)]."""
    return sum(last - first + 1 for first, last in ranges)


def instant(seconds):
    """Seconds since the epoch as ISO 8601 in UTC; as they are if no calendar has them."""
    try:
        return datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc).strftime("%Y-%m-%d %H:%M:%S.%f")[:-3] + " UTC"
    except (OverflowError, ValueError, OSError):
        return f"{seconds:.3f} s"
