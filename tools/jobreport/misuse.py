# SPDX-License-Identifier: BSD-3-Clause
"""What a program does that MPI forbids, as its processes have noted it (UCI_CHECK_CALLS; mpi/pending.h): in words, with places in its source."""
from collections import Counter

from jobreport.calls import FOREIGN, NONE
from jobreport.wording import clean, count, listing, ranks_of, size

LIMIT = 50  # sentences
NEXT_STEPS = {
    "overlap": "Give operations that are under way at the same time buffers of their own, or complete the first before the second begins.",
    "changed": "Look for a store to that buffer between the send and its MPI_Wait: the receiver may get the old or the new value, or some of both.",
    "unfinished": "Complete each request by MPI_Wait or MPI_Test: until then nothing says that its message has been sent or received.",
    "truncate": "Make the receive as large as the message, or look whether it has taken one that was meant for another receive (tag, source).",
    "error": "Look at the call that is named.",
}
VERBS = {"receive": "receives into", "send": "sends from", "write": "writes", "read": "reads"}  # the last two: collectives


class Misuse:
    """Of all processes: what is wrong at which places, in which ranks, and of one of these to whom the message was."""

    def __init__(self, processes, places):
        self.processes, self.places = {process.rank: process for process in processes}, places
        self.found, self.kinds = {}, Counter()
        self.kept = {}  # call at a place: (how many in one rank at most, ranks)
        for process in processes:
            for finding in process.findings:
                self._add(process, finding)

    def _add(self, process, finding):
        if finding["finding"] == "kept":
            self._keep(process, finding)
            return
        kind = "truncate" if finding.get("class") == "truncate" else finding["finding"]
        say = {"overlap": self._overlap, "changed": self._changed, "unfinished": self._unfinished, "truncate": self._truncated,
               "error": self._error}.get(kind)
        if say is None:
            return
        text, example = say(process, finding)
        if text not in self.found:
            self.kinds[kind] += 1
            self.found[text] = (example, set())
        self.found[text][1].add(process.rank)

    def sentences(self):
        """(text, 'ranks 0-3'), those of most ranks first."""
        found = sorted(self.found.items(), key=lambda item: -len(item[1][1]))
        return [(f"{text}; {'for instance ' if len(ranks) > 1 else ''}{example}" if example else text, ranks_of(ranks))
                for text, (example, ranks) in found[:LIMIT]]

    def _keep(self, process, finding):
        place = self.places.at(process, finding.get("place"))
        most, ranks = self.kept.get(place, (0, set()))
        self.kept[place] = (max(most, number_of(finding, "count")), ranks | {process.rank})

    def left(self):
        """The same of what was made and not freed, which nobody forbids: most first."""
        found = sorted(self.kept.items(), key=lambda item: -item[1][0])
        return [(f"{count(most)} made by {place} {'is' if most == 1 else 'are'} not freed at the end", ranks_of(ranks)) for place, (most, ranks) in found[:LIMIT]]

    def finding(self):
        """[(level, sentence)] for the verdict."""
        if not self.found:
            return []
        names = {"overlap": "buffers overlap", "changed": "buffers of sends are changed before they are complete",
                 "unfinished": "requests are never completed", "truncate": "messages are longer than their receives", "error": "MPI returns errors"}
        return [("misuse", f"The program breaks rules of MPI's at {count(len(self.found), 'place')}: {listing(names[kind] for kind in self.kinds)}.")]

    def steps(self):
        """What to do."""
        return [NEXT_STEPS[kind] for kind in self.kinds]

    def _overlap(self, process, finding):
        verb, other = (VERBS.get(str(finding.get(name)), "uses") for name in ("way", "other_way"))
        here, there = (self.places.at(process, finding.get(name)) for name in ("place", "other"))
        bytes_ = size(number_of(finding, "bytes"))
        if finding.get("place") == finding.get("other") and finding.get("way") != finding.get("other_way"):
            return f"{here} {verb} and {other} the same {bytes_}", ""
        return f"{here} {verb} {bytes_} that {there} still {other}", ""

    def _changed(self, process, finding):
        return (f"the buffer of {self.places.at(process, finding.get('place'))} ({size(number_of(finding, 'bytes'))}) was changed by the program before the "
                "send was complete", self._whose(process, finding))

    def _unfinished(self, process, finding):
        return (f"the request of {self.places.at(process, finding.get('place'))} was never completed",
                "" if finding.get("way") == "collective" else self._whose(process, finding))

    def _error(self, process, finding):
        return f"{self.places.at(process, finding.get('place'))} fails: {' '.join(clean(finding.get('error'), 300).split())}", ""

    def _truncated(self, process, finding):
        room = finding.get("bytes")
        text = f"a message was longer than its receive, {self.places.at(process, finding.get('place'))}"
        if type(room) is not int:
            return text, ""
        return f"{text}, which has room for {size(room)}", self._whose(process, finding) + self._sender_of(process, finding, room)

    def _sender_of(self, process, finding, room):
        """The last message that does not fit, among those that its sender remembers."""
        peer, tag = finding.get("peer"), finding.get("tag")
        peer = peer if type(peer) is int else None
        for sender in self.processes.values() if peer in (NONE, None) else filter(None, [self.processes.get(peer)]):
            for sent in reversed(sender.sends):
                if sent.peer == process.rank and tag in (NONE, None, sent.tag) and sent.bytes > room:
                    return f": rank {sender.rank} has sent {size(sent.bytes)} with tag {sent.tag} by {self.places.at(sender, sent.place)}"
        return ""

    @staticmethod
    def _whose(process, finding):
        """'rank 0 from rank 1, tag 7'"""
        peer, tag = number_of(finding, "peer"), number_of(finding, "tag")
        preposition = "from" if finding.get("way", "receive") == "receive" else "to"
        name = "any rank" if peer == NONE else "a rank of another job" if peer == FOREIGN else f"rank {peer}"
        return f"rank {process.rank} {preposition} {name}, {'any tag' if tag == NONE else f'tag {tag}'}"


def number_of(finding, name):
    """A number, whatever it is."""
    value = finding.get(name)
    return value if type(value) is int else 0
