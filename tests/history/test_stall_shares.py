"""The stall mix: shares of one whole, gaps where a reason is missing, small reasons as one."""

import pytest

from profiler.evidence.values import NOT_COLLECTED, Value
from profiler.history.stall_shares import stall_mix
from profiler.history.trend import Trend
from tests.ui.views.test_trend_panels import kernel, point


def reason(*numbers: float | None) -> Trend:
    points = [
        point(f"v{index + 1}", NOT_COLLECTED, "not collected")
        if number is None
        else point(f"v{index + 1}", Value(number, "inst"))
        for index, number in enumerate(numbers)
    ]
    return kernel("k", *points, unit="inst")


def test_shares_add_up_to_all() -> None:
    first, second = stall_mix({"wait": [reason(3.0, 1.0)], "barrier": [reason(1.0, 1.0)]}, "k")
    assert first.shares == {"wait": pytest.approx(75.0), "barrier": pytest.approx(25.0)}
    assert second.shares == {"wait": pytest.approx(50.0), "barrier": pytest.approx(50.0)}


def test_a_run_without_one_of_the_reasons_is_a_gap_and_not_a_smaller_whole() -> None:
    first, second = stall_mix({"wait": [reason(3.0, 1.0)], "barrier": [reason(1.0, None)]}, "k")
    assert (second.gap, dict(second.shares)) == ("not collected", {})
    assert first.gap == ""


def test_small_reasons_are_one() -> None:
    by_reason = {f"r{size}": [reason(float(size))] for size in range(1, 9)}
    (mix,) = stall_mix(by_reason, "k")
    assert list(mix.shares) == ["r8", "r7", "r6", "r5", "r4", "other"]
    assert sum(mix.shares.values()) == pytest.approx(100)


def test_only_the_version_asked_for_and_only_its_kernel() -> None:
    by_reason = {"wait": [reason(3.0, 1.0)]}
    assert [mix.point.version for mix in stall_mix(by_reason, "k", "v2")] == ["v2"]
    assert stall_mix(by_reason, "other") == []
