#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Does each layer write its own state, and no other's?

usage: tests/ownership.py [BUILD_DIR]            (default build/, for its compile_commands.json)
       tests/ownership.py --all [BUILD_DIR]      print who writes which member, of the parts and of the structs put together of them

State is put together of parts: a struct of pipeline/ROOM/*_part.h is ROOM's, and only files of ROOM write its members. What is beside the
parts, in a struct that holds some, is of the room that declares that struct. A write is an assignment, ++ or --, and the address of a member
given to somebody who may write there: not through a pointer to const, not to a function of the room itself, and not to one of the room that
declares the member's type, whose business it is then.

Found in what clang's parser makes of each source (libclang), so that macros, inline functions and pointers to parts count as what they are.
Runs under Debian's Python, for which Debian has the bindings. Ends with "N passed, N failed, N skipped"; exit status 1 if any failed.
"""
import collections
import functools
import json
import os
import re
import shlex
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from clang.cindex import CursorKind, Index, TypeKind  # Debian: python3-clang

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("pipeline", "ucx_plugin")
MEMBERS_MAX = 25
TRANSPARENT = (CursorKind.PAREN_EXPR, CursorKind.UNEXPOSED_EXPR, CursorKind.CSTYLE_CAST_EXPR)
CHANGES = ("++", "--")
RAW = ("uci_list", "uci_seq_list")  # types without a room of their own
CONTROL = """
#include <string.h>
#include "base/peer.h"
#include "conversation/conversation.h"
void uci_control(uci_peer_t *peer, uci_link_rx_t *rx, const uci_peer_t *other);
void uci_control(uci_peer_t *peer, uci_link_rx_t *rx, const uci_peer_t *other)
{
    peer->rx.next = 1; /* wrong */
    peer->rx.next += 1; /* wrong */
    ++peer->rx.next; /* wrong */
    peer->rx.next++; /* wrong */
    rx->next = 1; /* wrong */
    (&peer->rx)->next = 1; /* wrong */
    peer->rx = other->rx; /* wrong */
    peer->uid = 1; /* wrong */
    memset(&peer->rx, 0, sizeof(peer->rx)); /* wrong */
    memset(&(peer->rx.next), 0, 1); /* wrong */
    uci_list_del(&peer->rx.suspect_link); /* wrong */
    uci_seq_list_add(&peer->rx.held, NULL); /* wrong */
    uci_conversation_close(&peer->conversation);
    (void)memcmp(&peer->rx, &other->rx, sizeof(other->rx));
    peer->worker = (peer->rx.next == other->rx.next) ? peer->worker : NULL; /* wrong */
}
"""


@functools.lru_cache(None)
def place_of_file(name):
    """Where a file is, below ROOT; None: elsewhere."""
    path = Path(os.path.realpath(name))
    return path.relative_to(ROOT) if path.is_relative_to(ROOT) else None


def place_of(cursor):
    """Where a cursor is, below ROOT; None: elsewhere."""
    file = cursor.location.file
    return place_of_file(file.name) if file else None


def room_of(place):
    """pipeline/link/foo.c -> link, core/match/foo.c -> core/match, ucx_plugin/hooks/foo.c -> ucx_plugin."""
    if place.parts[0] == "core":
        return "/".join(place.parts[:2])
    return place.parts[1] if place.parts[0] == "pipeline" and len(place.parts) > 2 else place.parts[0]


def is_part(place):
    """Is this a header whose structs are one room's?"""
    return place is not None and place.name.endswith("_part.h")


def children(cursor):
    """The cursors within it."""
    return list(cursor.get_children())


def stripped(cursor):
    """Without parentheses and casts."""
    while cursor.kind in TRANSPARENT and len(children(cursor)) >= 1:
        cursor = children(cursor)[-1]
    return cursor


def struct_of(member):
    """The struct that declares a member, through anonymous ones; None: this is no member."""
    field = member.referenced if member.kind == CursorKind.MEMBER_REF_EXPR else None
    struct = field.semantic_parent if field is not None else None
    while struct is not None and struct.is_anonymous() and struct.semantic_parent.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL):
        struct = struct.semantic_parent
    return struct


