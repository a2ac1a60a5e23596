"""`profiler restore`: a backup into the data folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import complain, prepare_answers, progress_bar
from profiler.errors import Exit

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands) -> None:
    """Add `restore`."""
    command = commands.add_parser(
        "restore",
        help="take the runs and decisions of a backup",
        description="Take the runs and decisions of a backup. The whole file is checked before anything of "
        "it is taken. What is there with the same content stays, other content is named and refused (exit "
        "code 2), and runs that were deleted here after the backup stay away. Killed, it is finished by "
        "running it again.",
    )
    command.add_argument("file", type=Path, metavar="FILE", help="what `profiler backup` wrote")
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Restore, and say what became of the runs."""
    from profiler.store import restore_backup

    with progress_bar() as progress:
        restored, indexed = restore_backup(arguments.file, progress=progress)
    counts = {
        "runs restored": len(restored.restored),
        "decisions restored": restored.decisions,
        "searches restored": restored.searches,
        "runs already there": len(restored.already),
        "runs left out, deleted here since": len(restored.deleted),
        "refused": len(restored.refused) + len(indexed.refused),
    }
    print(", ".join(f"{count} {what}" for what, count in counts.items() if count) or "the backup is empty")
    refused = [*restored.refused, *indexed.refused]
    complain(message for _, message in refused)
    if restored.restored:
        prepare_answers()
    return Exit.UNUSABLE_INPUT if refused else Exit.PASS
