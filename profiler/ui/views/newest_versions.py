"""The newest version of every family: what moved since the version before, and its numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from profiler.compare import latency_words
from profiler.compare.latency import LatencyComparison
from profiler.documents.comparison_text import words_of_paired_names
from profiler.evidence import formatting
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Value
from profiler.history.overview import SHOWN, Overview, OverviewCell, OverviewRow
from profiler.regressions.groups import WorseNow
from profiler.statistics.verdict import Verdict
from profiler.store.rows import RunInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row, Tile

CAPTION = "timed calls first, then every launch by its ncu duration, which is not latency; longest first"
NAMED = 5  # kernels under a tile's head
_OPEN = 4  # versions whose launches are shown at once; the table of families has all in a line each
# The label of each tile, and the verdicts that it counts; the first one gives it its sign.
_SLOWER = [verdict for verdict in Verdict if verdict.traits.fails]
_TILES = (
    ("Got better", [verdict for verdict in Verdict if verdict.traits.moved and not verdict.traits.fails]),
    (
        "Cannot tell",
        [verdict for verdict in Verdict if not verdict.traits.decided and verdict is not Verdict.MISSING],
    ),
    ("No number", [Verdict.MISSING]),
)


def context(overview: Overview, runs: Sequence[RunInfo]) -> Html:
    """How many runs there are and when the newest report was made."""
    reports_created = [cell.created for cell in overview.cells if cell.created]
    newest = ""
    if reports_created:
        newest = f"newest report {formatting.timestamp(max(reports_created))}"
    elif runs:
        newest = f"newest run {formatting.timestamp(max(run.created for run in runs))}"
    number = f"{len(runs)} run" + ("s" if len(runs) != 1 else "")
    link = markup.link(markup.href("runs", {}), number)
    return markup.join((newest, link), " · ") if newest else link


def tiles_caption() -> Html:
    """What the tiles count, and where the rest is counted."""
    words = "launches of each family's newest version against the version before; what is worse now:"
    return markup.join((words, markup.link(addresses.regressions(), "Regressions")))


def tiles(overview: Overview, worse: WorseNow) -> Html:
    """What is worse now, as Regressions counts it; then how many launches moved since the version before."""
    tally = Counter[Verdict]()
    for cell in overview.cells:
        tally.update(cell.tally)
    has_calls = any(cell.calls for cell in overview.cells)
    items = [Tile("Worse now", markup.verdict_count(Verdict.WORSE, worse.count), "", _worse(overview, worse))]
    for label, verdicts in _TILES:
        number = sum(tally[verdict] for verdict in verdicts)
        if has_calls:
            unit = "call or launch" if number == 1 else "calls and launches"
        else:
            unit = "launch" if number == 1 else "launches"
        items.append(
            Tile(label, markup.verdict_count(verdicts[0], number), unit, _longest(overview, verdicts))
        )
    return markup.tiles(items)


def table(overview: Overview, metrics: MetricTable) -> Html:
    """The newest version of every family, workload and GPU; its launches with their headline metrics.

    Of many the first few are open.
    """
    shown, folded = overview.cells[:_OPEN], overview.cells[_OPEN:]
    tables = [_table("newest versions", shown, metrics)]
    if folded:
        head = f"{len(folded)} more: {', '.join(dict.fromkeys(cell.family for cell in folded))}"
        tables.append(markup.fold(head, [_table("more newest versions", folded, metrics)]))
    return markup.join(tables, "")


def _table(name: str, cells: Sequence[OverviewCell], metrics: MetricTable) -> Html:
    concepts = [concept for concept in SHOWN if concept in metrics.by_concept]
    rows: list[Row] = []
    for cell in cells:
        rows.append(markup.group_row(_cell_head(cell)))
        rows += [_call_row(cell, timed, len(concepts)) for timed in cell.calls]
        rows += [_launch_row(cell, row, concepts) for row in cell.rows]
        rows += [markup.closing_row(line) for line in _cell_foot(cell)]
    columns = (
        Column("launch", cut=2),
        Column("time", right=True),
        Column("since the version before", wrap=True),
        Column("other metrics", wide=True),
        *(Column(metrics.by_concept[concept].label, right=True, wide=True) for concept in concepts),
    )
    return markup.table(name, columns, rows)


def notes(overview: Overview) -> list[Html]:
    """What the table leaves out."""
    if not overview.hidden_cells:
        return []
    return [markup.note(f"{overview.hidden_cells} more workloads and GPUs: see Trends for each family")]


def diff_address(cell: OverviewCell, row: OverviewRow | None = None, mode: str | None = None) -> str | None:
    """The diff with the version before, at one launch or mode; None for a first version."""
    if cell.before is None:
        return None
    return addresses.Diff(
        f"{cell.family}/{cell.before}",
        f"{cell.family}/{cell.version}",
        cell.workload,
        cell.gpu,
        launch=row.part if row else None,
        evidence=cell.evidence.value if mode else None,
        mode=mode,
    ).href


def _worse(overview: Overview, worse: WorseNow) -> Html:
    """Where the count comes from, and which launches of a newest version are slower than the one before."""
    count = len(worse.rows)
    words = f"{count} row{'s' * (count != 1)}, in Regressions"
    parts: list[object] = [markup.link(addresses.regressions(), words)]
    if any(cell.tally[verdict] for cell in overview.cells for verdict in _SLOWER):
        parts += [markup.muted("slower than the version before:"), _longest(overview, _SLOWER)]
    return markup.join(parts)


def _longest(overview: Overview, verdicts: Sequence[Verdict]) -> Html:
    """The longest calls and launches with such a verdict, each a link to its diff."""
    links = [
        markup.link(
            diff_address(cell, mode=timed.mode) or "",
            markup.code(f"{cell.version} latency"),
            title=f"{cell.family}: {cell.before} → {cell.version}, {timed.decision.reason}",
        )
        for cell in overview.cells
        for timed in cell.calls
        if cell.before and timed.verdict in verdicts
    ]
    # A launch without a change has no diff: its run shows it.
    links += [
        markup.link(
            (diff_address(cell, row) if row.change else None) or addresses.run(cell.run_id or "", row.part),
            markup.cut_name(row.part),
            title=f"{cell.family}: {_steps_from_before(cell)}, {row.reason}",
        )
        for cell, row in _rows_with_verdict(overview)
        if row.verdict in verdicts
    ]
    return markup.join(links[:NAMED], ", ") or markup.muted("none")


def _steps_from_before(cell: OverviewCell) -> str:
    return f"{cell.before} → {cell.version}" if cell.before else cell.version


def _rows_with_verdict(overview: Overview) -> Iterator[tuple[OverviewCell, OverviewRow]]:
    for cell in overview.cells:
        for row in cell.rows:
            if row.verdict:
                yield cell, row


def _cell_head(cell: OverviewCell) -> Html:
    version = markup.code(cell.version)
    if cell.run_id:
        version = markup.link(addresses.run(cell.run_id), version)
    address = diff_address(cell)
    words: list[object] = ["first version"]
    if address:
        words = [markup.join(("since", markup.link(address, markup.code(cell.before))))]
    created = formatting.timestamp(cell.created) if cell.created else ""
    words += [text for text in (cell.workload, cell.gpu or "unknown GPU", created) if text]
    words.append(markup.link(addresses.trends(cell.family, workload=cell.workload, gpu=cell.gpu), "trends"))
    caption = markup.tag("span", markup.join(words, " · "), "cap")
    return markup.join((markup.join((cell.family, version)), caption))


def _cell_foot(cell: OverviewCell) -> list[Html]:
    lines = []
    if not cell.comparable:
        blocks = "; ".join(difference.words for difference in cell.differences if difference.blocks)
        lines.append(f"≠ not comparable with {cell.before}: {blocks}")
    if cell.hidden_rows:
        lines.append(f"{cell.hidden_rows} shorter launches not shown")
    lines += words_of_paired_names((row.name_before, row.base_name, row.paired_by) for row in cell.rows)
    if cell.gone:
        gone = ", ".join(cell.gone[:NAMED]) + (" …" if len(cell.gone) > NAMED else "")
        lines.append(f"gone since {cell.before}: {gone}")
    return [markup.muted(line) for line in lines]


def _call_row(cell: OverviewCell, timed: LatencyComparison, metric_columns: int) -> Row:
    """The latency of calls in one mode, with the verdict, its change and its interval."""
    name = markup.tag("span", f"latency; {timed.mode}", title="timed calls, without the profiler")
    verdict = markup.muted("–")
    if cell.before is not None:
        name = markup.link(diff_address(cell, mode=timed.mode) or "", name)
        decision = timed.decision
        words = markup.verdict(timed.verdict, latency_words.change(decision), decision.reason)
        verdict = markup.join((words, markup.tag("span", _interval(timed), "m wide")))
    number = Html("") if timed.b_ns is None else markup.value(Value(timed.b_ns, "ns"))
    return Row((name, number, verdict, "", *([""] * metric_columns)))


def _interval(timed: LatencyComparison) -> str:
    """The interval and its kind; "" without one: what would settle it stands in the diff."""
    if timed.decision.interval is None:
        return ""
    kind = latency_words.interval_kind(timed.decision)
    return f"{timed.decision.interval} ({kind}); {latency_words.short_floor(timed.floor)}"


def _launch_row(cell: OverviewCell, row: OverviewRow, concepts: Sequence[str]) -> Row:
    name = markup.cut_name(row.part, row.part)
    if row.change:
        address = diff_address(cell, row)
        name = markup.link(address, name, title="the diff of this launch") if address else name
        change = formatting.change(row.change.a, row.change.b)
        words = markup.verdict(row.change.verdict, change, row.reason)
        verdict = markup.join((words, markup.muted("unreplicated") if row.change.unreplicated else ""))
        counters = _counters(row)
    else:
        verdict = markup.muted(row.reason if cell.before else "–")
        counters = Html("")
    values = [markup.short_value(row.shown[concept]) for concept in concepts]
    return Row((name, markup.value(row.duration), verdict, counters, *values))


def _counters(row: OverviewRow) -> Html:
    """How many other metrics are better and worse."""
    counts = ((Verdict.BETTER, row.better), (Verdict.WORSE, row.worse))
    return markup.join(markup.verdict_count(verdict, number) for verdict, number in counts if number)
