"""A report that was read, as a document of every metric in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from profiler.compare.resolve_names import side_of_report
from profiler.documents.blocks import Block
from profiler.documents.document import Document
from profiler.documents.launches import LaunchesDocument, select_launches
from profiler.evidence.launch import Report
from profiler.evidence.metric_table import load_metrics


@dataclass(frozen=True, repr=False)
class ReportDocument(Document, Report):
    """A report: its dictionary and frame hold every metric, its pages those of metrics.txt."""

    columns = LaunchesDocument.columns

    @classmethod
    def of(cls, report: Report) -> ReportDocument:
        """The same report as a document."""
        return cls(**vars(report))

    @property
    def title(self) -> str:
        """The file, its GPU, and when and by what it was profiled."""
        return self._document(every_metric=True).title

    @property
    def sentences(self) -> Sequence[str]:
        """That there are no launches, where there are none."""
        return self._document(every_metric=True).sentences

    def rows(self) -> list[tuple[object, ...]]:
        """A row a metric of a launch, in base units; a state other than present has no value."""
        return self._document(every_metric=True).rows()

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The launches with the metrics of metrics.txt, with `everything` every metric."""
        return self._document(every_metric=everything).blocks()

    def _content(self) -> dict[str, object]:
        return self._document(every_metric=True)._content()

    def _document(self, *, every_metric: bool) -> LaunchesDocument:
        """What `profiler show` answers of the file; every metric: with --all."""
        return LaunchesDocument(
            select_launches(side_of_report(self, self.name)), load_metrics(), every_metric
        )
