#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Are uci_run --debug and --profile right? Programs that break one rule of MPI's each, or hang, or are right, in C and by Fortran's bindings: what is told must
be what they do, and nothing else.

usage: tests/calls/run_calls.py [--mpi openmpi,mpich] [--build DIR] [--filter TEXT] [--jobs N]

Ends with the line "N passed, N failed, N skipped"; exit status 1 if any failed.
"""
import argparse
import concurrent.futures
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
LIMIT = 90  # seconds for a job
BINDINGS = ("by_mpifh", "by_mpi", "by_mpi_f08")
RIGHT = ("p2p_blocking", "p2p_nonblocking", "persistent", "datatypes", "probe", "mprobe", "wildcard", "cancel", "coll_blocking", "coll_nonblocking", "coll_neighbor",
         "intercomm", "comms", "threads", "overlap", "reuse", "synchronous", "pack", "window")

# name: what each sentence about the program must match, in any order, and nothing else
WRONG = {
    "overlap_receives": [r"MPI_Irecv at irecv \(cases.c:\d+\), overlap_receives .* receives into 800 bytes that MPI_Irecv at irecv .* still receives into"],
    "overlap_send": [r"MPI_Isend at isend .* sends from 8 bytes that MPI_Irecv at irecv .* still receives into"],
    "many_places": [r"MPI_Isend at isend .*many_places .* sends from 8 bytes that MPI_Irecv at irecv .* still receives into"],
    "overlap_blocking": [r"MPI_Recv at overlap_blocking .* receives into 4.688 KiB that MPI_Irecv at irecv"],
    "overlap_sendrecv": [r"MPI_Sendrecv at overlap_sendrecv .* sends from and receives into the same 3.906 KiB"],
    "overlap_columns": [r"MPI_Irecv at overlap_columns .* receives into 72 bytes that MPI_Irecv at overlap_columns .* still receives into"],
    "overlap_bottom": [r"MPI_Isend at overlap_bottom .* sends from 8 bytes that MPI_Irecv at irecv .* still receives into"],
    "overlap_collectives": [r"MPI_Iallreduce at overlap_collectives .* writes 40 bytes that MPI_Ibcast at overlap_collectives .* still reads",
                            r"MPI_Iallreduce at overlap_collectives .* writes 40 bytes that MPI_Ibcast at overlap_collectives .* still writes"],
    "overlap_parts": [r"MPI_Isend at overlap_parts .* sends from 8 bytes that MPI_Iallgatherv at overlap_parts .* still writes"],
    "overlap_neighbours": [r"MPI_Ineighbor_alltoallw at talk_to_neighbours .* writes 16 bytes that MPI_Irecv at talk_to_neighbours .* still receives into"],
    "overlap_groups": [r"MPI_Iallgather at talk_to_group .* writes 8 bytes that MPI_Irecv at talk_to_group .* still receives into"],
    "overlap_persistent": [r"MPI_Isend at isend .* sends from 4.688 KiB that MPI_Recv_init at overlap_persistent .* still receives into"],
    "changed": [r"the buffer of MPI_Isend at isend .*changed .*\(4.688 KiB\) was changed by the program before the send was complete; for instance rank 0 to rank 1, tag 1"],
    "changed_vector": [r"the buffer of MPI_Isend at changed_vector .*\(80 bytes\) was changed"],
    "changed_first": [r"the buffer of MPI_Isend at isend .*changed_first .*\(80 bytes\) was changed"],
    "overlap_first": [r"MPI_Sendrecv at several_small .*overlap_first .* receives into 8 bytes that MPI_Isend at isend .* still sends from"],
    "changed_bottom": [r"the buffer of MPI_Isend at changed_bottom .*\(4.688 KiB\) was changed"],
    "changed_persistent": [r"the buffer of MPI_Send_init at changed_persistent .* was changed"],
    "unfinished": [r"the request of MPI_Irecv at irecv .*unfinished .* was never completed; for instance rank 0 from rank 1, tag 1"],
    "truncated": [r"a message was longer than its receive, MPI_Recv at truncated \(cases.c:\d+\), main .*, which has room for 3.906 KiB; rank 0 from any rank, any tag: "
                  r"rank 1 has sent 4.688 KiB with tag 1 by MPI_Send at truncated"],
    "truncated_returns": [r"a message was longer than its receive, MPI_Recv at truncated_returns .*rank 1 has sent 4.688 KiB"],
    "truncated_as_by_default": [r"a message was longer than its receive, MPI_Recv at truncated .*rank 1 has sent 4.688 KiB"],
    "truncated_from_one": [r"a message was longer than its receive, MPI_Recv at truncated_from_one .*; rank 0 from rank 1, tag 1: rank 1 has sent 4.688 KiB"],
    "truncated_persistent": [r"a message was longer than its receive, MPI_Recv at truncated_persistent .*: rank 1 has sent 4.688 KiB with tag 1 by MPI_Send_init at truncated_persistent"],
    "no_such_rank": [r"MPI_Send at no_such_rank .* fails: .*[Ii]nvalid rank"],
    "negative_count": [r"MPI_Send at negative_count .* fails: .*[Ii]nvalid (count|argument)"],
    "overlap_shifted": [r"MPI_Isend at overlap_shifted .* sends from 8 bytes that MPI_Irecv at irecv .* still receives into"],
    "no_communicator": [r"MPI_Barrier at no_communicator .* fails: .*([Ii]nvalid|[Nn]ull) communicator"],
    "no_communicator_returns": [r"MPI_Alltoallv at no_communicator_returns .* fails: .*([Ii]nvalid|[Nn]ull) communicator"],
}
# what is left, by the same rules
LEFT = {
    "kept": [r"5 made by MPI_Comm_split at make \(cases.c:\d+\), kept .* are not freed", r"2 made by MPI_Comm_group at make .* are not freed", r"1 made by MPI_Type_vector at make .* is not freed",
             r"1 made by MPI_Op_create at make .* is not freed"],
    "freed": [],
    "cleaned_up": [],
}
GOOD = ("head_to_head", "no_overlap", "no_overlap_of_collectives", "no_overlap_of_neighbours", "no_overlap_of_groups", "groups_of_two_and_one", "not_changed", "not_changed_small", "not_changed_status",
        "not_changed_gap", "no_overlap_of_nobody", "not_copied", "freed_while_in_use", "nobody_in_a_thread", "finished", "nothing")
# name: what must be among the lines about who waits
HANGS = {
    "both_receive": [r"rank 0: MPI_Recv at both_receive \(cases.c:\d+\), main .*, from rank 1, tag 7, for \d+ s", r"a deadlock: rank 0 waits for rank 1, which waits for rank 0",
                     r"rank 2: MPI_Finalize at main .*MPI_COMM_WORLD", r"ranks 0-1 have not come to MPI_Finalize on MPI_COMM_WORLD"],
    "ring": [r"rank 0: MPI_Ssend at ring .*, to rank 1, tag 7", r"a deadlock: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0"],
    "both_wait": [r"rank 1: MPI_Waitall at wait_for .*, from rank 0, tag 7; from rank 0, tag 8", r"a deadlock: rank 0 waits for rank 1"],
    "other_tag": [r"rank 0: MPI_Ssend at other_tag .*, to rank 1, tag 3", r"rank 1: MPI_Recv at other_tag .*, from rank 0, tag 4", r"a deadlock: rank 0 waits for rank 1"],
    "polls": [r"rank 0: MPI_Test at polls .*, from rank 1, tag 7, again and again, for \d+ s", r"a deadlock"],
    "polls_in_turn": [r"rank 0: MPI_Test at test_each .*, from rank 1, tag 7; from rank 2, tag 8, again and again, for \d+ s", r"rank 1: MPI_Recv", r"rank 2: outside of MPI"],
    "polls_and_probes": [r"rank 0: MPI_\w+ at polls_and_probes .*, from rank 1, tag 7; from rank 2, tag 9, again and again", r"rank 1: MPI_Recv", r"rank 2: outside of MPI"],
    "computes_and_tests": [r"rank 0: MPI_Test at test_each .*, from rank 1, tag 7, again and again", r"ranks 1-2: MPI_Recv"],
    "polls_in_vain": [r"rank 0: MPI_Test at polls_in_vain .*, from rank 1, tag 7; from rank 2, tag 8, again and again", r"ranks 1-2: MPI_Recv",
                      r"a deadlock, if rank 0 only tests: rank 0 waits for rank 1 \(or rank 2\), which waits for rank 0"],
    "probes_in_vain": [r"rank 0: MPI_Iprobe at probes_in_vain .*, from rank 1, tag 9, again and again", r"a deadlock, if ranks 0-1 only test: rank 0 waits for rank 1, which waits for rank 0"],
    "waits_for_one_of_both": [r"rank 0: MPI_Waitall at wait_for .*, from rank 1, tag 7; from rank 2, tag 8", r"rank 1: MPI_Recv", r"rank 2: outside of MPI"],
    "another_thread": [r"rank 0: MPI_Recv at receive_in_thread .*, from rank 1, tag 7", r"rank 1: MPI_Recv at receive_in_thread .*, from rank 0, tag 7"],
    "a_thread_of_many": [r"rank 0: MPI_Recv at receive_in_thread .*, from rank 1, tag 7"],
    "a_thread_has_ended": [r"rank 0: MPI_Recv at a_thread_has_ended .*, from rank 1, tag 7", r"a deadlock: rank 0 waits for rank 1"],
    "tests_once": [r"rank 2: MPI_Finalize at main", r"ranks 0-1: outside of MPI", r"ranks 0-1 have not come to MPI_Finalize on MPI_COMM_WORLD"],
    "probes": [r"rank 1: MPI_Probe at probes .*, from rank 0, tag 9", r"a deadlock"],
    "computes": [r"ranks 0-1: MPI_Barrier at computes .*, on MPI_COMM_WORLD", r"rank 2: outside of MPI", r"rank 2 has not come to MPI_Barrier on MPI_COMM_WORLD"],
    "crosswise": [r"rank 0: MPI_Barrier at crosswise .*, on first", r"ranks 1-2: MPI_Barrier at crosswise .*, on second", r"a deadlock",
                  r"ranks 1-2 have not come to MPI_Barrier on first", r"rank 0 has not come to MPI_Barrier on second"],
    "dups": [r"ranks 0-1: MPI_Barrier at dups", r"rank 2: outside of MPI", r"rank 2 has not come to MPI_Barrier"],
    "leader": [r"ranks 0-1: MPI_Barrier at leader .*, on all", r"rank 2 has not come to MPI_Barrier on all"],
    "any_of": [r"rank 0: MPI_Recv at any_of .*, from any rank, any tag", r"rank 0 has not come to MPI_Finalize"],
}
# the main program is by_fortran or MAIN__, as the compiler likes
IN_FORTRAN = {
    "overlap": [r"MPI_Isend at \w+ \(by_fortran.F90:\d+\).* sends from 8 bytes that MPI_Irecv at \w+ \(by_fortran.* still receives into"],
    "overlap_bottom": [r"MPI_Isend at send_from_bottom.* sends from 8 bytes that MPI_Irecv at send_from_bottom.* still receives into"],
    "overlap_parts": [r"MPI_Isend at \w+ \(by_fortran.* sends from 16 bytes that MPI_Iallgatherv at \w+ \(by_fortran.* still writes"],
    "changed": [r"the buffer of MPI_Isend at \w+ \(by_fortran.* was changed"],
    "unfinished": [r"the request of MPI_Irecv at \w+ \(by_fortran.* was never completed"],
    "right": [],
}
UNBUFFERED = [r"rank 0: MPI_Send at \w+ \((cases.c|by_fortran).*, to rank 1, tag 7", r"a deadlock: rank 0 waits for rank 1"]
HANGS_IN_FORTRAN = {
    "both_receive": [r"rank 0: MPI_Recv at exchange\S* \(by_fortran.F90:\d+\).*, from rank 1, tag 7", r"a deadlock: rank 0 waits for rank 1"],
    "polls": [r"rank 0: MPI_\w+ at \w+ \(by_fortran.*, from rank 1, tag 7; from rank 1, tag 8, again and again", r"a deadlock, if ranks 0-1 only test: rank 0 waits for rank 1"],
    "barrier": [r"rank 0: MPI_Barrier at \w+ \(by_fortran.*, on MPI_COMM_WORLD", r"rank 1 has not come to MPI_Barrier on MPI_COMM_WORLD", r"a deadlock"],
}


STILL = {"tests_once": 6}  # seconds; of others one


class Failure(Exception):
    """A job was not told of as it should be."""


class Programs:
    """What is compiled, for one MPI."""

    def __init__(self, mpi, folder):
        self.mpi, self.folder = mpi, folder
        folder.mkdir(parents=True, exist_ok=True)
        self.compile(f"mpicc.{mpi}", ["-std=gnu11", "-O1", "-g", "-fno-inline", "-pthread", "-w"], HERE / "cases.c", "cases")
        for name in RIGHT:
            self.compile(f"mpicc.{mpi}", ["-std=gnu11", "-O1", "-g", "-pthread", "-w", f"-I{ROOT}/tests/mpi"], ROOT / f"tests/mpi/{name}.c", name)
        self.fortran = shutil.which(f"mpif90.{mpi}") is not None
        for name in BINDINGS if self.fortran else ():
            self.compile(f"mpif90.{mpi}", ["-w", "-fallow-argument-mismatch", "-O1", "-g", "-fno-inline", f"-D{name.upper()}"], HERE / "by_fortran.F90", name)

    def compile(self, compiler, options, source, name):
        """Once."""
        target = self.folder / name
        if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
            subprocess.run([compiler, *options, "-o", target, source, "-lm"], check=True)


class Runner:
    """Starts jobs, and looks at what is told of them."""

    def __init__(self, build):
        self.tool = build / "tools" / "uci_run"
        self.report = build / "tools" / "uci_report"

    def run(self, programs, program, words, ranks, *options, hangs=False):
        """(summary as --json has it, all that was printed, folder)."""
        folder = Path(tempfile.mkdtemp(prefix="uci-calls-"))
        record = folder / "record.json"
        # the programs' own mpirun: a rank shares its core with others
        environment = {**os.environ, "OMPI_MCA_odls_base_sigkill_timeout": "0"}  # seconds between SIGTERM and SIGKILL: no rank catches it
        command = [self.tool, *options, "--folder", folder / "job", "--json", record, "--mpi", programs.mpi, "-n", str(ranks), programs.folder / program, *words]
        with open(folder / "output", "w+b") as output:
            process = subprocess.Popen([*map(str, command)], stdout=output, stderr=output, cwd=folder, env=environment, start_new_session=True)
            try:
                if hangs:
                    self.await_told(process, output)
                    process.send_signal(signal.SIGTERM)
                process.wait(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                raise Failure(f"does not end: {text_of(output)}") from None
            text = text_of(output)
        try:
            found = json.loads(record.read_text())
        except (OSError, ValueError):
            raise Failure(f"no summary: {text}") from None
        return found, text, folder

    @staticmethod
    def await_told(process, output):
        """Until uci_run has said that nothing moves."""
        end = time.monotonic() + LIMIT
        while time.monotonic() < end:
            if process.poll() is not None:
                raise Failure(f"has ended instead of hanging: {text_of(output)}")
            if "no rank has come" in text_of(output):
                time.sleep(.1)  # all of it: it is printed at once
                return
            time.sleep(.05)
        os.killpg(process.pid, signal.SIGKILL)
        raise Failure(f"nobody has said that nothing moves: {text_of(output)}")


def text_of(output):
    """What a job has printed so far."""
    return os.pread(output.fileno(), 1 << 20, 0).decode(errors="replace")


def expect_all(patterns, lines, text, only):
    """Each pattern is one line, and with ONLY each line one pattern."""
    for pattern in patterns:
        if not any(re.search(pattern, line) for line in lines):
            raise Failure(f"not told: {pattern}; told was {lines}\n{text}")
    if only and any(not any(re.search(pattern, line) for pattern in patterns) for line in lines):
        raise Failure(f"told, though it should not be: {lines}\n{text}")


def check_misuse(runner, programs, program, words, ranks, patterns, *options):
    """A program that comes to its end."""
    found, text, folder = runner.run(programs, program, words, ranks, "--debug", *options)
    expect_all(patterns, found["misuse"], text, only=True)
    if found["exit_code"] not in ((116, 121) if patterns else (0,)):  # 121: that the program changed a message was seen in the message as well
        raise Failure(f"exit status {found['exit_code']}\n{text}")
    if patterns and not all(re.search(r"^ {4}(rules)? +.*" + pattern, text, re.MULTILINE) for pattern in patterns):
        raise Failure(f"not in the summary\n{text}")
    shutil.rmtree(folder)


def check_left(runner, programs, name, patterns):
    """What a program does not free; no rule of MPI's is broken."""
    found, text, folder = runner.run(programs, "cases", [name], 3, "--debug")
    expect_all(patterns, found["left"], text, only=True)
    expect("exit status", found["exit_code"], 0)
    if not all(re.search(r"^ {4}(left)? +.*" + pattern, text, re.MULTILINE) for pattern in patterns):
        raise Failure(f"not in the summary\n{text}")
    shutil.rmtree(folder)


