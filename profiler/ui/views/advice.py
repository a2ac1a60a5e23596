"""What to try next: the statements of `profiler insights` that call for something, as markup."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profiler.advice import ComparedSide, MetricInput, Statement, Subject, TrafficByWorkload, insights
from profiler.advice.statement import CHANGE, NO_ACTION, UNKNOWN, format_from_to
from profiler.compare import Comparison, PairComparison
from profiler.evidence import Evidence, Launch, MetricTable, Side, chip_of, formatting
from profiler.explain import roofline
from profiler.ui import markup
from profiler.ui.markup import Column, Html, Row

CAPTION = "for B, and what calls for it; its numbers under the pointer"
CAPTION_ONE = "and what calls for it; its numbers under the pointer"
_NUMBERS = 8  # of a statement in its hover text; `profiler insights --json` has them all


def of_pair(
    comparison: Comparison, pair: PairComparison, table: MetricTable, traffic: TrafficByWorkload
) -> tuple[Statement, ...]:
    """What B's chosen launch calls for, held against A; of a wrong B only what is wrong.

    `traffic` is B's shared memory by workload and source line, where its run keeps that.
    """
    b = comparison.b
    cell = ComparedSide(replace(b, launches=(pair.b,)), replace(comparison, pairs=(pair,)))
    measured = b.evidence is Evidence.MEASURED
    facts = () if measured else (cell,)
    case = Subject(b.label, cell if measured else None, facts, b.wrong, traffic=traffic)
    return insights.find_insights(case, table).statements


def of_launch(launch: Launch, capability: str | None, table: MetricTable) -> tuple[Statement, ...]:
    """What one measured launch calls for by itself. `capability` is its GPU's, as "9.0"."""
    side = Side(launch.base_name, (launch,), compute_capability=capability)
    return insights.find_insights(Subject(side.label, ComparedSide(side)), table).statements


def answer_pair(
    comparison: Comparison,
    pair: PairComparison,
    table: MetricTable,
    traffic: TrafficByWorkload | None = None,
    elsewhere: bool = False,
) -> Html:
    """What B's chosen launch calls for."""
    capability = comparison.b.compute_capability
    statements = of_pair(comparison, pair, table, traffic or {})
    return answer(statements, chip_of(capability) if capability else None, elsewhere)


def answer_launch(launch: Launch, capability: str | None, table: MetricTable) -> Html:
    """What one measured launch calls for."""
    return answer(of_launch(launch, capability, table), chip_of(capability) if capability else None)


def answer(statements: Sequence[Statement], chip: str | None = None, elsewhere: bool = False) -> Html:
    """A row for each thing to try with what calls for it, most of the time first; then what nobody knows.

    What changed is not repeated: Why says it. `chip` ("sm_90") names what to collect on it; `elsewhere`
    leaves out the advice to measure what was measured elsewhere.
    """
    levers = {one.lever for one in statements if one.kind != CHANGE}
    known = [
        one
        for one in statements
        if one.kind != UNKNOWN and (one.kind != CHANGE or (one.lever and one.lever not in levers))
    ]
    shares = any(one.share for one in known)
    rows = [_row(group, shares) for group in _by_lever(known)]
    left_out = {"change", "time"} if elsewhere else {"change"}
    gaps = [one for one in statements if one.kind == UNKNOWN and one.id not in left_out]
    if gaps:
        rows.append(markup.closing_row(_unknown(gaps, chip)))
    if not rows:
        return markup.note("Nothing stands out in these numbers.")
    tried = any(one.lever for one in known)
    columns = (Column("try" if tried else "", wrap=True), Column("of its time, at most", right=True))
    return markup.table("what next", columns if shares else columns[:1], rows)


def _by_lever(statements: Sequence[Statement]) -> list[list[Statement]]:
    """What several statements ask for stands once, where the first of them stood."""
    found: dict[str, list[Statement]] = {}
    for one in statements:
        found.setdefault(one.lever or one.text, []).append(one)
    return list(found.values())


def _row(group: Sequence[Statement], shares: bool) -> Row:
    first = group[0]
    lines = [markup.tag("span", markup.backticks_as_code(one.text), "m", _hover(one)) for one in group]
    if first.lever:
        lines.insert(0, markup.tag("b", f"→ {first.lever}"))
    elif first.kind == NO_ACTION:
        lines.insert(0, markup.tag("b", "nothing to do"))
    share = max(one.share or 0.0 for one in group)
    shown = markup.quantity(f"{100 * share:.0f}", "%") if share else markup.muted("–")
    words = markup.join(lines, "<br>")
    return Row((words, shown) if shares else (words,))


def _unknown(gaps: Sequence[Statement], chip: str | None) -> Html:
    """What stays open, and what would tell: the lines of metrics.txt in the hover text."""
    asks: list[Html] = []
    collect: list[str] = []
    for one in gaps:
        asks.append(markup.backticks_as_code(one.question or one.text))
        collect += one.to_collect
    told = markup.join((markup.join(asks, "; "), "." * bool(collect)), "")
    parts: list[object] = [markup.state("unknown:"), told]
    if collect and chip:
        parts += [
            markup.muted("Collect:"),
            markup.code(roofline.collect_command(chip), title=" ".join(collect)),
        ]
    elif collect:
        parts.append(markup.muted(" ".join(collect)))
    return markup.join(parts)


def _hover(one: Statement) -> str:
    numbers = [f"{metric.label}: {_number(metric)}" for metric in one.inputs[:_NUMBERS]]
    more = len(one.inputs) - _NUMBERS
    numbers += [f"and {more} more"] if more > 0 else []
    return "; ".join((*numbers, one.confidence))


def _number(metric: MetricInput) -> str:
    if not metric.valid:
        return metric.state
    if metric.baseline is not None and metric.baseline.number is not None:
        return format_from_to(metric.baseline, metric.value)
    return str(formatting.quantity(metric.value))
