"""The launches of a run, and one launch as a whole: every metric, the opcode mix."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.documents.blocks import Name, Number, Share, Table
from profiler.evidence import formatting
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Value, is_over_peak
from profiler.store.rows import ResultInfo
from profiler.ui import addresses, markup
from profiler.ui.addresses import LaunchKey
from profiler.ui.data.part_names import short_names
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views import answer

LAUNCHES_SHOWN = 30  # the longest; the filter reaches the others
METRIC_HEADS = ("metric", "label", "value", "in base units", "unit")


def matching(launches: Sequence[ResultInfo], words: str) -> list[ResultInfo]:
    """The launches whose kernel contains every word, longest first; failed ones stand before all others."""
    parts = words.lower().split()
    matches = [launch for launch in launches if all(part in _kernel_text(launch) for part in parts)]
    return sorted(matches, key=_longest_first)


def choose(
    matches: Sequence[ResultInfo], part_in_address: str | None, launches: Sequence[ResultInfo]
) -> ResultInfo | None:
    """The launch that the address names, else the first of those that match."""
    names = short_names(launch.part for launch in launches)
    named = (launch for launch in matches if part_in_address in (launch.part, names[launch.part]))
    return next(named, matches[0] if matches else None)


def table(matches: Sequence[ResultInfo], selected: ResultInfo | None, launches: Sequence[ResultInfo]) -> Html:
    """The launches that match, with their share of the time of all those of the run that have one."""
    names = short_names(launch.part for launch in launches)
    total_ns = sum(launch.duration_ns.number or 0 for launch in launches)
    rows = []
    for launch in matches[:LAUNCHES_SHOWN]:
        name, ns = names[launch.part], launch.duration_ns.number
        cells = (
            markup.link(addresses.run(launch.run_id, name), markup.cut_name(name), title=launch.demangled),
            formatting.dimensions(launch.grid),
            formatting.dimensions(launch.block),
            markup.value(launch.duration_ns),
            markup.value(Value(100 * ns / total_ns, "%")) if ns is not None and total_ns else "–",
        )
        rows.append(Row(cells, selected=launch is selected))
    columns = (
        Column("kernel", cut=3),
        Column("grid", right=True, wide=True),
        Column("block", right=True, wide=True),
        Column("ncu duration", right=True),
        Column("share", right=True, wide=True),
    )
    return markup.table("launches", columns, rows)


def caption(matches: Sequence[ResultInfo], launches: Sequence[ResultInfo]) -> str:
    """How many launches are not in the table, and why."""
    listed = min(len(matches), LAUNCHES_SHOWN)
    if len(launches) == listed:
        return f"{listed}, longest first"
    filtered = " (filtered)" if len(matches) < len(launches) else ""
    return f"{listed} of {len(launches)}, longest first{filtered}"


def name(launch: ResultInfo, launches: Sequence[ResultInfo]) -> str:
    """What a launch of a run is called."""
    return short_names(other.part for other in launches)[launch.part]


def about(launch: ResultInfo, key: LaunchKey | None, view: addresses.LaunchView | None = None) -> Html:
    """Its size, and links to its sections and its code unless `view` or `key` is None, for a caption."""
    grid, block = formatting.dimensions(launch.grid), formatting.dimensions(launch.block)
    size = f"{grid} blocks of {block} threads"
    links = [] if view is None else [markup.link(view.href, "all sections ›")]
    links += [] if key is None else [markup.link(addresses.LaunchCode(*key).href, "code ›")]
    return markup.join((size, *links), " · ")


def metric_columns(
    launch: Launch, table: MetricTable, words: str, chip: str | None = None
) -> dict[str, list[object]]:
    """Every metric of a launch whose name or label contains every word.

    Those of metrics.txt come first, in its order and with their labels; then what is derived, with how; then
    the others by name.
    """
    labels = {name: metric.label for metric in table.metrics for name in metric.names_for(None)}
    parts = words.lower().split()
    columns: dict[str, list[object]] = {head: [] for head in METRIC_HEADS}
    declared = [name for name in (*labels, *table.captured) if name in launch.values]
    resolved = [(metric.label, *table.resolve(metric, launch.values, chip)) for metric in table.metrics]
    rows = [
        *((name, labels.get(name, ""), launch.values[name]) for name in dict.fromkeys(declared)),
        *(
            (name, formatting.label(label, value), value)
            for label, name, value in resolved
            if value.derivation
        ),
        *((name, "", launch.values[name]) for name in sorted(set(launch.values).difference(declared))),
    ]
    for name, label, value in rows:
        # The counters that a number is derived from are found by themselves.
        searched = label if value.derivation else f"{name} {label}"
        if not all(part in searched.lower() for part in parts):
            continue
        number = None if value.number is None else float(value.number)
        mark = " (over its peak)" if is_over_peak(name, value) else ""
        row = (name, label, f"{formatting.quantity(value)}{mark}", number, value.unit)
        for head, cell in zip(METRIC_HEADS, row, strict=True):
            columns[head].append(cell)
    return columns


def opcodes(launch: Launch) -> Html:
    """The opcode mix, most executed first, each with its share."""
    total = sum(launch.opcodes.values())
    if not total:
        words = "No opcode mix: `sass__inst_executed_per_opcode` was not collected."
        return markup.note(markup.backticks_as_code(words))
    rows = [
        (Name(opcode), Number(Value(count)), Share(count / total))
        for opcode, count in sorted(launch.opcodes.items(), key=lambda item: -item[1])
    ]
    return answer.table(Table(("opcode", "warp instructions", "share"), rows, right=(1, 2)), "opcode mix")


def _kernel_text(launch: ResultInfo) -> str:
    return f"{launch.part} {launch.demangled}".lower()


def _longest_first(launch: ResultInfo) -> float:
    number = launch.duration_ns.number
    return float("-inf") if number is None else -float(number)
