#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run an MPI program with UCI in every rank, and say at the end what became of its messages.

Finds the MPI that the program is linked with and its mpirun, sets what UCI needs, gathers statistics and records of all ranks in
one folder, and ends with one summary for the job on standard error. With --twins the job is run two or three times at once, and
its runs compare their messages.
"""
import argparse
import contextlib
import itertools
import json
import math
import os
import re
import shlex
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "share/uci"))  # where they are installed; beside this file when built
# pylint: disable=wrong-import-position
import uci_job  # noqa: E402
import uci_key  # noqa: E402
import uci_preflight  # noqa: E402
import uci_twins  # noqa: E402
import uci_version  # noqa: E402
from uci_job import JobError, or_fail  # noqa: E402
from jobreport.counters import Counters  # noqa: E402
from jobreport.ending import NAME as ENDED  # noqa: E402
from jobreport.ending import make_room, note_end  # noqa: E402
from jobreport.levels import LEVELS  # noqa: E402
from jobreport.live import add_live  # noqa: E402
from jobreport.reading import find_files  # noqa: E402
from jobreport.streams import open_streams  # noqa: E402
from uci_summary import Summary, print_summary, put, warn, write_json  # noqa: E402
from uci_twin_summary import TwinSummary  # noqa: E402
from uci_watcher import Watcher  # noqa: E402

EXIT_FAILED = 125  # uci_run itself, as timeout(1) and env(1) do
EXIT_NOT_FOUND = 127
HEARD_S = 6    # a terminal tells mpirun of an interrupt or a hang-up as well, and Open MPI's ends without its ranks if it is told twice in 5 s
ENDING_S = 60  # for an mpirun that was told to end: Open MPI 4.1's has been seen to wait for itself in PMIx_server_finalize, for ever
PATIENCE = 3  # seconds, for ranks that are being killed
RUNS, RUN, KEPT = "uci-runs", re.compile(r"\d{8}-\d{6}-\d+(-\d+)?"), 20
TWIN = re.compile(r"twin\.\d")
LEFT = re.compile(r"(stats|events|calls|twins|twin)\..*|.*\.live|ended\.json(\.room)?")
STATS, EVENTS, CALLS = "stats.%h.%p.%r.json", "events.%h.%p.%r.jsonl", "calls.%h.%p.%r"  # of each process; of ranks in containers %p may be one
EXITS = "\n".join(f"  {level.status}  {level.meaning}" for level in LEVELS.values() if level.status)

EPILOG = f"""
exit status:
  that of mpirun, and so of the program, unless UCI has something to say; the first of these that is true:
{EXITS}
  143, 130, 129  uci_run was ended by SIGTERM, SIGINT, or SIGHUP, and the job with it
  of --preflight: 0 all nodes are ready, 1 not all are
  {EXIT_FAILED}  uci_run could not start the job, note how it ended, or write what was asked for;  {EXIT_NOT_FOUND}  there is no such program

examples:
  uci_run -n 4 ./program input                        Open MPI or MPICH, whichever ./program is linked with
  uci_run -n 8 --hosts node1,node2 --require ./program
  uci_run --preflight --hosts node1,node2 ./program   is the same UCI, UCX and MPI on all nodes, and would it protect the job?
  uci_run -n 4 -v --dry-run ./program                 the command line only, to be pasted into a job script
  UCI_FAULT=rate=1e-3 uci_run -n 2 ./program          UCI_ and UCX_ variables reach all ranks
  uci_run -n 2 --json job.json ./program              for programs: jq .by_cause job.json
  uci_run --signatures -n 4 ./program                 is what is received what was meant by its sender?
  uci_run --signatures=all -n 4 ./program             the same, and do all ranks call the same collectives?
  uci_run --debug -n 4 ./program                      what does the program do wrong, and where does it hang?
  uci_run --profile -n 4 ./program                    where does its time in MPI go?
  uci_run --seal -n 8 --hosts node1,node2 ./program   nobody on the way reads or changes a message
  uci_run --twins 3 --correct -n 4 ./program          three runs, which vote on each message
  uci_run --twins 2 -- mpirun -np 4 ./program         a command line of one's own
