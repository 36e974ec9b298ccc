# SPDX-License-Identifier: BSD-3-Clause
"""--version of the tools in Python: in the words of those in C, which the build writes beside this file."""
import argparse
from pathlib import Path


class ShowVersion(argparse.Action):
    """Print NAME (UCI) VERSION (REVISION), protocol N, built with UCX VERSION; and end."""

    def __init__(self, option_strings, dest, **kwargs):
        super().__init__(option_strings, dest, nargs=0, **kwargs)

    def __call__(self, parser, namespace, values, option_string=None):
        print(parser.prog, "(UCI)", Path(__file__).with_name("version.txt").read_text(encoding="ascii"), end="")
        parser.exit()


def add_version(parser):
    """Add the option to PARSER."""
    parser.add_argument("--version", action=ShowVersion, dest=argparse.SUPPRESS,
                        help="show version, revision, protocol and the UCX that UCI was built with")