def check_lost(runner, programs):
    """What had no room in the files is told of."""
    found, text, folder = runner.run(programs, "cases", ["too_many_places"], 3, "--debug")
    if found["calls_lost"] < 2 * 900 or not re.search(r"^ {4}calls +[\d,]+ entries had no room", text, re.MULTILINE):
        raise Failure(f"{found['calls_lost']} are lost\n{text}")
    shutil.rmtree(folder)


def check_hang(runner, programs, program, words, ranks, patterns, debug="--debug", still=1):
    """One that does not."""
    found, text, folder = runner.run(programs, program, words, ranks, debug, "--still", str(still), hangs=True)
    while_it_ran = text[text.index("no rank has come"):text.index("UCI summary")].splitlines()
    expect_all(patterns, while_it_ran, text, only=False)
    expect_all(patterns, found["waits"], text, only=False)
    if found["level"] != "failed" or found["exit_code"] != 143:
        raise Failure(f"{found['level']}, exit status {found['exit_code']}\n{text}")
    has_circle = any("a deadlock" in line for line in found["waits"])
    if has_circle != any("a deadlock" in pattern for pattern in patterns):
        raise Failure(f"a deadlock, or none: {found['waits']}")
    shutil.rmtree(folder)


LARGE = 1 << 20  # bytes of the only message that is not sent at once


