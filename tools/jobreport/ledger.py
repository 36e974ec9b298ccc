# SPDX-License-Identifier: BSD-3-Clause
"""The ledger of nodes: a file of JSON lines, one for each job and node (node_entries.py), to which lines are only ever appended.

Several may append at once, on one file system that has locks. What a crash, or a full disk, has left of a line is no line; it is told, and the next
line begins after it. Users may have had a hand in what is in it: each line is looked at before it is used.
"""
import contextlib
import fcntl
import json
import os

from jobreport.node_entries import COUNTED, TEXTS, VERSION
from jobreport.reading import lines_of, parse_object
from jobreport.twins import is_count, is_time
from jobreport.wording import clean


def read_ledger(path):
    """(offset, entry, None) or (offset, None, what is wrong with it) of each line. Raises OSError."""
    for offset, line in lines_of(path, 0, os.stat(path).st_size):
        if line is None or line.strip():
            entry, complaint = parse_object(line)
            if entry is not None:
                entry, complaint = check(entry)
            yield offset, entry, complaint


def check(entry):
    """(an entry that is safe to use and to show, None), or (None, why it is none)."""
    version = entry.get("uci_ledger")
    if type(version) is not int or version < 1:
        return None, "no line of a ledger"
    if version > VERSION:
        return None, f"of a newer ledger ({clean(version, 20)}): use the uci_report of the UCI that wrote it"
    if not all(isinstance(entry.get(name), str) for name in ("id", "job", "node")):
        return None, "a job or a node that is none"
    if not is_time(entry.get("time")) or not all(is_count(entry.get(name)) for name in COUNTED):
        return None, "a number that is none"
    damage = entry.get("damage")
    if not isinstance(damage, list) or not all(is_damage(kind) for kind in damage):
        return None, "damage that is none"
    return {"uci_ledger": VERSION, **{name: clean(entry[name]) for name in ("id", "job")}, "time": entry["time"], "node": clean(entry["node"]),
            **{name: entry[name] for name in COUNTED},
            "damage": [{**{name: clean(kind[name]) for name in ("peer", *TEXTS)}, "messages": kind["messages"]} for kind in damage]}, None


def is_damage(kind):
    """One kind of damage, with all its texts."""
    return isinstance(kind, dict) and is_count(kind.get("messages")) and all(isinstance(kind.get(name), str) for name in ("peer", *TEXTS))


def append(path, entries):
    """Add those that are not there yet. @return how many that were. Raises OSError."""
    with locked(path) as file:
        known = {key(entry) for _, entry, _ in read_ledger(path) if entry}
        new = [entry for entry in entries if key(entry) not in known]
        if new:
            write(file, "".join(json.dumps(entry) + "\n" for entry in new).encode())
    return len(new)


def key(entry):
    """What there is one line of."""
    return entry["id"], entry["node"]


@contextlib.contextmanager
def locked(path):
    """The file, new or old, of which nobody else has the lock."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOCTTY, 0o644)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
    finally:
        os.close(file)


def write(file, text):
    """All of it, on lines of its own, or nothing."""
    end = os.fstat(file).st_size
    if end and os.pread(file, 1, end - 1) != b"\n":
        text = b"\n" + text
    try:
        while text:
            text = text[os.write(file, text):]
        os.fsync(file)
    except OSError:
        with contextlib.suppress(OSError):  # why it failed is what matters
            os.ftruncate(file, end)
        raise
