"""What is worse now as markup: counts, a row a regression, and all that is known of the chosen one."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

from profiler.compare import latency_words
from profiler.evidence import Evidence, formatting
from profiler.history import LATENCY
from profiler.regressions import Cause, Coverage, Regression, RegressionKind, RegressionReport, VersionRun
from profiler.statistics import Verdict
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row, Tile
from profiler.ui.views.trend_lines import mode_name

ROWS_SHOWN = 40
ALL = "all"
CAPTION = "every version's newest results against its own past and the baseline; acknowledged last"
_COLUMNS = (
    Column("version", cut=1),
    Column("metric", wrap=True),
    Column("verdict"),
    Column("interval", wide=True),
    Column("on", wide=True, wrap=True),
    Column("level", right=True, wide=True),
    Column("evidence", wide=True),
    Column("since", wide=True),
    Column("due to", wide=True),
    Column("acknowledged", wide=True, wrap=True),
)


def key(one: Regression) -> str:
    """A regression's name in an address."""
    return sha256(repr(tuple(map(str, one.series))).encode()).hexdigest()[:10]


def of(found: RegressionReport, family: str) -> list[Regression]:
    """Those of one family, or all."""
    return [one for one in found.regressions if family in (ALL, one.series.family)]


def chosen(shown: Sequence[Regression], at: str | None) -> Regression | None:
    """The one that the address names, else the first."""
    return next((one for one in shown if key(one) == at), shown[0] if shown else None)


def tiles(shown: Sequence[Regression], causes: Sequence[Cause], looked: Coverage) -> Html:
    """How many are open, let pass, due to the environment, and how much nobody can tell."""
    still = [one for one in shown if one.acknowledged is None]
    passed = len(shown) - len(still)
    moved = sum(cause.is_environment for cause in causes)
    unclear = sum(looked.unclear.values())
    wrong = sum(one.became_wrong for one in still)
    versions = len({one.subject for one in still})
    of_versions = f"of {versions} version{'s' * (versions != 1)}" if still else "nothing"
    results = f"newest result{'s' * (unclear != 1)}"
    apart = markup.link(markup.href("", {}), "Overview")
    return markup.tiles(
        (
            Tile(
                "Worse now",
                markup.verdict_count(Verdict.WORSE, len(still)),
                "",
                f"{of_versions}; {passed} acknowledged",
            ),
            Tile("Wrong now", f"⊘ {wrong}" if wrong else "0", "", "right in an earlier run"),
            Tile("Same machine code", str(moved), "", "the environment moved, not the kernel"),
            Tile(
                "Cannot tell",
                markup.verdict_count(Verdict.UNCLEAR, unclear),
                results,
                markup.join(("of every version in all families; of the newest:", apart)),
            ),
        )
    )


def table(
    shown: Sequence[Regression], causes: Sequence[Cause], selected: Regression | None, family: str
) -> Html:
    """A row a regression; its version leads to all that is known of it."""
    rows = []
    several = len({one.series.family for one in shown}) > 1
    for one, cause in zip(shown, causes, strict=False):
        place = one.series
        name = one.subject if several else place.version
        address = addresses.regressions(None if family == ALL else family, key(one))
        rows.append(
            Row(
                (
                    markup.link(address, markup.cut_name(name), name),
                    markup.join((one.label, _what(one, " wide"))),
                    _verdict(one),
                    _interval(one),
                    _where(one),
                    _level(one),
                    markup.evidence_badge(place.evidence.value),
                    markup.tag("span", _short_since(one), title=one.since),
                    cause.due_to,
                    _passed(one),
                ),
                selected=one is selected,
            )
        )
    return markup.table("what is worse now", _COLUMNS, rows)


def details(one: Regression, cause: Cause) -> Html:
    """Since when, how sure, why, and where to look."""
    since: list[object] = [f"{one.since}, against {one.held_against}" if one.held_against else one.since]
    since.append(markup.muted(f"before: {_moment(one.before)}"))
    if one.earlier_steps:
        since.append(
            markup.muted(
                f"{one.earlier_steps} older step{'s' * (one.earlier_steps > 1)} for the worse still hold"
            )
        )
    rows: list[tuple[object, object]] = [
        ("what", markup.join((_verdict(one), markup.escaped(one.label), _what(one), _level(one)))),
        ("on", markup.join((_where(one), markup.evidence_badge(one.series.evidence.value)))),
        ("since when", markup.join(since, "; ")),
        ("how sure", markup.join((one.how_sure, _floor(one)), "; ")),
        ("cause", markup.join((_suspicion(cause), cause.words), ": ") if cause.words else cause.due_to),
        ("acknowledged", one.passed_words),
        ("look at", _links(one)),
    ]
    return markup.fact_table("the selected row", rows)


