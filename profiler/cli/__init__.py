"""The `profiler` command: which subcommands there are, and what a user's mistake looks like.

To add a flag: an argument of the function in `profiler/documents/` that answers, so that the library has it
too. The command of an answer that is declared (`profiler.documents.declared`) then has it already; for others
the function of that name in `profiler/__init__.py` takes it, and `add_argument` in the command's module here:
`ask` passes every option on by its name. What it means is decided in `documents` or further left, never here;
`tests/documents/test_asking.py` fails for an option that no answer takes. A flag that several commands share
is in `output`. A new command is a declared answer, or a module in `COMMANDS` or `GROUPS`.
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
from typing import TYPE_CHECKING

from profiler.bundles.scratch import sweep
from profiler.cli.old_names import renamed
from profiler.cli.output import escape_controls, printable, standard_output
from profiler.documents.declared import ANSWERS
from profiler.errors import Exit, ProfilerError
from profiler.package import VERSION

if TYPE_CHECKING:
    from profiler.cli.output import Commands

_COLLECTIONS = (50_000, 20, 20)  # new objects, then collections, after which Python looks for garbage
EXIT_CODES = (
    "exit codes: 0 pass · 1 regression · 2 wrong arguments, or input that cannot be read or used · "
    "3 could not judge"
)

# The commands in the order of --help, each with its module. A module has add(commands): it adds its
# subparsers and sets `handler`, a function of the parsed arguments that returns the exit code. None of them
# may import anything heavy before its handler runs.
DECLARED = "declared"  # the module of all commands that follow from a declaration
COMMANDS = {
    "import": "import_reports",
    "show": "show",
    "compare": "compare",
    "explain": "explain",
    "gate": "gate",
    "report": "report",
    "sass": "sass",
    **{name: DECLARED for name in ANSWERS if " " not in name},
    "check": "check",
    "static": "static",
    "predict": "predict",
    "judge": "judge",
    "search": "search",
    "doctor": "doctor",
    "collect": "collect",
    "list": "",
    "decide": "",
    "data": "",
    "dashboard": "dashboard",
    "mcp": "mcp",
}
# The commands of a group, by its name, and what the group is for.
GROUPS: dict[str, dict[str, str]] = {
    "list": {
        **{name.removeprefix("list "): DECLARED for name in ANSWERS if name.startswith("list ")},
        "metrics": "metrics",
    },
    "decide": {name: name for name in ("baseline", "acknowledge", "pair", "note")},
    "data": {
        **dict.fromkeys(("index", "relabel", "forget", "export"), "data"),
        **{name.removeprefix("data "): DECLARED for name in ANSWERS if name.startswith("data ")},
        **dict.fromkeys(("restore", "delete", "prune"), "upkeep"),
    },
}
_GROUP_HELP = {
    "list": "list runs, versions, workloads, metrics or noise floors",
    "decide": "baselines, known regressions, kernel pairs and notes",
    "data": "the data folder: index, labels, backup, deletion",
}


def parser(named: Sequence[str] = tuple(COMMANDS)) -> argparse.ArgumentParser:
    """The command line: the whole one, or some commands of it."""
    top = argparse.ArgumentParser(
        prog="profiler",
        usage="profiler [-h] [--version] COMMAND …",
        description="Is this kernel version correct, is it faster, why, and did anything get worse?",
        epilog=EXIT_CODES,
        formatter_class=lambda prog: argparse.HelpFormatter(prog, max_help_position=16),
    )
    top.add_argument("--version", action="version", version=f"profiler {VERSION}")
    commands = top.add_subparsers(
        title="commands", metavar="COMMAND ...", required=True, prog="profiler", dest="command"
    )
    for name in named:
        if name not in GROUPS:
            _add(COMMANDS[name], name, commands)
            continue
        words = _GROUP_HELP[name]
        group = commands.add_parser(name, help=words, description=f"{words[0].upper()}{words[1:]}.")
        actions = group.add_subparsers(title="what", metavar="WHAT ...", required=True, dest="what")
        modules = set()
        for what, module in GROUPS[name].items():
            if module == DECLARED or module not in modules:
                _add(module, f"{name} {what}", actions)
            modules.add(module)
    return top


def _add(module: str, name: str, commands: Commands) -> None:
    """Add a command by its whole name, with the others of its module; of what is declared that one alone."""
    add = importlib.import_module(f"profiler.cli.{module}").add
    add(commands, name) if module == DECLARED else add(commands)


def _needed(words: Sequence[str]) -> Sequence[str]:
    """The command that is named; all where none is.

    Building the other commands' parsers takes longer than many a command does.
    """
    return words[:1] if words and words[0] in COMMANDS else tuple(COMMANDS)


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
            words = renamed(sys.argv[1:] if argv is None else argv)
            arguments = parser(_needed(words)).parse_args(words)
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
