"""What rooms take from each other: public names, each with a docstring, from the module that defines them."""

from __future__ import annotations

import ast
import functools
import importlib
import inspect

import pytest

from tests.test_layers import PACKAGE, SOURCES, import_statements, room_of


@functools.cache  # when it is asked for: not while tests are collected, which each worker does
def taken() -> set[tuple[str, str]]:
    """Every (module, name) that a room takes from another."""
    names = set()
    for module, path in SOURCES.items():
        for node, _ in import_statements(path):
            if not isinstance(node, ast.ImportFrom) or not str(node.module).startswith("profiler."):
                continue
            source = str(node.module).removeprefix("profiler.")
            if room_of(source) != room_of(module):
                names |= {(source, a.name) for a in node.names if f"{source}.{a.name}" not in SOURCES}
    return names


NOBODYS = {"__init__", "__main__", "app"}  # from which no room takes anything
ROOMS = sorted({room_of(module) for module in SOURCES} - NOBODYS)


def test_what_a_room_takes_from_another_is_public() -> None:
    assert len(taken()) > 500
    assert not [(module, name) for module, name in taken() if "._" in f".{module}.{name}"]


@pytest.mark.parametrize("room", ROOMS)
def test_what_others_take_says_what_it_is_and_is_taken_where_it_is_defined(room: str) -> None:
    for module, name in sorted(taken()):
        if room_of(module) != room:
            continue
        value = getattr(importlib.import_module(f"profiler.{module}"), name)
        if (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__ != "typing":
            assert value.__module__ == f"profiler.{module}", f"{name} is defined in {value.__module__}"
            words = (value.__doc__ or "").strip()
            assert words, f"{module}.{name} has no docstring"
            assert not words.startswith(f"{name}("), f"{name} has the docstring that dataclass makes"


def test_a_room_is_its_modules_and_its_init_says_only_what_it_is_for() -> None:
    for path in PACKAGE.glob("*/__init__.py"):
        body = ast.parse(path.read_text("utf-8")).body
        assert ast.get_docstring(ast.Module(body, [])), path
        if path.parent.name not in ("cli", "catalog"):  # the command line; what problems elsewhere take
            assert len(body) == 1, f"{path} holds more than its docstring"
