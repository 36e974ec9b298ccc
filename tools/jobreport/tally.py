# SPDX-License-Identifier: BSD-3-Clause
"""What is kept of records: sums that can be added up, and the worst few in full.

A million records pass through add(), so that it does as little as it can: it counts values as they came, in tables that are
folded into sums by name (and made safe to show) when they have grown, and at the end. Tallies of parts of the input are merged.
"""
import heapq
import math
from collections import Counter

from jobreport import twins, types
from jobreport.twins import RANK_LIMIT, TIME_LIMIT
from jobreport.wording import clean

STACK_FRAMES = 64
DISTINCT_LIMIT = 1000   # different sentences, stacks and places that are told apart
TABLE_LIMIT = 50_000    # rows of a table of values as they came
TICK = .01              # seconds: the finest grain of the time line
COARSER = 10            # times, when there are too many ticks
SEVERITY = {"not repaired": 2, "source changed": 1, "repaired": 0}
NOT_RECORDED = "not recorded"
NUMBERS = ("wrong_bytes", "gets_wrong", "offset", "first", "length")
WAYS = ("sender", "receiver", "verdict", "cause", "memory", "path", "device", "transports")  # of damage, whose sums Tally.ways are
VALUES = ("verdict", "cause", "class", "path", "carrier", "device", "port", "transports", "healed_by", "kind", "ucx_version", "digest",
          "job", "evidence")
PLAIN = {"verdict": "verdict", "class": "class", "transports": "transports", "healed by": "healed_by", "message kind": "kind", "UCX": "ucx_version",
         "digest": "digest"}  # kinds, and the values that they are as they came


