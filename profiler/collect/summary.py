"""The summary of a sealed run: its cells, and the exit code that they call for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profiler.bundles.run import Result, Run
from profiler.errors import Exit


@dataclass(frozen=True)
class RunSummary:
    """A sealed run, summed up for a person or a script."""

    run: Run

    @property
    def cells(self) -> list[Result]:
        """The results of workloads, without the static facts, which are by head dim."""
        return [
            result
            for result in self.run.results
            if result.workload and not result.workload.startswith("head dim")
        ]

    @property
    def exit_code(self) -> Exit:
        """UNJUDGED where nothing was measured; REGRESSION where a good version is wrong or failed."""
        if not any(_is_measured(cell) for cell in self.cells):
            return Exit.UNJUDGED
        meant_to_fail = {cell.version for cell in self.cells if _may_fail(cell.check)}
        bad = [
            cell
            for cell in self.cells
            if cell.status in ("wrong", "failed") and cell.version not in meant_to_fail
        ]
        return Exit.REGRESSION if bad else Exit.PASS

    def noise_exit_code(self, has_floor: bool) -> Exit:
        """The exit code of a noise run. has_floor: whether it holds A/A pairs."""
        if any(result.status in ("wrong", "failed") for result in self.run.results):
            return Exit.REGRESSION  # only versions that should be right are in a noise run
        return Exit.PASS if has_floor else Exit.UNJUDGED


def _is_measured(cell: Result) -> bool:
    """Whether the cell was run on a GPU."""
    return bool(cell.samples or cell.captures or (cell.check or {}).get("evidence") == "measured")


def _may_fail(check: Mapping[str, Any] | None) -> bool:
    """Whether the version need not be right: a rejected one, or a baseline of others."""
    return (check or {}).get("state") in ("rejected", "baseline")
