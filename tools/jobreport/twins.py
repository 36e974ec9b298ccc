# SPDX-License-Identifier: BSD-3-Clause
"""What runs of the same program, "twins", have found in each other's messages: reports of their processes (UCI_TWINS_REPORT) and
records of messages that differed, merged over all twins.

A message is told from others by the rank of its receiver, the rank of its sender, its tag, and its number in that channel. Nothing
that is read is trusted: what is not of the right form is counted or complained of, and not used.
"""
import json
import os
import re
from collections import Counter

from jobreport.wording import clean

FOLDER = re.compile(r"twin\.([0-9])")  # of one twin in that of a run
VERDICTS = frozenset(("twins differ", "corrected"))
TWINS = 3
MESSAGES = 200_000       # that are kept
BINS = 512               # of a process
RANK_LIMIT = 1 << 31
TIME_LIMIT = 1e11        # seconds: later is no time
COUNTS = ("compared", "agreed", "differed", "corrected", "unlike", "alone", "no_room", "split", "choices_followed", "choices_given_up")


def is_count(value):
    """A number of things."""
    return type(value) is int and 0 <= value < 1 << 64


def is_rank(value):
    """A rank that is known."""
    return type(value) is int and 0 <= value < RANK_LIMIT


def is_twin(value):
    """Number of a twin."""
    return type(value) is int and 0 <= value < TWINS


def is_time(value):
    """Seconds since the epoch."""
    return type(value) in (int, float) and 0 <= value < TIME_LIMIT


def end_of(record, side):
    """(host, process, core) of one side of a record."""
    return clean(record.get(side + "host")), *(record[name] if is_count(record.get(name)) else None for name in (side + "pid", side + "core"))


class Message:
    """A message that was not the same in all twins."""
    __slots__ = ("receiver", "sender", "tag", "number", "length", "mpi", "wrong_twin", "is_corrected", "times", "senders", "values")

    def __init__(self, key, record):
        self.receiver, self.sender, self.tag, self.number = key
        self.length = record["length"] if is_count(record.get("length")) else None
        self.mpi = record["mpi"] if isinstance(record.get("mpi"), dict) else None
        self.values = [clean(value, 16) if isinstance(value, str) else None for value in record["values"][:TWINS]] \
            if isinstance(record.get("values"), list) else []
        self.wrong_twin, self.is_corrected = None, False
        self.times, self.senders = {}, {}  # by twin

    def add(self, twin, record):
        """What one twin says of it."""
        if is_twin(record.get("wrong_twin")):
            self.wrong_twin = record["wrong_twin"]
        self.is_corrected |= record["verdict"] == "corrected"
        self.times[twin] = record["time"]
        self.senders[twin] = end_of(record, "peer_")

    def merge(self, other):
        """What others say of the same message."""
        self.wrong_twin = other.wrong_twin if self.wrong_twin is None else self.wrong_twin
        self.is_corrected |= other.is_corrected
        self.times.update(other.times)
        self.senders.update(other.senders)

    def time(self):
        """When it was found to differ. Twins run at different times: the one that was first at it tells when the fault showed."""
        return min(self.times.values())


class Differences:
    """All messages that differed, of records of all twins."""

    def __init__(self):
        self.messages = {}    # (receiver, sender, tag, number): Message
        self.records = self.left_out = 0

    def add(self, record):
        """Count a record. @return None, or what is wrong with it."""
        twin, key = record.get("twin"), (record.get("rank"), record.get("peer_rank"), record.get("tag"), record.get("seq"))
        if not is_twin(twin):
            return "a twin that is none"
        if not (is_rank(key[0]) and is_rank(key[1]) and isinstance(key[2], str) and len(key[2]) <= 40 and is_count(key[3])):
            return "a message of twins without its ranks, tag or number"
        if not is_time(record.get("time")):
            return "a time that is none"
        self.records += 1
        if key not in self.messages:
            if len(self.messages) >= MESSAGES:
                self.left_out += 1
                return None
            self.messages[key] = Message(key, record)
        self.messages[key].add(twin, record)
        return None

    def merge(self, other):
        """Add up with those of other files."""
        self.records += other.records
        self.left_out += other.left_out
        for key, message in other.messages.items():
            if key in self.messages:
                self.messages[key].merge(message)
            elif len(self.messages) < MESSAGES:
                self.messages[key] = message
            else:
                self.left_out += 1

    def in_order(self):
        """All, the first one first."""
        return sorted(self.messages.values(), key=lambda message: (message.time(), message.receiver, message.number))


