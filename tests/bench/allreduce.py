#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPI_Allreduce by node against the MPI's own: plain UCX, UCI, and sealed, over hosts that are network namespaces of this machine (root).

Jobs take turns; within a job, all-reduces by node and the MPI's own do. Prints a table of medians, then the model of mpi/README.md fitted to
them, and what it predicts for clusters.
"""
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from bench_common import crowded_command, make_parser
from crowd import COMPILERS

ROOT = Path(__file__).resolve().parents[2]
# What the paper has measured (M. Gavahi et al., tables III and V): name, nodes, ranks of a node, bytes -> us of MVAPICH, of it encrypted, of the best
PAPER = (("Noleland", 8, 16, {65536: (67.27, 78.08, 72.73), 262144: (254.21, 341.96, 274.53), 1048576: (1318.48, 1342.49, 954.84),
                              4194304: (5555.11, 6720.13, 4608.25)}),
         ("Bridges-2", 16, 64, {65536: (402.28, 571.14, 402.21), 262144: (1428.10, 1625.31, 1057.95), 2097152: (12687.91, 14015.21, 8716.61),
                                4194304: (27541.10, 31761.25, 12863.05)}))
# A network as the paper's, in ns: a round, a byte's way through a core (zero-copy), a byte on the wire (100 Gbit/s). A byte of the MPI's own goes
# mostly to ranks of the same node, which is one copy in and one out
NETWORK = {"round": 3000.0, "mpi_round": 3000.0, "byte": 0.02, "wire": 0.08, "piece": 3000.0, "record": 500.0}


def launch_line(options, mpi, hosts, ranks, variables):
    """mpirun for RANKS on each of HOSTS."""
    variables = {"UCX_TLS": options.tls, "UCX_WARN_UNUSED_ENV_VARS": "n", **variables}
    return crowded_command(mpi, hosts * ranks, variables, [f"uci-{letter}:{ranks}" for letter in "abcdefgh"[:hosts]])


def variables_of(options, mpi, kind, key):
    """What a job of this kind ("plain", "uci", "sign", "encrypt") has in its environment."""
    if kind == "plain":
        return {}
    variables = {"LD_PRELOAD": f"{options.build}/libucx_integrity.so:{options.build}/mpi/libuci_mpi_{mpi}.so", "UCI_ALLREDUCE": "on"}
    return variables if kind == "uci" else {**variables, "UCI_SEAL": kind, "UCI_KEY_FILE": key}


def run(options, mpi, hosts, ranks, kind, key):
    """Bytes -> (us of MPI_Allreduce, us of PMPI_Allreduce)."""
    program = options.build / "tests/bench" / f"bench_allreduce.{mpi}"
    line = [*launch_line(options, mpi, hosts, ranks, variables_of(options, mpi, kind, key)), str(program), str(options.turns),
            str(options.milliseconds), *options.sizes.split(",")]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = process.communicate(timeout=options.limit)
    except subprocess.TimeoutExpired:  # plain MPICH over tcp may hang in MPI_Finalize: then all has been measured
        process.terminate()
        output, errors = process.communicate()
        print(f"{hosts} hosts, {mpi}, {ranks} ranks each, {kind}: ended after {options.limit} s", file=sys.stderr)
    rows = [line.split(",") for line in output.splitlines() if line[:1].isdigit()]
    if len(rows) != len(options.sizes.split(",")):
        sys.exit(f"allreduce.py: {' '.join(line)} failed:\n{errors[-2000:]}")
    return {int(row[0]): (float(row[1]), float(row[2])) for row in rows}


def measure_inside(options):
    """On the first of the hosts: jobs of all kinds in turns; a JSON line for each."""
    with tempfile.TemporaryDirectory() as folder:
        key = os.path.join(folder, "key")
        with open(os.open(key, os.O_CREAT | os.O_WRONLY, 0o600), "w", encoding="ascii") as stream:
            stream.write(os.urandom(32).hex() + "\n")
        for number in range(options.rounds):
            for mpi in options.mpi.split(","):
                for ranks in map(int, options.ranks.split(",")):
                    kinds = options.kinds.split(",")
                    for kind in kinds if number % 2 == 0 else reversed(kinds):
                        times = run(options, mpi, options.inside, ranks, kind, key)
                        print(json.dumps({"mpi": mpi, "hosts": options.inside, "ranks": ranks, "kind": kind, "times": times}), flush=True)
                    print(f"{options.inside} hosts, {mpi}, {ranks} ranks each: round {number + 1} of {options.rounds}", file=sys.stderr)


def measure(options, arguments):
    """All jobs, over as many hosts as --hosts says."""
    jobs = []
    for mpi in options.mpi.split(","):
        subprocess.run([COMPILERS[mpi], "-O2", "-o", options.build / "tests/bench" / f"bench_allreduce.{mpi}", ROOT / "tests/bench/bench_allreduce.c"],
                       check=True)
    for hosts in options.hosts.split(","):
        done = subprocess.run([ROOT / "tools/two_hosts.sh", "-n", hosts, __file__, *arguments, "--inside", hosts], stdout=subprocess.PIPE, text=True,
                              check=False)
        if done.returncode:
            sys.exit(f"allreduce.py: over {hosts} hosts it has failed")
        jobs += [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return jobs


def medians(jobs):
    """(mpi, hosts, ranks, bytes) -> {"plain": us, "uci": (by node, own), ...}: medians of a kind's jobs."""
    table = {}
    for job in jobs:
        for size, pair in job["times"].items():
            row = table.setdefault((job["mpi"], job["hosts"], job["ranks"], int(size)), {})
            row.setdefault(job["kind"], []).append(pair)
    return {key: {kind: tuple(statistics.median(pair[i] for pair in pairs) for i in range(2)) for kind, pairs in row.items()}
            for key, row in table.items()}


