"""The families without a lineage, one line each: the newest version, its longest launch, what moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from profiler.evidence import formatting
from profiler.evidence.values import Value
from profiler.history.overview import Overview, OverviewCell, OverviewRow
from profiler.statistics.verdict import Verdict
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import newest_versions
from profiler.ui.views.best_versions import short_gpu

CAPTION = "the newest version of each; time is latency where calls were timed, else ncu's duration"


def table(overview: Overview, families: Sequence[str], lineages: Collection[str] = ()) -> Html | None:
    """One line a family, in the order given; None where there is none. `lineages` open here."""
    rows = []
    for family in families:
        cells = [cell for cell in overview.cells if cell.family == family]
        if cells:
            rows.append(_row(family, cells, family in lineages))
    if not rows:
        return None
    columns = (
        Column("family"),
        Column("newest version", cut=1, wide=True),
        Column("GPU", wide=True, wrap=True),
        Column("longest", right=True),
        Column("since the version before", wrap=True),
        Column("all launches and calls", wide=True),
        Column("made", right=True, wide=True),
    )
    return markup.table("families", columns, rows, css="families")


def _row(family: str, cells: Sequence[OverviewCell], has_lineage: bool) -> Row:
    cell = max(cells, key=_longest_ns)
    address = markup.href("", {"family": family}) if has_lineage else addresses.trends(family)
    version = markup.cut_name(cell.version, cell.version)
    if cell.run_id:
        version = markup.link(addresses.run(cell.run_id), version)
    tally = Counter[Verdict]()
    for member in cells:
        tally.update(member.tally)
    counts = (f"{number} {verdict.words}" for verdict, number in tally.most_common() if number)
    launches = sum(len(member.rows) + member.hidden_rows for member in cells)
    gpus = dict.fromkeys(short_gpu(member.gpu or "") for member in cells)
    return Row(
        (
            markup.link(address, markup.tag("b", family)),
            version,
            ", ".join(gpus),
            markup.value(_longest(cell)),
            _change(cell),
            " · ".join(counts) or f"{launches} launch{'es' * (launches != 1)}",
            f"{cell.created:%Y-%m-%d}" if cell.created else "–",
        )
    )


def _longest(cell: OverviewCell) -> Value:
    if cell.calls and cell.calls[0].b_ns is not None:
        return Value(cell.calls[0].b_ns, "ns")
    row = _longest_row(cell)
    return row.duration if row else Value(None)


def _longest_ns(cell: OverviewCell) -> float:
    return _longest(cell).number or 0.0


def _longest_row(cell: OverviewCell) -> OverviewRow | None:
    with_number = [row for row in cell.rows if row.duration.number is not None]
    rows = with_number or cell.rows
    return max(rows, key=lambda row: row.duration.number or 0.0, default=None)


def _change(cell: OverviewCell) -> Html:
    """The verdict on the change that matters most: of calls first, then of what got better or worse."""
    if cell.before is None:
        return markup.muted("first version")
    if not cell.comparable:
        blocks = "; ".join(difference.words for difference in cell.differences if difference.blocks)
        return markup.muted(f"≠ not comparable: {blocks}")
    if cell.calls:
        decision = cell.calls[0].decision
        address = newest_versions.diff_address(cell, mode=cell.calls[0].mode) or ""
        change = formatting.percent_change(None if decision.effect is None else 100 * decision.effect)
        return markup.link(address, markup.verdict(cell.calls[0].verdict, change, decision.reason))
    changed = [(row, row.change) for row in cell.rows if row.change]
    if not changed:
        return markup.muted("no launch pairs with one of the version before")
    # The launch that the verdict on the version is taken from: of those, the longest.
    row, moved = max(
        changed,
        key=lambda pair: (
            pair[1].verdict is cell.verdict,
            pair[1].verdict.traits.moved,
            pair[0].duration.number or 0,
        ),
    )
    words = markup.verdict(moved.verdict, formatting.change(moved.a, moved.b), row.reason)
    verdict = markup.link(newest_versions.diff_address(cell, row) or "", words, "the diff of this launch")
    name = markup.tag("span", markup.cut_name(row.part, row.part), "wide")
    return markup.join((verdict, name, markup.muted("unreplicated") if moved.unreplicated else ""))
