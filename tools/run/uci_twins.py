# SPDX-License-Identifier: BSD-3-Clause
"""Running the same job several times at once: its twins, which compare their messages (UCI_TWINS).

The output of twin 0 is shown as it comes. All outputs are kept, in twin.K.stdout and twin.K.stderr of the run's folder; what UCI leaves
of twin K is in the folder twin.K.
"""
import ctypes
import os
import shlex
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

from jobreport.hostlist import numbers_of
from uci_job import JobError, or_fail
from uci_summary import warn

TURN = .05           # seconds between two looks at the jobs
PASSED_ON = (signal.SIGUSR1, signal.SIGUSR2)  # mpirun gives them to its ranks
PATIENCE = 15        # seconds that jobs have to end when they are told to
PR_SET_PDEATHSIG = 1
REPORT = "twins.%h.%p.%r.json"


def variables_of(folder, twin, twins, mode):
    """Variables of the ranks of one twin."""
    text = str(folder).replace("%", "%%")
    return {"UCI_TWINS": f"{folder}/meet,{twin}/{twins}", "UCI_TWINS_MODE": mode, "UCI_TWINS_REPORT": f"{text}/twin.{twin}/{REPORT}"}


def ending_signals():
    """What ends all. A hang-up does not, if nohup(1) says so."""
    return [signal.SIGINT, signal.SIGTERM] + ([signal.SIGHUP] if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN else [])


def share_cores(twins, ranks):
    """A set of CPUs for each twin, cores of its own with all their threads, or None if there are too few for that."""
    cores = sorted({min(group): group for group in map(siblings_of, os.sched_getaffinity(0))}.values(), key=min)
    if len(cores) < twins * ranks:
        return None
    bounds = [len(cores) * twin // twins for twin in range(twins + 1)]
    return [set().union(*cores[begin:end]) for begin, end in zip(bounds, bounds[1:])]


def siblings_of(cpu):
    """The hardware threads of a core that this process may use."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list").read_text(encoding="ascii")
    except OSError:
        return frozenset((cpu,))
    return frozenset(map(int, numbers_of(text.strip()))) & os.sched_getaffinity(0) or frozenset((cpu,))


def make_work_folder(folder, run_folder):
    """A folder with links to all that is in the current one, for a twin that shall write its files beside the others' and not over them."""
    with or_fail(f"cannot make the folder {folder}", "; give --folder another one"):
        folder.mkdir()
    for path in Path.cwd().iterdir():
        if path.absolute() != run_folder:
            (folder / path.name).symlink_to(path.absolute())


def line_of_work_folder(folder, run_folder):
    """The same as a line for a shell, FOLDER as it is quoted there."""
    return f'mkdir {folder} && find "$PWD/" -mindepth 1 -maxdepth 1 ! -samefile {shlex.quote(str(run_folder))} -exec ln -s -t {folder} {{}} +'


class Twin:
    """One job, running."""

    def __init__(self, number, command, folder, cores=None, work=None):
        self.number, self.command, self.cores, self.work = number, command, cores, work
        self.outputs = [folder / f"twin.{number}.{name}" for name in ("stdout", "stderr")]
        self.process = self.status = None
        self.pumps = []

    def start(self, source):
        """Start it with this standard input, a file descriptor."""
        libc = ctypes.CDLL(None)

        def prepare():
            libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)  # nobody would end it if we are killed
            if self.cores:
                os.sched_setaffinity(0, self.cores)
        shown = [sys.stdout.fileno(), sys.stderr.fileno()] if self.number == 0 else [None, None]
        files = [open(path, "wb") for path in self.outputs]  # pylint: disable=consider-using-with
        with or_fail(f"cannot start {self.command[0]}"):
            # pylint: disable=consider-using-with,subprocess-popen-preexec-fn
            self.process = subprocess.Popen(self.command, stdin=source, cwd=self.work, preexec_fn=prepare,
                                            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.pumps = [threading.Thread(target=pump, args=arguments, daemon=True) for arguments in
                      zip((self.process.stdout, self.process.stderr), files, shown)]
        for thread in self.pumps:
            thread.start()

    def poll(self):
        """Has it just ended? Its status is as a shell gives it."""
        if self.status is not None or self.process.poll() is None:
            return False
        self.status = 128 - self.process.returncode if self.process.returncode < 0 else self.process.returncode
        end = time.monotonic() + PATIENCE
        for thread in self.pumps:
            thread.join(max(end - time.monotonic(), 0))  # a process that it has left behind may hold the pipe
        return True

    def send(self, number):
        """A signal, if it runs."""
        if self.process is not None and self.status is None:
            self.process.send_signal(number)


def pump(source, kept, shown):
    """Keep what comes, and show it, unless that is None. Who looks at it may go away before the end, and the disk be full: the job need not know."""
    is_seen, is_kept = shown is not None, True
    with source, kept:
        while data := source.read1(1 << 16):
            if is_kept:
                try:
                    write_all(kept.fileno(), data)
                except OSError as error:
                    is_kept = False
                    warn(f"{kept.name} is not whole: {error.strerror}")
            if is_seen:
                try:
                    write_all(shown, data)
                except OSError:
                    is_seen = False


class Inputs:
    """Standard input, for each twin: a file is read by each of them from where it stands, what comes through a pipe is given to all. From a
    terminal nothing is read: its lines could go to one of them only."""

    def __init__(self, twins):
        self.feeds, self.sources = [], []
        try:
            mode = os.fstat(0).st_mode
        except OSError:  # it is closed
            mode = 0
        for _ in range(twins):
            if stat.S_ISREG(mode):
                self.sources.append(os.open("/proc/self/fd/0", os.O_RDONLY | os.O_CLOEXEC))
                os.lseek(self.sources[-1], os.lseek(0, 0, os.SEEK_CUR), os.SEEK_SET)
            elif stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                source, feed = os.pipe2(os.O_CLOEXEC)
                self.sources.append(source)
                self.feeds.append(feed)
            else:
                self.sources.append(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))

    def run(self):
        """The twins have their ends: close ours, and feed them."""
        for source in self.sources:
            os.close(source)
        if self.feeds:
            threading.Thread(target=self._feed, daemon=True).start()

    def _feed(self):
        while data := os.read(0, 1 << 16):
            for feed in list(self.feeds):
                try:
                    write_all(feed, data)
                except OSError:  # it has ended, or reads no more
                    os.close(feed)
                    self.feeds.remove(feed)
        for feed in self.feeds:
            os.close(feed)


