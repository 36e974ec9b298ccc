#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run an MPI program with UCI in every rank, and say at the end what became of its messages.

Finds the MPI that the program is linked with and its mpirun, sets what UCI needs, gathers statistics and records of all ranks in
one folder, and ends with one summary for the job on standard error.
"""
import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "share/uci"))  # where they are installed; beside this file when built
# pylint: disable=wrong-import-position
import uci_folder  # noqa: E402
import uci_job  # noqa: E402
from uci_job import JobError  # noqa: E402

EXIT_NO_UCI = 120  # --require, and a rank without UCI
EXIT_CHANGED = 121
EXIT_REPAIRED = 122
EXIT_DAMAGED = 123
EXIT_FAILED = 125  # uci_run itself, as timeout(1) and env(1) do
EXIT_NOT_FOUND = 127
WORST = 5

EPILOG = f"""
exit status:
  that of mpirun, and so of the program, unless UCI has something to say:
  {EXIT_DAMAGED}  a message arrived damaged and could not be repaired
  {EXIT_NO_UCI}  --require: a rank of a job that ended well had no UCI
  {EXIT_CHANGED}  the program changed the buffer of a send that was pending; nothing else was damaged
  {EXIT_REPAIRED}  messages arrived damaged, and all were repaired
  {EXIT_FAILED}  uci_run could not start the job;  {EXIT_NOT_FOUND}  there is no such program

examples:
  uci_run -n 4 ./program input                        Open MPI or MPICH, whichever ./program is linked with
  uci_run -n 8 --hosts node1,node2 --require ./program
  uci_run -n 4 -v --dry-run ./program                 the command line only, to be pasted into a job script
  UCI_FAULT=rate=1e-3 uci_run -n 2 --json - ./program UCI_ and UCX_ variables reach all ranks
"""


def warn(text):
    """A line on stderr."""
    print(f"uci_run: {text}", file=sys.stderr)


def ask_uci_info():
    """What 'uci_info --check' finds out about this environment: {} if there is no uci_info, which is told."""
    tool = uci_job.find_tool("uci_info")
    if tool is None:
        warn("there is no uci_info, neither beside uci_run nor in PATH: whether UCI is on already, and which UCX is here, is not known")
        return {}
    try:
        return json.loads(subprocess.run([tool, "--check", "--json"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                         stderr=subprocess.DEVNULL, check=False).stdout)
    except ValueError:
        warn(f"'{tool} --check --json' gave no answer")
        return {}


def add_preload(library):
    """LD_PRELOAD with LIBRARY in front of what the user preloads."""
    before = os.environ.get("LD_PRELOAD", "")
    return {"LD_PRELOAD": f"{library}:{before}" if before else library}


def attach_module(library, found):
    """Variables with which UCX loads LIBRARY itself; an older UCX would say nothing and not do it."""
    version = found.get("ucx_version") or "0"
    if [int(part) for part in version.split(".")[:2]] < [1, 22]:
        raise JobError(f"UCX {version if found.get('ucx_version') else '(none found)'} here does not load UCI as a module, UCX 1.22 or "
                       "later does: use --attach preload")
    return {"UCX_PLUGIN_PATH": uci_job.find_module_folder(library)}


def attach(options):
    """(variables that bring UCI into each rank, how in words)."""
    library = options.library or uci_job.find_library()
    if not Path(library).is_file():
        raise JobError(f"there is no library {library}: build it, or give --library another path")
    library = str(Path(library).resolve())
    if ":" in library or " " in library:
        raise JobError(f"LD_PRELOAD can't hold {library}: its path has a blank or a colon")
    if options.attach == "preload":
        return add_preload(library), f"preload {library}"
    found = ask_uci_info()
    if options.attach == "module":
        return attach_module(library, found), f"module {library}"
    if found.get("on") and not options.library:
        return {name: os.environ[name] for name in ("LD_PRELOAD",) if name in os.environ}, f"on already: {found.get('how')}"
    return add_preload(library), f"preload {library}"


def gathering(folder, live):
    """Variables that make each rank leave what it knows in FOLDER; LIVE is the user's UCI_LIVE, which may be off."""
    text = str(folder).replace("%", "%%")
    variables = {"UCI_STATS": f"{text}/{uci_folder.STATS}", "UCI_EVENTS": f"{text}/{uci_folder.EVENTS}"}
    if live.lower() != "off":
        variables["UCI_LIVE"] = text
    return variables


