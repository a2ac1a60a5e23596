"""The commands of declared answers: each follows from the signature and the docstring of its function."""

from __future__ import annotations

import argparse
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from profiler.cli.output import add_json, ask, note_forgotten, positive, print_document, progress_bar
from profiler.documents.declared import ANSWERS, AnswerOption, declaration, load_answer

if TYPE_CHECKING:
    from profiler.cli.output import Commands


def add(commands: Commands, name: str) -> None:
    """Add the command of one answer, by its whole name."""
    declared, answer = ANSWERS[name], declaration(name)
    words = answer.summary.rstrip(".")
    command = commands.add_parser(
        name.split()[-1],
        help=f"{words[:1].lower()}{words[1:]}",
        description=f"{answer.summary}\n\n{answer.body}".rstrip(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    for parameter in answer.parameters:
        _add_parameter(command, parameter)
    if declared.all_shows:
        command.add_argument("--all", action="store_true", help=declared.all_shows)
    shape = command.add_mutually_exclusive_group()
    add_json(shape)
    shape.add_argument("--markdown", action="store_true", help="print Markdown")
    command.set_defaults(handler=run, answer=name)


def run(arguments: argparse.Namespace) -> int:
    """Ask, print, and keep what took long to find."""
    answer, declared = load_answer(arguments.answer), declaration(arguments.answer)
    with progress_bar() if "progress" in declared.sources else nullcontext() as progress:
        document = ask(answer, arguments, progress=progress)
    subjects = [one.name for one in declared.parameters if one.kind == "subject"]
    note_forgotten(arguments, *(getattr(arguments, name) for name in subjects))
    code = print_document(document, arguments)
    document.keep()
    return code


def _add_parameter(command: argparse.ArgumentParser, parameter: AnswerOption) -> None:
    metavar = "PATTERN" if parameter.name == "kernel" else parameter.name.upper().replace("_", "-")
    options: dict[str, Any] = {"help": parameter.help.replace("%", "%%")}
    if parameter.kind == "switch":
        options["action"] = "store_true"
    elif parameter.choices:
        options["choices"] = parameter.choices
    else:
        options |= {"metavar": "N", "type": positive} if parameter.kind == "number" else {"metavar": metavar}
    if parameter.kind == "texts":
        options |= {"nargs": "+"} if parameter.required else {"action": "append", "default": []}
    flag = parameter.name if parameter.required else f"--{parameter.name.replace('_', '-')}"
    command.add_argument(flag, **options)
