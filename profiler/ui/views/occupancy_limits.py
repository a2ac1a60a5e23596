"""How full an SM is and why: a sentence, and a small chart for each resource."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.explain.occupancy_whatif import OccupancyAnalysis, OccupancyCurve
from profiler.store.rows import ResultInfo
from profiler.ui import markup
from profiler.ui.charts import occupancy_curve
from profiler.ui.charts.style import Figure
from profiler.ui.markup import Html

_KIB = 1024.0  # shared memory is allocated and documented in KiB


def sentence(occupancy: OccupancyAnalysis) -> str:
    """What limits, and the nearest change of one resource that would let more warps in."""
    if not occupancy.binding:
        return "What limits is not known: no limit is in the report."
    limits = "Limited by " + " and ".join(occupancy.binding)
    gains = []
    for curve in occupancy.curves:
        gain = curve.next_gain()
        if gain is None or curve.own_amount is None:
            continue
        amount, warps = gain
        quantity = formatting.quantity(Value(amount, curve.unit))
        gains.append(f"{formatting.digits(warps)} warps at {quantity} {curve.name}")
    if not gains:
        return f"{limits}; no single resource would allow more warps."
    return f"{limits}. More with a single change: {'; '.join(gains)}."


def chart(curve: OccupancyCurve, max_warps: float | None) -> tuple[Figure, str]:
    """Active warps per SM over one resource, the launch's own amount marked; and the same in words."""
    divisor, unit = (_KIB, ", KiB") if curve.unit == "byte" else (1.0, "")
    own = None
    alt = f"warps per SM over {curve.name}"
    if curve.own_warps is not None and curve.own_amount is not None:
        amount = formatting.quantity(Value(curve.own_amount, curve.unit))
        warps = formatting.digits(curve.own_warps)
        alt += f"; now {warps} at {amount}"
        own = (curve.own_amount / divisor, curve.own_warps, f"{amount}: {warps} warps")
    amounts = [amount / divisor for amount in curve.amounts]
    return occupancy_curve.figure(curve.name + unit, amounts, curve.warps, max_warps, own), alt


def notes(occupancy: OccupancyAnalysis) -> list[Html]:
    """The curves that are not there, each by its metric."""
    metrics_by_state: dict[str, list[str]] = {}
    for metric, state in occupancy.missing:
        metrics_by_state.setdefault(state, []).append(metric)
    return [
        markup.note(markup.join((markup.state(state), markup.join(map(markup.code, metrics), ", "))))
        for state, metrics in metrics_by_state.items()
    ]


def functions_by_label(facts: Sequence[ResultInfo]) -> dict[str, ResultInfo]:
    """The kernel functions with static facts, by their labels in a select box."""
    by_label: dict[str, ResultInfo] = {}
    for result in facts:
        if result.evidence is Evidence.STATIC:
            part = "" if result.part in ("main", "total") else result.part
            label = " · ".join(filter(None, (result.version, part, result.gpu, result.workload)))
            by_label.setdefault(label, result)
    return by_label