class Process:
    """What one process of a twin has told at its end."""

    def __init__(self, report):
        self.twin, self.of, self.rank = report["twin"], report["of"], report["rank"]
        self.host = clean(report.get("host"))
        self.pid = report["pid"] if is_count(report.get("pid")) else None
        self.cores = clean(report["cores"], 80) if report.get("cores") else ""
        self.core = report["core"] if is_count(report.get("core")) else None
        self.mode, self.verdict = (clean(report.get(name)) for name in ("mode", "verdict"))
        self.ranks = report["ranks"] if is_rank(report.get("ranks")) else 0
        self.counts = {name: report[name] if is_count(report.get(name)) else 0 for name in COUNTS}
        self.minority = [number if is_count(number) else 0 for number in list_of(report, "minority")[:TWINS]]
        self.partners = [(partner["twin"], clean(partner.get("state"))) for partner in list_of(report, "partners")
                         if isinstance(partner, dict) and is_twin(partner.get("twin"))]
        self.sources = [row[:3] for row in list_of(report, "sources") if isinstance(row, list) and len(row) >= 3 and is_rank(row[0]) and
                        is_count(row[1]) and is_count(row[2])]
        self.start = report["start"] if is_time(report.get("start")) else None
        self.bins = bins_of(report.get("bins"))


def list_of(report, name):
    """A member that should be a list."""
    return report[name] if isinstance(report.get(name), list) else []


def bins_of(value):
    """(start, seconds of each, numbers compared, numbers that differed), or None."""
    if not isinstance(value, dict) or not is_time(value.get("start")) or type(value.get("seconds")) not in (int, float):
        return None
    compared, differed = list_of(value, "compared")[:BINS], list_of(value, "differed")[:BINS]
    if not 0 < value["seconds"] < TIME_LIMIT or len(compared) != len(differed) or not all(map(is_count, compared + differed)):
        return None
    return value["start"], value["seconds"], compared, differed


class Twins:
    """All processes of all twins that have left a report."""

    def __init__(self):
        self.processes = {}   # (twin, rank): Process
        self.complaints = []  # (file, why it was not read)

    def add(self, path, report):
        """A report as it was read."""
        if not isinstance(report, dict) or report.get("twins") != 1:
            self.complaints.append((str(path), "no report of a twin, or one of a newer UCI"))
        elif not (is_twin(report.get("twin")) and is_rank(report.get("rank")) and type(report.get("of")) is int and
                  report["twin"] < report["of"] <= TWINS):
            self.complaints.append((str(path), "a report of a twin that does not say of which"))
        else:
            self.processes[report["twin"], report["rank"]] = Process(report)

    def of(self):
        """How many twins there were."""
        return max((process.of for process in self.processes.values()), default=0)

    def ranks(self):
        """How many ranks each has."""
        return max((max(process.rank + 1, process.ranks) for process in self.processes.values()), default=0)

    def by_rank(self):
        """The reports of each rank, those of twin 0 first."""
        found = {}
        for (_, rank), process in sorted(self.processes.items()):
            found.setdefault(rank, []).append(process)
        return found

    def widest(self, rank_processes):
        """Of the reports of a rank the one that has seen most: what the others have not compared, they were not there for, or not any more."""
        return max(rank_processes, key=lambda process: (process.counts["differed"], process.counts["compared"]))

    def sums(self):
        """Counts of messages, each once: of each rank as its widest report has them. What was corrected, the twin that was wrong has counted, and
        choices those that follow."""
        sums = Counter({name: 0 for name in COUNTS})
        for processes in self.by_rank().values():
            counts = self.widest(processes).counts
            corrected = sum(process.counts["corrected"] for process in processes)
            choices = {name: max(process.counts[name] for process in processes) for name in ("choices_followed", "choices_given_up")}
            sums.update({**counts, **choices, "corrected": min(corrected, counts["differed"])})
        return sums

    def minority(self):
        """Messages in which each twin was the one that differed."""
        sums = [0] * self.of()
        for processes in self.by_rank().values():
            for twin, number in enumerate(self.widest(processes).minority[:len(sums)]):
                sums[twin] += number
        return sums


def read_twins(files):
    """Twins of UCI_TWINS_REPORT files. A file that is none is a complaint."""
    twins = Twins()
    for path in files:
        try:
            twins.add(path, json.loads(path.read_bytes().decode()))
        except OSError as error:
            twins.complaints.append((str(path), os.strerror(error.errno)))
        except (ValueError, RecursionError):
            twins.complaints.append((str(path), "not JSON, or cut off"))
    return twins


def tainted_ranks(messages):
    """[(rank, time)], the first one first: when each rank had first to do with a message that differed, as sender or receiver.
    @param messages  in order."""
    first = {}
    for message in messages:
        for rank in (message.sender, message.receiver):
            first.setdefault(rank, message.time())
    return list(first.items())
