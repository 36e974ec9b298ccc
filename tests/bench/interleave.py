#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Measure plain UCX against UCX with UCI, taking turns of milliseconds. Called by run_bench.sh, which has the usage.

Two jobs of bench_p2p, one plain and one with the library preloaded, live at the same time on the same cores; whoever
has not the turn sleeps. Each pair of measurements is adjacent in time, the order alternates (A B, B A, ...), and what
counts is the ratio within a pair: a machine whose speed drifts moves both. Jobs are started anew for each round,
because where their memory lands matters too.
"""
import argparse
import csv
import os
import select
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LATENCY_SIZES = "8,64,1k,8k,64k,1m"
STREAM_SIZES = "8k,64k,256k,1m,4m"
DEFAULT_SIZES = {"lat": LATENCY_SIZES, "bw": STREAM_SIZES, "bibw": STREAM_SIZES, "rate": "8"}
UNITS = {"lat": "us", "bw": "MB/s", "bibw": "MB/s", "rate": "msg/s"}
DEADLINE = 60  # seconds that one measurement may take before the job counts as stuck


class Job:
    """Two ranks of bench_p2p that measure when told."""

    def __init__(self, folder, name, command):
        self.name = name
        self.log = folder / f"{name}.log"
        turn = folder / name
        fifos = [Path(f"{turn}.{end}") for end in ("0", "1", "reply")]
        for fifo in fifos:
            os.mkfifo(fifo)
        # Opened for both directions, so that opening does not wait for the other side.
        self.turns = [os.open(fifo, os.O_RDWR | os.O_CLOEXEC) for fifo in fifos[:2]]
        self.reply = os.open(fifos[2], os.O_RDWR | os.O_CLOEXEC)
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={**os.environ, "BENCH_TURN": str(turn)})

    def measure(self, test, size, iterations):
        """One measurement's value."""
        for turn in self.turns:
            os.write(turn, f"{test} {size} {iterations}\n".encode())
        deadline = time.monotonic() + DEADLINE
        while not select.select([self.reply], [], [], 0.2)[0]:
            if self.process.poll() is not None:
                self.fail(f"ended with status {self.process.returncode}")
            if time.monotonic() > deadline:
                self.fail(f"gave no answer for {DEADLINE} s")
        return float(os.read(self.reply, 256))

    def fail(self, what):
        """End the benchmark with the job's own words."""
        self.process.terminate()
        sys.exit(f"{self.log.read_text(errors='replace')}\nthe {self.name} job {what}")

    def close(self):
        """Let the ranks finish; they see the end of their FIFOs."""
        for fifo in (*self.turns, self.reply):
            os.close(fifo)
        try:
            status = self.process.wait(timeout=DEADLINE)
        except subprocess.TimeoutExpired:
            self.fail("did not finish")
        if status:
            self.fail(f"ended with status {status}")


class Point:
    """All pairs of one test at one size."""

    def __init__(self, mpi, tls, test, size):
        self.mpi, self.tls, self.test, self.size = mpi, tls, test, size
        self.iterations = 0
        self.pairs = []  # (plain, uci)

    def calibrate(self, job, seconds):
        """Find the number of iterations that lasts about so long."""
        self.iterations, passed = 1, 0.0
        while passed < seconds / 4 and self.iterations < 1 << 30:
            self.iterations *= 2 if passed else 1
            begin = time.monotonic()
            job.measure(self.test, self.size, self.iterations)
            passed = max(time.monotonic() - begin, 1e-6)
        self.iterations = max(1, int(self.iterations * seconds / passed))

    def run(self, plain, uci, pairs):
        """Measure pairs in the order A B, B A, A B, ..."""
        for number in range(pairs):
            order = (plain, uci) if number % 2 == 0 else (uci, plain)
            value = {job: job.measure(self.test, self.size, self.iterations) for job in order}
            self.pairs.append((value[plain], value[uci]))

    def medians(self):
        """Median of plain and of uci."""
        return [statistics.median(column) for column in zip(*self.pairs)]

    def ratios(self):
        """First quartile, median and third quartile of uci : plain within a pair."""
        return quartiles([uci / plain for plain, uci in self.pairs])

    def added_ns(self):
        """Median of the latency added, in nanoseconds."""
        return statistics.median(1e3 * (uci - plain) for plain, uci in self.pairs)

    def target(self):
        """Target of issue 2 as text, and whether it is met; None where none is set."""
        tcp = "tcp" in self.tls.split(",")
        if self.test == "lat" and self.size == 8:
            if tcp:
                return "<= 1.03", self.ratios()[1] <= 1.03
            return "+ <= 60 ns", self.added_ns() <= 60
        if self.test == "bw" and tcp and 1 << 16 <= self.size <= 1 << 22:
            return ">= 0.90", self.ratios()[1] >= 0.9
        return None


def quartiles(values):
    """First quartile, median, third quartile, of one value or more."""
    return statistics.quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3


def parse_size(text):
    """64k as 65536."""
    units = {"k": 1 << 10, "m": 1 << 20}
    return int(text[:-1]) * units[text[-1].lower()] if text[-1].lower() in units else int(text)


