"""Roofs and points from a report's own metrics: against NVIDIA's printed numbers, and every state named."""

from __future__ import annotations

import csv
import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.compare.resolve_names import side_of_report
from profiler.evidence import chip_metrics, metric_table
from profiler.evidence.gpu_arch import ARCHITECTURES, chip_of
from profiler.evidence.launch import Launch
from profiler.evidence.rollups import CounterRates, Rate
from profiler.evidence.tensor_pipes import TensorPath, tensor_paths
from profiler.evidence.values import State, Value, pack_values
from profiler.explain.roofline import UNKNOWN, UNUSED, USED, Roof, Roofline, roofline_of
from profiler.reports import read as reports_read
from tests import made

TABLE = metric_table.load_metrics()
PER_CYCLE = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum.per_cycle_elapsed"
PEAK = "sm__sass_thread_inst_executed_op_{}_pred_on.sum.peak_sustained"
TENSOR = "sm__ops_path_tensor_src_fp16_dst_fp32"
HALF = {"fp64": ("dfma", "dadd", "dmul"), "fp32": ("ffma", "fadd", "fmul")}


def rooflines(path: Path) -> list[tuple[Launch, Roofline]]:
    read = reports_read.read_report(path)
    side = side_of_report(read, path.name)
    chip = chip_of(side.compute_capability) if side.compute_capability else None
    return [(launch, roofline_of(launch, TABLE, chip, read.session.ncu_version)) for launch in read.launches]


def oracle(reports: Path, name: str) -> list[dict[str, float]]:
    """What NVIDIA's command line prints, a row a launch."""
    with (reports / "oracle" / f"{name.replace('/', '__')}.ncu-rep.raw.csv").open(encoding="utf-8") as file:
        rows = list(csv.reader(file))
    found = []
    for row in rows[2:]:
        told = {}
        for metric, cell in zip(rows[0], row, strict=True):
            try:
                told[metric] = float(cell.replace(",", ""))
            except ValueError:
                continue
        found.append(told)
    return found


def roof(found: Roofline, name: str) -> object:
    return next(one for one in (*found.precisions, *found.levels) if one.name == name)


def whole(**more: float | None) -> dict[str, Value]:
    """What one launch of a millisecond at 1 GHz would have: 1 TB/s DRAM peak, 2 TFLOP/s fp32 peak."""
    told: dict[str, float | None] = {
        "gpu__time_duration.sum": 1e6,
        "sm__cycles_elapsed.avg.per_second": 1e9,
        "smsp__cycles_elapsed.avg.per_second": 1e9,
        "dram__cycles_elapsed.avg.per_second": 1e9,
        "dram__bytes.sum.peak_sustained": 1000.0,
        "dram__bytes.sum.per_second": 5e11,
        PEAK.format("ffma"): 1000.0,
        PER_CYCLE.format("ffma"): 100.0,
        PER_CYCLE.format("fadd"): 30.0,
        PER_CYCLE.format("fmul"): 20.0,
        **more,
    }
    units = {"gpu__time_duration.sum": "ns"}
    return {
        name: Value(number, units.get(name, ""), state=State.PRESENT if number is not None else State.FAILED)
        for name, number in told.items()
    }


def launch(values: dict[str, Value], **opcodes: float) -> Launch:
    return replace(made.launch(), values=pack_values(values), opcodes=opcodes)


# --- packed fp32


def packed(chip: str | None, opcodes: dict[str, float], **per_cycle: float | None) -> Roofline:
    """The roofline of a launch at 1.8 GHz with these thread instructions a cycle, none of the scalar ones."""
    told = {PER_CYCLE.format(name): number for name, number in per_cycle.items()}
    clock = {"sm__cycles_elapsed.avg.per_second": 1.8e9, "smsp__cycles_elapsed.avg.per_second": 1.8e9}
    scalar = dict.fromkeys((PER_CYCLE.format(name) for name in ("ffma", "fadd", "fmul")), 0.0)
    values = whole(**{**clock, **scalar, **told})
    return roofline_of(launch(values, **opcodes), TABLE, chip)


