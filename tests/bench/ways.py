#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""UCX's ways to move bytes beside messages by tag: ucx_perftest's tests of them with plain UCX against UCX with UCI, client and server on a core each.

Plain and UCI take turns, run by run; a ratio is of the two runs of a round, of what takes time: below 1 is faster than plain UCX. Its handler
of active messages reads nothing, so that plain UCX hands over what lies in shared memory, where UCI has to copy it. Prints medians of the rounds.
"""
import os
import statistics
import subprocess
import sys

from bench_common import make_environment, make_parser

PORT = 13471
ATOMICS = ("ucp_add", "ucp_fadd", "ucp_swap", "ucp_cswap")
ATOMIC_SIZES = (8,)
CORES = sorted(os.sched_getaffinity(0))


def start(core, environment, *words):
    """ucx_perftest on a core."""
    return subprocess.Popen(["taskset", "-c", str(core), "ucx_perftest", *words, "-p", str(PORT)], env=environment, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def run(test, size, options, preload):
    """Microseconds of a message: the median of the run, or, where calls return before anything has moved, all of it by their number."""
    environment = {**make_environment(options.build, options.tls, preload), "UCX_WARN_UNUSED_ENV_VARS": "n"}
    words = ["-t", test, "-s", str(size), "-n", str(max(options.bytes // max(size, 2000), 2000))]
    server = start(CORES[0], environment, *words)
    for _ in range(50):  # until the server listens
        client = start(CORES[1], environment, "127.0.0.1", *words)
        text, errors = client.communicate(timeout=120)
        final = [line.split() for line in text.splitlines() if line.startswith("Final:")]
        if final:
            server.communicate(timeout=60)
            return float(final[0][4 if test.endswith("_bw") or test == "ucp_add" else 2])
    server.kill()
    sys.exit(f"ways.py: {test} of {size} bytes failed:\n{text[-1000:]}{errors[-1000:]}")


def measure(test, size, options):
    """Rounds of (plain, UCI)."""
    rounds = []
    for number in range(options.rounds):
        order = (False, True) if number % 2 else (True, False)
        times = {preload: run(test, size, options, preload) for preload in order}
        rounds.append((times[False], times[True]))
    print(f"{test}, {size} bytes: {options.rounds} rounds", file=sys.stderr)
    return rounds


def main():
    """A table of all."""
    parser = make_parser(__doc__)
    parser.add_argument("--tests", default="ucp_am_lat,ucp_am_bw,stream_lat,stream_bw,ucp_put_lat,ucp_put_bw,ucp_get,ucp_add,ucp_fadd,ucp_swap,ucp_cswap",
                        help="ucx_perftest's names, comma-separated; atomics (ucp_add ...) are of 8 bytes")
    parser.add_argument("--tls", default="posix,cma,self", help="UCX_TLS")
    parser.add_argument("--sizes", default="8,64,256,1024,4096,65536", help="bytes of data, comma-separated")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--bytes", type=int, default=200 << 20, help="data of a run; small messages count as 2,000 bytes")
    options = parser.parse_args()
    if len(CORES) < 2:
        sys.exit("ways.py: needs two cores")
    print("| test | bytes | plain, us | UCI, us | ratio | from, to |\n|---|---|---|---|---|---|")
    for test in options.tests.split(","):
        for size in ATOMIC_SIZES if test in ATOMICS else map(int, options.sizes.split(",")):
            rounds = measure(test, size, options)
            plain, uci = zip(*rounds)
            ratios = sorted(b / a for a, b in rounds)
            print(f"| {test} | {size} | {statistics.median(plain):.3f} | {statistics.median(uci):.3f} | {statistics.median(ratios):.2f} "
                  f"| {ratios[0]:.2f} to {ratios[-1]:.2f} |", flush=True)


main()
