# SPDX-License-Identifier: BSD-3-Clause
"""Standard input, output and error of a tool."""
import os
import sys


def open_streams():
    """Where they were closed, as daemons do, what is opened later would get their numbers. Writing to stdout fails as before; stderr is not read by anybody."""
    for number, (name, mode, flags) in enumerate((("stdin", "r", os.O_RDONLY), ("stdout", "w", os.O_RDONLY), ("stderr", "w", os.O_WRONLY))):
        if getattr(sys, name) is None:
            os.set_inheritable(os.open(os.devnull, flags), True)
            setattr(sys, name, open(number, mode, encoding="utf-8", errors="replace", closefd=False))