def test_packed_fp32_is_fp32_work() -> None:
    none = {"fadd2": 0.0, "fmul2": 0.0}
    fp32 = roof(packed("sm_100", {"FFMA2": 1e6}, ffma2=4000.0, **none), "fp32")
    assert (fp32.state, fp32.rate.number) == (USED, pytest.approx(28.8e12))
    mixed = roof(packed("sm_103", {}, ffma=1000.0, fadd=100.0, ffma2=4000.0, fadd2=50.0, fmul2=25.0), "fp32")
    assert mixed.rate.number == pytest.approx((2 * 1000 + 100 + 4 * 4000 + 2 * 50 + 2 * 25) * 1.8e9)
    sums = roof(packed("sm_103", {"FADD2": 1e6}, ffma2=0.0, fadd2=1500.0, fmul2=500.0), "fp32")
    assert (sums.state, sums.rate.number) == (USED, pytest.approx(2 * 2000 * 1.8e9))


def test_packed_fp32_that_nobody_counted_is_missing_and_not_zero() -> None:
    wanted = {PER_CYCLE.format(name) for name in ("ffma2", "fadd2", "fmul2")}
    fp32 = roof(packed("sm_100", {}, ffma=1000.0), "fp32")
    assert (fp32.rate.number, {name for name, _ in fp32.missing}) == (None, wanted)
    for chip in ("sm_100", "sm_120", None):
        fp32 = roof(packed(chip, {"FFMA": 5.0, "FFMA2": 5.0}, ffma=1000.0), "fp32")
        assert (fp32.state, fp32.rate.number) == (USED, None)
        assert {name for name, _ in fp32.missing} >= {PER_CYCLE.format("ffma2")}
        assert fp32.opcodes == "FFMA, FFMA2"


def test_without_packed_instructions_the_scalar_counters_are_all() -> None:
    for chip, opcodes in (("sm_100", {"FFMA": 5.0}), ("sm_90", {}), ("sm_121", {}), (None, {})):
        fp32 = roof(packed(chip, opcodes, ffma=1000.0), "fp32")
        assert (fp32.rate.number, fp32.missing) == (pytest.approx(3.6e12), ()), chip


def test_the_peak_of_fp32_is_the_higher_of_scalar_and_packed() -> None:
    values = whole(**{PEAK.format("ffma2"): 800.0, PER_CYCLE.format("ffma2"): 10.0})
    fp32 = roof(roofline_of(launch(values, FFMA2=1.0, FFMA=1.0, FADD=1.0, FMUL=1.0), TABLE, "sm_100"), "fp32")
    assert (fp32.peak.number, fp32.rate.number) == (3.2e12, pytest.approx((2 * 100 + 30 + 20 + 40) * 1e9))


def test_a_scalar_counter_that_is_missing_is_not_taken_for_zero_by_a_packed_opcode() -> None:
    values = whole(**{PER_CYCLE.format("ffma2"): 10.0})
    del values[PER_CYCLE.format("ffma")]
    fp32 = roof(roofline_of(launch(values, FFMA2=1.0, FADD=1.0, FMUL=1.0), TABLE, "sm_100"), "fp32")
    assert fp32.rate.number == pytest.approx((30 + 20 + 40) * 1e9), "the mix has no FFMA, and FFMA2 is none"


@pytest.mark.parametrize("chip", ["sm_87", "sm_110", "sm_121"])
def test_a_gpu_without_memory_of_its_own_is_not_asked_for_counters_of_it(chip: str) -> None:
    found = roofline_of(launch({}), TABLE, chip)
    assert (roof(found, "DRAM").missing, roof(found, "DRAM").note != "") == ((), True)
    assert roof(roofline_of(launch({}), TABLE, "sm_103"), "DRAM").missing


# --- against the answer key


