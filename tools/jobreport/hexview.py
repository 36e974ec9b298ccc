# SPDX-License-Identifier: BSD-3-Clause
"""Bytes as they arrived above those that belong there, 16 to a line."""
import re

LINE = 16
LIMIT = 64  # bytes


def hex_view(bad, good, offset):
    """Lines of {"offset", "bad": cells, "good": cells}, a cell being (hex, character, differs). [] without bytes."""
    bad, good = to_bytes(bad), to_bytes(good)
    length = max(len(bad), len(good))
    return [{"offset": f"{offset + begin:08x}", "bad": cells(bad, good, begin), "good": cells(good, bad, begin)}
            for begin in range(0, length, LINE)]


def to_bytes(text):
    """What hex digits say; nothing if they are none."""
    if not isinstance(text, str) or not re.fullmatch(r"(?:[0-9a-fA-F]{2})*", text):
        return b""
    return bytes.fromhex(text[:2 * LIMIT])


def cells(data, other, begin):
    """The cells of one line; a byte that only the other side has is a gap."""
    found = []
    for at in range(begin, min(begin + LINE, max(len(data), len(other)))):
        if at < len(data):
            differs = at >= len(other) or data[at] != other[at]
            found.append((f"{data[at]:02x}", chr(data[at]) if 0x20 <= data[at] < 0x7f else ".", differs))
        else:
            found.append(("--", " ", True))
    return found