"""


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


def join_preloads(*texts):
    """One LD_PRELOAD of several, each library once."""
    return ":".join(dict.fromkeys(name for text in texts for name in re.split("[ :]+", text) if name))


def add_preload(library):
    """LD_PRELOAD with LIBRARY in front of what the user preloads."""
    return {"LD_PRELOAD": join_preloads(library, os.environ.get("LD_PRELOAD", ""))}


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


def gathering(folder, live, with_calls):
    """Variables that make each rank leave what it knows in FOLDER; LIVE is the user's UCI_LIVE, which may be off."""
    text = str(folder).replace("%", "%%")
    variables = {"UCI_STATS": f"{text}/{STATS}", "UCI_EVENTS": f"{text}/{EVENTS}"} | ({"UCI_CALLS": f"{text}/{CALLS}"} if with_calls else {})
    if live.lower() != "off":
        variables["UCI_LIVE"] = text
    return variables


def own_variables(names):
    """Variables of this environment that the ranks on other hosts need too: UCI's and UCX's, and those named with -x."""
    variables = {name: value for name, value in sorted(os.environ.items()) if name.startswith(("UCI_", "UCX_"))}
    for text in names:
        name, separator, value = text.partition("=")
        if not name:
            raise JobError(f"-x '{text}' names no variable: expected NAME or NAME=VALUE")
        if not separator and name not in os.environ:
            raise JobError(f"-x {name}: this variable is not set here; give -x {name}=VALUE")
        variables[name] = value if separator else os.environ[name]
    return variables


def absolute(text):
    """The path of a folder, wherever its name is read."""
    with or_fail("the current folder is gone", "; change to another one"):
        return Path(text).absolute()


def default_place():
    """This folder, where job scripts leave their files and other hosts see it as a rule; else TMPDIR."""
    return absolute("." if os.access(".", os.W_OK) else os.environ.get("TMPDIR") or "/tmp")


def is_ours(folder):
    """Can nobody else change what is in it?"""
    found = folder.lstat()
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o022


def default_folder():
    """A new folder, beside those of the last jobs. In a folder that users share another one may have been first."""
    runs = default_place() / RUNS
    if os.path.lexists(runs) and not is_ours(runs):
        runs = runs.with_name(f"{RUNS}.{os.geteuid()}")
    return runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"


def is_left_alone(folder):
    """Does it hold what jobs, or their twins, leave there, and nothing of the user's? Twins that were --apart leave files of the program."""
    return all(not path.is_symlink() and (is_left_alone(path) if path.is_dir() and TWIN.fullmatch(path.name) else
                                          path.is_file() and LEFT.fullmatch(path.name)) for path in folder.iterdir())


def has_ended(folder):
    """Is it that of a job that has ended? Folders of others may be closed to us."""
    try:
        return not folder.is_symlink() and folder.is_dir() and ((folder / ENDED).is_file() or any(folder.glob(f"twin.*/{ENDED}")))
    except OSError:
        return False


def forget_runs(parent, kept):
    """Of folders that default_folder() has made the last KEPT stay, and those that hold anything else, or whose job has not ended."""
    ended = sorted(path for path in parent.iterdir() if RUN.fullmatch(path.name) and has_ended(path))
    for path in ended[:-kept]:
        try:
            if is_left_alone(path):
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            continue  # another uci_run has been faster, or it is nobody's to look into


def make_new_folder(folder):
    """That of default_folder(), or with a number behind it: a uci_run in another container, or on another node, may have the same process id in
    the same second. @return which one"""
    with or_fail(f"cannot make the folder {folder}", "; give --folder another one"):
        folder.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        if not is_ours(folder.parent):
            raise JobError(f"others may change what is in {folder.parent}: give --folder another one")
        for number in itertools.count(1):
            made = folder if number == 1 else folder.with_name(f"{folder.name}-{number}")
            with contextlib.suppress(FileExistsError):
                made.mkdir()
                return made


