"""A lineage in short, for the overview: what is right, what is wrong and why, what is not measured."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from profiler.evidence import Evidence, Value, formatting
from profiler.history import Lineage, VersionLatency, VersionStatus
from profiler.history.lineage import GOOD, PLANNED
from profiler.regressions import RegressionReport
from profiler.statistics import OVER_BUDGET, Verdict, excess_over_budget
from profiler.ui import addresses, markup
from profiler.ui.charts import latency_track
from profiler.ui.markup import Column, Html, Row, Tile

NAMED = 4  # versions that a tile's sentence names
LISTED = 12  # versions in a short table
_TileContent = tuple[object, str, object]  # value, unit, sentence


def caption(lineage: Lineage) -> Html:
    """Links to the whole lineage and its trends."""
    links = (
        markup.link(markup.href("lineage", {"family": lineage.family}), "all versions"),
        markup.link(addresses.trends(lineage.family), "trends"),
        f"catalogue of {formatting.timestamp(lineage.snapshot.created)}",
    )
    return markup.join(links, " · ")


def tiles(lineage: Lineage, report: RegressionReport) -> Html:
    """Four counts; the best version only where something was measured."""
    wrong = [status for status in lineage.statuses if status.is_wrong]
    unmeasured = _unmeasured(lineage)
    planned = sum(status.state == PLANNED for status in lineage.statuses)
    more = f"{planned} more planned" if planned else ""
    return markup.tiles(
        (
            Tile("Best", *_best(lineage)),
            Tile("Worse now", *_worse(lineage, report)),
            Tile("Wrong", f"⊘ {len(wrong)}", "versions", _names(wrong)),
            Tile("Not measured", f"– {len(unmeasured)}", "versions", more),
        )
    )


class _BestLatency(NamedTuple):
    """The best correct version of one GPU and workload, and the best baseline there."""

    gpu: str
    workload: str
    status: VersionStatus
    latency: VersionLatency
    baseline: VersionStatus | None

    @property
    def baseline_latency(self) -> VersionLatency | None:
        return self.baseline.latencies[self.workload, self.gpu] if self.baseline else None

    @property
    def times_bound(self) -> list[float]:
        """How many times the version's lower bound it and the baseline take; empty without a bound."""
        bound_ns = self.latency.bound_ns
        latencies = (self.latency, self.baseline_latency)
        return [latency.ns / bound_ns for latency in latencies if latency] if bound_ns else []


def best_latencies(lineage: Lineage) -> Html | None:
    """The best correct version of each GPU and workload, beside its lower bound and the best baseline.

    None where nothing was timed.
    """
    timed = []
    for gpu, workload in lineage.timed_cells:
        best = lineage.best(workload, gpu)
        if best is not None and (workload, gpu) in best.latencies:
            latency = best.latencies[workload, gpu]
            baseline = lineage.best_baseline(workload, gpu)
            timed.append(_BestLatency(gpu, workload, best, latency, baseline))
    if not timed:
        return None
    # Times of the bound, so that workloads of all sizes fit on one line; none where a run computed no bound.
    multiples = [times for best in timed for times in best.times_bound]
    scale = latency_track.scale_of([1.0, *multiples]) if multiples else None
    columns = (
        Column("GPU", wide=True),
        Column("workload"),
        Column("version"),
        Column("latency", right=True),
        Column("against floor and baseline", wide=True),
        Column("of floor", right=True),
        Column("speed-up", right=True, wide=True),
        Column("over the best baseline", wide=True),
    )
    rows = [_latency_row(best, lineage, scale) for best in timed]
    return markup.table("best correct version per GPU and workload", columns, rows)


def best_latencies_caption(lineage: Lineage) -> str:
    """How the latencies were taken, and what the marks are."""
    latencies = [latency for status in lineage.statuses for latency in status.latencies.values()]
    modes = dict.fromkeys(latency.mode for latency in latencies)
    has_bounds = any(latency.bound_ns for latency in latencies)
    marks = "; ┃ floor, ▾ best baseline, ● version; log scale, times of the floor" if has_bounds else ""
    return f"measured latency, median ({', '.join(modes)}){marks}"


def wrong(lineage: Lineage) -> Html:
    """The versions without a speed, each with why."""
    rows = [
        Row(
            (
                _link(status, lineage),
                markup.status_tag(status.state),
                markup.tag("span", status.reason, "m"),
            )
        )
        for status in lineage.statuses
        if status.is_wrong
    ]
    if not rows:
        return markup.note("none")
    return markup.table("wrong", (Column(""), Column(""), Column("", wrap=True)), rows)


def not_measured(lineage: Lineage) -> Html:
    """The correct versions that no GPU has run, the newest first."""
    unmeasured = _unmeasured(lineage)[::-1]
    if not unmeasured:
        return markup.note("none")
    rows = [
        Row((_link(status, lineage), markup.tag("span", status.version.technique, "m")))
        for status in unmeasured[:LISTED]
    ]
    if len(unmeasured) > LISTED:
        rows.append(markup.closing_row(markup.muted(f"and {len(unmeasured) - LISTED} more")))
    return markup.table("not measured", (Column(""), Column("", wrap=True)), rows)


