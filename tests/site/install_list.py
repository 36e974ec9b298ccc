#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""usage: tests/site/install_list.py BUILD_DIR

Does `meson install` land what docs/installed.md lists, and nothing else? Paths of the list are relative to the prefix; LIB is the
library folder. What is built for an MPI that is not here may be missing."""
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MARKS = "<!-- installed: begin -->", "<!-- installed: end -->"


def build_options(build):
    """Name -> value of Meson's options in BUILD."""
    listed = subprocess.run(["meson", "introspect", "--buildoptions", build], capture_output=True, text=True, check=True)
    return {option["name"]: option["value"] for option in json.loads(listed.stdout)}


def listed_files(libdir, version):
    """The list of docs/installed.md: what the first column of its table names."""
    text = (ROOT / "docs/installed.md").read_text()
    begin, end = (text.index(mark) for mark in MARKS)
    rows = [line.split("|")[1] for line in text[begin:end].splitlines() if line.startswith("| `")]
    names = re.findall(r"`([^`]+)`", "\n".join(rows))
    return {name.replace("LIB/", f"{libdir}/").replace("VERSION", version) for name in names}


def installed_files(build, prefix):
    """What an installation makes, below the prefix."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(["meson", "install", "-C", build, "--no-rebuild", "--quiet", "--destdir", folder], check=True)
        base = Path(folder) / prefix.lstrip("/")
        files = {path for path in Path(folder).rglob("*") if path.is_symlink() or not path.is_dir()}
        return {str(path.relative_to(base)) for path in files}


def main():
    """Compare, and tell each difference."""
    build = sys.argv[1]
    options = build_options(build)
    info = json.loads(subprocess.run(["meson", "introspect", "--projectinfo", build], capture_output=True, text=True,
                                     check=True).stdout)
    listed = listed_files(options["libdir"], info["version"])
    installed = installed_files(build, options["prefix"])
    mpis = {name.rsplit(".", 1)[1] for name in installed if re.fullmatch(r"bin/.*\.(openmpi|mpich)", name)}
    missing = {name for name in listed - installed
               if not name.endswith((".openmpi", ".mpich")) or name.rsplit(".", 1)[1] in mpis}
    for name in sorted(installed - listed):
        print(f"installed, and not in the table of docs/installed.md: {name}")
    for name in sorted(missing):
        print(f"in the table of docs/installed.md, and not installed: {name}")
    sys.exit(1 if missing or installed - listed else 0)


main()