@pytest.mark.parametrize(
    "name", ["ncar/MW_Baseline", "ncar/MW_DivToMult", "cutlass/report75", "llm.c/adamw_coalsecing_shared"]
)
def test_every_roof_is_what_one_computes_by_hand_from_the_printed_numbers(reports: Path, name: str) -> None:
    for (_, found), told in zip(rooflines(reports / f"{name}.ncu-rep"), oracle(reports, name), strict=True):
        clock = told["sm__cycles_elapsed.avg.per_second"]
        seconds = told["gpu__time_duration.sum"] * 1e-9
        for precision, (fma, add, mul) in HALF.items():
            one = roof(found, precision)
            assert one.peak.number == pytest.approx(2 * told[PEAK.format(fma)] * clock, rel=1e-6)
            work = 2 * told[PER_CYCLE.format(fma)] + told[PER_CYCLE.format(add)] + told[PER_CYCLE.format(mul)]
            # printed with two decimals: three numbers off by half a hundredth, one of them twice
            assert one.rate.number == pytest.approx(work * clock, rel=1e-6, abs=0.02 * clock)
        dram = roof(found, "DRAM")
        bandwidth = told["dram__bytes.sum.peak_sustained"] * told["dram__cycles_elapsed.avg.per_second"]
        assert dram.peak.number == pytest.approx(bandwidth, rel=1e-6)
        moved = told["dram__bytes_read.sum"] + told["dram__bytes_write.sum"]
        assert dram.rate.number == pytest.approx(moved / seconds, rel=0.01), "two replay passes"
        l2 = roof(found, "L2")
        sent = told.get("lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed")
        cycles = told.get("lts__cycles_elapsed.sum")
        if sent is not None and cycles is not None and name.startswith("cutlass"):  # sm_80
            work = 2 * sent / 100 * cycles
            assert l2.share == pytest.approx(sent / 100, abs=1e-4)
            assert l2.rate.number == pytest.approx(32 * work / seconds, rel=1e-3)
        else:
            assert l2.rate.number == pytest.approx(32 * told["lts__t_sectors.sum"] / seconds, rel=1e-4)
            share = told["lts__t_sectors.avg.pct_of_peak_sustained_elapsed"] / 100
            assert l2.share == pytest.approx(share, abs=1e-4)
        base = "l1tex__lsu_writeback_active" + ("" if name.startswith("ncar") else "_mem_lg")
        l1 = roof(found, "L1")
        assert l1.rate.number == pytest.approx(128 * told[f"{base}.sum"] / seconds, rel=1e-4)
        # an L1 hands out one 128-byte line a cycle: so many as there are SMs
        sms = {"ncar": 80, "cutlass": 108, "llm.c": 38}[name.split("/")[0]]
        assert l1.peak.number == pytest.approx(128 * sms * clock, rel=1e-5)


def test_the_kernel_that_ncar_mended_moves_left_and_nearer_to_the_dram_roof(reports: Path) -> None:
    before, after = (
        next(
            point
            for launch, found in rooflines(reports / "ncar" / name)
            for point in found.points
            if launch.base_name == "compute_tendencies_x_279_gpu"
            and (point.precision, point.level) == ("fp64", "DRAM")
        )
        for name in ("MW_Baseline.ncu-rep", "MW_DivToMult.ncu-rep")
    )
    # (2·1000.99 + 239.54 + 424.11) · 1.29496 GHz / 400.1 GB/s; (2·737.68 + 342.90 + 203.76) · 1.29294 / 724.2
    assert before.intensity == pytest.approx(8.627, abs=0.002)
    assert after.intensity == pytest.approx(3.610, abs=0.002)
    assert (before.bound, after.bound) == ("arithmetic", "memory")
    assert after.share == pytest.approx(0.807, abs=0.001)
    assert after.share > before.share


def test_tensor_work_without_its_counters_is_named_with_what_would_count_it(reports: Path) -> None:
    for _, found in rooflines(reports / "cutlass/report75.ncu-rep"):
        tensor = roof(found, "tensor (IMMA)")
        assert tensor.state == USED
        assert tensor.rate.number is None
        assert dict(tensor.missing) == {
            "sm__ops_path_tensor_src_int8_sparsity_off.sum.per_cycle_elapsed": "not collected",
            "sm__ops_path_tensor_src_int8_sparsity_off.sum.peak_sustained": "not collected",
        }
        assert any("512 operations" in note for note in found.notes), "ncu 2024.1 did that"
        assert roof(found, "fp16").state == UNUSED, "the opcode mix has none"
        assert not any(point.precision.startswith("tensor") for point in found.points)


