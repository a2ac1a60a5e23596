"""Whole numbers that a manifest computes from the sizes of a problem: `ceil_div(len_q, 64)`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from profiler.errors import UnknownName

_LONGEST = 200  # characters
_LARGEST = 1 << 62
_FUNCTIONS: Mapping[str, Callable[..., int]] = {
    "min": min,
    "max": max,
    "ceil_div": lambda a, b: -(-a // b),
}
_OPERATORS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.FloorDiv: lambda a, b: a // b,
    ast.Mod: lambda a, b: a % b,
}


def evaluate(text: str | int, sizes: Mapping[str, int]) -> int:
    """The value of an expression: integers, names of `sizes`, + - * // %, min, max, ceil_div, parentheses.

    It is taken apart as a tree and never run. Raises UnknownName for anything else, for a division by zero
    and for numbers from 2^62 on.
    """
    if isinstance(text, bool) or not isinstance(text, (int, str)):
        raise UnknownName(f"{text!r} is no expression: write a whole number or a text")
    if isinstance(text, int):
        return _checked(text, str(text))
    if len(text) > _LONGEST:
        raise UnknownName(f"an expression has at most {_LONGEST} characters: {text[:40]!r}…")
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise UnknownName(f"{text!r} is no expression of whole numbers") from None
    return _value(tree.body, text, sizes)


def _value(node: ast.expr, text: str, sizes: Mapping[str, int]) -> int:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _checked(node.value, text)
    if isinstance(node, ast.Name):
        if node.id not in sizes:
            raise UnknownName(f"{text!r}: no size {node.id!r}; there are {', '.join(sizes)}")
        return sizes[node.id]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_value(node.operand, text, sizes)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left, text, sizes), _value(node.right, text, sizes)
        return _applied(_OPERATORS[type(node.op)], (left, right), text)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS:
        if node.keywords:
            raise UnknownName(f"{text!r}: numbers are passed in order, without names")
        values = tuple(_value(argument, text, sizes) for argument in node.args)
        if len(values) != 2:
            raise UnknownName(f"{text!r}: {node.func.id} takes two numbers")
        return _applied(_FUNCTIONS[node.func.id], values, text)
    raise UnknownName(f"{text!r}: only whole numbers, sizes, + - * // %, min, max and ceil_div are allowed")


def _applied(function: Callable[..., int], values: tuple[int, ...], text: str) -> int:
    try:
        return _checked(function(*values), text)
    except ZeroDivisionError:
        raise UnknownName(f"{text!r} divides by zero") from None


def _checked(value: int, text: str) -> int:
    if abs(value) >= _LARGEST:
        raise UnknownName(f"{text[:40]!r} is too large")
    return value
