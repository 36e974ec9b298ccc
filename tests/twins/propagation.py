#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""How far does one wrong message go? Runs programs with two twins, lets one message escape into one rank of the second twin (UCI_FAULT, target
escape), and gathers what their comparison has seen: docs/propagation.md.

Each program is run once as it is, which tells how many messages each rank receives, and which of them are never the same (times that are
sent). Then once for each rank, place and seed that are asked for: at 10 % of a rank's messages, say. Progress is counted in messages of
all ranks, so that programs and machines can be compared. Everything is kept in FOLDER, for uci_report; the figures in FOLDER/results.json,
from which --draw makes table and picture again.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import escape

SLOTS = 100        # of progress
LAST = 10          # of these: how it ends
RANDOM = .05       # messages that differ without a fault: more, and there is nothing to see
RETRIES = 12       # a rank may receive fewer messages that are long enough than it receives at all
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00")  # of places; Okabe and Ito
WORDS = (("UNSUCCESSFUL", "wrong"), ("SUCCESSFUL", "passed"), (": right", "passed"), (" wrong", "wrong"))  # of programs that check themselves


# --- running ---

def run_twins(options, command, folder, fault=None):
    """One job of two twins. Returns what uci_run says, and the reports of twin 0's processes by rank."""
    environment = {**os.environ, "UCI_CONFIG_FILE": "", "UCX_TLS": os.environ.get("UCX_TLS", "posix,self")}
    environment.pop("UCI_FAULT", None)
    if fault:
        environment["UCI_FAULT"] = fault
    arguments = [options.build / "tools/uci_run", "--twins", "2", "-n", options.ranks, "--folder", folder, "--json", folder.with_suffix(".json")]
    done = subprocess.run([str(word) for word in arguments + (["--apart"] if options.apart else []) + shlex.split(command)], env=environment,
                          capture_output=True, text=True, errors="replace", timeout=options.timeout, check=False)
    try:
        job = json.loads(folder.with_suffix(".json").read_text())
        reports = {report["rank"]: report for report in (json.loads(path.read_text()) for path in folder.glob("twin.0/twins.*.json"))}
    except (OSError, ValueError):
        sys.exit(f"propagation.py: '{command}' has left nothing to look at:\n{done.stderr[-2000:]}")
    if len(reports) != options.ranks or not job["twins"]["sums"]["compared"]:
        sys.exit(f"propagation.py: '{command}': {len(reports)} of {options.ranks} ranks have compared anything:\n{done.stderr[-2000:]}")
    return job, reports


def physics(text):
    """What LAMMPS has computed: the lines between the head of its table and its time, but for times."""
    return [line for line in text[text.find("Step "):].partition("Loop time")[0].splitlines() if "CPU" not in line]


def own_word(folder):
    """What the damaged twin's program says of its own result, or how it compares with the other's; None if it does not tell."""
    healthy, damaged = ((folder / f"twin.{twin}.stdout").read_text(errors="replace") for twin in range(2))
    if "LAMMPS" in damaged:
        return "same physics" if physics(damaged) == physics(healthy) else "other physics"
    return next((word for key, word in WORDS if key in damaged), None)


def measure(options, name, command):
    """All runs of a program, as a list of dictionaries."""
    base = options.folder / name
    base.mkdir(parents=True, exist_ok=True)
    job, clean = run_twins(options, command, base / "clean")
    received = {rank: report["compared"] for rank, report in clean.items()}
    never_same = {rank: report["differed"] for rank, report in clean.items()}
    known = sum(never_same.values())
    if known > RANDOM * sum(received.values()):
        return [{"program": name, "command": command, "deterministic": False, "messages": sum(received.values()), "never_same": known}]
    print(f"{name}: {sum(received.values())} messages, {known} of them never the same", flush=True)
    found = []
    for rank in options.at_ranks:
        for place in options.places:
            for seed in options.seeds:
                folder = base / f"rank{rank}-at{place}-seed{seed}"
                fault, job, reports = run_with_fault(options, command, folder, rank, seed, int(place * received[rank]))
                found.append({"program": name, "command": command, "deterministic": True, "messages": sum(received.values()), "never_same": known,
                              "rank": rank, "place": place, "seed": seed, "fault": fault, "own_word": own_word(folder),
                              "stdout": job["stdout"][0]["state"], **judge(reports, never_same, after_of(fault) / received[rank])})
                print(f"{name}: rank {rank} at {place:.0%}: {found[-1]['tainted_ranks']} ranks, "
                      f"{found[-1]['share_after']:.1%} of the messages after it", flush=True)
    return found


