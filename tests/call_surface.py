#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Is docs/call-surface.md true: of the installed UCX, of the library, and of what the tests call?

usage: tests/call_surface.py [BUILD_DIR]        (default build/, which must be built)

- Each function that the installed ucp headers declare is in the table, and each row that the installed UCX is new enough
  for is declared there. So a new function of UCX cannot be missed, and an old row cannot stay.
- The same for the fields and flags of the enumerations that UCI reads.
- The library exports the functions that are handled or guarded, and no other function of UCX.
- Programs in tests/ucp call each function that is declared here.
- Each function of UCX that UCI cannot do without (pipeline/ucp/ucp_api.h) is one that it calls.

Ends with "N passed, N failed, N skipped"; exit status 1 if any failed.
"""
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs" / "call-surface.md"
HEADERS = ("ucp/api/ucp.h", "ucp/api/ucp_compat.h", "ucp/api/device/ucp_host.h")
HOOKED = ("handled", "guarded")
# enumerations in which UCI gives members a meaning of its own
ENUMERATIONS = ("ucp_op_attr_t", "ucp_dt_type", "ucp_feature", "ucp_params_field", "ucp_worker_params_field",
                "ucp_ep_params_field", "ucp_err_handling_mode_t", "ucp_ep_close_flags_t", "ucp_ep_close_mode",
                "ucp_context_attr_field", "ucp_worker_attr_field", "ucp_worker_address_attr_field",
                "ucp_worker_address_flags_t", "ucp_req_attr_field")
# would need a GPU
NOT_CALLABLE = re.compile(r"ucp_device_\w+")


class Results:
    """Counts, and one line a test."""

    def __init__(self):
        self.passed = self.failed = 0

    def check(self, name, complaints):
        """Record test NAME; COMPLAINTS, if any, are why it failed."""
        self.failed += bool(complaints)
        self.passed += not complaints
        print(f"FAIL {name}: {'; '.join(sorted(complaints))}" if complaints else f"ok   {name}")


def output_of(*command, **options):
    """Standard output of a command that must succeed."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True,
                          **options).stdout


# --- the page ---

def version(text):
    """"1.13" as a tuple that compares."""
    return tuple(map(int, text.split(".")))


def versions(text):
    """First and last UCX of a row: "1.13" or "1.20 to 1.20"."""
    first, _, last = text.partition(" to ")
    return version(first), version(last) if last else (99, 0)


def table_rows(heading):
    """(name, (first, last UCX), word) of the tables behind HEADING; several names may share a row."""
    section = TABLE.read_text().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    for line in section.splitlines():
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) > 2 and re.fullmatch(r"\d+\.\d+( to \d+\.\d+)?", cells[1]):
            for name in re.findall(r"`(\w+)`", cells[0]):
                yield name, versions(cells[1]), cells[2]


# --- the headers ---

def preprocessed():
    """Text of the public headers after preprocessing, without what they include from elsewhere."""
    flags = shlex.split(output_of("pkg-config", "--cflags", "ucx"))
    source = "".join(f"#if __has_include(<{name}>)\n#include <{name}>\n#endif\n" for name in HEADERS)
    text, ours = [], False
    for line in output_of("gcc", "-E", "-x", "c", *flags, "-", input=source).splitlines():
        marker = re.match(r'# \d+ "([^"]*)"', line)
        if marker:
            ours = "/ucp/api/" in marker.group(1)
        elif ours:
            text.append(line)
    return "\n".join(text)


def without_bodies(text):
    """Declarations alone: whatever is in braces goes."""
    while "{" in text:
        shorter = re.sub(r"\{[^{}]*\}", ";", text)
        if shorter == text:
            sys.exit("unbalanced braces in the ucp headers")
        text = shorter
    return text


def declared_functions(text):
    """Names of the functions that TEXT declares or defines."""
    names = set()
    for statement in without_bodies(text).split(";"):
        statement = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", statement, flags=re.DOTALL)
        found = re.search(r"\b(ucp_\w+)\s*\(", statement)
        if found and "typedef" not in statement:
            names.add(found.group(1))
    return names


def declared_enumerators(text):
    """Names in the enumerations that UCI reads."""
    names, seen = set(), set()
    for tag, body, alias in re.findall(r"\benum\s*(\w*)\s*\{(.*?)\}\s*(\w*)", text, flags=re.DOTALL):
        if (enumeration := {tag, alias} & set(ENUMERATIONS)):
            seen |= enumeration
            names |= set(re.findall(r"(?:^|,)\s*(UCP_\w+)", body))
    return names, set(ENUMERATIONS) - seen


