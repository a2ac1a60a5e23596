"""Where the accesses of a report's launch were served, by its counters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from profiler.model.launch_model import LaunchModel
from profiler.model.report_inputs import counted_hit_rates
from tests.model.test_cycle_simulation import inputs

_LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld"


class CountedLaunch:
    """Of a launch's values only these numbers."""

    def __init__(self, **numbers: float) -> None:
        self.numbers = numbers

    @property
    def values(self) -> CountedLaunch:
        return self

    def number(self, name: str) -> float | None:
        return self.numbers.get(name)


def served(numbers: dict[str, float]) -> Any:
    """The hit rates of 100 warps that load and store four sectors each."""
    launch = inputs(["LDG.E R0, [R2.64]", "STG.E [R4.64], R0"], [1, 1], blocks=100)
    model = LaunchModel(replace(launch, sectors=np.full(2, 4.0), wavefronts=np.ones(2)))
    return counted_hit_rates(CountedLaunch(**numbers), model)  # type: ignore[arg-type]


def test_l1_hits_are_those_of_loads_alone() -> None:
    numbers = {"l1tex__t_sector_hit_rate.pct": 50.0, "dram__bytes_read.sum": 0.0, f"{_LOADS}.sum": 400.0}
    assert served({**numbers, f"{_LOADS}_lookup_hit.sum": 100.0}).l1 == 0.25
    assert served(numbers).l1 == 0.5  # how many hit was not counted: the rate of loads and stores
    assert served({}) is None


def test_stores_that_join_on_their_way_reach_l2_once() -> None:
    counted = {
        "l1tex__t_sector_hit_rate.pct": 0.0,
        "dram__bytes_read.sum": 400 * 32 / 2,
        "dram__bytes_write.sum": 50 * 32.0,
        "l1tex__m_l1tex2xbar_write_sectors_mem_lg_op_st.sum": 100.0,
    }
    rates = served(counted)
    assert (rates.l2, rates.merged) == (pytest.approx(0.5), pytest.approx(0.75))
    assert rates.stores == pytest.approx(0.5)  # of the 100 sectors that arrive


def test_a_hit_rate_is_at_most_one() -> None:
    assert served({"l1tex__t_sector_hit_rate.pct": 0.0, "lts__t_sector_hit_rate.pct": 130.0}).l2 == 1.0
