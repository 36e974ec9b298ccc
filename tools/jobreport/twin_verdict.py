# SPDX-License-Identifier: BSD-3-Clause
"""What is to be said of the twins of a run: are they the same, who computed something else, which message showed it first, and how
far it went. Two twins can tell that one of them is wrong; three, which."""
from collections import Counter

from jobreport.twins import tainted_ranks
from jobreport.wording import count, instant, listing, share, size

TAINTED = 4096  # ranks that are listed
ORIGINS = 5     # processes whose messages were wrong

WORDS = {2: "two", 3: "three"}
LEVELS = {"differs": "differs", "corrected": "corrected", "same": "clean", "same in part": "partly",
          "not deterministic": "unknown", "not compared": "unknown"}


def twins_model(twins, differences):
    """For JSON; None if nothing is of twins."""
    if not twins.processes and not differences.records:
        return None
    messages = differences.in_order()
    of = twins.of() or max((max(message.times) + 1 for message in messages), default=2)
    sums = twins.sums()
    first = messages[0] if messages else None
    level = level_of(twins, sums, messages)
    guilty = culprits(twins, first, of) if first and level in ("differs", "corrected") else []
    return {"of": of, "mode": next((process.mode for process in twins.processes.values()), "unknown"), "level": level,
            "sentence": sentence_of(twins, sums, first, level, of, guilty), "culprits": guilty,
            "first": show_message(first, twins) if first else None, "sums": dict(sums), "minority": twins.minority(),
            "ranks": twins.ranks(), "processes": [sum(process.twin == twin for process in twins.processes.values()) for twin in range(of)],
            "messages": len(messages), "records": differences.records, "records_left_out": differences.left_out,
            "origins": origins(messages, twins), "tainted": tainted_model(messages), "notes": list(notes(twins, sums, messages, of, level)),
            "next": list(next_steps(level, of, guilty))}


def level_of(twins, sums, messages):
    """The verdict in a word."""
    if any(process.verdict == "not deterministic" for process in twins.processes.values()):
        return "not deterministic"
    differed = max(sums["differed"], len(messages))
    if differed:
        corrected = max(sums["corrected"], sum(message.is_corrected for message in messages))
        return "corrected" if corrected >= differed and not sums["split"] else "differs"
    if not sums["compared"]:
        return "not compared"
    return "same in part" if sums["no_room"] else "same"


def sentence_of(twins, sums, first, level, of, guilty):
    """The verdict in a sentence."""
    what = WORDS.get(of, count(of))
    differed, compared = max(sums["differed"], 1), sums["compared"]
    scale = f"{count(differed)} of {count(compared, 'message')}" if compared >= differed else count(differed, "message")
    if level == "not compared":
        return "The twins have compared nothing: see the warnings of their processes." if twins.processes else \
            "The twins have left no report: whether they are the same is not known."
    if level == "same":
        return f"The {what} twins are the same in all {count(compared, 'message')} that they have compared."
    if level == "same in part":
        return (f"The {what} twins are the same in the {count(compared, 'message')} that they have compared; "
                f"{count(sums['no_room'])} had no room (UCI_TWINS_LOG).")
    if level == "not deterministic":
        channel = f"; the first to differ was {name_message(first)}" if first else ""
        return (f"The program is not deterministic, so that its {what} runs can't be compared: their first messages differ already{channel}. "
                "This is no sign of a fault.")
    if not guilty:
        return f"The {what} twins differ: {scale} {'was' if differed == 1 else 'were'} not the same, and no record tells which."
    fate = "; all were corrected" if level == "corrected" else ""
    if len(guilty) > 1:
        names = " or ".join(name_process(one) for one in guilty)
        return (f"The {what} twins differ in {scale}{fate}. It began with {name_message(first)}: one of {names} has computed something wrong, "
                f"and {'two twins' if of == 2 else 'twins that all differ'} can't tell which.")
    return (f"R{name_process(guilty[0])[1:]} has computed something wrong, by {count(of - 1)} votes to 1: {scale} differed{fate}. "
            f"It began with {name_message(first)}.")


def culprits(twins, first, of):
    """The processes one of which must have computed the first message wrong: one, if there was a vote."""
    suspects = [first.wrong_twin] if first.wrong_twin is not None else list(range(of))
    return [describe_process(twins, twin, first.sender, first.senders.get(twin)) for twin in suspects]


def describe_process(twins, twin, rank, end=None):
    """All that is known of a process, from its report, else from a record of who received from it."""
    process = twins.processes.get((twin, rank))
    host, pid, core = end or ("unknown", None, None)
    if process is not None:
        host, pid, core = process.host, process.pid, process.core if core is None else core
    return {"twin": twin, "rank": rank, "host": host, "pid": pid, "core": core, "cores": process.cores if process else ""}