def own_variables(names):
    """Variables of this environment that the ranks on other hosts need too: UCI's and UCX's, and those named with -x."""
    variables = {name: value for name, value in sorted(os.environ.items()) if name.startswith(("UCI_", "UCX_"))}
    for text in names:
        name, separator, value = text.partition("=")
        if not separator and name not in os.environ:
            raise JobError(f"-x {name}: this variable is not set here; give -x {name}=VALUE")
        variables[name] = value if separator else os.environ[name]
    return variables


def default_folder():
    """A new folder here, where job scripts leave their files and other hosts see it as a rule; else under TMPDIR."""
    place = Path.cwd() if os.access(".", os.W_OK) else Path(os.environ.get("TMPDIR", "/tmp"))
    return place / f"uci-run-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def make_folder(folder):
    """A folder without files of another job, which would be added up with this one's."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise JobError(f"cannot make the folder {folder}: {error.strerror}; give --folder another one") from error
    if uci_folder.is_used(folder):
        raise JobError(f"{folder} holds what another job has left: give --folder a new one")


def run_job(command):
    """Exit status of the job, as a shell gives it. An interrupt is mpirun's, which ends its ranks; the summary follows."""
    try:
        process = subprocess.Popen(command)  # pylint: disable=consider-using-with
    except OSError as error:
        raise JobError(f"cannot start {command[0]}: {error.strerror}") from error
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal tells mpirun as well
    signal.signal(signal.SIGTERM, lambda number, frame: process.terminate())
    status = process.wait()
    return 128 - status if status < 0 else status


def name_process(process):
    """'rank 3 (node2:4711)', or without the rank where it is not known."""
    rank, host, pid, _ = process
    place = f"{host}:{pid}"
    return f"rank {rank} ({place})" if rank >= 0 else place


def number_ranks(ranks):
    """'ranks 1, 4, 5 and 20 more'."""
    shown = ", ".join(str(rank) for rank in ranks[:16])
    return f"rank{'s' if len(ranks) > 1 else ''} {shown}" + (f" and {len(ranks) - 16} more" if len(ranks) > 16 else "")


