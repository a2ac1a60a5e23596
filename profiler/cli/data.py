"""`profiler import | index | relabel | forget | export`: data in and out, and what became of them."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import complain, prepare_answers, progress_bar
from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.store.import_files import ImportSummary
    from profiler.store.sync import SyncSummary


def add(commands: Commands) -> None:
    """Add the five commands."""
    import_command = commands.add_parser(
        "import",
        help="import reports, CSVs, bundles and folders of them",
        description="Import Nsight Compute reports (.ncu-rep), CSVs from ncu, bundles (folders or zips). "
        "By default the version is the file's name, and the family the nearest part of the path that no "
        "other folder has. What was imported before stays as it is.",
        epilog="A label may be a text (silu), a template ({folder[-2]}-{stem}), a rule by name "
        "('silu*=silu') or by regular expression ('/_n(\\d+)/=n{1}'). "
        "Of several rules the first that fits a report counts.",
    )
    import_command.add_argument(
        "paths", nargs="+", type=Path, metavar="PATH", help="a file, or a folder to search"
    )
    for name in ("family", "version", "workload"):
        import_command.add_argument(
            f"--{name}",
            action="append",
            metavar=name.upper(),
            help=f"the {name} of these reports (bundles have their own)",
        )
    import_command.add_argument(
        "--relabel",
        action="store_true",
        help="also give these labels to reports imported before, in one decision",
    )
    import_command.add_argument(
        "--reader-memory",
        metavar="SIZE",
        help="memory limit for reading a file, such as 4G (default: by its size; PROFILER_READER_MEMORY)",
    )
    import_command.set_defaults(handler=import_)
    stepped = commands.add_parser(
        "index",
        help="update the index from the bundles",
        description="Update the index from the bundles; files that could not be read before are tried again.",
    )
    stepped.add_argument("--rebuild", action="store_true", help="rebuild it from the bundles alone")
    stepped.set_defaults(handler=index)
    relabelled = commands.add_parser(
        "relabel",
        help="correct the family, version or workload of an imported run, or of all runs of a family",
        description="Correct the family, version or workload of an imported run, or of all imported runs of "
        "a family in one decision. A label may be a template or a rule, as for `profiler import`.",
    )
    relabelled.add_argument(
        "run", metavar="RUN_OR_FAMILY", help="a run id, or a family: `profiler runs` lists both"
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
    command.add_argument("run", metavar="RUN", help="a run id: `profiler runs` lists them")
    return command


def import_(arguments: argparse.Namespace) -> int:
    """Import, and say what became of every file. One that is refused does not stop the others."""
    from profiler.reports.memory_limit import parse_size
    from profiler.reports.reader_client import start_reader

    memory = arguments.reader_memory
    memory_bytes = None if memory is None else parse_size(memory, "--reader-memory")
    if any(path.suffix.lower() not in (".csv", ".zip") for path in arguments.paths):
        start_reader(memory_bytes)  # which takes as long as to load what imports
    from profiler.store.begin_import import import_paths

    with progress_bar() as progress:
        summary = import_paths(
            arguments.paths,
            family=arguments.family,
            version=arguments.version,
            workload=arguments.workload,
            relabel=arguments.relabel,
            reader_memory=memory_bytes,
            keep_reader=False,
            progress=progress,
        )
    if not (summary.imported or summary.already or summary.refused):
        raise ProfilerError("nothing to import there: no report (.ncu-rep, or CSV from ncu) and no bundle")
    for line in _summary_lines(summary):
        print(line)
    complain(message for _, message in (*summary.warnings, *summary.refused))
    if summary.imported or summary.relabelled:
        prepare_answers()
    return Exit.UNUSABLE_INPUT if summary.refused else Exit.PASS


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
    way_back = "" if arguments.undo else f"; `profiler forget --undo {arguments.run}` shows it again"
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


def _summary_lines(summary: ImportSummary) -> Iterator[str]:
    """What became of an import: a line a new run, then the counts."""
    for new in summary.imported:
        yield f"{new.run_id}  {new.family}/{new.version}  {new.launches} launch{'es' * (new.launches != 1)}"
    for duplicate in summary.already:
        if duplicate.from_other_file:
            yield f"{duplicate.path}: the same measurement as run {duplicate.run_id}, from another file"
        if duplicate.hidden:
            yield f"{duplicate.path}: forgotten; `profiler forget --undo {duplicate.run_id}` shows it again"
        if duplicate.other_labels:
            options = " ".join(f"--{kind} {shlex.quote(text)}" for kind, text in duplicate.other_labels)
            yield (
                f"{duplicate.path}: already there under other labels; "
                f"`profiler relabel {duplicate.run_id} {options}` changes them"
            )
    for run_id, family, version in summary.relabelled:
        yield f"{run_id}  is {family}/{version} now"
    counts = {
        "imported": len(summary.imported),
        "already there": len(summary.already),
        "relabelled": len(summary.relabelled),
        "refused": len(summary.refused),
        "other files skipped": summary.skipped,
    }
    into = f", into {summary.data}" if summary.imported else ""
    yield ", ".join(f"{count} {what}" for what, count in counts.items() if count) + into


def _changes(summary: SyncSummary) -> tuple[tuple[tuple[object, ...], str], ...]:
    return (
        (summary.added, "runs added"),
        (summary.changed, "changed by decisions"),
        (summary.removed, "removed"),
        (summary.refused, "refused"),
    )
