#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Applications with plain UCX against UCX with UCI: Debian's LAMMPS and HPC Challenge with inputs that they ship.

Two ranks of Open MPI. Plain and UCI take turns, who begins changes from round to round, and a ratio is of the two runs of a
round. Times are the applications' own (LAMMPS: its loop; hpcc: of its parts) and, for all, the wall clock around mpirun. Of hpcc's
LatencyBandwidth, half of its wall clock, the bandwidths of 2 MB: one way (ping-pong), and both ways at once (rings). A ratio
is of times, or of what a byte takes: above 1 UCI is slower.
"""
import gzip
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench_common import make_parser, uci_variables

LAMMPS_INPUT = Path("/usr/share/lammps/examples/melt/in.melt")
HPCC_INPUT = Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")
HPCC_BANDWIDTHS = ("MaxPingPongBandwidth_GBytes", "NaturallyOrderedRingBandwidth_GBytes",
                   "RandomlyOrderedRingBandwidth_GBytes")
HPCC_TIMES = ("HPL_time", "PTRANS_time", "MPIRandomAccess_time", "MPIFFT_time1", "MPIFFT_time3", "MPIFFT_time5")


def prepare_lammps(folder, options):
    """Its own input; a larger box and more steps on request, since it takes a second."""
    text = LAMMPS_INPUT.read_text(encoding="ascii")
    text = text.replace("0 10 0 10 0 10", " ".join(["0", str(options.box)] * 3))
    text = re.sub(r"^run\s+\d+", f"run {options.steps}", text, flags=re.MULTILINE)
    (folder / "in.melt").write_text(text, encoding="ascii")
    return ["lmp", "-in", "in.melt"]


def read_lammps(folder):
    """Seconds of the time steps."""
    found = re.search(r"Loop time of ([\d.]+)", (folder / "log.lammps").read_text(encoding="utf-8"))
    return {"loop": float(found.group(1))}


def prepare_hpcc(folder, _):
    """Its own input, with a grid of two ranks."""
    packed = HPCC_INPUT.with_suffix(".txt.gz")
    text = HPCC_INPUT.read_text("utf-8") if HPCC_INPUT.exists() else gzip.open(packed, "rt").read()
    text = re.sub(r"^\d+( +Ps)$", r"1\1", text, flags=re.MULTILINE)
    (folder / "hpccinf.txt").write_text(re.sub(r"^\d+( +Qs)$", r"2\1", text, flags=re.MULTILINE), encoding="utf-8")
    return ["hpcc"]


def read_hpcc(folder):
    """Seconds of its parts, of those that take any; GB/s of its LatencyBandwidth."""
    text = (folder / "hpccoutf.txt").read_text(encoding="utf-8")
    if "Success=1" not in text:
        sys.exit("apps.py: hpcc did not find its results right: see hpccoutf.txt")
    values = dict(re.findall(r"^(\w+)=([-\d.e+]+)$", text, flags=re.MULTILINE))
    return {name: float(values[name]) for name in HPCC_TIMES + HPCC_BANDWIDTHS if float(values.get(name, 0)) > 0}


APPS = {"lammps": (prepare_lammps, read_lammps), "hpcc": (prepare_hpcc, read_hpcc)}


def run(app, options, tls, preload):
    """One run in a folder of its own; seconds by name."""
    prepare, read = APPS[app]
    with tempfile.TemporaryDirectory(prefix="uci-apps.") as name:
        folder = Path(name)
        command = ["mpirun.openmpi", "--allow-run-as-root", "-np", "2", "--bind-to", "core", "--mca", "pml", "ucx",
                   "--mca", "opal_common_ucx_tls", "any", "-x", f"UCX_TLS={tls}", "-x", "OMP_NUM_THREADS=1"]
        for name, value in uci_variables(options.build, preload).items():
            command += ["-x", f"{name}={value}"]
        command += prepare(folder, options)
        begin = time.monotonic()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False,
                              env={**os.environ, "OMP_NUM_THREADS": "1"})
        wall = time.monotonic() - begin
        if done.returncode:
            sys.exit(f"apps.py: {' '.join(command)} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
        return {**read(folder), "wall": wall}


def is_bandwidth(what):
    """Is it one, and not a time?"""
    return what in HPCC_BANDWIDTHS


def print_rows(app, tls, rounds):
    """A row for each of what the runs say; ROUNDS are pairs, plain and UCI."""
    for what in rounds[0][0]:
        if not is_bandwidth(what) and (min(plain[what] for plain, _ in rounds) < 0.01):
            continue  # too short to tell anything
        ratios = sorted(plain[what] / uci[what] if is_bandwidth(what) else uci[what] / plain[what]
                        for plain, uci in rounds)
        print(f"| {app} | {tls} | {what} | {statistics.median(plain[what] for plain, _ in rounds):.3f} "
              f"| {statistics.median(uci[what] for _, uci in rounds):.3f} | {'GB/s' if is_bandwidth(what) else 's'} "
              f"| {statistics.median(ratios):.3f} | {' '.join(f'{ratio:.3f}' for ratio in ratios)} |", flush=True)


def main():
    """The table, as Markdown."""
    parser = make_parser(__doc__)
    parser.add_argument("--apps", default="lammps,hpcc", help="which (default both)")
    parser.add_argument("--tls", default="posix,cma,self", help="UCX_TLS (default posix,cma,self)")
    parser.add_argument("--rounds", default=15, type=int, help="pairs of runs (default 15)")
    parser.add_argument("--box", default=10, type=int, help="LAMMPS: cells along each edge (default 10, as shipped)")
    parser.add_argument("--steps", default=250, type=int, help="LAMMPS: time steps (default 250, as shipped)")
    options = parser.parse_args()

    print("| application | transport | what | plain | UCI | unit | ratio, median | of each round |\n"
          "|---|---|---|---:|---:|---|---:|---|")
    for app in options.apps.split(","):
        if not shutil.which({"lammps": "lmp"}.get(app, app)):
            sys.exit(f"apps.py: {app} is not installed: tools/install_deps.sh bench")
        rounds = []
        for number in range(options.rounds):
            kinds = (False, True) if number % 2 == 0 else (True, False)
            runs = {kind: run(app, options, options.tls, kind) for kind in kinds}
            rounds.append((runs[False], runs[True]))
        print_rows(app, options.tls, rounds)


if __name__ == "__main__":
    main()
