#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
What the models take from the code, as Promela: the types of active messages (rows UCI_AM_HANDLER), the states of a send, of a chunk and the rungs of the
ladder (pipeline/transfer/*_op_part.h), and the table of the conversation (pipeline/conversation/conversation.c).

usage: tables.py > tables.pml
       tables.py --change STATE EVENT ACTION NEXT    with one cell that is another one, to see whether the model finds it
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from doc_tables import CONVERSATION, HANDLER, ROOT, messages, read_conversation  # noqa: E402

ACTIONS = ("NOTHING", "ANSWER", "REPEAT", "RETURN", "IGNORE", "NEVER")
ENUMS = (("send_op_part.h", "UCI_SEND_"), ("recv_op_part.h", "UCI_CHUNK_"), ("recv_op_part.h", "UCI_RUNG_"))


def cell(match):
    """(next state, action)"""
    form, following, action = match.groups()
    return following, {"DO": action, "TO": "NOTHING", "NO": "NEVER", "IGNORE": "IGNORE"}[form]


def handlers():
    """(name, number, fields of its row) of each type of active message."""
    messages()  # are all rows read?
    for path in sorted((ROOT / "pipeline").rglob("*.c")):
        text = path.read_text()
        for match in HANDLER.finditer(text):
            yield match.group(1), match.group(2), text[match.end():text.index(");", match.end())]


def print_handlers():
    """Types; of those that carry bytes of a user's message a payload may be damaged alone; flags that a type may have."""
    rows = sorted(handlers(), key=lambda row: int(row[1]))
    for name, number, _ in rows:
        print(f"#define AM_{name} {number}")
    carriers = [f"(type_) == AM_{name}" for name, _, fields in rows if "UCI_AM_CARRIES_BYTES" in fields]
    print(f"#define CARRIES_BYTES(type_) ({' || '.join(carriers)})")
    flags = sorted({flag for _, _, fields in rows for flag in re.findall(r"UCI_AM_FLAG_(\w+)", fields)})
    for bit, flag in enumerate(flags):
        takers = [f"(type_) == AM_{name}" for name, _, fields in rows
                  if re.search(rf"\.flags = [^,]*UCI_AM_FLAG_{flag}\b", fields)]
        print(f"#define FLAG_{flag} {1 << bit}")
        print(f"#define MAY_HAVE_{flag}(type_) ({' || '.join(takers)})")
    terms = [f"(((flags_) & FLAG_{flag}) == 0 || MAY_HAVE_{flag}(type_))" for flag in flags]
    print("#define FLAGS_ARE_GOOD(type_, flags_) \\\n    (" + " && \\\n     ".join(terms) + ")")


def print_enums():
    """Members of enums, in their order."""
    for name, prefix in ENUMS:
        text = (ROOT / "pipeline" / "transfer" / name).read_text()
        members = re.findall(rf"^    {prefix}(\w+)", text, re.MULTILINE)
        assert members, f"{name}: no enum of {prefix}"
        for number, member in enumerate(members):
            print(f"#define {prefix[4:]}{member} {number}")


def print_conversation(change):
    """States, events and actions, and the table."""
    names, rows = read_conversation()
    events = re.findall(r"^    /\* (.*?) \*/$", CONVERSATION.read_text(), re.MULTILINE)[-1].split()
    assert len(events) == len(names)
    table = {(state, event): cell(match) for state, cells in rows for event, match in zip(events, cells)}
    if change:
        state, event, action, following = change
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


def main():
    """All of them."""
    print_handlers()
    print_enums()
    print_conversation(sys.argv[2:] if sys.argv[1:2] == ["--change"] else None)


if __name__ == "__main__":
    main()