def expect(what, got, wanted):
    """Numbers of a profile."""
    if got != wanted:
        raise Failure(f"{what}: {got} instead of {wanted}")


def profile_of(runner, programs, name, program="cases", ranks=3):
    """(profile, its rows by call, folder) of so many ranks."""
    found, _, folder = runner.run(programs, program, [name], ranks, "--profile")
    expect("exit status", found["exit_code"], 0)
    model = json.loads(subprocess.run([runner.report, "--json", folder / "job"], check=True, stdout=subprocess.PIPE).stdout)
    profile = model["calls"]["profile"]
    return profile, {row["call"]: row for row in profile["rows"]}, folder


def check_groups(runner, programs):
    """Bytes of calls on an intercommunicator: one part for each rank of the other group, and a root that is called MPI_ROOT."""
    _, rows, folder = profile_of(runner, programs, "groups_of_two_and_one")
    for call, number in (("MPI_Alltoallw", 4 * 40), ("MPI_Alltoallv", 4 * 40), ("MPI_Scatter", 2 * 80)):
        expect(f"bytes of {call}", rows[call]["bytes"], number)
    shutil.rmtree(folder)


def sums_of(profile):
    """{call: (how often, bytes)} of all its places."""
    sums = {}
    for row in profile["rows"]:
        count, number = sums.get(row["call"], (0, 0))
        sums[row["call"]] = count + row["count"], number + row["bytes"]
    return sums


