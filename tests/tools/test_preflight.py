#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
What uci_run --preflight makes of what nodes say: made-up answers, of up to 1,000 nodes.

usage: test_preflight.py FOLDER_OF_UCI_RUN
"""
import copy
import os
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, sys.argv.pop(1))
import uci_preflight  # noqa: E402
from jobreport.hostlist import fold  # noqa: E402
from uci_job import JobError  # noqa: E402
from uci_preflight import Answer, judge, table  # noqa: E402

GOOD = {"uci": {"tool": True, "state": "on", "how": "preloaded", "version": "1.0.0 (abc)", "protocol": "12", "library": "/l.so", "bytes": "0123", "mode": "repair",
                "settings": {}, "ucx": "1.13.1", "advice": [], "said": ""},
        "key": None, "shm": (1 << 35, 1 << 34), "limits": {"memlock": None, "nofile": 65536, "core": 0}, "mpi": "4.1.4", "sees_folder": True, "rdma": ["mlx5_0"],
        "machine": "x86_64", "cores": 64, "kernel": "6.1", "time": 100.5}


class Asked:
    """As uci_preflight.Asked, of nodes that are alike but for what CHANGES says: {name: {path: value}}."""

    def __init__(self, names, changes=None, errors=None):
        self.answers, self.errors = {}, errors or {}
        for name in names:
            node = copy.deepcopy(GOOD)
            for path, value in (changes or {}).get(name, {}).items():
                *folders, last = path.split(".")
                place = node
                for folder in folders:
                    place = place[folder]
                place[last] = value
            self.answers[name] = Answer(node, 100, 101)


def judged(changes, names=("node1", "node2", "node3"), ranks=None, errors=None):
    """[(is bad, nodes, text)]"""
    return [tuple(finding) for finding in judge(Asked(names, changes, errors), ranks, "/home")]


class PreflightTest(unittest.TestCase):
    """One thing is wrong in each."""

    def only(self, changes, is_bad, nodes, text, **more):
        """Just this finding."""
        found = judged(changes, **more)
        self.assertEqual([(one[0], one[1]) for one in found], [(is_bad, nodes)], found)
        self.assertIn(text, found[0][2])

    def test_all_alike(self):
        self.assertEqual(judged({}), [])

    def test_protocol(self):
        self.only({"node2": {"uci.protocol": "11"}}, True, ["node2"], "protocol 11 of UCI, the others 12")

    def test_versions(self):
        self.only({"node1": {"uci.version": "1.0.1 (def)", "uci.bytes": "4567"}}, False, ["node1"], "UCI 1.0.1 (def), the others 1.0.0 (abc)")
        self.only({"node3": {"uci.bytes": "4567"}}, False, ["node3"], "of other bytes")
        self.only({"node3": {"uci.ucx": "1.12.0"}}, False, ["node3"], "UCX 1.12.0, the others 1.13.1")
        self.only({"node3": {"mpi": "5.0.0"}}, False, ["node3"], "MPI 5.0.0")
        self.only({"node3": {"machine": "aarch64"}}, False, ["node3"], "aarch64 processors")

    def test_settings(self):
        self.only({"node1": {"uci.settings": {"UCI_MODE": "detect"}}}, True, ["node1"], "UCI_MODE=detect, the others the default: they refuse")
        self.only({"node1": {"uci.settings": {"UCI_LOG_LEVEL": "info"}}}, False, ["node1"], "UCI_LOG_LEVEL=info")
        self.only({"node1": {"uci.settings": {"UCI_KEY_FILE": "/a"}}, "node2": {"uci.settings": {"UCI_KEY_FILE": "/b"}}, "node3": {"mpi": "1.0"}}, False,
                  ["node3"], "MPI")

    def test_first_of_two_is_usual(self):
        self.only({"b": {"uci.protocol": "11"}}, True, ["b"], "protocol 11", names=("a", "b"))
        self.only({"a": {"uci.protocol": "11"}}, True, ["b"], "protocol 12", names=("a", "b"))

    def test_not_attached(self):
        self.only({"node2": {"uci.state": "off", "uci.how": "not loaded", "uci.advice": ["switch it on"]}}, True, ["node2"], "not loaded): switch it on")
        self.only({"node2": {"uci.tool": False, "uci.state": None, "uci.version": None, "uci.protocol": None, "uci.bytes": None}}, True, ["node2"], "not installed")
        self.only({"node2": {"uci.state": "unknown", "uci.said": "[1] [h:1:1] settings.c:1 UCI ERROR UCI_MODE=\033[31m is not valid\nmore"}}, True, ["node2"],
                  "UCI does not start: ERROR UCI_MODE=\\x1b[31m is not valid")

    def test_keys(self):
        self.only({name: {"key": {"path": "/k", "print": digits, "why": ""}} for name, digits in (("node1", "aa"), ("node2", "bb"), ("node3", "aa"))}, True,
                  ["node2"], "another key")
        self.only({"node2": {"key": {"path": "/k", "print": None, "why": "Permission denied"}}}, True, ["node2"], "key file /k: Permission denied")

    def test_too_little(self):
        self.only({"node2": {"shm": (1 << 26, 1 << 26)}}, False, ["node2"], "/dev/shm has 64 MiB free, 64 ranks may want 512 MiB")
        self.assertEqual(judged({"node2": {"shm": (1 << 26, 1 << 26)}}, ranks=4), [])
        self.only({"node2": {"shm": None}}, True, ["node2"], "no /dev/shm")
        self.only({"node2": {"limits.nofile": 256}}, False, ["node2"], "256 files")
        self.only({"node2": {"limits.memlock": 65536}}, False, ["node2"], "lock 64 KiB")
        self.assertEqual(judged({"node2": {"limits.memlock": 65536, "rdma": []}}), [])

    def test_clocks(self):
        self.only({"node2": {"time": 3701.0}}, False, ["node2"], "3,600 s ahead of")
        self.only({"node2": {"time": 40.0}}, False, ["node2"], "60 s behind")
        self.assertEqual(judged({"node2": {"time": 99.5}, "node3": {"time": 101.9}}), [])

    def test_folder(self):
        self.only({"node2": {"sees_folder": False}, "node3": {"sees_folder": False}}, True, ["node2", "node3"], "/home is not seen there")

    def test_no_answer(self):
        self.only({}, True, ["node9"], "no answer: ssh: refused", errors={"node9": "ssh: refused"})

    def test_thousand(self):
        """All that are alike are one row, and what is wrong is told once."""
        names = [f"n{number:04d}" for number in range(1000)]
        odd = {name: {"uci.protocol": "11"} for name in names[10:20]}
        found = judged(odd, names)
        self.assertEqual([one[1] for one in found], [names[10:20]])
        rows = table(Asked(names, odd).answers)
        self.assertEqual([row.split()[0] for row in rows[1:]], ["n[0000-0009,0020-0999]", "n[0010-0019]"])

    def test_hosts_of_slurm(self):
        with mock.patch.dict(os.environ, {"SLURM_JOB_NODELIST": "n[08-10],login"}):
            self.assertEqual(uci_preflight.batch_hosts(), ["n08", "n09", "n10", "login"])
        with mock.patch.dict(os.environ, {"SLURM_JOB_NODELIST": "n[08"}), self.assertRaisesRegex(JobError, "SLURM_JOB_NODELIST: .*give --hosts"):
            uci_preflight.batch_hosts()

    def test_hosts_of_pbs(self):
        with tempfile.NamedTemporaryFile() as file, mock.patch.dict(os.environ, {"PBS_NODEFILE": file.name}):
            with self.assertRaisesRegex(JobError, "PBS_NODEFILE: .* names no host; give --hosts"):
                uci_preflight.batch_hosts()
            file.write(b"n1\nn\xff\nn1\n")
            file.flush()
            self.assertEqual(uci_preflight.batch_hosts(), ["n1", "n\\xff"])
        for path in ("/no/such", "/"):
            with mock.patch.dict(os.environ, {"PBS_NODEFILE": path}), self.assertRaisesRegex(JobError, f"cannot read {path}: .*give --hosts"):
                uci_preflight.batch_hosts()

    def test_fold(self):
        self.assertEqual(fold(["node10", "node9", "login", "node11", "node9"]), "login,node[9-11]")
        self.assertEqual(fold(["r1n1.x", "r1n2.x", "r2n1.x"]), "r1n[1-2].x,r2n1.x")
        self.assertEqual(fold(["n08", "n09", "n10", "n11"]), "n[08-11]")
        self.assertEqual(fold(["n8", "n08"]), "n08,n8")


if __name__ == "__main__":
    unittest.main(verbosity=0)
