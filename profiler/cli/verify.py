"""`profiler verify`: whether the bundles, the decisions and the index are what they should be."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_document, print_lines, progress_bar

if TYPE_CHECKING:
    from profiler.cli.output import Commands
    from profiler.documents import VerifyDocument


def add(commands: Commands) -> None:
    """Add `verify`."""
    command = commands.add_parser(
        "verify",
        help="hold bundles against their hashes, and the index against them",
        description="Hold every file of every bundle against its sha256, read every decision, and compare "
        "the index with one made anew from them. One line a finding; exit code 2 where there is any.",
    )
    command.add_argument("--quick", action="store_true", help="not the index")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Verify, and print what was found."""
    from profiler.documents import verify_data

    with progress_bar() as progress:
        document = verify_data(quick=arguments.quick, progress=progress)
    return print_document(document, arguments, _print)


def _print(document: VerifyDocument, _: argparse.Namespace) -> None:
    print_lines(f"{finding.subject}: {finding.message}" for finding in document.verification.findings)
    print_lines(document.sentences)
