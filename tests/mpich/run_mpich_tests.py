#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""MPICH's own tests of one-sided communication (test/mpi/rma) under both MPIs, as tests/other_programs.py runs what others wrote: plain, with UCI, with faults.

Left out are those of which MPICH's list says that they need a failure, a stricter MPI or more ranks than --ranks.
"""
import argparse
import os
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import other_programs  # noqa: E402

LEFT_OUT = re.compile(r"(xfail|strict|resultTest|mpix|faults)=")


def is_wrong(output):
    """How these say that they have passed."""
    return "" if "No Errors" in output else "it does not say 'No Errors'"


def programs_of(options, mpi):
    """Of MPICH's list."""
    programs = []
    for line in (options.folder / "mpich/mpi/rma/testlist").read_text().splitlines():
        words = line.split()
        if len(words) < 2 or words[0].startswith("#") or any(map(LEFT_OUT.match, words[2:])) or int(words[1]) > options.ranks:
            continue
        arguments = [word[4:] for word in words[2:] if word.startswith("arg=")]
        settings = dict(word[4:].split("=", 1) for word in words[2:] if word.startswith("env=") and "=" in word[4:])
        programs.append(other_programs.Program(" ".join((*words[:2], *arguments)), options.folder / mpi / "mpi/rma" / words[0], int(words[1]), arguments,
                                               is_wrong, settings))
    return programs


def main():
    """Lines, and the count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    other_programs.add_options(parser, "mpich-tests", timeout=90)
    parser.add_argument("--ranks", type=int, default=2 * len(os.sched_getaffinity(0)), help="no test with more (twice the processors: %(default)s)")
    options = parser.parse_args()
    if not (options.folder / "mpich/mpi/rma/testlist").exists():
        sys.exit(f"run_mpich_tests.py: nothing is built in {options.folder}: tests/mpich/build_mpich_tests.sh {options.folder}")
    return other_programs.run_all(options, lambda mpi: programs_of(options, mpi))


sys.exit(main())
