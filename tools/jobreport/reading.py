# SPDX-License-Identifier: BSD-3-Clause
"""Finding the files of a run, and streaming their records into tallies.

Nothing is trusted: a line may be cut off, binary, endless, or no record at all. It is counted then, with its place.
"""
import concurrent.futures
import gc
import json
import os
from pathlib import Path

from jobreport import ending, twins
from jobreport.tally import Tally

KNOWN_SCHEMA = 2
BLOCK = 1 << 20        # bytes read at a time, of a line that is no record
LINE_LIMIT = 16 << 20  # a longer line is no record
UNIT = 32 << 20        # bytes of records that one process takes at a time
BATCH = 256            # files of one unit at most
EXAMPLES = 20          # damaged lines whose place is kept
DECODER = json.JSONDecoder()


class Run:
    """The files of all folders, by what they hold."""

    def __init__(self):
        self.folders, self.events, self.statistics, self.live, self.captures = [], [], [], [], []
        self.twins = []  # reports of processes of twins
        self.ends = []   # of uci_run: how the job ended
        self.calls = []  # of processes whose calls of MPI were watched
        self.ledgers = []  # of nodes, which are of no single job
        self.ignored = 0

    def add_folder(self, folder):
        """Everything in a folder, and in those of its twins; capture/ is only listed."""
        self.folders.append(str(folder))
        for path in sorted(folder.iterdir()):
            if path.is_dir() and path.name == "capture":
                self.captures += sorted(str(file) for file in path.iterdir())
            elif path.is_dir() and twins.FOLDER.fullmatch(path.name):
                self.add_folder(path)
            elif path.is_file():
                self.add_file(path)

    def add_file(self, path):
        """A file by its name, and where that does not tell, by how it begins."""
        name = path.name
        if name.endswith(".live"):
            self.live.append(path)
        elif name == ending.NAME:
            self.ends.append(path)
        elif name.startswith("calls."):
            self.calls.append(path)
        elif name.endswith(".ledger") or (not name.startswith("events.") and name.endswith(".jsonl") and '"uci_ledger"' in peek(path)):
            self.ledgers.append(path)
        elif name.startswith("events.") or name.endswith(".jsonl"):
            self.events.append(path)
        elif name.startswith("stats.") or (name.endswith(".json") and '"messages_received"' in peek(path)):
            self.statistics.append(path)
        elif name.startswith("twins.") or (name.endswith(".json") and '"twins": 1' in peek(path)):
            self.twins.append(path)
        elif name.endswith(".json") and '"verdict"' in peek(path):
            self.events.append(path)
        else:
            self.ignored += 1

    def is_empty(self):
        """Was there nothing of UCI's?"""
        return not (self.events or self.statistics or self.live or self.twins or self.ends or self.calls)


def peek(path):
    """How a file begins."""
    try:
        with open(path, "rb") as file:
            return file.read(4096).decode(errors="replace")
    except OSError:
        return ""


def find_files(names):
    """A Run of folders, and of files given by name. Raises OSError for what cannot be read."""
    run = Run()
    for name in names:
        path = Path(name)
        if path.is_dir():
            run.add_folder(path)
        else:
            path.open("rb").close()
            run.add_file(path)
    return run


def units_of(files):
    """Lists of (file, first byte, end) that a process can take at a time: many small files, or a part of a large one."""
    units, batch, size = [], [], 0
    for path in files:
        length = path.stat().st_size
        for begin in range(0, length, UNIT):
            end = min(begin + UNIT, length)
            batch.append((str(path), begin, end))
            size += end - begin
            if size >= UNIT or len(batch) >= BATCH:
                units.append(batch)
                batch, size = [], 0
    return units + ([batch] if batch else [])


def lines_of(path, begin, end):
    """Lines, as (offset, bytes), that begin within [begin, end) of a file; None as bytes for one that is too long."""
    with open(path, "rb") as file:
        file.seek(max(begin - 1, 0))
        offset = begin - 1 + skip_line(file) if begin > 0 else 0
        while offset < end:
            line = file.readline(LINE_LIMIT)
            if not line:
                return
            length = len(line)
            if length == LINE_LIMIT and not line.endswith(b"\n"):
                length += skip_line(file)
                line = None
            yield offset, line
            offset += length


def skip_line(file):
    """Read on until a line is over. @return bytes read."""
    skipped, part = 0, b" "
    while part and not part.endswith(b"\n"):
        part = file.readline(BLOCK)
        skipped += len(part)
    return skipped


def parse_object(line):
    """A line of JSON as (dictionary, None), or (None, why it is none)."""
    if line is None:
        return None, f"longer than {LINE_LIMIT >> 20} MiB"
    try:
        text = line.decode("utf-8").strip()
        record, end = DECODER.raw_decode(text)
    except UnicodeDecodeError:
        return None, "not UTF-8"
    except (ValueError, RecursionError):
        return None, "not JSON, or cut off"
    if end != len(text):
        return None, "something follows the record"
    return (record, None) if isinstance(record, dict) else (None, "no JSON object")


def parse_line(line):
    """A record as (dictionary, None), or (None, why it is none)."""
    record, complaint = parse_object(line)
    if record is not None and not isinstance(record.get("verdict"), str):
        return None, "no record: there is no verdict in it"
    return record, complaint


def read_unit(unit, number, worst):
    """The tally of one unit."""
    tally = Tally(worst)
    is_collecting = gc.isenabled()
    gc.disable()  # records have no cycles, and looking for some takes as long as the rest
    try:
        for path, begin, end in unit:
            try:
                read_part(tally, path, begin, end, number)
            except OSError as error:
                tally.unread.append((path, os.strerror(error.errno) if error.errno else str(error)))
    finally:
        if is_collecting:
            gc.enable()
    tally.fold()
    return tally


def read_part(tally, path, begin, end, number):
    """The lines of one part of a file."""
    for offset, line in lines_of(path, begin, end):
        if line is not None and not line.strip():
            continue
        tally.lines += 1
        record, complaint = parse_line(line)
        if record is not None:
            schema = record.get("schema", 1)
            if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
                complaint = "a schema that is no number"
            elif schema > KNOWN_SCHEMA:
                tally.newer[schema] += 1
                continue
            else:
                complaint = tally.add(record, schema, (number, path, offset))
        if complaint:
            tally.add_damaged(path, offset, complaint, EXAMPLES)


def read_records(files, worst, jobs=None):
    """The Tally of all records. Large inputs are read by several processes."""
    units = units_of(files)
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(units))
    total = Tally(worst)
    if jobs <= 1:
        for number, unit in enumerate(units):
            total.merge(read_unit(unit, number, worst), EXAMPLES)
        return total
    with concurrent.futures.ProcessPoolExecutor(jobs) as pool:
        for part in pool.map(read_unit, units, range(len(units)), [worst] * len(units)):
            total.merge(part, EXAMPLES)
    return total
