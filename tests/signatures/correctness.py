#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which errors of a public suite of wrong MPI programs are told, and is anything told of the right ones?

usage: tests/signatures/correctness.py --cache DIR [options]

The suite is the MPI Bugs Initiative's (https://gitlab.com/MpiBugsInitiative/MpiBugsInitiative). It is fetched into a folder of yours, its programs are
made by its own generators there, compiled, and run under uci_run --signatures=all with UCI_ON_SIGNATURE=abort, those about types, counts,
roots, operations and the matching of calls, and the right ones. Each ends as one of

  told      types, or collectives, that do not match
  waits     "has been waiting", and it had to be ended: a deadlock, of which it is told who waits where
  MPI       the MPI itself ends the program with an error, before that
  missed    none of these

Last result (Correctness 2021, Open MPI 4.1.4 and MPICH 4.0.2): all 49 with wrong datatypes, operations or roots are told, none of 117 right ones; of 84 with
calls that do not match 71 (MPICH: 72) are told, 6 wait, 2 (1) the MPI ends itself, 5 are missed: message races, and deadlocks of point to point alone.
"""
import argparse
import concurrent.futures
import json
import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SUITE = "https://gitlab.com/MpiBugsInitiative/MpiBugsInitiative.git"
LABELS = ("DatatypeMatching", "OperatorMatching", "RootMatching", "CommunicatorMatching", "CallMatching", "TagMatching", "OK")
OUTCOMES = ("told", "waits", "MPI", "missed")
TEST = re.compile(r"\$ mpirun -np (\d+) \$\{EXE\}(.*)\n\s*\| (OK|ERROR: (\w+))")


def parse_arguments():
    """Options."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, required=True, metavar="DIR", help="where the suite, its programs and the results go; outside of this repository")
    parser.add_argument("--suite", type=Path, metavar="DIR", help="a checkout of the suite that is there already: nothing is fetched")
    parser.add_argument("--build", type=Path, default=ROOT / "build", metavar="DIR", help="default: build/")
    parser.add_argument("--mpi", default="openmpi,mpich", metavar="LIST", help="default: both")
    parser.add_argument("--labels", default=",".join(LABELS), metavar="LIST", help=f"default: {','.join(LABELS)}")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="of each label's programs only each Nth (default 1: all)")
    parser.add_argument("--limit", type=int, default=8, metavar="S", help="seconds for each program (default 8)")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="programs at the same time (default 1)")
    options = parser.parse_args()
    if ROOT in (options.cache.resolve(), *options.cache.resolve().parents):
        parser.error(f"--cache {options.cache} is in this repository: the suite is not to get into it")
    return options


def fetch(options):
    """@return the suite's folder."""
    if options.suite:
        return options.suite.resolve()
    folder = options.cache.resolve() / "suite"
    if not folder.exists():
        subprocess.run(["git", "clone", "--no-checkout", "--depth", "1", SUITE, str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "checkout", "HEAD", "--", "scripts"], check=True)
    return folder


def generate(suite, folder):
    """Its programs, made in FOLDER by its generators."""
    if not any(folder.glob("*.c")):
        folder.mkdir(parents=True, exist_ok=True)
        for generator in sorted((suite / "scripts").glob("*Generator*.py")):
            subprocess.run([sys.executable, str(generator)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    return sorted(folder.glob("*.c"))


def choose(programs, labels, every):
    """[(program, ranks, label)]"""
    cases = {label: [] for label in labels}
    for program in programs:
        found = TEST.search(program.read_text(encoding="utf-8", errors="replace"))
        label = (found[4] or "OK") if found else None
        if label in cases:
            cases[label].append((program, int(found[1]), label))
    return [case for label in labels for case in cases[label][::every]]


def compile_program(program, mpi, folder):
    """@return the executable, or None."""
    executable = folder / f"{program.stem}.{mpi}"
    if not executable.exists():
        made = subprocess.run([f"mpicc.{mpi}", "-w", "-O0", str(program), "-lm", "-o", str(executable)], capture_output=True, check=False)
        if made.returncode != 0:
            return None
    return executable


def run_program(case, mpi, options, folder):
    """@return (label, name, outcome, was it ended)"""
    program, ranks, label = case
    executable = compile_program(program, mpi, folder)
    if executable is None:
        return label, program.stem, "does not compile", False
    job = folder / "jobs" / f"{program.stem}.{mpi}"
    subprocess.run(["rm", "-rf", str(job)], check=True)
    environment = {**os.environ, "UCX_TLS": os.environ.get("UCX_TLS", "posix,self"), "UCI_ON_SIGNATURE": "abort", "UCI_SIGNATURE_WAIT": str(max(1, options.limit // 2)),
                   "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "MPIR_CVAR_NOLOCAL": "1"}
    command = ["timeout", "-k", "2", str(options.limit), str(options.build / "tools" / "uci_run"), "--signatures=all", "--mpi", mpi, "--folder", str(job), "-n", str(ranks),
               str(executable)]
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    output = done.stdout.decode(errors="replace")
    (folder / "jobs" / f"{program.stem}.{mpi}.log").write_text(output, encoding="utf-8")
    return label, program.stem, judge(output, done.returncode), done.returncode in (124, 137)


def judge(output, status):
    """How it has ended."""
    if re.search(r"UCI WARN  (types|collectives) do not match", output):
        return "told"
    if status in (124, 137):
        return "waits" if "has been waiting for" in output else "missed"
    if re.search(r"MPI_ERR_|Fatal error in|\*\*\* An error occurred in", output):
        return "MPI"
    return "missed"


def show(mpi, results):
    """The table of one MPI. @return programs that are right and were told of."""
    numbers = Counter((label, outcome) for label, _, outcome, _ in results)
    labels = [label for label in LABELS if any(result[0] == label for result in results)]
    print(f"\n{mpi}\n\n| | programs | {' | '.join(OUTCOMES)} |\n|---|---|{'---|' * len(OUTCOMES)}")
    for label in labels:
        total = sum(number for (one, _), number in numbers.items() if one == label)
        print(f"| {label} | {total} | {' | '.join(str(numbers[label, outcome]) for outcome in OUTCOMES)} |")
    for label, name, outcome, ended in results:
        if outcome not in OUTCOMES:
            print(f"{name}: {outcome}")
        elif label == "OK" and (outcome != "missed" or ended):
            print(f"{name}, which is right: {outcome}{', had to be ended' if ended else ''}")
    return sum(numbers["OK", outcome] for outcome in ("told", "waits"))


def main():
    """Run all, and print a table for each MPI. Exit status 1 if anything was told of a program that is right."""
    options = parse_arguments()
    folder = options.cache.resolve() / "programs"
    (folder / "jobs").mkdir(parents=True, exist_ok=True)
    cases = choose(generate(fetch(options), folder), options.labels.split(","), options.every)
    false_alarms = 0
    for mpi in options.mpi.split(","):
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            results = list(pool.map(lambda case, mpi=mpi: run_program(case, mpi, options, folder), cases))
        (options.cache / f"results.{mpi}.json").write_text(json.dumps(results, indent=0), encoding="utf-8")
        false_alarms += show(mpi, results)
    return 1 if false_alarms else 0


if __name__ == "__main__":
    sys.exit(main())
