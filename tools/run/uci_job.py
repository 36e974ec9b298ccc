# SPDX-License-Identifier: BSD-3-Clause
"""A job of MPI ranks: which MPI a program belongs to, that MPI's launcher, and the command line that starts the ranks.

Shared by the tools that start jobs. Nothing here runs a job; what cannot be found raises JobError with a sentence for the user.
"""
import argparse
import contextlib
import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

MPIS = {"openmpi": "Open MPI", "mpich": "MPICH"}
HERE = Path(__file__).resolve().parent
LIBRARY = "libucx_integrity.so"
# MPICH's libraries have had both names since their ABI is a common one
LINKED = {"openmpi": re.compile(r"\blibmpi\.so\.(?!12\b)\d+ => (\S+)"), "mpich": re.compile(r"\blibmpi(?:ch)?\.so\.12 => (\S+)")}
OPENMPI_UCX = {"pml": "ucx", "opal_common_ucx_tls": "any"}
MPICH_UCX = {"MPIR_CVAR_NOLOCAL": "1"}  # else messages within a node would not go through UCX
OPENMPI_UNBOUND = {"OMPI_MCA_hwloc_base_binding_policy": "none", "PRTE_MCA_hwloc_default_binding_policy": "none"}  # up to 4, and later
BINDING = ("bind-to", "cpu-set", "cpu-list", "rankfile", "rf", "map-by")
SONAMES = {"openmpi": re.compile(r"libmpi\.so\.(?!12$)\d+"), "mpich": re.compile(r"libmpi(?:ch)?\.so\.12")}
LAUNCHERS = {"openmpi": ("mpirun.openmpi", "mpirun", "mpiexec", "orterun"),
             "mpich": ("mpirun.mpich", "mpirun", "mpiexec.hydra", "mpiexec")}


class JobError(Exception):
    """A job can't be started this way; the text says why and what to do."""


@contextlib.contextmanager
def or_fail(what, advice=""):
    """What the system refuses in the block is a JobError."""
    try:
        yield
    except OSError as error:
        raise JobError(f"{what}: {error.strerror}{advice}") from error


def given(text):
    """The value of an option. One that is empty is as a rule a variable of a script's that is not set."""
    if not text:
        raise argparse.ArgumentTypeError("its value is empty: is a variable not set?")
    return text


def named_hosts(text):
    """The value of an option that names hosts: one at least."""
    if not any(text.split(",")):
        raise argparse.ArgumentTypeError(f"'{text}' names no host: expected A,B,...")
    return text


def split_words(text):
    """The value of an option that is arguments for another program."""
    try:
        return shlex.split(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text} is not quoted as for a shell: {str(error).lower()}") from error


def find_first(paths):
    """The first of PATHS that exists, as text, or None."""
    return next((str(path) for path in paths if path.exists()), None)


def installation_folders():
    """Where the library may be: built or installed with these tools, which are in bin/, in share/uci/ or in a build folder."""
    prefixes = (HERE.parent, HERE.parent.parent)
    return [prefix / folder for prefix in prefixes for folder in (".", "lib", f"lib/{os.uname().machine}-linux-gnu", "lib64", "build")]


def find_or_fail(paths, complaint):
    """The same, of which one must exist."""
    path = find_first(paths)
    if path is None:
        raise JobError(complaint)
    return path


def find_library():
    """libucx_integrity.so of this installation or build."""
    return find_or_fail((folder / LIBRARY for folder in installation_folders()),
                        f"{LIBRARY} is not where it is built or installed with this program: give its path")


def find_time_library(library):
    """libuci_twin_time.so that belongs to LIBRARY."""
    return find_or_fail((library.parent / folder / "libuci_twin_time.so" for folder in (".", "ucx_plugin")),
                        f"there is no libuci_twin_time.so beside {library}: is UCI installed completely?")


def find_signature_library(library, mpi):
    """libuci_mpi_... of this MPI that belongs to LIBRARY."""
    name = f"libuci_mpi_{mpi}.so"
    return find_or_fail((library.parent / folder / name for folder in (".", "mpi")),
                        f"there is no {name} beside {library}: it is built where {MPIS[mpi]} was installed (headers and all)")


def find_module_folder(library):
    """The folder for UCX_PLUGIN_PATH that belongs to LIBRARY."""
    folder = Path(library).resolve().parent
    return find_or_fail((folder / name for name in ("uci", "ucx_plugin") if (folder / name / "libucs_uci.so.0").exists()),
                        f"there is no folder with libucs_uci.so.0 beside {library}: is UCI installed completely?")


