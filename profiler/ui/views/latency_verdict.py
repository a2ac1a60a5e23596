"""Timed calls on the Diff page: the verdict with what it rests on, each mode, and the samples behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from profiler.compare import Comparison, LatencyComparison, NoiseModel, latency_words
from profiler.evidence import Latency, Side, Value, formatting
from profiler.statistics import Verdict
from profiler.ui import addresses, markup
from profiler.ui.charts import latency_samples, style
from profiler.ui.markup import Column, Html, Row

SPREADS = ("samples", "ecdf")  # how a distribution is drawn
NONE = "latency samples: not collected"
_COLUMNS = (
    Column("mode", cut=3),
    Column("A", right=True),
    Column("B", right=True),
    Column("change", right=True),
    Column("interval", wide=True),
    Column("verdict"),
)


def choose(comparison: Comparison, mode: str | None) -> LatencyComparison | None:
    """The mode that the address names, else the first in which both were timed, else any."""
    found = sorted(comparison.latency, key=lambda one: one.a is None or one.b is None)
    return next((one for one in found if one.mode == mode), found[0] if found else None)


def caption(one: LatencyComparison) -> str:
    """What was timed, and what the verdict rests on."""
    return f"latency of calls; {one.mode}; {latency_words.basis(one)}"


def verdict(one: LatencyComparison) -> Html:
    """The big verdict with the change and its interval, and of what kind the interval is."""
    decision = one.decision
    parts = (markup.verdict(decision.verdict), latency_words.change(decision))
    return markup.big_verdict(parts, latency_words.interval(decision))


def notes(one: LatencyComparison, side: Side, noise: NoiseModel) -> list[Html]:
    """What would have shown, the A/A floor, why, what to doubt, and the command that settles it."""
    decision = one.decision
    lines: list[object] = []
    level = one.a_ns or one.b_ns
    here = noise.floor(side.gpu or "", one.mode, level) if level is not None else None
    words = latency_words.aa_floor(here, side.version, side.workload)
    facts = [markup.escaped(latency_words.detectable(decision)), markup.backticks_as_code(words)]
    lines.append(markup.join(facts, "; "))
    lines.append(_rest(one))
    lines += [f"note: {warning}" for warning in decision.warnings]
    if one.settle:
        lines.append(markup.join(("To settle it:", markup.code(one.settle))))
    return [markup.note(line) for line in lines if str(line)]


def modes(comparison: Comparison, chosen: LatencyComparison, view: addresses.Diff) -> Html:
    """A row a mode, with the way to its samples."""
    rows = [
        Row((markup.link(replace(view, mode=one.mode).href, one.mode), *cells(one)), one is chosen)
        for one in comparison.latency
    ]
    return markup.table("latency by mode", _COLUMNS, rows)


def elsewhere(
    comparisons: Mapping[tuple[str, str], Comparison], chosen: LatencyComparison, view: addresses.Diff
) -> Html:
    """The same pair in the same mode on every workload and GPU."""
    several = len({gpu for _, gpu in comparisons}) > 1
    rows = []
    for (workload, gpu), comparison in comparisons.items():
        one = next((one for one in comparison.latency if one.mode == chosen.mode), None)
        if one is None:
            continue
        address = replace(view, workload=workload, gpu=gpu, launch=None).href
        words = (workload or "no workload named") + (f" · {gpu or 'unknown GPU'}" if several else "")
        here = (workload, gpu) == (view.workload, view.gpu)
        rows.append(Row((markup.link(address, words), *cells(one)), selected=here))
    return markup.table("the same pair elsewhere", (Column("workload", cut=3), *_COLUMNS[1:]), rows)


def cells(one: LatencyComparison) -> tuple[object, ...]:
    """A, B, change, interval and verdict of one mode."""
    numbers = [number for number in (one.a_ns, one.b_ns) if number is not None]
    scale = formatting.scale_for("ns", max(numbers)) if numbers else None
    shown = [
        markup.muted("–") if number is None else markup.value(Value(number, "ns"), scale)
        for number in (one.a_ns, one.b_ns)
    ]
    decision = one.decision
    return (
        *shown,
        latency_words.change(decision),
        latency_words.interval(decision, brief=True),
        markup.verdict(decision.verdict, reason=decision.reason),
    )


def has_samples(one: LatencyComparison) -> bool:
    """Whether there is a side to draw."""
    return bool(_sides(one))


def none(imported: bool) -> Html:
    """That nobody timed a call."""
    return markup.note(markup.state(f"{NONE}. An imported report holds none." if imported else NONE))


def chart(one: LatencyComparison, spread: str) -> style.Figure:
    """The samples of both sides, or of the one that has some."""
    sides = _sides(one)
    return latency_samples.ecdf_figure(sides) if spread == SPREADS[1] else latency_samples.dot_figure(sides)


def chart_note(one: LatencyComparison, spread: str) -> Html:
    """What a dot and a line are, how many samples there are, and which were throttled or lie far out."""
    sides = _sides(one)
    counts = " and ".join(f"{len(side.ns)} in {name}" for name, side in sides)
    middles = " or ".join(dict.fromkeys(latency_samples.center_word(side) for _, side in sides))
    parts = [f"every sample: {counts}"]
    if any(len(side.ns) > latency_samples.MAX_DOTS for _, side in sides):
        parts = [f"samples: {counts}, {latency_samples.MAX_DOTS} a side drawn"]
    if spread == SPREADS[0]:
        parts.append(f"line: {middles}")
        if len(sides) > 1:
            apart = latency_samples.have_own_axes(sides)
            parts.append("far apart: an axis each, of one span" if apart else "dashed: that of A")
    if throttled := sum(len(side.throttled) for _, side in sides):
        parts.append(f"×: {throttled} taken while the GPU throttled")
    if out := latency_samples.count_beyond_axis(sides):
        edge = ", drawn at its edge" if spread == SPREADS[0] else ""
        parts.append(f"{out} lie{'s' * (out == 1)} beyond the axis{edge}")
    if not one.live and len(sides) > 1:
        parts.append("two runs: rounds of A and B did not alternate")
    return markup.note("; ".join(parts))


def alt(one: LatencyComparison) -> str:
    """The chart in words."""
    sides = ", ".join(
        f"{name} {formatting.quantity(Value(level, 'ns'))}"
        for name, level in (("A", one.a_ns), ("B", one.b_ns))
        if level is not None
    )
    return f"latency samples: {sides}; {one.decision.reason}"


def _sides(one: LatencyComparison) -> Sequence[tuple[str, Latency]]:
    both = (("A", one.a), ("B", one.b))
    return [(name, side) for name, side in both if side is not None and len(side.ns)]


def _rest(one: LatencyComparison) -> str:
    """What the reason says beyond the change and its interval, which stand above."""
    reason = one.decision.reason
    if one.live and one.decision.interval is not None and one.verdict is not Verdict.SAME:
        return reason.partition("; ")[2]
    return reason
