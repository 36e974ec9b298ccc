# SPDX-License-Identifier: BSD-3-Clause
"""uci_run --preflight: what the nodes of a job say of themselves before it starts, in a table, and what would stop it or leave it unprotected.

Each node runs uci_node.py in the environment of a rank, started by the job's own launcher; a node that has not answered then is asked alone.
"""
import contextlib
import ctypes
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from jobreport.hostlist import HostlistError, expand, fold
from jobreport.wording import clean, count, listing, size
from uci_job import JobError, or_fail

HERE = Path(__file__).resolve().parent
MARK = "UCI-NODE "
FIRST, NEXT = 60, 10  # seconds for the first answer, and between answers; for a node that is asked alone the latter
AT_ONCE = 16          # nodes that are asked alone at the same time
GRACE = 2             # seconds that launchers have to end when they are told to
PR_SET_CHILD_SUBREAPER = 36
RANK_BYTES = 8 << 20  # shared memory of a rank: UCI's mailbox, and what UCX takes for its own
FILES = 1024          # descriptors that a rank should be allowed to have
CLOCK = 1             # seconds by which a clock may be wrong before it is told
PLACES = ("OMPI_MCA_orte_tmpdir_base", "PRTE_MCA_prte_tmpdir_base")  # of what Open MPI's launchers, 4 and 5, write; else TMPDIR
SAME = ("UCI_MODE", "UCI_SEAL", "UCI_SEAL_CIPHER", "UCI_SEAL_SCOPE")  # others are refused


class Finding(NamedTuple):
    """Of some nodes. IS_BAD: the job would not start, or not be protected."""
    is_bad: bool
    nodes: list
    text: str


class Answer(NamedTuple):
    """Of a node, and between which times of this machine it was given."""
    node: dict
    asked: float
    came: float

    def clock(self):
        """Seconds by which its clock is ahead at least; below 0: behind."""
        when = self.node["time"]
        return max(when - self.came, 0) if when > self.came else min(when - self.asked, 0)


IS_OVER = threading.Event()  # no launcher is started any more


def adopt():
    """What a launcher leaves behind when it ends, such as an ssh to a node that is not reached, is a child of this process then, and not of init."""
    ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def children():
    """Process ids, also of those that wait to be waited for."""
    found = set()
    for path in Path("/proc/self/task").glob("*/children"):
        with contextlib.suppress(OSError):  # the thread is gone
            found.update(map(int, path.read_text(encoding="ascii").split()))
    return found


def end_children():
    """Launchers, and what they have started: it is told to end, and killed if it does not."""
    IS_OVER.set()
    told, end = set(), time.monotonic() + GRACE
    while running := children():
        is_late = time.monotonic() > end
        for pid in running if is_late else running - told:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL if is_late else signal.SIGTERM)
        for pid in running:
            with contextlib.suppress(OSError):  # another thread has waited for it
                os.waitpid(pid, os.WNOHANG)
        told |= running
        time.sleep(.02)


def end_all(number, _):
    """Handler of signals. A second one does not disturb how what is left is taken away."""
    if not IS_OVER.is_set():
        end_children()
        sys.exit(128 + number)


