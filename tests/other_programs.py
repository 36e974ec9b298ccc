# SPDX-License-Identifier: BSD-3-Clause
"""MPI programs that others wrote, unmodified: what passes on plain UCX has to pass with UCI.

Each is run on plain UCX first, then with UCI preloaded, then with UCI and faults; of several ranks UCI must have verified something, and have repaired
all that it found damaged, which there may be with faults alone. Some begin a million operations before they let anybody answer: then copies for
repairs take more than UCI_LOG_SIZE has by default. One that plain UCX fails, or does not end in time, says nothing of UCI: it is skipped.
"""
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
LAUNCH = {
    "openmpi": ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "pml", "ucx", "--mca", "osc", "ucx", "--mca", "btl", "self",
                "--mca", "opal_common_ucx_tls", "any", "--mca", "opal_common_ucx_devices", "any", "--mca", "coll", "^sm", "--mca", "mpi_yield_when_idle", "1"],
    "mpich": ["mpirun.mpich", "-genv", "MPIR_CVAR_NOLOCAL", "1"],
}
TOO_LONG = 124  # exit status of watchdog.sh
ALWAYS = ["unrepaired_chunks == 0", "mismatched_chunks == repaired_chunks"]
SEVERAL = ["messages_received + rma_memory > 0"]
CLEAN = ["mismatched_chunks == 0", "mismatched_headers == 0", "mismatched_control == 0"]


class Program(NamedTuple):
    """One program with its arguments. `is_wrong` finds what is wrong in its output, or returns ""."""

    label: str
    path: Path
    ranks: int
    arguments: list
    is_wrong: callable
    settings: dict = {}
    launch: list = []


def add_options(parser, folder, timeout):
    """What all suites of this kind take."""
    parser.add_argument("filter", nargs="?", default="", help="only programs whose line contains this")
    parser.add_argument("--folder", type=lambda path: Path(path).resolve(), default=HERE.parent / "build" / folder, help="where they were built (%(default)s)")
    parser.add_argument("--preload", type=lambda path: Path(path).resolve(), default=HERE.parent / "build" / "libucx_integrity.so", help="(%(default)s)")
    parser.add_argument("--mpi", default="openmpi,mpich", help="(%(default)s)")
    parser.add_argument("--tls", default="posix,cma,self tcp,self", help="transports, separated by spaces (%(default)s)")
    parser.add_argument("--fault", default="rate=1e-3,kind=any,target=any", help="UCI_FAULT of the third kind of run (%(default)s)")
    parser.add_argument("--timeout", type=float, default=timeout, help="seconds for one run, of what the machine gives it (%(default)s)")


def command_of(program, mpi, settings):
    """The command of a job with these variables."""
    command = program.launch or [*LAUNCH[mpi], "-np", str(program.ranks)]
    for key, value in settings.items():
        command = command + (["-genv", key, value] if mpi == "mpich" else ["-x", f"{key}={value}"])
    return [*command, f"./{program.path.name}", *program.arguments]


def run(options, mpi, tls, program, settings):
    """(what is wrong or "", seconds, output). A plain one is not waited for any longer where others have the cores: some would not end on idle ones."""
    watch = os.environ if settings else {**os.environ, "end_is_wanted": "1"}
    settings = {"UCX_TLS": tls, "UCX_WARN_UNUSED_ENV_VARS": "n", **program.settings, **settings}
    begin = time.monotonic()
    done = subprocess.run([HERE / "watchdog.sh", str(options.timeout), *command_of(program, mpi, settings)], cwd=program.path.parent, text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, check=False, env=watch)
    seconds = time.monotonic() - begin
    if done.returncode == TOO_LONG:
        wrong = f"not over after {seconds:.0f} s"
    else:
        wrong = f"exit status {done.returncode}" if done.returncode else program.is_wrong(done.stdout)
    return wrong, seconds, done.stdout


def check_stats(stats, program, how):
    """What the summed counters of a job say is wrong, or ""; and their line."""
    conditions = ALWAYS + (CLEAN if how == "uci" else []) + (SEVERAL if program.ranks > 1 else [])
    done = subprocess.run([HERE / "mpi/stats.py", "--processes", str(program.ranks), stats, *conditions], text=True, capture_output=True, check=False)
    lines = (done.stdout + done.stderr).splitlines() or [""]
    return ("" if done.returncode == 0 else f"statistics: {'; '.join(lines[1:])}"), lines[0]


def judge(options, mpi, tls, program):
    """A line for each way of running it. (passed, failed, skipped)."""
    label = f"{mpi}/{tls}/{program.label}"
    stats = options.folder / "stats"
    wrong, plain, _ = run(options, mpi, tls, program, {}) if program.path.exists() else (f"{mpi} can't compile it", 0, "")
    if wrong:
        print(f"skip {label}: plain: {wrong}", flush=True)
        return 0, 0, 1
    uci = {"LD_PRELOAD": str(options.preload), "UCI_LOG_LEVEL": "error", "UCI_STATS": f"{stats}/%p.json"}
    counts = [0, 0, 0]
    for how, settings in (("uci", uci), ("faults", {**uci, "UCI_FAULT": options.fault, "UCI_LOG_SIZE": "1g"})):
        shutil.rmtree(stats, ignore_errors=True)
        stats.mkdir()
        wrong, seconds, output = run(options, mpi, tls, program, settings)
        counters = ""
        if not wrong:
            wrong, counters = check_stats(stats, program, how)
        counts[1 if wrong else 0] += 1
        print(f"{'FAIL' if wrong else 'ok  '} {label}/{how}, {seconds:.1f} s, plain {plain:.1f} s{': ' if wrong else ''}{wrong}  {counters}", flush=True)
        if wrong:
            print("\n".join("     " + line[:200] for line in output.splitlines()[-(400 if "not over" in wrong else 12):]), flush=True)
    return counts


def run_all(options, programs_of):
    """All of programs_of(mpi), over all transports: lines, and the count. @return the exit status."""
    total = [0, 0, 0]
    for mpi in options.mpi.split(","):
        for tls in options.tls.split():
            for program in programs_of(mpi):
                if options.filter in program.label:
                    total = [before + here for before, here in zip(total, judge(options, mpi, tls, program))]
    print("{} passed, {} failed, {} skipped".format(*total))
    return 1 if total[1] or not total[0] else 0
