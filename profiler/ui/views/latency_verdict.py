"""Timed calls on the Diff page: the verdict with what it rests on, each mode, and the samples behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from profiler.compare import latency_words
from profiler.compare.comparison import Comparison
from profiler.compare.latency import LatencyComparison
from profiler.compare.noise_model import NoiseModel
from profiler.evidence import formatting
from profiler.evidence.side import Latency, Side
from profiler.evidence.values import Value
from profiler.ui import addresses, markup
from profiler.ui.charts import latency_samples
from profiler.ui.charts.style import Figure
from profiler.ui.markup import Column, Html, Row

SAMPLES, ECDF = SPREADS = ("samples", "ecdf")  # how a distribution is drawn
_NOT_COLLECTED = "latency samples: not collected"
COLUMNS = (  # beside the mode or workload
    Column("A", right=True),
    Column("B", right=True),
    Column("change", right=True),
    Column("interval", wide=True),
    Column("verdict"),
)


def caption(timed: LatencyComparison) -> str:
    """What was timed, and what the verdict rests on."""
    return f"latency of calls; {timed.mode}; {latency_words.basis(timed)}"


def verdict(timed: LatencyComparison) -> Html:
    """The big verdict with the change and its interval, and of what kind the interval is."""
    decision = timed.decision
    parts = (markup.verdict(decision.verdict), latency_words.change(decision))
    return markup.big_verdict(parts, latency_words.interval(decision))


def notes(timed: LatencyComparison, side: Side, noise: NoiseModel) -> list[Html]:
    """What change would have been detected, the A/A floor, the reason, warnings, how to settle it."""
    decision = timed.decision
    level = timed.a_ns or timed.b_ns
    place = side.gpu or "", timed.mode, level or 0.0, side.family or "", side.session.driver or ""
    floor = noise.floor(*place) if level is not None else None
    sensitivity = (
        markup.escaped(latency_words.detectable(decision)),
        markup.backticks_as_code(latency_words.aa_floor(floor, side.version, side.workload, timed.mode)),
    )
    # The change and its interval stand above as the big verdict: of the reason only the rest is repeated.
    lines: list[object] = [
        markup.join(sensitivity, "; "),
        decision.reason if decision.remark is None else decision.remark,
    ]
    lines += [f"note: {warning}" for warning in decision.warnings]
    if timed.settle:
        lines.append(markup.join(("To settle it:", markup.code(timed.settle))))
    return [markup.note(line) for line in lines if str(line)]


def modes(comparison: Comparison, selected: LatencyComparison, view: addresses.Diff) -> Html:
    """One row per mode, each a link to its samples."""
    rows = []
    for timed in comparison.latency:
        link = markup.link(replace(view, mode=timed.mode).href, timed.mode)
        rows.append(Row((link, *_cells(timed)), selected=timed is selected))
    return markup.table("latency by mode", (Column("mode", wrap=True), *COLUMNS), rows)


def row_in_mode(comparison: Comparison, mode: str) -> tuple[str, Sequence[object]] | None:
    """The row of a mode on another workload, under COLUMNS; None where no calls were timed so."""
    timed = next((timed for timed in comparison.latency if timed.mode == mode), None)
    return None if timed is None else ("", _cells(timed))


def has_samples(timed: LatencyComparison) -> bool:
    """Whether there is a side to draw."""
    return bool(_sides_with_samples(timed))


def not_collected(*, imported: bool) -> Html:
    """That no calls were timed."""
    words = f"{_NOT_COLLECTED}. An imported report holds none." if imported else _NOT_COLLECTED
    return markup.note(markup.state(words))


def chart(timed: LatencyComparison, spread: str) -> Figure:
    """The samples of both sides, or of the one that has some."""
    sides = _sides_with_samples(timed)
    return latency_samples.ecdf_figure(sides) if spread == ECDF else latency_samples.dot_figure(sides)


def chart_note(timed: LatencyComparison, spread: str) -> Html:
    """What a dot and a line mean, how many samples there are, and which were throttled or lie far out."""
    sides = _sides_with_samples(timed)
    counts = " and ".join(f"{len(latency.ns)} in {label}" for label, latency in sides)
    parts = [f"every sample: {counts}"]
    if any(len(latency.ns) > latency_samples.MAX_DOTS for _, latency in sides):
        parts = [f"samples: {counts}, {latency_samples.MAX_DOTS} per side drawn"]
    if spread == SAMPLES:
        parts.append(f"line: {latency_samples.center_word(sides)}")
        if len(sides) > 1:
            own_axes = latency_samples.have_own_axes(sides)
            words = "A and B lie far apart: each has its own axis, both of one length"
            parts.append(words if own_axes else "dashed: that of A")
    if throttled := sum(len(latency.throttled) for _, latency in sides):
        parts.append(f"×: {throttled} taken while the GPU throttled")
    if beyond := latency_samples.count_beyond_axis(sides):
        edge = ", drawn at its edge" if spread == SAMPLES else ""
        parts.append(f"{beyond} lie{'s' * (beyond == 1)} beyond the axis{edge}")
    if not timed.live and len(sides) > 1:
        parts.append("two runs: rounds of A and B did not alternate")
    return markup.note("; ".join(parts))


def alt(timed: LatencyComparison) -> str:
    """The chart in words."""
    sides = ", ".join(
        f"{label} {formatting.quantity(Value(ns, 'ns'))}"
        for label, ns in (("A", timed.a_ns), ("B", timed.b_ns))
        if ns is not None
    )
    return f"latency samples: {sides}; {timed.decision.reason}"


def _cells(timed: LatencyComparison) -> tuple[object, ...]:
    """A, B, change, interval and verdict of one mode."""
    sides = (timed.a_ns, timed.b_ns)
    numbers = [ns for ns in sides if ns is not None]
    scale = formatting.scale_for("ns", max(numbers)) if numbers else None
    values = [markup.muted("–") if ns is None else markup.value(Value(ns, "ns"), scale) for ns in sides]
    decision = timed.decision
    return (
        *values,
        latency_words.change(decision),
        latency_words.interval(decision, brief=True),
        markup.verdict(decision.verdict, reason=decision.reason),
    )


def _sides_with_samples(timed: LatencyComparison) -> Sequence[tuple[str, Latency]]:
    sides = (("A", timed.a), ("B", timed.b))
    return [(label, latency) for label, latency in sides if latency is not None and len(latency.ns)]
