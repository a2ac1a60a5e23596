"""The opcode mix: shares of all instructions by class, gaps where nothing was counted."""

import pytest

from profiler.evidence.values import Value
from profiler.history.opcode_shares import opcode_mix
from tests.ui.views.test_trend_panels import point


def test_shares_are_by_class_and_a_run_without_counts_is_a_gap() -> None:
    points = [point(f"v{number}", Value(1.0, "ns"))._replace(result_id=number) for number in (1, 2)]
    counted, gap = opcode_mix(points, {1: {"HMMA.16816.F32": 1.0, "FFMA": 3.0}, 2: {}})
    assert counted.shares["tensor core"] == pytest.approx(25.0)
    assert counted.shares["float math"] == pytest.approx(75.0)
    assert sum(counted.shares.values()) == pytest.approx(100.0)
    assert (gap.gap, dict(gap.shares)) == ("not collected", {})


def test_a_version_with_wrong_results_has_no_mix() -> None:
    wrong = point("v1", Value(1.0, "ns"), "wrong: a race")._replace(result_id=1, wrong=True)
    (mix,) = opcode_mix([wrong], {1: {"FFMA": 1.0}})
    assert (mix.gap, dict(mix.shares)) == ("wrong: a race", {})


def test_it_is_of_the_version_that_is_isolated() -> None:
    points = [point(name, Value(1.0, "ns"))._replace(result_id=1) for name in ("v1", "v2")]
    assert [mix.point.version for mix in opcode_mix(points, {1: {"FFMA": 1.0}}, "v2")] == ["v2"]