# --- checks ---

def check_against_headers(results, kind, rows, declared, installed):
    """The page and the headers name the same things, as far as the installed UCX goes."""
    listed = {name for name, _, _ in rows}
    due = {name for name, (first, last), _ in rows if first <= installed <= last}
    results.check(f"each of the {len(declared)} {kind} that UCX declares is listed",
                  [f"{name} is new: docs/call-surface.md must say what UCI does with it" for name in declared - listed])
    results.check(f"each of the {len(due)} {kind} listed for this UCX is declared",
                  [f"{name} is not in the headers" for name in due - declared])
    results.check(f"no {kind} that are listed for another UCX are declared",
                  [f"{name} is here" for name in (listed - due) & declared])
    twice = {name for name in listed if [row[0] for row in rows].count(name) > 1}
    results.check(f"{kind} are listed once", [f"{name} is in two rows" for name in twice])


def check_words(results, rows):
    """Nobody invents a fourth thing that can happen."""
    results.check("functions are handled, guarded or pass",
                  [f"{name}: '{word}'" for name, _, word in rows if word not in (*HOOKED, "passes")])


def check_exports(results, rows, library):
    """Hooks and rows say the same."""
    hooked = {name for name, _, word in rows if word in HOOKED}
    exported = {line.split()[-1].split("@")[0] for line in output_of("nm", "-D", "--defined-only", library).splitlines()}
    exported = {name for name in exported if name.startswith("ucp_")}
    results.check(f"each of the {len(hooked)} hooks that are listed is in the library",
                  [f"{name} is not exported" for name in hooked - exported])
    results.check("the library hooks nothing else", [f"{name} is not listed as a hook" for name in exported - hooked])


def check_calls(results, declared):
    """A program of tests/ucp calls each function."""
    sources = sorted((ROOT / "tests" / "ucp").glob("*.[ch]"))
    text = "\n".join(re.sub(r"/\*.*?\*/", "", source.read_text(), flags=re.DOTALL) for source in sources)
    called = set(re.findall(r"\b(ucp_\w+)\s*\(", text))
    uncalled = {name for name in declared - called if not NOT_CALLABLE.fullmatch(name)}
    results.check("the programs in tests/ucp call each function", [f"nobody calls {name}" for name in uncalled])


def check_needed(results):
    """None is asked of UCX that is never called: hook_rma.c and hook_rma_old.c name some in their macros."""
    needed = set(re.findall(r"_X\((\w+)\)", (ROOT / "pipeline" / "ucp" / "ucp_api.h").read_text()))
    text = "\n".join(source.read_text() for folder in ("pipeline", "ucx_plugin") for source in (ROOT / folder).rglob("*.[ch]"))
    called = set(re.findall(r"\buci_ucp\.(\w+)", text))
    called |= set(re.findall(r"^UCI_HOOK_RMA\((\w+)", text, re.MULTILINE))
    called |= {f"atomic_{name}" for name in re.findall(r"^UCI_HOOK_(?:FETCH|CSWAP)\((\w+)", text, re.MULTILINE)}
    results.check("each function that UCX must have is called", [f"nobody calls uci_ucp.{name}" for name in needed - called])


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build").resolve()
    library = build / "libucx_integrity.so"
    if not library.exists():
        sys.exit(f"{library} is not built")
    text = preprocessed()
    installed = version(".".join(output_of("pkg-config", "--modversion", "ucx").split(".")[:2]))
    functions, fields = list(table_rows("Functions")), list(table_rows("Fields and flags"))
    declared = declared_functions(text)
    enumerators, unseen = declared_enumerators(text)
    results = Results()
    check_words(results, functions)
    check_against_headers(results, "functions", functions, declared, installed)
    results.check("the enumerations that UCI reads are in the headers", [f"no enum {name}" for name in unseen])
    check_against_headers(results, "fields and flags", fields, enumerators, installed)
    check_exports(results, functions, library)
    check_calls(results, declared)
    check_needed(results)
    print(f"{results.passed} passed, {results.failed} failed, 0 skipped")
    sys.exit(1 if results.failed else 0)


main()
