# SPDX-License-Identifier: BSD-3-Clause
"""Messages whose types do not match: nothing was damaged, and what is received is not what was meant."""
from collections import Counter

from jobreport.wording import clean, count, share, were

VERDICT = "types differ"
LIMIT = 10_000  # sentences that are told apart
NEXT_STEPS = [
    "Compare count and datatype of the send and the receive that are named (and their tags: was this message meant for that receive?), or the calls of the "
    "ranks that are named.",
    "Run once more with UCI_ON_SIGNATURE=abort, and with a debugger, to see where the receive is."]


class Mistyped:
    """Records of this kind, added up."""

    def __init__(self):
        self.records = 0
        self.collectives = 0  # of these
        self.sentences = Counter()

    def add(self, record):
        """Count one. @return None, or what is wrong with it."""
        types = record.get("types")
        if not isinstance(types, dict) or not all(isinstance(types.get(name), str) for name in ("sent", "received", "call")):
            return "types that are none"
        self.records += 1
        is_collective = record.get("kind") == "collective"
        self.collectives += is_collective
        sentence = clean(record.get("evidence"), 300) + ("" if is_collective else f", by {clean(types['call'])}") + \
                   (f" on {clean(types['communicator'])}" if isinstance(types.get("communicator"), str) else "")
        if sentence in self.sentences or len(self.sentences) < LIMIT:
            self.sentences[sentence] += 1
        return None

    def merge(self, other):
        """Add up with those of another part."""
        self.records += other.records
        self.collectives += other.collectives
        self.sentences.update(other.sentences)


def describe(messages, collectives):
    """How many there were."""
    parts = [f"{count(messages, 'message')} {were(messages)} received as other types than {'it was' if messages == 1 else 'they were'} sent as."
             ] if messages else []
    if collectives:
        parts.append(f"{count(collectives, 'collective')} did not match between ranks.")
    return " ".join(parts)


def number_of(mistyped, sums):
    """Messages and collectives, as records or counters have them."""
    return max(mistyped.records, sums["signatures_differ"])


def types_finding(mistyped, sums):
    """Findings: what is to be said of types, if anything."""
    number = number_of(mistyped, sums)
    return [("types", describe(number - mistyped.collectives, mistyped.collectives))] if number else []


def types_cause(mistyped, sums):
    """The cause, with its evidence."""
    if not number_of(mistyped, sums):
        return []
    return [{"cause": "types", "text": "the program receives what it has not sent, or its ranks call different things: types do not match",
             "records": mistyped.records, "share": share(mistyped.records, max(mistyped.records, 1)),
             "evidence": [list(pair) for pair in mistyped.sentences.most_common(3)], "kinds_of_evidence": len(mistyped.sentences)}]


def types_steps(mistyped, sums):
    """What to do."""
    return NEXT_STEPS if number_of(mistyped, sums) else []