def find_tool(name):
    """A program of this installation or build, else that of PATH, or None."""
    return find_first((HERE / name, HERE.parent.parent / "bin" / name, HERE.parent / "build/tools" / name)) or shutil.which(name)


def read_output(command, env=None):
    """Standard output and error of a command that may fail."""
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace", check=False, timeout=30, env=env).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


@functools.lru_cache(maxsize=None)
def find_linked_mpi(program):
    """(mpi, path of its library) of an executable, from what the loader would load; (None, None) for one without MPI, such as
    a script."""
    libraries = read_output(["ldd", program], env={name: text for name, text in os.environ.items() if name != "LD_PRELOAD"})
    for mpi, pattern in LINKED.items():
        found = pattern.search(libraries)
        if found:
            return mpi, found.group(1)
    return None, None


def brings_mpi(words):
    """Must what WORDS start open its MPI itself, if it uses one, as Python does? So it is where none of them is a program that is linked with one; an object
    may be what it opens."""
    return not any(find_linked_mpi(path)[0] for path in map(shutil.which, words) if path and ".so" not in Path(path).suffixes)


def find_mpi_library(launcher):
    """The library of the MPI that LAUNCHER was installed with, by the name that programs open it by; None: it is not where it is as a rule."""
    path = Path(launcher.path)
    folders = [prefix / name for prefix in (path.absolute().parent.parent, path.resolve().parent.parent)
               for name in ("lib", "lib64", f"lib/{os.uname().machine}-linux-gnu")]
    return find_first(file for folder in folders for file in sorted(folder.glob("libmpi*.so.*")) if SONAMES[launcher.mpi].fullmatch(file.name))


def read_launcher(path):
    """(mpi, major version) of an mpirun as it says itself; (None, 0): it is of another kind."""
    text = read_output([path, "--version"])
    version = re.search(r"(\d+)\.\d+", text)
    major = int(version.group(1)) if version else 0
    if re.search(r"Open ?MPI|Open ?RTE|PRRTE", text, re.IGNORECASE):
        return "openmpi", major
    return ("mpich", major) if "HYDRA" in text else (None, 0)


class Launcher:
    """The mpirun of one MPI."""

    def __init__(self, path, mpi, major):
        self.path, self.mpi, self.major = path, mpi, major

    def command(self, ranks, variables, program, hosts="", options=(), is_bound=True):
        """Command line that starts RANKS ranks of PROGRAM (a list) with these variables, on HOSTS (comma-separated) or here.
        OPTIONS are more arguments for mpirun. Without IS_BOUND no rank is bound to cores, unless they say so: each mpirun begins with the
        same ones."""
        if self.mpi == "openmpi" and not is_bound and not any(option.lstrip("-") in BINDING for option in options):
            options = ["--bind-to", "none", *options]
        build = self._openmpi if self.mpi == "openmpi" else self._mpich
        return [*build(ranks, variables, hosts, options), *options, *program]

    def wrap(self, words, variables, hosts=""):
        """A command line of the user's own that begins with this launcher, with these variables for its ranks, on HOSTS if there are any."""
        if self.mpi == "mpich":
            return [words[0], *(["-hosts", hosts] if hosts else []), *self._mpich_variables(variables), *words[1:]]
        added = [*(["--host", hosts] if hosts else []), *self._openmpi_variables(variables)]
        return [words[0], *added, *(part for word in words[1:] for part in ([word, *added] if word == ":" else [word]))]  # of each program its own

    def _openmpi_variables(self, variables):
        return [part for name, value in variables.items() for part in ("-x", f"{name}={value}")]

    def _mpich_variables(self, variables):
        return [part for name, value in {**MPICH_UCX, **variables}.items() for part in ("-genv", name, value)]

    def _openmpi(self, ranks, variables, hosts, options):
        # all messages through UCX, on hosts with nothing but shared memory and tcp too, which pml/ucx would decline
        command = [self.path, "-np", str(ranks)]
        for name, value in OPENMPI_UCX.items():
            if name not in options:  # mpirun takes each once only
                command += ["--mca", name, value]
        if os.geteuid() == 0:
            command.insert(1, "--allow-run-as-root")
        if hosts:
            command += ["--host", ",".join(f"{host}:{count}" for host, count in spread_ranks(hosts, ranks))]
        elif ranks > count_cores() and not is_batch_job():
            command += ["--oversubscribe"]
        command += self._openmpi_variables(variables)
        if self.major >= 5:  # processes that ranks spawn get the environment of mpirun
            command = ["env", *(f"{name}={value}" for name, value in variables.items()), *command]
        return command

    def _mpich(self, ranks, variables, hosts, _):
        command = [self.path, "-np", str(ranks)]
        if hosts:
            spread = spread_ranks(hosts, ranks)
            command += ["-hosts", ",".join(host for host, _ in spread), "-ppn", str(spread[0][1])]
        return command + self._mpich_variables(variables)