def make_folder(folder):
    """A folder without files of another job, which would be added up with this one's."""
    with or_fail(f"cannot make the folder {folder}", "; give --folder another one"):
        folder.mkdir(parents=True, exist_ok=True)
    if not find_files([folder]).is_empty():
        raise JobError(f"{folder} holds what another job has left: give --folder a new one")
    return folder


def run_job(command, watcher=None):
    """(exit status of the job, as a shell gives it; name of the signal that uci_run got meanwhile, which was to end it). The summary follows.
    WATCHER looks once a second."""
    told = []
    with or_fail(f"cannot start {command[0]}"):
        process = subprocess.Popen(command)  # pylint: disable=consider-using-with

    steps = [process.terminate, process.kill]

    def end_job(number, _):
        told.append(signal.Signals(number).name)
        if len(steps) == 2:
            if number == signal.SIGTERM:
                insist()
            else:
                signal.alarm(HEARD_S)

    def insist(*_):
        steps.pop(0)()
        signal.alarm(ENDING_S if steps else 0)
    signal.signal(signal.SIGALRM, insist)
    for number in uci_twins.ending_signals():
        signal.signal(number, end_job)
    for number in uci_twins.PASSED_ON:
        signal.signal(number, lambda number, _: process.send_signal(number))
    status = wait_for(process, watcher)
    signal.alarm(0)
    if told:  # mpirun ends as it likes, then
        return 128 + signal.Signals[told[0]], told[0]
    return 128 - status if status < 0 else status, ""


def wait_for(process, watcher):
    """Its return code."""
    while watcher:
        try:
            return process.wait(timeout=watcher.interval)
        except subprocess.TimeoutExpired:
            watcher.look()
    return process.wait()


class Parser(argparse.ArgumentParser):
    """Usage errors end with the code of uci_run's own failures: 2 may be the program's."""

    def error(self, message):
        if message.startswith("argument --seal/"):
            message = "--seal is either alone, --seal=encrypt or --seal=sign"
        self.print_usage(sys.stderr)
        self.exit(EXIT_FAILED, f"{self.prog}: {message}\n")