def members_along(cursor):
    """The members that an expression is within, from the innermost outwards, as long as they hold each other by value."""
    cursor = stripped(cursor)
    while cursor.kind in (CursorKind.MEMBER_REF_EXPR, CursorKind.ARRAY_SUBSCRIPT_EXPR):
        inner = children(cursor)
        if cursor.kind == CursorKind.MEMBER_REF_EXPR:
            yield cursor
        if not inner:
            return
        base = stripped(inner[0])
        if base.kind == CursorKind.MEMBER_REF_EXPR and base.type.get_canonical().kind == TypeKind.POINTER:
            return  # what it points to is another object
        cursor = base


def first_operand_ends_with(cursor, source, operators):
    """Is this binary operator one of these?"""
    operands = children(cursor)
    if len(operands) != 2:
        return False
    between = source[operands[0].extent.end.offset:operands[1].extent.start.offset].decode(errors="replace")
    return re.sub(r"/\*.*?\*/", "", between, flags=re.DOTALL).strip(" \n()") in operators


class Writes:
    """Who writes which member of the structs that are watched, in one translation unit."""

    def __init__(self, wanted, sources):
        self.wanted = wanted    # struct -> room
        self.found = set()      # (struct, member, writing place, line)
        self.sources = sources  # file -> its bytes, as far as they are known

    def source_of(self, cursor):
        """The bytes of the file that a cursor is in."""
        name = cursor.location.file.name
        if name not in self.sources:
            self.sources[name] = Path(name).read_bytes()
        return self.sources[name]

    def note(self, target, callee_room=None):
        """TARGET is written: the innermost member along it that is watched. CALLEE_ROOM: by a function of that room."""
        type_ = stripped(target).type.get_canonical().get_declaration()
        if callee_room is not None and self.is_method(type_, callee_room):
            return
        for member in members_along(target):
            struct = struct_of(member)
            name = struct.spelling if struct is not None else ""
            if name in self.wanted:
                if callee_room is None or callee_room != self.wanted[name]:
                    self.found.add((name, member.spelling, str(place_of(target)), target.location.line))
                return

    def is_method(self, declaration, room):
        """Does a function of the room that declares a type work on one? Then it is that room's business; but lists are taken apart by anybody."""
        place = place_of(declaration)
        return place is not None and room_of(place) == room and declaration.spelling not in RAW

    def call(self, cursor):
        """The addresses that a call gives to who may write there."""
        callee = cursor.referenced
        callee_place = place_of(callee) if callee is not None else None
        room = room_of(callee_place) if callee_place else None
        parameters = list(callee.type.argument_types()) if callee is not None and callee.type.kind == TypeKind.FUNCTIONPROTO else []
        for number, argument in enumerate(cursor.get_arguments()):
            if number < len(parameters) and parameters[number].get_pointee().is_const_qualified():
                continue
            given = stripped(argument)
            if given.kind == CursorKind.UNARY_OPERATOR and self.is_address(given):
                self.note(children(given)[0], room)

    def is_address(self, cursor):
        """Is this unary operator &?"""
        return self.source_of(cursor)[cursor.extent.start.offset:cursor.extent.start.offset + 1] == b"&"

    def visit(self, cursor):
        """This cursor, and all within."""
        for child in cursor.get_children():
            if cursor.kind != CursorKind.TRANSLATION_UNIT or place_of(child):
                self.visit(child)
        if cursor.kind == CursorKind.COMPOUND_ASSIGNMENT_OPERATOR:
            self.note(children(cursor)[0])
        elif cursor.kind == CursorKind.BINARY_OPERATOR and first_operand_ends_with(cursor, self.source_of(cursor), ("=",)):
            self.note(children(cursor)[0])
        elif cursor.kind == CursorKind.UNARY_OPERATOR:
            text = self.source_of(cursor)[cursor.extent.start.offset:cursor.extent.end.offset].decode(errors="replace")
            if text.startswith(CHANGES) or text.endswith(CHANGES):
                self.note(children(cursor)[0])
        elif cursor.kind == CursorKind.CALL_EXPR:
            self.call(cursor)


