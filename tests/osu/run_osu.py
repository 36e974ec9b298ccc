#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""OSU's micro-benchmarks under both MPIs, and those of OpenSHMEM under Open MPI's, as tests/other_programs.py runs what others wrote: plain, with UCI, with
faults. They look at the bytes themselves where they can (-c): a FAIL of theirs is one here. Few iterations: it is not a benchmark here.
"""
import argparse
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import other_programs  # noqa: E402

COUNTED = ["-i", "10", "-x", "2"]
FOUR_RANKS = re.compile(r"mpi/collective/|osu_(mbw_mr|multi_lat)$|osu_bw_fan")
ONE_SIDED = [("create", sync) for sync in ("pscw", "fence", "lock", "flush", "flush_local", "lock_all")] + [("allocate", "flush"), ("dynamic", "flush")]
# what they are told beside the number of iterations; the rest has no options, or one word
SHMEM = {"osu_oshm_atomics": ["heap"], "osu_oshm_get": ["heap"], "osu_oshm_get_nb": ["heap"], "osu_oshm_get_mr_nb": ["heap"], "osu_oshm_put": ["heap"],
         "osu_oshm_put_nb": ["heap"], "osu_oshm_put_mr": ["heap"], "osu_oshm_put_mr_nb": ["heap"], "osu_oshm_put_overlap": ["heap"]}


def is_wrong(output):
    """They have said a number, and found nothing wrong."""
    found = re.search(r".*(\bFAIL|DATA_MISMATCH|Validation error).*", output, re.IGNORECASE)
    if found:
        return f"it says '{found.group(0).strip()}'"
    return "" if re.search(r"\d\.\d|PASS", output) else "it says nothing"


def kinds_of(path):
    """(words for the label, arguments) of each way to run one."""
    source = str(path)
    if "one-sided" in source:
        if re.search(r"put_bibw", source):
            return [(f"{window} {sync}", ["-w", window, "-s", sync, *COUNTED]) for window, sync in ONE_SIDED if sync in ("pscw", "fence")]
        return [(f"{window} {sync}", ["-w", window, "-s", sync, *COUNTED]) for window, sync in ONE_SIDED]
    if "startup" in source:
        return [("", [])]
    if "openshmem" in source:
        return [("", SHMEM.get(path.name, ["-i", "10"]))]
    return [("", COUNTED if re.search(r"fan_|barrier", path.name) else ["-c", *COUNTED])]


def programs_of(options, mpi):
    """All that were built."""
    base = options.folder / mpi / ("c/openshmem" if mpi == "openshmem" else "c/mpi")
    launch = ["oshrun", *other_programs.LAUNCH["openmpi"][1:], "--mca", "spml", "ucx", "-np", "2"] if mpi == "openshmem" else []
    programs = []
    for path in sorted(base.rglob("osu_*")):
        if path.is_file() and not path.suffix and path.parent.name != ".libs" and path.name != "osu_hello":  # which sends nothing
            ranks = 4 if FOUR_RANKS.search(str(path)) else 2
            for words, arguments in kinds_of(path):
                programs.append(other_programs.Program(" ".join((path.name, str(ranks), words)).strip(), path, ranks, arguments, is_wrong, launch=launch))
    return programs


def main():
    """Lines, and the count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    other_programs.add_options(parser, "osu", timeout=120)
    parser.set_defaults(mpi="openmpi,mpich,openshmem")
    options = parser.parse_args()
    if not (options.folder / "built").exists():
        sys.exit(f"run_osu.py: nothing is built in {options.folder}: tests/osu/build_osu.sh SOURCE {options.folder}")
    return other_programs.run_all(options, lambda mpi: programs_of(options, mpi))


sys.exit(main())