def name_process(one):
    """'rank 3 of twin 1 (node2, process 4711, cores 4-7)'"""
    place = [one["host"]] + ([f"process {one['pid']}"] if one["pid"] is not None else [])
    if one["cores"]:
        place.append(f"cores {one['cores']}" + (f", last seen on {one['core']}" if one["core"] is not None and one["cores"] != str(one["core"]) else ""))
    elif one["core"] is not None:
        place.append(f"core {one['core']}")
    return f"rank {one['rank']} of twin {one['twin']} ({', '.join(place)})"


def name_message(message):
    """'message 17 from rank 2 to rank 3 (MPI tag 5, context 0, 1,024 bytes)'"""
    mpi = message.mpi or {}
    about = []
    if isinstance(mpi.get("collective"), str):
        about.append(mpi["collective"][:40] if mpi["collective"].isprintable() else "collective")
    elif type(mpi.get("tag")) is int:
        about.append(f"MPI tag {mpi['tag']}")
    else:
        about.append(f"tag {message.tag if message.tag.isprintable() else 'unreadable'}")
    if type(mpi.get("context")) is int:
        about.append(f"context {mpi['context']}")
    if message.length is not None:
        about.append(size(message.length))
    return f"message {count(message.number)} from rank {message.sender} to rank {message.receiver} ({', '.join(about)})"


def seconds_after_start(twins, message):
    """How long its receiver had run, or None."""
    for twin, time in sorted(message.times.items()):
        process = twins.processes.get((twin, message.receiver))
        if process is not None and process.start is not None and time >= process.start:
            return round(time - process.start, 6)
    return None


def show_message(message, twins):
    """The first message that differed."""
    return {"text": name_message(message), "sender": message.sender, "receiver": message.receiver, "tag": message.tag, "number": message.number,
            "length": message.length, "values": message.values, "wrong_twin": message.wrong_twin, "corrected": message.is_corrected,
            "time": instant(message.time()), "seconds_after_start": seconds_after_start(twins, message)}


def origins(messages, twins):
    """The processes that sent what the votes found wrong: [twin, rank, messages, host], by number. Most only pass on what they got."""
    found = Counter((message.wrong_twin, message.sender) for message in messages if message.wrong_twin is not None)
    return [[twin, rank, number, describe_process(twins, twin, rank)["host"]] for (twin, rank), number in found.most_common(ORIGINS)]


def tainted_model(messages):
    """Which rank had to do with wrong messages, and how long after the first of them."""
    ranks = tainted_ranks(messages)
    return {"count": len(ranks), "ranks": [[rank, round(time - ranks[0][1], 6)] for rank, time in ranks[:TAINTED]]}


def notes(twins, sums, messages, of, level):
    """What limits this."""
    missing = [twin for twin in range(of) if twins.processes and not any(process.twin == twin for process in twins.processes.values())]
    if missing:
        yield f"No process of twin {listing(map(str, missing))} has left a report."
    states = Counter((partner, state) for partner, state, _ in {(*pair, process.rank) for process in twins.processes.values()
                                                                for pair in process.partners} if state in ("lost", "left behind", "never came"))
    for (twin, state), number in sorted(states.items()):
        yield f"{count(number, 'rank')} went on without twin {twin}: " + {
            "lost": "it had gone.", "left behind": "it was too slow (UCI_TWINS_LOG).", "never came": "it did not come (UCI_TWINS_WAIT)."}[state]
    if level in ("differs", "corrected") and len({message.wrong_twin for message in messages if message.wrong_twin is not None}) > 1:
        yield "Not always the same twin was in the minority: there was more than one fault."
    if sums["split"]:
        yield f"In {count(sums['split'], 'message')} there was no majority."
    for name, text in (("unlike", "could not be compared: their checksums were of different forms (UCI_DIGEST, UCI_CHUNK_SIZE, paths)."),
                       ("alone", "had no counterpart in another twin: it had stopped, or sent other messages."),
                       ("choices_given_up", "choices for receives from anybody could not be followed.")):
        if sums[name]:
            yield f"{count(sums[name], 'message') if name != 'choices_given_up' else count(sums[name])} {text}"
    if sums["differed"] > len(messages):
        yield (f"Of {count(sums['differed'])} messages that differed {count(len(messages))} are recorded: each process records its first 100. Counts "
               "and pictures are of all.")


def next_steps(level, of, guilty):
    """What to do."""
    if level == "not deterministic":
        yield "Look for random seeds, for the time of day, and for what depends on the order in which messages arrive: docs/twins.md of UCI tells more."
        yield "UCI_TWINS_TIME=on lets all twins get the first one's answers when they ask for the time."
    if level in ("differs", "corrected") and of == 2:
        yield "Run it with three twins, which can vote: uci_run --twins 3."
    if level == "differs":
        yield "Do not use the results of a twin that is wrong" + (" (its number is above)." if len(guilty) == 1 else ".")
    if len(guilty) == 1:
        yield f"Take host {guilty[0]['host']} from service and test it; if the fault is always on the same core, it is that core."


def share_text(model):
    """'12 of 1,000 (1 %)'"""
    return f"{count(model['sums']['differed'])} of {count(model['sums']['compared'])} ({share(model['sums']['differed'], model['sums']['compared'])})"
