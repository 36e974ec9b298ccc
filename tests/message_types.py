#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is docs/design.md's table of active messages what the rows in the code say (pipeline/base/am_handler.h)?

usage: tests/message_types.py            compare
       tests/message_types.py --write    put the rows into the page

Ends with "N passed, N failed, N skipped"; exit status 1 if any failed.
"""
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design.md"
HEAD = "| type | | who, when | payload | answer | if it is lost |\n|---|---|---|---|---|---|\n"
STRING = r'"(?:[^"\\]|\\.)*"'
TEXT = rf"((?:{STRING}\s*)+)"
ROW = re.compile(rf"^UCI_AM_HANDLER\(\s*(\w+), (\d+),\s*{TEXT},\s*{TEXT},\s*{TEXT},\s*{TEXT},", re.MULTILINE)


def text_of(literal):
    """What C makes of adjacent string literals."""
    return "".join(part[1:-1].replace('\\"', '"') for part in re.findall(STRING, literal)).strip()


def code_rows():
    """Lines of the table, by number."""
    rows = [match.groups() for path in sorted((ROOT / "pipeline").rglob("*.c")) for match in ROW.finditer(path.read_text())]
    rows.sort(key=lambda row: int(row[1]))
    return "".join(f"| {name} | {number} | {' | '.join(text_of(text) for text in texts)} |\n".replace("|  |", "| |")
                   for name, number, *texts in rows)


def main():
    page, table = PAGE.read_text(), HEAD + code_rows()
    begin = page.index(HEAD)
    end = page.index("\n\n", begin) + 1
    if "--write" in sys.argv[1:]:
        PAGE.write_text(page[:begin] + table + page[end:])
        return
    same = page[begin:end] == table
    print("ok   docs/design.md has the types of messages as they are in the code" if same else
          "FAIL docs/design.md has other types of messages than the code: tests/message_types.py --write")
    print(f"{int(same)} passed, {int(not same)} failed, 0 skipped")
    sys.exit(0 if same else 1)


main()
