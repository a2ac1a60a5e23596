"""What a tool for language models is: its arguments, their JSON schema, and what of a call is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from profiler.agents.untrusted import printable
from profiler.errors import ProfilerError

MOST_ARGUMENTS = 20
_ECHOED = 60  # characters of a refused text that the refusal repeats
_NEVER_IN_NAMES = frozenset('<>`"|;$\\')


class RefusedArgument(ProfilerError):
    """An argument that is not taken; nothing was read for it."""


@dataclass(frozen=True)
class Argument:
    """One argument of a tool: a text, a whole number, a switch, or a list of texts."""

    name: str
    description: str
    kind: type = str  # str, int, bool or list
    required: bool = False
    choices: tuple[str, ...] = ()
    default: Any = None
    least: int = 0  # of a number
    most: int = 300  # characters of a text, or the largest number
    most_items: int = 8  # of a list
    is_name: bool = False  # a version, a run or a path: held against the folders that may be read

    def schema(self) -> dict[str, Any]:
        """The argument as JSON Schema."""
        text: dict[str, Any] = {"type": "string", "maxLength": self.most}
        if self.choices:
            text = {"type": "string", "enum": list(self.choices)}
        by_kind: dict[type, dict[str, Any]] = {
            str: text,
            int: {"type": "integer", "minimum": self.least, "maximum": self.most},
            bool: {"type": "boolean"},
            list: {"type": "array", "items": text, "maxItems": self.most_items},
        }
        schema = {**by_kind[self.kind], "description": self.description}
        return schema if self.default is None else {**schema, "default": self.default}

    def check(self, value: object) -> Any:
        """The value where it may be taken. Raises Refused."""
        if self.kind is list:
            if not isinstance(value, list) or not value:
                raise RefusedArgument(
                    f"argument {self.name}: a list of texts is needed, not {_kind_words(value)}"
                )
            if len(value) > self.most_items:
                raise RefusedArgument(
                    f"argument {self.name}: {len(value):,} items, at most {self.most_items}"
                )
            return [self._check_text(item) for item in value]
        if self.kind is str:
            return self._check_text(value)
        if type(value) is not self.kind:  # True is no number here
            needed = "a whole number" if self.kind is int else "true or false"
            raise RefusedArgument(f"argument {self.name}: {needed} is needed, not {_kind_words(value)}")
        if isinstance(value, int) and self.kind is int and not self.least <= value <= self.most:
            raise RefusedArgument(
                f"argument {self.name}: a number from {self.least:,} to {self.most:,} is needed"
            )
        return value

    def _check_text(self, value: object) -> str:
        if not isinstance(value, str):
            raise RefusedArgument(f"argument {self.name}: a text is needed, not {_kind_words(value)}")
        if len(value) > self.most:
            raise RefusedArgument(f"argument {self.name}: {len(value):,} characters, at most {self.most}")
        if not value.isprintable():
            code = next(ord(c) for c in value if not c.isprintable())
            raise RefusedArgument(f"argument {self.name}: holds U+{code:04X}, which cannot be printed")
        if self.choices and value not in self.choices:
            raise RefusedArgument(
                f"argument {self.name}: there are {', '.join(self.choices)}, not {echo(value)}"
            )
        if self.is_name:
            if not value.strip():
                raise RefusedArgument(f"argument {self.name}: a name is needed: find lists those there are")
            if strange := next((c for c in value if c in _NEVER_IN_NAMES), ""):
                raise RefusedArgument(f"argument {self.name}: holds {strange}, which no name here has")
        return value


@dataclass(frozen=True)
class Tool:
    """A tool: its name, what it says of itself, its arguments."""

    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    runs_code: bool = False  # whether it compiles or runs what the caller brings

    def schema(self) -> dict[str, Any]:
        """All arguments as JSON Schema."""
        return {
            "type": "object",
            "properties": {argument.name: argument.schema() for argument in self.arguments},
            "required": [argument.name for argument in self.arguments if argument.required],
            "additionalProperties": False,
        }

    def check(self, given: object) -> dict[str, Any]:
        """Every argument's value, defaults where none was given. Raises Refused, in a line."""
        if not isinstance(given, Mapping):
            raise RefusedArgument(f"{self.name} takes an object of arguments, not {_kind_words(given)}")
        if len(given) > MOST_ARGUMENTS:
            raise RefusedArgument(f"{self.name} takes at most {MOST_ARGUMENTS} arguments, not {len(given):,}")
        known = {argument.name: argument for argument in self.arguments}
        for name in given:
            if name not in known:
                raise RefusedArgument(f"{self.name} has no argument {echo(name)}: it has {', '.join(known)}")
        checked = {}
        for name, argument in known.items():
            if given.get(name) is not None:
                checked[name] = argument.check(given[name])
            elif argument.required:
                raise RefusedArgument(f"{self.name} needs the argument {name}: {argument.description}")
            else:
                checked[name] = argument.default
        return checked


def echo(value: object) -> str:
    """A refused text in quotes, short and printable."""
    text = printable(str(value))
    return f'"{text[:_ECHOED]}…"' if len(text) > _ECHOED else f'"{text}"'


def _kind_words(value: object) -> str:
    kinds = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return kinds.get(type(value), "a number")