def parse(entry, path=None, text=None):
    """The translation unit of an entry of compile_commands.json, or what TEXT would be at PATH."""
    words = shlex.split(entry["command"])
    arguments = [word if not word.startswith("-I") else "-I" + os.path.realpath(os.path.join(entry["directory"], word[2:]))
                 for word in words if word.startswith(("-I", "-D", "-std"))]
    path = str(path or Path(entry["directory"]) / entry["file"])
    unit = Index.create().parse(path, args=arguments, unsaved_files=[(path, text)] if text else None)
    errors = [str(one) for one in unit.diagnostics if one.severity >= 3]
    if errors:
        raise ValueError(f"clang's parser can't read {path}: {errors[0]}")
    return unit


def structs_in(unit):
    """The structs of parts, and those that hold a part by value: name -> (room, number of members)."""
    structs = {}
    for cursor in unit.cursor.get_children():
        place = place_of(cursor)
        if cursor.kind != CursorKind.STRUCT_DECL or not cursor.is_definition() or place is None or place.parts[0] not in FOLDERS:
            continue
        fields = [child for child in cursor.get_children() if child.kind == CursorKind.FIELD_DECL]
        holds = any(is_part(place_of(field.type.get_canonical().get_declaration())) for field in fields
                    if field.type.get_canonical().kind == TypeKind.RECORD)
        if is_part(place) or holds:
            structs[cursor.spelling] = (room_of(place), len(fields))
    return structs


def look_at(entry, path=None, text=None):
    """(structs, writes) of one source."""
    unit = parse(entry, path, text)
    structs = structs_in(unit)
    writes = Writes({name: room for name, (room, _) in structs.items()}, {str(path): text.encode()} if text else {})
    writes.visit(unit.cursor)
    return structs, writes.found


def entries_of(build):
    """The sources of the library, as in compile_commands.json."""
    entries = {entry["file"]: entry for entry in json.loads((build / "compile_commands.json").read_text())
               if (Path(entry["directory"]) / entry["file"]).resolve().relative_to(ROOT).parts[0] in FOLDERS}
    return list(entries.values())


def control(entry):
    """What is not found of a source that writes in every way where it must not, and what is that only reads."""
    _, writes = look_at(entry, ROOT / "pipeline" / "turn" / "control.c", CONTROL)
    found = {line for _, _, place, line in writes if place.endswith("/control.c")}
    lines = CONTROL.splitlines()
    return [line.strip() for number, line in enumerate(lines, 1) if ("/* wrong */" in line) != (number in found)]


def look_at_all(entries):
    """(structs, writes) of these sources."""
    structs, writes = {}, set()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        for one_structs, one_writes in pool.map(look_at, entries, chunksize=4):
            structs |= one_structs
            writes |= one_writes
    return structs, writes


def print_all(structs, writes):
    """Who writes which member."""
    rooms = collections.defaultdict(collections.Counter)
    for struct, member, place, _ in writes:
        rooms[struct, member][room_of(Path(place))] += 1
    for (struct, member), counts in sorted(rooms.items()):
        print(f"{struct}.{member}, of {structs[struct][0]}: {', '.join(f'{room} {count}' for room, count in counts.most_common())}")


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--all"]
    entries = entries_of(Path(arguments[0] if arguments else ROOT / "build").resolve())
    structs, writes = look_at_all(entries)
    if "--all" in sys.argv:
        print_all(structs, writes)
        return
    wrong = control(entries[0])
    failed = bool(wrong)
    print(f"FAIL every form of a write is found, and nothing else: {wrong}" if wrong else "ok   every form of a write is found, and nothing else")
    for struct, (room, members) in sorted(structs.items()):
        wrong = sorted(f"{place}:{line} writes {member}" for name, member, place, line in writes
                       if name == struct and room_of(Path(place)) != room)
        if members > MEMBERS_MAX:
            wrong.append(f"it has {members} members, at most {MEMBERS_MAX} may be")
        failed += bool(wrong)
        print(f"FAIL {struct} is written by {room} alone: {'; '.join(wrong)}" if wrong else f"ok   {struct} is written by {room} alone")
    print(f"{len(structs) + 1 - failed} passed, {failed} failed, 0 skipped")
    sys.exit(1 if failed or not structs else 0)


if __name__ == "__main__":
    main()
