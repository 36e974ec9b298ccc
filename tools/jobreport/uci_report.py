#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""One report on a whole job, from the records and statistics that its processes with UCI have left.

FOLDER is what uci_run has filled: events.*.jsonl (UCI_EVENTS), stats.*.json (UCI_STATS), *.live (UCI_LIVE), and of runs
with twins twins.*.json (UCI_TWINS_REPORT), in folders twin.K as well. Files may be given, too. The report is one HTML file
that needs no network, or with --text or --json what it says is written to stdout.

With --history it is on all the jobs of many folders, or of folders that hold them, and of ledgers: which node, device, cable or switch their damage has
in common; text, or a page with -o. A ledger keeps what a job has told of its nodes when its folder goes.
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

from jobreport import drain                             # noqa: E402
from jobreport.gather import Past                       # noqa: E402
from jobreport.history import build_history             # noqa: E402
from jobreport.history_text import render_history       # noqa: E402
from jobreport.job import Job                           # noqa: E402
from jobreport.ledger import append                     # noqa: E402
from jobreport.model import build_model                 # noqa: E402
from jobreport.page import D3_FOLDER, MissingError, render_history_page, render_page  # noqa: E402
from jobreport.streams import open_streams           # noqa: E402
from jobreport.text import render_text                  # noqa: E402
from jobreport.topology import Topology, TopologyError, read_topology  # noqa: E402
from jobreport.wording import clean, count              # noqa: E402
from uci_job import given                               # noqa: E402
from uci_version import add_version                     # noqa: E402

EPILOG = """
exit status:
  0  the report is written, whatever it says     1  it could not be made     2  wrong options

examples:
  uci_report /tmp/uci                       writes uci_report.html
  uci_report --text /tmp/uci | less         in short, for a terminal
  uci_report --json a/ b/ | jq -r .verdict.sentence
  uci_report --ledger site.ledger /scratch/*/uci-runs/*   keeps what these jobs tell of their nodes
  uci_report --history --topology /etc/slurm/topology.conf site.ledger
  uci_report --history --drain-list site.ledger | xargs -rI NODE scontrol update nodename=NODE state=drain reason=UCI
"""


def path_given(text):
    return Path(given(text))


def parse_arguments():
    parser = argparse.ArgumentParser(prog="uci_report", description=__doc__, epilog=EPILOG,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=given, metavar="FOLDER", help="of one job; several are taken together. With --history and --ledger each is "
                        "another job, or holds folders of jobs; and files are ledgers")
    many = parser.add_mutually_exclusive_group()
    many.add_argument("--history", action="store_true", help="damage over many jobs, and what it has in common")
    many.add_argument("--ledger", type=path_given, metavar="FILE", help="append a line for each job and node to FILE, which need not be there; what is in it "
                      "already is not added")
    parser.add_argument("--topology", type=path_given, metavar="FILE", help="with --history: switches and cables, as Slurm's topology.conf has them")
    parser.add_argument("--drain-list", action="store_true", help="with --history: only the names of nodes to take from service, one a line; with --json "
                        "the reasons, too")
    parser.add_argument("--drain-jobs", type=int, default=drain.JOBS, metavar="N", help=f"a node is drained that is named for damage in so many jobs "
                        f"(default {drain.JOBS})")
    parser.add_argument("--drain-lost", type=int, default=drain.LOST, metavar="N", help="or for so many messages that were not repaired "
                        f"(default {drain.LOST})")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--text", action="store_true", help="text instead of a page")
    form.add_argument("--json", action="store_true", help="all that the page is made from, as JSON")
    parser.add_argument("-o", "--output", type=given, metavar="FILE", help="write there ('-': stdout; default uci_report.html, and stdout for "
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
    if (options.topology or options.drain_list) and not options.history:
        parser.error("--topology and --drain-list are for --history")
    if options.ledger and (options.text or options.json or options.output):
        parser.error("--ledger writes no report")
    if options.drain_jobs < 1 or options.drain_lost < 1:
        parser.error("--drain-jobs and --drain-lost must be at least 1")
    options.text |= options.history and not options.output and not options.json  # what is asked daily is not a page
    options.output = options.output or ("-" if options.text or options.json else "uci_report.html")
    return options


def render(model, options):
    """The report in the form that was asked for."""
    if options.json:
        return json.dumps(model, indent=1) + "\n"
    if options.text:
        return (render_history if options.history else render_text)(model, options.output == "-" and sys.stdout.isatty() and "NO_COLOR" not in os.environ)
    return render_history_page(model) if options.history else render_page(model, options.d3)


def warn(text):
    """A line on stderr."""
    print(f"uci_report: {text}", file=sys.stderr)


def find_past(options):
    """The Past of what was named."""
    past = Past(options.folders, options.jobs)
    if past.is_empty():
        sys.exit(f"uci_report: in {clean(', '.join(options.folders), 4096)} is nothing of UCI's: expected folders of jobs, folders that hold such, or ledgers")
    return past


def keep(options):
    """--ledger"""
    past = find_past(options)
    for path, why in past.complaints:
        warn(f"{path}: {why}")
    added = append(options.ledger, past.entries.values())
    print(f"{clean(str(options.ledger), 4096)}: {count(added, 'line')} added, {count(len(past.entries) - added)} there already; "
          f"{count(len(past.jobs()), 'job')} read, {count(past.running)} still running and left for later")


def look_back(options):
    """--history"""
    topology = read_topology(options.topology) if options.topology else Topology()
    past = find_past(options)
    history = build_history(past, topology, options.drain_jobs, options.drain_lost)
    if options.drain_list:
        list_nodes(history, past, options)
        return
    write(render(history, options), options.output)
    if options.output != "-":
        warn(f"{history['verdict']['sentences'][0]} {options.output}")


def list_nodes(history, past, options):
    """--drain-list: nothing but names goes where they are read from."""
    answer = {"drain": history["drain"], "spared": history["spared"]}
    write(json.dumps(answer, indent=1) + "\n" if options.json else "".join(f"{node['node']}\n" for node in history["drain"]), options.output)
    for place in history["spared"]:
        warn(f"not drained for {place['place']}: {place['reason']}")
    for path, why in past.complaints:
        warn(f"{path}: {why}")


def write(text, name):
    """A file appears as a whole or not at all, where a link leads to; what is none, such as /dev/null, stays what it is."""
    if name == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    if os.geteuid() == 0 and os.path.islink(name) and os.lstat(name).st_uid != 0:
        sys.exit(f"uci_report: {name} is a link of another user's, through which root does not write: name another file (-o)")
    path = Path(os.path.realpath(name))
    if path.exists() and not path.is_file():
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
        return
    part = path.with_name(f".{path.name}.{os.getpid()}")
    part.unlink(missing_ok=True)
    try:
        with open(part, "x", encoding="utf-8", errors="backslashreplace") as stream:  # a new file: others can guess its name, and put a link there
            stream.write(text)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def main():
    open_streams()
    options = parse_arguments()
    sys.stdout.reconfigure(errors="backslashreplace")  # names may have characters that those of a terminal are not
    (keep if options.ledger else look_back if options.history else report)(options)


def report(options):
    """One job."""
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
    except TopologyError as error:
        sys.exit(f"uci_report: --topology: {error}")
    except MissingError as error:
        sys.exit(f"uci_report: {error}")
    except OSError as error:
        if isinstance(error, BrokenPipeError):  # "| head" has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        sys.exit(f"uci_report: {error.filename or 'standard output'}: {error.strerror}")
    except KeyboardInterrupt:
        sys.exit("\nuci_report: interrupted")