def print_table(table, kinds):
    """Times, and what all-reduces by node take of the MPI's own."""
    names = [name for kind in kinds for name in (["plain"] if kind == "plain" else [f"{kind}: MPI", f"{kind}: node", "ratio"])]
    print("| MPI | hosts x ranks | bytes | " + " | ".join(names) + " |\n|---|---|---:|" + "---:|" * len(names))
    for (mpi, hosts, ranks, size), row in sorted(table.items()):
        cells = []
        for kind in kinds:
            node, own = row[kind]
            cells += [f"{own:.0f}"] if kind == "plain" else [f"{own:.0f}", f"{node:.0f}", f"{node / own:.2f}"]
        print(f"| {mpi} | {hosts} x {ranks} | {size} | " + " | ".join(cells) + " |")
    print("\nTimes in us; ratio: by node to the MPI's own.\n")


# --- the model ---

def model(build, nodes, ranks, sealed, sizes):
    """Names of terms, their costs, and (bytes, "node" or "mpi") -> counts."""
    words = [build / "tests/bench/bench_allreduce_model", nodes, ranks, int(sealed), *sizes]
    lines = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=True).stdout.splitlines()
    names = lines[0].split(",")
    costs = dict(zip(names, map(float, lines[1].split(","))))
    counts = {(int(line.split(",")[0]), line.split(",")[1]): list(map(float, line.split(",")[2:])) for line in lines[2:]}
    return names, costs, counts


def measured_costs(build):
    """What one core does by itself: copying with a digest, adding up."""
    output = subprocess.run([build / "tests/bench/bench_allreduce_model", "measure"], capture_output=True, text=True, check=True).stdout
    return {name: float(cost) for name, cost in (line.split(",") for line in output.splitlines())}


def fit_costs(rows, start, fixed):
    """Costs, none negative, with the least sum of squares of the relative error: one after the other, until nothing moves. FIXED stay."""
    count = len(start)
    products = [[sum(counts[i] * counts[j] / time**2 for counts, time in rows) for j in range(count)] for i in range(count)]
    wanted = [sum(counts[i] / time for counts, time in rows) for i in range(count)]
    costs = list(start)
    for _ in range(100000):
        for i in range(count):
            if products[i][i] > 0 and i not in fixed:
                rest = wanted[i] - sum(products[i][j] * costs[j] for j in range(count) if j != i)
                costs[i] = max(rest / products[i][i], 0.0)
    return costs


