"""What is worse now: counts, the rows of one group, and everything known about the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from profiler.compare import latency_words
from profiler.evidence import formatting
from profiler.evidence.values import Evidence
from profiler.history.trend import LATENCY
from profiler.regressions.cause import Cause
from profiler.regressions.groups import WorseNow
from profiler.regressions.regression import Regression, RegressionKind, VersionRun
from profiler.regressions.search import Coverage
from profiler.statistics.changepoint import LevelKind
from profiler.statistics.verdict import Verdict
from profiler.ui import addresses, markup
from profiler.ui.data.part_names import mode_name
from profiler.ui.data.run_axis import TIME
from profiler.ui.markup import Column, Html, Row, Tile

ROWS_SHOWN = 40
ALL = "all"  # families
CAPTION = "every version's newest results against its own past and the baseline; acknowledged last"


def key(regression: Regression) -> str:
    """A regression's name in an address."""
    # The series is the regression's only identity, and too long for a link.
    return sha256(repr(tuple(map(str, regression.series))).encode()).hexdigest()[:10]


def tiles(worse: WorseNow, coverage: Coverage) -> Html:
    """How much is worse, wrong, slower than its parent without being worse, and cannot be judged."""
    versions = len({regression.subject for regression in worse.rows})
    of_versions = f"of {versions} version{'s' * (versions != 1)}" if worse.count else "nothing"
    rows, acknowledged = len(worse.rows), len(worse.acknowledged)
    of_rows = f"{rows} rows " if worse.count < rows else ""
    wrong = sum(regression.became_wrong for regression in worse.rows)
    unclear = sum(coverage.unclear.values())
    overview = markup.link(markup.href("", {}), "Overview")
    return markup.tiles(
        (
            Tile(
                "Worse now",
                markup.verdict_count(Verdict.WORSE, worse.count),
                "",
                f"{of_rows}{of_versions}; {acknowledged} acknowledged",
            ),
            Tile("Wrong now", f"⊘ {wrong}" if wrong else "0", "", "right in an earlier run"),
            Tile(
                "Slower than its parent",
                str(len(worse.slower_than_parent)),
                "",
                "an idea that did not help; not counted",
            ),
            Tile(
                "Cannot tell",
                markup.verdict_count(Verdict.UNCLEAR, unclear),
                f"newest result{'s' * (unclear != 1)}",
                markup.join(("of every version in all families; of the newest:", overview)),
            ),
        )
    )


def table(regressions: Sequence[Regression], selected: Regression | None, family: str | None) -> Html:
    """The rows of one group: its place links to everything known about it."""
    several_versions = len({regression.subject for regression in regressions}) > 1
    columns = [
        Column("on", wrap=True),
        Column("metric", wrap=True, wide=True),
        Column("verdict"),
        Column("interval", wide=True, wrap=True),
        Column("level", right=True, wide=True),
        Column("evidence", wide=True),
    ]
    rows = []
    for regression in regressions:
        place: object = _workload_and_gpu(regression)
        if several_versions:
            place = markup.join((markup.code(regression.series.version), place))
        cells = (
            markup.link(addresses.regressions(family, key(regression)), place, regression.since),
            markup.join((regression.label, _part(regression))),
            _verdict(regression),
            _interval(regression),
            _levels(regression),
            markup.evidence_badge(regression.series.evidence.value),
        )
        rows.append(Row(cells, selected=regression is selected))
    return markup.table("the rows of this group", columns, rows)


def details(regression: Regression, cause: Cause) -> Html:
    """Since when, how sure, why, and where to look."""
    parts = (
        _verdict(regression),
        markup.escaped(regression.label),
        _part(regression),
        _levels(regression),
    )
    badge = markup.evidence_badge(regression.series.evidence.value)
    facts: list[tuple[object, object]] = [
        ("what", markup.join(parts)),
        ("on", markup.join((_workload_and_gpu(regression), badge))),
        ("since when", _since(regression)),
        ("how sure", markup.join((regression.how_sure, _floor(regression)), "; ")),
        ("cause", _cause(cause)),
        ("acknowledged", regression.passed_words),
        ("look at", _links(regression)),
    ]
    return markup.fact_table("the selected row", facts)


def notes(coverage: Coverage) -> list[Html]:
    """Which results cannot be judged, the command that would help, and what was looked at."""
    lines: list[object] = []
    for unclear, count in coverage.unclear.items():
        words = f"? {count} newest result{'s' * (count != 1)} cannot be judged: {unclear.why}"
        lines.append(markup.join((words, markup.code(unclear.command) if unclear.command else ""), ". "))
    return [markup.note(line) for line in (*lines, coverage.words)]


