"""Values of a few classes as JSON: what is written is what is read, and nothing else is made."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.evidence.values import Derivation, Evidence, State, Value
from profiler.statistics.decision import Decision, Interval
from profiler.statistics.verdict import Verdict
from profiler.store.object_json import ObjectJson

WRITTEN = ObjectJson((Value, State, Evidence, Derivation, Decision, Interval, Verdict))
VALUES: list[Any] = [
    None,
    True,
    0,
    -1.5,
    "text",
    (),
    (1, (2, ("a", None))),
    {},
    {("a", 1): None, "b": {"c": (1,)}},
    datetime(2026, 1, 2, tzinfo=UTC),
    float("inf"),
    Evidence.STATIC,
    State.FAILED,
    Value(1, "ns"),
    Value(None, "%", None, State.FAILED, Derivation("a + b")),
    Decision(Verdict.WORSE, "why", "rule", 0.1, Interval(0.0, 0.2), warnings=("one", "two")),
]


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_what_is_written_is_read_as_it_was(value: Any) -> None:
    read = WRITTEN.load(WRITTEN.dump(value))
    assert read == value
    assert type(read) is type(value)


def test_several_values_keep_their_classes() -> None:
    read = WRITTEN.load(WRITTEN.dump(tuple(VALUES)))
    assert read == tuple(VALUES)
    assert [type(one) for one in read] == [type(one) for one in VALUES]


def test_a_number_of_numpy_is_a_float() -> None:
    read = WRITTEN.load(WRITTEN.dump((np.float64(0.1),)))
    assert (read, type(read[0])) == ((0.1,), float)


def test_no_other_class_is_written_or_made() -> None:
    with pytest.raises(TypeError, match="Path"):
        WRITTEN.dump(Path())
    with pytest.raises(TypeError, match="list"):
        WRITTEN.dump([1])
    with pytest.raises(LookupError):
        ObjectJson(()).load(WRITTEN.dump(Value(1, "ns")))
    with pytest.raises(LookupError):
        WRITTEN.load(json.dumps(["Path", "/"]))
    with pytest.raises(ValueError, match="nonsense"):
        WRITTEN.load(json.dumps(["Verdict", "nonsense"]))