def parse_arguments():
    """Options, and the program with its arguments."""
    parser = Parser(prog="uci_run", description=__doc__, epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", "-np", dest="ranks", type=int, metavar="N", help="number of ranks; without it, what follows the options is a "
                        "command line of your own that starts them (mpirun, srun, a script)")
    parser.add_argument("--hosts", type=uci_job.named_hosts, metavar="A,B,...", help="hosts to spread the ranks over (default: this one, or what the "
                        "batch system says)")
    parser.add_argument("--twins", type=int, choices=(2, 3), metavar="2|3", help="run the job so many times at once, and compare the messages "
                        "of these runs; the output of the first is shown, those of the others are kept and compared")
    parser.add_argument("--correct", action="store_true", help="with --twins 3: a message that is wrong in one of them is replaced by the right "
                        "one before the program gets it")
    parser.add_argument("--same-time", action="store_true",
                        help="with --twins: the other twins are told the time and the random numbers that the system tells the first "
                             "(UCI_TWINS_TIME)")
    parser.add_argument("--hosts-of-twin", action="append", default=[], type=uci_job.named_hosts, metavar="A,B,...", help="hosts of one twin, given once for each of them "
                        "(default: all twins on the hosts of --hosts)")
    parser.add_argument("--apart", action="store_true", help="with --twins: each twin but the first works in a folder of its own, twin.K/work, "
                        "with links to what is in this one, so that files that the program makes do not collide")
    parser.add_argument("--signatures", choices=("off", "p2p", "all"), help="compare the types of what is sent and received, point to point (p2p, as "
                        "--signatures alone says): 4 x MPI_INT may not be received as 2 x MPI_DOUBLE; with =all, collectives too: which it is, its "
                        "root, operation, counts and types")
    parser.add_argument("--debug", action="store_const", const="on", help="look for what the program does wrong: types and collectives that do not match, "
                        "buffers that overlap or are changed while they are sent, messages that are longer than their receives, requests that are never completed, and, "
                        "when nothing moves any more, who waits for whom; costs time (uci_run(1))")
    parser.add_argument("--debug=unbuffered", dest="debug", action="store_const", const="unbuffered", help="the same, and each standard send (MPI_Send, "
                        "MPI_Isend) waits for its receive, as MPI may: a program that runs because an MPI has buffers hangs, and it is told where")
    parser.add_argument("--still", type=float, default=20, metavar="SECONDS", help="with --debug: who waits for whom is told when for so long no rank has come "
                        "from one call of MPI's to another (default 20, 1 at least; 0: never)")
    parser.add_argument("--profile", action="store_true", help="where the time in MPI goes: by place in the program, and who sends how much to whom; in the "
                        "folder, for uci_report")
    # the values are part of the names: what follows --seal may be the program
    parser.add_argument("--seal", "--seal=encrypt", dest="seal", action="store_const", const="encrypt", help="encrypt messages between nodes, with "
                        "a key made for this job (UCI_SEAL); needs OpenSSL 3 on all nodes")
    parser.add_argument("--seal=sign", dest="seal", action="store_const", const="sign", help="the same, but only make sure that nobody changes "
                        "or forges them: others can read them")
    parser.add_argument("--seal-scope", choices=("net", "all"), help="with --seal: what leaves the node (net, default), or within a node as well")
    parser.add_argument("--allreduce", choices=("auto", "on"), help="MPI_Allreduce by node, whose messages are the fewest bytes that leave a node: where "
                        "it is expected to be faster, of jobs that are sealed (auto), or always (on)")
    parser.add_argument("--mpi", choices=tuple(uci_job.MPIS), help="default: the one that the program is linked with")
    parser.add_argument("--attach", choices=("auto", "preload", "module"), default="auto",
                        help="how UCI gets into a rank: preloaded; by UCX, from 1.22 on; or (auto, default) as it is already by this "
                             "environment, else preloaded")
    parser.add_argument("--library", metavar="PATH", help="libucx_integrity.so (default: the one installed with uci_run)")
    parser.add_argument("--folder", type=lambda text: absolute(uci_job.given(text)), metavar="DIR", help="where statistics and records go: new or without those of another "
                        "job, and seen by all hosts (default: uci-runs/DATE-PID in this folder)")
    parser.add_argument("--keep", type=int, default=KEPT, metavar="N", help=f"jobs whose folders stay in uci-runs (default {KEPT}; 0: all)")
    parser.add_argument("--preflight", action="store_true", help="start no job: ask each of --hosts, or of the batch system's, which UCI, UCX and MPI it has, "
                        "with which settings and limits, and say what differs and what would stop the job or leave it unprotected")
    parser.add_argument("--require", action="store_true", help="fail if not every rank has UCI and is protected")
    parser.add_argument("-x", dest="variables", action="append", default=[], metavar="NAME[=VALUE]",
                        help="variable for all ranks, as are all that begin with UCI_ and UCX_; repeat for more")
    parser.add_argument("--mpirun-args", default=[], type=uci_job.split_words, metavar="ARGS", help="more arguments for mpirun, quoted as for a shell")
    parser.add_argument("--json", type=uci_job.given, metavar="FILE", help="write the summary as JSON ('-': on standard output, behind what the "
                        "program prints)")
    parser.add_argument("-v", "--verbose", action="store_true", help="print the command line, as it can be pasted")
    parser.add_argument("--dry-run", action="store_true", help="print the command line and do nothing")
    uci_version.add_version(parser)
    parser.add_argument("program", nargs="?", help="what each rank runs; without -n, what starts them; --preflight can do without")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(name_signatures(sys.argv[1:]))
    begin = len(sys.argv) - len(options.arguments)
    options.arguments = sys.argv[begin - (sys.argv[begin - 1] == "--"):]  # the program's own: as they were; argparse takes a "--" at their front for its own
    check_options(parser, options)
    return options


