#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""The table that ends tools/demo.sh, and its verdict as exit status.

usage: demo_table.py DIR

DIR holds plain/, off/ and on/, each with run.json (status, wall, ranks, limit), hpccoutf.txt (hpcc's own output)
and, except for plain, stats.PID.json (UCI_STATS of each rank).
"""
import contextlib
import json
import math
import re
import signal
import sys
from pathlib import Path

RUNS = (("plain", "plain"), ("off", "faults, UCI off"), ("on", "faults, UCI on"))
ROWS = (("messages", "messages_sent"), ("chunks verified", "chunks_verified"),
        ("faults injected", "faults_injected"), ("nobody read", "faults_unseen"), ("mismatches", "mismatched_chunks"),
        ("repaired", "repaired_chunks"), ("bytes retransmitted", "retransmitted_bytes"))
TIMED_OUT = 124  # timeout(1)
THRESHOLD = 16.0  # of scaled residuals, as in hpcc's example input


class Run:
    """One run of hpcc: what hpcc found, and what UCI counted."""

    def __init__(self, folder):
        self.__dict__.update(json.loads((folder / "run.json").read_text()))
        output = folder / "hpccoutf.txt"
        self.output = output.read_text(errors="replace") if output.exists() else ""
        self.stats = [json.loads(path.read_text()) for path in sorted(folder.glob("stats.*.json"))]
        self.findings = list(self.find_wrong())

    def verdict(self):
        """One word for the table."""
        return "timed out" if self.status == TIMED_OUT else "FAILED" if self.findings else "passed"

    def count(self, key):
        """Sum of a counter over the ranks; None if nothing was counted."""
        return sum(stats.get(key, 0) for stats in self.stats) if self.stats else None

    def find_wrong(self):
        """What hpcc's own checks, or its end, say against this run."""
        if self.status == TIMED_OUT:
            yield f"did not end within {self.limit} s: the machine is busy or slow, or hpcc hangs (--timeout gives it longer)"
            return  # what is missing then is no finding
        if self.status != 0:
            yield "ended with " + describe_status(self.status)
        for residual in re.findall(r"\*N\)= *(\S+) \.+ FAILED", self.output):
            yield f"HPL residual {float(residual):.3g} (limit {THRESHOLD:g})"
        for residual in re.findall(r"^WALL .* FAILED +\S+ +(\S+)", self.output, re.M):
            yield f"PTRANS residual {float(residual):.3g}"
        for name in ("MPIRandomAccess", "MPIRandomAccess_LCG"):
            errors = int(self.summary(name + "_Errors") or 0)
            if errors:
                yield f"{name}: {errors:,} wrong words"
        if not self.fft_residual() < THRESHOLD:
            yield f"MPIFFT residual {self.fft_residual():.3g} (limit {THRESHOLD:g})"
        if "End of HPC Challenge" not in self.output:
            yield "hpcc did not reach its end"
        elif self.summary("Success") != "1":
            yield "Success=0 in hpcc's summary"

    def fft_residual(self):
        """Scaled as hpcc scales it; hpcc 1.5 computes this verdict and then forgets to report it."""
        error, size, eps = (float(self.summary(key) or 0) for key in ("MPIFFT_maxErr", "MPIFFT_N", "HPL_eps"))
        return error / (math.log(size) * eps) if size > 1 and eps > 0 else 0.0

    def summary(self, key):
        """A value of hpcc's summary section, as text; None if it did not get there."""
        found = re.search(rf"^{key}=(\S+)$", self.output, re.M)
        return found and found.group(1)


def describe_status(status):
    """Exit status of mpirun, in words."""
    with contextlib.suppress(ValueError):
        return signal.Signals(status - 128).name
    return f"exit status {status}"


def print_table(runs):
    """One column a run."""
    rows = [["", *(label for _, label in RUNS)]]
    for label, key in ROWS:
        rows.append([label, *(number(run.count(key)) for run in runs)])
    rows.append(["hpcc", *(run.verdict() for run in runs)])
    rows.append(["wall time", *(f"{run.wall:.1f} s" for run in runs)])
    widths = [max(map(len, column)) for column in zip(*rows)]
    print()
    for row in rows:
        print(row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:])), sep="   ")
    print()


def number(value):
    """1234567 as 1,234,567; nothing counted as -."""
    return "-" if value is None else f"{value:,}"


def problems(plain, off, on):
    """Why the demonstration did not show what it should; empty if it did."""
    late = [label for (_, label), run in zip(RUNS, (plain, off, on)) if run.status == TIMED_OUT]
    if late:
        yield f"timed out ({', '.join(late)}), so nothing is shown; give --timeout more than {plain.limit} s"
        return
    if plain.findings:
        yield "hpcc fails without UCI and without faults"
    if not off.findings:
        yield "the faults broke nothing with protection off"
    if on.findings:
        yield "hpcc fails with UCI on"
    if len(on.stats) != on.ranks:
        yield f"statistics of {len(on.stats)} of {on.ranks} ranks with UCI on"
    if not on.count("faults_injected"):
        yield "no faults were injected with UCI on"
    if not on.count("repaired_chunks"):
        yield "nothing was repaired"
    if on.count("faults_injected") != on.count("mismatched_chunks") + on.count("faults_unseen"):
        yield "faults that are neither mismatches nor in what nobody read"
    if on.count("mismatched_chunks") != on.count("repaired_chunks") or on.count("unrepaired_chunks"):
        yield "not every mismatch was repaired"


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    runs = [Run(folder / name) for name, _ in RUNS]
    print_table(runs)
    for (_, label), run in zip(RUNS, runs):
        if run.findings:
            print(f"{label}:", *run.findings, sep="\n    ")
    wrong = list(problems(*runs))
    if wrong:
        sys.exit("NOT AS IT SHOULD BE: " + "; ".join(wrong))
    print("The faults that break hpcc over plain UCX leave no trace with UCI on.")


main()
