#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The table of the conversation, as it is in pipeline/conversation/conversation.c, for conversation.pml.

usage: tables.py > conversation_table.pml
       tables.py --change STATE EVENT ACTION NEXT    with one cell that is another one, to see whether the model finds it
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from doc_tables import CONVERSATION, read_conversation  # noqa: E402

ACTIONS = ("NOTHING", "ANSWER", "REPEAT", "RETURN", "IGNORE", "NEVER")


def cell(match):
    """(next state, action)"""
    form, following, action = match.groups()
    return following, {"DO": action, "TO": "NOTHING", "NO": "NEVER", "IGNORE": "IGNORE"}[form]


def main():
    """The table as Promela."""
    names, rows = read_conversation()
    events = re.findall(r"^    /\* (.*?) \*/$", CONVERSATION.read_text(), re.MULTILINE)[-1].split()
    assert len(events) == len(names)
    table = {(state, event): cell(match) for state, cells in rows for event, match in zip(events, cells)}
    if sys.argv[1:2] == ["--change"]:
        state, event, action, following = sys.argv[2:]
        assert (state, event) in table and action in ACTIONS and following in dict(rows)
        assert table[state, event] != (following, action), "this is what the table says"
        table[state, event] = (following, action)
    for number, (state, _) in enumerate(rows):
        print(f"#define {state} {number}")
    for number, name in enumerate(events):
        print(f"#define EVENT_{name} {number}")
    for number, name in enumerate(ACTIONS):
        print(f"#define ACTION_{name} {number}")
    print("inline table(state_, event_, next_, action_)\n{\n    if")
    for (state, event), (following, action) in table.items():
        print(f"    :: state_ == {state} && event_ == EVENT_{event} -> next_ = {following}; action_ = ACTION_{action}")
    print("    fi\n}")


if __name__ == "__main__":
    main()
