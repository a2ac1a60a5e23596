"""A command is a module of its own, and the list of these modules is complete."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from profiler import cli


def test_every_module_that_adds_a_command_is_listed_and_no_other() -> None:
    modules = Path(cli.__file__).parent.glob("*.py")
    adding = {path.stem for path in modules if re.search(r"^def add\(", path.read_text("utf-8"), re.M)}
    assert sorted(cli.COMMAND_MODULES) == sorted(adding)


def test_the_module_of_a_command_is_known_before_any_is_imported() -> None:
    """A command builds the parser of its own module: one that is not named here would build all."""

    def added(module: str) -> set[str]:
        actions = cli.parser([module])._actions
        commands = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
        return set(commands.choices)

    named = {module: set(cli.SEVERAL_COMMANDS.get(module, (module,))) for module in cli.COMMAND_MODULES}
    assert named == {module: added(module) for module in cli.COMMAND_MODULES}
    for module, commands in named.items():
        assert {tuple(cli._modules_of([command])) for command in commands} == {(module,)}
    for words in ([], ["--help"], ["data"]):
        assert cli._modules_of(words) == cli.COMMAND_MODULES
