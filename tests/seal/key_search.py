#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where are the bytes of a key?

usage: key_search.py KEY_FILE PATH...

Looks for the key in files, or those below folders: as bytes and as hexadecimal digits in either case, each 16 bytes of it alone, since half a
key is too much already. Prints each place. The exit status is 1 if there is any, 2 if there was nothing to look at.
"""
import sys
from pathlib import Path

PART = 16
OVERLAP = 4 * PART
PIECE = 1 << 24


def needles_of(key):
    """What must not be found: {bytes: name}."""
    needles = {}
    for start in range(0, len(key), PART):
        part = key[start:start + PART]
        needles[part] = f"bytes {start}..{start + PART - 1}"
        needles[part.hex().encode()] = f"digits of bytes {start}..{start + PART - 1}"
        needles[part.hex().upper().encode()] = f"digits of bytes {start}..{start + PART - 1}"
    return needles


def search(path, needles):
    """Names of needles in a file, which may be large."""
    found = {}
    with open(path, "rb") as stream:
        tail, offset = b"", 0
        while True:
            data = stream.read(PIECE)
            if not data:
                return found
            text = tail + data
            for needle, name in needles.items():
                at = text.find(needle)
                if at >= 0:
                    found.setdefault(name, offset - len(tail) + at)
            offset += len(data)
            tail = text[-OVERLAP:]


def main():
    """Returns the exit code."""
    if len(sys.argv) < 3:
        print(__doc__, file=sys.stderr)
        return 2
    key_file = Path(sys.argv[1])
    needles = needles_of(bytes.fromhex(key_file.read_text(encoding="ascii").strip()))
    paths = [file for path in map(Path, sys.argv[2:]) for file in (path.rglob("*") if path.is_dir() else [path])
             if file.is_file() and file.resolve() != key_file.resolve()]
    if not paths:
        print("there is nothing to look at", file=sys.stderr)
        return 2
    places = [f"{path}: {name} at {offset}" for path in paths for name, offset in search(path, needles).items()]
    for place in places:
        print(place)
    return 1 if places else 0


if __name__ == "__main__":
    sys.exit(main())
