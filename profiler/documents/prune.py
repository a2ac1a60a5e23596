"""What `prune` dropped, or would drop, as a document."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.documents.blocks import Block, Line, Notes
from profiler.documents.document import Document
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.store.pruning import PruneSummary
    from profiler.store.sync import Progress


@dataclass(frozen=True, repr=False)
class PruneDocument(Document):
    """A row a run whose reports were dropped, or can be."""

    summary: PruneSummary
    is_done: bool

    title = "Prune"
    columns = ("run_id", "family", "report_bytes", "values_bytes")

    @property
    def sentences(self) -> Sequence[str]:
        """A sentence a family; the bytes of the numbers that stay, where it was done."""
        by_family = defaultdict(list)
        for pruned in self.summary.runs:
            by_family[pruned.family or "of several families"].append(pruned)
        lines = []
        for family, runs in sorted(by_family.items()):
            size_bytes = sum(pruned.report_bytes for pruned in runs)
            kept_bytes = sum(pruned.values_bytes or 0 for pruned in runs)
            kept = f" dropped, {kept_bytes:,} bytes of numbers kept" if self.is_done else ""
            count = f"{len(runs)} run{'s' * (len(runs) != 1)}"
            lines.append(f"{family}: reports of {count}, {size_bytes:,} bytes{kept}")
        return tuple(lines) or ("no run that old has a report",)

    @property
    def exit_code(self) -> Exit:
        """Unusable input where a run keeps its reports, because they are damaged."""
        return Exit.UNUSABLE_INPUT if self.summary.refused else Exit.PASS

    def rows(self) -> list[tuple[object, ...]]:
        """A row a run; no values_bytes where nothing was dropped yet."""
        return [
            (pruned.run_id, pruned.family, pruned.report_bytes, pruned.values_bytes)
            for pruned in self.summary.runs
        ]

    def _content(self) -> dict[str, object]:
        return {
            "done": self.is_done,
            "runs": [dict(zip(self.columns, row, strict=True)) for row in self.rows()],
            "refused": [{"run_id": run_id, "message": message} for run_id, message in self.summary.refused],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A line a family, how to do it where it was not done, and the runs that keep their reports."""
        yield from map(Line, self.sentences)
        if self.summary.runs and not self.is_done:
            yield Line("nothing was dropped: `--yes` does it")
        yield Notes([message for _, message in self.summary.refused])


def prune_reports(
    older_days: float,
    *,
    family: str | None = None,
    why: str = "",
    do_it: bool = False,
    data: str | None = None,
    progress: Progress | None = None,
) -> PruneDocument:
    """Drop the reports of runs made more than so many days ago; without `do_it` only say which.

    Raises ProfilerError for a family that is not there.
    """
    from profiler.store.pruning import plan_pruning, prune_runs

    if not do_it:
        return PruneDocument(plan_pruning(older_days, family=family, data=data), is_done=False)
    done = prune_runs(older_days, family=family, why=why, data=data, progress=progress)
    return PruneDocument(done, is_done=True)
