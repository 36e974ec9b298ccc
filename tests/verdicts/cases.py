#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Symptoms of public reports of silent corruption: how each is brought about here, and what UCI must say of it. run_cases.sh runs them.

usage: cases.py list                         a line for each: NAME|PROGRAM|ARGUMENTS|UCX_TLS|PRELOAD|SETTINGS
       cases.py check NAME STATUS LOG EVENTS   is what the records and the log say right? Exit status 1, and why not
       cases.py table FOLDER                 what they said, as a table in Markdown; FOLDER has NAME.events of each
       cases.py write FOLDER FILE            the same, in the place that FILE has for it

PRELOAD: "behind", bad_ucx.so between UCI and UCX; "before", between the MPI and UCI; "none". STATUS: PASS, FAIL as run_program() has it.
"""
import json
import pathlib
import sys
from dataclasses import dataclass, field

BYTES = 4194304
BEGIN, END = "<!-- cases: tests/verdicts/run_cases.sh --write -->", "<!-- cases: end -->"


@dataclass
class Case:
    """One of them; `wanted` are fields that every record of its large messages must have."""
    name: str
    symptom: str
    report: str
    how: str
    tls: str
    settings: str
    wanted: dict
    evidence: str       # must be part of the record's
    right: str          # for people: is it, and why
    program: str = "buffers"
    arguments: str = f"{BYTES} 3"
    preload: str = "behind"
    status: str = "PASS"
    says: str = "cause: {cause} ("  # must be in the log
    needs: list = field(default_factory=list)  # conditions over one record


CASES = [
    Case("region", "wrong region after memory was registered anew", "openucx/ucx#10653",
         "UCX is given the buffer beside the right one, for rendezvous and gets", "tcp,self",
         f"BAD_UCX=region BAD_UCX_SHIFT={BYTES} UCI_PATH=get",
         {"cause": "ucx", "path": "get", "class": "other content", "healed_by": "copy", "verdict": "repaired"},
         "registration or key of another region", "yes", needs=["gets_wrong > 0"]),
    Case("key", "remote key of another buffer", "openucx/ucx#8072 (stale keys, review)",
         "cma and gets read the buffer beside the right one", "posix,cma,self",
         f"BAD_UCX=key BAD_UCX_SHIFT={BYTES} UCI_PATH=get",
         {"cause": "ucx", "path": "get", "class": "other content", "healed_by": "copy", "verdict": "repaired"},
         "registration or key of another region", "yes", needs=["gets_wrong > 0"]),
    Case("hooks", "memory hooks: data equals an older buffer", "openucx/ucx#3581, open-mpi/ompi#6396",
         "what rendezvous and gets bring never reaches the receive buffer, which stays as it was", "tcp,self",
         "BAD_UCX=hooks UCI_PATH=get", {"cause": "ucx", "path": "get", "healed_by": "copy", "verdict": "repaired"},
         "the same as came first", "yes; the class is of what lay in the buffer: zeros, then the message before",
         needs=["gets_wrong > 0", "kind_of_damage in ('zeros', 'other content')"]),
    Case("order", "fragments unpacked out of order", "openucx/ucx#2568, open-mpi/ompi#5175",
         "two fragments of 8 KiB of what a rendezvous brings are exchanged", "tcp,self", "BAD_UCX=order UCI_PATH=get",
         {"cause": "ucx", "path": "get", "class": "other content", "offset": 0, "first": 8192, "verdict": "repaired"},
         "are the right ones of offset 16384 of the same message", "yes, and the place that they belong to"),
    Case("partial", "partial unpack at a fragment's edge, in UCX", "open-mpi/ompi#8442, #8466, #8473",
         "the last 100 bytes of a fragment keep what its buffer held before", "tcp,self",
         "BAD_UCX=partial UCI_PATH=stream",
         {"cause": "ucx", "path": "stream", "class": "other content", "last": 8191, "verdict": "repaired"},
         "the same message: put in a wrong place", "yes"),
    Case("unpack", "the same, in the MPI's own unpack function", "open-mpi/ompi#8442, #8466, #8473",
         "each second call of a datatype's unpack function leaves out the last 8 bytes", "posix,self", "BAD_UCX=unpack",
         {}, "", "UCI can't know: the bytes are verified before the MPI unpacks them. That there is no record says that it is above UCX",
         arguments=f"{BYTES} 3 vector", preload="before", status="FAIL", says="wrong contents"),
    Case("fifo", "order of stores in a shared memory FIFO", "openucx/ucx#10477, #10761, #9421",
         "one cache line of an active message, 1024 bytes behind its beginning, is that of the message before", "posix,self", "BAD_UCX=fifo UCI_CARRIER=am",
         {"cause": "transport", "path": "frame", "carrier": "am", "class": "burst", "healed_by": "copy", "verdict": "repaired"},
         "it left memory of UCI's", "yes: the transport is UCX's shared memory (`transports`: posix), and the message a frame",
         arguments="4000 40", needs=["984 <= first and last <= 1047"]),
    Case("length", "64 KiB of the length are lost", "the bug of the README",
         "active messages above 64 KiB come 64 KiB short", "tcp,self", "BAD_UCX=length UCI_PATH=stream UCI_CHUNK_SIZE=128k",
         {"cause": "ucx", "path": "stream", "class": "truncated", "chunk_length": 65536, "verdict": "repaired"},
         "UCX delivered 65536 bytes of 131072", "yes"),
    Case("bug", "the same, by UCX's own bug", "the bug of the README",
         "UCX_POSIX_SEG_SIZE=128k UCX_RNDV_THRESH=inf, and chunks as large: nothing can be fetched", "posix,self",
         "UCX_POSIX_SEG_SIZE=128k UCX_RNDV_THRESH=inf UCI_PATH=stream UCI_CHUNK_SIZE=100000",
         {"cause": "transport", "path": None, "verdict": "not repaired", "healed_by": "none"},
         "did not pass their check", "in part: UCX puts the header behind the data and loses it as well, so that nothing tells what was "
         "short. The job ends there, and nothing wrong is delivered. With chunks as UCI chooses them the bug isn't met",
         arguments="100000 3", preload="none", status="FAIL", says="cause       {cause}: "),
    Case("staged", "a staging buffer is sent before it was filled, as of a GPU", "openucx/ucx#4107, #4188",
         "the second half of each segment is what the segment before had there", "tcp,self", "BAD_UCX=staged UCI_PATH=bounce",
         {"cause": "ucx", "path": "bounce", "class": "other content", "verdict": "repaired"},
         "of the same message: put in a wrong place", "yes, for a copy that UCX makes. What is copied wrongly out of a GPU before UCI "
         "digests it can't be seen"),
    Case("reuse", "the program reuses a buffer that is being sent", "pytorch/pytorch#61875 (documentation)",
         "MPI_Isend, then stores to its buffer", "posix,cma,self", "UCI_PATH=get",
         {"cause": "source_changed", "path": "get", "verdict": "source changed"}, "its program wrote to the buffer", "yes",
         program="overwrite", arguments=f"steady {BYTES} 8", preload="none", says="chunks were changed by its sender"),
    Case("kernel", "a copy by the kernel (knem, cma) through a stale registration", "openucx/ucx#5146",
         "process_vm_readv() brings what it has read there the first time", "posix,cma,self", "BAD_UCX=kernel UCI_PATH=get",
         {"cause": "unknown", "path": "get", "class": "other content", "healed_by": "get", "verdict": "repaired"},
         "another region was read or written", "unknown, with reason: UCX's own gets don't use cma here, so that the second reading was right; "
         "a program that has put back what was there looks the same. If the damage goes with cma out of UCX_TLS, it was that"),
    Case("zcopy", "zcopy is wrong, bcopy is right", "openucx/ucx#7831",
         "process_vm_readv() leaves zeros in the last page of what it reads", "posix,cma,self", "BAD_UCX=zcopy UCI_PATH=get",
         {"cause": "unknown", "path": "get", "class": "zeros", "last": 8191, "healed_by": "get", "verdict": "repaired"},
         "another region was read or written", "unknown, for the same reason; path, class and place say the rest"),
]


def large_of(path):
    """Records of the messages that a case is about, not of answers."""
    events = [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
    return [event for event in events if event["length"] > 1000 and event["schema"] == 2]


def complaints_about(case, event):
    wrong = [f"{name} is {event[name]!r}, not {value!r}" for name, value in case.wanted.items() if event[name] != value]
    if case.evidence not in event["evidence"]:
        wrong.append(f"the evidence is '{event['evidence']}'")
    names = event | {"kind_of_damage": event["class"]}  # `class` is a word of Python's
    wrong += [f"not true: {need}" for need in case.needs if not eval(need, {}, names)]  # the conditions are our own
    return wrong


def check(case, status, log, path):
    events = large_of(path)
    complaints = [complaint for event in events for complaint in complaints_about(case, event)]
    text = pathlib.Path(log).read_text(errors="replace")
    if status != case.status:
        complaints.append(f"the program's end is {status}, not {case.status}")
    if bool(events) != bool(case.wanted):
        complaints.append(f"{len(events)} records")
    if case.says.format(**case.wanted) not in text:
        complaints.append(f"the log does not say '{case.says.format(**case.wanted)}'")
    return complaints


def saying_of(path):
    """What UCI has said first, and how often the same."""
    events = large_of(path)
    if not events:
        return "nothing: there is no record"
    first = events[0]
    way = "/".join(name for name in (first["path"], first["carrier"]) if name) or "not seen"
    healed = f"healed by {first['healed_by']}" if first["verdict"] == "repaired" else first["verdict"]
    return f"**{first['cause']}**; path {way}; {first['class']}; {healed}"


def table(folder):
    rows = [(case.symptom, case.report, case.how, saying_of(folder / f"{case.name}.events"), case.right) for case in CASES]
    head = ["symptom", "public report", "brought about here by", "what UCI says", "is that right?"]
    lines = ["| " + " | ".join(row) + " |" for row in [head] + rows]
    return "\n".join([lines[0], "|" + "---|" * len(head)] + lines[1:])


def write(folder, file):
    before, rest = file.read_text().split(BEGIN)
    file.write_text(f"{before}{BEGIN}\n{table(folder)}\n{END}{rest.split(END)[1]}")


def main():
    command, *arguments = sys.argv[1:] or ["none"]
    if command == "list":
        for case in CASES:
            print(case.name, case.program, case.arguments, case.tls, case.preload, case.settings, sep="|")
    elif command == "check":
        case = next(case for case in CASES if case.name == arguments[0])
        complaints = check(case, *arguments[1:])
        print(*complaints[:5], sep="\n")
        return 1 if complaints else 0
    elif command == "table":
        print(table(pathlib.Path(arguments[0])))
    elif command == "write":
        write(pathlib.Path(arguments[0]), pathlib.Path(arguments[1]))
    else:
        sys.exit(__doc__)
    return 0


if __name__ == "__main__":
    sys.exit(main())
