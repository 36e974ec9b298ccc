# SPDX-License-Identifier: BSD-3-Clause
"""What uci_run says at the end of a job that was run several times at once."""
from jobreport.wording import count, listing

from uci_outputs import compare_outputs, describe
from uci_summary import Summary

TAINTED = 6  # ranks that are named


class TwinSummary(Summary):
    """What all twins have left, judged together, and beside it each of them."""

    def __init__(self, folder, twins):
        super().__init__(folder)
        self.statuses, self.twins = self.job.ending.statuses, self.job.compared
        self.jobs = [Summary(folder / f"twin.{twin}") for twin in range(twins)]
        self.outputs = [compare_outputs(folder / "twin.0.stdout", folder / f"twin.{twin}.stdout") for twin in range(1, twins)]

    def record(self, commands):
        """What --json writes."""
        return {"uci_run": 1, "folder": str(self.folder), "level": self.job.verdict["level"], "verdict": self.job.verdict["sentence"],
                "exit_code": self.exit_code(), "job_status": self.status, "statuses": self.statuses, "twins": self.twins,
                "stdout": [{"twin": twin, "state": state, "where": where} for twin, (state, where) in enumerate(self.outputs, start=1)],
                "files_unreadable": self.unreadable(), "jobs": [job.record(command) for job, command in zip(self.jobs, commands)]}

    def lines(self):
        """(name, text) of what there is to say."""
        yield from self.verdict_lines()
        yield "twins", f"{len(self.statuses)}, exit status {', '.join(map(str, self.statuses))}"
        if self.twins:
            yield from self._twin_lines()
        for number, (state, where) in enumerate(self.outputs, start=1):
            yield "stdout", describe(state, where, number)
        for twin, one in enumerate(self.jobs):
            sums = one.job.counters.sums
            yield f"twin {twin}", (f"{count(one.job.ranks, 'rank')}; {count(sums['messages_sent'])} messages sent, "
                                   f"{count(sums['messages_received'])} received")
            for name, text in one.troubles():
                yield "", f"{name}: {text}"

    def _twin_lines(self):
        model, sums = self.twins, self.twins["sums"]
        yield "compared", (f"{count(sums['compared'], 'message')}: {count(sums['differed'])} differed, {count(sums['corrected'])} were corrected"
                           + "".join(f"; twin {twin} was in the minority in {count(number)}" for twin, number in enumerate(model["minority"])
                                     if number))
        if model["first"]:
            after = model["first"]["seconds_after_start"]
            yield "first", f"{model['first']['text']}, {model['first']['time']}" + (f", {after:.3f} s after its start" if after is not None else "")
        if model["origins"] and model["level"] != "not deterministic":
            yield "sent by", "; ".join(f"rank {rank} of twin {twin} ({host}): {count(number)}" for twin, rank, number, host in model["origins"])
        tainted = model["tainted"]["ranks"]
        if tainted and model["level"] != "not deterministic":
            yield "spread", f"{count(model['tainted']['count'])} of {count(model['ranks'])} ranks: " + listing(
                [f"rank {rank} {'first' if index == 0 else f'after {seconds:.3f} s'}" for index, (rank, seconds) in enumerate(tainted)], TAINTED)
        for text in model["notes"] + model["next"]:
            yield "note", text
