"""Where a number that repeats exactly got worse and has not come back."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.evidence import metric_table
from profiler.regressions.exact_regressions import StandingStep, find_standing_step, worse_rule

NAN = float("nan")


@pytest.fixture(scope="module")
def table() -> metric_table.MetricTable:
    return metric_table.load_metrics()


def step_of(table: metric_table.MetricTable, concept: str, *values: float) -> StandingStep | None:
    is_worse = worse_rule(table.by_concept[concept])
    assert is_worse is not None
    return find_standing_step(np.array(values), is_worse)


def test_what_rose_and_stayed_is_found_where_it_rose(table: metric_table.MetricTable) -> None:
    assert step_of(table, "static_spills", 0, 0, 16, 16, 16) == StandingStep(1, 2, 4, 0)


def test_what_came_back_is_no_regression(table: metric_table.MetricTable) -> None:
    assert step_of(table, "static_spills", 0, 16, 0) is None
    assert step_of(table, "static_spills", 16, 0, 0) is None


def test_older_steps_that_still_hold_are_counted(table: metric_table.MetricTable) -> None:
    assert step_of(table, "static_spills", 0, 8, 8, 24) == StandingStep(2, 3, 3, 1)
    assert step_of(table, "static_spills", 0, 24, 8) == StandingStep(0, 1, 2, 0), (
        "better than its worst, worse than once"
    )


def test_a_gap_is_no_number_and_a_last_gap_is_missing_and_not_worse(table: metric_table.MetricTable) -> None:
    assert step_of(table, "static_spills", 0, NAN, 16) == StandingStep(0, 2, 2, 0)
    assert step_of(table, "static_spills", 0, 16, NAN) is None


def test_registers_count_by_the_units_they_are_given_out_in(table: metric_table.MetricTable) -> None:
    assert step_of(table, "static_registers", 65, 72) is None
    assert step_of(table, "static_registers", 72, 73) == StandingStep(0, 1, 1, 0)


def test_a_lost_block_per_sm_is_worse_and_a_gained_one_is_not(table: metric_table.MetricTable) -> None:
    assert step_of(table, "static_blocks", 2, 1) == StandingStep(0, 1, 1, 0)
    assert step_of(table, "static_blocks", 1, 2) is None


def test_what_nobody_judges_has_no_rule(table: metric_table.MetricTable) -> None:
    assert worse_rule(table.by_concept["static_code"]) is None


def test_a_counter_is_worse_beyond_its_threshold(table: metric_table.MetricTable) -> None:
    assert step_of(table, "inst_issued", 1000, 1009) is None
    assert step_of(table, "inst_issued", 1000, 1011) == StandingStep(0, 1, 1, 0)