def check_started(runner, programs):
    """Persistent requests: each start is a send, of three ranks to their next one; what goes to MPI_PROC_NULL is none."""
    profile, _, folder = profile_of(runner, programs, "started")
    sums = sums_of(profile)
    for call, count, number in (("MPI_Start", 90, 60 * 1000), ("MPI_Startall", 60, 60 * 1000), ("MPI_Send_init", 6, 0), ("MPI_Recv_init", 12, 0), ("MPI_Send", 3, 0)):
        expect(f"calls and bytes of {call}", sums.get(call), (count, number))
    expect("pairs", sorted((pair["sender"], pair["receiver"], pair["messages"], pair["bytes"]) for pair in profile["pairs"]),
           [(rank, (rank + 1) % 3, 40, 40 * 1000) for rank in range(3)])
    shutil.rmtree(folder)
    if programs.mpi == "mpich":  # Open MPI has persistent collectives since its version 5
        profile, _, folder = profile_of(runner, programs, "started_collectives")
        sums = sums_of(profile)
        for call, count, number in (("MPI_Startall", 30, 30 * 80), ("MPI_Allreduce_init", 3, 0)):
            expect(f"calls and bytes of {call}", sums.get(call), (count, number))
        shutil.rmtree(folder)


def check_started_in_fortran(runner, programs, binding):
    """The same of two ranks, by MPI_Startall ten times, and by MPI_Start."""
    profile, _, folder = profile_of(runner, programs, "right", binding, 2)
    sums = sums_of(profile)
    for call, count, number in (("MPI_Start", 4, 2 * 4800), ("MPI_Startall", 20, 20 * 4800)):
        expect(f"calls and bytes of {call}", sums.get(call), (count, number))
    shutil.rmtree(folder)


