"""`profiler roofline`: where launches stand under the roofs of their GPU, and what that lacks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from profiler.cli.output import (
    add_filters,
    add_json,
    note_forgotten,
    open_store,
    print_document,
    print_lines,
    print_table,
    say,
)
from profiler.cli.show import print_hidden, print_launch_head

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import RooflineDocument
    from profiler.evidence import Rate
    from profiler.explain import Roofline, RooflinePoint

_DESCRIPTION = """\
The roofs of the GPU at each launch's own clocks (fp64, fp32, fp16, tensor cores by type; L1, L2, DRAM), how
much of each the launch reached, and its arithmetic intensity at each level. All of it comes from the report's
own metrics: what a report lacks is named with its state. NAME is a report file, a run or a version. Exit 3
where no launch has a point."""


def add(commands: Commands) -> None:
    """Add `roofline`."""
    command = commands.add_parser(
        "roofline", help="launches under the roofs of their GPU", description=_DESCRIPTION
    )
    command.add_argument("name", metavar="NAME", help="a report file, a run id, family/version, or a version")
    add_filters(command, "workload", "gpu", "kernel", "top")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the roofline of every launch asked for."""
    from profiler.documents import rooflines_of_name
    from profiler.evidence import load_metrics

    options = {name: getattr(arguments, name) for name in ("workload", "gpu", "kernel", "top")}
    document = rooflines_of_name(arguments.name, load_metrics(), open_store, **options)
    note_forgotten((arguments.name,), open_store)
    return print_document(document, arguments, print_text)


def print_text(document: RooflineDocument, _: argparse.Namespace) -> None:
    """Print a table of roofs and one of points for each launch; what is the same of several once, below."""
    from profiler.documents.roofline import counted_kernels, why_no_point
    from profiler.evidence import chip_of
    from profiler.explain.roofline import collect_command

    selection, rooflines = document.selection, document.rooflines
    say(document.title)
    notes = [_notes(roofline) for roofline in rooflines]
    shared = [line for line in notes[0] if all(line in lines for lines in notes)] if len(notes) > 1 else []
    # Launches by what is the same of them: label, kernel and roofline of each.
    pointless: dict[tuple[str, tuple[str, ...]], list[tuple[str, str, Roofline]]] = {}
    for (label, launch), roofline, lines in zip(selection.launches, rooflines, notes, strict=True):
        own = [line for line in lines if line not in shared]
        reason = why_no_point(roofline)
        if reason:
            pointless.setdefault((reason, tuple(own)), []).append((label, launch.base_name, roofline))
        if not reason or any(roof.rate.number for roof in roofline.roofs):
            print_launch_head(label, launch)
            _print_roofs(roofline)
            _print_points(roofline.points)
            print_lines([] if reason else own, "  ")
    for (reason, same), launches in pointless.items():
        say(f"\nno point for {counted_kernels([kernel for _, kernel, _ in launches])}: {reason}")
        print_lines(same, "  ")
        label, roofline = launches[0][0], launches[0][2]
        if not any(roof.rate.number for roof in roofline.roofs):
            rows = _roof_rows(roofline)
            print_lines(
                [f"peaks, of {label}: {', '.join(f'{row[0]} {row[2]}' for row in rows)}"] if rows else [],
                "  ",
            )
    if shared:
        say("\nall of them:")
        print_lines(shared, "  ")
    if any(roofline.missing for roofline in rooflines):
        chips = {chip_of(selection.side.capability_of(launch)) for _, launch in selection.launches}
        say(f"\nwhat is missing, at once: {collect_command(chips.pop() if len(chips) == 1 else None)}")
    print_hidden(selection)


def _roof_rows(roofline: Roofline) -> list[tuple[str, ...]]:
    from profiler.documents.roofline import percent
    from profiler.explain.roofline import UNUSED

    rows: list[tuple[str, ...]] = []
    for roof in roofline.roofs:
        if roof.rate.number or (roof.peak.number and roof.state != UNUSED):
            numbers = (_quantity(roof.rate, roof.unit), _quantity(roof.peak, roof.unit), percent(roof.share))
            rows.append((roof.name, *numbers, roofline.rank_words(roof)))
    return rows


def _print_roofs(roofline: Roofline) -> None:
    rows = _roof_rows(roofline)
    if rows:
        print_table(("roof", "reached", "peak", "of it", ""), rows, right=(1, 2, 3))


def _print_points(points: Sequence[RooflinePoint]) -> None:
    from profiler.documents.roofline import percent
    from profiler.evidence import formatting

    rows = [
        (
            point.precision,
            point.level,
            formatting.digits(point.intensity, whole=False),
            "–" if point.knee is None else formatting.digits(point.knee, whole=False),
            point.bound or "unknown",
            percent(point.share),
        )
        for point in points
    ]
    if rows:
        head = ("precision", "level", "operations/byte", "knee at", "limited by", "of attainable")
        print_table(head, rows, right=(2, 3, 5))


def _notes(roofline: Roofline) -> list[str]:
    """The metrics that each roof lacks, by their state, and what a reader has to know of the roofs."""
    metrics: dict[tuple[str, str], list[str]] = {}
    for roof, missing in roofline.missing.items():
        for metric, state in missing:
            metrics.setdefault((roof, state), []).append(metric)
    opcodes = {roof.name: f" (its code has {roof.opcodes})" for roof in roofline.precisions if roof.opcodes}
    lacking = (
        f"{roof}{opcodes.get(roof, '')}: {state}: {', '.join(names)}"
        for (roof, state), names in metrics.items()
    )
    return [line.replace("`", "") for line in (*lacking, *roofline.notes)]


def _quantity(rate: Rate, unit: str) -> str:
    from profiler.evidence import Value, formatting

    return "–" if rate.number is None else str(formatting.quantity(Value(rate.number, unit)))
