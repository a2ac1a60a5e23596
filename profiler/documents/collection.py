"""What a measurement would do, what it left, and the run that a lineage becomes with no GPU, as documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.collect import Dissection, Forecast, RunSummary, overhead
from profiler.collect.plan import BUILD_S
from profiler.documents.document import Document
from profiler.errors import Exit


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
        return (f"{sentence}; {left_out} of {jobs} jobs are left out" if left_out else sentence,)

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