@pytest.mark.parametrize(
    "name", ["esmm/profile@049ec612", "hyperspec/profile", "mistic/prof1", "mistic/profileHIGGS"]
)
def test_a_report_without_the_metrics_has_no_point_and_names_each_with_its_state(
    reports: Path, name: str
) -> None:
    for launch_, found in rooflines(reports / f"{name}.ncu-rep"):
        assert found.points == ()
        assert found.leading is None
        assert {"L2", "L1"} <= found.missing.keys()
        width = launch_.values.number("device__attribute_global_memory_bus_width")
        has_share = launch_.values.number("gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed")
        assert ("DRAM" in found.missing) is not (width and has_share), "these give peak and rate"
        for lacking in found.missing.values():
            for metric, state in lacking:
                value = launch_.values.value(metric)
                assert not value.number, metric
                assert state in ("not collected", "failed (NaN)", "is 0"), metric
    if name == "mistic/profileHIGGS":
        states = dict(found.missing["DRAM"])
        assert states["dram__bytes.sum.peak_sustained"] == "failed (NaN)", "a peak of zero is none"
        assert states["dram__bytes.sum.per_second"] == "failed (NaN)"


def test_the_csv_of_a_new_ncu_has_tensor_work_but_no_roof_for_it(reports: Path) -> None:
    ((_, found),) = rooflines(reports / "csv/kernel_0009.metrics.csv")
    tensor = roof(found, "tensor bf16 → fp32")
    assert tensor.rate.number > 1e12
    assert tensor.peak.number is None
    assert tensor.share is None


@pytest.mark.slow
def test_no_report_gives_a_share_above_what_passes_can_differ_by(good_reports: list[Path]) -> None:
    seen = 0
    for path in good_reports:
        for _, found in rooflines(path):
            for one in (*found.precisions, *found.levels):
                assert one.rate.number is None or (one.rate.number >= 0 and math.isfinite(one.rate.number))
                assert one.peak.number is None or one.peak.number > 0
                if one.share is not None:
                    seen += 1
                    assert one.share <= 1.02, f"{path}: {one.name}"
            for point in found.points:
                assert point.share is None or 0 < point.share <= 1.02
    assert seen > 80


# --- made launches


def test_work_traffic_and_knee_of_a_made_launch() -> None:
    roofline = roofline_of(launch(whole()), TABLE, "sm_80")
    (point,) = roofline.points
    assert point.reached == pytest.approx((2 * 100 + 30 + 20) * 1e9)
    assert point.intensity == pytest.approx(0.5)
    assert point.knee == pytest.approx(2.0)
    assert point.attainable == pytest.approx(5e11)
    assert (point.bound, point.share) == ("memory", pytest.approx(0.5))
    assert roofline.nearest_known is not None
    assert roofline.nearest_known.name == "DRAM"
    assert "L1" in {roof.name for roof in roofline.unknown}
    assert roofline.nearest is None


def test_a_roof_is_the_nearest_only_where_no_other_is_unknown() -> None:
    """DRAM at 2.4 % is not the nearest where nobody counted L1; a precision that is not used is no roof."""
    dram = Roof("DRAM", "byte/s", Rate(569e9), Rate(13.7e9))
    l2, fp16 = Roof("L2", "byte/s", Rate(2e12), Rate(1e11)), Roof("fp16", "FLOP/s", Rate(None), Rate(None))
    for unknown in (Roof("L1", "byte/s", Rate(5e12), Rate(None)), fp16):
        roofline = Roofline((unknown,), (l2, dram), ())
        assert (roofline.nearest, roofline.nearest_known) == (None, l2)
        assert roofline.unknown == (unknown,)
        assert [roofline.rank_words(roof) for roof in (l2, dram)] == ["closest of the known roofs", ""]
    full = Roofline((replace(fp16, state=UNUSED),), (l2, dram), ())
    assert (full.nearest, full.nearest_known, full.unknown) == (l2, l2, ())
    assert [full.rank_words(roof) for roof in (l2, dram)] == ["closest roof", ""]


@pytest.mark.parametrize("lost", [PER_CYCLE.format("fadd"), "dram__bytes.sum.per_second"])
def test_half_the_work_or_no_traffic_is_no_point(lost: str) -> None:
    roofline = roofline_of(launch(whole(**{lost: None})), TABLE, "sm_80")
    assert roofline.points == ()
    assert (lost, "failed (NaN)") in [pair for lacking in roofline.missing.values() for pair in lacking]


