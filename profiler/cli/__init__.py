"""The `profiler` command: which subcommands there are, and what a user's mistake looks like.

To add a flag: an argument of the function in `profiler/documents/` that answers, so that the library has it
too (and of the function of that name in `profiler/__init__.py`), then `add_argument` in the command's
module here: `ask` passes every option on by its name. What it means is decided in `documents` or further
left, never here; `tests/documents/test_asking.py` fails for an option that no answer takes.
A flag that several commands share is in `output`. A new command is a module in `COMMAND_MODULES`.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence

from profiler import __version__
from profiler.bundles.scratch import sweep
from profiler.cli.output import escape_controls, printable, standard_output
from profiler.errors import Exit, ProfilerError

_COLLECTIONS = (50_000, 20, 20)  # new objects, then collections, after which Python looks for garbage
EXIT_CODES = (
    "exit codes: 0 pass · 1 regression · 2 wrong arguments, or input that cannot be read or used · "
    "3 could not measure or judge"
)

# Each module has add(commands): it adds its subparsers and sets `handler`, a function of the parsed arguments
# that returns the exit code. None of them may import anything heavy before its handler runs.
COMMAND_MODULES = (
    "data",
    "listing",
    "show",
    "trend",
    "history",
    "regressions",
    "compare",
    "report",
    "gate",
    "explain",
    "roofline",
    "sass",
    "insights",
    "metrics",
    "build",
    "static",
    "check",
    "predict",
    "judge",
    "search",
    "mcp",
    "dissect",
    "doctor",
    "collect",
    "noise",
    "dashboard",
    "baseline",
    "acknowledge",
    "pair",
    "note",
    "backup",
    "restore",
    "verify",
    "delete",
    "prune",
)


# What the modules add that have several commands; every other one adds the one of its name.
SEVERAL_COMMANDS = {
    "data": ("import", "index", "relabel", "forget", "export"),
    "listing": ("runs", "versions", "workloads"),
}


def parser(modules: Sequence[str] = COMMAND_MODULES) -> argparse.ArgumentParser:
    """The command line: the whole one, or the commands of some modules."""
    top = argparse.ArgumentParser(
        prog="profiler",
        usage="profiler [-h] [--version] COMMAND …",
        description="Is this kernel version correct, is it faster, why, and did anything get worse?",
        epilog=EXIT_CODES,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=16),
    )
    top.add_argument("--version", action="version", version=f"profiler {__version__}")
    commands = top.add_subparsers(
        title="commands", metavar="COMMAND ...", required=True, prog="profiler", dest="command"
    )
    for name in modules:
        importlib.import_module(f"profiler.cli.{name}").add(commands)
    return top


def _modules_of(words: Sequence[str]) -> Sequence[str]:
    """The module of the command that is named; all where none is.

    Building the other commands' parsers takes longer than many a command does.
    """
    command = words[0] if words else ""
    for module in COMMAND_MODULES:
        if command in SEVERAL_COMMANDS.get(module, (module,)):
            return (module,)
    return COMMAND_MODULES


def _look_for_garbage_seldom() -> None:
    """Have Python look through all objects less often, and not at all while the process ends.

    What a command loads and makes is kept until it ends: looking for garbage in it, at the end several times,
    took a twelfth of the time of an import.
    """
    gc.set_threshold(*_COLLECTIONS)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; a user's mistake is one line on stderr and its exit code.

    A defect keeps its traceback, and its exit code is never 1: that one says regression.
    """
    # Products of small matrices: threads of numpy's BLAS, which wait busily, would take a third of all time.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    _look_for_garbage_seldom()
    try:
        with standard_output():
            words = sys.argv[1:] if argv is None else argv
            arguments = parser(_modules_of(words)).parse_args(words)
            sweep()
            return int(arguments.handler(arguments))
    except ProfilerError as error:
        return _failed(str(error), error.exit_code)
    except OSError as error:
        what = error.strerror or str(error)
        return _failed(what if error.filename is None else f"{error.filename}: {what}")
    except KeyboardInterrupt:
        return 130
    except Exception as error:
        code = _failed(f"a defect in profiler: {type(error).__name__}: {error}")
        with contextlib.suppress(OSError):
            print(escape_controls(traceback.format_exc()), end="", file=sys.stderr)
        return code


def _failed(message: str, code: Exit = Exit.UNUSABLE_INPUT) -> int:
    with contextlib.suppress(OSError):  # the reader of stderr may be gone as well
        print(f"profiler: {printable(message)}", file=sys.stderr)
    return int(code)
