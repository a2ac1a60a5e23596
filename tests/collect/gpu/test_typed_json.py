"""JSON as typed values: what fits is taken as it is, what does not names its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NotRequired, TypedDict

import pytest

from profiler.collect.gpu.typed_json import BadJson, parse


@dataclass(frozen=True)
class Inner:
    name: str
    sizes: Mapping[str, Any]


@dataclass(frozen=True)
class Request:
    inner: Inner
    numbers: tuple[float, ...] = ()
    kind: Literal["a", "b"] = "a"
    limit: float | None = None


class Result(TypedDict):
    status: str
    errors: NotRequired[list[float | None]]
    by_name: NotRequired[dict[str, Result]]


INNER = {"name": "n", "sizes": {"heads": 8, "causal": True}}


def test_a_request_becomes_a_dataclass_with_its_defaults() -> None:
    assert parse(Request, {"inner": INNER, "numbers": [1, 2.5]}) == Request(
        Inner("n", {"heads": 8, "causal": True}), (1, 2.5)
    )


def test_a_result_is_kept_as_it_is_with_keys_that_nobody_declared() -> None:
    content = {
        "status": "done",
        "errors": [1, None],
        "by_name": {"x": {"status": "wrong"}},
        "newer": {"a": 1},
    }
    assert parse(Result, content) == content


@pytest.mark.parametrize(
    ("kind", "content", "words"),
    [
        (Request, {}, "it has no 'inner'"),
        (Request, {"inner": INNER, "colour": 1}, "it has 'colour', which is no field of it"),
        (Request, {"inner": {"name": 7, "sizes": {}}}, "it.inner.name is 7 instead of a str"),
        (Request, {"inner": INNER, "numbers": [1, "x"]}, r"it.numbers\[1\] is 'x' instead of a float"),
        (Request, {"inner": INNER, "numbers": [True]}, r"it.numbers\[0\] is True instead of a float"),
        (Request, {"inner": INNER, "kind": "c"}, "it.kind is 'c', which is none of a, b"),
        (Request, {"inner": INNER, "limit": "8m"}, "it.limit is '8m' instead of a float"),
        (Result, {}, "it has no 'status'"),
        (Result, [], r"it is \[\] instead of an object"),
        (Result, {"status": None}, "it.status is None instead of a str"),
        (Result, {"status": "done", "errors": 1}, "it.errors is 1 instead of an array"),
        (Result, {"status": "done", "by_name": {"x": {}}}, "it.by_name.x has no 'status'"),
    ],
)
def test_what_does_not_fit_names_its_place(kind: Any, content: object, words: str) -> None:
    with pytest.raises(BadJson, match=f"^{words}"):
        parse(kind, content)
