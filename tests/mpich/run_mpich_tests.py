#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's own tests of one-sided communication (test/mpi/rma), unmodified, under both MPIs: what passes on plain UCX has to pass with UCI.

Each is run on plain UCX first, then with UCI preloaded, then with UCI and faults; of several ranks UCI must have verified something, and have repaired
all that it found damaged, which there may be with faults alone. Some begin a million operations before they let anybody answer: then copies for
repairs take more than UCI_LOG_SIZE has by default. One that plain UCX fails, or does not end in time, says nothing of
UCI: it is skipped. So are those of which MPICH's list says that they need a failure, a stricter MPI or more ranks than --ranks.
"""
import argparse
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
LAUNCH = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "self",
                "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any", "--mca", "coll", "^sm", "--mca", "mpi_yield_when_idle", "1"],
    "mpich": ["mpirun.mpich", "-genv", "MPIR_CVAR_NOLOCAL", "1"],
}
ALWAYS = ["unrepaired_chunks == 0", "mismatched_chunks == repaired_chunks"]
SEVERAL = ["messages_received + rma_memory > 0"]
CLEAN = ["mismatched_chunks == 0", "mismatched_headers == 0", "mismatched_control == 0"]
SKIPPED = re.compile(r"(xfail|strict|resultTest|mpix|faults)=")


def tests_of(options):
    """(name, ranks, arguments, environment) of MPICH's list."""
    rows = []
    for line in (options.folder / "mpich/mpi/rma/testlist").read_text().splitlines():
        words = line.split()
        if len(words) < 2 or words[0].startswith("#") or any(map(SKIPPED.match, words[2:])) or int(words[1]) > options.ranks:
            continue
        arguments = [word[4:] for word in words[2:] if word.startswith("arg=")]
        settings = dict(word[4:].split("=", 1) for word in words[2:] if word.startswith("env=") and "=" in word[4:])
        rows.append((words[0], int(words[1]), arguments, settings))
    return rows


def stop(process):
    """All of a job: launchers start ranks in sessions of their own."""
    def children(pid):
        found = subprocess.run(["ps", "--no-headers", "-o", "pid", "--ppid", str(pid)], text=True, capture_output=True, check=False).stdout
        return [below for child in found.split() for below in (int(child), *children(child))]

    for pid in (*children(process.pid), process.pid):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.communicate()


def run(options, mpi, tls, test, settings):
    """(what is wrong or "", seconds, output)."""
    name, ranks, arguments, own = test
    settings = {"UCX_TLS": tls, "UCX_WARN_UNUSED_ENV_VARS": "n", **own, **settings}
    command = [*LAUNCH[mpi], "-np", str(ranks)]
    for key, value in settings.items():
        command += ["-x", f"{key}={value}"] if mpi == "openmpi" else ["-genv", key, value]
    begin = time.monotonic()
    process = subprocess.Popen([*command, f"./{name}", *arguments], cwd=options.folder / mpi / "mpi/rma", text=True, errors="replace",
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
    try:
        output, _ = process.communicate(timeout=options.timeout)
        wrong = f"exit status {process.returncode}" if process.returncode else "" if "No Errors" in output else "it does not say 'No Errors'"
    except subprocess.TimeoutExpired:
        stop(process)
        output, wrong = "", f"not over after {options.timeout:.0f} s"
    return wrong, time.monotonic() - begin, output


def check_stats(options, test, how):
    """What the summed counters of a job say is wrong, or ""; and their line."""
    conditions = ALWAYS + (CLEAN if how == "uci" else []) + (SEVERAL if test[1] > 1 else [])
    done = subprocess.run([HERE.parent / "mpi/stats.py", "--processes", str(test[1]), options.stats, *conditions], text=True, capture_output=True, check=False)
    lines = (done.stdout + done.stderr).splitlines() or [""]
    return ("" if done.returncode == 0 else f"statistics: {'; '.join(lines[1:])}"), lines[0]


def judge(options, mpi, tls, test):
    """A line for each way of running it. (passed, failed, skipped)."""
    label = f"{mpi}/{tls}/{' '.join((test[0], str(test[1]), *test[2]))}"
    if not (options.folder / mpi / "mpi/rma" / test[0]).exists():
        print(f"skip {label}: {mpi} can't compile it", flush=True)
        return 0, 0, 1
    wrong, plain, _ = run(options, mpi, tls, test, {})
    if wrong:
        print(f"skip {label}: plain: {wrong}", flush=True)
        return 0, 0, 1
    uci = {"LD_PRELOAD": str(options.preload), "UCI_LOG_LEVEL": "error", "UCI_STATS": f"{options.stats}/%p.json"}
    counts = [0, 0, 0]
    for how, settings in (("uci", uci), ("faults", {**uci, "UCI_FAULT": options.fault, "UCI_LOG_SIZE": "1g"})):
        shutil.rmtree(options.stats, ignore_errors=True)
        options.stats.mkdir()
        wrong, seconds, output = run(options, mpi, tls, test, settings)
        counters = ""
        if not wrong:
            wrong, counters = check_stats(options, test, how)
        counts[1 if wrong else 0] += 1
        print(f"{'FAIL' if wrong else 'ok  '} {label}/{how}, {seconds:.1f} s, plain {plain:.1f} s{': ' if wrong else ''}{wrong}  {counters}", flush=True)
        if wrong:
            print("\n".join("     " + line[:200] for line in output.splitlines()[-12:]), flush=True)
    return counts


def main():
    """Lines, and the count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="?", default="", help="only tests whose name, ranks and arguments contain this")
    parser.add_argument("--folder", type=lambda path: Path(path).resolve(), default=HERE.parents[1] / "build" / "mpich-tests",
                        help="where build_mpich_tests.sh built them (%(default)s)")
    parser.add_argument("--preload", type=lambda path: Path(path).resolve(), default=HERE.parents[1] / "build" / "libucx_integrity.so", help="(%(default)s)")
    parser.add_argument("--mpi", default="openmpi,mpich", help="(%(default)s)")
    parser.add_argument("--tls", default="posix,cma,self tcp,self", help="transports, separated by spaces (%(default)s)")
    parser.add_argument("--fault", default="rate=1e-3,kind=any,target=any", help="UCI_FAULT of the third kind of run (%(default)s)")
    parser.add_argument("--ranks", type=int, default=2 * len(os.sched_getaffinity(0)), help="no test with more (twice the processors: %(default)s)")
    parser.add_argument("--timeout", type=float, default=90, help="seconds for one run (%(default)s)")
    options = parser.parse_args()
    options.stats = options.folder / "stats"
    if not (options.folder / "mpich/mpi/rma/testlist").exists():
        sys.exit(f"run_mpich_tests.py: nothing is built in {options.folder}: tests/mpich/build_mpich_tests.sh {options.folder}")
    passed = failed = skipped = 0
    for mpi in options.mpi.split(","):
        for tls in options.tls.split():
            for test in tests_of(options):
                if options.filter in " ".join((test[0], str(test[1]), *test[2])):
                    here = judge(options, mpi, tls, test)
                    passed, failed, skipped = passed + here[0], failed + here[1], skipped + here[2]
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


sys.exit(main())
