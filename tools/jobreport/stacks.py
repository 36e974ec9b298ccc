# SPDX-License-Identifier: BSD-3-Clause
"""Call stacks: "file+0xoffset" of a record as function and line, by eu-addr2line or addr2line.

Records name files, and records may lie: only a regular file is looked into, by a program that is given it as an argument of
an option, for a limited time, and that may not ask the network.
"""
import os
import re
import shutil
import stat
import struct
import subprocess

from jobreport.wording import clean

STACKS = 20      # distinct stacks that are shown
TIMEOUT = 20     # seconds for one file
FRAME = re.compile(r"(/.*)\+0x([0-9a-f]{1,16})", re.ASCII)
# What lies between the program and UCI: UCI itself, UCX, MPI and its bindings
BETWEEN = re.compile(r"lib(ucx_integrity|ucs_uci|uci_mpi|uc[psmt]|uct_|mpi|pmpi|open-rte|open-pal)[^/]*\.so[.0-9]*|mca_[^/]*\.so")
PROGRAMS = ("eu-addr2line", "addr2line")
ET_EXEC, PT_LOAD = 2, 1


def of_program(stack):
    """The part of a stack (innermost first) that begins with the program's own frames; all of it if there are none."""
    for number, frame in enumerate(stack):
        match = FRAME.fullmatch(frame)
        if not match or not BETWEEN.fullmatch(os.path.basename(match[1])):
            return stack[number:]
    return stack


class Symbols:
    """Answers for all frames of a report."""

    def __init__(self, last_time=None):
        self.program = next((path for path in map(shutil.which, PROGRAMS) if path), None)
        self.last_time = last_time
        self.newer, self.missing = set(), set()
        self.known = {}

    def resolve(self, frames):
        """Look up all of them at once: {frame: [(function, place), ...]}, inlined functions first."""
        files = {}
        for frame in set(frames):
            match = FRAME.fullmatch(frame)
            if match:
                files.setdefault(match[1], []).append((frame, int(match[2], 16)))
        for path, wanted in files.items():
            if self.may_read(path):
                self.known.update(self.look_up(path, wanted))

    def may_read(self, path):
        """Is it a file that is here?"""
        try:
            status = os.stat(path)
        except (OSError, ValueError):
            self.missing.add(path)
            return False
        if not stat.S_ISREG(status.st_mode) or not self.program:
            return False
        if self.last_time is not None and status.st_mtime > self.last_time:
            self.newer.add(path)
        return True

    def look_up(self, path, wanted):
        """Frames of one file. A return address is behind the call: one less lies in it."""
        base = image_base(path)
        addresses = [f"{max(offset + (base if offset < base else 0) - 1, 0):#x}" for _, offset in wanted]
        environment = {name: value for name, value in os.environ.items() if name != "DEBUGINFOD_URLS"}
        try:
            output = subprocess.run([self.program, "-C", "-f", "-i", "-a", "-e", path], input="\n".join(addresses) + "\n",
                                    capture_output=True, text=True, errors="replace", timeout=TIMEOUT, check=False,
                                    env=environment).stdout
        except (OSError, subprocess.TimeoutExpired):
            return {}
        answers = re.split(r"^0x[0-9a-f]+$", output, flags=re.MULTILINE)[1:]
        return {frame: pairs_of(answer) for (frame, _), answer in zip(wanted, answers)} if len(answers) == len(wanted) else {}

    def describe(self, frame):
        """A frame for people: {"function", "place", "file"}, of an inlined call several."""
        match = FRAME.fullmatch(frame)
        name = clean(os.path.basename(match[1])) if match else ""
        found = [{"function": function, "place": place, "file": name} for function, place in self.known.get(frame, [])
                 if function != "??"]
        return found or [{"function": "", "place": "", "file": clean(frame, 400)}]


def pairs_of(answer):
    """(function, file:line) of alternating lines; the place is empty where it is not known."""
    lines = [clean(line.strip(), 400) for line in answer.strip().splitlines()]
    return [(function.split(" inlined at ")[0], "" if place.startswith("??") else re.sub(r"(:\d+):\d+$| \(discriminator \d+\)$", r"\1", place))
            for function, place in zip(lines[::2], lines[1::2])]


def image_base(path):
    """Where a program that is not position independent begins: offsets in it are counted from there. Else 0."""
    try:
        with open(path, "rb") as file:
            header = file.read(64)
            if header[:6] != b"\x7fELF\x02\x01" or struct.unpack_from("<H", header, 16)[0] != ET_EXEC:
                return 0
            table, size, number = struct.unpack_from("<Q", header, 32)[0], *struct.unpack_from("<HH", header, 54)
            bases = []
            for index in range(number):
                file.seek(table + index * size)
                entry = file.read(56)
                if struct.unpack_from("<I", entry)[0] == PT_LOAD:
                    bases.append(struct.unpack_from("<Q", entry, 16)[0])
            return min(bases, default=0)
    except (OSError, struct.error, OverflowError, ValueError):
        return 0