def write_all(descriptor, data):
    """A pipe takes what it has room for."""
    while data:
        data = data[os.write(descriptor, data):]


class Group:
    """All twins of a run."""

    def __init__(self, twins):
        self.twins = twins
        self.told = None  # when they were told to end
        self.signal = ""  # what somebody has told us to end with

    def run(self):
        """Start all, and wait until all have ended. Returns their statuses."""
        signal.signal(signal.SIGPIPE, signal.SIG_IGN)
        for number in ending_signals():
            signal.signal(number, self._stop)
        for number in PASSED_ON:
            signal.signal(number, lambda number, _: self._send(number))
        inputs = Inputs(len(self.twins))
        try:
            for twin, source in zip(self.twins, inputs.sources):
                twin.start(source)
        except JobError:
            self._stop()
            raise
        inputs.run()
        while any(twin.status is None for twin in self.twins):
            for twin in self.twins:
                if twin.poll():
                    self._tell(twin)
            if self.told is not None and time.monotonic() > self.told + PATIENCE:
                self._send(signal.SIGKILL)
            time.sleep(TURN)
        return [twin.status for twin in self.twins]

    def _stop(self, number=None, _=None):
        """An interrupt from the terminal reaches the jobs as well; one that was sent to us alone does not."""
        if number is not None and not self.signal:
            self.signal = signal.Signals(number).name
        if self.told is None:
            self.told = time.monotonic()
        self._send(signal.SIGTERM)

    def _send(self, number):
        for twin in self.twins:
            twin.send(number)

    def _tell(self, twin):
        """A twin that fails is named at once: the others may run for hours."""
        if twin.status and self.told is None:
            running = [str(other.number) for other in self.twins if other.status is None]
            warn(f"twin {twin.number} has failed with exit status {twin.status}" +
                 (f"; twin {' and '.join(running)} goes on" if len(running) == 1 else f"; twins {' and '.join(running)} go on" if running else ""))


def make_folders(folder, twins, is_apart):
    """Those of each twin: UCI makes none for records and statistics."""
    for twin in range(twins):
        place = folder / f"twin.{twin}"
        place.mkdir(exist_ok=True)
        if is_apart and twin > 0:
            make_work_folder(place / "work", folder)
