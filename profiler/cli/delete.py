"""`profiler delete`: runs removed for good."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from profiler.errors import Exit, ProfilerError

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands) -> None:
    """Add `delete`."""
    command = commands.add_parser(
        "delete",
        help="remove runs for good, with their reports",
        description="Remove runs for good: their bundles with all reports, and what the caches hold of them. "
        "A decision keeps who did it, when and why. How they were labelled counts no more, and the same "
        "report can be imported again. `profiler forget` only hides a run.",
    )
    command.add_argument("runs", nargs="+", metavar="RUN", help="run ids: `profiler runs` lists them")
    command.add_argument("--why", required=True, metavar="TEXT", help="the reason, kept with the decision")
    command.add_argument(
        "--yes", action="store_true", help="do it; without this it prints what it would remove"
    )
    command.set_defaults(handler=run)


def run(arguments: argparse.Namespace) -> int:
    """Say what would be removed, or remove it."""
    from profiler.store.deletion import delete_runs, plan_deletion

    if not arguments.yes:
        for deletion in plan_deletion(arguments.runs):
            print(f"{deletion.run_id}: {deletion.files} files, {deletion.size_bytes:,} bytes")
        raise ProfilerError(
            "nothing was deleted: `--yes` removes these for good, `profiler forget` hides them"
        )
    for deletion in delete_runs(arguments.runs, why=arguments.why):
        print(f"{deletion.run_id} was deleted ({deletion.size_bytes:,} bytes)")
    return Exit.PASS