def name_signatures(words):
    """--signatures without a value would take the program for one."""
    return [f"{word}=p2p" if word == "--signatures" else word for word in words]


def check_options(parser, options):
    """What does not go together ends here, with what to do."""
    if options.program is None and not options.preflight:
        parser.error("the following arguments are required: program")
    if options.preflight and options.dry_run:
        parser.error("--preflight starts no job, whose command line --dry-run could print")
    if options.ranks is not None and options.ranks < 1:
        parser.error(f"-n {options.ranks}: a job has 1 rank at least")
    if options.keep < 0:
        parser.error("--keep takes no negative numbers")
    if not 0 <= options.still < math.inf:
        parser.error(f"--still {options.still}: expected seconds, or 0 for never")
    if not options.twins and (options.correct or options.hosts_of_twin or options.apart or options.same_time):
        parser.error("--correct, --same-time, --hosts-of-twin and --apart are for jobs with --twins")
    if options.correct and options.twins != 3:
        parser.error("--correct needs --twins 3: two can't tell which of them is right")
    if options.twins and options.signatures not in (None, "off"):
        parser.error("--signatures is not for jobs with --twins: first run the job with one, then with the other")
    if options.debug and options.signatures is None:
        options.signatures = "all"
    if options.twins and (options.debug or options.profile):
        parser.error("--debug and --profile are not for jobs with --twins: run the job once more without")
    if options.signatures == "off":
        options.signatures = None
    if options.twins and options.allreduce:
        parser.error("--allreduce is not for jobs with --twins, which see messages alone: leave one of them out")
    if options.hosts_of_twin and (len(options.hosts_of_twin) != options.twins or options.hosts):
        parser.error(f"--hosts-of-twin is given once for each of the {options.twins} twins, and then --hosts is not" if options.hosts else
                     f"--hosts-of-twin is given once for each of the {options.twins} twins, not {len(options.hosts_of_twin)} times")
    if options.seal_scope and not options.seal:
        parser.error("--seal-scope is for jobs with --seal")
    check_variables(parser, options)
    if options.ranks is None and (options.mpi or options.mpirun_args) and not options.preflight:
        parser.error("--mpi and --mpirun-args are for jobs with -n, whose command line uci_run makes")


def check_variables(parser, options):
    """Where records, statistics, live files and calls go uci_run says itself, and reads them there at the end."""
    given = {name: value if equals else os.environ.get(name, "") for name, equals, value in (text.partition("=") for text in options.variables)}
    no_file = {"UCI_LIVE": ("", "auto", "off")}  # these may be said
    for name in ("UCI_STATS", "UCI_EVENTS", "UCI_LIVE", *(["UCI_CALLS"] if options.debug or options.profile else [])):
        if name in given and given[name].lower() not in no_file.get(name, ()):
            parser.error(f"-x {name}: uci_run sets it itself; --folder says where its files go")
        if os.environ.get(name, "").lower() not in no_file.get(name, ("",)) and not options.preflight:
            warn(f"{name} of this environment is not used: the job's are in its folder (--folder)")


def is_on(text):
    """A switch, as UCI reads it."""
    return text.lower() in ("on", "1", "y", "yes")


def is_required(options):
    """Must all ranks be protected?"""
    return options.require or is_on(own_variables(options.variables).get("UCI_REQUIRE", ""))


