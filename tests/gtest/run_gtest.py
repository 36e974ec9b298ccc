#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""UCX's own unit tests of ucp (gtest), on plain UCX and under UCI: what passes there has to pass here.

Each class of tests is a process, first without UCI, then with it preloaded; if one ends in the middle, the others are run in another. A test that
plain UCX fails or skips here says nothing, and is counted as skipped. What is known to differ, and what is left out, is in known.txt, and why.
"""
import argparse
import fnmatch
import os
import re
import selectors
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINE = re.compile(r"^\[ +(RUN|OK|FAILED|SKIP) +\] ([^ ,]+/[^ ,]+)")
QUICK = ("tcp/test_ucp_*", "shm/test_ucp_*", "self/test_ucp_*", "shm_ib/test_ucp_*")


class Known:
    """Patterns of tests that may fail under UCI, and with "-" in front of those that are left out, with the reason."""

    def __init__(self, path):
        self.rows = [line.split(None, 1) for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]

    def why(self, name, mark=""):
        """The reason, or None."""
        return next((reason for pattern, reason in self.rows if fnmatch.fnmatchcase(mark + name, pattern)), None)


def environment(options, preload):
    """The installed UCX's libraries, before those that the tests were built with."""
    found = subprocess.run(["ldconfig", "-p"], text=True, capture_output=True, check=True).stdout
    library = re.search(r"libucp\.so\.0 .*=> (\S+)", found)
    if not library:
        sys.exit("run_gtest.py: there is no libucp.so.0 on this machine")
    folder = str(Path(library.group(1)).parent)
    values = {**os.environ, "LD_LIBRARY_PATH": f"{folder}:{folder}/ucx", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    if preload:
        values.update({"LD_PRELOAD": str(options.build / "libucx_integrity.so"), "UCI_LOG_LEVEL": "error"})
        values.update(word.split("=", 1) for word in options.set)
    return values


def classes_of(options):
    """{class: tests} of what the filters name."""
    text = subprocess.run([options.program, "--gtest_list_tests"], env=environment(options, False), text=True, capture_output=True,
                          check=True).stdout
    classes, current = {}, ""
    for line in text.splitlines():
        if not line.startswith(" "):
            current = line.split()[0] if line.strip() else ""
        elif any(fnmatch.fnmatchcase(current + line.split()[0], pattern) for pattern in options.filter):
            classes.setdefault(current, []).append(current + line.split()[0])
    return classes


def kept_waiting(pid):
    """Seconds in which its first thread was ready to run, and had no core because others had them."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) * 1e-9
    except OSError:
        return 0.0


def lines_of(process, is_late):
    """Lines as they come; None where nothing more comes in a second, and it is late."""
    text = b""
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        while True:
            if ready.select(1.0):
                some = os.read(process.stdout.fileno(), 65536)
                if not some:
                    return
                *lines, text = (text + some).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
            elif is_late():
                yield None


def run_once(options, tests, preload, log):
    """Run tests in one process until it ends, or is at one of them for too long: of what the machine gives it. {test: outcome} of those that were begun."""
    command = [options.program, "--gtest_filter=" + ":".join(tests), "--gtest_color=no"]
    outcomes, current, last, waited = {}, None, time.monotonic(), 0.0
    with subprocess.Popen(command, env=environment(options, preload), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0, start_new_session=True) as process:
        for line in lines_of(process, lambda: time.monotonic() - last > options.timeout + min(kept_waiting(process.pid) - waited, 8 * options.timeout)):
            if line is None:
                log.write(subprocess.run([HERE.parents[1] / "tools/where.sh", str(process.pid)], text=True, capture_output=True, errors="replace", check=False).stdout)
                process.kill()
                log.write(process.stdout.read().decode(errors="replace")) # what UCI said of itself
                outcomes[current] = "HANG"
                break
            log.write(line + "\n")
            found = LINE.match(line)
            if found and found.group(1) == "RUN":
                current, last, waited = found.group(2), time.monotonic(), kept_waiting(process.pid)
                outcomes[current] = "CRASH"  # until it says otherwise
            elif found and found.group(2) == current:
                outcomes[current], current = found.group(1), None
    return outcomes


def run_class(options, name, tests, preload):
    """{test: outcome} of all tests of a class."""
    outcomes, left = {}, list(tests)
    path = options.out / f"{name.strip('.').replace('/', '-')}.{'uci' if preload else 'plain'}.log"
    with open(path, "w", encoding="utf-8") as log:
        while left:
            some = run_once(options, left[:200], preload, log)
            if not some:
                some = {left[0]: "CRASH"}
            outcomes.update(some)
            left = [test for test in left if test not in outcomes]
    return outcomes


def judge(options, known, name, tests):
    """Both runs of a class, as rows (verdict, test, words)."""
    out   = [test for test in tests if known.why(test, "-")]
    tests = [test for test in tests if test not in out]
    plain = run_class(options, name, tests, False)
    worth = [test for test in tests if plain[test] == "OK"]
    uci = run_class(options, name, worth, True) if worth else {}
    rows = [("skip", test, f"plain: {plain[test]}") for test in tests if plain[test] != "OK"]
    rows += [("skip", test, f"left out: {known.why(test, '-')}") for test in out]
    for test in worth:
        if uci[test] == "OK":
            rows.append(("ok", test, ""))
        elif known.why(test):
            rows.append(("skip", test, f"{uci[test]}, known: {known.why(test)}"))
        else:
            rows.append(("FAIL", test, uci[test]))
    return rows


def main():
    """A line for each class, the tests that fail, and the count."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("filter", nargs="*", default=QUICK, help="patterns of tests, as gtest names them (%(default)s)")
    parser.add_argument("--build", type=lambda path: Path(path).resolve(), default=HERE.parents[1] / "build", help="where UCI was built")
    parser.add_argument("--gtest", type=lambda path: Path(path).resolve(), default=HERE.parents[1] / "build" / "gtest",
                        help="where build_gtest.sh built the tests (%(default)s)")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting for the runs with UCI, such as UCI_FAULT=...")
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one test (%(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="classes at a time (%(default)s)")
    options = parser.parse_args()
    options.program = options.gtest / "ucx/test/gtest/gtest"
    options.out     = options.build / "test-gtest"
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.program.exists():
        sys.exit(f"run_gtest.py: {options.program} is not there: build it with tests/gtest/build_gtest.sh {options.gtest}")
    known, count = Known(HERE / "known.txt"), {"ok": 0, "FAIL": 0, "skip": 0}
    classes = classes_of(options)
    if not classes:
        sys.exit(f"run_gtest.py: no test is named like {' '.join(options.filter)}")
    with ThreadPoolExecutor(options.jobs) as pool, open(options.out / "results.txt", "w", encoding="utf-8") as results:
        for name, rows in zip(classes, pool.map(lambda item: judge(options, known, *item), classes.items())):
            here = {verdict: sum(row[0] == verdict for row in rows) for verdict in count}
            print(f"{'FAIL' if here['FAIL'] else 'ok  '} {name.strip('.')}: {here['ok']} passed, {here['FAIL']} failed, {here['skip']} skipped", flush=True)
            for row in rows:
                results.write(" ".join(row) + "\n")
                if row[0] == "FAIL":
                    print(f"     {row[1]}: {row[2]}", flush=True)
            results.flush()
            count = {verdict: count[verdict] + here[verdict] for verdict in count}
    print(f"what was skipped, and why: {options.out / 'results.txt'}; logs beside it")
    print(f"{count['ok']} passed, {count['FAIL']} failed, {count['skip']} skipped")
    return 1 if count["FAIL"] or not count["ok"] else 0


sys.exit(main())
