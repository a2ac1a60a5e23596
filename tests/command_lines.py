"""The commands of the program, as its parser has them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping

from profiler.cli import parser


def choices(command: argparse.ArgumentParser) -> Mapping[str, argparse.ArgumentParser]:
    """The commands below one, by name; none for a command that has none."""
    for action in command._actions:
        if isinstance(action, argparse._SubParsersAction):
            found: Mapping[str, argparse.ArgumentParser] = action.choices
            return found
    return {}


def commands() -> dict[str, argparse.ArgumentParser]:
    """Every command by its whole name: compare, list runs, decide baseline."""
    found: dict[str, argparse.ArgumentParser] = {}
    for name, command in choices(parser()).items():
        inner = {} if name == "search" else choices(command)
        found |= {f"{name} {what}": one for what, one in inner.items()} if inner else {name: command}
    return found


def flags(command: argparse.ArgumentParser) -> set[str]:
    """The flags of a command, and of its actions where it has some."""
    own = set(command._option_string_actions)
    return own.union(*(flags(inner) for inner in choices(command).values()))
