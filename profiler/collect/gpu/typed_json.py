"""JSON read as typed values: what does not fit its type is refused, and the place is named."""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import (
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

T = TypeVar("T")
_SCALARS: dict[Any, tuple[type, ...]] = {str: (str,), bool: (bool,), int: (int,), float: (int, float)}


class BadJson(ValueError):
    """A value that is not of the type that was declared for it."""


def parse(kind: type[T], value: object, where: str = "it") -> T:
    """A JSON value as a frozen dataclass or a TypedDict. Raises BadJson, which names the place below `where`.

    A TypedDict keeps keys that it does not declare, for they may be those of a newer version; a dataclass
    refuses them. A JSON array becomes a tuple where the type says so, else a list.
    """
    return cast(T, _parse(kind, value, where))


def _parse(hint: Any, value: object, where: str) -> Any:
    if hint is Any:
        return value
    if hint in _SCALARS:
        # To Python True is a number, to JSON it is none.
        if not isinstance(value, _SCALARS[hint]) or (isinstance(value, bool) and hint is not bool):
            raise BadJson(f"{where} is {value!r:.60} instead of a {hint.__name__}")
        return value
    if hint is types.NoneType:
        if value is not None:
            raise BadJson(f"{where} is {value!r:.60} instead of null")
        return None
    if is_typeddict(hint):
        return _parse_typed_dict(hint, value, where)
    if is_dataclass(hint):
        return _parse_dataclass(hint, value, where)
    return _parse_generic(hint, value, where)


def _parse_generic(hint: Any, value: object, where: str) -> Any:
    """A union, a literal, an array or an object whose keys are data."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return _parse_union(arguments, value, where)
    if origin is Literal:
        if value not in arguments:
            raise BadJson(f"{where} is {value!r:.60}, which is none of {', '.join(map(str, arguments))}")
        return value
    if origin in (list, tuple):
        items = _parse_array(arguments[0], value, where)
        return tuple(items) if origin is tuple else items
    if origin in (dict, Mapping):
        content = _object(value, where)
        return {key: _parse(arguments[1], item, f"{where}.{key}") for key, item in content.items()}
    raise TypeError(f"{hint} is no type that JSON is read as")


def _parse_array(hint: Any, value: object, where: str) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise BadJson(f"{where} is {value!r:.60} instead of an array")
    if hint in (int, float) and set(map(type, value)) <= set(_SCALARS[hint]):
        return list(value)  # thousands of samples: one look at all of them is enough
    return [_parse(hint, item, f"{where}[{index}]") for index, item in enumerate(value)]


def _parse_union(choices: tuple[Any, ...], value: object, where: str) -> Any:
    problems = []
    for choice in choices:
        try:
            return _parse(choice, value, where)
        except BadJson as problem:
            problems.append(problem)
    raise problems[0]


def _parse_typed_dict(kind: Any, value: object, where: str) -> dict[str, Any]:
    content = dict(_object(value, where))
    for name, (hint, required) in _typed_dict_keys(kind).items():
        if name in content:
            content[name] = _parse(hint, content[name], f"{where}.{name}")
        elif required:
            raise BadJson(f"{where} has no {name!r}")
    return content


def _parse_dataclass(kind: Any, value: object, where: str) -> Any:
    content, hints = _object(value, where), _hints(kind)
    declared = fields(kind)
    if unknown := sorted(set(content) - {field.name for field in declared}):
        raise BadJson(f"{where} has {unknown[0]!r}, which is no field of it")
    for field in declared:
        has_default = field.default is not MISSING or field.default_factory is not MISSING
        if field.name not in content and not has_default:
            raise BadJson(f"{where} has no {field.name!r}")
    return kind(**{name: _parse(hints[name], item, f"{where}.{name}") for name, item in content.items()})


def _object(value: object, where: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise BadJson(f"{where} is {value!r:.60} instead of an object")
    return value


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, include_extras=True)


@cache
def _typed_dict_keys(kind: Any) -> dict[str, tuple[Any, bool]]:
    """The type of each key, and whether it must be there.

    `__required_keys__` cannot be asked: where annotations are kept as texts it does not see NotRequired.
    """
    return {
        name: (get_args(hint)[0], False) if get_origin(hint) is NotRequired else (hint, True)
        for name, hint in _hints(kind).items()
    }
