#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The dashboard for Grafana (docs/examples/grafana/uci.json): does each panel ask for metrics and labels that uci_top --openmetrics prints, and for each
counter of damage?

usage: test_dashboard.py METRICS, what uci_top has printed of a real job. Expressions are parsed by promtool (Debian: prometheus), where it is
installed; there is no Grafana here to load it. Ends with "N passed, N failed, N skipped".
"""
import json
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from test_report import run_tests

ROOT = Path(__file__).resolve().parents[2]
METRICS = Path(sys.argv[1])
NAME = re.compile(r"\b(uci_[a-z_]+)\b(?=\{|\[|\)|$| )")
ADDED = {"instance"}  # by Prometheus, to what it scrapes
MUST = ("mismatched_chunks", "unrepaired_chunks", "mismatched_headers", "mismatched_control", "source_changed", "faults_injected")


def exported():
    """(names of metrics, names of labels) of METRICS."""
    lines = [line for line in METRICS.read_text().splitlines() if line and not line.startswith("#")]
    return {re.match(r"[a-z_]+", line)[0] for line in lines}, {name for line in lines for name in re.findall(r'[{,]([a-z_]+)="', line)}


class DashboardTest(unittest.TestCase):
    """One file."""

    def setUp(self):
        self.dashboard = json.loads((ROOT / "docs/examples/grafana/uci.json").read_text())
        self.panels = self.dashboard["panels"]
        self.targets = [target for panel in self.panels for target in panel.get("targets", ())]
        self.variables = {variable["name"]: variable for variable in self.dashboard["templating"]["list"]}
        queries = [variable["query"]["query"] for variable in self.variables.values() if variable["type"] == "query"]
        self.expressions = [target["expr"] for target in self.targets]
        self.asked = [*self.expressions, *(re.fullmatch(r"label_values\((.*), ([a-z_]+)\)", query)[1] for query in queries)]
        self.asked_labels = [re.fullmatch(r"label_values\((.*), ([a-z_]+)\)", query)[2] for query in queries]

    def test_metrics_are_those_of_uci_top(self):
        names, _ = exported()
        self.assertGreater(len(names), 50, "a real export")
        for text in self.asked:
            asked = set(NAME.findall(text))
            self.assertTrue(asked, text)
            self.assertLessEqual(asked, names, text)

    def test_all_damage_is_shown(self):
        asked = set(NAME.findall(" ".join(self.expressions)))
        self.assertLessEqual({f"uci_{name}_total" for name in MUST}, asked)

    def test_labels_are_those_of_uci_top(self):
        _, labels = exported()
        asked = set(self.asked_labels)
        for text in self.asked:
            asked |= set(re.findall(r"([a-z_]+)=~", text))
            asked |= {name for group in re.findall(r"by \(([^)]*)\)", text) for name in group.split(", ")}
        self.assertLessEqual(asked, labels | ADDED)

    def test_panels(self):
        numbers = [panel["id"] for panel in self.panels]
        self.assertEqual(len(numbers), len(set(numbers)))
        places = [(panel["gridPos"]["x"] + column, panel["gridPos"]["y"] + line) for panel in self.panels
                  for column in range(panel["gridPos"]["w"]) for line in range(panel["gridPos"]["h"])]
        self.assertEqual(len(places), len(set(places)), "no panel covers another")
        self.assertLess(max(column for column, _ in places), 24)
        for panel in self.panels:
            self.assertTrue(panel["title"])
            references = [target["refId"] for target in panel.get("targets", ())]
            self.assertEqual(len(references), len(set(references)))
            self.assertEqual(bool(references), panel["type"] != "row")

    def test_data_source_is_a_variable(self):
        self.assertEqual(self.variables["datasource"]["type"], "datasource")
        asking = [*self.targets, *(panel for panel in self.panels if panel["type"] != "row"),
                  *(variable for variable in self.variables.values() if variable["type"] == "query")]
        self.assertEqual({one["datasource"]["uid"] for one in asking}, {"${datasource}"})

    def test_head(self):
        self.assertIsInstance(self.dashboard["schemaVersion"], int)
        self.assertTrue(self.dashboard["title"] and self.dashboard["uid"])
        self.assertNotIn("id", self.dashboard, "an id is of one Grafana")

    def test_variables_are_there(self):
        used = set(re.findall(r"\$\{?([a-z_]+)", json.dumps(self.dashboard)))
        self.assertLessEqual({name for name in used if not name.startswith("__")}, set(self.variables))

    def test_expressions_are_of_promql(self):
        tool = shutil.which("promtool")
        if not tool:
            self.skipTest("promtool is not installed (Debian: prometheus)")
        rules = [{"record": f"uci:{number}", "expr": re.sub(r"\$__\w+", "1h", text)} for number, text in enumerate(self.expressions)]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({"groups": [{"name": "uci", "rules": rules}]}, file)
            file.flush()
            done = subprocess.run([tool, "check", "rules", file.name], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
        self.assertIn(f"{len(rules)} rules found", done.stdout)


if __name__ == "__main__":
    sys.exit(run_tests(DashboardTest))