def test_a_point_stays_without_a_roof_and_says_so() -> None:
    roofline = roofline_of(launch(whole(**{PEAK.format("ffma"): None})), TABLE, "sm_80")
    (point,) = roofline.points
    assert point.intensity == pytest.approx(0.5)
    assert (point.knee, point.attainable, point.bound, point.share) == (None, None, None, None)


def test_traffic_of_zero_is_no_intensity_and_is_said() -> None:
    roofline = roofline_of(launch(whole(**{"dram__bytes.sum.per_second": 0.0})), TABLE, "sm_80")
    assert roofline.points == ()
    assert any("no DRAM traffic" in note for note in roofline.notes)


def test_a_tensor_path_stands_under_the_dense_roof() -> None:
    counted = whole(
        **{
            f"{TENSOR}.sum.per_cycle_elapsed": 5000.0,
            f"{TENSOR}.sum.peak_sustained": 40000.0,
            f"{TENSOR}_sparsity_off.sum.per_cycle_elapsed": 5000.0,
            f"{TENSOR}_sparsity_off.sum.peak_sustained": 20000.0,
        }
    )
    one = roof(roofline_of(launch(counted, HMMA=10), TABLE, "sm_80"), "tensor fp16 → fp32")
    assert one.peak.number == pytest.approx(2e13)
    assert one.share == pytest.approx(0.25)
    del counted[f"{TENSOR}_sparsity_off.sum.peak_sustained"]
    one = roof(roofline_of(launch(counted, HMMA=10), TABLE, "sm_80"), "tensor fp16 → fp32")
    assert one.peak.number is None, "the peak with sparsity is twice what the launch could reach"
    assert dict(one.missing) == {f"{TENSOR}_sparsity_off.sum.peak_sustained": "not collected"}


def test_the_plain_tensor_peak_serves_where_no_sparsity_exists() -> None:
    counted = whole(**{f"{TENSOR}.sum.per_cycle_elapsed": 5000.0, f"{TENSOR}.sum.peak_sustained": 40000.0})
    one = roof(roofline_of(launch(counted, HMMA=10), TABLE, "sm_70"), "tensor fp16 → fp32")
    assert one.share == pytest.approx(0.125)


def test_sparse_work_is_in_no_point_and_is_said() -> None:
    counted = whole(
        **{
            f"{TENSOR}_sparsity_off.sum.per_cycle_elapsed": 5000.0,
            f"{TENSOR}_sparsity_off.sum.peak_sustained": 20000.0,
            f"{TENSOR}_sparsity_on.sum.per_cycle_elapsed": 7.0,
        }
    )
    roofline = roofline_of(launch(counted, HMMA=10), TABLE, "sm_80")
    assert any("structured sparsity" in note for note in roofline.notes)
    assert roof(roofline, "tensor fp16 → fp32").rate.number == pytest.approx(5e12)


def test_counters_of_another_type_or_opcode_do_not_stand_for_what_ran() -> None:
    counted = whole(**{f"{TENSOR}_sparsity_off.sum.per_cycle_elapsed": 0.0})
    roofline = roofline_of(launch(counted, HMMA=10), TABLE, "sm_80")
    assert roof(roofline, "tensor fp16 → fp32").state == UNUSED
    lacking = dict(roof(roofline, "tensor (HMMA)").missing)
    assert "sm__ops_path_tensor_src_bf16_dst_fp32_sparsity_off.sum.per_cycle_elapsed" in lacking
    assert not any("int8" in name or "fp64" in name for name in lacking)


def test_without_an_opcode_mix_nothing_is_called_unused_that_was_not_counted() -> None:
    roofline = roofline_of(launch(whole()), TABLE, "sm_80")
    assert {roof.name for roof in roofline.precisions if roof.state == UNKNOWN} == {"fp64", "fp16", "tensor"}
    idle = roofline_of(launch(whole(**{"sm__inst_executed_pipe_tensor.sum": 0.0})), TABLE, "sm_80")
    assert "tensor" not in {roof.name for roof in idle.precisions}