class Starter:
    """Makes the command line of a job: its own with -n, else the user's with what UCI needs."""

    def __init__(self, options):
        self.options = options
        self.program = None if options.program is None else shutil.which(options.program)
        if self.program is None and options.program is not None:
            warn(f"there is no program {options.program or '(its name is empty: is a variable not set?)'}")
            sys.exit(EXIT_NOT_FOUND)
        self.words = [options.program, *options.arguments] if options.program else []
        if options.preflight:
            self.launcher = self._launcher_of_nodes()
        elif options.ranks is not None:
            self.launcher = uci_job.find_job_launcher(self.program, options.mpi)
        else:
            mpi, _ = uci_job.find_linked_mpi(self.program)
            if mpi:
                raise JobError(f"how many ranks? {options.program} is a program of {uci_job.MPIS[mpi]}: give -n N, or a command line that starts it "
                               "(uci_run -- mpirun ...)")
            self.launcher = None
        self.makes_key = bool(options.seal) and not own_variables(options.variables).get("UCI_KEY_FILE")
        self.attached, self.how = attach(options)
        self.library = Path(options.library or uci_job.find_library()).resolve()
        if any(word.partition("=")[0] == "LD_PRELOAD" for word in self.words) and options.ranks is None:
            if self.companion_for():
                raise JobError(f"{self.companion_for()} preloads a library of its own, and the command line sets LD_PRELOAD itself: leave that to uci_run, which "
                               "keeps what LD_PRELOAD has in this environment")
            self.attached, self.how = {}, "as the command line itself says (LD_PRELOAD)"

    def _launcher_of_nodes(self):
        """What would start the job: the program's, or itself, or any."""
        if self.program is None:
            return uci_job.find_launcher(self.options.mpi)
        return uci_job.find_own_launcher(self.words) or uci_job.find_job_launcher(self.program, self.options.mpi)

    def companion_for(self):
        """The option that needs what stands between the program and MPI, or None."""
        options = self.options
        return next((name for name, value in (("--debug", options.debug), ("--signatures", options.signatures), ("--profile", options.profile),
                                              ("--allreduce", options.allreduce)) if value), None)

    def companion_libraries(self, option):
        """What stands between the program and MPI for this option, for the MPI that starts the job; and that MPI, for a program that opens it itself: out of
        the global scope, where what is preloaded would not find it."""
        launcher = self.launcher or uci_job.find_own_launcher(self.words)
        if launcher is None:
            raise JobError(f"{option}: of which MPI is what {self.program} starts? Preload libuci_mpi_openmpi.so or libuci_mpi_mpich.so yourself, "
                           "beside libucx_integrity.so")
        opened = uci_job.find_mpi_library(launcher) if uci_job.brings_mpi(self.words if self.launcher else self.words[1:]) else None
        return [uci_job.find_signature_library(self.library, launcher.mpi), *filter(None, [opened])]

    def variables(self, folder, own):
        """What all ranks of a job need; OWN are the user's. FOLDER is the job's, where its key is."""
        options = self.options
        variables = {**own, **self.attached}
        if "LD_PRELOAD" in variables:
            variables["LD_PRELOAD"] = join_preloads(self.attached.get("LD_PRELOAD", ""), own.get("LD_PRELOAD", ""))
        if options.signatures and options.signatures != "p2p":
            variables["UCI_SIGNATURES"] = options.signatures
        elif not options.signatures and self.companion_for():
            variables.setdefault("UCI_SIGNATURES", "off")
        if options.debug:
            variables |= {"UCI_CHECK_CALLS": "on", "UCI_CHECK_SOURCES": "on", "UCI_UNBUFFERED": "on" if options.debug == "unbuffered" else "off"}
        if options.seal:
            variables |= uci_key.variables_of(folder, options.seal, options.seal_scope, own)
        if options.allreduce:
            variables["UCI_ALLREDUCE"] = options.allreduce
        if options.require:
            variables["UCI_REQUIRE"] = "on"
        return variables

    def command(self, folder, twin=None):
        """The command line whose ranks leave what they know in FOLDER, or for a twin in its folder there."""
        options = self.options
        own = own_variables(options.variables)
        variables = self.variables(folder, own) | gathering(folder if twin is None else folder / f"twin.{twin}", own.get("UCI_LIVE", ""),
                                                            options.debug or options.profile)
        preload = [variables.get("LD_PRELOAD", "")]
        if twin is not None:
            if options.same_time or is_on(own.get("UCI_TWINS_TIME", "")):
                variables["UCI_TWINS_TIME"] = "on"
                preload.append(uci_job.find_time_library(self.library))  # what catches the program's questions for the time
            variables |= uci_twins.variables_of(folder, twin, options.twins, "correct" if options.correct else "compare")
        if self.companion_for():
            preload += self.companion_libraries(self.companion_for())
        if len(preload) > 1:
            variables["LD_PRELOAD"] = join_preloads(*preload)
        hosts = options.hosts_of_twin[twin] if options.hosts_of_twin else options.hosts
        if options.ranks is not None:
            return self.launcher.command(options.ranks, variables, self.words, hosts, options.mpirun_args, twin is None)
        return uci_job.wrap_command(self.words, variables, hosts, twin is None)

    def commands(self, folder):
        """Those of all twins, or of the one job."""
        return [self.command(folder, twin) for twin in range(self.options.twins)] if self.options.twins else [self.command(folder)]

    def command_of_nodes(self, folder, hosts, words):
        """The command line that runs WORDS once on each of HOSTS (a list; []: here) as a rank of the job would run, but leaves nothing."""
        variables = self.variables(folder, own_variables(self.options.variables))
        return self.launcher.command(len(hosts) or 1, variables, words, ",".join(hosts), self.options.mpirun_args)


