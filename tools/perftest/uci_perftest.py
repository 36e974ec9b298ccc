#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Plain UCX against UCX with UCI, interleaved, on two ranks of Open MPI or MPICH, or on more pairs.

Jobs of two ranks (uci_perftest.openmpi, uci_perftest.mpich) live at the same time on the same cores and take turns of
milliseconds: one plain, one with the library preloaded, and one with UCI but without a digest. Whoever has not the turn
sleeps. What counts is the ratio within a round of turns, which are adjacent in time and change their order: a machine
whose speed drifts moves all of them. Jobs are started anew for each launch, because where their memory lands matters.
"""
import argparse
import csv
import json
import math
import os
import platform
import re
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "share/uci"))  # where it is installed; beside this file when built
# pylint: disable=wrong-import-position
import uci_job  # noqa: E402
import uci_version  # noqa: E402
from uci_job import JobError  # noqa: E402

LATENCY_SIZES = "8,64,1k,8k,64k,1m"
STREAM_SIZES = "8k,64k,256k,1m,4m"
SEND_SIZES = "5000,8k,16k,32k,64k,256k"
TYPE_SIZES = "640,10k,80k,1280k"  # a multiple of what the types need
DEFAULT_SIZES = {"lat": LATENCY_SIZES, "bw": STREAM_SIZES, "bibw": STREAM_SIZES, "rate": "8", "send": SEND_SIZES, "vec": TYPE_SIZES,
                 "struct": TYPE_SIZES, "blocks": TYPE_SIZES, "xchg": LATENCY_SIZES, "olap": LATENCY_SIZES}
UNITS = {"lat": "us", "bw": "MB/s", "bibw": "MB/s", "rate": "msg/s", "send": "MB/s", "vec": "us", "struct": "us", "blocks": "us",
         "xchg": "us", "olap": "us"}
TYPE_UNITS = {"vec": 8, "struct": 20, "blocks": 8}  # bytes that their messages are multiples of
SIZE_MAX = (1 << 31) - 1  # MPI counts in an int
DEFAULT_TLS = ("posix,self", "posix,cma,self", "tcp,self")
DEADLINE = 60  # seconds that one measurement, or a start, may take before the job counts as stuck
GREETING = 5  # seconds that who has connected may take to say its number
QUICK = {"launches": 1, "rounds": 6}
NORMAL = {"launches": 3, "rounds": 20}
NOISE_ROUNDS = 4  # in all: fewer have no quartiles to speak of
NOISE_SPREAD = 0.25  # from the first to the third quartile, of the median: beyond, the ratio tells nothing

EPILOG = """
columns:
  ratio      UCI : plain within a round, median; then the first and third quartile
  added      time a message takes longer, in ns, and where it goes: digest (measured against a job with
             UCI_DIGEST=none), copy (memcpy of the same size, measured here, as often as UCI copies: twice a
             message in a ping-pong, once where both ends work at the same time), protocol (the rest: headers,
             acknowledgements, round trips, and what UCX does differently; below 0 where UCX itself copies as
             often, or UCI's way is the faster one). UCI fuses digest and copy, so 'digest' is what the digest
             costs on top of the copy. Digest and the rest are medians of their own, so the causes need not add
             up to the total: where they are off by more than a tenth of it, a line below the table says so.

  With fresh buffers (test/fresh) the time to write and to read them is in both, and the windowed tests have 64 MiB of
  buffers at most under way: 16 messages of 4 MiB, not 64.

examples:
  uci_perftest --quick                                   all tests on this host, both MPIs, a few minutes
  uci_perftest --mpi openmpi --tls tcp,self --test lat,bw --sizes 8,64k,1m
  uci_perftest --hosts node1,node2 --tls all --test bw   between two hosts
  uci_perftest --preload none                            plain against plain: the noise of this machine
  uci_perftest --against old/libucx_integrity.so         two builds of UCI: column plain is the other one
  uci_perftest --buffers both --tls posix,cma,self       as benchmarks have them, and as programs do
  UCI_CHUNK_SIZE=64k uci_perftest --json result.json     settings reach the job with UCI
"""


class Turns:
    """Where the ranks of all jobs connect to be told what to measure."""

    def __init__(self, is_remote):
        self.socket = socket.create_server(("" if is_remote else "127.0.0.1", 0), backlog=16)
        host = socket.gethostname() if is_remote else "127.0.0.1"
        self.address = f"{host}:{self.socket.getsockname()[1]}"

    def accept(self, job, deadline):
        """The next rank that connects, as (number, socket); fails if the job ends before."""
        while True:
            while not select.select([self.socket], [], [], 0.2)[0]:
                job.check(deadline, "did not start")
            connection = self.socket.accept()[0]
            try:
                connection.settimeout(GREETING)
                number = int(connection.recv(16))
            except (OSError, ValueError):  # somebody else, who has found the port, or a rank that is gone
                connection.close()
                continue
            connection.settimeout(None)
            return number, connection


class Job:
    """Ranks that measure when told."""

    def __init__(self, turns, folder, name, command, count):
        self.name = name
        self.log = folder / f"{name}.log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        deadline = time.monotonic() + DEADLINE
        ranks = dict(turns.accept(self, deadline) for _ in range(count))
        self.ranks = [ranks[number] for number in range(count)]

    def measure(self, test, size, iterations):
        """One measurement's value."""
        try:
            answer = self.ask(f"{test} {size} {iterations}\n")
        except ConnectionError:  # a rank is gone
            answer = b""
        if not answer:
            self.fail("ended in a measurement")
        return float(answer)

    def ask(self, turn):
        """What rank 0 says when all have had their turn."""
        for rank in self.ranks:
            rank.sendall(turn.encode())
        deadline = time.monotonic() + DEADLINE
        while not select.select(self.ranks[:1], [], [], 0.2)[0]:
            self.check(deadline, "gave no answer")
        return self.ranks[0].recv(256)

    def check(self, deadline, complaint):
        """Is there still hope for an answer?"""
        if self.process.poll() is not None:
            self.fail(f"ended with status {self.process.returncode}")
        if time.monotonic() > deadline:
            self.fail(f"{complaint} within {DEADLINE} s")

    def fail(self, what):
        """End the benchmark with the job's own words."""
        self.process.terminate()
        sys.exit(f"{self.log.read_text(errors='replace')}\nuci_perftest: the job '{self.name}' {what}")

    def close(self):
        """Let the ranks finish; they see the end of their connections."""
        for rank in self.ranks:
            rank.close()
        try:
            status = self.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.fail("did not finish")
        if status:
            self.fail(f"ended with status {status}")


class Point:
    """All rounds of one test at one size."""

    def __init__(self, mpi, tls, test, size, buffers="hot", pairs=1):
        self.mpi, self.tls, self.test, self.size, self.buffers, self.pairs = mpi, tls, test, size, buffers, pairs
        self.iterations = 0
        self.rounds = []  # {job name: value}
        self.copies = []  # microseconds of a memcpy

    def name(self):
        """What the jobs call it."""
        return self.test if self.buffers == "hot" else f"{self.test}/{self.buffers}"

    def calibrate(self, job, seconds):
        """Find the number of iterations that lasts about so long."""
        self.iterations, passed = 1, 0.0
        while passed < seconds / 4 and self.iterations < 1 << 30:
            self.iterations *= 2 if passed else 1
            begin = time.monotonic()
            job.measure(self.name(), self.size, self.iterations)
            passed = max(time.monotonic() - begin, 1e-6)
        self.iterations = max(1, int(self.iterations * seconds / passed))

    def run(self, jobs, rounds):
        """Every job measures once a round; who begins changes from round to round."""
        for number in range(rounds):
            order = jobs[number % len(jobs):] + jobs[:number % len(jobs)]
            self.rounds.append({job.name: job.measure(self.name(), self.size, self.iterations) for job in order})
        iterations = max(1, min(1000, (64 << 20) // max(self.size, 1)))
        self.copies.append(jobs[0].measure("copy", self.size, iterations))

    def median(self, name):
        """Median of one job."""
        return statistics.median(values[name] for values in self.rounds)

    def ratios(self):
        """First quartile, median and third quartile of uci : plain within a round."""
        return quartiles([values["uci"] / values["plain"] for values in self.rounds])

    def message_ns(self, value):
        """Nanoseconds a message takes, or from one to the next of a pair: rates are those of all pairs."""
        if UNITS[self.test] == "us":
            return 1e3 * value
        return self.pairs * (1e9 / value if self.test == "rate" else 1e3 * self.size / value)

    def difference_ns(self, name, base):
        """Median of how much longer a message takes in job NAME."""
        return statistics.median(self.message_ns(values[name]) - self.message_ns(values[base])
                                 for values in self.rounds)

    def added(self):
        """Nanoseconds a message takes longer: in all, and (with a job without digest) by cause."""
        parts = {"total": self.difference_ns("uci", "plain")}
        if "none" in self.rounds[0]:
            parts["digest"] = self.difference_ns("uci", "none")
            parts["copy"] = (2 if UNITS[self.test] == "us" else 1) * 1e3 * statistics.median(self.copies)
            parts["protocol"] = self.difference_ns("none", "plain") - parts["copy"]
            parts["unexplained"] = parts["total"] - parts["digest"] - parts["copy"] - parts["protocol"]
        return parts

    def adds_up(self):
        """Do the causes explain what a message takes longer, but for a tenth or 10 ns?"""
        added = self.added()
        return abs(added.get("unexplained", 0)) <= max(abs(added["total"]) / 10, 10)

    def is_noisy(self):
        """Are the rounds too few, or too far apart, to tell anything by?"""
        low, ratio, high = self.ratios()
        return len(self.rounds) < NOISE_ROUNDS or high - low > NOISE_SPREAD * ratio

    def record(self):
        """What --json writes of it."""
        low, ratio, high = self.ratios()
        return {"mpi": self.mpi, "transports": self.tls, "test": self.test, "buffers": self.buffers, "size": self.size,
                "unit": UNITS[self.test], "plain": self.median("plain"), "uci": self.median("uci"), "ratio": ratio,
                "ratio_quartiles": [low, high], "too_noisy": self.is_noisy(), "added_ns": self.added(), "rounds": self.rounds}


def quartiles(values):
    """First quartile, median, third quartile, of one value or more."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def parse_size(text):
    """64k as 65536."""
    match = re.fullmatch(r"([0-9]{1,10})([kKmM]?)", text)
    size = int(match[1]) * {"": 1, "k": 1 << 10, "m": 1 << 20}[match[2].lower()] if match else SIZE_MAX + 1
    if size > SIZE_MAX:
        raise argparse.ArgumentTypeError(f"'{text}' is no size: expected bytes, as 8, 64k or 4m, of at most {SIZE_MAX}")
    return size


def check_sizes(parser, options):
    """Of a type there are so many whole elements; and of no bytes there is no rate."""
    for test in options.test:
        unit = TYPE_UNITS.get(test, 1)
        for size in options.sizes or ():
            if size % unit or (size == 0 and (test in TYPE_UNITS or UNITS[test] == "MB/s")):
                parser.error(f"--test {test} has no messages of {size} bytes: expected " + (f"multiples of {unit}, not 0" if unit > 1 else "1 or more"))


def format_size(size):
    """65536 as 64k."""
    for unit, name in ((1 << 20, "m"), (1 << 10, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def job_command(mpi, tls, settings, options, address):
    """Command line that starts bound ranks with these variables."""
    binding = {"openmpi": ["--bind-to", options.bind, "--map-by", "node" if options.hosts else "core"],
               "mpich": ["-bind-to", options.bind]}
    return options.launchers[mpi].command(2 * options.pairs, {"UCX_TLS": tls, "PERFTEST_TURN": address, **settings}, [options.programs[mpi]],
                                          options.hosts or "", [*binding[mpi], *options.mpirun_args])


def job_settings(options):
    """Job name -> variables of its ranks. Plain comes first: it is the one that iterations are found with."""
    preload = {"LD_PRELOAD": options.preload} if options.preload else {}
    settings = {"plain": {"LD_PRELOAD": options.against} if options.against else {}, "uci": preload}
    if options.breakdown:
        settings["none"] = {**preload, "UCI_DIGEST": "none"}
    return settings


def measure_launch(points, mpi, tls, options, number):
    """One launch of all jobs, all points of one MPI and transport."""
    turns = Turns(bool(options.hosts))
    with tempfile.TemporaryDirectory(prefix="uci-perftest.") as folder:
        jobs = [Job(turns, Path(folder), name, job_command(mpi, tls, settings, options, turns.address), 2 * options.pairs)
                for name, settings in job_settings(options).items()]
        for done, point in enumerate(points):
            report_progress(options, point, number, done, len(points))
            if not point.iterations:
                point.calibrate(jobs[0], options.block / 1e3)
            point.run(jobs, options.rounds)
        for job in jobs:
            job.close()


def report_progress(options, point, number, done, total):
    """A line that renews itself on a terminal, one line a launch elsewhere."""
    text = (f"{point.mpi} {point.tls}: launch {number + 1} of {options.launches}, "
            f"{point.name()} {format_size(point.size)} ({done + 1} of {total})")
    if sys.stderr.isatty():
        print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)
    elif done == 0:
        print(text, file=sys.stderr, flush=True)


def read_file(path):
    """What is in a small file of the kernel's."""
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def read_caches():
    """Those of the first core that this process may use: [{"name": "L2", "size": "2048K", "cores": "0"}], without those of instructions."""
    core = min(os.sched_getaffinity(0))
    caches = []
    for folder in sorted(Path(f"/sys/devices/system/cpu/cpu{core}/cache").glob("index*")):
        kind = read_file(folder / "type")
        if kind != "Instruction":
            caches.append({"name": f"L{read_file(folder / 'level')}" + ("d" if kind == "Data" else ""), "size": read_file(folder / "size"),
                           "cores": read_file(folder / "shared_cpu_list")})
    return caches


def read_machine():
    """What figures depend on, of this host."""
    lines = (line.partition(":") for line in read_file("/proc/cpuinfo").splitlines())
    known = {name.strip(): value.strip() for name, _, value in lines}
    numbers = [f"{name} {known[name]}" for name in ("cpu family", "model", "stepping") if name in known]
    return {"processor": known.get("model name", platform.machine()), "numbers": ", ".join(numbers), "cores": len(os.sched_getaffinity(0)),
            "caches": read_caches(), "kernel": platform.release()}


def describe_machine(machine):
    """A line of it for the head of the table."""
    numbers = f" ({machine['numbers']})" if machine["numbers"] else ""
    caches = "".join(f", {cache['name']} {cache['size']} (cores {cache['cores']})" for cache in machine["caches"])
    return f"{socket.gethostname()}: {machine['processor']}{numbers}, {machine['cores']} cores{caches}; Linux {machine['kernel']}"


HEADER = ("MPI", "transport", "test", "size", "plain", "UCI", "unit", "ratio", "quartiles", "added ns", "digest",
          "copy", "protocol", "")
TEXT_COLUMNS = {0, 1, 2, 6, 13}


def table_row(point):
    """Cells of HEADER."""
    low, ratio, high = point.ratios()
    added = point.added()
    causes = [f"{added[name]:+,.0f}" if name in added else "" for name in ("total", "digest", "copy", "protocol")]
    return (point.mpi, point.tls, point.name(), format_size(point.size), format_value(point.median("plain")),
            format_value(point.median("uci")), UNITS[point.test], f"{ratio:.3f}", f"{low:.3f}-{high:.3f}", *causes,
            "too noisy" if point.is_noisy() else "")


def format_value(value):
    """Three digits after the point for small values, none for large."""
    return f"{value:.3f}" if value < 100 else f"{value:,.0f}"


def print_table(rows, markdown):
    """Aligned columns: text to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(HEADER, *rows)]
    for number, row in enumerate([HEADER, *rows]):
        cells = [cell.ljust(width) if column in TEXT_COLUMNS else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        print("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells).rstrip())
        if number == 0 and markdown:
            print("|" + "|".join(("-" * (width + 2)) if column in TEXT_COLUMNS else ("-" * (width + 1) + ":")
                                 for column, width in enumerate(widths)) + "|")


def print_unexplained(points):
    """Rows whose causes do not add up."""
    for point in points:
        if not point.adds_up():
            print(f"{point.mpi} {point.tls} {point.name()} {format_size(point.size)}: the causes do not add up, "
                  f"{point.added()['unexplained']:+,.0f} ns of {point.added()['total']:+,.0f} are unexplained")


def write_csv(path, points, _):
    """Every round, for one's own statistics."""
    with open(path, "w", newline="", encoding="ascii") as stream:
        writer = csv.writer(stream)
        writer.writerow(("mpi", "transports", "test", "size", "round", "job", "value", "unit", "buffers"))
        for point in points:
            for number, values in enumerate(point.rounds):
                for name, value in values.items():
                    writer.writerow((point.mpi, point.tls, point.test, point.size, number, name, value,
                                     UNITS[point.test], point.buffers))


def write_json(path, points, options):
    """Medians, ratios, causes and every round."""
    result = {"uci_perftest": 1, "host": socket.gethostname(), "machine": read_machine(), "pairs": options.pairs, "preload": options.preload,
              "settings": {name: value for name, value in os.environ.items() if name.startswith(("UCI_", "UCX_"))},
              "points": [point.record() for point in points]}
    text = json.dumps(result, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        Path(path).write_text(text, encoding="ascii")


def find_library(path):
    """PATH as it may be preloaded."""
    if not Path(path).is_file():
        raise JobError(f"there is no library {path}: build it, or give another path")
    return str(Path(path).resolve())


def find_installed(options):
    """The library, the jobs' program and mpirun of each MPI, beside this script or where Meson builds and installs them."""
    if options.preload == "none":
        options.preload, options.breakdown = "", False
    else:
        options.preload = find_library(options.preload or uci_job.find_library())
    if options.against:
        options.against, options.breakdown = find_library(options.against), False
    options.programs, options.launchers = {}, {}
    for mpi in options.mpi:
        options.launchers[mpi] = uci_job.find_launcher(mpi)
        options.programs[mpi] = uci_job.find_tool(f"uci_perftest.{mpi}")
        if options.programs[mpi] is None:
            raise JobError(f"uci_perftest.{mpi} is not beside this program: UCI was built without {uci_job.MPIS[mpi]}")


def check_output(path):
    """What is measured for minutes must have somewhere to go."""
    target = Path(path)
    place = target if target.exists() else target.parent
    if target.is_dir():
        raise JobError(f"cannot write {path}: it is a folder")
    if not os.access(place, os.W_OK):
        raise JobError(f"cannot write {path}: {place} is not there, or may not be written to")


def write_files(options, points):
    """@return whether all that was asked for is written; what is not is told, and the table comes all the same."""
    ok = True
    for path, write in ((options.csv, write_csv), (options.json if options.json != "-" else None, write_json)):
        try:
            if path:
                write(path, points, options)
        except OSError as problem:
            print(f"uci_perftest: cannot write {path}: {problem.strerror}", file=sys.stderr)
            ok = False
    return ok


def parse_arguments():
    """Options; what is wrong ends the program with a sentence."""
    def names(text):
        return text.split(",")

    def mpis(text):
        chosen = list(uci_job.MPIS) if text == "both" else names(text)
        for mpi in chosen:
            if mpi not in uci_job.MPIS:
                raise argparse.ArgumentTypeError(f"unknown MPI '{mpi}': expected openmpi, mpich or both")
        return chosen

    def sizes(text):
        return [parse_size(size) for size in names(text)]
    parser = argparse.ArgumentParser(prog="uci_perftest", description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mpi", default="both", type=mpis, help="openmpi, mpich or both (default)")
    parser.add_argument("--tls", action="append",
                        help=f"a UCX_TLS; repeat for more (default {', then '.join(DEFAULT_TLS)})")
    parser.add_argument("--test", default="lat,bw,rate,bibw", type=names,
                        help="lat: ping-pong; bw: windows of 64 messages; rate: messages a second; bibw: both "
                             "directions (default these four); vec, struct, blocks: ping-pong of non-contiguous types; xchg: both "
                             "ranks send; olap: both send and compute meanwhile; send: blocking sends, one after the other")
    parser.add_argument("--sizes", type=sizes, help="bytes, as 8,1k,4m (default: each test's own)")
    parser.add_argument("--buffers", default="hot", choices=("hot", "fresh", "both"),
                        help="hot: as OSU's, one that stays in the caches (default); fresh: as a program's, written before each send and read after "
                             "each receive, within the timing; both")
    parser.add_argument("--pairs", default=1, type=int, metavar="N", help="so many pairs of ranks at once, and what they move together (default 1)")
    parser.add_argument("--hosts", type=uci_job.named_hosts, help="two hosts, A,B, for a rank on each (default: both ranks here)")
    parser.add_argument("--bind", default="core", metavar="WHAT", help="what mpirun binds a rank to (core, none, ...)")
    parser.add_argument("--mpirun-args", default=[], type=uci_job.split_words, metavar="ARGS",
                        help="more arguments for mpirun, quoted as for a shell")
    parser.add_argument("--launches", type=int, metavar="N", help="launches of the jobs (default 3)")
    parser.add_argument("--rounds", type=int, metavar="N",
                        help="rounds of turns for each size in a launch (default 20)")
    parser.add_argument("--block", default=20, type=float, metavar="MS", help="length of a turn (default 20)")
    parser.add_argument("--quick", action="store_true", help="one launch of 6 rounds, unless --launches or --rounds say otherwise")
    parser.add_argument("--no-breakdown", dest="breakdown", action="store_false",
                        help="without the job that tells where the time goes: a third faster")
    parser.add_argument("--preload", metavar="PATH", help="library to measure (default: the one built or installed "
                        "with this program); 'none' for plain against plain")
    parser.add_argument("--against", metavar="PATH", help="another build of the library, which takes the place of plain UCX")
    parser.add_argument("--json", type=uci_job.given, metavar="FILE", help="write medians, ratios, causes and every value ('-': stdout, "
                        "instead of the table)")
    parser.add_argument("--csv", type=uci_job.given, metavar="FILE", help="write every value")
    parser.add_argument("--markdown", action="store_true", help="print the table as Markdown")
    uci_version.add_version(parser)
    options = parser.parse_args()
    for name, value in (QUICK if options.quick else NORMAL).items():
        if getattr(options, name) is None:
            setattr(options, name, value)
    for test in options.test:
        if test not in UNITS:
            parser.error(f"unknown test '{test}': expected {', '.join(UNITS)}")
    if min(options.launches, options.rounds, options.pairs) < 1 or not 0 < options.block < math.inf:
        parser.error("launches, rounds, pairs and block must be positive")
    check_sizes(parser, options)
    options.tls = options.tls or DEFAULT_TLS
    for path in filter(None, (options.csv, options.json if options.json != "-" else None)):
        check_output(path)
    find_installed(options)
    return options


def main():
    options = parse_arguments()
    points = []
    for mpi in options.mpi:
        for tls in options.tls:
            batch = [Point(mpi, tls, test, size, buffers, options.pairs) for test in options.test
                     for buffers in (("hot", "fresh") if options.buffers == "both" else (options.buffers,))
                     for size in options.sizes or map(parse_size, DEFAULT_SIZES[test].split(","))]
            for number in range(options.launches):
                measure_launch(batch, mpi, tls, options, number)
            points += batch
    if sys.stderr.isatty():
        print(f"\r{'':78}", end="\r", file=sys.stderr, flush=True)  # room for the table
    is_written = write_files(options, points)
    if options.json == "-":
        write_json("-", points, options)
    else:
        print(describe_machine(read_machine()) + (f"; {options.pairs} pairs" if options.pairs > 1 else "") + "\n")
        print_table([table_row(point) for point in points], options.markdown)
        print_unexplained(points)
        noisy = sum(point.is_noisy() for point in points)
        print(f"\n{options.launches} x {options.rounds} rounds each; ratio = UCI : plain within a round, median and quartiles")
        if noisy:
            print(f"{noisy} of {len(points)} are too noisy to tell anything: quartiles are more than {NOISE_SPREAD:.0%} of the median apart, or there "
                  f"are fewer than {NOISE_ROUNDS} rounds. Give it an idle machine, or more --rounds")
    sys.stdout.flush()
    return 0 if is_written else 1


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # else the logs of its jobs are left
    try:
        sys.exit(main())
    except JobError as problem:
        sys.exit(f"uci_perftest: {problem}")
    except KeyboardInterrupt:
        print("\nuci_perftest: interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # "| head" has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as problem:  # a full disk
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what could not be written is not tried again
        sys.exit(f"uci_perftest: cannot write: {problem.strerror}")
