"""What a sealed run says at the end of its collection: its cells, and whether it is as it should be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profiler.bundles import Result, Run
from profiler.collect.provenance import overhead
from profiler.errors import Exit


@dataclass(frozen=True)
class RunSummary:
    """A sealed run, as a person or a script is told of it."""

    run: Run

    @property
    def cells(self) -> list[Result]:
        """Results of a workload; static facts are of a head dim."""
        return [
            result
            for result in self.run.results
            if result.workload and not result.workload.startswith("head dim")
        ]

    @property
    def exit_code(self) -> Exit:
        """Whether anything was measured, and a version that should be right is wrong or failed."""
        if not any(_is_measured(cell) for cell in self.cells):
            return Exit.UNJUDGED
        meant_to_fail = {cell.version for cell in self.cells if _may_fail(cell.check)}
        bad = [
            cell
            for cell in self.cells
            if cell.status in ("wrong", "failed") and cell.version not in meant_to_fail
        ]
        return Exit.REGRESSION if bad else Exit.PASS

    def to_dict(self, without_floor: str | None) -> dict[str, Any]:
        """For JSON. without_floor: which calls have no noise floor, and what makes one."""
        provenance = self.run.provenance
        of_processes, of_timing_and_ncu = overhead(provenance) or (None, None)
        return {
            "run": self.run.run_id,
            "cells": [
                {
                    "version": cell.version,
                    "workload": cell.workload,
                    "status": cell.status,
                    "reason": cell.reason,
                }
                for cell in self.cells
            ],
            "degraded": provenance.get("degraded", []),
            "left_out": provenance.get("left_out", []),
            "wall_s": provenance.get("wall_s"),
            "processes_s": provenance.get("processes_s", {}),
            "without_floor": without_floor,
            "of_processes": of_processes,
            "of_timing_and_ncu": of_timing_and_ncu,
        }


def _is_measured(cell: Result) -> bool:
    """Whether it ran on a GPU."""
    return bool(cell.samples or cell.captures or (cell.check or {}).get("evidence") == "measured")


def _may_fail(check: Mapping[str, Any] | None) -> bool:
    """Whether nobody expects the version to be right: a rejected one, or somebody else's."""
    return (check or {}).get("state") in ("rejected", "baseline")