def run_with_fault(options, command, folder, rank, seed, after):
    """One run with one fault, at this message or, if there are not so many that are long enough, at an earlier one."""
    for attempt in range(RETRIES):
        fault = f"rate=1,count=1,target=escape,min={options.min},rank={rank},twin=1,seed={seed},after={after}"
        where = folder.with_name(folder.name + f"-try{attempt}") if attempt else folder
        job, reports = run_twins(options, command, where, fault)
        if job["jobs"][1]["counters"]["faults_injected"] == 1:
            if where != folder:
                folder.rename(folder.with_name(folder.name + "-try0"))
                where.rename(folder)
            return fault, job, reports
        after = int(after * .8)
    sys.exit(f"propagation.py: rank {rank} receives no messages of {options.min} bytes or more")


# --- judging ---

def without(compared, differed, number):
    """Bins without so many messages that are never the same. They are the last ones: times that a program gathers at its end."""
    compared, differed = list(compared), list(differed)
    for index in reversed(range(len(differed))):
        part = min(differed[index], number)
        compared[index], differed[index], number = compared[index] - part, differed[index] - part, number - part
    return zip(compared, differed)


def timeline(reports, never_same):
    """[(time, messages compared, differed, [ranks whose first difference it is])] of all ranks, in order of time."""
    steps = []
    for rank, report in reports.items():
        bins, is_first = report["bins"], True
        for index, (compared, differed) in enumerate(without(bins["compared"], bins["differed"], never_same[rank])):
            if compared:
                is_new = bool(differed and is_first)
                steps.append((bins["start"] + index * bins["seconds"], compared, differed, [rank] if is_new else []))
                is_first = is_first and not is_new
    return sorted(steps)


def after_of(fault):
    """How many of its messages the rank has received before the fault: what UCI_FAULT says."""
    return int(fault.rpartition("after=")[2])


def judge(reports, never_same, place):
    """The figures of one run, from the reports of one twin. PLACE is the part of its messages that the rank has received before the fault: that tells
    better than any clock how many follow."""
    steps = timeline(reports, never_same)
    total = sum(compared for _, compared, _, _ in steps)
    slots = [[0.0, 0.0] for _ in range(SLOTS)]
    ranks, progress, wrong = [], 0, sum(differed for _, _, differed, _ in steps)
    for time, compared, differed, first in steps:
        at = progress / total
        ranks += [(at, time, rank) for rank in first]
        fill(slots, at, (progress + compared) / total, compared, differed)
        progress += compared
    end = slots[-LAST:]
    return {"compared": total, "differed": wrong, "tainted_ranks": len(ranks),
            "spread_progress": ranks[-1][0] - ranks[0][0] if ranks else 0, "spread_seconds": ranks[-1][1] - ranks[0][1] if ranks else 0,
            "ranks": [[rank, at] for at, _, rank in ranks], "share_after": min(wrong / max(total * (1 - place), 1), 1),
            "share_end": sum(differed for _, differed in end) / max(sum(compared for compared, _ in end), 1e-9),
            "curve": [differed / compared if compared else 0 for compared, differed in slots],
            "pairs": [[report["rank"], *row] for report in reports.values() for row in report["sources"]]}


def fill(slots, begin, end, compared, differed):
    """Spread a bin's messages evenly over the slots of progress that it covers."""
    first, last = int(begin * SLOTS), min(int(end * SLOTS), SLOTS - 1)
    for slot in range(min(first, last), last + 1):
        part = (min(end, (slot + 1) / SLOTS) - max(begin, slot / SLOTS)) / (end - begin) if end > begin else 1
        slots[slot][0] += compared * part
        slots[slot][1] += differed * part


# --- showing ---

def spans(values, form):
    """'3', or '1 to 4', of numbers."""
    low, high = form.format(min(values)), form.format(max(values))
    return low if low == high else f"{low} to {high}"