def test_hopper_tells_warp_groups_apart_and_counts_no_work_twice() -> None:
    names = [
        "sm__ops_path_tensor_src_fp16.sum",
        "sm__ops_path_tensor_op_hgmma_src_fp16_sparsity_off.sum.per_cycle_elapsed",
        "sm__ops_path_tensor_op_hmma_src_fp16.sum",
        "sm__ops_path_tensor_op_hmma_src_fp16_dst_fp32_sparsity_off.sum.peak_sustained",
    ]
    assert tensor_paths(names) == [TensorPath("hgmma", "fp16", ""), TensorPath("hmma", "fp16", "fp32")]


def test_a_rate_is_read_from_whichever_rollup_there_is() -> None:
    for name, number in (("x.sum.per_second", 2e9), ("x.sum.per_cycle_elapsed", 2.0), ("x.sum", 2e6)):
        told = whole(**{f"dram__{name}": number})
        assert CounterRates(pack_values(told)).rate("dram__x").number == pytest.approx(2e9)
    told = whole(**{"dram__x.sum": 2e6, "dram__x.sum.pct_of_peak_sustained_elapsed": 40.0})
    assert CounterRates(pack_values(told)).peak("dram__x").number == pytest.approx(5e9)
    assert CounterRates(pack_values(whole())).peak("dram__x").number is None


@pytest.mark.parametrize(
    ("chip", "sms", "clock", "teraflops"),
    [("sm_80", 108, 1.41e9, 78.0), ("sm_90", 132, 1.83e9, 123.7), ("sm_70", 80, 1.53e9, 31.3)],
)
def test_half_precision_counts_both_halves_of_a_packed_instruction(
    chip: str, sms: int, clock: float, teraflops: float
) -> None:
    """An HFMA2 of a thread is four operations, HADD2 and HMUL2 are two. Source: NVIDIA's whitepapers."""
    lanes = {"sm_80": (128, 64), "sm_90": (128, 128), "sm_70": (64, 64)}[chip]  # of hfma and ffma, an SM
    counted = whole(
        **{
            "sm__cycles_elapsed.avg.per_second": clock,
            "smsp__cycles_elapsed.avg.per_second": clock,
            PEAK.format("hfma"): float(sms * lanes[0]),
            PEAK.format("ffma"): float(sms * lanes[1]),
            PER_CYCLE.format("hfma"): 10.0,
            PER_CYCLE.format("hadd"): 4.0,
            PER_CYCLE.format("hmul"): 1.0,
        }
    )
    found = roofline_of(launch(counted), TABLE, chip)
    half, single = roof(found, "fp16"), roof(found, "fp32")
    assert half.peak.number == pytest.approx(teraflops * 1e12, rel=2e-3)
    assert half.peak.number > 1.9 * single.peak.number
    assert half.rate.number == pytest.approx((4 * 10 + 2 * 4 + 2 * 1) * clock)


@pytest.mark.slow
def test_half_precision_counts_as_ncu_derives_it_itself(reports: Path) -> None:
    """Its own metrics of the section are named for the factors: hfma_pred_on_x4, hadd_pred_on_x2."""
    own = "derived__{}__sass_thread_inst_executed_op_{}_pred_on_x{}"
    seen = set()
    for path in reports.glob("*/*.ncu-rep"):
        if path.parent.name == "bad":
            continue
        for launch_, found in rooflines(path):
            clock = launch_.values.number("sm__cycles_elapsed.avg.per_second")
            for name, fused, factor in (("fp16", "hfma", 4), ("fp32", "ffma", 2), ("fp64", "dfma", 2)):
                peak = launch_.values.number(own.format("sm", fused, factor))
                if peak and clock:
                    assert roof(found, name).peak.number == pytest.approx(peak * clock, rel=1e-6)
                    seen.add(name)
    assert {"fp32", "fp64"} <= seen or not seen