def check_in_place(runner, programs):
    """Bytes of collectives in place, of three ranks: what each would have given from a buffer of its own."""
    profile, _, folder = profile_of(runner, programs, "in_place")
    sums, each, own = sums_of(profile), 3 * 8, (3 + 5 + 7) * 8
    for call, number in (("Gather", 4 * each), ("Gatherv", own), ("Scatter", 4 * each), ("Scatterv", own), ("Allgather", 4 * each), ("Allgatherv", own), ("Iallgatherv", own),
                         ("Alltoall", 3 * 2 * each), ("Alltoallv", 3 * 2 * each), ("Alltoallw", 3 * 2 * each), ("Reduce", 10 * each), ("Allreduce", 10 * each),
                         ("Reduce_scatter", 3 * own), ("Reduce_scatter_block", 3 * 4 * each), ("Scan", 10 * each), ("Exscan", 10 * each)):
        expect(f"calls and bytes of MPI_{call}", sums.get(f"MPI_{call}"), (3, number))
    shutil.rmtree(folder)


def check_profile(runner, programs):
    """Number, bytes and time of calls whose numbers are known, of three ranks."""
    profile, rows, folder = profile_of(runner, programs, "counted")
    for call, count, number in (("MPI_Sendrecv", 30, 30 * 1000), ("MPI_Bcast", 15, 5 * 800), ("MPI_Alltoall", 3, 3 * 3 * 80), ("MPI_Neighbor_alltoall", 3, 4 * 80), ("MPI_Barrier", 3, 0)):
        expect(f"calls of {call}", rows[call]["count"], count)
        expect(f"bytes of {call}", rows[call]["bytes"], number)
        expect(f"ranks of {call}", rows[call]["ranks"], 3)
        if not re.match(r"counted \(cases.c:\d+\), main", rows[call]["place"]):
            raise Failure(f"the place of {call}: {rows[call]['place']}")
    if not .5 < rows["MPI_Barrier"]["seconds"] < 10 or rows["MPI_Barrier"]["longest"] < .25:
        raise Failure(f"two ranks have waited 0.3 s each in MPI_Barrier: {rows['MPI_Barrier']}")
    expect("pairs", sorted((pair["sender"], pair["receiver"], pair["messages"], pair["bytes"]) for pair in profile["pairs"]),
           [(0, 1, 11, 10000 + LARGE), (1, 2, 10, 10000), (2, 0, 10, 10000)])
    paths = {path.pop("path"): path for path in profile["paths"]}
    small = paths.pop("in one frame")
    if small["messages"] < 30 or small["bytes"] < 30 * 1000:
        raise Failure(f"at once: {small}")
    expect("large ones", [sum(path[what] for path in paths.values()) for what in ("messages", "bytes")], [1, LARGE])
    lines = subprocess.run([runner.report, "--text", folder / "job"], check=True, stdout=subprocess.PIPE, text=True).stdout
    if not re.search(r"Time in MPI: .* of 3 ranks", lines) or "MPI_Sendrecv at counted" not in lines:
        raise Failure(f"not in the report: {lines}")
    shutil.rmtree(folder)


