"""How the launches of one report, run or version are printed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.cli.output import print_table, say
from profiler.compare import kernel_filter, launch_labels
from profiler.errors import UnknownName
from profiler.evidence import (
    NCU_DURATION,
    Latency,
    Launch,
    MetricTable,
    Side,
    State,
    Value,
    brief_list,
    chip_of,
    formatting,
)

SHOWN = 10  # launches that a terminal gets unasked


@dataclass(frozen=True)
class Chosen:
    """The launches of a side that were asked for, each with its label, in the report's order."""

    side: Side
    launches: tuple[tuple[str, Launch], ...]
    hidden: int  # shorter launches that `--top` left out
    cut: bool  # whether --top was given


def choose(side: Side, kernel: str | None, top: int | None) -> Chosen:
    """The launches that match --kernel, of them the longest --top. Raises UnknownName where none matches."""
    wanted = kernel_filter(kernel)
    named = zip(launch_labels(side.launches), side.launches, strict=True)
    found = [(name, launch) for name, launch in named if wanted(launch)]
    if not found and kernel is not None:
        there = sorted({launch.base_name for launch in side.launches})
        raise UnknownName(f"no kernel matches {kernel!r} in {side.label}; there are {brief_list(there)}")
    kept = _longest(found, top)
    return Chosen(side, tuple(kept), len(found) - len(kept), top is not None)


def document(chosen: Chosen, table: MetricTable, *, everything: bool) -> dict[str, object]:
    """The launches for JSON: every metric of the report by its exact name, or those of metrics.txt."""
    side = chosen.side
    launches = []
    for name, launch in chosen.launches:
        launches.append(
            {
                "kernel": launch.base_name,
                "part": name,
                "demangled": launch.demangled,
                "grid": launch.grid,
                "block": launch.block,
                "nvtx": launch.nvtx,
                "ordinal": launch.ordinal,
                **(_every_metric(launch) if everything else _by_concept(launch, table, side)),
            }
        )
    return {
        "source": side.label,
        "gpu": side.gpu,
        "ncu_version": side.session.ncu_version,
        "latency": [
            {"mode": one.mode, "run": one.run_id, "ns": level_ns(one), "samples": len(one.ns)}
            for one in timed(side)
        ],
        "launches": launches,
        "hidden_launches": chosen.hidden,
    }


def timed(side: Side) -> list[Latency]:
    """The newest timed calls of each mode."""
    newest = {one.mode: one for one in reversed(side.latencies) if len(one.ns)}
    return [newest[mode] for mode in dict.fromkeys(one.mode for one in side.latencies) if mode in newest]


def level_ns(one: Latency) -> float:
    """Nanoseconds of a call: the median, or the mean of short ones."""
    from profiler.statistics import typical_ns

    return float(typical_ns(one.ns))


def _every_metric(launch: Launch) -> dict[str, object]:
    return {"metrics": {name: formatting.as_json(value) for name, value in launch.values.items()}}


def _by_concept(launch: Launch, table: MetricTable, side: Side) -> dict[str, object]:
    """One entry for each ncu name, which may stand for several concepts, and the concepts the chip lacks."""
    told: dict[str, dict[str, object]] = {}
    concepts: dict[str, list[str]] = {}
    lacking = []
    for concept, name, value in _resolved(launch, table, side):
        if (
            value.state is State.NOT_AVAILABLE
        ):  # the name is another chip's, and may be another concept's here
            lacking.append(concept)
            continue
        concepts.setdefault(name, []).append(concept)
        told[name] = {
            **formatting.as_json(value),
            "concept": concepts[name][0],
            "concepts": concepts[name],
        }
    return {"metrics": told, "not_available": lacking}


def print_launches(chosen: Chosen, table: MetricTable, *, everything: bool) -> None:
    """Print the launches; without --top at most SHOWN of them, the longest."""
    side = chosen.side
    made = formatting.timestamp(side.session.created)
    say(
        f"{side.label}: {side.gpu or 'GPU unknown'}, ncu {side.session.ncu_version or 'unknown'}, made {made}"
    )
    for one in timed(side):
        ns = formatting.quantity(Value(level_ns(one), "ns"))
        say(f"latency, {one.mode}: {ns} a call, {len(one.ns)} samples")
    if not side.launches:
        say("no launch with counters here: no report of it was collected or imported")
    launches = list(chosen.launches) if chosen.cut else _longest(chosen.launches, SHOWN)
    for name, launch in launches:
        say(
            f"\n{name}  grid {formatting.dimensions(launch.grid)}, "
            f"block {formatting.dimensions(launch.block)}"
        )
        if everything:
            _print_all(launch)
        else:
            _print_groups(launch, table, side)
    hidden = chosen.hidden + len(chosen.launches) - len(launches)
    if hidden:
        say(f"\nand {hidden} shorter launches: --top N, or --kernel PATTERN")


def _longest(launches: Sequence[tuple[str, Launch]], count: int | None) -> list[tuple[str, Launch]]:
    """The longest, in their own order. A launch without a duration counts as long: it wants attention."""
    if count is None or len(launches) <= count:
        return list(launches)
    order = sorted(range(len(launches)), key=lambda index: _minus_duration(launches[index][1]))
    return [launches[index] for index in sorted(order[:count])]


def _minus_duration(launch: Launch) -> float:
    duration = launch.values.number(NCU_DURATION)
    return float("-inf") if duration is None else -duration


def _resolved(launch: Launch, table: MetricTable, side: Side) -> list[tuple[str, str, Value]]:
    """Concept, ncu name and value of every metric of metrics.txt."""
    chip = chip_of(side.compute_capability) if side.compute_capability else None
    return [
        (metric.concept, *table.resolve(metric, launch.values, chip)) for metric in table.of(side.evidence)
    ]


def _print_all(launch: Launch) -> None:
    rows = []
    for name, value in launch.values.items():
        if value.state is not State.PRESENT:
            rows.append((name, formatting.state_words(value), ""))
        else:
            rows.append((name, value.text or "" if value.number is None else str(value.number), value.unit))
    print_table(("metric", "value", "unit"), rows, right=(1,))


def _print_groups(launch: Launch, table: MetricTable, side: Side) -> None:
    rows: list[tuple[str, ...]] = []
    absent: dict[str, list[str]] = {}
    last = ""
    for concept, name, value in _resolved(launch, table, side):
        metric = table.by_concept[concept]
        if value.state is not State.PRESENT:
            absent.setdefault(formatting.state_words(value), []).append(concept)
            continue
        quantity = formatting.quantity(value)
        group = metric.group if metric.group != last else ""
        last = metric.group
        rows.append((group, metric.label, quantity.number, quantity.unit, name))
    print_table(("group", "metric", "value", "", "ncu metric"), rows, right=(2,))
    for words, names in absent.items():
        say(f"  {words}: {', '.join(names)}")