def spread_ranks(hosts, ranks):
    """[(host, ranks on it)]: equally many, the last ones fewer."""
    names = [host for host in hosts.split(",") if host]
    each = -(-ranks // len(names))
    return [(name, each) for name in names]


def count_cores():
    """Cores of this machine, as Open MPI counts its slots: not hardware threads."""
    siblings = {path.read_text(encoding="ascii") for path in
                Path("/sys/devices/system/cpu").glob("cpu[0-9]*/topology/thread_siblings_list")}
    return min(len(siblings) or os.cpu_count() or 1, len(os.sched_getaffinity(0)))


def is_batch_job():
    """Does a batch system say which slots there are?"""
    return any(name in os.environ for name in ("SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "JOB_ID"))


def find_launcher(mpi=None, library=None):
    """The launcher of MPI (a key of MPIS; None: whatever mpirun is), rather the one installed with LIBRARY than another."""
    folders = [parent / "bin" for parent in list(Path(library).resolve().parents)[1:3]] if library else []
    search = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    for name in LAUNCHERS[mpi] if mpi else ("mpirun", "mpiexec", "mpirun.openmpi", "mpirun.mpich"):
        for folder in search.split(os.pathsep):
            path = shutil.which(name, path=folder)
            kind, major = read_launcher(path) if path else (None, 0)
            if kind and mpi in (None, kind):
                return Launcher(path, kind, major)
    wanted = MPIS[mpi] if mpi else "Open MPI or MPICH"
    raise JobError(f"there is no mpirun of {wanted} here: install it, or add its folder to PATH")


def find_own_launcher(words):
    """The launcher that a command line of the user's own begins with; None for any other program, such as srun or a script."""
    path = shutil.which(words[0])
    kind, major = read_launcher(path) if path else (None, 0)
    return Launcher(path, kind, major) if kind else None


def wrap_command(words, variables, hosts="", is_bound=True):
    """A command line of the user's own, with these variables for its ranks. What it sets itself stays; and where it does not say otherwise, MPI
    sends all through UCX. A launcher that is not known, such as srun or a script, gets all by its environment."""
    said = {word.partition("=")[0] for word in words}
    variables = {name: value for name, value in variables.items() if name not in said}
    launcher = find_own_launcher(words)
    defaults = {f"OMPI_MCA_{name}": value for name, value in OPENMPI_UCX.items()} | ({} if is_bound else OPENMPI_UNBOUND) | ({} if launcher else MPICH_UCX)
    environment = {name: value for name, value in defaults.items() if name not in os.environ}
    if launcher is None:
        if hosts:
            raise JobError(f"{words[0]} is neither Open MPI's nor MPICH's mpirun: its own arguments must say which hosts it shall use")
        environment |= variables
    elif launcher.mpi == "mpich":
        environment = {}
    elif launcher.major >= 5:  # processes that ranks spawn get the environment of mpirun
        environment |= variables
    command = launcher.wrap(words, variables, hosts) if launcher else words
    return ["env", *(f"{name}={value}" for name, value in environment.items()), *command] if environment else command


def find_job_launcher(program, mpi=None):
    """The launcher for PROGRAM: of the MPI it is linked with, or MPI. Says on stderr what was assumed for one that does not tell."""
    linked, library = find_linked_mpi(program)
    if mpi and linked and mpi != linked:
        raise JobError(f"{program} is linked with {MPIS[linked]} ({library}): --mpi {mpi} would start ranks that do not find each other")
    launcher = find_launcher(mpi or linked, library)
    if not (mpi or linked):
        print(f"{Path(sys.argv[0]).name}: {program} links no MPI itself: taking {MPIS[launcher.mpi]} ({launcher.path}); "
              "--mpi chooses", file=sys.stderr)
    return launcher
