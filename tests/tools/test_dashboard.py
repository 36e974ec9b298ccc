#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
The dashboard for Grafana (docs/examples/grafana/uci.json): does each panel ask for metrics and labels that uci_top --openmetrics prints, and for each
counter of damage?

usage: test_dashboard.py METRICS, what uci_top has printed of a real job. Expressions are parsed by promtool (Debian: prometheus), where it is
installed; there is no Grafana here to load it. What Grafana says of the form of a dashboard is the package @grafana/schema of npm: with
UCI_GRAFANA_SCHEMA=FOLDER, where "npm install @grafana/schema typescript" was run, the file is held against it. Ends with "N passed, N failed, N skipped".
"""
import json
import os
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

# the package's types, enumerations by their values; what is not in them is an error
TYPES = """import type { Dashboard, GraphFieldConfig } from '@grafana/schema';
import type { Options as stat } from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type { Options as table } from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type { Options as timeseries } from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
type Plain<T> = unknown extends T ? T : T extends string ? `${T}` : T extends (infer U)[] ? Plain<U>[] : T extends object ? { [K in keyof T]?: Plain<T[K]> } : T;
"""


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

    def test_form_is_that_of_grafana(self):
        folder = os.environ.get("UCI_GRAFANA_SCHEMA")
        if not folder:
            self.skipTest("UCI_GRAFANA_SCHEMA is not set (see the head of this file)")
        self.assertEqual(self.said_by_compiler(folder, self.dashboard), "")
        self.panels[1]["options"]["colourMode"] = "value"
        self.assertIn("colourMode", self.said_by_compiler(folder, self.dashboard), "what it does not know is told")

    def said_by_compiler(self, folder, dashboard):
        """What tsc says of the dashboard, and of options of its panels, which are of a type for each kind of panel."""
        parts = [("Dashboard", dashboard)]
        for panel in dashboard["panels"]:
            if panel["type"] != "row":
                parts.append((panel["type"], panel["options"]))
                if panel["type"] == "timeseries":
                    parts.append(("GraphFieldConfig", panel["fieldConfig"]["defaults"]["custom"]))
        with tempfile.NamedTemporaryFile("w", suffix=".ts", dir=folder) as file:
            file.write(TYPES + "".join(f"export const part{number}: Plain<{kind}> = {json.dumps(part)};\n" for number, (kind, part) in enumerate(parts)))
            file.flush()
            command = [Path(folder).resolve() / "node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "esnext", "--moduleResolution", "bundler",
                       "--target", "es2022", file.name]
            return subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout


if __name__ == "__main__":
    sys.exit(run_tests(DashboardTest))
