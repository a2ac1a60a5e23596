"""The memory hierarchy of a launch: which counters carry each link, and what stands where one is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import State, Value, pack_values
from profiler.explain.launch_numbers import LaunchReader
from profiler.explain.memory_traffic import MemoryTraffic, memory_traffic
from profiler.reports import read

TABLE = load_metrics()
SECTORS = "l1tex__t_sectors_pipe_{}.sum"
FULL = {
    "gpu__time_duration.sum": Value(1e6, "ns"),
    SECTORS.format("lsu_mem_global_op_ld"): Value(1000, "sector"),
    SECTORS.format("lsu_mem_local_op_ld"): Value(10, "sector"),
    SECTORS.format("lsu_mem_global_op_st"): Value(500, "sector"),
    "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum": Value(100),
    "l1tex__m_xbar2l1tex_read_bytes.sum": Value(16000, "byte"),
    "l1tex__m_xbar2l1tex_read_bytes.sum.pct_of_peak_sustained_elapsed": Value(12.5, "%"),
    "l1tex__m_l1tex2xbar_write_bytes.sum": Value(0, "byte"),
    "dram__bytes_read.sum": Value(8000, "byte"),
    "l1tex__t_sector_hit_rate.pct": Value(50.0, "%"),
}


def launch(values: dict[str, Value]) -> Launch:
    return Launch("k", "k", "", (1, 1, 1), (64, 1, 1), 7, (), 0, pack_values(values))


def traffic(
    values: dict[str, Value], chip: str | None = "sm_80", baseline: dict[str, Value] | None = None
) -> MemoryTraffic:
    before = None if baseline is None else launch(baseline)
    return memory_traffic(LaunchReader(launch(values), TABLE, chip, before, chip))


def test_each_link_has_its_bytes_its_rate_and_its_share() -> None:
    full = traffic(FULL)
    assert full.link("loads").moved.number == 32 * 1010
    assert [detail.number for detail in full.link("loads").details] == [1010, 10.0]
    link = full.link("L2 to L1")
    assert link.moved.number == 16000
    assert link.rate
    assert link.rate.number == pytest.approx(16e6)
    assert link.share
    assert link.share.number == 12.5
    assert full.link("DRAM read").moved.number == 8000


def test_a_sum_says_what_is_in_it_and_leaves_out_what_was_not_collected() -> None:
    loads = traffic(FULL).link("loads").moved
    assert "local_op_ld" in loads.metric
    assert "texture" not in loads.metric
    assert loads.value.derivation
    assert loads.value.derivation.formula == loads.metric


def test_zero_bytes_are_zero_and_missing_bytes_are_not() -> None:
    full = traffic(FULL)
    assert full.link("L1 to L2").moved.number == 0
    assert full.link("DRAM write").moved.value.state is State.NOT_COLLECTED
    assert full.link("DRAM write").rate.value.state is State.NOT_COLLECTED  # type: ignore[union-attr]
    assert {number.label for number in full.lacking} >= {"DRAM write", "L2 hit rate"}
    assert not traffic({}).is_collected


def test_sectors_of_no_request_are_no_number() -> None:
    requests = "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"
    (without,) = traffic({**FULL, requests: Value(0)}).link("loads").details[1:]
    assert (without.number, without.value.state) == (None, State.NO_DATA)
    assert without.metric.endswith(f" / {requests}")


def test_bytes_of_shared_memory_are_counted_by_nobody() -> None:
    full = traffic(FULL)
    assert {link.name for link in full.links if not link.is_counted_in_bytes} == {
        link.name for link in full.links if "shared" in (link.source, link.target)
    }
    assert full.link("DRAM read").is_counted_in_bytes


def test_a_counter_that_failed_says_so() -> None:
    failed = FULL | {"l1tex__m_xbar2l1tex_read_bytes.sum": Value(None, "byte", state=State.FAILED)}
    assert traffic(failed).link("L2 to L1").moved.value.state is State.FAILED


def test_without_the_bytes_the_sectors_that_l2_read_stand_in_and_say_so() -> None:
    values = {"lts__t_sectors_srcunit_tex_op_read.sum": Value(100, "sector")}
    moved = traffic(values).link("L2 to L1").moved
    assert moved.number == 3200
    assert moved.value.derivation
    assert moved.value.derivation.is_stand_in


def test_a_basic_set_has_the_share_of_a_link_and_not_its_bytes() -> None:
    values = {"l1tex__m_xbar2l1tex_read_sectors.avg.pct_of_peak_sustained_elapsed": Value(3.0, "%")}
    link = traffic(values).link("L2 to L1")
    assert link.moved.number is None
    assert link.share
    assert link.share.number == 3.0


def test_a_baseline_is_read_by_the_same_counters() -> None:
    local = SECTORS.format("lsu_mem_local_op_ld")
    before = {name: value for name, value in FULL.items() if name != local}
    loads = traffic(FULL, baseline=before).link("loads").moved
    assert loads.number == 32 * 1010
    assert loads.baseline is not None
    assert loads.baseline.state is State.NOT_COLLECTED  # its loads are another sum
    assert traffic(before, baseline=FULL).link("loads").moved.baseline_number == 32 * 1000


def test_copies_past_l1_are_named_where_the_chip_has_them() -> None:
    def labels(chip: str) -> set[str]:
        return {detail.label for detail in traffic(FULL, chip).level("shared").details}

    assert "cp.async past L1" not in labels("sm_70")
    assert "cp.async past L1" in labels("sm_80")
    assert "TMA loads" not in labels("sm_80")
    assert "TMA loads" in labels("sm_90")


@pytest.mark.slow
def test_the_sectors_of_a_request_are_those_of_ncus_rules(public_reports: Path) -> None:
    report = read.read_report(public_reports / "ncar/MW_DivToMult.ncu-rep")
    own = next(launch for launch in report.launches if launch.base_name == "semi_discrete_step_232_gpu")
    of_launch = memory_traffic(LaunchReader(own, TABLE, chip_of(report.compute_capability)))
    for link, words in (("loads", "8.3 sectors per request"), ("stores", "9.0 sectors per request")):
        assert any(words in rule.message for rule in own.rules)
        assert of_launch.link(link).details[1].number == pytest.approx(float(words.split()[0]), abs=0.05)
