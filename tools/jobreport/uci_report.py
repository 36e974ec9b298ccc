#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One report on a whole job, from the records and statistics that its processes with UCI have left.

FOLDER is what uci_run has filled: events.*.jsonl (UCI_EVENTS), stats.*.json (UCI_STATS), *.live (UCI_LIVE), and of runs
with twins twins.*.json (UCI_TWINS_REPORT), in folders twin.K as well. Files may be given, too. The report is one HTML file
that needs no network, or with --text or --json what it says is written to stdout.
"""
import argparse
import json
import os
import sys
import time
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

HERE = Path(__file__).resolve().parent
for place in (HERE, HERE.parent / "share" / "uci"):  # built, and installed
    if (place / "jobreport").is_dir():
        sys.path.insert(0, str(place))
        break
else:
    sys.exit(f"uci_report: its parts are neither in {HERE}/jobreport nor in {HERE.parent}/share/uci/jobreport: install UCI again")

from jobreport.job import Job            # noqa: E402
from jobreport.model import build_model  # noqa: E402
from jobreport.page import D3_FOLDER, MissingError, render_page  # noqa: E402
from jobreport.text import render_text                           # noqa: E402
from uci_version import add_version                             # noqa: E402

EPILOG = """
exit status:
  0  the report is written, whatever it says     1  it could not be made     2  wrong options

examples:
  uci_report /tmp/uci                       writes uci_report.html
  uci_report --text /tmp/uci | less         in short, for a terminal
  uci_report --json a/ b/ | jq -r .verdict.sentence
"""


def parse_arguments():
    parser = argparse.ArgumentParser(prog="uci_report", description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", metavar="FOLDER", help="of one job; several are taken together")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--text", action="store_true", help="text instead of a page")
    form.add_argument("--json", action="store_true", help="all that the page is made from, as JSON")
    parser.add_argument("-o", "--output", metavar="FILE", help="write there ('-': stdout; default uci_report.html, and stdout for "
                        "--text and --json)")
    parser.add_argument("--worst", type=int, default=40, metavar="N", help="damaged messages shown in full (default 40)")
    parser.add_argument("--jobs", type=int, metavar="N", help="processes that read records (default: as many as cores)")
    parser.add_argument("--d3", default=D3_FOLDER, metavar="FOLDER", help=f"where D3 is (default {D3_FOLDER})")
    add_version(parser)
    options = parser.parse_args()
    if options.worst < 1 or options.worst > 1000:
        parser.error("--worst must be from 1 to 1000")
    if options.jobs is not None and options.jobs < 1:
        parser.error("--jobs must be at least 1")
    options.output = options.output or ("-" if options.text or options.json else "uci_report.html")
    return options


def render(model, options):
    """The report in the form that was asked for."""
    if options.json:
        return json.dumps(model, indent=1) + "\n"
    if options.text:
        return render_text(model, options.output == "-" and sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    return render_page(model, options.d3)


def write(text, name):
    """A file appears as a whole or not at all."""
    if name == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    path = Path(name)
    part = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        part.write_text(text, encoding="utf-8", errors="backslashreplace")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def main():
    options = parse_arguments()
    begin = time.monotonic()
    job = Job(options.folders, options.worst, options.jobs)
    if job.run.is_empty():
        sys.exit(f"uci_report: in {', '.join(options.folders)} is nothing of UCI's: expected events.*.jsonl, stats.*.json, *.live or "
                 "twins.*.json, as UCI_EVENTS, UCI_STATS, UCI_LIVE and UCI_TWINS_REPORT write them")
    model = build_model(job)
    write(render(model, options), options.output)
    if options.output != "-":
        print(f"{job.verdict['title']}: {job.verdict['sentence']}\n{options.output}: {job.tally.records + job.tally.differences.records:,} records of {job.tally.lines:,} lines read in "
              f"{time.monotonic() - begin:.1f} s", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except BrokenProcessPool:
        sys.exit("uci_report: a process that read records was ended from outside, for want of memory perhaps: try --jobs 1")
    except MissingError as error:
        sys.exit(f"uci_report: {error}")
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # "| head" has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        sys.exit(f"uci_report: {error.filename or 'a file'}: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit("\nuci_report: interrupted")
