"""The launches of two sides in pairs: the verdict on ncu's duration, every pair, one pair elsewhere."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace

from profiler.compare.comparison import Comparison
from profiler.compare.pair_comparison import MetricChange, PairComparison
from profiler.documents.comparison_text import (
    earlier_counters,
    other_ranges,
    pair_commands,
    paired_names,
    why_no_pair,
)
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.values import NCU_DURATION, Evidence
from profiler.statistics.verdict import Verdict
from profiler.ui import addresses, markup
from profiler.ui.data.pair_choice import choose_pair
from profiler.ui.markup import Column, Html, Row

PAIRS_SHOWN = 25  # the longest; a filter reaches the others
PAIRS_UNFOLDED = 8
_WORTH_A_FOLD = 4  # rows that are worth one
UNPAIRED_SHOWN = 10  # of a side; likewise
DURATION_COLUMNS = (
    Column("A", right=True),
    Column("B", right=True),
    Column("change", right=True),
    Column("verdict"),
)


def verdict(comparison: Comparison, pair: PairComparison | None) -> Html:
    """The one big verdict, on ncu's duration, with how sure it is."""
    if pair is None:
        return markup.big_verdict((markup.verdict(Verdict.MISSING),), why_no_pair(comparison))
    change = pair.headline
    if change is None:
        return markup.big_verdict((markup.verdict(Verdict.MISSING),), "metrics.txt declares no duration")
    parts = (markup.verdict(change.verdict), formatting.change(change.a, change.b))
    return markup.big_verdict(parts, _how_sure(pair, change))


def small_verdict(comparison: Comparison, pair: PairComparison | None) -> Html:
    """The verdict on ncu's duration where that on the calls stands above it."""
    change = pair.headline if pair else None
    if pair is None or change is None:
        return markup.note(why_unpaired(comparison))
    words = markup.verdict(change.verdict, formatting.change(change.a, change.b), change.reason)
    return markup.paragraph(markup.join((words, markup.muted(_how_sure(pair, change)))))


def why_unpaired(comparison: Comparison) -> Html:
    """Why there is no pair of launches: none has a partner, or a side was never profiled."""
    unprofiled = [
        (label, side)
        for label, side in (("A", comparison.a), ("B", comparison.b))
        if not side.launches and side.evidence is Evidence.MEASURED
    ]
    if not unprofiled:
        return markup.escaped(f"{why_no_pair(comparison)}.")
    labels = " and ".join(label for label, _ in unprofiled)
    versions = list(dict.fromkeys(side.version for _, side in unprofiled if side.version))
    if not versions:
        return markup.escaped(f"no counters of {labels}.")
    command = shlex.join(["profiler", "collect", *versions, "--full", ",".join(versions)])
    return markup.join((f"no counters of {labels}:", markup.code(command)))


def sections_link(view: addresses.LaunchView | None) -> Html:
    """The way to B's launch section by section beside A's; "" where a side is not in the index."""
    words = "all sections of this launch, B beside A ›"
    return Html("") if view is None else markup.note(markup.link(view.href, words))


def table(comparison: Comparison, selected: PairComparison | None, view: addresses.Diff) -> Html:
    """Every pair, longest first, then every launch without a partner."""
    rows = []
    for pair in comparison.pairs:
        address = replace(view, launch=pair.kernel).href
        title = pair.a.demangled if len(pair.labels) == 1 else pair.kernel
        name = markup.link(address, _names(pair), title=title)
        is_selected = selected is not None and pair.kernel == selected.kernel
        rows.append(Row((name, *_durations(pair)), selected=is_selected))
    for side, launches in (("A", comparison.only_in_a), ("B", comparison.only_in_b)):
        longest = sorted(launches, key=_longest_first)[:UNPAIRED_SHOWN]
        rows += [_unpaired_row(comparison.label(launch), launch, side) for launch in longest]
        if more := len(launches) - len(longest):
            words = f"{more} shorter launches are only in {side}: filter by kernel to see them"
            rows.append(markup.closing_row(markup.muted(words)))
    for group in comparison.ambiguous:
        words = markup.verdict(Verdict.UNCLEAR, reason=group.why)
        counts = (f"{len(group.a)} launches", f"{len(group.b)} launches")
        rows.append(Row((markup.code(group.base_name), *counts, "", words)))
    return markup.table("all launches of both", (Column("kernel", wrap=True), *DURATION_COLUMNS), rows)


