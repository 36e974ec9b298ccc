# SPDX-License-Identifier: BSD-3-Clause
"""What uci_run says at the end of a job that was run several times at once."""
from jobreport.reading import find_files
from jobreport.tally import Tally
from jobreport.twin_verdict import twins_model
from jobreport.twins import read_twins
from jobreport.wording import count, listing

from uci_outputs import compare_outputs, describe
from uci_summary import EXIT_CHANGED, EXIT_CORRECTED, EXIT_DAMAGED, EXIT_NO_UCI, EXIT_REPAIRED, EXIT_TWINS_DIFFER, Summary

TAINTED = 6  # ranks that are named


class TwinSummary:
    """What all twins have left, judged."""

    def __init__(self, folder, ranks, statuses, is_required):
        self.folder, self.statuses, self.is_required = folder, statuses, is_required
        self.jobs = [Summary(folder / f"twin.{twin}", ranks, status, is_required) for twin, status in enumerate(statuses)]
        self.outputs = [compare_outputs(folder / "twin.0.stdout", folder / f"twin.{twin}.stdout") for twin in range(1, len(statuses))]
        found = Tally(0)
        for job in self.jobs:
            found.differences.merge(job.job.records.differences)
        reports = read_twins(find_files([folder]).twins)
        self.unreadable = [f"{path} ({why})" for path, why in reports.complaints]
        self.twins = twins_model(reports, found.differences)
        self.level = self.twins["level"] if self.twins else "not compared"

    def exit_code(self):
        """See EPILOG of uci_run."""
        codes = [job.exit_code() for job in self.jobs]
        has_failed = any(self.statuses)
        for code, is_so in ((EXIT_DAMAGED, EXIT_DAMAGED in codes),
                            (EXIT_NO_UCI, EXIT_NO_UCI in codes or (self.is_required and self.level == "not compared" and not has_failed)),
                            (EXIT_TWINS_DIFFER, self.level == "differs"), (EXIT_REPAIRED, EXIT_REPAIRED in codes),
                            (EXIT_CORRECTED, self.level == "corrected"), (EXIT_CHANGED, EXIT_CHANGED in codes)):
            if is_so:
                return code
        return next((status for status in self.statuses if status), 0)

    def verdict(self):
        """What the comparison has found, then what became of messages on their way."""
        text = self.twins["sentence"] if self.twins else "The twins have compared nothing: no process has left a report of it."
        failed = [twin for twin, status in enumerate(self.statuses) if status]
        if failed:
            text += f" {'Twin' if len(failed) == 1 else 'Twins'} {listing(map(str, failed))} failed."
        return text

    def record(self, folder, commands):
        """What --json writes."""
        return {"uci_run": 1, "folder": str(folder), "verdict": self.verdict(), "exit_code": self.exit_code(),
                "job_status": next((status for status in self.statuses if status), 0), "statuses": self.statuses, "twins": self.twins,
                "stdout": [{"twin": twin, "state": state, "where": where} for twin, (state, where) in enumerate(self.outputs, start=1)],
                "files_unreadable": self.unreadable,
                "jobs": [job.record(folder / f"twin.{twin}", command) for twin, (job, command) in enumerate(zip(self.jobs, commands))]}

    def lines(self):
        """(name, text) of what there is to say."""
        yield "verdict", self.verdict()
        yield "twins", f"{len(self.statuses)}, exit status {', '.join(map(str, self.statuses))}"
        if self.twins:
            yield from self._twin_lines()
        for number, (state, where) in enumerate(self.outputs, start=1):
            yield "stdout", describe(state, where, number)
        for twin, job in enumerate(self.jobs):
            sums = job.job.sums
            yield f"twin {twin}", (f"{count(job.ranks, 'rank')}, {job.verdict()}; {count(sums['messages_sent'])} messages sent, "
                                   f"{count(sums['messages_received'])} received")
            for name, text in job.troubles():
                yield "", f"{name}: {text}"
        if self.unreadable:
            yield "unreadable", listing(self.unreadable)

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
