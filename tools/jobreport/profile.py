# SPDX-License-Identifier: BSD-3-Clause
"""Where a program's time in MPI goes: by place in its source, by rank, and who sends how much to whom."""
from statistics import mean

from jobreport.wording import clean

ROWS, PAIRS = 20, 10
PATHS = ("direct", "get", "bounce")


def build_profile(processes, places, sums, lost):
    """What the page and the text show; None if no call was seen."""
    rows, pairs = {}, []
    for process in processes:
        for place in calls_of(process):
            row = rows.setdefault((place.call, places.words(place.stack)), {"ranks": set(), "count": 0, "seconds": 0, "longest": 0, "bytes": 0})
            row["ranks"].add(process.rank)
            row["count"] += place.count
            row["seconds"] += place.time
            row["longest"] = max(row["longest"], place.longest)
            row["bytes"] += place.bytes
        pairs += [{"sender": process.rank, "receiver": peer, "messages": messages, "bytes": number}
                  for peer, (messages, number) in process.peers.items() if messages]
    if not rows:
        return None
    in_mpi = {process.rank: sum(place.time for place in calls_of(process)) for process in processes}
    spans = {process.rank: span_of(process) for process in processes}
    total = sum(in_mpi.values())
    shares = [min(in_mpi[rank] / spans[rank], 1) for rank in in_mpi if spans[rank] > 0]
    ordered = sorted(rows.items(), key=lambda item: -item[1]["seconds"])
    return {"ranks": len(processes), "seconds": total, "places": len(rows),
            "share": [min(shares), mean(shares), max(shares)] if shares else None,
            "rows": [{"call": clean(call), "place": place, "ranks": len(row["ranks"]), "count": row["count"], "seconds": row["seconds"],
                      "share": row["seconds"] / total if total else 0, "longest": row["longest"], "bytes": row["bytes"]}
                     for (call, place), row in ordered[:ROWS]],
            "pairs": sorted(pairs, key=lambda pair: -pair["bytes"])[:PAIRS],
            "paths": [{"path": name, "messages": messages, "bytes": number} for name, messages, number in paths_of(sums) if messages],
            "lost": lost}


def calls_of(process):
    """Places, but that of MPI_Finalize, in which all wait for the last one, and those that are no more than named."""
    return [place for place in process.places.values() if place.call != "MPI_Finalize" and place.count]


def paths_of(sums):
    """(path, messages, bytes) for each way that messages took; bytes are None where a library has not counted them."""
    messages = split(sums["eager_messages"], sums, "messages")
    number = split(sums["bytes_sent"] - sums["rendezvous_bytes"], sums, "bytes") if "rendezvous_bytes" in sums else [None] * len(messages)
    return list(zip(("in one frame", *PATHS, "stream"), messages, number))


def split(frames, sums, what):
    """By path: those in one frame, and of the others what streams is the rest."""
    large = [sums[f"{path}_{what}"] for path in PATHS]
    return [max(frames, 0), *large, max(sums[f"rendezvous_{what}"] - sum(large), 0)]


def span_of(process):
    """Seconds from the end of MPI_Init to MPI_Finalize, or to what is last known."""
    last = process.ended or max((thread.since for thread in process.threads), default=process.begun)
    return last - process.begun