def nothing_worse(coverage: Coverage) -> Html:
    """That nothing is worse, or that there are no results to tell from."""
    if not coverage.series:
        return markup.paragraph("No two runs yet that could be compared.")
    return markup.paragraph("Nothing is worse now.")


def _verdict(regression: Regression) -> Html:
    if regression.became_wrong:
        return markup.status_tag("wrong")
    if regression.level is not LevelKind.NEW:
        words = f"{regression.verdict_label} {regression.change}"
        return markup.tag("span", words, "v quiet", regression.how_sure)
    return markup.verdict(regression.verdict, regression.change, regression.how_sure)


def _levels(regression: Regression) -> Html:
    """The old level and the one now, in one unit."""
    if regression.became_wrong:
        return markup.muted("right → wrong")
    values = (regression.a, regression.b)
    if formatting.is_long_unit(regression.b.unit):  # no room for it here
        a, b = (markup.value(value._replace(unit="")) for value in values)
    else:
        numbers = [value.number for value in values if value.number is not None]
        scale = formatting.scale_for(regression.b.unit, max(map(abs, numbers))) if numbers else None
        a, b = (markup.value(value, scale) for value in values)
    return markup.join((a, markup.muted("→"), b))


def _interval(regression: Regression) -> Html:
    """The interval, its kind, and the A/A floor beside it."""
    if regression.interval is None:
        return Html("") if regression.became_wrong else markup.muted(regression.basis)
    kind = markup.muted(f"({regression.interval_kind})")
    is_latency = regression.series.concept == LATENCY
    floor = latency_words.short_floor(regression.floor) if is_latency else ""
    return markup.join((str(regression.interval), kind, markup.muted(floor)))


def _floor(regression: Regression) -> Html:
    series = regression.series
    if series.concept != LATENCY:
        return Html("")
    words = latency_words.aa_floor(regression.floor, series.version, series.workload or None, series.mode)
    return markup.backticks_as_code(words)


def _part(regression: Regression) -> Html:
    """How the calls were timed, or the kernel; facts of the main function need no name."""
    series = regression.series
    if series.concept == LATENCY:
        return markup.tag("span", mode_name(series.mode), "m", series.mode)
    # No line breaks within the grid, whose thousands are parted by spaces.
    grid = regression.grid_words
    words = markup.join((regression.kernel, markup.tag("span", grid, "nw") if grid else ""), ", ")
    return markup.tag("span", words, "c m", series.mode) if words else words


def _workload_and_gpu(regression: Regression) -> Html:
    series = regression.series
    return markup.join(filter(None, (series.workload, series.gpu)), " · ") or markup.muted("–")


def _since(regression: Regression) -> Html:
    against = f", against {regression.held_against}" if regression.held_against else ""
    before = regression.before
    parts: list[object] = [
        f"{regression.since}{against}",
        markup.muted(f"before: {before.version} {formatting.timestamp(before.created)}"),
    ]
    if older := regression.earlier_steps:
        are = "s are" if older > 1 else " is"
        parts.append(markup.muted(f"{older} earlier regression{are} still there"))
    return markup.join(parts, "; ")


def _cause(cause: Cause) -> Html:
    if not cause.words:
        return markup.escaped(cause.due_to)
    return markup.join((_due_to(cause), markup.sentence(cause.words)), ": ")


def _due_to(cause: Cause) -> Html:
    return markup.tag("b", f"{cause.due_to} suspected" if cause.is_environment else cause.due_to)


def _links(regression: Regression) -> Html:
    """The diff of both ends, the series, and the run it began in."""
    series, after = regression.series, regression.possible[-1]

    def name(run: VersionRun) -> str:
        return addresses.version_of_run(f"{series.family}/{run.version}", run.run_id)

    diff = addresses.Diff(
        name(regression.before),
        name(after),
        series.workload,
        series.gpu,
        evidence=series.evidence.value,
        mode=series.mode if series.concept == LATENCY else None,
    )
    # Its own line among those of all versions; of kernels the page names lines in more than one way.
    is_of_calls = series.concept == LATENCY and not regression.became_wrong
    trend = addresses.trends(
        series.family,
        workload=series.workload,
        gpu=series.gpu,
        metrics=() if regression.became_wrong else (series.concept,),
        evidence=series.evidence.value,
        over=TIME if is_of_calls else None,
        isolate=series.version if is_of_calls else None,
    )
    is_to_baseline = regression.kind is RegressionKind.BASELINE
    is_measured = series.evidence is Evidence.MEASURED
    links = (
        markup.link(diff.href, "diff with the baseline" if is_to_baseline else "diff of the two runs"),
        markup.link(trend, "trend" if is_measured else "facts over time"),
        markup.link(addresses.run(after.run_id), "the run", title=after.run_id),
    )
    return markup.join(links, " · ")
