"""The newest state of every family as markup: what moved since the version before, and the numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from profiler.compare import LatencyComparison, latency_words
from profiler.evidence import MetricTable, Value, formatting
from profiler.history import Overview, OverviewCell, OverviewRow
from profiler.history.overview import SHOWN
from profiler.statistics import Verdict
from profiler.store import RunInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row, Tile
from profiler.ui.views import metric_changes

MOVED = "launches of each family's newest version against the version before; of every version:"
CAPTION = "timed calls first, then every launch by its ncu duration, which is not latency; longest first"
LISTED = 5  # kernels named under a tile's head
TILES = (
    ("Got worse", [verdict for verdict in Verdict if verdict.traits.fails]),
    ("Got better", [verdict for verdict in Verdict if verdict.traits.moved and not verdict.traits.fails]),
    (
        "Cannot tell",
        [verdict for verdict in Verdict if not verdict.traits.decided and verdict is not Verdict.MISSING],
    ),
    ("No number", [Verdict.MISSING]),
)


def context(overview: Overview, runs: Sequence[RunInfo]) -> Html:
    """How much there is and when the newest of it was made."""
    made = [cell.created for cell in overview.cells if cell.created]
    words = f"newest report {formatting.timestamp(max(made))} · " if made else ""
    if not made and runs:
        words = f"newest run {formatting.timestamp(max(run.created for run in runs))} · "
    number = f"{len(runs)} run" + ("s" if len(runs) != 1 else "")
    return markup.join((words, markup.link(markup.href("runs", {}), number)), "")


def tiles(overview: Overview) -> Html:
    """How many launches of the newest versions moved since the version before, and which first."""
    tally = Counter[Verdict]()
    for cell in overview.cells:
        tally.update(cell.tally)
    found = []
    calls = any(cell.calls for cell in overview.cells)
    for label, words in TILES:
        number = sum(tally[word] for word in words)
        unit = ("call or launch" if calls else "launch") if number == 1 else "launches"
        unit = "calls and launches" if calls and number != 1 else unit
        found.append(Tile(label, markup.verdict_count(words[0], number), unit, _first(overview, words)))
    return markup.tiles(found)


def moved() -> Html:
    """What the tiles count, and where the rest is counted."""
    return markup.join((MOVED, markup.link(addresses.regressions(), "Regressions")))


def table(overview: Overview, metrics: MetricTable) -> Html:
    """The newest version of every family, workload and GPU; its launches with their headline metrics."""
    concepts = [concept for concept in SHOWN if concept in metrics.by_concept]
    rows: list[Row] = []
    for cell in overview.cells:
        rows.append(markup.group_row(_cell_head(cell)))
        rows += [_call(cell, one, len(concepts)) for one in cell.calls]
        rows += [_launch(cell, row, concepts) for row in cell.rows]
        rows += [markup.closing_row(line) for line in _cell_foot(cell)]
    columns = (
        Column("launch", cut=2),
        Column("time", right=True),
        Column("since the version before"),
        Column("other metrics", wide=True),
        *(Column(metrics.by_concept[concept].label, right=True, wide=True) for concept in concepts),
    )
    return markup.table("newest versions", columns, rows)


def notes(overview: Overview) -> list[Html]:
    """What the table leaves out."""
    if not overview.hidden_cells:
        return []
    return [markup.note(f"{overview.hidden_cells} more workloads and GPUs: see Trends for each family")]


def diff_address(cell: OverviewCell, row: OverviewRow | None = None, mode: str | None = None) -> str | None:
    """The diff with the version before, at one launch or mode; None for a first version."""
    if cell.before is None:
        return None
    before, newest = f"{cell.family}/{cell.before}", f"{cell.family}/{cell.version}"
    launch = row.part if row else None
    kind = cell.evidence.value if mode else None
    return addresses.Diff(
        before, newest, cell.workload, cell.gpu, launch=launch, evidence=kind, mode=mode
    ).href


def _first(overview: Overview, words: Sequence[Verdict]) -> Html:
    """The longest launches with such a verdict, each with its way to the diff."""
    timed = [
        markup.link(
            diff_address(cell, mode=one.mode) or "",
            markup.code(f"{cell.version} latency"),
            title=f"{cell.family}: {cell.before} → {cell.version}, {one.decision.reason}",
        )
        for cell in overview.cells
        for one in cell.calls
        if cell.before and one.verdict in words
    ]
    found = [(cell, row) for cell, row in _judged(overview) if row.verdict in words]
    links = timed + [
        markup.link(
            (diff_address(cell, row) if row.change else None) or addresses.run(cell.run_id or "", row.part),
            markup.cut_name(row.part),
            title=f"{cell.family}: {_since(cell)}, {row.reason}",
        )
        for cell, row in found[:LISTED]
    ]
    links = links[:LISTED]
    return markup.join(links, ", ") or markup.muted("none")


def _since(cell: OverviewCell) -> str:
    return f"{cell.before} → {cell.version}" if cell.before else cell.version


def _judged(overview: Overview) -> Iterator[tuple[OverviewCell, OverviewRow]]:
    for cell in overview.cells:
        for row in cell.rows:
            if row.verdict:
                yield cell, row


def _cell_head(cell: OverviewCell) -> Html:
    run = markup.code(cell.version)
    shown = markup.link(addresses.run(cell.run_id), run) if cell.run_id else run
    words = []
    address = diff_address(cell)
    if address:
        words.append(markup.join(("since", markup.link(address, markup.code(cell.before)))))
    else:
        words.append(markup.escaped("first version"))
    words += [
        markup.escaped(text) for text in (cell.workload, cell.gpu or "unknown GPU", _made(cell)) if text
    ]
    words.append(markup.link(addresses.trends(cell.family, workload=cell.workload, gpu=cell.gpu), "trends"))
    head = markup.join((cell.family, shown))
    return markup.join((head, markup.tag("span", markup.join(words, " · "), "cap")))


def _made(cell: OverviewCell) -> str:
    return formatting.timestamp(cell.created) if cell.created else ""


def _cell_foot(cell: OverviewCell) -> list[Html]:
    lines = []
    if not cell.comparable:
        blocks = "; ".join(item.words for item in cell.differences if item.blocks)
        lines.append(markup.muted(f"≠ not comparable with {cell.before}: {blocks}"))
    if cell.hidden_rows:
        lines.append(markup.muted(f"{cell.hidden_rows} shorter launches not shown"))
    if cell.gone:
        names = ", ".join(cell.gone[:LISTED]) + (" …" if len(cell.gone) > LISTED else "")
        lines.append(markup.muted(f"gone since {cell.before}: {names}"))
    return lines


def _call(cell: OverviewCell, one: LatencyComparison, blanks: int) -> Row:
    """The latency of calls in one mode, with the verdict, its change and its interval."""
    name = markup.tag("span", f"latency; {one.mode}", title="timed calls, without the profiler")
    decision = one.decision
    if cell.before is None:
        word: Html = markup.muted("–")
    else:
        words = markup.verdict(one.verdict, latency_words.change(decision), decision.reason)
        word = markup.join((words, markup.tag("span", _interval(one), "m wide")))
        name = markup.link(diff_address(cell, mode=one.mode) or "", name)
    number = Html("") if one.b_ns is None else markup.value(Value(one.b_ns, "ns"))
    return Row((name, number, word, "", *([""] * blanks)))


def _interval(one: LatencyComparison) -> str:
    """The interval and its kind; without one, what would settle it stands in the diff."""
    if one.decision.interval is None:
        return ""
    kind = latency_words.interval_kind(one.decision)
    floor = latency_words.short_floor(one.floor)
    return f"{one.decision.interval} ({kind}); {floor}"


def _launch(cell: OverviewCell, row: OverviewRow, concepts: Sequence[str]) -> Row:
    name = markup.cut_name(row.part, row.part)
    address = diff_address(cell, row) if row.change else None
    if row.change:
        words = markup.verdict(row.change.verdict, formatting.change(row.change.a, row.change.b), row.reason)
        word = markup.join((words, markup.muted("unreplicated") if row.change.unreplicated else ""))
    else:
        word = markup.muted(row.reason if cell.before else "–")
    values = [row.shown[concept] for concept in concepts]
    return Row(
        (
            markup.link(address, name, title="the diff of this launch") if address else name,
            markup.value(row.duration),
            word,
            _counters(row),
            *map(metric_changes.short, values),
        )
    )


def _counters(row: OverviewRow) -> Html:
    if row.change is None:
        return Html("")
    counted = ((Verdict.BETTER, row.better), (Verdict.WORSE, row.worse))
    return markup.join(markup.verdict_count(word, number) for word, number in counted if number)
