# SPDX-License-Identifier: BSD-3-Clause
"""--version of the tools in Python: in the words of those in C, which the build writes beside this file."""
from pathlib import Path


def add_version(parser):
    """Add the option to PARSER: NAME (UCI) VERSION (REVISION), protocol N, built with UCX VERSION."""
    words = Path(__file__).with_name("version.txt").read_text(encoding="ascii")
    parser.add_argument("--version", action="version", version=f"%(prog)s (UCI) {words}",
                        help="show version, revision, protocol and the UCX that UCI was built with")