def fit(options, table):
    """The model's costs on this machine, where ranks share the cores: with p of them, everything takes p / cores times as long.
    Ranks of MPICH do not give the core away: where there are more than cores, what is measured is the scheduler, and left out."""
    rows, names, costs = [], [], {}
    for (mpi, hosts, ranks, size), row in table.items():
        crowd = max(hosts * ranks / os.cpu_count(), 1)
        for kind, pair in row.items():
            if kind == "plain" or (mpi == "mpich" and crowd > 1):
                continue
            names, costs, counts = model(options.build, hosts, ranks, kind != "uci", [size])
            for way, time in zip(("node", "mpi"), pair):
                rows.append(([crowd * count * (name != "wire") for name, count in zip(names, counts[size, way])], time * 1000))
    known = measured_costs(options.build)
    fitted = dict(zip(names, fit_costs(rows, list({**costs, **known}.values()), {names.index(name) for name in known})))
    errors = [abs(sum(count * fitted[name] for name, count in zip(names, counts)) / time - 1) for counts, time in rows]
    print(f"Costs, ns: measured alone: {known}; fitted: " + ", ".join(f"{name} {fitted[name]:.4g}" for name in names if name != "wire" and name not in known))
    print(f"What they say of {len(rows)} times is off by {100 * statistics.median(errors):.0f} % (median), "
          f"{100 * sorted(errors)[len(errors) * 9 // 10]:.0f} % (9 of 10)\n")
    return fitted


def predict(options, fitted):
    """Sealed and not, for clusters with a network as the paper's, and costs of memory and sealing as here."""
    print("| nodes x ranks | bytes | MPI | MPI, sealed | by node | by node, sealed | sealed by node to MPI |   |\n|---|---:|---:|---:|---:|---:|---:|---|")
    shapes = [(nodes, 16, (65536, 1048576, 16777216), {}, "") for nodes in (8, 32, 128, 512, 1024)]
    for name, nodes, ranks, measured in PAPER:
        shapes.append((nodes, ranks, tuple(measured), measured, name))
    for nodes, ranks, sizes, measured, name in shapes:
        times = {}
        for sealed in (False, True):
            names, costs, counts = model(options.build, nodes, ranks, sealed, sizes)
            costs = {**costs, **fitted, **NETWORK, "mpi_byte": 2 * fitted["copy"]}
            for (size, way), line in counts.items():
                times[size, way, sealed] = sum(count * costs[term] for term, count in zip(names, line)) / 1000
        for size in sizes:
            cells = [times[size, way, sealed] for way in ("mpi", "node") for sealed in (False, True)]
            paper = ""
            if size in measured:
                plain, naive, best = measured[size]
                paper = f"{name}: {plain:.0f}, {naive:.0f}, best {best:.0f}: {best / plain:.2f}"
            print(f"| {nodes} x {ranks} | {size} | " + " | ".join(f"{cell:.0f}" for cell in cells) + f" | {cells[3] / cells[0]:.2f} | {paper} |")
    print("\nTimes in us.")


def main():
    """Measure, or take what was measured, and print."""
    parser = make_parser(__doc__)
    parser.add_argument("--mpi", default="openmpi,mpich", help="which (default both)")
    parser.add_argument("--hosts", default="2,4", help="numbers of hosts (default 2,4)")
    parser.add_argument("--ranks", default="1,2", help="numbers of ranks on each (default 1,2)")
    parser.add_argument("--kinds", default="plain,uci,encrypt", help="of plain, uci, sign, encrypt (default plain,uci,encrypt)")
    parser.add_argument("--sizes", default="4096,16384,65536,262144,1048576,4194304,16777216,67108864", help="bytes (default 4 KiB to 64 MiB)")
    parser.add_argument("--tls", default="tcp,self", help="UCX_TLS (default tcp,self)")
    parser.add_argument("--rounds", type=int, default=3, help="of jobs of all kinds (default 3)")
    parser.add_argument("--turns", type=int, default=5, help="of both ways within a job (default 5)")
    parser.add_argument("--milliseconds", type=int, default=100, help="that a turn takes (default 100)")
    parser.add_argument("--limit", type=int, default=300, help="seconds for a job (default 300)")
    parser.add_argument("--save", help="file for what was measured")
    parser.add_argument("--load", action="append", help="take what --save has written, instead of measuring; may be repeated")
    parser.add_argument("--inside", type=int, help="for its own use: number of hosts, this is the first of them")
    options = parser.parse_args()
    if options.inside:
        measure_inside(options)
        return
    if not options.load and os.geteuid() != 0:
        sys.exit("allreduce.py: network namespaces are made by root")
    jobs = [json.loads(line) for name in options.load or () for line in Path(name).read_text(encoding="ascii").splitlines()]
    jobs = jobs or measure(options, sys.argv[1:])
    if options.save:
        Path(options.save).write_text("".join(json.dumps(job) + "\n" for job in jobs), encoding="ascii")
    table = medians(jobs)
    kinds = [kind for kind in options.kinds.split(",") if all(kind in row for row in table.values())]
    print_table(table, kinds)
    predict(options, fit(options, table))


if __name__ == "__main__":
    main()
