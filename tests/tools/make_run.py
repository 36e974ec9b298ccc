#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""
Write the folder of a job that never was: records (schema 1 or 2), statistics, damaged lines, hostile texts.

usage: make_run.py FOLDER [options]; the same options give the same files.
"""
import argparse
import json
import random
from pathlib import Path

BEGIN = 1795254255.0
HOSTILE = "<script>document.title='owned'</script>\"'&<img src=x onerror=alert(1)>\u202e\x1b[31m"
STACK = ["/usr/lib/libmpi.so.40+0x1234", "/home/user/solver+0x4f21", "/home/user/solver+0x1180"]


def record_of(number, options, rng):
    """One record, of the shape and by the habits that the options ask for."""
    rank, peer = (rng.randrange(options.ranks), rng.randrange(options.ranks)) if options.spread or rng.random() < .03 else \
        (options.bad % options.ranks, rng.randrange(options.ranks))
    if rank == peer:
        peer = (rank + 1) % options.ranks
    length = rng.choice((1000, 65536, 1 << 20, 4 << 20))
    chunk = rng.randrange(max(length // 8192, 1))
    offset, first = chunk * 8192, rng.randrange(min(length, 8192) - 32)
    good = rng.randbytes(64)
    bad = bytearray(good)
    bad[20] ^= 1 << 3
    kind = rng.random()
    verdict = "not repaired" if kind < options.lost else "source changed" if kind < options.lost + options.changed else "repaired"
    damage = rng.choices(("bit flip", "zeros", "other content"), (8, 1, 1))[0]
    record = {"verdict": verdict, "reason": "every way to fetch it again brought damaged bytes" if verdict == "not repaired" else "",
              "host": host_of(rank, options), "rank": rank, "peer_host": host_of(peer, options), "peer_rank": peer,
              "peer_pid": 1000 + peer, "tag": "0x0000050000100000", "seq": number, "kind": "rendezvous" if length > 1000 else "eager",
              "length": length, "chunk": chunk, "chunk_size": 8192, "chunk_length": 8192, "offset": offset, "first": first,
              "last": first, "wrong_bytes": 1, "wrong_bits": 1, "class": damage, "bad": bad.hex(), "good": good.hex(),
              "healed_by": "get", "gets_wrong": 0, "microseconds": 570, "digest": "xxh3", "transports": "rc_mlx5",
              "ucx_version": "1.18.1", "rdma_errors": {"mlx5_0:1": {"symbol_error": 3}}}
    if options.schema >= 2:
        cause = "source_changed" if verdict == "source changed" else "transport" if damage == "bit flip" else "ucx"
        if cause == "source_changed" and number % 2:  # told by the sender: UCI_CHECK_SOURCES
            record |= {"role": "sender", "rank": peer, "host": record["peer_host"], "peer_rank": rank, "peer_host": record["host"]}
        record |= {"schema": options.schema, "time": BEGIN + options.seconds * rng.random() ** 2, "monotonic_ns": number, "job": "slurm:4711",
                   "cause": cause, "evidence": {"transport": "the sender's copy is intact, one bit differs, mlx5_0:1 counted 3 symbol errors",
                                                "ucx": "get brought other bytes than the sender had digested, copy the right ones",
                                                "source_changed": "the sender's buffer has another digest now"}[cause],
                   "pid": 1000 + rank, "core": rank % 64, "peer_core": peer % 64, "path": rng.choice(("get", "stream", "frame")),
                   "carrier": None, "device": "mlx5_0", "port": 1, "mpi": {"library": "Open MPI", "tag": 5, "source": peer, "context": 0,
                                                                           "collective": rng.choice((None, "allreduce"))},
                   "hex_offset": offset + first - 20, "ranges": [[chunk, offset + first, offset + first, damage, 1]], "ranges_left_out": 0,
                   "attempts": 1, "stack": STACK, "capture": None}
    return record


def host_of(rank, options):
    """Ranks fill one host after the other."""
    return HOSTILE if options.hostile and rank == 1 else f"node{rank // options.per_host + 1:03}"


def write_records(folder, options, rng):
    """Records into a file of each receiver's host, as processes append them."""
    files = {}
    for number in range(options.records):
        record = record_of(number, options, rng)
        if options.hostile and number % 3 == 0:
            record |= {"class": HOSTILE, "evidence": HOSTILE, "transports": HOSTILE, "stack": [HOSTILE, "-e/etc/passwd+0x1"], "device": HOSTILE}
        name = f"events.n{record['rank'] // options.per_host + 1:03}.{1000 + record['rank'] // options.per_host}.jsonl"
        files.setdefault(name, []).append(json.dumps(record))
        if len(files[name]) >= 1000:
            append(folder / name, files.pop(name))
    for name, lines in files.items():
        append(folder / name, lines)


