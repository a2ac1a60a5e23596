"""What a measurement would do, what it left, and the run that a lineage becomes with no GPU, as documents."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profiler.bundles.run import Run
from profiler.collect.forecast import Forecast
from profiler.collect.plan import BUILD_S
from profiler.collect.provenance import overhead
from profiler.collect.summary import RunSummary
from profiler.collect.without_gpu import Dissection
from profiler.documents.blocks import Block, Line, Notes, Table
from profiler.documents.document import Document
from profiler.errors import Exit

_NAMED = 8  # jobs in a line


@dataclass(frozen=True, repr=False)
class ForecastDocument(Document):
    """The jobs of a collection before anything runs; their times are estimates."""

    forecast: Forecast

    title = "Plan of a collection"
    columns = ("stage", "workload", "versions", "seconds", "ended_s")

    @property
    def sentences(self) -> Sequence[str]:
        """How long it takes, and what a budget leaves out."""
        jobs, left_out = len(self.forecast.jobs), self.forecast.left_out
        sentence = f"about {self.forecast.seconds / 60:.1f} min"
        if left_out:
            budget = self.forecast.budget_s
            by = f" by --budget {budget:g} s" if budget else ""
            sentence += f"; {left_out} of {jobs} jobs are left out{by}"
        return (sentence,)

    def rows(self) -> list[tuple[object, ...]]:
        """A row a job; `ended_s` is None for one that the budget leaves out."""
        return [
            (job.stage, job.workload, ", ".join(job.versions), job.seconds, ended)
            for job, ended in self.forecast.jobs
        ]

    def _content(self) -> dict[str, object]:
        """The jobs in their order, with the second at which each has ended."""
        return {
            "gpu": self.forecast.gpu,
            "evidence": "estimate",
            "build_s": BUILD_S,
            "budget_s": self.forecast.budget_s,
            "jobs": [
                {
                    "stage": job.stage,
                    "workload": job.workload,
                    "versions": list(job.versions),
                    "seconds": round(job.seconds, 1),
                    "ended_s": None if ended is None else round(ended, 1),
                }
                for job, ended in self.forecast.jobs
            ],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a stage and workload, and when all of it has ended."""
        forecast = self.forecast
        gpu = forecast.gpu or "no GPU here: the plan is for a GPU that runs all of it"
        yield Line(f"{gpu}; checks side by side: {forecast.parallel_checks}; estimates, corrected as it runs")
        rows = [("build", f"{forecast.builds} versions", "", "", f"{BUILD_S:.0f}")]
        for group in forecast.groups():
            first, _ = group[0]
            ended = [at for _, at in group if at is not None]
            cut = "" if len(ended) == len(group) else f"{len(group) - len(ended)} left out"
            last = f"{max(ended):.0f}" if ended else "–"
            rows.append((first.stage, first.workload, str(len(group)), cut, last))
        yield Table(("stage", "workload", "jobs", "budget", "ended after s"), rows, right=(2, 4))
        yield from map(Line, self.sentences)


