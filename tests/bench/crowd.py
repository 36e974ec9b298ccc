#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""More ranks than cores: MPI_Alltoall with plain UCX against UCX with UCI, where the processor time of a message is all that counts.

Plain and UCI take turns, job by job; a ratio is of the two jobs of a round. Prints medians of the rounds.
"""
import os
import statistics
import subprocess
import sys

from bench_common import crowded_command, make_parser, uci_variables

COMPILERS = {"openmpi": "mpicc.openmpi", "mpich": "mpicc.mpich"}

# Calls in a turn. MPICH's progress never gives the core away: 16 ranks on 2 cores take 0.1 s for one, with UCI or without
COUNTS = {"openmpi": 40, "mpich": 1}


def compile_program(build, mpi):
    """The program for this MPI."""
    source = os.path.join(os.path.dirname(os.path.realpath(__file__)), "bench_crowd.c")
    program = build / "tests/bench" / f"bench_crowd.{mpi}"
    subprocess.run([COMPILERS[mpi], "-O2", "-o", program, source], check=True)
    return program


def run(command, program, count, options):
    """Microseconds by size."""
    done = subprocess.run([*command, program, str(count), *options.sizes.split(",")], capture_output=True, text=True,
                          timeout=300, check=False)
    if done.returncode:
        sys.exit(f"crowd.py: {' '.join(command)} failed:\n{done.stderr[-2000:]}")
    return dict(map(float, line.split(",")) for line in done.stdout.splitlines() if line[:1].isdigit())


def measure(program, mpi, ranks, options):
    """Rounds of (plain, UCI)."""
    rounds = []
    for number in range(options.rounds):
        pair = {}
        for preload in (False, True) if number % 2 else (True, False):
            variables = {"UCX_TLS": options.tls, "UCX_WARN_UNUSED_ENV_VARS": "n", **uci_variables(options.build, preload)}
            pair[preload] = run(crowded_command(mpi, ranks, variables), program, options.count or COUNTS[mpi], options)
        rounds.append(pair)
        print(f"{mpi}, {ranks} ranks: round {number + 1} of {options.rounds}", file=sys.stderr)
    return rounds


def print_rows(mpi, ranks, rounds):
    """A row for each size."""
    for size in sorted(rounds[0][True]):
        plain, uci = ([one[preload][size] for one in rounds] for preload in (False, True))
        ratios = sorted(b / a for a, b in zip(plain, uci))
        print(f"| {mpi} | {ranks} | {size:.0f} | {statistics.median(plain):.0f} | {statistics.median(uci):.0f} "
              f"| {statistics.median(ratios):.2f} | {ratios[0]:.2f} to {ratios[-1]:.2f} |", flush=True)


def main():
    """A table of all."""
    parser = make_parser(__doc__)
    parser.add_argument("--mpi", default="openmpi,mpich", help="which (default both)")
    parser.add_argument("--ranks", default="16,48", help="numbers of ranks (default 16,48)")
    parser.add_argument("--sizes", default="8,64,1024,4096", help="bytes to each rank (default 8,64,1024,4096)")
    parser.add_argument("--tls", default="posix,cma,self", help="UCX_TLS (default posix,cma,self)")
    parser.add_argument("--rounds", type=int, default=5, help="of a plain and a UCI job (default 5)")
    parser.add_argument("--count", type=int, help="calls in a turn (default 40, of MPICH 1)")
    options = parser.parse_args()
    print("| MPI | ranks | bytes | plain us | UCI us | ratio | rounds |\n|---|---:|---:|---:|---:|---:|---|")
    for mpi in options.mpi.split(","):
        program = compile_program(options.build, mpi)
        for ranks in options.ranks.split(","):
            print_rows(mpi, ranks, measure(program, mpi, ranks, options))


if __name__ == "__main__":
    main()