def title(one: Regression) -> Html:
    """What the details are of."""
    return markup.join((markup.code(one.subject), one.label))


def notes(looked: Coverage) -> list[Html]:
    """What could not be told and what would tell it, and what was looked at."""
    lines = []
    for unclear, count in looked.unclear.items():
        words = f"? {count} newest result{'s' * (count != 1)} cannot be judged: {unclear.why}"
        lines.append(markup.join((words, markup.code(unclear.command) if unclear.command else ""), ". "))
    return [markup.note(line) for line in (*lines, looked.words)]


def nothing(looked: Coverage) -> Html:
    """That nothing is worse, and what that was learned from."""
    if not looked.series:
        return markup.paragraph("No run yet that could be held against another.")
    return markup.paragraph("Nothing is worse now.")


def _verdict(one: Regression) -> Html:
    if one.became_wrong:
        return markup.status_tag("wrong")
    return markup.verdict(Verdict.WORSE, one.change, one.how_sure)


def _level(one: Regression) -> Html:
    if one.became_wrong:
        return markup.muted("right → wrong")
    numbers = [value.number for value in (one.a, one.b) if value.number is not None]
    scale = formatting.scale_for(one.b.unit, max(map(abs, numbers))) if numbers else None
    bare = formatting.is_long_unit(one.b.unit)
    a, b = (
        markup.value(value._replace(unit="") if bare else value, None if bare else scale)
        for value in (one.a, one.b)
    )
    return markup.join((a, markup.muted("→"), b))


def _interval(one: Regression) -> Html:
    """The interval, its kind, and the A/A floor beside it."""
    if one.interval is None:
        return markup.muted(one.basis) if not one.became_wrong else Html("")
    words = f"({one.interval_kind})"
    floor = latency_words.short_floor(one.floor) if one.series.concept == LATENCY else ""
    return markup.join((str(one.interval), markup.muted(words), markup.muted(floor)))


def _floor(one: Regression) -> Html:
    if one.series.concept != LATENCY:
        return Html("")
    return markup.backticks_as_code(
        latency_words.aa_floor(one.floor, one.series.version, one.series.workload or None)
    )


def _what(one: Regression, css: str = "") -> Html:
    """Of what: how the calls were timed, or the kernel; facts of the chief function need no name."""
    place = one.series
    if place.concept == LATENCY:
        return markup.tag("span", mode_name(place.mode), f"m{css}", place.mode)
    named = place.evidence is Evidence.MEASURED or place.part not in ("", "main", "total")
    short = place.part.removesuffix("#0")
    return markup.tag("span", short, f"c m{css}", place.mode) if named and short else Html("")


def _where(one: Regression) -> Html:
    return markup.join(filter(None, (one.series.workload, one.series.gpu)), " · ") or markup.muted("–")


def _short_since(one: Regression) -> str:
    first, last = one.possible[0], one.possible[-1]
    words = f"{first.created:%Y-%m-%d}"
    return words if len(one.possible) == 1 else f"{words} … {last.created:%m-%d}"


def _suspicion(cause: Cause) -> Html:
    return markup.tag("b", f"{cause.due_to} suspected" if cause.is_environment else cause.due_to)


def _moment(spot: VersionRun) -> str:
    return f"{spot.version} {formatting.timestamp(spot.created)}"


def _passed(one: Regression) -> Html:
    if one.acknowledged or one.lapsed:
        return markup.tag("span", one.passed, "" if one.acknowledged else "m", one.passed_words)
    return markup.muted(one.passed)


def _links(one: Regression) -> Html:
    """The diff of both ends, the series, and the run it began in."""
    place, after = one.series, one.possible[-1]

    def end(spot: VersionRun) -> str:
        return addresses.of_run(f"{place.family}/{spot.version}", spot.run_id)

    measured = place.evidence is Evidence.MEASURED
    mode = place.mode if place.concept == LATENCY else None
    view = addresses.Diff(
        end(one.before), end(after), place.workload, place.gpu, evidence=place.evidence.value, mode=mode
    )
    series = addresses.trends(
        place.family,
        workload=place.workload,
        gpu=place.gpu,
        metrics=() if one.became_wrong else (place.concept,),
        evidence=place.evidence.value,
    )
    words = "diff with the baseline" if one.kind is RegressionKind.BASELINE else "diff of the two runs"
    found = [markup.link(view.href, words), markup.link(series, "trend" if measured else "facts over time")]
    found.append(markup.link(addresses.run(after.run_id), "the run", title=after.run_id))
    return markup.join(found, " · ")