def tests_of(runner, programs):
    """(name, what to call)."""
    for name, patterns in {**WRONG, **{name: [] for name in GOOD}}.items():
        yield f"{name}", lambda name=name, patterns=patterns: check_misuse(runner, programs, "cases", [name], 3, patterns)
    for name, patterns in LEFT.items():
        yield name, lambda name=name, patterns=patterns: check_left(runner, programs, name, patterns)
    for name, patterns in HANGS.items():
        yield f"hang: {name}", lambda name=name, patterns=patterns: check_hang(runner, programs, "cases", [name], 3, patterns, still=STILL.get(name, 1))
    for name in RIGHT:
        yield f"right: {name}", lambda name=name: check_misuse(runner, programs, name, [], 2, [])
    yield "unbuffered: hang", lambda: check_hang(runner, programs, "cases", ["head_to_head"], 3, UNBUFFERED, "--debug=unbuffered")
    yield "unbuffered: right", lambda: check_misuse(runner, programs, "cases", ["no_overlap"], 3, [], "--debug=unbuffered")
    yield "lost", lambda: check_lost(runner, programs)
    yield "profile", lambda: check_profile(runner, programs)
    yield "profile of groups", lambda: check_groups(runner, programs)
    yield "profile of starts", lambda: check_started(runner, programs)
    yield "profile in place", lambda: check_in_place(runner, programs)
    for binding in BINDINGS if programs.fortran else ():
        yield f"{binding}: profile of starts", lambda binding=binding: check_started_in_fortran(runner, programs, binding)
        yield f"{binding}: unbuffered: hang", lambda binding=binding: check_hang(runner, programs, binding, ["head_to_head"], 2, UNBUFFERED, "--debug=unbuffered")
        for name, patterns in IN_FORTRAN.items():
            yield f"{binding}: {name}", lambda binding=binding, name=name, patterns=patterns: check_misuse(runner, programs, binding, [name], 2, patterns)
        for name, patterns in HANGS_IN_FORTRAN.items():
            yield f"{binding}: hang: {name}", lambda binding=binding, name=name, patterns=patterns: check_hang(runner, programs, binding, [name], 2, patterns)


