# SPDX-License-Identifier: BSD-3-Clause
"""Files of processes about their calls of MPI (UCI_CALLS; mpi/calls_file.h has their layout): what is in them, trusted in nothing."""
import json
import struct
from typing import NamedTuple

MAGIC, LAYOUT = b"UCICALLS", 4
NONE, FOREIGN = -1, -2  # of a peer: any, and one that is not of MPI_COMM_WORLD
OUTSIDE, ALL, ANY, POLLS = range(4)
THREADS, COMMS, PLACES, SENDS, WAITS, TEXT = 64, 256, 2048, 1024, 62, 1 << 21
HEAD = struct.Struct("=8sIIiIQQIIIIIIQQQ64s")
THREAD, WAIT = struct.Struct("=IIiIQQQ"), struct.Struct("=iiiiII")
COMM, PLACE, SENT, PEER = struct.Struct("=QQQ"), struct.Struct("=QQQQ"), struct.Struct("=Qiiii"), struct.Struct("=QQ")
RANKS = 1 << 20  # of a communicator, at most
PEERS = 1 << 16
THREAD_SIZE = THREAD.size + WAITS * WAIT.size
TABLES_SIZE = HEAD.size + THREADS * THREAD_SIZE + COMMS * COMM.size + PLACES * PLACE.size + SENDS * SENT.size + TEXT


class Wait(NamedTuple):
    """What a thread waits for; all that may be is NONE of what is not known."""
    peer: int
    tag: int
    comm: int
    place: int
    receives: int
    collective: int


class Thread(NamedTuple):
    """What a thread is in."""
    tid: int  # 0: it has ended
    state: int
    place: int
    count: int  # of what it waits for: `waits` may have fewer
    since: float
    outside: float  # of one that tests: seconds since then that it was not in these tests
    tested: float   # when its last test was
    waits: list


class Comm(NamedTuple):
    """A communicator, as one process knows it."""
    id: int  # 0: it was not seen being made
    group: int
    collectives: int
    name: str
    ranks: list  # of ranges, each of which comes next

    def size(self):
        """How many ranks it has."""
        return sum(map(len, self.ranks))


class Place(NamedTuple):
    """A call, and where it was made from."""
    call: str
    stack: tuple
    count: int
    time: float
    longest: float
    bytes: int


class Sent(NamedTuple):
    """A message that was sent."""
    bytes: int
    place: int
    peer: int
    tag: int
    comm: int


