#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""What peers cost, plain UCX against UCX with UCI, in one process with N endpoints to workers of its own.

Runs bench_peers once plain and once preloaded for each N, in turns, and prints what UCI adds. "a peer" is one of N; its worker is
counted apart, since a real peer has it in another process.
"""
import statistics
import subprocess
import sys

from bench_common import make_environment, make_parser

FIELDS = ("count", "idle_ns", "worker_bytes", "worker_us", "ep_bytes", "ep_us", "small_bytes", "small_us", "busy_ns",
          "large_bytes", "large_us", "total_bytes")


def run(build, count, tls, preload):
    """One process; its line as a dictionary."""
    done = subprocess.run([build / "tests/bench/bench_peers", str(count)], capture_output=True, text=True, timeout=120,
                          env=make_environment(build, tls, preload), check=False)
    if done.returncode:
        sys.exit(f"bench_peers {count} ({'UCI' if preload else 'plain'}, {tls}) failed:\n{done.stderr}")
    return dict(zip(FIELDS, map(float, done.stdout.strip().splitlines()[-1].split(","))))


def medians(runs):
    """Field by field."""
    return {field: statistics.median(one[field] for one in runs) for field in FIELDS}


def main():
    """The table, as Markdown."""
    parser = make_parser(__doc__)
    parser.add_argument("--tls", default="posix,self", help="UCX_TLS (default posix,self)")
    parser.add_argument("--counts", default="2,4,8,16,32,64,128,256", help="numbers of endpoints")
    parser.add_argument("--runs", default=3, type=int, help="processes of each kind; medians count (default 3)")
    options = parser.parse_args()

    print("| endpoints | UCI adds, KiB a peer: idle | 8 B each way | 256 KiB to it | its own worker | in total, MiB "
          "| endpoint us: plain | UCI | first 8 B each way us: plain | UCI | idle progress ns: plain | UCI |")
    print("|---:" * 12 + "|")
    for count in map(int, options.counts.split(",")):
        runs = [(run(options.build, count, options.tls, False), run(options.build, count, options.tls, True))
                for _ in range(options.runs)]
        plain, uci = medians([one[0] for one in runs]), medians([one[1] for one in runs])
        added = {field: uci[field] - plain[field] for field in FIELDS}
        print(f"| {count} | {added['ep_bytes'] / 1024:.1f} | {added['small_bytes'] / 1024:.1f} "
              f"| {added['large_bytes'] / 1024:.1f} | {added['worker_bytes'] / 1024:.1f} "
              f"| {added['total_bytes'] / 2**20:.1f} | {plain['ep_us']:.1f} | {uci['ep_us']:.1f} "
              f"| {plain['small_us']:.1f} | {uci['small_us']:.1f} | {plain['busy_ns']:.0f} | {uci['busy_ns']:.0f} |",
              flush=True)


if __name__ == "__main__":
    main()