def show_commands(commands, folder, options, has_key):
    """Command lines that can be pasted, on stdout if they are asked for alone. HAS_KEY: a key is made for them first. @return whether they could be written"""
    before, after = uci_key.commands_of(folder) if has_key and options.dry_run else ("", "")
    return put("\n".join(filter(None, (before, *job_lines(commands, folder, options.apart), after))), sys.stdout if options.dry_run else sys.stderr)


def job_lines(commands, folder, is_apart):
    """The command line of a job, or what runs all twins and has the status of the first that has failed."""
    if len(commands) == 1:
        yield shlex.join(commands[0])
        return
    names = [shlex.quote(str(folder / f"twin.{twin}")) for twin in range(len(commands))]
    yield " ".join(("mkdir -p", *names))
    if is_apart:
        yield from (uci_twins.line_of_work_folder(f"{name}/work", folder) for name in names[1:])
    for twin, (command, name) in enumerate(zip(commands, names)):
        line = f"(cd {name}/work && exec {shlex.join(command)})" if is_apart and twin > 0 else shlex.join(command)
        yield f"{line}{f' >{name}.stdout 2>{name}.stderr' if twin > 0 else ''} & twin{twin}=$!"
    yield "; ".join(("status=0", *(f"wait $twin{twin} || status=$?" for twin in reversed(range(len(commands)))), "(exit $status)"))


