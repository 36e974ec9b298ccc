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


def make_environment(build, tls, preload):
    """This process's variables, these transports, and UCI or not."""
    return {**os.environ, "UCX_TLS": tls, **uci_variables(build, preload)}