class Summary:
    """What a job of so many ranks has left, judged."""

    def __init__(self, folder, ranks, status, is_required):
        self.job = uci_folder.JobFolder(folder)
        self.ranks, self.status, self.is_required = ranks, status, is_required
        self.missing = sorted(set(range(ranks)) - self.job.ranks())
        self.idle = sorted(self.job.counters.idle)

    def exit_code(self):
        """See EPILOG."""
        if self.job.is_unrepaired():
            return EXIT_DAMAGED
        if self.is_required and self.missing and self.status == 0:
            return EXIT_NO_UCI
        if self.job.damaged_chunks() > 0:
            return EXIT_REPAIRED
        if self.job.sums["source_changed"] > 0:
            return EXIT_CHANGED
        return self.status

    def verdict(self):
        """One sentence."""
        texts = {EXIT_DAMAGED: "messages arrived damaged and could not be repaired",
                 EXIT_REPAIRED: "messages arrived damaged, and all were repaired",
                 EXIT_CHANGED: "the program changed buffers of sends that were pending"}
        if len(self.missing) == self.ranks:
            return ("no rank had UCI: nothing was verified ('uci_info --check' tells why)" if self.status == 0 else
                    "no rank has left statistics: nothing is known of its messages")
        code = self.exit_code()
        if code == EXIT_NO_UCI or code not in texts:
            text = "no damage was seen"
            if self.missing:
                text += f", but {len(self.missing)} of {self.ranks} ranks said nothing"
            return text
        return texts[code]

    def record(self, folder, command):
        """What --json writes."""
        job, sums = self.job, self.job.sums
        return {"uci_run": 1, "folder": str(folder), "command": command, "verdict": self.verdict(), "exit_code": self.exit_code(),
                "job_status": self.status, "ranks": self.ranks, "ranks_with_uci": self.ranks - len(self.missing),
                "ranks_without_statistics": self.missing, "ranks_without_messages": self.idle,
                "killed": [name_process(process) for process in job.killed],
                "messages_sent": sums["messages_sent"], "messages_received": sums["messages_received"],
                "bytes_sent": sums["bytes_sent"], "bytes_received": sums["bytes_received"],
                "unverified_messages": sums["passthrough_messages"], "damaged_chunks": job.damaged_chunks(),
                "source_changed_chunks": sums["source_changed"], "records": job.records.records, "records_unreadable": job.records.damaged_lines,
                "records_lost": sums["events_lost"], "files_unreadable": job.unreadable, "by_cause": dict(job.causes),
                "by_verdict": dict(job.verdicts), "worst_ranks": job.worst_ranks.most_common(WORST),
                "worst_pairs": job.worst_pairs.most_common(WORST), "worst_hosts": job.worst_hosts.most_common(WORST),
                "counters": dict(sums)}

    def lines(self):
        """(name, text) of what there is to say."""
        sums = self.job.sums
        yield "verdict", self.verdict()
        yield "job", f"{self.ranks} ranks, exit status {self.status}"
        yield "messages", f"{sums['messages_sent']:,} sent, {sums['messages_received']:,} received"
        yield "bytes", f"{sums['bytes_sent']:,} sent, {sums['bytes_received']:,} received"
        if sums["passthrough_messages"]:
            yield "not verified", f"{sums['passthrough_messages']:,} messages passed through"
        yield from self._damage_lines(sums)
        yield from self._rank_lines()

    def _damage_lines(self, sums):
        job = self.job
        damaged = self.job.damaged_chunks()
        yield "damaged", (f"{damaged:,} chunks or frames; {sums['repaired_chunks']:,} chunks repaired, {sums['unrepaired_chunks']:,} not"
                          if damaged else "nothing")
        if sums["source_changed"]:
            yield "changed", f"{sums['source_changed']:,} chunks, by the program, while they were being sent"
        if sums["faults_injected"]:
            yield "injected", f"{sums['faults_injected']:,} faults, on purpose (UCI_FAULT)"
        for name, counts in (("by cause", job.causes), ("verdicts", job.verdicts), ("worst ranks", job.worst_ranks),
                             ("worst pairs", job.worst_pairs), ("worst hosts", job.worst_hosts)):
            if counts:
                yield name, "; ".join(f"{text}: {count:,}" for text, count in counts.most_common(WORST))
        if job.records.damaged_lines or sums["events_lost"]:
            yield "records", f"{job.records.damaged_lines:,} unreadable, {sums['events_lost']:,} could not be written"

    def _rank_lines(self):
        if self.missing:
            why = ("without UCI" if self.status == 0 else
                   "without UCI, or ended before it could write (a signal, MPI_Abort)")
            yield "no statistics", f"{number_ranks(self.missing)}: {why}"
        if self.job.killed:
            yield "killed", ", ".join(map(name_process, self.job.killed)) + ": their counters are as of then"
        if self.idle:
            yield "no messages", f"{number_ranks(self.idle)}: UCI was there, and nothing went through it"
        if self.job.unreadable:
            yield "unreadable", ", ".join(self.job.unreadable)