def folded_table(comparison: Comparison, selected: PairComparison | None, view: addresses.Diff) -> list[Html]:
    """The longest pairs; of many the others, and what has no partner, in a fold."""
    others = comparison.pairs[PAIRS_UNFOLDED:]
    unpaired = (*comparison.only_in_a, *comparison.only_in_b, *comparison.ambiguous)
    if not others or len(others) + len(unpaired) < _WORTH_A_FOLD:
        return [table(comparison, selected, view)]
    first = replace(
        comparison, pairs=comparison.pairs[:PAIRS_UNFOLDED], only_in_a=(), only_in_b=(), ambiguous=()
    )
    words = f"{len(others)} shorter" + (f", {len(unpaired)} without a partner" if unpaired else "")
    is_open = selected is not None and all(pair.kernel != selected.kernel for pair in first.pairs)
    rest = table(replace(comparison, pairs=others), selected, view)
    return [table(first, selected, view), markup.fold(words, [rest], is_open=is_open)]


def table_caption(comparison: Comparison) -> str:
    """How many launches found their partner, and which are in the table."""
    matched = len(comparison.pairs) + comparison.hidden_pairs
    words = f"matched {matched} of {len(comparison.a.launches)} in A and {len(comparison.b.launches)} in B"
    return words + (f"; the {len(comparison.pairs)} longest shown" if comparison.hidden_pairs else "")


def earlier_run_notes(comparison: Comparison) -> list[Html]:
    """Of which earlier run the counters are, where a side's newest run was only timed."""
    return [markup.note(line) for line in earlier_counters(comparison)]


def notes(comparison: Comparison, shown: PairComparison | None = None) -> list[Html]:
    """Why some verdicts are unclear or by cycles and some launches have no partner, each reason once.

    What the big verdict on the pair `shown` says is not repeated.
    """
    reasons = [
        f"{pair.kernel}: {pair.workload_change.verdict.words}, {pair.workload_change.reason}"
        for pair in comparison.pairs
        if pair.workload_change and pair is not shown
    ]
    reasons += [
        f"{pair.verdict.words}: {pair.headline.reason}"
        for pair in comparison.pairs
        if pair.headline and not pair.verdict.traits.decided and pair.headline.reason
        # Why two sides are not comparable stands above the pairs.
        if pair.verdict is not Verdict.NOT_COMPARABLE and not pair.workload_change
        if shown is None or shown.headline is None or pair.headline.reason != shown.headline.reason
    ]
    reasons += paired_names(comparison)
    reasons += [
        f"{pair.kernel}: {pair.headline.reason}"
        for pair in comparison.pairs
        if pair.headline and pair.headline.judged_by and pair.verdict.traits.decided and pair is not shown
    ]
    reasons += [f"{group.base_name}: ambiguous, {group.why}" for group in comparison.ambiguous]
    reasons += [f"{name}: {words}" for name, words in other_ranges(comparison).items()]
    lines = [markup.note(reason) for reason in dict.fromkeys(reasons)]
    return lines + [markup.note(markup.backticks_as_code(line)) for line in pair_commands(comparison)]


def row_of_launch(comparison: Comparison, launch: str | None) -> tuple[str, Sequence[object]] | None:
    """The row of the chosen launch on another workload, else of the longest, under DURATION_COLUMNS."""
    pair = choose_pair(comparison, launch)
    return None if pair is None else (pair.kernel, _durations(pair))


def _durations(pair: PairComparison) -> tuple[object, ...]:
    """A, B, change and verdict of ncu's duration."""
    a, b = (launch.values.value(NCU_DURATION) for launch in (pair.a, pair.b))
    reason = pair.headline.reason if pair.headline else ""
    return (
        markup.short_value(a),
        markup.short_value(b),
        formatting.change(a, b),
        markup.verdict(pair.verdict, reason=reason),
    )


def _names(pair: PairComparison) -> Html:
    """The kernel of a pair; where its name differs the two below each other, which both are to be seen."""
    first, *second = map(markup.code, pair.labels)
    lines = (first, *(markup.join(("→", label)) for label in second))
    return markup.join((markup.tag("span", line, "line") for line in lines), "") if second else first


def _unpaired_row(label: str, launch: Launch, side: str) -> Row:
    duration = markup.short_value(launch.values.value(NCU_DURATION))
    cells = (duration, "–") if side == "A" else ("–", duration)
    return Row((markup.code(label, title=launch.demangled), *cells, "", markup.muted(f"only in {side}")))


def _longest_first(launch: Launch) -> float:
    """A sort key: launches without a duration come first, so that the limit does not hide them."""
    number = launch.values.value(NCU_DURATION).number
    return float("-inf") if number is None else -float(number)


def _how_sure(pair: PairComparison, change: MetricChange) -> str:
    """What the verdict rests on, and how the two launches came to be a pair where their names differ."""
    basis = "unreplicated: one launch per side" if change.unreplicated else change.reason
    return "; ".join(filter(None, (basis, pair.paired_by.words)))
