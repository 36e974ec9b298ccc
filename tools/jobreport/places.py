# SPDX-License-Identifier: BSD-3-Clause
"""Places of calls in words: "exchange (ring.c:42)", by what addr2line says of their stacks."""
import os
import re

from jobreport.stacks import Symbols, of_program
from jobreport.wording import clean

AFTER_MAIN = re.compile(r"__libc_start|_start$|start_thread|^clone")
CALLS = 3  # of a stack that are told


class Places:
    """Of all processes."""

    def __init__(self, processes):
        self.symbols = Symbols()
        self.symbols.resolve({frame for process in processes for place in process.places.values() for frame in of_program(place.stack)})
        self.known = {}

    def words(self, stack):
        """'exchange (ring.c:42), main (ring.c:60)'"""
        if stack not in self.known:
            self.known[stack] = ", ".join(self.calls(stack)) or "a place that is not known"
        return self.known[stack]

    def calls(self, stack):
        """The innermost calls of the program."""
        found = []
        for call in (call for frame in of_program(stack) for call in self.symbols.describe(frame)):
            if AFTER_MAIN.match(call["function"]) or len(found) == CALLS:
                break
            place = os.path.basename(call["place"]) or call["file"]
            found.append(f"{call['function']} ({place})" if call["function"] else place)
            if call["function"] in ("main", "MAIN__"):
                break
        return found

    def at(self, process, number):
        """'MPI_Recv at exchange (ring.c:42), main (ring.c:60)'"""
        place = process.places.get(number) if type(number) is int else None
        return f"{clean(place.call)} at {self.words(place.stack)}" if place else "a call that is not known"
