# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks that start processes with and without UCI share."""
import argparse
import os
from pathlib import Path

BUILD = Path(__file__).resolve().parents[2] / "build"


def make_parser(description):
    """A parser that knows --build, the folder UCI was built in."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=lambda name: Path(name).resolve(), default=BUILD, help="where UCI was built")
    return parser


def uci_variables(build, preload):
    """Variables that load UCI into a process, or none."""
    return {"LD_PRELOAD": str(build / "libucx_integrity.so")} if preload else {}


def crowded_command(mpi, ranks, variables, hosts=()):
    """mpirun for more ranks than cores, on HOSTS ("name:ranks") or here: they give the core away where the MPI can, and all goes through UCX."""
    if mpi == "openmpi":
        command = ["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", str(ranks), "--mca", "pml", "ucx",
                   "--mca", "opal_common_ucx_tls", "any", "--mca", "osc", "ucx", "--mca", "btl", "self", "--mca", "coll", "^sm",
                   "--mca", "mpi_yield_when_idle", "1"]
        command += ["--host", ",".join(hosts)] if hosts else []
        return command + [word for name, value in variables.items() for word in ("-x", f"{name}={value}")]
    command = ["mpirun.mpich", "-np", str(ranks), "-genv", "MPIR_CVAR_NOLOCAL", "1"]
    command += ["-hosts", ",".join(hosts)] if hosts else []
    return command + [word for name, value in variables.items() for word in ("-genv", name, value)]


def make_environment(build, tls, preload):
    """This process's variables, these transports, and UCI or not."""
    return {**os.environ, "UCX_TLS": tls, **uci_variables(build, preload)}