class Process:
    """One file. Raises ValueError for one that is none."""

    def __init__(self, data):
        if len(data) < TABLES_SIZE:
            raise ValueError("too short for a file of calls")
        (magic, layout, self.pid, self.rank, self.size, begun, ended, checks, *used, _, sends, text, self.lost, host) = HEAD.unpack_from(data)
        if magic != MAGIC or layout != LAYOUT:
            raise ValueError(f"no file of calls of layout {LAYOUT}")
        self.host = host.split(b"\0")[0].decode(errors="replace")
        self.begun, self.ended, self.checks = begun / 1e9, ended / 1e9, bool(checks)
        threads, comms, places, peers = (min(number, limit) for number, limit in zip(used, (THREADS, COMMS, PLACES, PEERS)))
        place = HEAD.size
        self.has_all_threads = threads < THREADS  # else there may have been more
        self.threads = [thread for thread in (read_thread(data, place + number * THREAD_SIZE) for number in range(threads)) if thread.tid]
        place += THREADS * THREAD_SIZE
        numbers = [COMM.unpack_from(data, place + number * COMM.size) for number in range(comms)]
        place += COMMS * COMM.size
        costs = [PLACE.unpack_from(data, place + number * PLACE.size) for number in range(places)]
        place += PLACES * PLACE.size
        ring = [Sent(*SENT.unpack_from(data, place + number * SENT.size)) for number in range(min(sends, SENDS))]
        self.sends = ring[sends % SENDS:] + ring[:sends % SENDS] if sends > SENDS else ring  # the oldest first
        place += SENDS * SENT.size
        lines = list(read_lines(data[place:place + min(text, TEXT)]))
        place += TEXT
        self.peers = {number: PEER.unpack_from(data, place + number * PEER.size)
                      for number in range(min(peers, (len(data) - place) // PEER.size))}
        self.findings = [line for line in lines if isinstance(line.get("finding"), str)]
        self.comms = {index: Comm(*found, "", []) for index, found in enumerate(numbers)}  # those that nothing was called on yet have no line
        self.comms |= {line["comm"]: Comm(*numbers[line["comm"]], text_of(line.get("name")), ranks_in(line.get("ranks")))
                       for line in lines if is_index(line.get("comm"), numbers) and "ranks" in line}
        self.places = {line["place"]: Place(text_of(line.get("call")), tuple(map(text_of, line["stack"])), costs[line["place"]][0],
                                            costs[line["place"]][1] / 1e9, costs[line["place"]][2] / 1e9, costs[line["place"]][3])
                       for line in lines if is_index(line.get("place"), costs) and isinstance(line.get("stack"), list)}

    def comm_like(self, comm):
        """What another process knows as COMM: if it was not seen being made, the only such one of the same ranks. None: that is not known."""
        alike = [own for own in self.comms.values() if own.id == comm.id and own.group == comm.group]
        return alike[0] if len(alike) == 1 else None


def mark_of(path):
    """Changes whenever a thread of this process has come from one call to another: not while it tests the same requests again and again. None: it can't be
    told. Reads of the file no more than that takes."""
    try:
        with open(path, "rb") as file:
            data = file.read(HEAD.size)
            if len(data) < HEAD.size or not data.startswith(MAGIC):
                return None
            head = HEAD.unpack_from(data)
            count = min(head[8], THREADS)
            data = file.read(count * THREAD_SIZE)
    except OSError:
        return None
    if len(data) < count * THREAD_SIZE:
        return None
    threads = (read_thread(data, number * THREAD_SIZE) for number in range(count))
    return head[6], tuple((thread.place, thread.since) for thread in threads)


def read_thread(data, place):
    """A Thread."""
    tid, state, call, count, since, outside, tested = THREAD.unpack_from(data, place)
    waits = [Wait(*WAIT.unpack_from(data, place + THREAD.size + number * WAIT.size)) for number in range(min(count, WAITS))]
    return Thread(tid, state, call, count, since / 1e9, outside / 1e9, tested / 1e9, waits)


def read_lines(text):
    """Objects of JSON, one a line."""
    for line in text.split(b"\n"):
        try:
            found = json.loads(line.decode())
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def is_index(value, table):
    """Is it a place in TABLE?"""
    return type(value) is int and 0 <= value < len(table)


def text_of(value):
    """A string, whatever it is."""
    return value if isinstance(value, str) else ""


def ranks_in(value):
    """Ranges from a list of [first, last], whatever it is: a line of text may stand for a million ranks, and there may be many lines."""
    found, room = [], RANKS
    for pair in value if isinstance(value, list) else []:
        if isinstance(pair, list) and len(pair) == 2 and all(type(number) is int for number in pair) and 0 <= pair[0] <= pair[1] < pair[0] + room:
            found.append(range(pair[0], pair[1] + 1))
            room -= len(found[-1])
    return found


def read_calls(paths):
    """([Process by rank], those of other MPI_COMM_WORLDs, [(path, why it could not be read)]). The first of a rank is the job's; one that began later was
    started by it (MPI_Comm_spawn), and has ranks of its own."""
    found, others, complaints = {}, [], []
    for path in paths:
        try:
            with path.open("rb") as file:
                process = Process(file.read(TABLES_SIZE + PEERS * PEER.size))
        except OSError as error:
            complaints.append((str(path), error.strerror))
            continue
        except (ValueError, struct.error) as error:
            complaints.append((str(path), str(error)))
            continue
        first = found.setdefault(process.rank, process)
        if first is not process:
            others.append(max(first, process, key=lambda one: one.begun))
            found[process.rank] = min(first, process, key=lambda one: one.begun)
    return [found[number] for number in sorted(found)], others, complaints