def await_ranks(folder):
    """mpirun may be gone before the ranks that it has killed are."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        counters = Counters()
        add_live(counters, find_files([folder]).live)
        if not counters.by_state("running"):
            break
        time.sleep(.1)


def keep_room(folder):
    """A disk that is full from the beginning is told before the job runs."""
    with or_fail(f"cannot write in {folder}", "; give --folder another one"):
        make_room(folder)


def keep_end(folder, status, options, told):
    """Without this nobody could tell how the job has ended: it is said here, then."""
    with or_fail(f"the job ended with status {status}; this cannot be noted in {folder}, and nothing is told of its messages"):
        note_end(folder, status, options.ranks, is_required(options), told)


def run_alone(options, folder, command):
    """One job: (summary, what --json writes of it)."""
    keep_room(folder)
    status, told = run_job(command, Watcher(folder, options.still) if options.debug and options.still > 0 else None)
    if status:
        await_ranks(folder)
    keep_end(folder, status, options, told)
    summary = Summary(folder)
    if (options.debug or options.profile) and not summary.job.watched.processes:
        warn("calls of MPI were not watched: no process has left a file about them (those of MPI's sessions leave none)")
    return summary, lambda: summary.record(command)


def run_twins(options, folder, commands):
    """All twins: (summary, what --json writes of it)."""
    uci_twins.make_folders(folder, options.twins, options.apart)
    for twin in range(options.twins):
        keep_room(folder / f"twin.{twin}")
    shares = None if options.ranks is None or options.hosts or options.hosts_of_twin or uci_job.is_batch_job() else \
        uci_twins.share_cores(options.twins, options.ranks)
    group = uci_twins.Group([uci_twins.Twin(number, command, folder, shares[number] if shares else None,
                                            folder / f"twin.{number}/work" if options.apart and number > 0 else None)
                             for number, command in enumerate(commands)])
    statuses = group.run()
    if group.signal:  # each ends as it likes, then
        statuses = [128 + signal.Signals[group.signal]] * len(statuses)
    shutil.rmtree(folder / "meet", ignore_errors=True)  # cards of processes that were killed are left there
    for twin, status in enumerate(statuses):
        keep_end(folder / f"twin.{twin}", status, options, group.signal)
    summary = TwinSummary(folder, options.twins)
    return summary, lambda: summary.record(commands)


def hosts_of_job(options):
    """Names, or none: the job is for this host."""
    named = [host for text in (options.hosts or "", *options.hosts_of_twin) for host in text.split(",") if host]
    return list(dict.fromkeys(named)) or uci_preflight.batch_hosts()


def preflight(options):
    """Ask the nodes. Returns the exit code. Nothing is left, however it ends."""
    uci_preflight.adopt()
    for number in uci_twins.ending_signals():
        signal.signal(number, uci_preflight.end_all)
    starter, hosts = Starter(options), hosts_of_job(options)
    place = options.folder.parent if options.folder else default_place()
    library = starter.attached.get("LD_PRELOAD", "").partition(":")[0]
    with or_fail(f"cannot make a folder in {place}", "; give --folder another one"):
        folder = Path(tempfile.mkdtemp(prefix=".uci-preflight-", dir=place))
    try:
        with uci_key.key_file(folder) if starter.makes_key else contextlib.nullcontext():
            asked = uci_preflight.Asked(hosts or [socket.gethostname()], lambda names, words: starter.command_of_nodes(folder, names if hosts else [], words),
                                        [uci_job.find_tool("uci_info") or "uci_info", library, starter.launcher.path, str(folder)])
        findings = uci_preflight.judge(asked, options.ranks and -(-options.ranks // (len(hosts) or 1)), place)
    finally:
        uci_preflight.end_children()
        shutil.rmtree(folder, ignore_errors=True)
    stream = sys.stderr if options.json == "-" else sys.stdout
    is_told = put("\n".join(uci_preflight.lines(asked, findings, stream.isatty())), stream)
    if options.json:
        is_told &= write_json(options.json, uci_preflight.record(asked, findings))
    return 1 if not uci_preflight.is_ready(findings) else 0 if is_told else EXIT_FAILED


def main():
    """Returns the exit code."""
    options = parse_arguments()
    if options.preflight:
        return preflight(options)
    folder = options.folder or default_folder()
    starter = Starter(options)
    commands = starter.commands(folder)  # what can't be started leaves no folder
    if not options.dry_run:
        folder = make_folder(folder) if options.folder else make_new_folder(folder)
        commands = starter.commands(folder)
    if options.verbose or options.dry_run:
        warn(f"UCI: {starter.how}")
        is_shown = show_commands(commands, folder, options, starter.makes_key)
    if options.dry_run:
        return 0 if is_shown else EXIT_FAILED
    if options.folder is None and options.keep > 0:
        forget_runs(folder.parent, options.keep)
    with uci_key.key_file(folder) if starter.makes_key else contextlib.nullcontext():
        if options.twins:
            summary, record = run_twins(options, folder, commands)
        else:
            summary, record = run_alone(options, folder, commands[0])
    print_summary(summary)
    is_written = not options.json or write_json(options.json, record())
    return summary.exit_code() or (0 if is_written else EXIT_FAILED)


if __name__ == "__main__":
    open_streams()
    try:
        sys.exit(main())
    except (JobError, OSError) as problem:
        warn(problem)
        sys.exit(EXIT_FAILED)
