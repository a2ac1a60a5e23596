"""How rooflines are printed: a row a roof, a row a precision and level, and what is missing by name."""

from __future__ import annotations

from collections.abc import Sequence

from profiler.cli.output import print_table, say
from profiler.cli.showing import Chosen
from profiler.evidence import MetricTable, Rate, Value, chip_of, formatting
from profiler.explain import Roof, Roofline, RooflinePoint, roofline_of
from profiler.explain.roofline import UNUSED, collect_command


def every(chosen: Chosen, table: MetricTable) -> list[Roofline]:
    """The roofline of each launch."""
    side = chosen.side
    chip = chip_of(side.compute_capability) if side.compute_capability else None
    return [roofline_of(launch, table, chip, side.session.ncu_version) for _, launch in chosen.launches]


def document(chosen: Chosen, found: Sequence[Roofline]) -> dict[str, object]:
    """The rooflines for JSON, in FLOP/s, byte/s and FLOP/byte."""
    side = chosen.side
    return {
        "source": side.label,
        "gpu": side.gpu,
        "ncu_version": side.session.ncu_version,
        "launches": [
            {
                "kernel": launch.base_name,
                "part": name,
                "ordinal": launch.ordinal,
                "precisions": [{**_roof(roof), "state": roof.state} for roof in one.precisions],
                "levels": [_roof(roof) for roof in one.levels],
                "points": [_point(point) for point in one.points],
                "nearest_roof": one.nearest.name if one.nearest else None,
                "missing": [
                    {"roof": roof, "metric": metric, "state": state}
                    for roof, lacking in one.missing.items()
                    for metric, state in lacking
                ],
                "notes": [note.replace("`", "") for note in one.notes],
            }
            for (name, launch), one in zip(chosen.launches, found, strict=True)
        ],
        "hidden_launches": chosen.hidden,
    }


def print_rooflines(chosen: Chosen, found: Sequence[Roofline]) -> None:
    """Print a table of roofs and one of points for each launch."""
    side = chosen.side
    say(f"{side.label}: {side.gpu or 'GPU unknown'}, ncu {side.session.ncu_version or 'unknown'}")
    lines = [[line.replace("`", "") for line in (*_lacking(one), *one.notes)] for one in found]
    shared = [line for line in lines[0] if all(line in own for own in lines)] if len(lines) > 1 else []
    for (name, launch), one, own in zip(chosen.launches, found, lines, strict=True):
        say(
            f"\n{name}  grid {formatting.dimensions(launch.grid)}, "
            f"block {formatting.dimensions(launch.block)}"
        )
        _print_roofs(one)
        _print_points(one.points)
        for line in own:
            if line not in shared:
                say(f"  {line}")
    if shared:
        say("\nall of them:")
        for line in shared:
            say(f"  {line}")
    if any(one.missing for one in found):
        capability = chosen.side.compute_capability
        say(f"\nwhat is missing, at once: {collect_command(chip_of(capability) if capability else None)}")
    if chosen.hidden:
        say(f"\nand {chosen.hidden} shorter launches: --top N, or --kernel PATTERN")


def _print_roofs(one: Roofline) -> None:
    rows = []
    for roof in (*one.precisions, *one.levels):
        if roof.rate.number or (roof.peak.number and roof.state != UNUSED):
            nearest = "nearest roof" if roof is one.nearest else ""
            numbers = (_number(roof.rate, roof.unit), _number(roof.peak, roof.unit), _pct(roof.share))
            rows.append((roof.name, *numbers, nearest))
    if rows:
        print_table(("roof", "reached", "peak", "of it", ""), rows, right=(1, 2, 3))
    if not one.points:
        say("no point: no operations and bytes of one launch were counted together")


def _print_points(points: Sequence[RooflinePoint]) -> None:
    if not points:
        return
    rows = [
        (
            point.precision,
            point.level,
            formatting.digits(point.intensity, whole=False),
            "–" if point.knee is None else formatting.digits(point.knee, whole=False),
            point.bound or "unknown",
            _pct(point.share),
        )
        for point in points
    ]
    head = ("precision", "level", "operations/byte", "knee at", "limited by", "of attainable")
    print_table(head, rows, right=(2, 3, 5))


def _lacking(one: Roofline) -> list[str]:
    by_roof: dict[str, dict[str, list[str]]] = {}
    for roof, lacking in one.missing.items():
        for metric, state in lacking:
            by_roof.setdefault(roof, {}).setdefault(state, []).append(metric)
    seen = {roof.name: f" (its code has {roof.opcodes})" for roof in one.precisions if roof.opcodes}
    return [
        f"{roof}{seen.get(roof, '')}: {state}: {', '.join(names)}"
        for roof, states in by_roof.items()
        for state, names in states.items()
    ]


def _number(reading: Rate, unit: str) -> str:
    return "–" if reading.number is None else str(formatting.quantity(Value(reading.number, unit)))


def _pct(share: float | None) -> str:
    return "–" if share is None else str(formatting.quantity(Value(100 * share, "%")))


def _roof(roof: Roof) -> dict[str, object]:
    return {
        "name": roof.name,
        "unit": roof.unit,
        "reached": roof.rate.number,
        "peak": roof.peak.number,
        "share": roof.share,
        "reached_by": roof.rate.names,
        "peak_by": roof.peak.names,
    }


def _point(point: RooflinePoint) -> dict[str, object]:
    return {
        "precision": point.precision,
        "level": point.level,
        "intensity": point.intensity,
        "reached": point.reached,
        "unit": point.unit,
        "knee": point.knee,
        "attainable": point.attainable,
        "limited_by": point.bound,
        "share": point.share,
    }
