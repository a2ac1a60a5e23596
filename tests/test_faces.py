"""What a room shows: the names its `__init__` exports lazily, and that others take them from there."""

from __future__ import annotations

import ast
import importlib
import inspect
from pathlib import Path

import pytest

from tests.test_layers import PACKAGE, SOURCES, import_statements, room_of


def faces() -> dict[str, Path]:
    """The rooms that export names lazily, by name."""
    rooms = {path.parent.name: path for path in PACKAGE.glob("*/__init__.py")}
    return {room: path for room, path in sorted(rooms.items()) if "lazy(" in path.read_text("utf-8")}


FACES = faces()


def declared(path: Path) -> dict[str, str]:
    """The names that a face imports for type checkers only, each with its module."""
    tree = ast.parse(path.read_text("utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    names = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for alias in node.names:
            assert alias.asname == alias.name, f"{path}: write `{alias.name} as {alias.name}`: it is exported"
            names[alias.name] = str(node.module)
    return names


@pytest.mark.parametrize("room", FACES)
def test_what_a_face_declares_is_what_it_exports(room: str) -> None:
    face = importlib.import_module(f"profiler.{room}")
    names = declared(FACES[room])
    assert sorted(face.__all__) == sorted(names)
    for name, module in names.items():
        assert getattr(face, name) is getattr(importlib.import_module(module), name)


@pytest.mark.parametrize("room", FACES)
def test_no_exported_name_is_the_name_of_a_module(room: str) -> None:
    """Importing the module would put it in the name's place."""
    modules = {path.stem for path in (PACKAGE / room).iterdir()}
    assert not modules & set(declared(FACES[room]))


@pytest.mark.parametrize("room", FACES)
def test_a_public_class_says_what_it_is(room: str) -> None:
    face = importlib.import_module(f"profiler.{room}")
    for name in face.__all__:
        value = getattr(face, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            words = (value.__doc__ or "").strip()
            assert words, f"{name} has no docstring"
            assert not words.startswith(f"{name}("), f"{name} has the docstring that dataclass makes"


def test_rooms_take_from_each_other_what_their_faces_export() -> None:
    exported = {room: declared(path) for room, path in FACES.items()}
    wrong = []
    for module, path in SOURCES.items():
        for node, _ in import_statements(path):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("profiler."):
                continue
            parts = str(node.module).split(".")
            if len(parts) > 2 and parts[1] in exported and room_of(module) != parts[1]:
                wrong += [
                    f"{module} line {node.lineno}: from profiler.{parts[1]} import {alias.name}"
                    for alias in node.names
                    if exported[parts[1]].get(alias.name) == node.module
                ]
    assert not wrong


def test_an_unknown_name_is_an_attribute_error() -> None:
    face = importlib.import_module("profiler.store")
    with pytest.raises(AttributeError, match=r"'profiler\.store' has no attribute 'nothing'"):
        face.nothing  # noqa: B018
