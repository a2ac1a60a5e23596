"""`profiler data index | relabel | forget | export`: the runs of the data folder and their labels."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import complain, prepare_answers, progress_bar
from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.store.sync import SyncSummary


def add(commands: Commands) -> None:
    """Add the four commands."""
    stepped = commands.add_parser(
        "index",
        help="update the index from the bundles and decisions",
        description="Update the index from the bundles and decisions. Runs that could not be read before are "
        "tried again.",
    )
    stepped.add_argument("--rebuild", action="store_true", help="empty it and make it again from these")
    stepped.set_defaults(handler=index)
    relabelled = commands.add_parser(
        "relabel",
        help="correct the family, version or workload of an imported run, or of all runs of a family",
        description="Correct the family, version or workload of an imported run, or of all imported runs of "
        "a family in one decision. A label may be a template or a rule, as for `profiler import`.",
    )
    relabelled.add_argument(
        "run", metavar="RUN_OR_FAMILY", help="a run id, or a family: `profiler list runs` lists both"
    )
    for name in ("family", "version"):
        relabelled.add_argument(f"--{name}", action="append", metavar=name.upper(), help=f"the new {name}")
    relabelled.add_argument(
        "--workload", action="append", metavar="WORKLOAD", help="the workload; '' for unknown"
    )
    relabelled.add_argument(
        "--by-folder",
        action="store_true",
        help="for a family: each folder that its reports came from becomes a family",
    )
    relabelled.set_defaults(handler=relabel)
    forgotten = _about_a_run(commands, "forget", "hide a run; its bundle stays")
    forgotten.add_argument("--undo", action="store_true", help="show it again")
    forgotten.set_defaults(handler=forget)
    for decision in (relabelled, forgotten):
        decision.add_argument("--why", default="", metavar="TEXT", help="the reason, kept with the decision")
    exported = _about_a_run(commands, "export", "write a run as one zip, to import elsewhere")
    exported.add_argument(
        "--out", type=Path, default=Path(), metavar="PATH", help="a file, or a folder (here)"
    )
    exported.set_defaults(handler=export)


def _about_a_run(commands: Commands, name: str, does: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=does, description=f"{does[0].upper()}{does[1:]}.")
    command.add_argument("run", metavar="RUN", help="a run id: `profiler list runs` lists them")
    return command


def index(arguments: argparse.Namespace) -> int:
    """Bring the index in step, or make it again."""
    from profiler.store.sync import rebuild_index, sync_index

    with progress_bar() as progress:
        summary = (rebuild_index if arguments.rebuild else sync_index)(progress=progress)
    changes = [f"{len(runs)} {what}" for runs, what in _changes(summary) if runs]
    print(f"index: {', '.join(changes) or 'nothing to do'}")
    complain(message for _, message in summary.refused)
    prepare_answers()
    return Exit.UNUSABLE_INPUT if summary.refused else Exit.PASS


def relabel(arguments: argparse.Namespace) -> int:
    """Record the labels that are valid from now on, and say them."""
    from profiler.store.run_decisions import relabel as relabel_runs

    changed = relabel_runs(
        arguments.run,
        family=arguments.family,
        version=arguments.version,
        workload=arguments.workload,
        by_folder=arguments.by_folder,
        why=arguments.why,
    )
    for run_id, labels in changed.items():
        workload = f", workload {labels.workload}" if labels.workload else ""
        print(f"{run_id} is {labels.family}/{labels.version}{workload}")
    if not changed:
        print(f"{arguments.run}: it already had these labels")
    return Exit.PASS


def forget(arguments: argparse.Namespace) -> int:
    """Record that a run is hidden, or shown again."""
    from profiler.store.run_decisions import forget_run

    changed = forget_run(arguments.run, undo=arguments.undo, why=arguments.why)
    state = "shown" if arguments.undo else "hidden"
    way_back = "" if arguments.undo else f"; `profiler data forget --undo {arguments.run}` shows it again"
    print(f"{arguments.run} is {state}{way_back}" if changed else f"{arguments.run} was {state} before")
    return Exit.PASS


def export(arguments: argparse.Namespace) -> int:
    """Write a run as a zip and say where it is."""
    from profiler.evidence.plain_file import special_kind
    from profiler.store.run_files import export_run

    if (kind := special_kind(arguments.out)) is not None:
        raise ProfilerError(f"--out {arguments.out}: {kind}, not a file")
    print(export_run(arguments.run, arguments.out))
    return Exit.PASS


def _changes(summary: SyncSummary) -> tuple[tuple[tuple[object, ...], str], ...]:
    return (
        (summary.added, "runs added"),
        (summary.changed, "changed by decisions"),
        (summary.removed, "removed"),
        (summary.refused, "refused"),
    )