def test_an_instruction_that_nobody_counted_is_none_where_the_opcode_mix_has_none() -> None:
    counted = whole(**{PEAK.format("hfma"): 2000.0, PER_CYCLE.format("hfma"): 10.0})
    half = roof(roofline_of(launch(counted, HFMA2=5.0), TABLE, "sm_80"), "fp16")
    assert half.rate.number == pytest.approx(4 * 10 * 1e9)
    assert "sass__inst_executed_per_opcode has no HADD" in half.rate.derived
    for opcodes in ({"HFMA2": 5.0, "HADD2.F32": 1.0}, {}):
        lacking = roof(roofline_of(launch(counted, **opcodes), TABLE, "sm_80"), "fp16")
        assert lacking.rate.number is None
        assert PER_CYCLE.format("hadd") in dict(lacking.missing)


def test_a_roof_by_derived_counters_says_so() -> None:
    held = whole(
        **{
            "lts__lts2xbar_cycles_active.avg.pct_of_peak_sustained_elapsed": 50.0,
            "lts__cycles_elapsed.sum": 80e6,
            "lts__cycles_elapsed.avg": 1e6,
        }
    )
    found = roofline_of(launch(held), TABLE, "sm_80")
    l2 = roof(found, "L2")
    assert l2.peak.number == pytest.approx(32 * 160 * 1e9)
    assert l2.rate.number == pytest.approx(l2.peak.number / 2)
    assert any(
        note.startswith("lts__lts2xbar_cycles_active.sum.per_second: derived from") for note in found.notes
    )
    del held["sm__cycles_elapsed.avg.per_second"], held["smsp__cycles_elapsed.avg.per_second"]
    held["gpc__cycles_elapsed.avg.per_second"] = Value(1.1e9, "hz")
    bounded = roofline_of(launch(held), TABLE, "sm_80")
    assert roof(bounded, "fp32").peak.number == pytest.approx(2.2e12)
    assert any("approximated by gpc__cycles_elapsed.avg.per_second" in note for note in bounded.notes)
    elsewhere = roofline_of(launch(held), TABLE, "sm_86")
    assert roof(elsewhere, "L2").rate.number is None, "the form was seen to hold on two chips alone"


@pytest.mark.parametrize("chip", [name for name, row in ARCHITECTURES.items() if row.ncu_chip])
def test_the_full_tier_collects_what_a_roofline_asks_for(chip: str) -> None:
    if not chip_metrics.is_library_available():
        pytest.skip("NVIDIA's library does not load here: pip install ncu-report, on Linux")
    bare = replace(made.launch(), values=pack_values({}), opcodes={})
    roofline = roofline_of(bare, TABLE, chip)
    asked = {name for lacking in roofline.missing.values() for name, _ in lacking}
    declared = {metric.names_for(chip)[0] for metric in TABLE.metrics if metric.names_for(chip)}
    assert asked <= declared
    assert any("ops_path" in name for name in asked)
    assert any("lsu_writeback" in name for name in asked)


# --- the command


def test_the_command_prints_json_with_points_and_what_is_missing(
    reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["roofline", str(reports / "ncar/MW_Baseline.ncu-rep"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    one = next(one for one in document["launches"] if one["kernel"] == "compute_tendencies_x_279_gpu")
    assert one["nearest_roof"] == "fp64"
    assert {(point["precision"], point["level"]) for point in one["points"]} == {
        (precision, level) for precision in ("fp64", "fp32") for level in ("L1", "L2", "DRAM")
    }
    dram = next(level for level in one["levels"] if level["name"] == "DRAM")
    assert dram["peak_by"] == ["dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second"]


def test_a_report_without_a_point_exits_3_and_says_what_to_collect(
    reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["roofline", str(reports / "mistic/prof1.ncu-rep")]) == 3
    output = capsys.readouterr().out
    assert output.count("have no FLOPs") == 1, "once for all launches of one reason"
    assert "4 launches (" in output
    assert "dram__bytes.sum.peak_sustained" in output
    assert "profiler list metrics --chip sm_80" in output


@pytest.mark.slow
def test_a_version_that_ran_on_no_gpu_is_not_measured(
    tmp_path: Path, committed_data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(committed_data, tmp_path / "data")
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    assert main(["roofline", "v2d_c"]) == 3
    errors = capsys.readouterr().err
    assert "attention/v2d_c is not measured" in errors
    assert "profiler collect v2d_c --full v2d_c" in errors
    assert len(errors.splitlines()) == 1
