#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What healing costs: the same job without faults and with each target of the injector, over each transport, with each MPI.

Two ranks exchange windows of messages. Jobs with and without faults take turns; a ratio is of the two jobs of a round. Prints for each case
the medians: faults, longest stall (nothing arrived at a rank that waited), time, and control messages for a fault beyond those of the
job without faults. Targets: a stall of 1 s at most, at a rate of 1e-2 twice the time, at 1e-3 1.1 times, 8 control messages for a fault. What misses one is
marked with an exclamation mark. A second table has the worst of all cases for each target and rate. With --busy others use the processors
meanwhile.
"""
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_common import crowded_command, make_parser, uci_variables

COMPILERS = {"openmpi": "mpicc.openmpi", "mpich": "mpicc.mpich"}
TARGETS = "payload,header,ack,tree,memory,any"

# Rounds, messages in a window, bytes
FORMS = {"small": (400, 64, 64), "slot": (100, 64, 8192), "large": (12, 16, 1 << 20)}

STALL_S = 1.0
SLOWER = {1e-2: 2.0, 1e-3: 1.1}
CONTROL_PER_FAULT = 8

# Seconds, after which a job counts as hung
LIMIT = 120


def compile_program(build, mpi):
    """The program for this MPI."""
    source = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bench_heal.c")
    program = build / "tests/bench" / f"bench_heal.{mpi}"
    subprocess.run([COMPILERS[mpi], "-O2", "-o", program, source], check=True)
    return program


@contextlib.contextmanager
def busy(count):
    """Processes that compute meanwhile."""
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for other in others:
            other.kill()
            other.wait()


def add_up(folder):
    """Counters of all processes."""
    sums = {}
    for path in Path(folder).glob("*.json"):
        for name, value in json.loads(path.read_text()).items():
            if isinstance(value, int):
                sums[name] = sums.get(name, 0) + value
    return sums


def run(program, mpi, tls, form, fault, build):
    """One job: its messages, seconds, stall and counters."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {"UCX_TLS": tls, "UCX_WARN_UNUSED_ENV_VARS": "n", "UCI_STATS": f"{folder}/%r.%p.json", **uci_variables(build, True)}
        if fault:
            variables["UCI_FAULT"] = fault
        command = [*crowded_command(mpi, 2, variables), program, *map(str, FORMS[form])]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False)
        except subprocess.TimeoutExpired:
            sys.exit(f"heal.py: not over in {LIMIT} s: {' '.join(map(str, command))}")
        if done.returncode:
            sys.exit(f"heal.py: {' '.join(map(str, command))} failed:\n{(done.stdout + done.stderr)[-2000:]}")
        line = next(line for line in done.stdout.splitlines() if line[:1].isdigit())
        messages, seconds, stall = map(float, line.split(","))
        return {"messages": messages, "seconds": seconds, "stall": stall, **add_up(folder)}


def control_per_fault(clean, faulty):
    """Control messages that faults have caused, for each."""
    return max(faulty["control_sent"] - clean["control_sent"], 0) / max(faulty["faults_injected"], 1)


def mark(value, limit, digits):
    """The value, and whether it is over the limit."""
    return f"{value:.{digits}f}" + (" !" if limit is not None and value > limit else "")


def measure(program, mpi, tls, form, fault, options):
    """A row: the medians of some rounds, and the longest stall of all."""
    pairs = [(run(program, mpi, tls, form, None, options.build), run(program, mpi, tls, form, fault, options.build))
             for _ in range(options.rounds)]
    clean, faulty = zip(*pairs)
    return {"faults": statistics.median(job["faults_injected"] for job in faulty), "clean stall": max(job["stall"] for job in clean),
            "stall": max(job["stall"] for job in faulty), "seconds": statistics.median(job["seconds"] for job in faulty),
            "ratio": statistics.median(b["seconds"] / a["seconds"] for a, b in pairs),
            "control": statistics.median(control_per_fault(a, b) for a, b in pairs)}


def print_row(case, rate, row):
    """A row of the table; a case whose path has nothing that could be hit says so."""
    if row["faults"] == 0:
        print(f"| {' | '.join(case)} | {rate:g} | 0 | | | | | |", flush=True)
        return
    print(f"| {' | '.join(case)} | {rate:g} | {row['faults']:.0f} | {row['clean stall']:.3f} | {mark(row['stall'], STALL_S, 3)} "
          f"| {row['seconds']:.2f} | {mark(row['ratio'], SLOWER.get(rate), 2)} | {mark(row['control'], CONTROL_PER_FAULT, 1)} |", flush=True)


def print_worst(rows):
    """A table of the worst of all cases, each figure by itself."""
    print("\n| target | rate | cases | longest stall s | largest ratio | median ratio | control |\n|---|---:|---:|---:|---:|---:|---:|")
    for target, rate in dict.fromkeys((case[-1], rate) for case, rate, row in rows if row["faults"]):
        of = [row for case, other, row in rows if (case[-1], other) == (target, rate) and row["faults"]]
        print(f"| {target} | {rate:g} | {len(of)} | {mark(max(row['stall'] for row in of), STALL_S, 3)} "
              f"| {mark(max(row['ratio'] for row in of), SLOWER.get(rate), 2)} "
              f"| {mark(statistics.median(row['ratio'] for row in of), SLOWER.get(rate), 2)} "
              f"| {mark(max(row['control'] for row in of), CONTROL_PER_FAULT, 1)} |")


def main():
    """A table of all, and one of the worst."""
    parser = make_parser(__doc__)
    parser.add_argument("--mpi", default="openmpi,mpich", help="which (default both)")
    parser.add_argument("--tls", default="posix,self posix,cma,self tcp,self", help="UCX_TLS, separated by spaces (default '%(default)s')")
    parser.add_argument("--forms", default=",".join(FORMS), help="of traffic (default %(default)s)")
    parser.add_argument("--targets", default=TARGETS, help="of faults (default %(default)s)")
    parser.add_argument("--rates", default="1e-3,1e-2,0.05,0.2", help="of faults (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="of a job without and one with faults (default %(default)s)")
    parser.add_argument("--busy", type=int, default=0, help="processes that use the processors meanwhile (default 0)")
    parser.add_argument("--seed", type=int, default=1, help="of the injector (default 1)")
    options = parser.parse_args()
    print("| MPI | UCX_TLS | messages | target | rate | faults | stall s, no faults | stall s | s | ratio | control |\n"
          "|---|---|---|---|---:|---:|---:|---:|---:|---:|---:|")
    rows = []
    with busy(options.busy):
        for mpi in options.mpi.split(","):
            program = compile_program(options.build, mpi)
            for tls in options.tls.split():
                for form in options.forms.split(","):
                    for target in options.targets.split(","):
                        for rate in map(float, options.rates.split(",")):
                            row = measure(program, mpi, tls, form, f"rate={rate},target={target},seed={options.seed}", options)
                            rows.append(((mpi, tls, form, target), rate, row))
                            print_row(*rows[-1])
    print_worst(rows)


if __name__ == "__main__":
    main()
