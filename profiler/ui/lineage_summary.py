"""A lineage in short, for the overview: what is right, what is wrong and why, what is not measured."""

from __future__ import annotations

from collections.abc import Sequence

from profiler import present
from profiler.lineage import GOOD, PLANNED, Lineage, Standing
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row, Tile
from profiler.values import Evidence, Value

MEASURE = "profiler import REPORT --family {family} --version {version}"
NAMED = 4  # versions that a tile's sentence names
LISTED = 12


def caption(lineage: Lineage) -> Html:
    """Where the whole of it is."""
    family = lineage.attached.catalog.family
    links = (
        markup.link(markup.href("lineage", {"family": family}), "all versions"),
        markup.link(addresses.trends(family), "trends"),
        f"dissected {present.moment(lineage.attached.created)}",
    )
    return markup.join(links, " · ")


def tiles(lineage: Lineage) -> Html:
    """Four counts; the best version only where something was measured."""
    good = [one for one in lineage.standings if one.state == GOOD]
    wrong = [one for one in lineage.standings if one.is_wrong]
    missing = _missing(lineage)
    planned = [one for one in lineage.standings if one.state == PLANNED]
    over = [one for one in good if _over_budget(one)]
    return markup.tiles(
        (
            Tile("Best", *_best(lineage)),
            Tile(
                "Over budget",
                f"! {len(over)}" if over else "0",
                f"of {len(good)} correct versions",
                _names(over),
            ),
            Tile("Wrong", f"⊘ {len(wrong)}", "versions", _names(wrong)),
            Tile(
                "Not measured",
                f"– {len(missing)}",
                "versions",
                f"{len(planned)} more planned" if planned else "",
            ),
        )
    )


def wrong(lineage: Lineage) -> Html:
    """The versions without a speed, each with why."""
    found = [one for one in lineage.standings if one.is_wrong]
    rows = [
        Row((_link(one, lineage), markup.inverted(one.state), markup.tag("span", one.reason, "m")))
        for one in found
    ]
    return (
        markup.table((Column(""), Column(""), Column("", wrap=True)), rows) if rows else markup.note("none")
    )


def missing(lineage: Lineage) -> Html:
    """The correct versions that no GPU has run, the newest first."""
    family = lineage.attached.catalog.family
    found = _missing(lineage)[::-1]
    rows = [
        Row(
            (
                _link(one, lineage),
                markup.tag("span", MEASURE.format(family=family, version=one.version.id), "c m"),
            )
        )
        for one in found[:LISTED]
    ]
    if len(found) > LISTED:
        rows.append(markup.closing(markup.muted(f"and {len(found) - LISTED} more")))
    return markup.table((Column(""), Column("", wrap=True)), rows) if rows else markup.note("none")


def _missing(lineage: Lineage) -> list[Standing]:
    return [one for one in lineage.standings if one.state == GOOD and Evidence.MEASURED not in one.evidence]


def _best(lineage: Lineage) -> tuple[object, str, object]:
    """The fastest version where any was measured; the newest correct one has no speed to be best by."""
    places = sorted({place for one in lineage.standings for place in one.latency_ns})
    good = [one for one in lineage.standings if one.state == GOOD]
    if not places:
        newest = good[-1].version.id if good else "none"
        words = (f"{len(good)} versions are correct on the CPU; newest", markup.code(newest))
        return markup.state("not measured"), "", markup.join(words)
    workload, gpu = places[0]
    best = lineage.best(workload, gpu)
    assert best is not None
    number = markup.value(Value(best.latency_ns[workload, gpu], "ns"))
    return markup.code(best.version.id), f"{gpu}, {workload}", number


def _over_budget(one: Standing) -> bool:
    budgets = (launch.values.value("static__over_budget").text for launch in one.static.values())
    return any(text not in (None, "nothing") for text in budgets)


def _names(found: Sequence[Standing]) -> Html:
    names = markup.join((markup.code(one.version.id) for one in found[:NAMED]), ", ")
    more = f"and {len(found) - NAMED} more" if len(found) > NAMED else ""
    return markup.join((names, more)) if found else markup.muted("none")


def _link(one: Standing, lineage: Lineage) -> Html:
    """The version, as a way to its diff with the nearest correct ancestor."""
    name = markup.code(one.version.id)
    if one.against is None or not one.evidence:
        return name
    family = lineage.attached.catalog.family
    view = addresses.Diff(f"{family}/{one.against.id}", f"{family}/{one.version.id}")
    return markup.link(view.href, name, title=f"diff with {one.against.id}")
