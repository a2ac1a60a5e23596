"""`profiler data restore | delete | prune`: what comes back to a data folder, and what leaves it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, positive, prepare_answers, print_document, progress_bar
from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands) -> None:
    """Add the three commands."""
    restoring = commands.add_parser(
        "restore",
        help="restore the runs, decisions and searches of a backup",
        description="Take the runs, decisions and searches of a backup. The whole file is checked before "
        "anything of it is taken. Existing runs with the same content stay, other content is named and "
        "refused (exit code 2), and runs that were deleted here after the backup stay deleted. If "
        "interrupted, run it again.",
    )
    restoring.add_argument(
        "file", type=Path, metavar="FILE", help="the file that `profiler data backup` wrote"
    )
    pruning = _add_prune(commands)
    for command, handler in ((restoring, restore), (pruning, prune)):
        add_json(command)
        command.set_defaults(handler=handler)
    _add_delete(commands)


def _add_prune(commands: Commands) -> argparse.ArgumentParser:
    command = commands.add_parser(
        "prune",
        help="drop the reports of old runs and keep their numbers",
        description="Drop the .ncu-rep of runs made more than DAYS days ago, and keep all that an import "
        "reads from them: every scalar metric, rule and attribute. Tables, comparisons, trends and gates "
        "answer as before; views per instruction, source and timelines say who dropped the report and "
        "when. Without --yes it says how many bytes that would free.",
    )
    command.add_argument(
        "--older", type=positive, required=True, metavar="DAYS", help="age of the run in days"
    )
    command.add_argument("--family", metavar="FAMILY", help="only runs of this family")
    command.add_argument("--why", default="", metavar="TEXT", help="the reason, kept with the run")
    what = command.add_mutually_exclusive_group()
    what.add_argument("--dry-run", action="store_true", help="only print what would be dropped (the default)")
    what.add_argument("--yes", action="store_true", help="do it")
    return command


def _add_delete(commands: Commands) -> None:
    command = commands.add_parser(
        "delete",
        help="remove runs for good, with their reports",
        description="Remove runs for good: their bundles with all reports, and what the caches hold of them. "
        "A decision keeps who did it, when and why. Their labels are dropped, and the same report can be "
        "imported again. `profiler data forget` only hides a run.",
    )
    command.add_argument("runs", nargs="+", metavar="RUN", help="run ids: `profiler list runs` lists them")
    command.add_argument("--why", required=True, metavar="TEXT", help="the reason, kept with the decision")
    command.add_argument(
        "--yes", action="store_true", help="do it; without this it prints what it would remove"
    )
    command.set_defaults(handler=delete)


def restore(arguments: argparse.Namespace) -> int:
    """Restore, and say what became of the runs."""
    from profiler.documents.backup import restore as restore_file

    with progress_bar() as progress:
        document = restore_file(arguments.file, progress=progress)
    code = print_document(document, arguments)
    if document.summary.restored:
        prepare_answers()
    return code


def prune(arguments: argparse.Namespace) -> int:
    """Say what would be dropped, or drop it; a line a family."""
    from profiler.documents.prune import prune_reports

    options = {"family": arguments.family, "why": arguments.why, "do_it": arguments.yes}
    with progress_bar() as progress:
        document = prune_reports(arguments.older, **options, progress=progress)
    return print_document(document, arguments)


def delete(arguments: argparse.Namespace) -> int:
    """Say what would be removed, or remove it."""
    from profiler.store.deletion import delete_runs, plan_deletion

    if not arguments.yes:
        for deletion in plan_deletion(arguments.runs):
            print(f"{deletion.run_id}: {deletion.files} files, {deletion.size_bytes:,} bytes")
        raise ProfilerError(
            "nothing was deleted: `--yes` removes these for good, `profiler data forget` hides them"
        )
    for deletion in delete_runs(arguments.runs, why=arguments.why):
        print(f"{deletion.run_id} was deleted ({deletion.size_bytes:,} bytes)")
    return Exit.PASS
