"""A lineage in short, for the overview: what is right, what is wrong and why, what is not measured."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.evidence import Evidence, Value, formatting
from profiler.history import Lineage, VersionLatency, VersionStatus
from profiler.history.lineage import GOOD, PLANNED
from profiler.regressions import RegressionReport
from profiler.statistics import Verdict
from profiler.ui import addresses, markup
from profiler.ui.charts import latency_track
from profiler.ui.markup import Column, Html, Row, Tile

MEASURE = "profiler collect"  # on a machine with a GPU: the whole lineage, or the versions named
NAMED = 4  # versions that a tile's sentence names
LISTED = 12


def caption(lineage: Lineage) -> Html:
    """Where the whole of it is."""
    family = lineage.snapshot.catalog.family
    links = (
        markup.link(markup.href("lineage", {"family": family}), "all versions"),
        markup.link(addresses.trends(family), "trends"),
        f"catalogue of {formatting.timestamp(lineage.snapshot.created)}",
    )
    return markup.join(links, " · ")


def tiles(lineage: Lineage, found: RegressionReport) -> Html:
    """Four counts; the best version only where something was measured."""
    good = [one for one in lineage.statuses if one.state == GOOD]
    wrong = [one for one in lineage.statuses if one.is_wrong]
    missing = _missing(lineage)
    planned = [one for one in lineage.statuses if one.state == PLANNED]
    over = [one for one in good if _over_budget(one)]
    return markup.tiles(
        (
            Tile("Best", *_best(lineage)),
            Tile("Worse now", *_worse(lineage, found, over)),
            Tile("Wrong", f"⊘ {len(wrong)}", "versions", _names(wrong)),
            Tile(
                "Not measured",
                f"– {len(missing)}",
                "versions",
                f"{len(planned)} more planned" if planned else "",
            ),
        )
    )


def attained(lineage: Lineage) -> Html | None:
    """The best correct version of each GPU and workload, beside its floor and the best baseline.

    None where nothing was timed.
    """
    found = []
    for gpu, workload in lineage.timed_cells:
        best, base = lineage.best(workload, gpu), lineage.best_baseline(workload, gpu)
        if best is not None and (workload, gpu) in best.latencies:
            beside = base.latencies[workload, gpu] if base else None
            found.append((gpu, workload, best, best.latencies[workload, gpu], base, beside))
    if not found:
        return None
    # Times of the floor, so that workloads of all sizes fit on one line; alone where a run computed none.
    known = [(own, beside) for _, _, _, own, _, beside in found if own.bound_ns]
    shares = [one.ns / own.bound_ns for own, beside in known for one in (own, beside) if one and own.bound_ns]
    scale = latency_track.scale_of([1.0, *shares]) if shares else None
    rows: list[Row] = []
    for gpu, workload, best, own, base, beside in found:
        picture = Html("")
        if scale and own.bound_ns:
            other = beside.ns / own.bound_ns if beside else None
            picture = latency_track.track(
                scale, own.ns / own.bound_ns, 1.0, other, _track_words(own, base, beside)
            )
        rows.append(
            Row(
                (
                    gpu,
                    workload,
                    _link(best, lineage),
                    markup.tag("span", markup.value(Value(own.ns, "ns")), title=own.mode),
                    picture,
                    latency_track.times_bound(own),
                    f"{formatting.TIMES}{formatting.digits(beside.ns / own.ns)}"
                    if beside
                    else markup.muted("–"),
                    _base(base, beside),
                )
            )
        )
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
    return markup.table("best correct version per GPU and workload", columns, rows)


def attained_caption(lineage: Lineage) -> str:
    """How the latencies were taken, and what the marks are."""
    modes = dict.fromkeys(one.mode for standing in lineage.statuses for one in standing.latencies.values())
    floors = any(one.bound_ns for standing in lineage.statuses for one in standing.latencies.values())
    marks = "; ┃ floor, ▾ best baseline, ● version; log scale, times of the floor" if floors else ""
    return f"measured latency, median ({', '.join(modes)}){marks}"


def _track_words(own: VersionLatency, base: VersionStatus | None, beside: VersionLatency | None) -> str:
    words = [latency_track.nanoseconds(own.ns), latency_track.bound_words(own)]
    words += [f"{base.version.id} {latency_track.nanoseconds(beside.ns)}"] if base and beside else []
    return "; ".join(words)


def _base(base: VersionStatus | None, beside: VersionLatency | None) -> Html:
    if base is None or beside is None:
        return markup.muted("none was timed")
    return markup.join((markup.code(base.version.id), markup.muted(latency_track.nanoseconds(beside.ns))))


def wrong(lineage: Lineage) -> Html:
    """The versions without a speed, each with why."""
    found = [one for one in lineage.statuses if one.is_wrong]
    rows = [
        Row((_link(one, lineage), markup.status_tag(one.state), markup.tag("span", one.reason, "m")))
        for one in found
    ]
    return (
        markup.table("wrong", (Column(""), Column(""), Column("", wrap=True)), rows)
        if rows
        else markup.note("none")
    )


def missing(lineage: Lineage) -> Html:
    """The correct versions that no GPU has run, the newest first."""
    found = _missing(lineage)[::-1]
    rows = [
        Row((_link(one, lineage), markup.tag("span", one.version.technique, "m"))) for one in found[:LISTED]
    ]
    if len(found) > LISTED:
        rows.append(markup.closing_row(markup.muted(f"and {len(found) - LISTED} more")))
    return (
        markup.table("not measured", (Column(""), Column("", wrap=True)), rows)
        if rows
        else markup.note("none")
    )


def measuring(lineage: Lineage) -> Html:
    """The one command that measures what no GPU has run; nothing where there is no such version."""
    found = _missing(lineage)
    correct = sum(one.state == GOOD for one in lineage.statuses)
    command = " ".join([MEASURE, *(one.version.id for one in found if len(found) < correct)])
    return markup.backticks_as_code(f"on a machine with a GPU: `{command}`") if found else Html("")


def _missing(lineage: Lineage) -> list[VersionStatus]:
    return [one for one in lineage.statuses if one.state == GOOD and Evidence.MEASURED not in one.evidence]


def _best(lineage: Lineage) -> tuple[object, str, object]:
    """The fastest version where any was measured; the furthest correct one has no speed to be best by."""
    places = lineage.timed_cells
    good = [one for one in lineage.statuses if one.state == GOOD]
    if not places:
        furthest = lineage.correct_deepest_first[0].version.id if good else "none"
        said = (f"{len(good)} versions are correct on the CPU; furthest", markup.code(furthest))
        return markup.state("not measured"), "", markup.join(said)
    measured = [
        (best, best.latencies[workload, gpu], f"{gpu}, {workload}")
        for gpu, workload in places
        if (best := lineage.best(workload, gpu)) and (workload, gpu) in best.latencies
    ]
    if not measured:  # baselines alone
        return markup.state("not measured"), "", markup.muted("only others' kernels were timed")
    best, own, place = measured[0]
    words: list[object] = [markup.value(Value(own.ns, "ns"))]
    words.extend([latency_track.times_bound(own), "of its floor"] if own.times_bound else [])
    return markup.code(best.version.id), place, markup.join(words)


def _worse(
    lineage: Lineage, found: RegressionReport, over: Sequence[VersionStatus]
) -> tuple[object, str, object]:
    """What is worse and nobody let pass, as far as it can be told; and what is over its budget."""
    family = lineage.snapshot.catalog.family
    still = [one for one in found.open if one.series.family == family]
    versions = len({one.series.version for one in still})
    unit = f"of {versions} version{'s' * (versions != 1)}" if still else "as far as can be told"
    budget = markup.join((f"{len(over)} over budget:", _names(over))) if over else "none over its budget"
    words = (markup.link(addresses.regressions(family), "since when, and why"), budget)
    return markup.verdict_count(Verdict.WORSE, len(still)), unit, markup.join(words, "; ")


def _over_budget(one: VersionStatus) -> bool:
    budgets = (launch.values.value("static__over_budget").text for launch in one.static.values())
    return any(text not in (None, "nothing") for text in budgets)


def _names(found: Sequence[VersionStatus]) -> Html:
    names = markup.join((markup.code(one.version.id) for one in found[:NAMED]), ", ")
    more = f"and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return markup.join((names, more)) if found else markup.muted("none")


def _link(one: VersionStatus, lineage: Lineage) -> Html:
    """The version, as a way to its diff with the nearest correct ancestor."""
    name = markup.code(one.version.id)
    if one.correct_ancestor is None or not one.evidence:
        return name
    family = lineage.snapshot.catalog.family
    view = addresses.Diff(f"{family}/{one.correct_ancestor.id}", f"{family}/{one.version.id}")
    return markup.link(view.href, name, title=f"diff with {one.correct_ancestor.id}")
