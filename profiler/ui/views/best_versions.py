"""The best correct version of each GPU and workload: against its floor, the best baseline and its parent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from profiler.catalog.version import Version
from profiler.evidence import formatting
from profiler.evidence.values import Evidence, Value
from profiler.history.best_versions import BestVersion
from profiler.history.lineage import Lineage
from profiler.history.speedups import Speedup
from profiler.statistics.decision import change_text
from profiler.ui import addresses, markup
from profiler.ui.charts import latency_track, sparkline
from profiler.ui.markup import Column, Html, Row

# With the newest versions below them they end within the first 600 px of a page 1,280 px wide.
ROWS_SHOWN = 6
ROWS_BEFORE_FOLD = 3  # where there are more, and the fold takes room too
_VENDOR = "NVIDIA "  # left out where room is short
WorseSince = Mapping[tuple[str, str, str], datetime]  # when each (version, workload, GPU) got worse


def caption(lineage: Lineage, best_versions: Sequence[BestVersion]) -> str:
    """How the latencies were taken, and what the marks are."""
    latencies = [latency for status in lineage.statuses for latency in status.latencies.values()]
    modes = dict.fromkeys(latency.mode for latency in latencies)
    marks = ""
    if any(best.times_bound for best in best_versions):
        marks = "; ┃ lower bound, ▾ best baseline, ● version; log scale, times the lower bound"
    return f"measured latency, median ({', '.join(modes)}){marks}"


def table(lineage: Lineage, best_versions: Sequence[BestVersion], worse_since: WorseSince) -> Html:
    """One row a GPU and workload; what has no room is folded below."""
    # Times of the bound, so that workloads of all sizes fit on one line; none where a run computed no bound.
    multiples = [
        times
        for best in best_versions
        for times in (best.times_bound, best.baseline_times_bound)
        if times is not None
    ]
    scale = latency_track.scale_of([1.0, *multiples]) if multiples else None
    count = ROWS_SHOWN if len(best_versions) <= ROWS_SHOWN else ROWS_BEFORE_FOLD
    shown, folded = best_versions[:count], best_versions[count:]
    first = _table(lineage, shown, scale, worse_since)
    if not folded:
        return first
    rest = _table(lineage, folded, scale, worse_since)
    return Html(first + markup.fold(f"{len(folded)} more GPU/workload pairs", [rest]))


def _table(
    lineage: Lineage,
    best_versions: Sequence[BestVersion],
    scale: latency_track.TrackScale | None,
    worse_since: WorseSince,
) -> Html:
    columns = (
        Column("GPU", wide=True),
        Column("workload"),
        Column("version"),
        Column("latency", right=True),
        *((Column("against lower bound and baseline", wide=True),) if scale else ()),
        *((Column("× lower bound", right=True, wide=True),) if scale else ()),
        Column("speed-up", right=True),
        Column("over the best baseline", wide=True),
        Column("since its parent, same run"),
        Column("newest runs", wide=True),
        Column("", wide=True, right=True),
    )
    rows: list[Row] = []
    gpu = ""
    for best in best_versions:
        is_first = best.gpu != gpu
        gpu = best.gpu
        if is_first:
            rows.append(markup.phone_head(short_gpu(gpu)))
        rows.append(_row(lineage, best, scale, is_first, worse_since))
    return markup.table("best correct version per GPU and workload", columns, rows, css="best")


def _row(
    lineage: Lineage,
    best: BestVersion,
    scale: latency_track.TrackScale | None,
    is_first_of_gpu: bool,
    worse_since: WorseSince,
) -> Row:
    gpu = markup.tag("b", short_gpu(best.gpu)) if is_first_of_gpu else ""
    if best.status is None or best.latency is None:
        return _row_without_time(best, gpu, scale)
    version = best.status.version.id
    latency = best.latency
    track: tuple[Html, ...] = ()
    if scale and best.times_bound:
        marks = best.times_bound, 1.0, best.baseline_times_bound
        track = (latency_track.track(scale, *marks, _track_title(best)),)
    elif scale:
        track = (Html(""),)
    of_floor = (latency_track.times_bound(latency),) if scale else ()
    place = {"family": lineage.family, "workload": best.workload, "gpu": best.gpu}
    return Row(
        (
            gpu,
            best.workload,
            markup.link(markup.href("lineage", place), markup.code(version), "its place in the lineage"),
            markup.tag("span", markup.value(Value(latency.ns, "ns")), title=latency.mode),
            *track,
            *of_floor,
            _speedup(best),
            _baseline(best),
            _since_parent(lineage, best),
            _sparkline(best, worse_since),
            _links(lineage, best),
        )
    )


def _row_without_time(best: BestVersion, gpu: object, scale: latency_track.TrackScale | None) -> Row:
    command = markup.code(f"profiler collect --workloads '{best.workload}'")
    blank = ("", "") if scale else ()
    return Row(
        (
            *(gpu, best.workload, markup.muted("–"), markup.state("not measured")),
            *(*blank, markup.muted("–"), _baseline(best), markup.muted("– missing"), "", command),
        )
    )


def short_gpu(gpu: str) -> str:
    """The GPU without its vendor; of a report that names none, that."""
    return gpu.removeprefix(_VENDOR) or "unknown GPU"


def _speedup(best: BestVersion) -> Html:
    """How much faster than the best baseline: bold where it is ahead, and no verdict."""
    if best.speedup is None:
        return markup.muted("–")
    words = f"{formatting.TIMES}{formatting.digits(best.speedup)}"
    return markup.tag("b", words) if best.speedup > 1 else markup.muted(words)


def _track_title(best: BestVersion) -> str:
    assert best.latency is not None
    words = [latency_track.nanoseconds(best.latency.ns), latency_track.bound_words(best.latency)]
    if best.baseline and best.baseline_latency:
        words.append(f"{best.baseline.version.id} {latency_track.nanoseconds(best.baseline_latency.ns)}")
    return "; ".join(words)


def _baseline(best: BestVersion) -> Html:
    if best.baseline is None or best.baseline_latency is None:
        return markup.muted("none was timed")
    ns = latency_track.nanoseconds(best.baseline_latency.ns)
    return markup.join((markup.code(best.baseline.version.id), markup.muted(ns)))


def _since_parent(lineage: Lineage, best: BestVersion) -> Html:
    """The verdict on the step from its nearest correct ancestor, which is named."""
    parent = best.status.correct_ancestor if best.status else None
    if parent is None:
        return markup.muted("first")
    if best.since_parent is None:
        return markup.join((markup.muted(_why_no_pair(best, parent)), markup.code(parent.id)))
    address = _diff_with_parent(lineage, best).href
    return markup.link(address, since_parent(best.since_parent, parent.id), "the diff with its parent")


def _why_no_pair(best: BestVersion, parent: Version) -> str:
    """Why a version and its parent have no times to compare."""
    assert best.status is not None
    if not set(best.status.version.dtypes) & set(parent.dtypes):
        return f"≠ not comparable: {best.status.version.dtypes[0]}, not {parent.dtypes[0]} as"
    return "– no run timed both"


def _diff_with_parent(lineage: Lineage, best: BestVersion) -> addresses.Diff:
    """The diff with the nearest correct ancestor, of the calls of both."""
    assert best.status is not None
    assert best.status.correct_ancestor is not None
    assert best.since_parent is not None
    return addresses.Diff(
        f"{lineage.family}/{best.status.correct_ancestor.id}",
        f"{lineage.family}/{best.status.version.id}",
        best.since_parent.workload,
        best.gpu,
        evidence=Evidence.MEASURED.value,
    )


def since_parent(speedup: Speedup, parent: str) -> Html:
    """`✓ better −17.7 % v2d_c`: the verdict, the change of the latency, and the parent."""
    decision = speedup.compared.decision
    effect = 1 / speedup.times - 1
    words = markup.verdict(speedup.compared.verdict, change_text(effect), decision.reason)
    return markup.join((words, markup.tag("span", parent, "m c")))


def _sparkline(best: BestVersion, worse_since: WorseSince) -> Html:
    points = [(row.created, row.median_ns) for row in best.past if row.median_ns]
    if len(points) < 2 or best.status is None:
        return markup.muted("–")
    since = worse_since.get((best.status.version.id, best.past[-1].workload or "", best.gpu))
    marked = next((index for index, (created, _) in enumerate(points) if since and created >= since), None)
    return sparkline.picture([ns for _, ns in points], marked)


def _links(lineage: Lineage, best: BestVersion) -> Html:
    assert best.status is not None
    assert best.latency is not None
    name = f"{lineage.family}/{best.status.version.id}"
    links = []
    if best.since_parent is not None and best.status.correct_ancestor is not None:
        address = _diff_with_parent(lineage, best).href
        links.append(markup.link(address, "why", "the diff with its parent"))
    links.append(markup.link(addresses.run(best.latency.run_id), "run"))
    arches = sorted({arch for arch, _ in best.status.static}, key=lineage.architectures.index)
    if arches:
        links.append(markup.link(addresses.CompiledCode(name, arches[-1]).href, "code"))
    return markup.join(links, " · ")
