"""The `profiler` command: which subcommands there are, and what a user's mistake looks like."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Sequence

from profiler import __version__
from profiler.errors import ProfilerError

EXIT_CODES = (
    "exit codes: 0 pass · 1 regression · 2 wrong arguments, or input that cannot be read or used · "
    "3 could not measure or judge"
)

# Each module has add(commands): it adds its subparsers and sets `handler`, a function of the parsed arguments
# that returns the exit code. None of them may import anything heavy before its handler runs.
COMMAND_MODULES = (
    "data",
    "ask",
    "compare",
    "metrics",
    "build",
    "static",
    "check",
    "dissect",
    "doctor",
    "collect",
    "dashboard",
)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = argparse.ArgumentParser(
        prog="profiler",
        usage="profiler [-h] [--version] COMMAND …",
        description="Is this kernel version right, is it faster, why, and did anything get worse.",
        epilog=EXIT_CODES,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=16),
    )
    top.add_argument("--version", action="version", version=f"profiler {__version__}")
    commands = top.add_subparsers(
        title="commands", metavar="COMMAND ...", required=True, prog="profiler", dest="command"
    )
    for name in COMMAND_MODULES:
        importlib.import_module(f"profiler.cli.{name}").add(commands)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a user's mistake is one line on stderr and its exit code."""
    try:
        arguments = parser().parse_args(argv)
        code = int(arguments.handler(arguments))
        sys.stdout.flush()
        return code
    except ProfilerError as error:
        print(f"profiler: {' '.join(str(error).split())}", file=sys.stderr)
        return int(error.exit_code)
    except BrokenPipeError:  # `profiler … | head`: not an error, and no second traceback at shutdown
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130
