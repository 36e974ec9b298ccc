# SPDX-License-Identifier: BSD-3-Clause
"""Who waits for whom: from what the threads of all ranks are in."""
from jobreport.calls import ALL, ANY, NONE, OUTSIDE, POLLS
from jobreport.wording import clean, ranks_of

PATIENCE = 1  # seconds in a call, below which it is not waiting
RECENT = 5    # seconds since its last test, beyond which a thread that has tested does something else
LINES = 40
SHOWN = 4     # of what a thread waits for


class Waits:
    """At a moment, in seconds since the epoch."""

    def __init__(self, processes, places, now):
        self.processes, self.places, self.now = {process.rank: process for process in processes}, places, now
        self.waiting = {process.rank: [thread for thread in process.threads if self._is_waiting(thread)] for process in processes}
        self.waiting = {rank: threads for rank, threads in self.waiting.items() if threads}
        self.missing = {}  # (communicator, number of a collective): who has not come

    def _is_waiting(self, thread):
        """Is it in a call, or in a loop around a test?"""
        return thread.state != OUTSIDE and self.now - thread.since >= PATIENCE and (thread.state != POLLS or self.now - thread.tested <= RECENT)

    def lines(self):
        """What each rank is in, those alike together; who is outside; and what follows."""
        if not self.waiting:
            return
        alike = {}
        for rank, threads in self.waiting.items():
            for thread in threads:
                alike.setdefault((self._words(rank, thread), int(self.now - thread.since)), []).append(rank)
        for (text, seconds), ranks in sorted(alike.items(), key=lambda item: item[1])[:LINES]:
            yield f"{ranks_of(set(ranks))}: {text}, for {seconds} s"
        yield from self._others()
        yield from self.conclusions()

    def conclusions(self):
        """A circle, or who has not come."""
        circle = self.circle()
        if circle:
            names = [f"rank {rank}" for rank in [*circle[1:], circle[0]]] if len(circle) > 1 else ["itself"]
            yield f"a deadlock: rank {circle[0]} waits for " + ", which waits for ".join(names)
        seen = set()
        for rank, threads in self.waiting.items():
            for wait in (wait for thread in threads for wait in thread.waits if wait.collective):
                missing = self._missing(rank, wait)
                comm = self._comm_name(rank, wait)
                call = self.processes[rank].places.get(wait.place)
                if missing and (comm, tuple(missing)) not in seen:
                    seen.add((comm, tuple(missing)))
                    yield f"{ranks_of(set(missing))} {'has' if len(missing) == 1 else 'have'} not come to {clean(call.call) if call else 'a collective'} on {comm}"

    def circle(self):
        """Ranks of which each waits for the next one alone, and the last for the first; [] if there is none."""
        edges = {rank: self._waits_for(rank) for rank in self.waiting}
        done = set()
        for start in sorted(edges):
            path, rank = [], start
            while rank in edges and rank not in done and rank not in path:
                path.append(rank)
                rank = next((peer for peer in edges[rank] if peer in path), next((peer for peer in edges[rank] if peer in edges), None))
            if rank in path:
                return path[path.index(rank):]
            done.update(path)
        return []

    def _waits_for(self, rank):
        """Those without whom it can't go on: none where anybody would do."""
        found = []
        for thread in self.waiting[rank]:
            if thread.state == ALL or thread.count == 1:
                for wait in thread.waits:
                    found += self._missing(rank, wait) if wait.collective else [wait.peer] if wait.peer >= 0 else []
        return found

    def _missing(self, rank, wait):
        """Members of a collective's communicator that have not called it; none if it is not known which one it is."""
        comm = self.processes[rank].comms.get(wait.comm)
        if comm is None or self.processes[rank].comm_like(comm) is None:
            return []
        key = comm.id, comm.group, wait.collective  # all who are in it ask the same
        if key not in self.missing:
            self.missing[key] = [member for member in comm.ranks if member in self.processes and not self._has_come(member, comm, wait.collective)]
        return self.missing[key]

    def _has_come(self, member, comm, number):
        """Has it called so many collectives on what the asker knows as COMM? If that is not known it may have."""
        theirs = self.processes[member].comm_like(comm)
        return theirs is None or theirs.collectives >= number

    def _comm_name(self, rank, wait):
        comm = self.processes[rank].comms.get(wait.comm)
        return clean(comm.name) or f"a communicator of {len(comm.ranks)} ranks" if comm else "a communicator"

    def _words(self, rank, thread):
        text = self.places.at(self.processes[rank], thread.place)
        whats = [what for what in (self._what(rank, wait) for wait in thread.waits[:SHOWN]) if what]
        if whats:
            text += f", {'any of: ' if thread.state == ANY and thread.count > 1 else ''}{'; '.join(whats)}"
        if thread.count > SHOWN:
            text += f"; and {thread.count - SHOWN} more"
        return text + (", again and again" if thread.state == POLLS else "")

    def _what(self, rank, wait):
        if wait.collective:
            return f"on {self._comm_name(rank, wait)}" if wait.comm != NONE else ""
        name = "any rank" if wait.peer == NONE else f"rank {wait.peer}" if wait.peer >= 0 else "a rank of another job"
        comm = self._comm_name(rank, wait)
        return (f"{'from' if wait.receives else 'to'} {name}, {'any tag' if wait.tag == NONE else f'tag {wait.tag}'}" +
                (f", {comm}" if comm != "MPI_COMM_WORLD" and wait.comm != NONE else ""))

    def _others(self):
        """Ranks that wait in no call."""
        outside = {rank for rank, process in self.processes.items() if rank not in self.waiting and not process.ended}
        ended = {rank for rank, process in self.processes.items() if rank not in self.waiting and process.ended}
        if outside:
            yield f"{ranks_of(outside)}: outside of MPI, or just in and out of its calls"
        if ended:
            yield f"{ranks_of(ended)}: past MPI_Finalize"