class Tally:
    """Sums over records."""

    def __init__(self, worst):
        self.limit = worst
        self.lines = self.records = self.damaged_lines = self.wrong_bytes = self.unplaced = self.gets_wrong = 0
        self.damaged, self.unread = [], []
        self.newer, self.schemas = Counter(), Counter()
        self.kinds = {name: Counter() for name in (*PLAIN, "cause", "path", "carrier", "device", "communication", "job")}
        self.evidence = {}                                       # cause: Counter of sentences
        self.pairs, self.lost_pairs = Counter(), Counter()       # (sender, receiver): records
        self.host_pairs, self.lost_host_pairs = Counter(), Counter()
        self.ways = Counter()                                    # values of WAYS: records
        self.hosts = {}                                          # rank: host
        self.tick = TICK
        self.ticks = Counter()                                   # (tick, verdict, cause, class): records
        self.told = set()                                        # (role, message) that the program has changed
        self.stacks, self.bits, self.alignments, self.places = Counter(), Counter(), Counter(), Counter()
        self.ports = {}                                          # (host, port, counter): rise
        self.first_time, self.last_time = math.inf, -math.inf
        self.worst, self.examples = [], {}
        self.raw_values, self.raw_ways, self.raw_messages = {}, {}, {}
        self.mistyped = types.Mistyped()        # types that do not match: nothing was damaged
        self.differences = twins.Differences()  # what twins have found: nothing was damaged on its way

    def add_damaged(self, path, offset, complaint, limit):
        """A line that is no record."""
        self.damaged_lines += 1
        if len(self.damaged) < limit:
            self.damaged.append((path, offset, complaint))

    def add(self, record, schema, place):
        """Count a record. @return None, or what is wrong with it: then nothing of it was counted."""
        get = record.get
        if get("verdict") in twins.VERDICTS:
            return self.differences.add(record)
        if get("verdict") == types.VERDICT:
            return self.mistyped.add(record)
        numbers = [get(name) or 0 for name in NUMBERS]
        sender, receiver = sides_of(record)
        ranks = rank_of(get(sender + "rank")), rank_of(get(receiver + "rank"))
        time = get("time")
        if set(map(type, numbers)) != {int} or min(numbers) < 0 or max(numbers) >= 1 << 64:
            return "a number that is none"
        if None in ranks:
            return "a rank that is none"
        if time is not None and not (type(time) in (int, float) and 0 <= time < TIME_LIMIT):
            return "a time that is none"
        if get("verdict") == "source changed" and self.is_told(record, sender, receiver):
            return None
        wrong, gets, offset, first, length = numbers
        verdict, damage = get("verdict"), text_of(get("class"))
        cause = text_of(get("cause")) if schema >= 2 else "source_changed" if verdict == "source changed" else NOT_RECORDED
        self.records += 1
        self.schemas[schema] += 1
        self.wrong_bytes += wrong
        self.gets_wrong += gets
        self.add_values(record, cause)
        hosts = get(sender + "host"), get(receiver + "host")
        self.add_pair(ranks, hosts, verdict == "not repaired")
        count_raw(self.raw_ways, (*hosts, verdict, cause, memory_of(get("evidence"), hosts) if cause == "memory" else None, get("path"),
                                  get("device"), get("port"), get("transports")))
        self.add_time(time, verdict, cause, damage)
        if wrong:
            self.add_patterns(record, damage, offset + first)
        if get("stack"):
            self.add_stack(record["stack"])
        if get("rdma_errors"):
            self.add_ports(record)
        self.keep_worst((SEVERITY.get(verdict, 0), gets, wrong, length), place, record, (verdict, cause, damage))
        return None

    def is_told(self, record, sender, receiver):
        """Of what the program has changed both sides may tell: it is one message (two, where parts of the input are read apart)."""
        get = record.get
        message = repr((get("job"), get("seq"), *(get(side + name) for side in (sender, receiver) for name in ("host", "pid", "rank"))))
        role, other = ("sender", "receiver") if sender == "" else ("receiver", "sender")
        if (other, message) in self.told:
            return True
        if get("seq") is not None and len(self.told) < TABLE_LIMIT:
            self.told.add((role, message))
        return False

    def add_values(self, record, cause):
        """One more with these values."""
        mpi = record.get("mpi")
        message = (mpi.get("collective"), mpi.get("tag"), mpi.get("context")) if isinstance(mpi, dict) else record.get("tag")
        active = record.get("active_message")
        if active is not None:
            message = active if isinstance(active, str) else f"active message {active}"
        count_raw(self.raw_values, (cause, *map(record.get, VALUES)))
        count_raw(self.raw_messages, message)
        if max(len(self.raw_values), len(self.raw_messages), len(self.raw_ways)) > TABLE_LIMIT:
            self.fold()

    def add_pair(self, ranks, hosts, is_lost):
        """Who sent it to whom."""
        if -1 in ranks:
            self.unplaced += 1
        self.pairs[ranks] += 1
        if is_lost:
            self.lost_pairs[ranks] += 1
        for rank, host in zip(ranks, hosts):
            if rank not in self.hosts:
                self.hosts[rank] = clean(host)

    def add_time(self, time, verdict, cause, damage):
        """A place in the time line; -1 without a time."""
        tick = -1
        if time is not None:
            self.first_time, self.last_time = min(self.first_time, time), max(self.last_time, time)
            tick = int(time / self.tick)
        self.ticks[tick, verdict, cause, damage] += 1
        if len(self.ticks) > TABLE_LIMIT:
            self.coarsen(self.tick * COARSER)

    def coarsen(self, tick):
        """Let the ticks of the time line be longer."""
        ratio = round(tick / self.tick)
        if ratio > 1:
            finer, self.ticks, self.tick = self.ticks, Counter(), tick
            for (at, *kind), number in finer.items():
                self.ticks[(at // ratio if at >= 0 else at, *kind)] += number

    def add_patterns(self, record, damage, first):
        """Where in a message, and which bit: what is always the same is a hint."""
        self.alignments["page" if first % 4096 == 0 else "line" if first % 64 == 0 else "none"] += 1
        bounded(self.places, first)
        if damage == "bit flip":
            self.bits[flipped_bit(record.get("bad"), record.get("good"))] += 1

    def add_stack(self, stack):
        """The way to the receive that met the damage."""
        if isinstance(stack, list):
            bounded(self.stacks, tuple(map(text_of, stack[:STACK_FRAMES])))

    def add_ports(self, record):
        """Counters rise as long as a process lives: the last of many is the largest."""
        ports = record["rdma_errors"]
        for port, counters in ports.items() if isinstance(ports, dict) else ():
            for name, rise in counters.items() if isinstance(counters, dict) else ():
                if type(rise) is int:
                    key = text_of(record.get("host")), port, name
                    if rise > self.ports.get(key, 0):
                        self.ports[key] = rise

    def keep_worst(self, key, place, record, group):
        """The worst few, and the worst of each kind there is."""
        if len(self.worst) < self.limit:
            heapq.heappush(self.worst, (key, Place(place), record))
        elif key > self.worst[0][0]:
            heapq.heapreplace(self.worst, (key, Place(place), record))
        if group not in self.examples and len(self.examples) < DISTINCT_LIMIT:
            self.examples[group] = (key, Place(place), record)

    def fold(self):
        """Values as they came become sums by names that are safe to show."""
        for (cause, *values), number in self.raw_values.items():
            row = dict(zip(VALUES, values))
            cause = clean(cause)
            for kind, name in kinds_of(row, cause):
                self.kinds[kind][name] += number
            if row["evidence"]:
                bounded(self.evidence.setdefault(cause, Counter()), clean(row["evidence"], 400), number)
        for message, number in self.raw_messages.items():
            self.kinds["communication"][communication_of(message)] += number
        for (sender, receiver, verdict, cause, memory, path, device, port, transports), number in self.raw_ways.items():
            pair = clean(sender), clean(receiver)
            self.host_pairs[pair] += number
            if verdict == "not repaired":
                self.lost_host_pairs[pair] += number
            self.ways[(*pair, clean(verdict), clean(cause), clean(memory), given(path), device_of(device, port), clean(transports))] += number
        self.raw_values, self.raw_ways, self.raw_messages = {}, {}, {}

    def merge(self, other, examples):
        """Add up with the tally of another part, which comes after this one. Both must have been folded."""
        for name in ("lines", "records", "damaged_lines", "wrong_bytes", "unplaced", "gets_wrong"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.damaged = (self.damaged + other.damaged)[:examples]
        self.unread += other.unread
        tick = max(self.tick, other.tick)
        self.coarsen(tick)
        other.coarsen(tick)
        for name in ("newer", "schemas", "pairs", "lost_pairs", "host_pairs", "lost_host_pairs", "ways", "ticks", "bits", "alignments"):
            getattr(self, name).update(getattr(other, name))
        while len(self.ticks) > TABLE_LIMIT:
            self.coarsen(self.tick * COARSER)
        for name, counts in other.kinds.items():
            self.kinds[name].update(counts)
        for mine, others in ((self.stacks, other.stacks), (self.places, other.places),
                             *((self.evidence.setdefault(cause, Counter()), counts) for cause, counts in other.evidence.items())):
            for key, number in others.items():
                bounded(mine, key, number)
        for rank, host in other.hosts.items():
            self.hosts.setdefault(rank, host)
        for key, rise in other.ports.items():
            self.ports[key] = max(rise, self.ports.get(key, 0))
        self.first_time, self.last_time = min(self.first_time, other.first_time), max(self.last_time, other.last_time)
        self.worst = heapq.nlargest(self.limit, self.worst + other.worst)
        heapq.heapify(self.worst)
        for group, entry in other.examples.items():
            self.examples.setdefault(group, entry)
        self.mistyped.merge(other.mistyped)
        self.differences.merge(other.differences)

    def worst_first(self):
        """The records that are shown in full: the worst, and an example of each kind that is not among them, of at most as many
        kinds again."""
        entries = {entry[1].at: entry for entry in [*list(self.examples.values())[:self.limit], *self.worst]}
        return [(record, place.at) for _, place, record in sorted(entries.values(), reverse=True)]


class Place:
    """Where a record stands. Of two as bad as each other the earlier one is the worse."""
    __slots__ = ("at",)

    def __init__(self, at):
        self.at = at

    def __lt__(self, other):
        return self.at > other.at

    def __eq__(self, other):
        return self.at == other.at


def sides_of(record):
    """What the names of the sender's and of the receiver's fields begin with: a record is written by either side."""
    return ("", "peer_") if record.get("role") == "sender" else ("peer_", "")


def rank_of(value):
    """A rank; -1 if it is not known, None if it is no rank."""
    if type(value) is int and -1 <= value < RANK_LIMIT:
        return value
    return -1 if value is None else None


def text_of(value):
    """A text of a record, as it came."""
    return value if type(value) is str else clean(value)


def kinds_of(row, cause):
    """(kind, name) of one row of values."""
    yield from ((kind, clean(row[name])) for kind, name in PLAIN.items())
    yield "cause", cause
    yield "path", given(row["path"])
    yield "carrier", "none" if row["carrier"] is None and row["path"] is not None else given(row["carrier"])
    yield "device", device_of(row["device"], row["port"])
    if row["job"] is not None:
        yield "job", clean(row["job"])


def device_of(device, port):
    """mlx5_0:1"""
    return given(device) if port is None else f"{given(device)}:{clean(port)}"


def memory_of(evidence, hosts):
    """Which of two hosts it is whose memory has damaged a message, by what the evidence says (verdict.c); None if it names neither."""
    before, _, after = evidence.partition("host ") if isinstance(evidence, str) else ("", "", "")
    name = after.replace(",", " ").split(" ", 1)[0]
    return name if before and name in hosts else None


def given(value):
    """A value that not all records have."""
    return NOT_RECORDED if value is None else clean(value)


def communication_of(message):
    """What the program was doing, by the MPI's part of the tag; else the tag itself."""
    if isinstance(message, str) and message.startswith("active message "):
        return clean(message)
    if not isinstance(message, tuple):
        return f"tag {clean(message)}"
    collective, tag, context = message
    return f"{clean(collective) if collective else f'MPI tag {clean(tag)}'}, context {clean(context)}"


def count_raw(table, key):
    """Count what came; what has no hash (a list, where a text belongs) as its text."""
    try:
        table[key] = table.get(key, 0) + 1
    except TypeError:
        key = tuple(part if part is None or isinstance(part, (str, int, float)) else clean(part) for part in key) \
            if isinstance(key, tuple) else clean(key)
        table[key] = table.get(key, 0) + 1


def bounded(counts, key, number=1):
    """Count, but tell only so many apart; None is all others."""
    if key not in counts and len(counts) >= DISTINCT_LIMIT:
        key = None
    counts[key] += number


def flipped_bit(bad, good):
    """0 to 7: which bit of its byte is wrong; None if the record does not tell."""
    try:
        difference = int(bad, 16) ^ int(good, 16)
    except (TypeError, ValueError):
        return None
    if difference <= 0 or difference & (difference - 1):
        return None
    return (difference.bit_length() - 1) % 8