def table(results):
    """Markdown: a row for each program and place."""
    yield "| program | fault at | runs | ranks tainted | all of them within | tainted of what follows | of the last tenth | own check |"
    yield "|---|---:|---:|---:|---:|---:|---:|---|"
    groups = {}
    for one in results:
        groups.setdefault((one["program"], one.get("place")), []).append(one)
    for (program, place), runs in groups.items():
        if not runs[0]["deterministic"]:
            yield f"| {program} | | 1 | not deterministic: {runs[0]['never_same']} of {runs[0]['messages']} differ without a fault | | | | |"
            continue
        words = [run["own_word"] or ("output differs" if run["stdout"] != "same" else "same output") for run in runs]
        yield (f"| {program} | {place:.0%} | {len(runs)} | {spans([run['tainted_ranks'] for run in runs], '{}')} | "
               f"{statistics.median(run['spread_progress'] for run in runs):.1%} | {spans([run['share_after'] for run in runs], '{:.1%}')} | "
               f"{spans([run['share_end'] for run in runs], '{:.1%}')} | "
               + ", ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words)) + " |")


WIDTH, HEIGHT, LEFT, TOP, COLUMNS = 240, 120, 46, 34, 3


def draw(results):
    """An SVG: for each program the share of messages that differ, over its progress, a line for each run."""
    programs = list(dict.fromkeys(one["program"] for one in results if one["deterministic"]))
    places = sorted({one["place"] for one in results if one["deterministic"]})
    columns = min(COLUMNS, max(len(programs), 1))
    rows = -(-len(programs) // columns)
    width, height = columns * (WIDTH + LEFT + 14) + 10, rows * (HEIGHT + TOP + 34) + 30
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="11">')
    yield f'<rect width="{width}" height="{height}" fill="white"/>'
    for number, program in enumerate(programs):
        x, y = (number % columns) * (WIDTH + LEFT + 14) + LEFT, (number // columns) * (HEIGHT + TOP + 34) + TOP
        yield from panel(program, [one for one in results if one["program"] == program and one["deterministic"]], places, x, y)
    for number, place in enumerate(places):
        x = LEFT + number * 130
        yield f'<line x1="{x}" y1="{height - 14}" x2="{x + 18}" y2="{height - 14}" stroke="{colour(places, place)}" stroke-width="2"/>'
        yield f'<text x="{x + 24}" y="{height - 10}">fault at {place:.0%}</text>'
    yield "</svg>"


def colour(places, place):
    """Of the lines of a place."""
    return COLOURS[places.index(place) % len(COLOURS)]


def panel(program, runs, places, x, y):
    """The frame of one program and its lines."""
    yield f'<text x="{x}" y="{y - 10}" font-weight="bold">{escape(program)}</text>'
    for part in (0, .5, 1):
        height = y + HEIGHT * (1 - part)
        yield f'<line x1="{x}" y1="{height}" x2="{x + WIDTH}" y2="{height}" stroke="#ddd"/>'
        yield f'<text x="{x - 6}" y="{height + 4}" text-anchor="end" fill="#555">{part:.0%}</text>'
        yield f'<text x="{x + WIDTH * part}" y="{y + HEIGHT + 15}" text-anchor="middle" fill="#555">{part:.0%}</text>'
    for run in runs:
        points = " ".join(f"{x + WIDTH * (slot + .5) / SLOTS:.1f},{y + HEIGHT * (1 - min(share, 1)):.1f}" for slot, share in enumerate(run["curve"]))
        yield f'<polyline points="{points}" fill="none" stroke="{colour(places, run["place"])}" stroke-opacity="0.7" stroke-width="1.3"/>'


# --- command line ---

def numbers(kind):
    """A parser of '0,1,2'."""
    return lambda text: [kind(word) for word in text.split(",")]


def main():
    """See above."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="NAME=COMMAND", help="a program, and what its ranks run")
    parser.add_argument("--build", type=Path, default=Path(__file__).resolve().parents[2] / "build", help="build folder (default build/)")
    parser.add_argument("--folder", type=Path, default=Path("propagation"), help="where everything goes (default propagation/)")
    parser.add_argument("--ranks", type=int, default=4, help="ranks of each twin (default 4)")
    parser.add_argument("--at-ranks", type=numbers(int), default=[1], help="ranks that receive the wrong message (default 1)")
    parser.add_argument("--places", type=numbers(float), default=[.1, .5, .9], help="parts of that rank's messages (default 0.1,0.5,0.9)")
    parser.add_argument("--seeds", type=numbers(int), default=[1, 2, 3], help="which bit (default 1,2,3)")
    parser.add_argument("--min", type=int, default=8, help="no shorter messages (default 8 bytes)")
    parser.add_argument("--apart", action="store_true", help="each twin works in a folder of its own")
    parser.add_argument("--timeout", type=int, default=300, help="seconds for one run (default 300)")
    parser.add_argument("--draw", type=Path, metavar="SVG", help="make this picture of what is in FOLDER/results.json")
    options = parser.parse_args()
    options.folder = options.folder.resolve()
    options.folder.mkdir(parents=True, exist_ok=True)
    kept = options.folder / "results.json"
    results = json.loads(kept.read_text()) if kept.exists() else []
    for name, _, command in (program.partition("=") for program in options.programs):
        results = [one for one in results if one["program"] != name] + measure(options, name, command)
        kept.write_text(json.dumps(results, indent=1) + "\n")
    print("\n".join(table(results)))
    if options.draw:
        options.draw.write_text("\n".join(draw(results)) + "\n")


if __name__ == "__main__":
    main()