@dataclass(frozen=True, repr=False)
class CollectionDocument(Document):
    """A sealed run with its cells, and what was left out and why."""

    summary: RunSummary
    without_floor: str = ""  # which calls have no noise floor, and what makes one; "" where all have

    columns = ("version", "workload", "status", "reason")

    @property
    def title(self) -> str:
        """The run."""
        return f"Run {self.summary.run.run_id}"

    @property
    def sentences(self) -> Sequence[str]:
        """What was degraded or left out, and which calls have no noise floor."""
        provenance = self.summary.run.provenance
        return [
            *(f"degraded: {words}" for words in provenance.get("degraded", ())),
            *(f"left out: {words}" for words in provenance.get("left_out", ())),
            *filter(None, (self.without_floor,)),
        ]

    @property
    def exit_code(self) -> Exit:
        """Whether anything was measured, and a version that should be right is wrong or failed."""
        return self.summary.exit_code

    def rows(self) -> list[tuple[object, ...]]:
        """A row a version and workload."""
        return [(cell.version, cell.workload, cell.status, cell.reason) for cell in self.summary.cells]

    def _content(self) -> dict[str, object]:
        """The cells, what was left out, and where the time went."""
        run = self.summary.run
        of_processes, of_timing_and_ncu = overhead(run.provenance) or (None, None)
        return {
            "run": run.run_id,
            "cells": [dict(zip(self.columns, row, strict=True)) for row in self.rows()],
            "degraded": run.provenance.get("degraded", []),
            "left_out": run.provenance.get("left_out", []),
            "wall_s": run.provenance.get("wall_s"),
            "processes_s": run.provenance.get("processes_s", {}),
            "without_floor": self.without_floor or None,
            "of_processes": of_processes,
            "of_timing_and_ncu": of_timing_and_ncu,
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The cells, then what was degraded and left out, and where the time went."""
        run = self.summary.run
        cells = [
            (cell.version, cell.workload or "", cell.status, cell.reason or "") for cell in self.summary.cells
        ]
        yield Table(("version", "workload", "", "why"), cells)
        yield from (Line(words, label="degraded") for words in run.provenance.get("degraded", ()))
        yield from end_blocks(run)
        if self.without_floor:
            yield Line(self.without_floor)


@dataclass(frozen=True, repr=False)
class DissectionDocument(Document):
    """A run of static and modelled facts, where it was kept, and what stood out."""

    dissection: Dissection
    place: str

    columns = ("version", "workload", "status", "reason")

    @property
    def title(self) -> str:
        """The run."""
        return f"Run {self.dissection.run.run_id}"

    @property
    def sentences(self) -> Sequence[str]:
        """What does not compile, is not as expected, is over its budget or is not known."""
        dissection = self.dissection
        return (
            *dissection.failed,
            *dissection.unexpected,
            *dissection.over_budget,
            *dissection.missing,
        )

    @property
    def exit_code(self) -> Exit:
        """Of the worst that stood out."""
        return self.dissection.exit_code

    def rows(self) -> list[tuple[object, ...]]:
        """A row a result."""
        return [
            (result.version, result.workload, result.status, result.reason)
            for result in self.dissection.run.results
        ]

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """What was kept, and where, then what stood out."""
        run = self.dissection.run
        versions = len({result.version for result in run.results})
        yield Line(f"{run.run_id}: {versions} versions, {len(run.results)} results, kept in {self.place}")
        yield Notes(self.sentences)

    def _content(self) -> dict[str, object]:
        """What was kept, and where, and what stood out."""
        return {
            "run_id": self.dissection.run.run_id,
            "place": self.place,
            "results": len(self.dissection.run.results),
            "failed": list(self.dissection.failed),
            "unexpected": list(self.dissection.unexpected),
            "over_budget": list(self.dissection.over_budget),
            "missing": list(self.dissection.missing),
        }


def end_blocks(run: Run) -> Iterator[Block]:
    """What was left out of a sealed run, how long it took, and its name."""
    left_out = grouped_by_reason(run.provenance.get("left_out", ()))
    yield from (Line(words, label="left out") for words in left_out)
    yield Line(_time_taken(run))
    yield Line(f"sealed as {run.run_id}")


def grouped_by_reason(lines: Sequence[str]) -> list[str]:
    """The jobs that were left out, a line a reason; --json names all of many."""
    by_reason: dict[str, list[str]] = {}
    for line in lines:
        job, _, reason = line.partition(": ")
        by_reason.setdefault(reason, []).append(job)
    return [
        f"{reason}: {', '.join(jobs[:_NAMED])}"
        + (f" and {len(jobs) - _NAMED} more (--json names them)" if len(jobs) > _NAMED else "")
        for reason, jobs in by_reason.items()
    ]


def _time_taken(run: Run) -> str:
    """How long a collection took, and how much of that its processes did not need."""
    wall_s, processes_s = run.provenance.get("wall_s"), run.provenance.get("processes_s") or {}
    if not wall_s:
        return "nothing was run"
    words = f"took {wall_s:.1f} s"
    sessions = run.provenance.get("sessions", 1)
    words += f" in {sessions} sessions" if sessions > 1 else ""
    if processes_s:
        stages = ", ".join(f"{stage} {seconds:.1f}" for stage, seconds in processes_s.items())
        words += f"; its processes {sum(processes_s.values()):.1f} s ({stages})"
    if ratios := overhead(run.provenance):
        words += f"; that is {ratios[0]:.2f} × all of them, {ratios[1]:.2f} × timing and ncu only"
    return words
