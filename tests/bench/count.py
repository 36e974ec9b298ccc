#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Instructions that a small message takes, by function, plain UCX against UCX with UCI: what callgrind counts.

bench_count sends messages between two workers of one process over posix, so nothing depends on time. Two forms: "block",
blocking calls as Open MPI makes them, and "window", 64 nonblocking ones. Sending and receiving are counted together, since both are
done by the one thread. "idle" is a turn of progress that finds nothing, "lonely" one of a worker with 15 peers, "pending" one
of a worker whose message waits for its receive; "gather" is a message from each of 15 peers. Needs valgrind.
"""
import collections
import re
import shutil
import subprocess
import sys
import tempfile

from bench_common import make_environment, make_parser

MESSAGES = 6400
LINE = re.compile(r"\s*([\d,]+) \([ \d.]+%\)\s+(?:\S*/)?(\S+?):(\S+?)(?:'\d+)?(?: \[(\S+)\])?$")


def count(options, form, size, preload):
    """Instructions a message by function, in the name's own object."""
    with tempfile.NamedTemporaryFile(prefix="uci-count.") as result:
        done = subprocess.run(["valgrind", "--tool=callgrind", f"--toggle-collect=count_{form}",
                               f"--callgrind-out-file={result.name}", options.build / "tests/bench/bench_count", form, str(size),
                               str(MESSAGES)], env=make_environment(options.build, options.tls, preload), capture_output=True,
                              text=True, timeout=120, check=False)
        if done.returncode:
            sys.exit(f"count.py: bench_count failed:\n{done.stderr[-2000:]}")
        listing = subprocess.run(["callgrind_annotate", "--threshold=100", "--auto=no", result.name],
                                 capture_output=True, text=True, check=True).stdout
    functions = collections.Counter()
    for match in filter(None, map(LINE.match, listing.splitlines())):
        name = re.sub(r"\.lto_priv.*|\.constprop.*", "", match[3])
        functions[name if not name.startswith("0x") else "(libuct, no name)"] += int(match[1].replace(",", "")) / MESSAGES
    return functions


def print_table(form, size, plain, uci):
    """What takes 5 instructions or more in either."""
    print(f"\n{form}, {size} bytes:\n\n| function | plain | UCI |\n|---|---:|---:|")
    rest = [0, 0]
    for name in sorted(set(plain) | set(uci), key=lambda name: -max(plain[name], uci[name])):
        if max(plain[name], uci[name]) < 5 or name.startswith("count_") or name == "one_way":
            rest = [rest[0] + plain[name], rest[1] + uci[name]]
        else:
            print(f"| {name} | {plain[name]:.0f} | {uci[name]:.0f} |")
    print(f"| the program, and what takes less than 5 | {rest[0]:.0f} | {rest[1]:.0f} |")
    print(f"| **all** | **{sum(plain.values()):.0f}** | **{sum(uci.values()):.0f}** |", flush=True)


def main():
    """A table for each form and size."""
    parser = make_parser(__doc__)
    parser.add_argument("--forms", default="block,window", help="block, window, idle, lonely, pending, gather (default block,window)")
    parser.add_argument("--tls", default="posix,self", help="UCX_TLS (default posix,self)")
    parser.add_argument("--sizes", default="8", help="bytes (default 8)")
    options = parser.parse_args()
    if not shutil.which("valgrind"):
        sys.exit("count.py: valgrind is not installed: tools/install_deps.sh bench")
    for form in options.forms.split(","):
        for size in options.sizes.split(","):
            print_table(form, size, *(count(options, form, size, preload) for preload in (False, True)))


if __name__ == "__main__":
    main()
