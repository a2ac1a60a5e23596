"""The verdicts on static and modelled facts: how many are better and worse, here and on every workload."""

from __future__ import annotations

from collections.abc import Mapping

from profiler.compare.comparison import Comparison
from profiler.compare.pair_comparison import MetricChange, PairComparison
from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.statistics.verdict import Verdict
from profiler.ui import addresses, markup
from profiler.ui.data.cells import WorkloadOnGpu
from profiler.ui.data.pair_choice import choose_pair
from profiler.ui.markup import Column, Html
from profiler.ui.views import pair_elsewhere

CAPTIONS = {
    Evidence.STATIC: "static: from the compiler and the machine code, exact",
    Evidence.MODELLED: "modelled: a run on the CPU, conflicts by the model of the banks",
}
ELSEWHERE_CAPTION = "judged facts and main facts, on every workload that both have"
# Concepts with a column of their own on every workload, moved or not.
_CHIEF_FACTS = ("static_registers", "static_shared", "static_occupancy", "modelled_error")


def verdict(comparison: Comparison, pair: PairComparison | None) -> Html:
    """How many facts are better and worse: there is no duration to decide for all."""
    if pair is None:
        return markup.big_verdict((markup.verdict(Verdict.MISSING),), "no kernel of A has a partner in B")
    if not comparison.comparable:
        wrong = comparison.a.wrong or comparison.b.wrong
        tag = markup.status_tag("wrong") if wrong else markup.verdict(Verdict.NOT_COMPARABLE)
        return markup.big_verdict((tag,), "no verdict; the numbers are below")
    verdicts: list[object] = []
    labels_moved: list[str] = []
    for word in (verdict for verdict in Verdict if verdict.traits.moved):
        labels = [change.label for change in pair.metrics if change.verdict is word]
        if word is Verdict.WORSE:
            labels += [failure.words for failure in pair.failures_without_metric]
        if labels:
            verdicts.append(markup.verdict(word, str(len(labels)) if len(labels) > 1 else ""))
            labels_moved += labels
    if verdicts:
        return markup.big_verdict(verdicts, ", ".join(labels_moved))
    changed = sum(change.verdict is Verdict.CHANGED for change in pair.metrics)
    if changed:
        caption = f"{changed} facts that are not judged; no judged fact moved"
        return markup.big_verdict((markup.verdict(Verdict.CHANGED),), caption)
    return markup.big_verdict((markup.verdict(Verdict.SAME),), "nothing moved")


def elsewhere(comparisons: Mapping[WorkloadOnGpu, Comparison], view: addresses.Diff) -> list[Html]:
    """One row per workload and architecture; a column per chief fact, and per judged one above 0 anywhere."""
    pairs = [choose_pair(comparison, view.launch) for comparison in comparisons.values()]
    labels: dict[str, str] = {}  # by concept
    for change in (change for pair in pairs if pair for change in pair.metrics):
        is_above_zero = change.judged and (change.a.number or change.b.number)
        if change.concept in _CHIEF_FACTS or is_above_zero:
            labels.setdefault(change.concept, change.label)

    def row_of(comparison: Comparison) -> tuple[str, list[Html]] | None:
        pair = choose_pair(comparison, view.launch)
        if pair is None:
            return None
        by_concept = {change.concept: change for change in pair.metrics}
        return "", [_change(by_concept[concept]) for concept in labels]

    return pair_elsewhere.elsewhere(comparisons, view, [*map(Column, labels.values())], row_of)


def _change(change: MetricChange) -> Html:
    a, b = (markup.short_value(_with_short_unit(value)) for value in (change.a, change.b))
    if change.a == change.b:
        return markup.join((a, markup.verdict(change.verdict)))
    return markup.join((a, markup.muted("→"), b, markup.verdict(change.verdict, reason=change.reason)))


def _with_short_unit(value: Value) -> Value:
    """The value without a unit that is too long for a cell."""
    return value._replace(unit="") if formatting.is_long_unit(value.unit) else value
