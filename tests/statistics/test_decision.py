"""Changes and shares as they are written, and the change that is too large to be one."""

from __future__ import annotations

import math

import pytest

from profiler.statistics.decision import (
    UNITS_FACTOR,
    Interval,
    change_text,
    share_text,
    units_question,
    verdict_of_change,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0.12, "+12 %"),
        (-0.12, "−12 %"),
        (0.0995, "+10 %"),
        (0.0994, "+9.9 %"),
        (0.00995, "+1.0 %"),
        (0.0099, "+0.99 %"),
        (-0.00004, "±0 %"),
        (0.00006, "+0.01 %"),
        (0.0, "±0 %"),
        (12.5, "+1250 %"),
    ],
)
def test_a_change_has_its_sign_and_two_digits(size: float, text: str) -> None:
    assert change_text(size) == text


def test_a_share_has_no_sign_and_no_digits_that_say_nothing() -> None:
    told = [share_text(size) for size in (0.005, -0.03, 0.12, 0.0999, 0.1, 0.1251, 0.0)]
    assert told == ["0.5 %", "3 %", "12 %", "10 %", "10 %", "13 %", "0 %"]


def test_the_ends_of_a_narrow_interval_are_told_apart() -> None:
    assert str(Interval(-0.01, 0.02)) == "−1.0 % to +2.0 %"
    assert str(Interval(0.0301, 0.0302)) == "+3.01 % to +3.02 %"
    assert str(Interval(0.03, 0.03)) == "+3.0 % to +3.0 %"


def test_beyond_a_factor_of_20_the_units_are_asked_for() -> None:
    assert units_question(math.log(UNITS_FACTOR)) == units_question(-math.log(UNITS_FACTOR)) == ""
    assert units_question(math.log(1000)).startswith("B is 1,000 times A: are both in ns?")
    assert units_question(-math.log(1000)).startswith("B is 1/1,000 of A")


@pytest.mark.parametrize(
    ("better", "less", "more"),
    [("lower", "better", "worse"), ("higher", "worse", "better"), ("-", "changed", "changed")],
)
def test_a_change_is_judged_by_the_direction_that_is_better(better: str, less: str, more: str) -> None:
    assert (verdict_of_change(-0.1, better), verdict_of_change(0.1, better)) == (less, more)
