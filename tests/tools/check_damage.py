#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Damage files at known places: does uci_check report exactly these?

usage: tests/tools/check_damage.py UCI_CHECK RSH FOLDER [SEED]

FOLDER (made here) gets a few hundred files and a copy of them. Bytes of the copy are changed, files of it are cut, made longer,
removed and added; then `compare` here, `compare` through RSH (a command that starts another one, as ssh does) and `verify` must
name all of it and nothing else. Then a large file: the bytes moved must grow with what is bad and with the logarithm of
what there is. Exit status 1, and what is wrong, if not.
"""
import json
import math
import random
import shutil
import subprocess
import sys
from pathlib import Path

CHUNK = 4096
ARITY = 16


def run(*command, status):
    """JSON of a uci_check that must end with STATUS."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    if done.returncode != status:
        sys.exit(f"{' '.join(map(str, command))}: status {done.returncode}, not {status}\n{done.stdout[-2000:]}{done.stderr}")
    return json.loads(done.stdout)


def ranges_of(chunks, length):
    """Ranges that a set of chunks makes, neighbours joined, in a file of LENGTH bytes."""
    ranges = []
    for chunk in sorted(chunks):
        begin, end = chunk * CHUNK, min((chunk + 1) * CHUNK, length)
        if begin >= end:
            continue
        if ranges and sum(ranges[-1]) == begin:
            ranges[-1][1] += end - begin
        else:
            ranges.append([begin, end - begin])
    return ranges


def make_files(folder, dice):
    """300 files in folders, of all sizes."""
    for number in range(300):
        path = folder / f"folder{number % 7}" / f"file{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(dice.randbytes(dice.choice((0, 1, CHUNK - 1, CHUNK, CHUNK + 1, dice.randrange(200 * CHUNK)))))
    (folder / "name with\nnewline").write_bytes(dice.randbytes(3 * CHUNK))


def change_bytes(path, data, dice):
    """Change some bytes. The expected ranges."""
    chunks = set()
    for _ in range(dice.choice((1, 2, 10))):
        place = dice.randrange(len(data))
        data[place] ^= dice.randrange(1, 256) if place // CHUNK not in chunks else 0  # never back to what it was
        chunks.add(place // CHUNK)
    path.write_bytes(data)
    return ranges_of(chunks, len(data))


def change_length(path, data, dice):
    """Make it longer, or shorter. The expected ranges."""
    before = len(data)
    data = data + dice.randbytes(dice.randrange(1, 5 * CHUNK)) if dice.random() < 0.5 or not data else data[:dice.randrange(before)]
    path.write_bytes(data)
    longer, shorter = max(before, len(data)), min(before, len(data))
    return ranges_of(range(shorter // CHUNK, (longer - 1) // CHUNK + 1), longer)


def damage(folder, dice):
    """Damage a copy. Escaped name -> (kind, ranges)."""
    expected = {}
    for path in dice.sample(sorted(path for path in folder.rglob("*") if path.is_file()), 60):
        name, data = str(path.relative_to(folder)).replace("\n", "\\n"), bytearray(path.read_bytes())
        kind = dice.choice(("bytes", "bytes", "length", "remove", "add"))
        if kind == "bytes" and data:
            expected[name] = ("changed", change_bytes(path, data, dice))
        elif kind == "length":
            expected[name] = ("changed", change_length(path, data, dice))
        elif kind == "remove":
            path.unlink()
            expected[name] = ("missing", None)
        else:
            path.with_name(f"{path.name}+").write_bytes(data)
            expected[f"{name}+"] = ("new", None)
    return expected


def judge(what, report, expected, prefix=""):
    """The report must name what is expected, and nothing else."""
    found = {item["path"].removeprefix(prefix): (item["kind"], item["ranges"]) for item in report["differences"]}
    if found != expected:
        wrong = {name: (expected.get(name), found.get(name)) for name in expected.keys() | found.keys()
                 if expected.get(name) != found.get(name)}
        sys.exit(f"{what}: expected and found differ: {json.dumps(wrong, indent=1)}")
    print(f"{what}: {len(found)} differences, as expected")


def test_folders(tool, rsh, folder, dice):
    """Compare in three ways."""
    good, bad = folder / "good", folder / "bad"
    make_files(good, dice)
    shutil.copytree(good, bad)
    run(tool, "sum", "--json", "-c", CHUNK, "-C", bad, "-o", folder / "manifest", ".", status=0)
    judge("nothing damaged", run(tool, "compare", "--json", "-c", CHUNK, good, bad, status=0), {})
    expected = damage(bad, dice)
    judge("compare", run(tool, "compare", "--json", "-c", CHUNK, good, bad, status=1), expected)
    judge("verify", run(tool, "verify", "--json", "-C", bad, folder / "manifest", status=1), expected, "./")
    far = [tool, "compare", "--json", "-c", CHUNK, "--rsh", rsh, "--remote-program", tool]
    judge("compare over two hosts", run(*far, f"host:{good}", bad, status=1), expected)
    report = run(*far, good, f"host:{bad}", status=1)
    judge("compare over two hosts, the other way round", report, expected)
    print(f"    moved: {report['moved']}")


def test_moved(tool, rsh, folder, dice):
    """Bytes moved, for a file of 65,536 chunks: twice (both sides tell) 8 bytes a node, arity nodes a level."""
    size = 1 << 28
    good, bad = folder / "large", folder / "large.bad"
    good.write_bytes(dice.randbytes(1 << 20) * (size >> 20))
    levels = math.ceil(math.log(size / CHUNK, ARITY))
    for count in (0, 1, 10, 100, 1000):
        shutil.copyfile(good, bad)
        chunks = set(dice.sample(range(size // CHUNK), count))
        with bad.open("r+b") as stream:
            for chunk in chunks:
                stream.seek(chunk * CHUNK + dice.randrange(CHUNK))
                byte = stream.read(1)
                stream.seek(-1, 1)
                stream.write(bytes([byte[0] ^ 1]))
        report = run(tool, "compare", "--json", "-c", CHUNK, "--rsh", rsh, "--remote-program", tool, good, f"host:{bad}",
                     status=1 if count else 0)
        judge(f"{count} bad chunks of {size // CHUNK}", report,
              {".": ("changed", ranges_of(chunks, size))} if count else {})
        moved = report["moved"]["sent"] + report["moved"]["received"]
        limit = 2 * 8 * count * ARITY * levels + 2000
        print(f"    {moved} bytes moved in {report['moved']['rounds']} rounds; at most {limit}; all digests: {2 * 8 * size // CHUNK}")
        if moved > limit:
            sys.exit("more than O(bad log n) bytes")


def main():
    tool, rsh, folder = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
    seed = int(sys.argv[4]) if len(sys.argv) > 4 else random.randrange(1 << 32)
    print(f"seed {seed}")
    folder.mkdir()
    test_folders(tool, rsh, folder, random.Random(seed))
    test_moved(tool, rsh, folder, random.Random(seed))


main()
