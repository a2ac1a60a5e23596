"""The launches of a run, and one launch as a whole: every metric, the opcode mix."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.evidence import Launch, MetricTable, Value, formatting
from profiler.store import ResultInfo
from profiler.ui import addresses, markup
from profiler.ui.markup import Column, Html, Row
from profiler.ui.views.part_names import short_names

LAUNCHES_SHOWN = 30  # the longest; the filter reaches the others
VIEWS = ("metrics", "rules", "roofline", "occupancy", "opcodes", "instructions")
METRIC_HEADS = ("metric", "label", "value", "in base units", "unit")
TABLE_PX = 520


def select_launches(launches: Sequence[ResultInfo], words: str) -> list[ResultInfo]:
    """The launches whose kernel holds every word, longest first; one that failed stands before all others."""
    wanted = words.lower().split()
    found = [launch for launch in launches if all(word in _kernel_text(launch) for word in wanted)]
    return sorted(found, key=_longest_first)


def table(found: Sequence[ResultInfo], selected: ResultInfo | None, every: Sequence[ResultInfo]) -> Html:
    """The launches found, longest first, with their share of the time of those that have one."""
    names = short_names(launch.part for launch in every)
    total = sum(launch.duration_ns.number or 0 for launch in every)
    rows = []
    for launch in found[:LAUNCHES_SHOWN]:
        number = launch.duration_ns.number
        share = Value(100 * number / total, "%") if number is not None and total else None
        shown = markup.cut_name(names[launch.part])
        cells = (
            markup.link(addresses.run(launch.run_id, names[launch.part]), shown, title=launch.demangled),
            formatting.dimensions(launch.grid),
            formatting.dimensions(launch.block),
            markup.value(launch.duration_ns),
            markup.value(share) if share else "–",
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


def name(launch: ResultInfo, every: Sequence[ResultInfo]) -> str:
    """What a launch of a run is called."""
    return short_names(other.part for other in every)[launch.part]


def chosen(found: Sequence[ResultInfo], asked: str | None, every: Sequence[ResultInfo]) -> ResultInfo | None:
    """The launch that the address names, else the first of those found."""
    names = short_names(launch.part for launch in every)
    known = (launch for launch in found if asked in (launch.part, names[launch.part]))
    return next(known, found[0] if found else None)


def cut_note(found: Sequence[ResultInfo], every: Sequence[ResultInfo]) -> str:
    """How many launches are not in the table, and why."""
    shown = min(len(found), LAUNCHES_SHOWN)
    if len(every) == shown:
        return f"{shown}, longest first"
    return f"{shown} of {len(every)}, longest first" + (" (filtered)" if len(found) < len(every) else "")


def size(launch: ResultInfo) -> str:
    """Grid and block, for a caption."""
    return f"{formatting.dimensions(launch.grid)} blocks of {formatting.dimensions(launch.block)} threads"


def about(launch: ResultInfo, code: tuple[str, str] | None) -> Html:
    """Its size and the way to its code (report and place), for a caption; None where there is no code."""
    if code is None:
        return markup.escaped(size(launch))
    return markup.join((size(launch), markup.link(addresses.Code(*code).href, "code ›")), " · ")


def metric_columns(launch: Launch, table: MetricTable, words: str) -> dict[str, list[object]]:
    """Every metric of a launch that holds every word in its name or label.

    Those of metrics.txt come first, in its order and with their labels, then the others by name.
    """
    labels = {name: metric.label for metric in table.metrics for name in metric.names_for(None)}
    wanted = words.lower().split()
    found: dict[str, list[object]] = {
        head: [] for head in ("metric", "label", "value", "in base units", "unit")
    }
    declared = (name for name in (*labels, *table.captured) if name in launch.values)
    for name in dict.fromkeys((*declared, *sorted(launch.values))):
        value, label = launch.values[name], labels.get(name, "")
        if all(word in f"{name} {label}".lower() for word in wanted):
            found["metric"].append(name)
            found["label"].append(label)
            found["value"].append(str(formatting.quantity(value)))
            found["in base units"].append(None if value.number is None else float(value.number))
            found["unit"].append(value.unit)
    return found


def opcodes(launch: Launch) -> Html:
    """The opcode mix, most executed first, each with its share."""
    total = sum(launch.opcodes.values())
    if not total:
        return markup.note(
            markup.backticks_as_code("No opcode mix: `sass__inst_executed_per_opcode` was not collected.")
        )
    rows = [
        Row(
            (
                markup.code(name),
                markup.value(Value(count)),
                markup.change_bar(count / total),
                markup.value(Value(100 * count / total, "%")),
            )
        )
        for name, count in sorted(launch.opcodes.items(), key=lambda item: -item[1])
    ]
    columns = (
        Column("opcode"),
        Column("warp instructions", right=True),
        Column("", wide=True),
        Column("share", right=True),
    )
    return markup.table("opcode mix", columns, rows)


def _kernel_text(launch: ResultInfo) -> str:
    return f"{launch.part} {launch.demangled}".lower()


def _longest_first(launch: ResultInfo) -> float:
    number = launch.duration_ns.number
    return float("-inf") if number is None else -float(number)