class Asked:
    """All nodes, asked at construction. COMMAND(hosts, words) is what starts WORDS once on each of HOSTS."""

    def __init__(self, hosts, command, words):
        self.answers, self.errors = {}, {}
        source = (HERE / "uci_node.py").read_text(encoding="utf-8")
        self._words, self._command = ["python3", "-c", source, *words], command
        said = self._ask(hosts, FIRST)
        silent = self._silent(hosts)
        if silent and len(hosts) == 1:
            self.errors[hosts[0]] = said
        elif silent:
            with ThreadPoolExecutor(AT_ONCE) as pool:
                for host, said in zip(silent, pool.map(lambda host: self._ask([host], NEXT), silent)):
                    self.errors[host] = said
        self.answers = {host: self.answers[host] for host in hosts if host in self.answers}
        self.errors = {host: said for host, said in self.errors.items() if host not in self.answers}

    def _silent(self, hosts):
        """Those that have not answered. One that calls itself by a name of its own, alone, is the one that was asked."""
        missing = [host for host in hosts if host not in self.answers]
        strange = [name for name in self.answers if name not in hosts]
        short = {name.partition(".")[0]: name for name in strange}
        for host in list(missing):
            name = strange[0] if len(hosts) == len(self.answers) == 1 else short.get(host.partition(".")[0])
            if name in self.answers:
                self.answers[host] = self.answers.pop(name)
                missing.remove(host)
        return missing

    def _ask(self, hosts, patience):
        """What their launcher says when it fails. Some wait for ever for a node that they do not reach; and of Open MPI's, of which two that
        begin at once make the same folder, one gives up: each has a place of its own."""
        if IS_OVER.is_set():
            return ""
        with tempfile.TemporaryDirectory(prefix="uci-", ignore_cleanup_errors=True) as folder:
            places = {"TMPDIR": folder} | {name: folder for name in PLACES if name in os.environ}
            with subprocess.Popen(self._command(hosts, self._words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                  errors="replace", env=os.environ | places) as process:
                return self._listen(process, hosts, patience)

    def _listen(self, process, hosts, patience):
        """Take the answers that come from a launcher. @return as _ask()"""
        begin, said, is_late = time.time(), [], threading.Event()

        def give_up():
            is_late.set()
            process.terminate()
        errors = threading.Thread(target=lambda: said.extend(process.stderr))
        errors.start()
        timer = threading.Timer(patience, give_up)
        timer.start()
        try:
            for line in process.stdout:
                if self._take(line, begin, hosts):
                    timer.cancel()
                    timer = threading.Timer(NEXT, give_up)
                    timer.start()
            errors.join()
        finally:
            timer.cancel()
        if is_late.is_set():
            return f"none in {patience} s"
        words = [clean(line.strip()) for line in said if re.search(r"[A-Za-z]{3}", line)]
        return " / ".join(words[:3]) or f"its launcher ended with status {process.wait()}, and no answer"

    def _take(self, line, begin, hosts):
        """Is it an answer? Other lines are of launchers, and one that is torn is asked for again."""
        try:
            node = json.loads(line[len(MARK):]) if line.startswith(MARK) else None
        except ValueError:
            return False
        if node:
            self.answers[hosts[0] if len(hosts) == 1 else node["host"]] = Answer(node, begin, time.time())
        return bool(node)


def compare(answers, value, is_bad, text):
    """Nodes whose value is not that of most, or of the first where no value is that of most: TEXT(theirs, the others')."""
    values = {name: value(answer.node) for name, answer in answers.items()}
    known = Counter(found for found in values.values() if found is not None)
    if len(known) < 2:
        return
    usual = known.most_common(1)[0][0]
    for other in known:
        if other != usual:
            yield Finding(is_bad, [name for name, found in values.items() if found == other], text(other, usual))


def find_attached(answers):
    """Nodes where a rank would not be protected, by reason."""
    reasons = {}
    for name, answer in answers.items():
        uci = answer.node["uci"]
        if not uci["tool"]:
            text = "UCI is not installed where it is here: there is no uci_info, or it can't run; install the same build at the same place"
        elif uci["state"] == "on":
            continue
        elif uci["said"]:
            text = f"UCI does not start: {uci['said'].strip().splitlines()[0].partition(' UCI ')[2] or uci['said']}"
        else:
            text = f"UCI would not be on ({uci['how']}): {''.join(uci['advice'])}"
        reasons.setdefault(clean(text, 400), []).append(name)
    yield from (Finding(True, nodes, text) for text, nodes in reasons.items())


def find_unlike(answers):
    """What is not the same on all nodes."""
    yield from compare(answers, lambda node: node["uci"]["protocol"], True,
                       lambda one, most: f"protocol {one} of UCI, the others {most}: they refuse each other; install the same version")
    yield from compare(answers, lambda node: node["uci"]["version"], False, lambda one, most: f"UCI {one}, the others {most}")
    yield from compare(answers, lambda node: (node["uci"]["version"], node["uci"]["bytes"]) if node["uci"]["bytes"] else None, False,
                       lambda one, most: "a library of other bytes than the others', which says it is of the same version") \
        if len({answer.node["uci"]["version"] for answer in answers.values()}) == 1 else ()
    names = sorted({name for answer in answers.values() for name in answer.node["uci"]["settings"]} - {"UCI_KEY_FILE"})
    for name in names:
        yield from compare(answers, lambda node, name=name: node["uci"]["settings"].get(name, "the default"), name in SAME,
                           lambda one, most, name=name: f"{name}={one}, the others {most}" + (": they refuse each other" if name in SAME else ""))
    yield from compare(answers, lambda node: node["uci"]["ucx"], False,
                       lambda one, most: f"UCX {one}, the others {most}: it promises nothing between versions")
    yield from compare(answers, lambda node: node["mpi"], False, lambda one, most: f"MPI {one}, the others {most}")
    yield from compare(answers, lambda node: node["machine"], False, lambda one, most: f"{one} processors, the others {most}")


def find_keys(answers):
    """Of sealed jobs."""
    for name, answer in answers.items():
        key = answer.node["key"]
        if key and key["why"]:
            yield Finding(True, [name], f"the key file {key['path']}: {key['why']}")
    yield from compare(answers, lambda node: node["key"] and node["key"]["print"], True,
                       lambda one, most: "another key in its key file than the others: they refuse each other")


def find_short(answers, ranks):
    """What a node has too little of, for RANKS ranks of the job on each (None: one for each core)."""
    for name, answer in answers.items():
        node = answer.node
        wanted = (ranks or node["cores"]) * RANK_BYTES
        if node["shm"] is None:
            yield Finding(True, [name], "there is no /dev/shm")
        elif node["shm"][1] < wanted:
            yield Finding(False, [name], f"/dev/shm has {size(node['shm'][1])} free, {count(ranks or node['cores'], 'rank')} may want {size(wanted)}")
        if node["limits"]["nofile"] is not None and node["limits"]["nofile"] < FILES:
            yield Finding(False, [name], f"a process may have {node['limits']['nofile']} files open (ulimit -n): {FILES} at least are usual")
        if node["rdma"] and node["limits"]["memlock"] is not None:
            yield Finding(False, [name], f"a process may lock {size(node['limits']['memlock'])} of memory (ulimit -l): RDMA wants it unlimited")
        if abs(answer.clock()) > CLOCK:
            yield Finding(False, [name], f"its clock is {abs(answer.clock()):,.0f} s {'ahead of' if answer.clock() > 0 else 'behind'} this machine's: "
                                         "times in records of different nodes won't fit together")


def join(findings):
    """The same words of several nodes once, what is bad first."""
    nodes = {}
    for finding in findings:
        nodes.setdefault((not finding.is_bad, finding.text), []).extend(finding.nodes)
    return [Finding(not fine, sorted(names), text) for (fine, text), names in sorted(nodes.items(), key=lambda item: item[0][0])]


def judge(asked, ranks, folder):
    """All findings, before a job of RANKS ranks on each node (None: it is not known), whose folder comes into FOLDER."""
    answers = asked.answers
    blind = [name for name, answer in answers.items() if not answer.node["sees_folder"]]
    findings = [Finding(True, [host], f"no answer: {said}") for host, said in asked.errors.items()]
    findings += [*find_attached(answers), *find_unlike(answers), *find_keys(answers), *find_short(answers, ranks)]
    if blind:
        findings.append(Finding(True, blind, f"a new folder in {folder} is not seen there, or can't be written: what its ranks know of the job would be lost; "
                                             "give --folder one that all nodes see"))
    return join(findings)


def cells(answer):
    """A row of the table, but for the names and what differs from node to node in any case."""
    uci, limits, key = answer.node["uci"], answer.node["limits"], answer.node["key"]
    row = [uci["version"] or uci["state"] or "none", uci["protocol"] or "-", uci["mode"] or "-", uci["ucx"] or "none", answer.node["mpi"] or "none",
           "no limit" if limits["memlock"] is None else size(limits["memlock"]), "no limit" if limits["nofile"] is None else str(limits["nofile"]),
           "-" if key is None else key["print"] or "none"]
    return tuple(clean(cell, 40) for cell in row)


def table(answers):
    """Rows of text: nodes that say the same are one."""
    head = ("nodes", "UCI", "protocol", "mode", "UCX", "MPI", "locked memory", "files", "key", "/dev/shm free", "clock")
    groups = {}
    for name, answer in answers.items():
        groups.setdefault(cells(answer), []).append(name)
    rows = [head]
    for row, names in sorted(groups.items(), key=lambda item: -len(item[1])):
        free = min((answers[name].node["shm"] or (0, 0))[1] for name in names)
        clock = max((answers[name].clock() for name in names), key=abs)
        rows.append((fold(names), *row, size(free), "right" if abs(clock) <= CLOCK else f"{clock:+,.0f} s"))
    widths = [max(len(row[column]) for row in rows) for column in range(len(head))]
    return ["  ".join(f"{text:<{width}}" for text, width in zip(row, widths)).rstrip() for row in rows]


def is_ready(findings):
    """Would the job start, and be protected?"""
    return not any(finding.is_bad for finding in findings)


def lines(asked, findings, is_terminal):
    """For people."""
    colours = {True: "31", False: "33"} if is_terminal and "NO_COLOR" not in os.environ else {}
    yield from table(asked.answers) if asked.answers else ()
    yield ""
    for is_bad, nodes, text in findings:
        word = f"{'wrong' if is_bad else 'note':<7}"
        word = f"\033[{colours[is_bad]}m{word}\033[0m" if colours else word
        yield f"{word}{fold(nodes)}: {text}"
    bad = sorted({name for finding in findings if finding.is_bad for name in finding.nodes})
    total = len(asked.answers) + len(asked.errors)
    yield f"Not ready: {listing([fold(bad)])}" if bad else f"Ready: {count(total, 'node')}"


def record(asked, findings):
    """For programs."""
    nodes = {name: {**answer.node, "clock_ahead": answer.clock()} for name, answer in sorted(asked.answers.items())}
    return {"uci_preflight": 1, "ready": is_ready(findings), "nodes": nodes, "no_answer": asked.errors,
            "findings": [{"level": "wrong" if is_bad else "note", "nodes": names, "text": text} for is_bad, names, text in findings]}


def batch_hosts():
    """Hosts that the batch system has given this job, or none."""
    if os.environ.get("SLURM_JOB_NODELIST"):
        try:
            return expand(os.environ["SLURM_JOB_NODELIST"])
        except HostlistError as error:
            raise JobError(f"SLURM_JOB_NODELIST: {error}; give --hosts") from error
    return read_nodes(os.environ["PBS_NODEFILE"]) if os.environ.get("PBS_NODEFILE") else []


def read_nodes(path):
    """Hosts in a file of PBS's, which has each as often as it has slots."""
    with or_fail(f"PBS_NODEFILE: cannot read {path}", "; give --hosts"):
        names = Path(path).read_text(encoding="utf-8", errors="backslashreplace").split()
    if not names:
        raise JobError(f"PBS_NODEFILE: {path} names no host; give --hosts")
    return list(dict.fromkeys(names))
