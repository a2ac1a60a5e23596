"""Writes values of declared classes as JSON and reads the same values again."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import Any

_PLAIN = (bool, int, float, str, type(None))
_TUPLE, _TIME, _PAIRS = "()", "@", "{}"


class ObjectJson:
    """JSON of tuples, times, mappings, and enums, named tuples and dataclasses of the classes given.

    An object is a list that begins with the name of its class. Reading makes no object of another class, so
    that nothing that somebody wrote into a shared database is executed.
    """

    def __init__(self, classes: Iterable[type[Any]]) -> None:
        self._classes: dict[str, type[Any]] = {one.__name__: one for one in classes}
        self._fields: dict[type[Any], tuple[str, ...]] = {}
        for one in self._classes.values():
            if is_dataclass(one):
                self._fields[one] = tuple(field.name for field in fields(one) if field.init)

    def dump(self, value: object) -> str:
        """The value as JSON. Raises TypeError for one of another class."""
        return json.dumps(self._plain(value), separators=(",", ":"))

    def load(self, content: str) -> Any:
        """The value that `dump` wrote. Raises ValueError, LookupError or TypeError for other content."""
        return self._value(json.loads(content))

    def _plain(self, value: Any) -> Any:
        kind = type(value)
        if kind in _PLAIN:
            return value
        if kind is tuple:
            return [_TUPLE, *map(self._plain, value)]
        if self._classes.get(kind.__name__) is kind:
            if isinstance(value, Enum):
                return [kind.__name__, value.value]
            names = self._fields.get(kind)
            contents = value if names is None else (getattr(value, name) for name in names)
            return [kind.__name__, *map(self._plain, contents)]
        if isinstance(value, datetime):
            return [_TIME, value.isoformat()]
        if isinstance(value, dict):
            return [_PAIRS, *([self._plain(key), self._plain(item)] for key, item in value.items())]
        if isinstance(value, float):  # of numpy
            return float(value)
        raise TypeError(f"{kind.__name__} is none of the classes that are written")

    def _value(self, content: Any) -> Any:
        if not isinstance(content, list):
            return content
        tag, *items = content
        if tag == _PAIRS:
            return {self._value(key): self._value(item) for key, item in items}
        make: Callable[..., Any] = _MAKERS.get(tag) or self._classes[tag]
        return make(*map(self._value, items))


_MAKERS: dict[str, Callable[..., Any]] = {
    _TUPLE: lambda *items: items,
    _TIME: datetime.fromisoformat,
}
