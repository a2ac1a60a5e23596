"""`profiler backup`: all runs and decisions as one file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_document, progress_bar

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands) -> None:
    """Add `backup`."""
    command = commands.add_parser(
        "backup",
        help="write all runs and decisions as one tar.gz",
        description="Write all runs and decisions as one tar.gz, completely or not at all, checking the "
        "sha256 of every file. What is damaged is left out and named (exit code 2). `sha256sum -c` reads its "
        "last file, SHA256SUMS.",
    )
    command.add_argument("out", type=Path, metavar="OUT.tar.gz", help="the file; an existing one is replaced")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the backup and say what it holds."""
    from profiler.documents.backup import write_backup

    with progress_bar() as progress:
        document = write_backup(arguments.out, progress=progress)
    return print_document(document, arguments)