def judge(test):
    """(line for the test, did it pass)."""
    begin = time.monotonic()
    try:
        test()
    except Failure as failure:
        return f"FAIL {time.monotonic() - begin:6.1f} s", str(failure)
    return f"PASS {time.monotonic() - begin:6.1f} s", ""


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", default="openmpi,mpich")
    parser.add_argument("--build", type=Path, default=Path(os.environ.get("TEST_BUILD_DIR", ROOT / "build")))
    parser.add_argument("--filter", default="", metavar="TEXT", help="only tests whose name matches this regular expression")
    parser.add_argument("--jobs", type=int, default=2, help="at a time (default 2)")
    options = parser.parse_args()
    passed, failed, skipped, build = 0, 0, 0, options.build.resolve()
    for mpi in options.mpi.split(","):
        if not shutil.which(f"mpicc.{mpi}"):
            print(f"SKIP {mpi}: mpicc.{mpi} is not here")
            skipped += 1
            continue
        programs = Programs(mpi, build / "test-calls" / mpi)
        tests = [(name, test) for name, test in tests_of(Runner(build), programs) if re.search(options.filter, f"{mpi} {name}")]
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for (name, _), (result, why) in zip(tests, pool.map(lambda pair: judge(pair[1]), tests)):
                print(f"{result}  {mpi:<8} {name}" + ("\n" + "\n".join(f"     {line}" for line in why.splitlines()[:30]) if why else ""), flush=True)
                passed, failed = passed + (not why), failed + bool(why)
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
