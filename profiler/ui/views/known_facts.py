"""What is known of a lineage that no GPU has run: facts of the machine code, of the CPU model, and claims."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.catalog.version import Claim
from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.history.lineage import BASELINE, PLANNED, Lineage, VersionStatus
from profiler.model.stored_predictions import StoredPredictions
from profiler.ui import markup
from profiler.ui.charts import version_facts
from profiler.ui.charts.style import Figure
from profiler.ui.charts.version_facts import FactPanel, FactPoint, VersionColumn
from profiler.ui.markup import Html
from profiler.ui.views.best_versions import short_gpu
from profiler.ui.views.lineage_versions import Places, claimed_latency

# Fact of the compiler, its panel's title.
_STATIC = (
    ("registers", "registers per thread"),
    ("instructions", "instructions in the code"),
)


@dataclass(frozen=True)
class KnownFacts:
    """A chart, and what it shows for who cannot see it."""

    figure: Figure
    alt: str


def caption() -> Html:
    """What kinds of evidence the panels hold."""
    badges = (markup.evidence_badge("static"), markup.evidence_badge("modelled"))
    return markup.join((*badges, "and the owner's claims, dashed; nothing here was timed"))


def chart(lineage: Lineage, places: Places, predicted: StoredPredictions | None = None) -> KnownFacts | None:
    """The facts over the versions in the catalogue's order; None where no version has any."""
    statuses = [status for status in lineage.statuses if status.state != BASELINE]
    panels = [_time_panel(statuses, predicted)] if predicted is not None else []
    correct = [status for status in statuses if not status.is_wrong]
    for fact, title in _STATIC:
        values = [(status, places.static(status, fact)) for status in correct]
        panels.append(_static_panel(places, title, values))
    sites = [(status, places.tensor_sites(status)) for status in correct]
    panels.append(_static_panel(places, "tensor sites", sites))
    panels.append(_model_panel(statuses, places))
    panels = [panel for panel in panels if panel.points]
    if not panels:
        return None
    if (claims := _claim_panel(statuses)) is not None:
        panels.append(claims)
    columns = [_column(status) for status in statuses]
    alt = "; ".join(f"{panel.title}: {_range_words(panel)}" for panel in panels)
    return KnownFacts(version_facts.figure(columns, panels), f"{len(columns)} versions. {alt}")


def _column(status: VersionStatus) -> VersionColumn:
    gap = f"{status.state}: {status.reason}" if status.is_wrong else ""
    version = status.version
    return VersionColumn(version.id, version.technique, gap, status.state == PLANNED)


def _static_panel(places: Places, title: str, values: Sequence[tuple[VersionStatus, Value]]) -> FactPanel:
    return FactPanel(title, f"static, {places.arch}, {places.size}", _points(values))


def _time_panel(statuses: Sequence[VersionStatus], predicted: StoredPredictions) -> FactPanel:
    """The modelled times on the first workload and GPU."""
    workload, gpu = predicted.workloads[0], predicted.gpus[0]
    times = {version: p.time_ns for version, p in predicted.on(workload, gpu).items() if p.time_ns}
    points = {
        status.version.id: FactPoint(time_ns, str(formatting.quantity(Value(time_ns, "ns"))))
        for status in statuses
        if not status.is_wrong and (time_ns := times.get(status.version.id)) is not None
    }
    return FactPanel("modelled time", f"not measured: {gpu}, {workload}", points)


def _model_panel(statuses: Sequence[VersionStatus], places: Places) -> FactPanel:
    values = [
        (status, places.of_model(status, "bank_conflicts")) for status in statuses if not status.is_wrong
    ]
    return FactPanel("bank conflicts", f"modelled on the CPU, {places.modelled}", _points(values))


def _points(values: Sequence[tuple[VersionStatus, Value]]) -> dict[str, FactPoint]:
    return {
        status.version.id: FactPoint(value.number, str(formatting.quantity(Value(value.number))))
        for status, value in values
        if value.number is not None
    }


def _claim_panel(statuses: Sequence[VersionStatus]) -> FactPanel | None:
    """The owner's latencies on the workload that he names most, and his goals; None where he says none."""
    claims = {
        status.version.id: [claim for claim in status.version.claims if claim.fact == "latency"]
        for status in statuses
        if not status.is_wrong
    }
    named = [claim for several in claims.values() for claim in several if claim.kind != "goal"]
    if not named:
        return None
    workloads = [claim.workload for claim in named if claim.workload]
    workload = max(dict.fromkeys(workloads), key=workloads.count, default="")
    # One GPU for one axis: what he aims at elsewhere stands in the lineage.
    gpu = named[0].gpu
    scale = formatting.scale_for(named[0].unit, max(claim.value for claim in named if claim.gpu == gpu))
    points, goals = {}, {}
    for status in statuses:
        if status.is_wrong:
            continue
        claim = claimed_latency(status, workload)
        if claim is not None and (claim.workload, claim.gpu) == (workload, gpu):
            points[status.version.id] = FactPoint(claim.value, _claim_words(claim, scale))
        goals_here = [one for one in claims[status.version.id] if one.kind == "goal" and one.gpu == gpu]
        goal = next(iter(goals_here), None)
        if goal is not None:
            words = f"{_claim_words(goal, scale)} goal"
            goals[status.version.id] = FactPoint(goal.value, words, goal.high, is_goal=True)
    words = f"claimed, not checked: {named[0].source}, {short_gpu(gpu)}, {workload}"
    return FactPanel("latency", words, points, is_claim=True, extra=goals)


def _claim_words(claim: Claim, scale: formatting.Scale) -> str:
    numbers = [number / scale.divisor for number in (claim.value, claim.high) if number is not None]
    return f"{'–'.join(f'{number:.3g}' for number in numbers)} {scale.unit}"


def _range_words(panel: FactPanel) -> str:
    ordered = sorted(panel.points.values(), key=lambda point: point.value)
    if not ordered:
        return "none"
    return f"{ordered[0].label} to {ordered[-1].label} ({panel.caption})"
