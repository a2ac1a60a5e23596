"""`profiler restore`: a backup into the data folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, prepare_answers, print_document, progress_bar

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands) -> None:
    """Add `restore`."""
    command = commands.add_parser(
        "restore",
        help="restore the runs and decisions of a backup",
        description="Take the runs and decisions of a backup. The whole file is checked before anything of "
        "it is taken. Existing runs with the same content stay, other content is named and refused (exit "
        "code 2), and runs that were deleted here after the backup stay away. Killed, it is finished by "
        "running it again.",
    )
    command.add_argument("file", type=Path, metavar="FILE", help="the file that `profiler backup` wrote")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Restore, and say what became of the runs."""
    from profiler.documents.backup import restore

    with progress_bar() as progress:
        document = restore(arguments.file, progress=progress)
    code = print_document(document, arguments)
    if document.summary.restored:
        prepare_answers()
    return code