def measuring_command(lineage: Lineage) -> Html:
    """The one command that measures what no GPU has run; nothing where there is no such version."""
    unmeasured = _unmeasured(lineage)
    if not unmeasured:
        return Html("")
    correct = sum(status.state == GOOD for status in lineage.statuses)
    # Without names the command measures the whole lineage.
    names = [status.version.id for status in unmeasured] if len(unmeasured) < correct else []
    command = " ".join(["profiler collect", *names])
    return markup.backticks_as_code(f"on a machine with a GPU: `{command}`")


def _unmeasured(lineage: Lineage) -> list[VersionStatus]:
    return [
        status
        for status in lineage.statuses
        if status.state == GOOD and Evidence.MEASURED not in status.evidence
    ]


def _latency_row(best: _BestLatency, lineage: Lineage, scale: latency_track.Scale | None) -> Row:
    latency, baseline_latency = best.latency, best.baseline_latency
    speedup = markup.muted("–")
    if baseline_latency:
        speedup = markup.escaped(f"{formatting.TIMES}{formatting.digits(baseline_latency.ns / latency.ns)}")
    track = Html("")
    if scale and best.times_bound:
        own, *baseline = best.times_bound
        track = latency_track.track(scale, own, 1.0, next(iter(baseline), None), _track_title(best))
    return Row(
        (
            best.gpu,
            best.workload,
            _link(best.status, lineage),
            markup.tag("span", markup.value(Value(latency.ns, "ns")), title=latency.mode),
            track,
            latency_track.times_bound(latency),
            speedup,
            _baseline(best),
        )
    )


def _track_title(best: _BestLatency) -> str:
    words = [latency_track.nanoseconds(best.latency.ns), latency_track.bound_words(best.latency)]
    if best.baseline and best.baseline_latency:
        words.append(f"{best.baseline.version.id} {latency_track.nanoseconds(best.baseline_latency.ns)}")
    return "; ".join(words)


def _baseline(best: _BestLatency) -> Html:
    if best.baseline is None or best.baseline_latency is None:
        return markup.muted("none was timed")
    ns = latency_track.nanoseconds(best.baseline_latency.ns)
    return markup.join((markup.code(best.baseline.version.id), markup.muted(ns)))


def _best(lineage: Lineage) -> _TileContent:
    """The fastest version where any was measured; else how many are correct, and the deepest of them."""
    cells = lineage.timed_cells
    if not cells:
        correct = lineage.correct_deepest_first
        furthest = correct[0].version.id if correct else "none"
        words = (f"{len(correct)} versions are correct on the CPU; furthest", markup.code(furthest))
        return markup.state("not measured"), "", markup.join(words)
    for gpu, workload in cells:
        best = lineage.best(workload, gpu)
        if best is None or (workload, gpu) not in best.latencies:
            continue
        latency = best.latencies[workload, gpu]
        sentence: list[object] = [markup.value(Value(latency.ns, "ns"))]
        if latency.times_bound:
            sentence += [latency_track.times_bound(latency), "of its floor"]
        return markup.code(best.version.id), f"{gpu}, {workload}", markup.join(sentence)
    return markup.state("not measured"), "", markup.muted("only others' kernels were timed")


def _worse(lineage: Lineage, report: RegressionReport) -> _TileContent:
    """What is worse and not acknowledged, as far as it can be told, and what is over its budget."""
    regressions = [regression for regression in report.open if regression.series.family == lineage.family]
    versions = len({regression.series.version for regression in regressions})
    unit = f"of {versions} version{'s' * (versions != 1)}" if regressions else "as far as can be told"
    over = [status for status in lineage.statuses if status.state == GOOD and _is_over_budget(status)]
    budget: object = "none over its budget"
    if over:
        budget = markup.join((f"{len(over)} over budget:", _names(over)))
    link = markup.link(addresses.regressions(lineage.family), "since when, and why")
    return markup.verdict_count(Verdict.WORSE, len(regressions)), unit, markup.join((link, budget), "; ")


def _is_over_budget(status: VersionStatus) -> bool:
    return any(excess_over_budget(launch.values.value(OVER_BUDGET).text) for launch in status.static.values())


def _names(statuses: Sequence[VersionStatus]) -> Html:
    if not statuses:
        return markup.muted("none")
    names = markup.join((markup.code(status.version.id) for status in statuses[:NAMED]), ", ")
    more = f"and {len(statuses) - NAMED} more" if len(statuses) > NAMED else ""
    return markup.join((names, more))


def _link(status: VersionStatus, lineage: Lineage) -> Html:
    """The version, as a way to its diff with the nearest correct ancestor."""
    name = markup.code(status.version.id)
    ancestor = status.correct_ancestor
    if ancestor is None or not status.evidence:
        return name
    view = addresses.Diff(f"{lineage.family}/{ancestor.id}", f"{lineage.family}/{status.version.id}")
    return markup.link(view.href, name, title=f"diff with {ancestor.id}")
