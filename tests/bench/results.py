#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Results of uci_perftest by processor, each in a file of its own in docs/results/, and the page that is made of them, docs/measured.md.

usage: tests/bench/results.py add FILE    what uci_perftest --json has written, in place of what there was of this processor; and the page
       tests/bench/results.py page        the page anew
       tests/bench/results.py check       is the page what the results say? Ends with "N passed, N failed, N skipped"
"""
import argparse
import datetime
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "docs" / "results"
PAGE = ROOT / "docs" / "measured.md"
MPIS = {"openmpi": "Open MPI", "mpich": "MPICH"}
TESTS = {"lat": "time", "bw": "bandwidth", "rate": "rate", "bibw": "both ways", "xchg": "exchange", "send": "blocking"}
NOISY = "?"  # behind a ratio whose quartiles are too far apart

HEAD = f"""# Measured, by processor

Made by `tests/bench/results.py` of what `tests/bench/run_bench.sh results` has measured; [performance.md](performance.md) says what to expect of it.

Ratios of UCI to plain UCX, medians within rounds: *time* (ping-pong) below 1 is faster than plain UCX, *bandwidth* (windows of 64 messages) above 1. *Hot*: one
buffer that nobody writes or reads, as the OSU benchmarks have it; *fresh*: each written before it is sent and read when it has come, as programs do, and the
time for that is in both. Behind a figure `{NOISY}`: the quartiles are more than a quarter of it apart.
"""


def slug(machine):
    """A file's name for a processor: intel-xeon-processor-6-207."""
    words = re.sub(r"\((R|TM|tm)\)", "", machine["processor"])
    return "-".join([*re.findall(r"[a-z0-9]+", words.lower()), *re.findall(r"(?:family|model) (\d+)", machine["numbers"])])


def format_size(size):
    """65536 as 64k."""
    for unit, name in ((1 << 20, "m"), (1 << 10, "k")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def say(*command):
    """What a command prints."""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def installed(package):
    """Version of a Debian package, without what Debian adds to it."""
    return re.split(r"[-+]", say("dpkg-query", "-W", "-f", "${Version}", package))[0] or "unknown"


def add(path):
    """Keep of a result what the page shows."""
    result = json.loads(Path(path).read_text(encoding="utf-8"))
    kept = {"machine": result["machine"], "date": datetime.date.today().isoformat(),
            "revision": say("git", "-C", str(ROOT), "rev-parse", "--short=8", "HEAD"),
            "versions": {"UCX": installed("libucx0"), "Open MPI": installed("openmpi-bin"), "MPICH": installed("mpich")},
            "points": [{"mpi": point["mpi"], "transports": point["transports"], "test": point["test"], "buffers": point["buffers"],
                        "size": point["size"], "plain": float(f"{point['plain']:.4g}"), "ratio": round(point["ratio"], 3),
                        "too_noisy": point["too_noisy"]} for point in result["points"]]}
    FOLDER.mkdir(exist_ok=True)
    lines = json.dumps(kept).replace('{"mpi"', '\n {"mpi"').replace(", \n", ",\n").replace("]}", "\n]}")
    (FOLDER / f"{slug(result['machine'])}.json").write_text(lines + "\n", encoding="utf-8")


def table(points):
    """Lines of one MPI and list of transports: a row for each test and kind of buffers, a column for each size."""
    sizes = sorted({point["size"] for point in points})
    cells = {(point["test"], point["buffers"], point["size"]): point for point in points}
    rows = sorted({(list(TESTS).index(test), test, buffers != "hot", buffers) for test, buffers, _ in cells})
    yield " " * 20 + "".join(f"{format_size(size):>7} " for size in sizes).rstrip()
    for _, test, _, buffers in rows:
        row = [cells.get((test, buffers, size)) for size in sizes]
        texts = ["" if point is None else f"{point['ratio']:.2f}" + (NOISY if point["too_noisy"] else " ") for point in row]
        yield (f"{TESTS[test]}, {buffers}".ljust(20) + "".join(f"{text:>8}" for text in texts)).rstrip()


def describe(result):
    """Where and when."""
    machine = result["machine"]
    caches = ", ".join(f"{cache['name']} {cache['size']}" for cache in machine["caches"])
    versions = ", ".join(f"{name} {version}" for name, version in result["versions"].items())
    return f"{machine['cores']} cores, {caches}; Linux {machine['kernel'].split('-')[0]}, {versions}; {result['revision']}, {result['date']}."


def make_page():
    """The whole page."""
    parts = [HEAD]
    for path in sorted(FOLDER.glob("*.json")):
        result = json.loads(path.read_text(encoding="utf-8"))
        parts.append(f"\n## {result['machine']['processor']} ({result['machine']['numbers']})\n\n{describe(result)}\n")
        for mpi, name in MPIS.items():
            for tls in dict.fromkeys(point["transports"] for point in result["points"]):
                points = [point for point in result["points"] if (point["mpi"], point["transports"]) == (mpi, tls)]
                if points:
                    parts.append(f"\n{name}, {tls}:\n\n" + "".join(f"    {line}\n" for line in table(points)))
    return "".join(parts)


def check():
    """Compare, and count."""
    same = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == make_page()
    print("ok   docs/measured.md is what docs/results/ says" if same else
          "FAIL docs/measured.md is not what docs/results/ says: tests/bench/results.py page")
    print(f"{int(same)} passed, {int(not same)} failed, 0 skipped")
    sys.exit(not same)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("add", "page", "check"))
    parser.add_argument("file", nargs="?", help="of add: what uci_perftest --json has written")
    options = parser.parse_args()
    if (options.what == "add") != (options.file is not None):
        parser.error("add takes a file, and the others none")
    if options.what == "check":
        check()
    if options.what == "add":
        add(options.file)
    PAGE.write_text(make_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
