#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Are docs/design.md's tables what the tables in the code say: active messages (pipeline/base/am_handler.h), the conversation (conversation.c)?
Are all of a kind named where they are listed? And are README and the pages for users, as it lists them, short enough to be read?

usage: tests/doc_tables.py            compare
       tests/doc_tables.py --write    put the code's into the page

Ends with "N passed, N failed, N skipped"; exit status 1 if any failed.
"""
import re
import sys
from fnmatch import fnmatch
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design.md"
USERS_WORDS_MAX = 12000  # of README and the pages for users together
STRING = r'"(?:[^"\\]|\\.)*"'
TEXT = rf"((?:{STRING}\s*)+)"
HANDLER = re.compile(rf"^UCI_AM_HANDLER\(\s*(\w+), (\d+),\s*{TEXT},\s*{TEXT},\s*{TEXT},\s*{TEXT},", re.MULTILINE)
AM_HANDLER = ROOT / "pipeline" / "base" / "am_handler.h"
CONVERSATION = ROOT / "pipeline" / "conversation" / "conversation.c"
STATE = re.compile(r"\[UCI_(\w+)\] =\s*\{(.*)\},")
CELL = re.compile(r"(DO|TO|NO|IGNORE)\((\w+)(?:, (\w+))?\)")


def text_of(literal):
    """What C makes of adjacent string literals."""
    return "".join(part[1:-1].replace('\\"', '"') for part in re.findall(STRING, literal)).strip()


def members(path, macro):
    """The names that a macro has, _X(name ...) each."""
    return re.findall(r"_X\((\w+)[,)]", path.read_text().split(f"#define {macro}(_X)", 1)[1].split("\n\n", 1)[0])


def messages():
    """(first line, table) of the types of active messages, by number."""
    rows = [match.groups() for path in sorted((ROOT / "pipeline").rglob("*.c")) for match in HANDLER.finditer(path.read_text())]
    rows.sort(key=lambda row: int(row[1]))
    assert sorted(row[0] for row in rows) == sorted(members(AM_HANDLER, "UCI_AM_TYPES")), "rows that are not read as they are, or types without one"
    head = "| type | | who, when | payload | answer | if it is lost |\n|---|---|---|---|---|---|\n"
    return head, head + "".join(f"| {name} | {number} | {' | '.join(text_of(text) for text in texts)} |\n".replace("|  |", "| |")
                                for name, number, *texts in rows)


def words_of(state):
    """CLOSING_HERE -> closing, here."""
    return state.lower().replace("_", ", ")


def cell_text(state, match):
    """What a cell of the table says: the next state, if it is another one, and what is done."""
    form, following, action = match.groups()
    if form == "NO":
        return "never"
    words = [] if following == state else [words_of(following)]
    words += ["nothing"] if form == "IGNORE" else [f"*{action.lower()}*"] if action else []
    return "; ".join(words) or "-"


def read_conversation():
    """(names of its events, [(state, [match of CELL for each event])])."""
    text = CONVERSATION.read_text()
    names = text_of_list(text, "uci_conversation_events")
    rows = [(match.group(1), list(CELL.finditer(match.group(2)))) for match in STATE.finditer(text)]
    assert rows and all(len(cells) == len(names) for _, cells in rows), "conversation.c's table is not read as it is"
    return names, rows


def conversation():
    """(first line, table) of the conversation: a line for each state, a column for each event."""
    names, rows = read_conversation()
    head = f"| | {' | '.join(names)} |\n|{'---|' * (len(names) + 1)}\n"
    return head, head + "".join(f"| {words_of(state)} | {' | '.join(cell_text(state, cell) for cell in cells)} |\n" for state, cells in rows)


def text_of_list(text, name):
    """The strings of an array of names."""
    begin = text.index(name)
    return [part[1:-1] for part in re.findall(STRING, text[begin:text.index("};", begin)])]


def lists_of(path, names):
    """How often a text lists all these names, in any order: nothing is between them but marks, and words that join."""
    name = rf"\b(?:{'|'.join(names)})\b"
    found = re.findall(rf"{name}(?:(?:\\n|\W|\b(?:or|default|Cm)\b)+{name})*", (ROOT / path).read_text())
    return sum(set(re.findall(name, text)) == set(names) for text in found)


def heads_of(path):
    """The words that rows of tables, and items, begin with."""
    return {word for head in re.findall(r"^(?:- |\| )([^|:]*)", (ROOT / path).read_text(), re.MULTILINE) for word in re.findall(r"\w+", head)}


def listings():
    """(what, where it is not listed in full) of each."""
    fault = (ROOT / "core/fault/fault.c").read_text()
    kinds, targets = (text_of_list(fault, f"uci_fault_{what}_names[]") for what in ("kind", "target"))
    digests = {name for path in (ROOT / "core/digest").glob("*.c") for name in re.findall(r'\.name += "(\w+)"', path.read_text())} - {"none", "auto"}
    texts = {"core/fault/fault.c": 2, "core/settings/settings.c": 1, "docs/man/uci.conf.5": 1}  # the names themselves are one list in fault.c
    for what, names, lists, page in (
            ("kinds of faults", kinds, {**texts, "tests/faults/run_faults.sh": 2}, "docs/faults.md"),
            ("targets of faults", targets, texts, "docs/faults.md"),
            ("digests", digests, {"tools/check/uci_check.c": 1, "docs/man/uci_check.1": 1, "libuci/uci.h": 1, "docs/man/uci.conf.5": 1}, "docs/digests.md"),
            ("types of messages", members(AM_HANDLER, "UCI_AM_TYPES"), {}, "docs/sealing.md")):
        missing = sorted(set(names) - heads_of(page))
        yield what, [path for path, count in lists.items() if lists_of(path, names) < count] + [f"{page} ({', '.join(missing)})"] * bool(missing)
    said = re.findall(r"`([a-z_*]+)`", (ROOT / "docs/debugging.md").read_text().split("## Read the statistics", 1)[1].split("\n## ", 1)[0])
    missing = [name for name in members(ROOT / "core/live/stats.h", "UCI_STATS_COUNTERS") if not any(fnmatch(name, pattern) for pattern in said)]
    yield "counters", [f"docs/debugging.md ({', '.join(missing)})"] * bool(missing)


def users_words():
    """Words of README and of the pages that it names for users."""
    readme = (ROOT / "README.md").read_text()
    pages = re.findall(r"\((docs/\w+\.md)\)", readme.split("- For users:", 1)[1].split("- For a site:", 1)[0])
    return sum(len((ROOT / page).read_text().split()) for page in ["README.md", *pages])


def main():
    passed = failed = 0
    for what, (head, wanted) in (("the types of messages", messages()), ("the conversation", conversation())):
        page = PAGE.read_text()
        begin = page.index(head)
        end = page.index("\n\n", begin) + 1
        if "--write" in sys.argv[1:]:
            PAGE.write_text(page[:begin] + wanted + page[end:])
            continue
        same = page[begin:end] == wanted
        passed, failed = passed + same, failed + (not same)
        print(f"ok   docs/design.md has {what} as in the code" if same else
              f"FAIL docs/design.md has not {what} as in the code: tests/doc_tables.py --write")
    if "--write" not in sys.argv[1:]:
        for what, wrong in listings():
            passed, failed = passed + (not wrong), failed + bool(wrong)
            print(f"FAIL {what}: not all of them in {', '.join(wrong)}" if wrong else f"ok   {what} are listed in full")
        words = users_words()
        short = words <= USERS_WORDS_MAX
        passed, failed = passed + short, failed + (not short)
        print(f"{'ok  ' if short else 'FAIL'} README and the pages for users have {words:,} of {USERS_WORDS_MAX:,} words")
        print(f"{passed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
