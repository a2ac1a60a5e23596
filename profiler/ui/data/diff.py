"""All that the Diff page shows of the two sides that an address names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from profiler.compare.comparison import Comparison
from profiler.compare.latency import LatencyComparison
from profiler.compare.pair_comparison import PairComparison
from profiler.errors import UnknownName
from profiler.evidence.values import Evidence
from profiler.explain.explanation import Explanation
from profiler.ui import addresses
from profiler.ui.data import comparisons, index
from profiler.ui.data.cells import NamedCell, why_nothing_shared
from profiler.ui.data.index import DataVersion
from profiler.ui.data.pair_choice import choose_mode, choose_pair
from profiler.ui.data.version_source import VersionSource
from profiler.ui.errors import errors_shown


@dataclass(frozen=True)
class OpenedDiff:
    """What was chosen, and what was found for it."""

    data_version: DataVersion
    view: addresses.Diff
    cells: Sequence[NamedCell]
    evidence: Evidence
    comparison: Comparison
    pair: PairComparison | None  # of launches, or of kernel functions
    timed: LatencyComparison | None  # the calls in one mode; None where none were timed
    sources: tuple[VersionSource, VersionSource] | None  # where both are versions of a catalogue

    @cached_property
    def explanation(self) -> Explanation | None:
        """Why the pair differs in time; None without a pair of launches."""
        if self.pair is None or self.evidence is not Evidence.MEASURED:
            return None
        return comparisons.explain_pair(self.comparison, self.pair, index.metric_table(self.data_version))

    @property
    def names(self) -> tuple[str, str]:
        """A and B as the address names them."""
        return self.view.a, self.view.b


def open_diff(
    data_version: DataVersion, view: addresses.Diff, cells: Sequence[NamedCell], evidence: Evidence
) -> OpenedDiff:
    """Compare the two; UnknownName where a name means nothing, or they share no evidence."""
    if reason := why_nothing_shared(cells, (view.a, view.b)):
        raise UnknownName(reason)
    comparison = comparisons.comparison(
        data_version, view.a, view.b, view.workload or "", view.gpu or "", view.kernels, evidence
    )
    sources = None
    with errors_shown():  # without its sources a comparison still stands
        sources = comparisons.version_sources(data_version, comparison)
    pair = choose_pair(comparison, view.launch)
    timed = choose_mode(comparison, view.mode)
    return OpenedDiff(data_version, view, cells, evidence, comparison, pair, timed, sources)
