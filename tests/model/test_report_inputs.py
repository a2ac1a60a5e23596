"""Where the accesses of a report's launch were served, by its counters."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.evidence.values import NOT_COLLECTED, Value, Values, pack_values
from profiler.model import report_inputs
from profiler.model.control_words import read_code_words
from profiler.model.instructions import NoModel
from profiler.model.launch_model import LaunchModel
from profiler.model.report_inputs import counted_hit_rates
from profiler.reports.read import launch_detail, launch_details, read_report
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


class Asked(Values):
    """The values of a launch without some of them, and what was asked for."""

    def __init__(self, values: Values, lacking: frozenset[str]) -> None:
        super().__init__(values.metric_set, values.slots, values.states, values.texts)
        self.lacking, self.names = lacking, set[str]()

    def value(self, name: str) -> Value:
        self.names.add(name)
        return NOT_COLLECTED if name in self.lacking else super().value(name)


@pytest.mark.slow
def test_no_metric_is_asked_for_that_is_not_named_as_read(reports: Path) -> None:
    path = reports / "llm.c" / "adamw_coalsecing_shared.ncu-rep"
    numbers = {
        "device__attribute_compute_capability_major": 8,
        "device__attribute_compute_capability_minor": 0,
    }
    values = pack_values({name: Value(numbers.get(name, 96)) for name in report_inputs.LAUNCH_METRICS})
    launch = replace(read_report(path).launches[0], values=values)
    detail = next(launch_details(path, report_inputs.INSTRUCTION_METRICS))
    model = LaunchModel(report_inputs.report_launch(launch, detail, {}).inputs)

    def asked(lacking: frozenset[str]) -> set[str]:
        values = Asked(launch.values, lacking)
        with suppress(NoModel):
            report_inputs.report_launch(replace(launch, values=values), detail, {})
        counted_hit_rates(replace(launch, values=values), model)
        return values.names

    names = asked(frozenset())
    lacking = [frozenset([name]) for name in names]
    lacking.append(frozenset(name for name in names if "_op_ld" in name))
    for without in lacking:  # what is asked for in place of what is missing
        more = asked(without) - names
        names |= more
        lacking += [without | {name} for name in more]
    assert names == report_inputs.LAUNCH_METRICS


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cutlass/report80", "llm.c/adamw_coalsecing_shared"])
def test_the_inputs_are_those_of_a_report_that_is_read_whole(public_reports: Path, name: str) -> None:
    path = public_reports / f"{name}.ncu-rep"
    launches = read_report(path, metrics=report_inputs.LAUNCH_METRICS).launches
    details = launch_details(path, report_inputs.INSTRUCTION_METRICS)
    code = read_code_words(path)
    for whole, launch, detail in zip(read_report(path).launches, launches, details, strict=True):
        expected = report_inputs.report_launch(whole, launch_detail(path, whole.ordinal), code).inputs
        inputs = report_inputs.report_launch(launch, detail, code).inputs
        for field in fields(inputs):
            one, other = getattr(inputs, field.name), getattr(expected, field.name)
            if isinstance(one, np.ndarray):
                assert np.array_equal(one, other, equal_nan=True), field.name
            else:
                assert repr(one) == repr(other), field.name
