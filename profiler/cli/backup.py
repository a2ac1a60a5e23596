"""`profiler backup`: all runs and decisions as one file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, complain, print_document, print_lines, progress_bar

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import BackupDocument


def add(commands: Commands) -> None:
    """Add `backup`."""
    command = commands.add_parser(
        "backup",
        help="write all runs and decisions as one tar.gz",
        description="Write all runs and decisions as one tar.gz, whole or not at all; every file is held "
        "against its sha256 on the way. What is damaged is left out and named (exit code 2). "
        "SHA256SUMS, its last file, is of the form that `sha256sum -c` reads.",
    )
    command.add_argument(
        "out", type=Path, metavar="OUT.tar.gz", help="the file; one that is there is replaced"
    )
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the backup and say what it holds."""
    from profiler.documents import write_backup

    with progress_bar() as progress:
        document = write_backup(arguments.out, progress=progress)
    return print_document(document, arguments, _print)


def _print(document: BackupDocument, _: argparse.Namespace) -> None:
    print_lines(document.sentences)
    complain(f"left out: {message}" for _, message in document.summary.left_out)
