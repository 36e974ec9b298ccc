#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What comparing twins costs a program: jobs of UCI that run at the same time, against as many that are twins.

Each round starts two (or three) jobs of two ranks of Open MPI at once, once as jobs that know nothing of each other and once as twins; who
begins changes from round to round, and a ratio is of the two runs of a round: above 1 twins are slower. Ranks give their core away
while they wait, so that on few cores a time is that of what all of them have to do; it is not very steady. With --jobs 1 the job has the
cores to itself: it is a twin whose other one never comes, for which it does all but hear and decide. Times are the programs' own (LAMMPS:
its loop; hpcc: its parts; NPB: "Time in seconds"), the mean of the jobs.
"""
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from apps import APPS, is_bandwidth
from bench_common import make_parser, uci_variables


def prepare_npb(program):
    """It needs nothing."""
    def prepare(_, options):
        return [str(options.npb / program)]
    return prepare


def read_npb(folder):
    """Seconds of its iterations."""
    text = (folder / "stdout").read_text(encoding="utf-8")
    if "VERIFICATION SUCCESSFUL" not in text.upper() and not re.search(r"Verification\s*=\s*SUCCESSFUL", text):
        sys.exit(f"twins.py: not verified:\n{text[-2000:]}")
    return {"time": float(re.search(r"Time in seconds\s*=\s*([\d.]+)", text).group(1))}


def app_of(name):
    """How a program is prepared, and how its times are read."""
    return APPS.get(name) or (prepare_npb(name), read_npb)


def start(app, options, folder, twins):
    """One job; TWINS are variables of its own."""
    command = ["mpirun.openmpi", "--allow-run-as-root", "-np", str(options.ranks), "--bind-to", "none", "--oversubscribe",
               "--mca", "pml", "ucx", "--mca", "opal_common_ucx_tls", "any", "--mca", "mpi_yield_when_idle",
               str(int(options.jobs > 1)), "-x", f"UCX_TLS={options.tls}", "-x", "OMP_NUM_THREADS=1"]
    for variable, value in {**uci_variables(options.build, True), **twins}.items():
        command += ["-x", f"{variable}={value}"]
    command += app_of(app)[0](folder, options)
    with open(folder / "stdout", "wb") as out:
        return subprocess.Popen(command, cwd=folder, stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                                env={**os.environ, "OMP_NUM_THREADS": "1"})


def run(app, options, are_twins):
    """All jobs at once; what they tell, mean of all, by name."""
    with tempfile.TemporaryDirectory(prefix="uci-twins.") as name:
        folders = [Path(name) / f"job.{k}" for k in range(options.jobs)]
        (Path(name) / "meet").mkdir()
        jobs = []
        for k, folder in enumerate(folders):
            folder.mkdir()
            twins = {"UCI_TWINS": f"{name}/meet,{k}/{max(options.jobs, 2)}", "UCI_TWINS_MODE": options.mode}
            if options.mode == "correct":
                twins["UCI_ON_ERROR"] = "log"  # times differ, LAMMPS adds them up at its end, and there is no majority
            if options.jobs == 1:
                twins["UCI_TWINS_WAIT"] = "1"  # at its end
            jobs.append(start(app, options, folder, twins if are_twins else {}))
        if any(job.wait(timeout=600) for job in jobs):
            sys.exit(f"twins.py: {app} failed:\n" + "".join((folder / "stdout").read_text()[-1000:] for folder in folders))
        times = [app_of(app)[1](folder) for folder in folders]
    return {what: statistics.mean(time[what] for time in times) for what in times[0]}


def print_rows(app, options, rounds):
    """A row for each of what the runs say; ROUNDS are pairs, jobs and twins."""
    for what in rounds[0][0]:
        if not is_bandwidth(what) and (min(alone[what] for alone, _ in rounds) < 0.01):
            continue  # too short to tell anything
        ratios = sorted(alone[what] / twins[what] if is_bandwidth(what) else twins[what] / alone[what]
                        for alone, twins in rounds)
        print(f"| {app} | {options.jobs} | {options.mode} | {what} | {statistics.median(alone[what] for alone, _ in rounds):.3f} "
              f"| {statistics.median(twins[what] for _, twins in rounds):.3f} | {'GB/s' if is_bandwidth(what) else 's'} "
              f"| {statistics.median(ratios):.3f} | {' '.join(f'{ratio:.3f}' for ratio in ratios)} |", flush=True)


def main():
    """The table, as Markdown."""
    parser = make_parser(__doc__)
    parser.add_argument("--apps", default="lammps,hpcc", help="which: lammps, hpcc, or programs in the folder of --npb (default lammps,hpcc)")
    parser.add_argument("--npb", type=Path, help="folder with programs of the NAS Parallel Benchmarks, such as cg.A.x")
    parser.add_argument("--tls", default="posix,cma,self", help="UCX_TLS (default posix,cma,self)")
    parser.add_argument("--jobs", default=2, type=int, choices=(1, 2, 3), help="at a time (default 2)")
    parser.add_argument("--ranks", default=2, type=int, help="of each job (default 2)")
    parser.add_argument("--mode", default="compare", choices=("compare", "correct"), help="UCI_TWINS_MODE (default compare)")
    parser.add_argument("--rounds", default=7, type=int, help="pairs of runs (default 7)")
    parser.add_argument("--box", default=10, type=int, help="LAMMPS: cells along each edge (default 10, as shipped)")
    parser.add_argument("--steps", default=1000, type=int, help="LAMMPS: time steps (default 1000)")
    options = parser.parse_args()

    print("| application | jobs | mode | what | UCI | twins | unit | ratio, median | of each round |\n"
          "|---|---:|---|---|---:|---:|---|---:|---|")
    for app in options.apps.split(","):
        if (app in APPS) and not shutil.which({"lammps": "lmp"}.get(app, app)):
            sys.exit(f"twins.py: {app} is not installed: tools/install_deps.sh bench")
        if (app not in APPS) and not (options.npb and (options.npb / app).exists()):
            sys.exit(f"twins.py: there is no program {app} (--npb)")
        rounds = []
        for number in range(options.rounds):
            kinds = (False, True) if number % 2 == 0 else (True, False)
            runs = {kind: run(app, options, kind) for kind in kinds}
            rounds.append((runs[False], runs[True]))
        print_rows(app, options, rounds)


if __name__ == "__main__":
    main()