def print_summary(summary, folder):
    """For a person, on stderr: the program's own output is not mixed with it."""
    print("\nUCI summary", file=sys.stderr)
    for name, text in (*summary.lines(), ("folder", folder)):
        print(f"    {name:<14}{text}", file=sys.stderr)


def write_json(path, record):
    """The summary for programs."""
    text = json.dumps(record, indent=1) + "\n"
    if path == "-":
        sys.stdout.write(text)
        return
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        warn(f"cannot write {path}: {error.strerror}")


class Parser(argparse.ArgumentParser):
    """Usage errors end with the code of uci_run's own failures: 2 may be the program's."""

    def error(self, message):
        self.print_usage(sys.stderr)
        self.exit(EXIT_FAILED, f"{self.prog}: {message}\n")


def parse_arguments():
    """Options, and the program with its arguments."""
    parser = Parser(prog="uci_run", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "-np", dest="ranks", type=int, required=True, metavar="N", help="number of ranks")
    parser.add_argument("--hosts", default="", metavar="A,B,...", help="hosts to spread the ranks over (default: this one, or what the "
                        "batch system says)")
    parser.add_argument("--mpi", choices=tuple(uci_job.MPIS), help="default: the one that the program is linked with")
    parser.add_argument("--attach", choices=("auto", "preload", "module"), default="auto",
                        help="how UCI gets into a rank: preloaded; by UCX, from 1.22 on; or (auto, default) as it is already by this "
                             "environment, else preloaded")
    parser.add_argument("--library", metavar="PATH", help="libucx_integrity.so (default: the one installed with uci_run)")
    parser.add_argument("--folder", type=Path, metavar="DIR", help="where statistics and records go: new or without those of another "
                        "job, and seen by all hosts (default: uci-run-DATE-PID in this folder)")
    parser.add_argument("--require", action="store_true", help="fail if not every rank has UCI and is protected")
    parser.add_argument("-x", dest="variables", action="append", default=[], metavar="NAME[=VALUE]",
                        help="variable for all ranks, as are all that begin with UCI_ and UCX_; repeat for more")
    parser.add_argument("--mpirun-args", default=[], type=shlex.split, metavar="ARGS", help="more arguments for mpirun, quoted as for a shell")
    parser.add_argument("--json", metavar="FILE", help="write the summary as JSON ('-': on standard output)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the command line, as it can be pasted")
    parser.add_argument("--dry-run", action="store_true", help="print the command line and do nothing")
    parser.add_argument("program", help="what each rank runs")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    if options.ranks < 1:
        parser.error(f"-n {options.ranks}: a job has 1 rank at least")
    return options


def build_command(options, folder):
    """(command line, how UCI gets in)."""
    program = shutil.which(options.program)
    if program is None:
        warn(f"there is no program {options.program}")
        sys.exit(EXIT_NOT_FOUND)
    launcher = uci_job.find_job_launcher(program, options.mpi)
    attached, how = attach(options)
    own = own_variables(options.variables)
    variables = {**own, **attached, **gathering(folder, own.get("UCI_LIVE", ""))}
    if options.require:
        variables["UCI_REQUIRE"] = "on"
    return launcher.command(options.ranks, variables, [options.program, *options.arguments], options.hosts,
                            options.mpirun_args), how


def main():
    """Returns the exit code."""
    options = parse_arguments()
    folder = (options.folder or default_folder()).absolute()
    command, how = build_command(options, folder)
    if options.verbose or options.dry_run:
        warn(f"UCI: {how}")
        print(shlex.join(command), file=sys.stdout if options.dry_run else sys.stderr, flush=True)
    if options.dry_run:
        return 0
    make_folder(folder)
    status = run_job(command)
    summary = Summary(folder, options.ranks, status, options.require)
    if options.json:
        write_json(options.json, summary.record(folder, command))
    print_summary(summary, folder)
    return summary.exit_code()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except JobError as problem:
        warn(problem)
        sys.exit(EXIT_FAILED)