def append(path, lines):
    with open(path, "a", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def write_statistics(folder, options):
    """A file of each rank, but for some."""
    damaged = options.records // max(options.ranks, 1)
    changed, lost = (round(damaged * part) for part in (options.changed, options.lost))
    for rank in range(options.ranks):
        if rank not in options.without:
            counters = {"version": "0.1.0", "ucx_version": "1.18.1", "host": host_of(rank, options), "digest": "xxh3", "mode": "repair",
                        "pid": 1000 + rank, "rank": rank, "messages_sent": 1000 + damaged, "messages_received": 1000 + damaged,
                        "bytes_sent": 1 << 30, "bytes_received": 1 << 30, "passthrough_messages": options.unverified,
                        **{f"passthrough_{way}": int(number) for way, number in (text.split("=") for text in options.passed)},
                        "chunks_verified": 131072, "mismatched_chunks": damaged, "repaired_chunks": damaged - changed - lost, "unrepaired_chunks": lost,
                        "source_changed": changed, "mismatched_headers": 0, "mismatched_control": 0, "faults_injected": 0}
            (folder / f"stats.n.{1000 + rank}.json").write_text(json.dumps(counters, indent=2), encoding="utf-8")


DAMAGED = [b'{"verdict": "repaired", "host": "cut of', b"\xff\xfe\x00binary\x00", b"[" * 100000, b"[1, 2]", b'{"no": "verdict"}',
           b'{"verdict": "repaired", "rank": "three"}', b'{"verdict": "repaired", "rank": 0, "time": NaN}',
           b'{"verdict": "repaired", "wrong_bytes": -1}', b'{"verdict": "repaired", "schema": "two"}', b'{"verdict": "repaired", "time": 1e999}',
           b'{"verdict": "repaired", "seq": ' + b"9" * 5000 + b"}", b'{"verdict": ["repaired"]}']


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--records", type=int, default=0)
    parser.add_argument("--ranks", type=int, default=4)
    parser.add_argument("--per-host", type=int, default=2)
    parser.add_argument("--schema", type=int, default=2)
    parser.add_argument("--bad", type=int, default=2, help="the rank that receives nearly all damage")
    parser.add_argument("--spread", action="store_true", help="damage anywhere")
    parser.add_argument("--lost", type=float, default=0, help="part that is not repaired")
    parser.add_argument("--changed", type=float, default=0, help="part that the program has changed")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--hostile", action="store_true", help="texts that would be markup")
    parser.add_argument("--damaged", action="store_true", help=f"with {len(DAMAGED)} lines that are no records")
    parser.add_argument("--no-statistics", action="store_true")
    parser.add_argument("--without", type=int, nargs="*", default=[], help="ranks without statistics")
    parser.add_argument("--unverified", type=int, default=0, help="messages that each rank passed through, as a library of before counts")
    parser.add_argument("--passed", nargs="*", default=[], metavar="WAY=NUMBER", help="what each rank passed through: put=12 bytes=1000")
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    write_records(options.folder, options, random.Random(1))
    if not options.no_statistics:
        write_statistics(options.folder, options)
    if options.damaged:
        (options.folder / "events.damaged.1.jsonl").write_bytes(b"\n".join(DAMAGED))


if __name__ == "__main__":
    main()
