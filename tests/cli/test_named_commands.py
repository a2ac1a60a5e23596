"""Every command that a message, a document or a script names is one that the program has, with its flags."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.cli import GROUPS
from profiler.cli.old_names import OLD_NAMES
from tests.command_lines import commands, flags

ROOT = Path(__file__).resolve().parents[2]
WRITTEN = [
    *ROOT.glob("*.md"),
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("docs/*.yml"),
    *(ROOT / name for name in ("Makefile", "action.yml", "metrics.txt", "kernels/catalog.toml")),
]
# A command as a message shows it: in back quotes, in $(…), after python -m, or as a whole text. The names of
# commands and flags are in small letters, what a user puts in their place is not.
_CALL = re.compile(r"(?:^|`|\$\(|-m |bin/)profiler\"? ([a-z][^`)]*)")
_WORDS = re.compile(r"^[a-z-]+$")


def texts_of(path: Path) -> Iterator[str]:
    """The texts of a module, what a value is put into standing as {}; lists of words as one text."""
    source = path.read_text("utf-8")
    for node in ast.walk(ast.parse(source)) if re.search(r"profiler[\"' ]", source) else ():
        if isinstance(node, ast.JoinedStr):
            yield "".join(part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.List | ast.Tuple) and node.elts and isinstance(node.elts[0], ast.Constant):
            words = [part.value if isinstance(part, ast.Constant) else "{}" for part in node.elts]
            if words[0] == "profiler":
                yield " ".join(map(str, words))


def calls_in(text: str) -> list[str]:
    """What stands after `profiler` where a text calls it, without what follows the command in a sentence."""
    calls = [call for line in text.splitlines() for call in _CALL.findall(line)]
    return [re.split(r"[;|&]|, |: | \(| #", call)[0].strip() for call in calls]


def mistake(call: str, known: dict[str, set[str]]) -> str | None:
    """What is wrong with a call: its name, or a flag that the command does not have."""
    words = call.split()
    name = " ".join(words[: 2 if words[0] in GROUPS and len(words) > 1 and _WORDS.match(words[1]) else 1])
    if name in GROUPS:
        return None  # a group as a whole
    if name not in known:
        return f"{call}: no command {name}"
    wrong = [flag for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", call) if flag not in known[name]]
    return f"{call}: {name} has no {', '.join(wrong)}" if wrong else None


@pytest.fixture(scope="module")
def known() -> dict[str, set[str]]:
    return {name: flags(command) for name, command in commands().items()}


def test_a_message_names_commands_of_today(known: dict[str, set[str]]) -> None:
    modules = [*sorted((ROOT / "profiler").rglob("*.py")), ROOT / "app.py"]
    calls = {(path.name, call) for path in modules for text in texts_of(path) for call in calls_in(text)}
    assert len(calls) > 100
    assert sorted(f"{name}: {wrong}" for name, call in calls if (wrong := mistake(call, known))) == []


def test_a_document_names_commands_of_today(known: dict[str, set[str]]) -> None:
    calls = {(path.name, call) for path in WRITTEN for call in calls_in(path.read_text("utf-8"))}
    assert len(calls) > 100
    assert sorted(f"{name}: {wrong}" for name, call in calls if (wrong := mistake(call, known))) == []


def test_a_name_of_before_is_found(known: dict[str, set[str]]) -> None:
    for name in OLD_NAMES:
        (call,) = calls_in(f"nothing is there: `profiler {name} X` lists what is")
        assert mistake(call, known)
    assert mistake("collect v1 --nosuch", known)
    assert mistake("list runs --family f", known) is None
