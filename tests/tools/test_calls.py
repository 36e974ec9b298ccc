#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Files about calls of MPI (UCI_CALLS) as uci_report reads them: who waits for whom in jobs of many ranks that are made up, what cannot be told, and files that
lie. Real jobs: tests/calls.

usage: test_calls.py UCI_REPORT. Ends with "N passed, N failed, N skipped".
"""
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from test_report import TOOL, run_tests

sys.path.insert(0, str(Path(TOOL).resolve().parent))
from jobreport import calls  # noqa: E402
from jobreport.places import Places  # noqa: E402
from jobreport.profile import paths_of  # noqa: E402
from jobreport.waits import Waits  # noqa: E402
from jobreport.watched import Watched  # noqa: E402

BEGUN, NOW = 1_800_000_000, 1_800_000_100


def make(rank, size, threads=(), collectives=0, lines=(), sends=(), ended=0, comms=((7, 5),), tested=NOW, outside=0, gone=(), since=50):
    """The bytes of a file. THREADS: (state, place, waits[, how many it waits for]); a wait: (peer, tag, comm, place, receives, collective). GONE: of the threads those
    that have ended."""
    text = b"".join(json.dumps(line).encode() + b"\n" for line in
                    [*({"comm": number, "name": f"comm {number}" if number else "MPI_COMM_WORLD", "ranks": [[0, size - 1]]} for number in range(len(comms))),
                     {"place": 0, "call": "MPI_Recv", "stack": ["/nowhere/libuci_mpi_mpich.so+0x10", "/nowhere/program+0x20"]},
                     {"place": 1, "call": "MPI_Barrier", "stack": ["/nowhere/program+0x30"]}, *lines])
    data = calls.HEAD.pack(calls.MAGIC, calls.LAYOUT, 100 + rank, rank, size, BEGUN * 10**9, ended * 10**9, 1, len(threads), len(comms), 2, size, 0, len(sends),
                           len(text), 0, f"node{rank}".encode())
    for number in range(calls.THREADS):
        state, place, waits, *count = threads[number] if number < len(threads) else (0, 0, ())
        data += calls.THREAD.pack(number not in gone, state, place, *count or [len(waits)], (NOW - since) * 10**9, outside * 10**9, tested * 10**9)
        data += b"".join(calls.WAIT.pack(*waits[slot]) if slot < len(waits) else bytes(calls.WAIT.size) for slot in range(calls.WAITS))
    data += b"".join(calls.COMM.pack(*comm, collectives) for comm in comms) + bytes(calls.COMM.size * (calls.COMMS - len(comms)))
    data += calls.PLACE.pack(3, 10**9, 5 * 10**8, 300) * 2 + bytes(calls.PLACE.size * (calls.PLACES - 2))
    data += b"".join(calls.SENT.pack(*sent) for sent in sends) + bytes(calls.SENT.size * (calls.SENDS - len(sends)))
    return data + text + bytes(calls.TEXT - len(text)) + calls.PEER.pack(1, 100) * size


def receives(peer, tag=7):
    """A thread in MPI_Recv."""
    return calls.ALL, 0, [(peer, tag, 0, 0, 1, 0)]


def sends(peer, tag=7, comm=0):
    """A thread in MPI_Send."""
    return calls.ALL, 0, [(peer, tag, comm, 0, 0, 0)]


def either(state, *peers):
    """A thread that waits for one of these, all of them, or tests them in turn."""
    return state, 0, [(peer, 7, 0, 0, 1, 0) for peer in peers]


def in_barrier(number, comm=0):
    """A thread in MPI_Barrier."""
    return calls.ALL, 1, [(calls.NONE, calls.NONE, comm, 1, 0, number)]


def lines_of(files):
    """What is told of who waits."""
    processes = [calls.Process(data) for data in files]
    return list(Waits(processes, Places(processes), NOW).lines())


class CallsTest(unittest.TestCase):
    """Jobs that do not move; then files that are none, or lie."""

    def setUp(self):
        self.work = Path(tempfile.mkdtemp(prefix="uci-calls."))
        self.addCleanup(shutil.rmtree, self.work)

    def test_a_circle_of_many(self):
        told = lines_of([make(rank, 100, [receives((rank + 1) % 100)]) for rank in range(100)])
        self.assertTrue(any(line.startswith("a deadlock: rank 0 waits for rank 1, which waits for rank 2") for line in told), told)

    def test_a_circle_behind_others(self):
        """0 to 97 wait for their next one, and so for a circle of two at the end."""
        told = lines_of([make(rank, 100, [receives(min(rank + 1, 99) if rank < 99 else 98)]) for rank in range(100)])
        self.assertIn("a deadlock: rank 98 waits for rank 99, which waits for rank 98", told)

    def test_a_rank_that_waits_for_itself(self):
        self.assertIn("a deadlock: rank 0 waits for itself", lines_of([make(0, 1, [receives(0)])]))

    def test_who_waits_for_anybody_is_in_no_circle(self):
        told = lines_of([make(0, 2, [receives(calls.NONE)]), make(1, 2, [receives(0)])])
        self.assertFalse(any("deadlock" in line for line in told), told)
        waits = [(1, 1, 0, 0, 1, 0), (2, 1, 0, 0, 1, 0)]
        told = lines_of([make(0, 3, [(calls.ANY, 0, waits)]), make(1, 3, [receives(0)]), make(2, 3)])
        self.assertFalse(any("deadlock" in line for line in told), told)
        self.assertTrue(any("any of: from rank 1, tag 1; from rank 2, tag 1" in line for line in told), told)

    def test_who_has_no_room_may_do_something(self):
        others = [(calls.OUTSIDE, 0, ())] * (calls.THREADS - 1)
        gone = range(1, calls.THREADS)
        self.assertTrue(self.has_deadlock(make(0, 2, [receives(1), *others[1:]], gone=gone), make(1, 2, [receives(0)])))
        self.assertFalse(self.has_deadlock(make(0, 2, [receives(1), *others], gone=gone), make(1, 2, [receives(0)])))

    def has_deadlock(self, *files, words="a deadlock"):
        """Is one told of?"""
        told = lines_of(files)
        found = [line for line in told if "deadlock" in line]
        self.assertTrue(all(line.startswith(words) for line in found), told)
        return bool(found)

    def test_one_of_several_may_be_there(self):
        """So who waits for several is in a deadlock only if all of those are who might wake it: whether it waits for any, for all, or tests them in turn."""
        for state, words in ((calls.ALL, "a deadlock: rank 0 waits for rank 1, which"), (calls.ANY, "a deadlock: rank 0 waits for rank 1 (or rank 2), which"),
                             (calls.POLLS, "a deadlock, if rank 0 only tests: rank 0 waits for rank 1 (or rank 2), which")):
            threads = [either(state, 1, 2)]
            self.assertFalse(self.has_deadlock(make(0, 3, threads), make(1, 3, [receives(0)]), make(2, 3)))
            self.assertFalse(self.has_deadlock(make(0, 3, threads), make(1, 3, [receives(0)]), make(2, 3, [receives(calls.NONE)])))
            self.assertFalse(self.has_deadlock(make(0, 3, threads), make(1, 3, [receives(0)])))  # of rank 2 there is no file
            self.assertTrue(self.has_deadlock(make(0, 3, threads), make(1, 3, [receives(0)]), make(2, 3, [receives(0)]), words=words))

    def test_more_than_is_known(self):
        """Of more requests than there is room for it can't be told, nor of what is not watched."""
        full = calls.ALL, 0, [(1, tag, 0, 0, 1, 0) for tag in range(calls.WAITS)]
        self.assertTrue(self.has_deadlock(make(0, 2, [full]), make(1, 2, [receives(0, 99)])))
        self.assertFalse(self.has_deadlock(make(0, 2, [(*full, calls.WAITS + 1)]), make(1, 2, [receives(0, 99)])))
        unknown = (calls.NONE, calls.NONE, calls.NONE, calls.NONE, 0, 0)
        told = lines_of([make(0, 2, [(calls.ALL, 0, [(1, 7, 0, 0, 1, 0), unknown])]), make(1, 2, [receives(0, 99)])])
        self.assertFalse(any("deadlock" in line for line in told), told)
        self.assertTrue(any("from rank 1, tag 7; for what is not watched, for 50 s" in line for line in told), told)

    def test_who_tests_now_and_then_does_something_else(self):
        for outside, waits in ((0, True), (20, True), (30, False), (50, False)):
            self.assertEqual(self.has_deadlock(make(0, 2, [either(calls.POLLS, 1)], outside=outside), make(1, 2, [receives(0)]), words="a deadlock, if rank 0 only tests"), waits)

    def test_a_message_that_is_under_way(self):
        """Its sender and receiver wait for each other, which is no deadlock of theirs; one of another tag or communicator is another one."""
        two = [(7, 5), (8, 5)]
        for other, found in ((receives(0), False), (receives(calls.NONE), False), (receives(0, calls.NONE), False), (receives(0, 8), True), (sends(0), True)):
            self.assertEqual(self.has_deadlock(make(0, 2, [sends(1)]), make(1, 2, [other])), found, other)
        for comm, found in ((0, True), (1, False)):
            self.assertEqual(self.has_deadlock(make(0, 2, [sends(1, comm=comm)], comms=two), make(1, 2, [(calls.ALL, 0, [(0, 7, 1, 0, 1, 0)])], comms=two)), found)

    def test_another_thread_may_help(self):
        outside = calls.OUTSIDE, 0, []
        self.assertFalse(self.has_deadlock(make(0, 2, [receives(1), outside]), make(1, 2, [receives(0)])))
        self.assertTrue(self.has_deadlock(make(0, 2, [receives(1), outside], gone=[1]), make(1, 2, [receives(0)])))
        self.assertTrue(self.has_deadlock(make(0, 2, [receives(1), receives(1, 8)]), make(1, 2, [receives(0)])))

    def test_a_deadlock_behind_a_collective(self):
        """Rank 0 waits for rank 1 in a barrier to which that does not come, nor will."""
        files = make(0, 3, [in_barrier(4)], 4), make(1, 3, [receives(0)], 3), make(2, 3, [in_barrier(4)], 4)
        self.assertTrue(self.has_deadlock(*files, words="a deadlock: rank 0 waits for rank 1, which waits for rank 0"))
        files = make(0, 3, [in_barrier(4)], 4), make(1, 3, [receives(2)], 3), make(2, 3, [], 3)
        self.assertFalse(self.has_deadlock(*files))

    def test_ranks_that_came_at_about_the_same_time(self):
        told = lines_of([make(rank, 4, [in_barrier(4)], 4, since=since) for rank, since in enumerate((50, 51, 40, 52))])
        self.assertTrue(any(line.startswith("ranks 0-1, 3: MPI_Barrier") and line.endswith(", for 50 to 52 s") for line in told), told)
        self.assertTrue(any(line.startswith("rank 2: ") and line.endswith(", for 40 s") for line in told), told)

    def test_a_chain_without_end_is_no_circle(self):
        told = lines_of([make(rank, 50, [receives(rank + 1)] if rank < 49 else []) for rank in range(50)])
        self.assertFalse(any("deadlock" in line for line in told), told)
        self.assertIn("rank 49: outside of MPI, or just in and out of its calls", told)

    def test_who_has_not_come(self):
        told = lines_of([make(rank, 1000, [in_barrier(4)] if rank % 100 else [], 4 if rank % 100 else 3) for rank in range(1000)])
        self.assertTrue(any(line.endswith("have not come to MPI_Barrier on MPI_COMM_WORLD") and line.startswith("ranks 0, 100, 200,") for line in told), told)

    def test_who_has_been_there_is_not_missing(self):
        told = lines_of([make(0, 2, [in_barrier(4)], 4), make(1, 2, [], 5)])
        self.assertFalse(any("not come" in line for line in told), told)

    def test_a_communicator_that_was_not_seen_being_made(self):
        """The only one of the same ranks is it; of several, on either side, it is not known which."""
        one, two = [(7, 5), (0, 5)], [(7, 5), (0, 5), (0, 5)]
        for ours, theirs, known in ((one, one, True), (one, two, False), (two, one, False), (one, one[:1], False)):
            told = lines_of([make(0, 2, [in_barrier(4, 1)], 4, comms=ours), make(1, 2, [], 3, comms=theirs)])
            self.assertEqual("rank 1 has not come to MPI_Barrier on comm 1" in told, known, told)
            self.assertFalse(any("deadlock" in line for line in told), told)

    def test_who_tested_once_does_not_wait(self):
        tests = [(calls.POLLS, 0, [(1, 7, 0, 0, 1, 0)])], [(calls.POLLS, 0, [(0, 7, 0, 0, 1, 0)])]
        self.assertEqual(lines_of([make(rank, 2, tests[rank], tested=NOW - 50) for rank in range(2)]), [])
        self.assertIn("a deadlock, if ranks 0-1 only test: rank 0 waits for rank 1, which waits for rank 0", lines_of([make(rank, 2, tests[rank]) for rank in range(2)]))

    def test_ranks_of_any_shape(self):
        for odd, wanted in (([[0, 2], [5, 5]], [0, 1, 2, 5]), ([[3, 1], [1], "x", [0, 10**12], ["0", 1]], []), ({}, []), (None, [])):
            self.assertEqual([rank for found in calls.ranks_in(odd) for rank in found], wanted)

    def test_few_bytes_do_not_take_all_memory(self):
        """256 communicators of 2^20 ranks each fit into a file, and a file may be as long as its disk is large."""
        lines = [{"comm": number, "ranks": [[0, calls.RANKS - 1]]} for number in range(calls.COMMS)]
        path = self.work / "calls.node.0"
        path.write_bytes(make(0, 1, comms=[(number, 5) for number in range(calls.COMMS)], lines=lines))
        os.truncate(path, 1 << 33)
        script = f"import resource, sys; resource.setrlimit(resource.RLIMIT_AS, (1 << 28, 1 << 28)); sys.path[:0] = {sys.path!r}\n" \
                 f"from jobreport import calls; import pathlib; found = calls.read_calls([pathlib.Path({str(path)!r})])\n" \
                 "print(len(found[0][0].comms), found[0][0].comms[255].size(), found[2])"
        told = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False).stdout
        self.assertEqual(told, f"{calls.COMMS} {calls.RANKS} []\n")

    def test_past_finalize(self):
        told = lines_of([make(0, 2, [receives(1)]), make(1, 2, ended=NOW)])
        self.assertIn("rank 1: past MPI_Finalize", told)

    def test_nobody_waits(self):
        self.assertEqual(lines_of([make(0, 2), make(1, 2)]), [])

    def job(self, *files):
        """Its Watched."""
        for number, data in enumerate(files):
            (self.work / f"calls.node.{number}").write_bytes(data)
        return Watched(sorted(self.work.glob("calls.*")))

    def test_the_end_of_a_job_is_no_deadlock(self):
        """A rank has crashed in its call, and the other one has waited until the launcher ended it."""
        self.job(make(0, 2, [receives(1)]), make(1, 2, [receives(0)]))
        end, paths = self.work / "ended.json", sorted(self.work.glob("calls.*"))
        end.touch()
        for seconds, told, expected in ((5, "", False), (5, "SIGTERM", True), (30, "", True)):
            os.utime(end, (NOW - 50 + seconds,) * 2)
            found = Watched(paths, [end], told).findings(139)
            self.assertEqual(any("a deadlock" in text for _, text in found), expected, found)

    def test_what_is_no_file_of_calls_is_told(self):
        watched = self.job(b"", b"UCICALLS", make(0, 2)[:5000], os.urandom(2 << 20), make(1, 2).replace(b"UCICALLS\4", b"UCICALLS\3"))
        self.assertEqual(watched.processes, [])
        self.assertEqual(len(watched.complaints), 5)
        self.assertIsNone(watched.model(1, {}))

    def test_damage_anywhere_raises_nothing(self):
        whole = make(0, 2, [receives(1), in_barrier(2)], 1, [{"finding": "overlap", "place": 0, "other": 1, "bytes": 8},
                                                            {"finding": "error", "class": "truncate", "place": 0, "bytes": 4, "peer": 1, "tag": 7}], [(9, 0, 1, 7, 0)])
        text = whole.index(b'{"comm"')
        draw = random.Random(1)
        for _ in range(300):
            data = bytearray(whole)
            for _ in range(draw.randint(1, 20)):
                place = draw.choice([draw.randrange(calls.HEAD.size + 3 * calls.THREAD_SIZE), text + draw.randrange(600)])
                data[place] = draw.randrange(256)
            watched = self.job(bytes(data))
            sums = {name: 0 for name in ("eager_messages", "rendezvous_messages", "direct_messages", "get_messages", "bounce_messages")}
            json.dumps(watched.model(1, sums))
            calls.mark_of(self.work / "calls.node.0")

    def test_paths(self):
        """Of a library that counts their bytes, and of one that counts messages alone."""
        sums = {"eager_messages": 5, "rendezvous_messages": 9, "direct_messages": 2, "get_messages": 3, "bounce_messages": 0}
        self.assertEqual(paths_of(sums), [("in one frame", 5, None), ("direct", 2, None), ("get", 3, None), ("bounce", 0, None), ("stream", 4, None)])
        sums |= {"bytes_sent": 1000, "rendezvous_bytes": 900, "direct_bytes": 200, "get_bytes": 300, "bounce_bytes": 0}
        self.assertEqual(paths_of(sums), [("in one frame", 5, 100), ("direct", 2, 200), ("get", 3, 300), ("bounce", 0, 0), ("stream", 4, 400)])

    def test_findings_of_any_shape(self):
        odd = [{"finding": kind, **fields} for kind in ("overlap", "changed", "unfinished", "error", "other") for fields in
               ({}, {"place": "x", "other": [], "bytes": -1, "peer": None}, {"place": 10**9, "tag": 1e300, "class": "truncate"}, {"class": {}, "error": 5})]
        found = self.job(make(0, 1, lines=odd)).misuse.sentences()
        self.assertTrue(found)
        self.assertTrue(all(isinstance(text, str) for text, _ in found))

    def test_control_characters_do_not_reach_a_terminal(self):
        lines = [{"place": 0, "call": "MPI_\x1b[31mRecv", "stack": ["\x1b[31m+0x1"]}, {"finding": "unfinished", "place": 0}]
        (self.work / "calls.node.0").write_bytes(make(0, 1, [receives(0)], lines=lines))
        for option in ("--text", "--json"):
            text = subprocess.run([TOOL, option, self.work], check=True, stdout=subprocess.PIPE, text=True).stdout
            self.assertNotIn("\x1b", text)

    def test_ranks_that_the_job_has_started(self):
        """They have ranks of their own, and their files may come first."""
        child = bytearray(make(0, 1, ended=NOW))
        head = list(calls.HEAD.unpack_from(child))
        head[5] += 10**9
        calls.HEAD.pack_into(child, 0, *head)
        watched = self.job(bytes(child), make(0, 2), make(1, 2), bytes(child))
        self.assertEqual([(process.rank, process.size) for process in watched.processes], [(0, 2), (1, 2)])
        self.assertEqual(len(watched.others), 2)


if __name__ == "__main__":
    sys.exit(run_tests(CallsTest))
