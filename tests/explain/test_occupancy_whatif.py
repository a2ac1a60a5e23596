"""Occupancy: what limits, ties, states in the place of limits, curves that agree with the launch."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.build.occupancy import occupancy
from profiler.errors import CannotJudge
from profiler.evidence.values import Evidence, State, Value, pack_values
from profiler.explain import occupancy_whatif
from profiler.explain.occupancy_whatif import RESOURCES, OccupancyCurve, measured_occupancy, static_occupancy
from profiler.reports import read
from profiler.reports.instances import Instances

LIMITS = ("registers", "shared_mem", "warps", "blocks")


def limits(*numbers: float | None) -> dict[str, Value]:
    """The limits in the order of LIMITS; None where one failed."""
    return {
        f"launch__occupancy_limit_{name}": Value(
            number, "block", state=State.FAILED if number is None else State.PRESENT
        )
        for name, number in zip(LIMITS, numbers, strict=True)
    }


def test_the_least_limit_binds_and_ties_are_all_named() -> None:
    least = measured_occupancy(pack_values(limits(2, 3, 16, 32)), None)
    assert least.binding == ("registers",)
    tied = measured_occupancy(pack_values(limits(2, 2, 16, 32)), None)
    assert tied.binding == ("registers", "shared memory")


def test_a_limit_that_failed_is_a_state_and_never_zero() -> None:
    occupancy = measured_occupancy(pack_values(limits(None, 3, 16, 32)), None)
    assert occupancy.binding == ("shared memory",)
    assert [limiter.name for limiter in occupancy.unknown] == ["registers"]
    assert occupancy.unknown[0].blocks.state is State.FAILED
    nothing = measured_occupancy(pack_values(limits(None, None, None, None)), None)
    assert nothing.binding == ()
    assert len(nothing.unknown) == 4


def test_barriers_are_a_limit_only_where_ncu_has_them() -> None:
    old_chip = measured_occupancy(pack_values(limits(2, 3, 16, 32)), None)
    assert "barriers" not in {limiter.name for limiter in old_chip.limiters}
    with_barriers = limits(2, 3, 16, 32) | {"launch__occupancy_limit_barriers": Value(1, "block")}
    assert measured_occupancy(pack_values(with_barriers), None).binding == ("barriers",)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "cutlass/report75",
        "cutlass/report80",
        "esmm/profile@17f278cb",
        "hyperspec/profile",
        "llm.c/adamw_coalsecing_shared",
        "mistic/prof1",
        "ncar/MW_Baseline",
    ],
)
def test_each_curve_passes_through_the_launch_and_the_binding_limit_gives_the_theoretical(
    reports: Path, name: str
) -> None:
    path = reports / f"{name}.ncu-rep"
    for launch in read.read_report(path).launches:
        occupancy = measured_occupancy(launch.values, read.launch_detail(path, launch.ordinal))
        warps = launch.values.number("sm__maximum_warps_avg_per_active_cycle")
        assert [curve.name for curve in occupancy.curves] == [resource.name for resource in RESOURCES]
        assert [curve.own_warps for curve in occupancy.curves] == [warps] * 3
        (least,) = {limiter.blocks.number for limiter in occupancy.limiters if limiter.binds}
        per_block = -(-launch.values.number("launch__block_size") // 32)
        assert least * per_block == warps
        assert occupancy.theoretical.number == pytest.approx(100 * warps / occupancy.max_warps)
        assert not occupancy.missing


def test_a_report_that_lost_its_counters_says_so(reports: Path) -> None:
    path = reports / "mistic/profileHIGGS.ncu-rep"
    (launch,) = read.read_report(path).launches
    occupancy = measured_occupancy(launch.values, read.launch_detail(path, launch.ordinal))
    assert occupancy.achieved.state is State.FAILED
    assert occupancy.binding == ()
    assert occupancy.curves == ()
    assert [metric for metric, _ in occupancy.missing] == [resource.curve_metric for resource in RESOURCES]


def test_an_instance_without_a_value_is_a_hole_in_the_curve() -> None:
    registers = RESOURCES[0]
    curve = occupancy_whatif._measured_curve(registers, Instances("", (0, 8, 16), (64, None, 32)), 8.0)
    assert curve.warps == (64.0, None, 32.0)
    assert curve.own_warps is None
    assert curve.next_gain() is None


def test_the_nearest_gain_is_the_nearest_not_the_largest() -> None:
    curve = OccupancyCurve("registers per thread", "", (32.0, 48.0, 64.0), (64.0, 40.0, 32.0), 64.0, "m")
    assert curve.next_gain() == (48.0, 40.0)


def facts(registers: float | None, threads: float, shared: float) -> dict[str, Value]:
    state = State.NOT_COLLECTED if registers is None else State.PRESENT
    return {
        "static__registers": Value(registers, "register/thread", state=state),
        "static__threads": Value(threads, "thread"),
        "static__shared_bytes": Value(shared, "byte/block"),
    }


def test_static_facts_give_limits_and_curves_that_agree_with_the_model() -> None:
    found = static_occupancy(pack_values(facts(206, 128, 28672)), "sm_80")
    model = occupancy("sm_80", 206, 128, 28672)
    assert found.evidence is Evidence.STATIC
    assert found.achieved.state is State.NOT_COLLECTED, "nothing ran"
    assert found.binding == model.limiters == ("registers",)
    assert found.theoretical.number == model.pct == 12.5
    assert [curve.own_warps for curve in found.curves] == [8.0, 8.0, 8.0]
    registers = found.curves[0]
    assert registers.next_gain() == (168.0, 12.0)
    assert occupancy("sm_80", 168, 128, 28672).pct == 18.75


def test_missing_static_facts_are_named() -> None:
    with pytest.raises(CannotJudge, match=r"static__registers not collected"):
        static_occupancy(pack_values(facts(None, 128, 0)), "sm_80")


def test_the_static_model_and_ncu_agree_on_the_cutlass_launches(reports: Path) -> None:
    for name in ("report75", "report80"):
        for launch in read.read_report(reports / f"cutlass/{name}.ncu-rep").launches:
            number = launch.values.number
            static = facts(
                number("launch__registers_per_thread"),
                number("launch__block_size"),
                number("launch__shared_mem_per_block_static")
                + number("launch__shared_mem_per_block_dynamic"),
            )
            found, measured = (
                static_occupancy(pack_values(static), "sm_80"),
                measured_occupancy(launch.values, None),
            )
            assert found.theoretical.number == pytest.approx(measured.theoretical.number)
            # ncu counts shared memory within the carve-out that the launch had, the model within the largest
            assert set(found.binding) <= set(measured.binding)
