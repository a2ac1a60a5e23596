"""Which derived numbers of a pair say again what another of its numbers says."""

from __future__ import annotations

import math
from collections.abc import Iterable

from profiler.compare.pair_comparison import MetricChange
from profiler.evidence.derived_forms import formula_names

_EQUAL = 0.01  # of the number: as near as the cycles of an SM and of its schedulers are


def split_repeats(changes: Iterable[MetricChange]) -> tuple[list[MetricChange], list[MetricChange]]:
    """The changes for a list, in their order, and the derived ones that repeat another of these.

    A derived number repeats one of its group that is equal to it on both sides, or of whose counter alone it
    is computed: what the report carries as it is, else what is derived too and stands before it. So of four
    counts of one launch's cycles those stay that the report has.
    """
    changes = list(changes)
    carried = [change for change in changes if not change.derivation]
    kept: list[MetricChange] = []
    repeats: list[MetricChange] = []
    for change in changes:
        is_repeat = change.derivation and any(_repeats(change, other) for other in (*carried, *kept))
        (repeats if is_repeat else kept).append(change)
    return kept, repeats


def _repeats(change: MetricChange, other: MetricChange) -> bool:
    if change.group != other.group:
        return False
    return _are_equal(change, other) or _counters(change) == {other.metric}


def _counters(change: MetricChange) -> set[str]:
    """The ncu names that a derived number is computed from, on either side."""
    derivations = (value.derivation for value in (change.a, change.b))
    return {name for derived in derivations if derived for name in formula_names(derived.formula)}


def _are_equal(change: MetricChange, other: MetricChange) -> bool:
    numbers = ((change.a.number, other.a.number), (change.b.number, other.b.number))
    return change.unit == other.unit and all(
        x is not None and y is not None and math.isclose(x, y, rel_tol=_EQUAL) for x, y in numbers
    )
