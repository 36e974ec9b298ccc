# SPDX-License-Identifier: BSD-3-Clause
"""Who waits for whom: from what the threads of all ranks are in."""
from functools import cached_property
from itertools import chain

from jobreport.calls import ALL, ANY, NONE, OUTSIDE, POLLS
from jobreport.wording import clean, ranks_of

PATIENCE = 1  # seconds in a call, below which it is not waiting
ENDING = 10   # likewise, in a job that nobody has ended: it took its launcher some seconds from the crash of a rank to the end of the others
RECENT = 5    # seconds since its last test, beyond which a thread that has tested does something else
TOGETHER = 2  # seconds between ranks that are said to be in the same call for as long
LINES = 40
SHOWN = 4     # of what a thread waits for


class Waits:
    """At a moment, in seconds since the epoch."""

    def __init__(self, processes, places, now, patience=PATIENCE):
        self.processes, self.places, self.now = {process.rank: process for process in processes}, places, now
        self.patience = patience
        self.waiting = {process.rank: [thread for thread in process.threads if self._is_waiting(thread)] for process in processes}
        self.waiting = {rank: threads for rank, threads in self.waiting.items() if threads}
        self.missing = {}  # (communicator, number of a collective): who has not come

    def _is_waiting(self, thread):
        """Is it in a call, or in a loop around a test?"""
        return thread.state != OUTSIDE and self.now - thread.since >= self.patience and (thread.state != POLLS or self.now - thread.tested <= RECENT)

    def lines(self):
        """What each rank is in, those alike together; who is outside; and what follows."""
        if not self.waiting:
            return
        for ranks, text, first, last in sorted(self._alike())[:LINES]:
            yield f"{ranks_of(set(ranks))}: {text}, for {first if first == last else f'{first} to {last}'} s"
        yield from self._others()
        yield from self.conclusions()

    def _alike(self):
        """(ranks, what they are in, for how many seconds, and up to how many): those that have come to it within TOGETHER."""
        places = {}
        for rank, threads in self.waiting.items():
            for thread in threads:
                places.setdefault(self._words(rank, thread), []).append((int(self.now - thread.since), rank))
        for text, waiting in places.items():
            waiting.sort()
            while waiting:
                first = waiting[0][0]
                group = [one for one in waiting if one[0] <= first + TOGETHER]
                waiting = waiting[len(group):]
                yield sorted(rank for _, rank in group), text, first, group[-1][0]

    def conclusions(self):
        """A deadlock, or who has not come."""
        circle = self.circle()
        if circle:
            yield self._circle_words(circle)
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
        """Ranks of which each waits for the next one, and the last for the first, and nobody can end that; [] if there is none."""
        if not self.stuck:
            return []
        path, rank = {}, min(self.stuck)  # rank: its place
        while rank not in path:
            path[rank] = len(path)
            wakers = list(self._wakers(rank))
            rank = next((peer for peer in wakers if peer in path), wakers[0])
        return list(path)[path[rank]:]

    def _circle_words(self, circle):
        names = []
        for rank, following in zip(circle, [*circle[1:], circle[0]]):
            others = set(self._wakers(rank, alternatives=True)) - {following}
            names.append(("itself" if following == rank else f"rank {following}") + (f" (or {ranks_of(others)})" if others else ""))
        tests = {rank for rank in self._all_before(circle) if any(thread.state == POLLS for thread in self.waiting[rank])}
        unless = f", if {ranks_of(tests)} only {'test' if len(tests) > 1 else 'tests'}" if tests else ""
        return f"a deadlock{unless}: rank {circle[0]} waits for " + ", which waits for ".join(names)

    def _all_before(self, ranks):
        """They, and all that would have to go on for one of them to go on."""
        found, todo = set(ranks), list(ranks)
        while todo:
            new = set(self._wakers(todo.pop())) - found
            found |= new
            todo += new
        return found

    def _wakers(self, rank, alternatives=False):
        """Who would have to go on before a rank that is stuck; only for those of its requests of which any would do, if ALTERNATIVES."""
        for thread in self.waiting[rank]:
            for wait in thread.waits if not alternatives or (thread.state != ALL and thread.count > 1) else ():
                yield from (peer for peer in (self._missing(rank, wait) if wait.collective else [wait.peer]) if peer in self.stuck)

    @cached_property
    def stuck(self):
        """Ranks that can't go on, whatever those do that can: each of their threads waits, and all that might wake it is up to one of these. Of what a thread
        waits for at once some may be there already, which is not known: so any of it might, though the call waits for all."""
        sleepers, absent, left = {}, {}, {}  # by what wakes them: a rank, a collective, or what is not known (None); by rank: those it has not come to
        for rank in self.waiting:
            for cause in self._causes(rank):
                sleepers.setdefault(cause, []).append(rank)
        for cause in sleepers:
            if isinstance(cause, tuple):
                left[cause] = len(self.missing[cause])
                for member in self.missing[cause]:
                    absent.setdefault(member, []).append(cause)
        stuck, todo = set(self.waiting), [None, *(rank for rank in self.processes if rank not in self.waiting)]
        while todo:
            cause = todo.pop()
            woken = stuck.intersection(sleepers.get(cause, ()))
            stuck -= woken
            todo += woken
            for collective in absent.get(cause, ()):
                left[collective] -= 1
                todo += [collective] * (not left[collective])
        return stuck

    def _causes(self, rank):
        """Of what a rank waits for, what each is up to."""
        if not self.processes[rank].has_all_threads:
            yield None
        for thread in self.processes[rank].threads:
            if thread not in self.waiting[rank] or not thread.waits or thread.count > len(thread.waits) or does_more(thread):
                yield None
            yield from (self._cause(rank, wait) for wait in thread.waits)

    def _cause(self, rank, wait):
        if wait.collective:
            return self._key(rank, wait) if self._missing(rank, wait) else None
        return wait.peer if wait.peer in self.waiting and not self._is_met(rank, wait) else None

    def _is_met(self, rank, wait):
        """Does the other side do what this one waits for? Then it is under way, or MPI is stuck, and not the program."""
        return any(not other.collective and other.receives != wait.receives and other.peer in (rank, NONE) and (other.tag == wait.tag or NONE in (other.tag, wait.tag)) and
                   self._may_be_same(self.processes[rank].comms.get(wait.comm), self.processes[wait.peer].comms.get(other.comm))
                   for thread in self.waiting[wait.peer] for other in thread.waits)

    @staticmethod
    def _may_be_same(ours, theirs):
        """Communicators of two processes."""
        return ours is None or theirs is None or (ours.group == theirs.group and (ours.id == theirs.id or not ours.id or not theirs.id))

    def _key(self, rank, wait):
        """The same for all who are in a collective."""
        comm = self.processes[rank].comms[wait.comm]
        return comm.id, comm.group, wait.collective

    def _missing(self, rank, wait):
        """Members of a collective's communicator that have not called it; none if it is not known which one it is."""
        comm = self.processes[rank].comms.get(wait.comm)
        if comm is None or self.processes[rank].comm_like(comm) is None:
            return []
        key = self._key(rank, wait)
        if key not in self.missing:
            self.missing[key] = [member for member in chain.from_iterable(comm.ranks) if member in self.processes and not self._has_come(member, comm, wait.collective)]
        return self.missing[key]

    def _has_come(self, member, comm, number):
        """Has it called so many collectives on what the asker knows as COMM? If that is not known it may have."""
        theirs = self.processes[member].comm_like(comm)
        return theirs is None or theirs.collectives >= number

    def _comm_name(self, rank, wait):
        comm = self.processes[rank].comms.get(wait.comm)
        return clean(comm.name) or f"a communicator of {comm.size()} ranks" if comm else "a communicator"

    def _words(self, rank, thread):
        text = self.places.at(self.processes[rank], thread.place)
        whats = [what for what in (self._what(rank, wait) for wait in thread.waits[:SHOWN]) if what]
        if whats:
            text += f", {'any of: ' if thread.state == ANY and thread.count > 1 else ''}{'; '.join(whats)}"
        if thread.count > SHOWN:
            text += "; and more" if thread.state == POLLS and thread.count > len(thread.waits) else f"; and {thread.count - SHOWN} more"
        return text + (", again and again" if thread.state == POLLS else "")

    def _what(self, rank, wait):
        if wait.collective:
            return f"on {self._comm_name(rank, wait)}" if wait.comm != NONE else ""
        if wait.peer == wait.comm == wait.place == NONE:
            return "for what is not watched"
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


def does_more(thread):
    """Does it test now and then, while it does something else? Who waits by testing is in these tests for most of the time."""
    return thread.state == POLLS and 2 * thread.outside > thread.tested - thread.since