def format_size(size):
    """65536 as 64k."""
    for unit, name in ((1 << 20, "m"), (1 << 10, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def job_command(mpi, tls, preload, program):
    """Command line that starts two bound ranks."""
    if mpi == "openmpi":
        command = ["mpirun.openmpi", "--allow-run-as-root", "-np", "2", "--map-by", "core", "--bind-to", "core",
                   "--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "-x", f"UCX_TLS={tls}"]
        command += ["-x", f"LD_PRELOAD={preload}"] if preload else []
    else:
        command = ["mpirun.mpich", "-np", "2", "-bind-to", "core", "-env", "UCX_TLS", tls]
        command += ["-env", "LD_PRELOAD", preload] if preload else []
    return [*command, program]


def measure_round(points, commands, options, number):
    """One launch of both jobs, all points of one MPI and transport."""
    with tempfile.TemporaryDirectory(prefix="uci-bench.") as folder:
        plain, uci = (Job(Path(folder), name, command) for name, command in commands.items())
        for done, point in enumerate(points):
            report_progress(options, point, number, done, len(points))
            if not point.iterations:
                point.calibrate(plain, options.block / 1e3)
            point.run(plain, uci, options.pairs)
        plain.close()
        uci.close()


def report_progress(options, point, number, done, total):
    """A line that renews itself on a terminal, one line a round elsewhere."""
    text = (f"{point.mpi} {point.tls}: round {number + 1} of {options.rounds}, "
            f"{point.test} {format_size(point.size)} ({done + 1} of {total})")
    if sys.stderr.isatty():
        print(f"\r{text:<78}", end="", file=sys.stderr, flush=True)
    elif done == 0:
        print(text, file=sys.stderr, flush=True)


def clear_progress():
    """Make room for the table on a terminal."""
    if sys.stderr.isatty():
        print("\r" + " " * 78, end="\r", file=sys.stderr, flush=True)


HEADER = ("MPI", "transport", "test", "size", "plain", "UCI", "unit", "ratio", "quartiles", "added", "target", "")


def table_row(point):
    """Cells of HEADER."""
    plain, uci = point.medians()
    low, ratio, high = point.ratios()
    target = point.target()
    return (point.mpi, point.tls, point.test, format_size(point.size), format_value(plain), format_value(uci),
            UNITS[point.test], f"{ratio:.3f}", f"{low:.3f}-{high:.3f}",
            f"{point.added_ns():+.0f} ns" if point.test == "lat" else "",
            target[0] if target else "", ("met" if target[1] else "MISSED") if target else "")


def format_value(value):
    """Three digits after the point for small values, none for large."""
    return f"{value:.3f}" if value < 100 else f"{value:,.0f}"


def print_table(rows, markdown):
    """Aligned columns: text to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(HEADER, *rows)]
    left = {0, 1, 2, 6, 10, 11}
    for number, row in enumerate([HEADER, *rows]):
        cells = [cell.ljust(width) if column in left else cell.rjust(width)
                 for column, (cell, width) in enumerate(zip(row, widths))]
        print("| " + " | ".join(cells) + " |" if markdown else "  ".join(cells).rstrip())
        if number == 0 and markdown:
            print("|" + "|".join(("-" * (width + 2)) if column in left else ("-" * (width + 1) + ":")
                                 for column, width in enumerate(widths)) + "|")


def write_csv(path, points):
    """Every pair, for one's own statistics."""
    with open(path, "w", newline="", encoding="ascii") as stream:
        writer = csv.writer(stream)
        writer.writerow(("mpi", "tls", "test", "size", "pair", "plain", "uci", "unit"))
        for point in points:
            for number, pair in enumerate(point.pairs):
                writer.writerow((point.mpi, point.tls, point.test, point.size, number, *pair, UNITS[point.test]))


def parse_arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--mpi", required=True, type=lambda text: text.split(","))
    parser.add_argument("--tls", action="append", required=True)
    parser.add_argument("--test", required=True, type=lambda text: text.split(","))
    parser.add_argument("--sizes", type=lambda text: text.split(","))
    parser.add_argument("--rounds", required=True, type=int)
    parser.add_argument("--pairs", required=True, type=int)
    parser.add_argument("--block", required=True, type=float)
    parser.add_argument("--preload", required=True)
    parser.add_argument("--programs", required=True, help="path of bench_p2p without .openmpi or .mpich")
    parser.add_argument("--csv")
    parser.add_argument("--markdown", action="store_true")
    return parser.parse_args()


def main():
    options = parse_arguments()
    points = []
    for mpi in options.mpi:
        for tls in options.tls:
            program = f"{options.programs}.{mpi}"
            commands = {"plain": job_command(mpi, tls, "", program),
                        "uci": job_command(mpi, tls, options.preload, program)}
            batch = [Point(mpi, tls, test, parse_size(size)) for test in options.test
                     for size in options.sizes or DEFAULT_SIZES[test].split(",")]
            for number in range(options.rounds):
                measure_round(batch, commands, options, number)
            points += batch
    clear_progress()
    print_table([table_row(point) for point in points], options.markdown)
    if options.csv:
        write_csv(options.csv, points)
    missed = sum(1 for point in points if point.target() and not point.target()[1])
    print(f"\n{options.rounds} x {options.pairs} pairs each; ratio = UCI : plain within a pair, median and quartiles; "
          f"targets missed: {missed}")


main()
