"""`profiler show`: the numbers of each launch of a report, run or version."""

from __future__ import annotations

import argparse
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

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import LaunchesDocument, LaunchSelection
    from profiler.evidence import Launch, Value

SHOWN = 10  # launches that a terminal gets unasked

_DESCRIPTION = """\
The metrics of every launch in a report file, run or version, by group; what has no number is named last, with
the reason. A file is read as it is, without a store. With --all --json the numbers are in base units under
their exact ncu names.

--sections shows one launch, the longest unless --kernel names another, in the sections of Nsight Compute:
what it says, speed of light, memory hierarchy, warp states, instruction mix, occupancy, hot source lines,
rules, and what was not collected with the command that collects it; --against beside a launch of the same
kernel there."""


def add(commands: Commands) -> None:
    """Add `show`."""
    show = commands.add_parser("show", help="print the metrics of each launch", description=_DESCRIPTION)
    show.add_argument(
        "name", metavar="REPORT_OR_VERSION", help="a report file, run id, family/version or version"
    )
    show.add_argument(
        "--all", action="store_true", help="every metric of the report, not those of metrics.txt"
    )
    show.add_argument("--sections", action="store_true", help="one launch, section by section")
    show.add_argument(
        "--against", metavar="BASELINE", help="with --sections: what to hold the launch against"
    )
    add_filters(show, "kernel", "top", "workload", "gpu")
    shape = show.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="with --sections: Markdown for a pull request")
    show.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the launches of one report, run or version, or one of them by its sections."""
    from profiler.documents import launches_of_name
    from profiler.errors import UnknownName
    from profiler.evidence import load_metrics

    if arguments.sections:
        return _run_sections(arguments)
    for option in ("against", "markdown"):
        if getattr(arguments, option):
            raise UnknownName(f"--{option} is of one launch: add --sections")
    options = {name: getattr(arguments, name) for name in ("workload", "gpu", "kernel", "top")}
    options["every_metric"] = arguments.all
    document = launches_of_name(arguments.name, load_metrics(), open_store, **options)
    note_forgotten((arguments.name,), open_store)
    return print_document(document, arguments, print_text)


def _run_sections(arguments: argparse.Namespace) -> int:
    from profiler.cli.launch_text import print_sections
    from profiler.documents import launch_of_name
    from profiler.errors import UnknownName
    from profiler.evidence import load_metrics

    for option in ("all", "top"):
        if getattr(arguments, option):
            raise UnknownName(f"--{option} is of all launches: leave it out, or --sections")
    options = {name: getattr(arguments, name) for name in ("against", "workload", "gpu", "kernel")}
    document = launch_of_name(arguments.name, load_metrics(), open_store, **options)
    note_forgotten([name for name in (arguments.name, arguments.against) if name], open_store)
    return print_document(document, arguments, print_sections)


def print_text(document: LaunchesDocument, arguments: argparse.Namespace) -> None:
    """Print the launches; without --top at most SHOWN of them, the longest."""
    say(document.title)
    print_lines(document.sentences)
    selection = document.selection.longest(None if arguments.top else SHOWN)
    for label, launch in selection.launches:
        print_launch_head(label, launch)
        if document.every_metric:
            _print_every_metric(launch)
        else:
            _print_groups(document, launch)
    print_hidden(selection)


def print_launch_head(label: str, launch: Launch) -> None:
    """Print what a launch is called, and its size."""
    from profiler.evidence import formatting

    grid, block = formatting.dimensions(launch.grid), formatting.dimensions(launch.block)
    say(f"\n{label}  grid {grid}, block {block}")


def print_hidden(selection: LaunchSelection) -> None:
    """Print how many launches were left out."""
    if selection.hidden:
        say(f"\nand {selection.hidden} shorter launches: --top N, or --kernel PATTERN")


def _unit(name: str, value: Value, unit: str) -> str:
    """The unit as it is printed, with a mark where the number is over its peak."""
    from profiler.evidence import is_over_peak

    return f"{unit} (over its peak)" if is_over_peak(name, value) else unit


def _print_every_metric(launch: Launch) -> None:
    from profiler.evidence import State, formatting

    rows = []
    for name, value in launch.values.items():
        if value.state is not State.PRESENT:
            rows.append((name, formatting.state_words(value), ""))
        else:
            number = value.text or "" if value.number is None else str(value.number)
            rows.append((name, number, _unit(name, value, value.unit)))
    print_table(("metric", "value", "unit"), rows, right=(1,))


def _print_groups(document: LaunchesDocument, launch: Launch) -> None:
    """The metrics of metrics.txt group by group; what has no number is named below, by the reason."""
    from profiler.evidence import State, formatting

    rows: list[tuple[str, ...]] = []
    concepts_by_state: dict[str, list[str]] = {}
    last_group = ""
    for concept, name, value in document.metrics(launch):
        metric = document.table.by_concept[concept]
        if value.state is not State.PRESENT:
            words = formatting.state_words(value, explained=True)
            concepts_by_state.setdefault(words, []).append(concept)
            continue
        quantity = formatting.quantity(value)
        group = metric.group if metric.group != last_group else ""
        last_group = metric.group
        rows.append((group, metric.label, quantity.number, _unit(name, value, quantity.unit), name))
    print_table(("group", "metric", "value", "", "ncu metric"), rows, right=(2,))
    for state, concepts in concepts_by_state.items():
        say(f"  {state}: {', '.join(concepts)}")
