#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Do the layers hold, and is the library fit for being preloaded into anything?

usage: tests/layering.py [BUILD_DIR]            (default build/, which must be built)
       tests/layering.py --graph [BUILD_DIR]    print which file needs which, the circles, and where to cut them

- Compile-fail tests, with the real commands of compile_commands.json: a copy of a source compiles, and no longer does
  with an include of a layer above, or of UCX in core, appended.
- What the objects really included (ninja's dependency log), and the symbols they want.
- No circle of more than a few files, of includes and calls: what needs each other can't be understood, or tested, alone.
- Rooms, the folders within a layer, need each other in one direction only: no circle of them.
- What a room's files include of another room is public there: a header that its README.md names. Headers *_part.h, the rooms' parts of
  the state, are a room of their own in this: they need no room but what lies below all that hold parts.
- Faults are injected by one room of pipeline, and no other.
- The library: exported symbols, needed libraries, and what it does in processes that have nothing to do with UCX.

Ends with "N passed, N failed, N skipped"; exit status 1 if any failed.
"""
import functools
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from file_graph import circles_of, describe, file_graph, includes_of, is_part, part_of, rooms_of, sources_of

ROOT = Path(__file__).resolve().parent.parent
LAYERS = ("core", "pipeline", "ucx_plugin")  # lowest first
USERS = ("libuci", "mpi", "tools")
UCX_HEADERS = ("ucp/api/ucp.h", "uct/api/uct.h", "ucs/type/status.h")
CIRCLE_MAX = 3  # files that may need each other
ALLOWED_NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
                  "ld-linux-aarch64.so.1", "libisal.so.2"}  # Debian has no static ISA-L
ALLOWED_SYMBOL = re.compile(r"(ucp|uci)_\w+|ucs_module_global_init")
INJECTS = re.compile(r"\buci_(inject_\w+\(|fault_(draw|apply|targets|once_more|undo|enabled)\b)")
UCX_SYMBOL = re.compile(r"(ucp|uct|ucs|ucm)_\w+")


class Results:
    """Counts, and one line a test."""

    def __init__(self):
        self.passed = self.failed = self.skipped = 0

    def check(self, name, complaint):
        """Record test NAME; COMPLAINT, if any, is why it failed."""
        if complaint:
            self.failed += 1
            print(f"FAIL {name}: {complaint}")
        else:
            self.passed += 1
            print(f"ok   {name}")

    def skip(self, name, reason):
        """Record that NAME could not be tested."""
        self.skipped += 1
        print(f"skip {name}: {reason}")


def output_of(*command, **options):
    """Standard output of a command that must succeed."""
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True,
                          **options).stdout


# --- what compiles ---

def compile_entries(build):
    """Layer -> first of its sources, as (source, arguments, folder) from compile_commands.json."""
    entries = {}
    for entry in json.loads((build / "compile_commands.json").read_text()):
        source = (Path(entry["directory"]) / entry["file"]).resolve()
        if source.is_relative_to(ROOT) and source.suffix == ".c":
            entries.setdefault(source.relative_to(ROOT).parts[0], (source, syntax_only(entry), entry["directory"]))
    return entries


def syntax_only(entry):
    """The command without its source and without anything it would write."""
    arguments, skip_next = [], False
    for argument in shlex.split(entry["command"]):
        if skip_next:
            skip_next = False
        elif argument in ("-o", "-MF", "-MQ", "-MT"):
            skip_next = True
        elif argument not in ("-c", "-MD", "-MMD", entry["file"]):
            arguments.append(argument)
    return [*arguments, "-fsyntax-only"]


def compile_error(entry, addition, folder):
    """What the compiler says to a copy of the source with ADDITION at its end; empty if it compiles."""
    source, arguments, directory = entry
    copy = Path(tempfile.mkdtemp(dir=folder)) / source.name
    copy.write_text(source.read_text() + addition)
    done = subprocess.run([*arguments, f"-I{source.parent}", str(copy)], cwd=directory, capture_output=True, text=True,
                          check=False)
    return done.stderr if done.returncode else ""


def forbidden_headers(layer):
    """Who layer must not know -> their headers: the layers above, and for core UCX."""
    above = LAYERS[LAYERS.index(layer) + 1:]
    headers = {f"{upper}/": [f'"{path.relative_to(ROOT / upper)}"' for path in sorted((ROOT / upper).rglob("*.h"))]
               for upper in above}
    return headers | ({"UCX": [f"<{name}>" for name in UCX_HEADERS]} if layer == "core" else {})


def compiles_with(entry, folder, header):
    """Why the compile-fail test of HEADER failed; empty if the compiler rightly refused it."""
    error = compile_error(entry, f"\n#include {header}\n", folder)
    if not error:
        return f"{header} is let in"
    return "" if re.search(r"No such file|poisoned|#error", error) else f"{header} fails for another reason: {error}"


def test_compilation(results, build):
    """Compile-fail tests, with an unmodified copy as positive control; as many at a time as there are cores."""
    entries = compile_entries(build)
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(os.cpu_count()) as pool:
        for layer in LAYERS:
            entry = entries[layer]
            name = entry[0].relative_to(ROOT)
            results.check(f"{name} compiles as it is", compile_error(entry, "", folder))
            for owner, headers in forbidden_headers(layer).items():
                wrong = list(pool.map(functools.partial(compiles_with, entry, folder), headers)) or ["no headers found"]
                results.check(f"{name} does not compile with any of {len(headers)} headers of {owner}",
                              "; ".join(filter(None, wrong)))


# --- what was compiled ---

def included_files(build):
    """Object -> files that went into it, as ninja recorded."""
    files, target = {}, None
    for line in output_of("ninja", "-C", build, "-t", "deps").splitlines():
        if line and not line.startswith((" ", "ninja:")):
            target = line.split(":")[0]
            files[target] = set()
        elif line.strip() and target:
            files[target].add((build / line.strip()).resolve())
    return files


def test_included(results, build):
    """No object includes from a layer above its own, and none of core from UCX."""
    wrong = {layer: set() for layer in LAYERS}
    for target, files in included_files(build).items():
        layer = target.split("/")[0]
        if layer not in LAYERS:
            continue
        above = [ROOT / upper for upper in LAYERS[LAYERS.index(layer) + 1:]]
        for path in files:
            if any(path.is_relative_to(folder) for folder in above) or (
                    layer == "core" and re.search(r"/uc[pstm]/.*\.h$", str(path))):
                wrong[layer].add(f"{target} includes {path}")
    for layer in LAYERS:
        results.check(f"{layer}/ includes nothing from above", "; ".join(sorted(wrong[layer])))


def test_wanted(results, build):
    """Core wants no symbol of UCX; pipeline none of ucp, which it calls through its table."""
    for layer, pattern in (("core", UCX_SYMBOL), ("pipeline", re.compile(r"ucp_\w+"))):
        objects = sorted((build / layer).glob("*.a.p/*.o"))
        wanted = {line.split()[-1] for line in output_of("nm", "-u", *objects).splitlines() if " U " in line}
        wrong = sorted(symbol for symbol in wanted if pattern.fullmatch(symbol))
        results.check(f"{layer}/ wants no symbol {pattern.pattern}",
                      "no objects found" if not objects else " ".join(wrong))


# --- what needs each other ---

def folder_of(name):
    """The folder of pipeline/link/foo."""
    return name.split("/")[0]


def too_large(circles, limit):
    """Circles of more than LIMIT files, for a complaint."""
    return "; ".join(f"{len(circle)} files, at most {limit} may: {' '.join(sorted(circle))}"
                     for circle in circles if len(circle) > limit)


def test_circles(results, build):
    """In each folder, and over all: few files need each other. `--graph` tells where to cut."""
    graph = file_graph(ROOT, build, LAYERS)
    for layer in LAYERS:
        circles = circles_of(part_of(graph, {name for name in graph if folder_of(name) == layer}))
        for circle in circles:
            print(f"     {layer}/: {len(circle)} files need each other: {' '.join(sorted(circle))}")
        results.check(f"{layer}/ has no circle of more than {CIRCLE_MAX} files", too_large(circles, CIRCLE_MAX))
    across = [circle for circle in circles_of(graph) if len({folder_of(name) for name in circle}) > 1]
    results.check("no circle goes over several folders", too_large(across, 0))


def floors_of(rooms):
    """The rooms, by what they stand on: floor 0 needs none."""
    floors, left = [], set(rooms)
    while left:
        floor = {room for room in left if not left & (set(rooms[room]) - {room})} or left  # a circle is one floor
        floors.append(sorted(floor))
        left -= floor
    return floors


def test_rooms(results, build):
    """Calls go down: no room needs one that needs it."""
    graph = file_graph(ROOT, build, LAYERS)
    for layer in LAYERS:
        rooms = rooms_of(part_of(graph, {name for name in graph if folder_of(name) == layer}))
        for number, floor in enumerate(floors_of(rooms)):
            print(f"     floor {number} of {layer}/: {' '.join(room.split('/')[1] for room in floor)}")
        wrong = [why for circle in circles_of(rooms) for room in circle for target in circle for why in rooms[room].get(target, ())]
        results.check(f"the rooms of {layer}/ need each other in one direction", "; ".join(sorted(wrong)))


def public_headers(room):
    """What a room's README.md names as public: a list that begins with `header.h`."""
    readme = ROOT / room / "README.md"
    return set(re.findall(r"^- `(\w+\.(?:h|inl))`", readme.read_text(), re.MULTILINE)) if readme.exists() else set()


def used_headers():
    """Room -> the headers of it that files elsewhere include; tests may look into a room."""
    used = {str(path.parent.relative_to(ROOT)): set() for path in sources_of(ROOT, LAYERS)}
    for path in sources_of(ROOT, (*LAYERS, *USERS)):
        for header in includes_of(ROOT, LAYERS, path):
            if header.parent != path.parent and not is_part(header.stem):
                used.get(str(header.parent.relative_to(ROOT)), set()).add(header.name)
    return used


def test_public_headers(results):
    """Each room has a README.md that names what others include of it, and nothing else."""
    for room, used in sorted(used_headers().items()):
        public = public_headers(room)
        wrong = [f"{name} is included from elsewhere, and not public" for name in sorted(used - public)]
        wrong += [f"{name} is public, and needed by nobody" for name in sorted(public - used)]
        results.check(f"{room}/README.md names what others include", "; ".join(wrong))


# --- the library ---

def test_injection(results):
    """Faults enter at the edges: what draws one, or may change what goes by, is in a room that no other knows."""
    wrong = []
    for path in sorted((ROOT / "pipeline").rglob("*.[ch]")):
        name = path.relative_to(ROOT / "pipeline")
        if name.parts[0] != "inject" and INJECTS.search(path.read_text()):
            wrong.append(str(name))
    results.check("no room of pipeline/ but inject/ injects faults", " ".join(wrong))


def test_exports(results, library):
    """Exported symbols: ucp_* and uci_* alone, and some of each that must be there."""
    exported = {line.split()[-1].split("@")[0]
                for line in output_of("nm", "-D", "--defined-only", library).splitlines()}
    wrong = sorted(symbol for symbol in exported if not ALLOWED_SYMBOL.fullmatch(symbol))
    results.check("the library exports only ucp_*, uci_* and the entry of a UCX module", " ".join(wrong))
    missing = {"ucp_init_version", "ucp_tag_send_nbx", "ucp_tag_recv_nbx", "ucp_worker_progress"} - exported
    results.check("the library interposes ucp_*", " ".join(sorted(missing)))


def test_needed(results, library):
    """DT_NEEDED: the C library and ISA-L, nothing of UCX and nothing that only tools need."""
    needed = set(re.findall(r"\(NEEDED\).*\[(.*)\]", output_of("readelf", "-d", library)))
    results.check("the library needs no other library but C and ISA-L", " ".join(sorted(needed - ALLOWED_NEEDED)))


def test_silence(results, library):
    """Preloaded into programs without UCX: same output, same exit status."""
    for command in (["/bin/true"], ["/bin/sh", "-c", "echo output; exit 3"], ["/usr/bin/env", "-i", "/bin/true"]):
        environment = {**os.environ, "UCI_LOG_LEVEL": "debug", "UCI_STATS": "-"}
        plain, preloaded = (
            subprocess.run(command, capture_output=True, text=True, check=False, env={**environment, **extra})
            for extra in ({}, {"LD_PRELOAD": str(library)}))
        same = (plain.returncode, plain.stdout, plain.stderr) == (
            preloaded.returncode, preloaded.stdout, preloaded.stderr)
        results.check(f"preloaded into {shlex.join(command)}: nothing printed",
                      "" if same else f"status {preloaded.returncode}, {preloaded.stdout!r}, {preloaded.stderr!r}")


def traced_calls(library, folder):
    """Files opened, and other system calls of interest, by /bin/sh with or without LIBRARY."""
    log = Path(folder) / "strace.log"
    preload = ["-E", f"LD_PRELOAD={library}"] if library else []
    done = subprocess.run(["strace", "-f", "-o", log, "-e", "trace=open,openat,clone,clone3,write,socket", *preload,
                           "/bin/sh", "-c", ":"], capture_output=True, text=True, check=False)
    if done.returncode:
        return None
    lines = [re.sub(r"^\d+ +", "", line) for line in log.read_text().splitlines()]
    return [line for line in lines if re.match(r"\w+\(", line) and "ENOENT" not in line]


def test_calls(results, library):
    """Preloaded into a shell: no file opened but the library and what it needs, no thread, nothing written."""
    name = "preloaded into a shell: no file, thread or socket"
    if not shutil.which("strace"):
        return results.skip(name, "no strace")
    with tempfile.TemporaryDirectory() as folder:
        plain, preloaded = (traced_calls(preload, folder) for preload in (None, library))
    if plain is None or preloaded is None:
        return results.skip(name, "strace does not work here")
    names = "|".join(map(re.escape, {str(library), "/etc/ld.so.cache", *ALLOWED_NEEDED}))
    extra = [line for line in preloaded if line not in plain and not re.search(rf'(^|/|")({names})"', line)]
    return results.check(name, "; ".join(extra))


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--graph"]
    build = Path(arguments[0] if arguments else ROOT / "build").resolve()
    library = build / "libucx_integrity.so"
    if not library.exists():
        sys.exit(f"{library} is not built")
    if "--graph" in sys.argv:
        print("\n".join(describe(file_graph(ROOT, build, LAYERS), CIRCLE_MAX)))
        return
    results = Results()
    test_compilation(results, build)
    test_included(results, build)
    test_wanted(results, build)
    test_circles(results, build)
    test_rooms(results, build)
    test_public_headers(results)
    test_injection(results)
    test_exports(results, library)
    test_needed(results, library)
    test_silence(results, library)
    test_calls(results, library)
    print(f"{results.passed} passed, {results.failed} failed, {results.skipped} skipped")
    sys.exit(1 if results.failed else 0)


main()
