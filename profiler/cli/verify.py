"""`profiler verify`: whether the bundles, the decisions and the index are what they should be."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.cli.output import add_json, print_document, progress_bar

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands) -> None:
    """Add `verify`."""
    command = commands.add_parser(
        "verify",
        help="check bundles against their hashes, and the index against the bundles",
        description="Check the sha256 of every file of every bundle, read every decision, and compare the "
        "index with a new one made from them. One line per finding; exit code 2 if there are any.",
    )
    command.add_argument("--quick", action="store_true", help="skip the index")
    add_json(command)
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Verify, and print what was found."""
    from profiler.documents.verify import verify_data

    with progress_bar() as progress:
        document = verify_data(quick=arguments.quick, progress=progress)
    return print_document(document, arguments)
