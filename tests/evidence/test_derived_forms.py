"""What is computed where a report lacks a counter: how near it is, and when there is nothing."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from profiler.errors import BadMetricsFile, ProfilerError
from profiler.evidence import chip_metrics, formatting, metric_table
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.values import Derivation, Evidence, State, Value, pack_values
from profiler.reports import read as reports_read

TABLE = metric_table.load_metrics()
SMS = "device__attribute_multiprocessor_count"
ELAPSED = "elapsed | elapsed cycles | cycle | lower | 2% | time | lean | smsp__cycles_elapsed.avg"
SUM_FORM = f"elapsed = smsp__cycles_elapsed.sum / (4 * {SMS})"
# Counters that lie near a concept and count something else: how far, was measured on public reports.
OTHER_MEANING = {
    ("roof_l2_rate", "lts__t_sectors.sum.per_second"),  # up to 688 times as much
    ("roof_l1_rate", "l1tex__lsu_writeback_active.avg.pct_of_peak_sustained_elapsed"),  # 32 % off
    ("global_load_requests", "memory_l1_tag_requests_global"),  # loads and stores
    ("global_load_sectors", "memory_l1_sectors_global"),
    ("sol_memory", "gpu__compute_memory_access_throughput.avg.pct_of_peak_sustained_elapsed"),  # 38 % off
    ("threads_per_inst", "derived__avg_thread_executed"),
    (
        "shared_conflicts_store",
        "smsp__sass_l1tex_data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    ),
}


def table_of(tmp_path: Path, *lines: str) -> MetricTable:
    path = tmp_path / "metrics.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return metric_table.load_metrics(path)


def values(**numbers: float | int | Value | None) -> dict[str, Value]:
    """Values by ncu name, of which `__DOT__` stands for the dot; None: failed."""
    named = {}
    for name, number in numbers.items():
        value = number if isinstance(number, Value) else Value(number)
        if value.number is None and value.state is State.PRESENT:
            value = Value(None, state=State.FAILED)
        named[name.replace("__DOT__", ".")] = value
    return named


# --- the file we ship


def test_no_form_takes_a_counter_of_another_meaning() -> None:
    for concept, other in OTHER_MEANING:
        metric = TABLE.by_concept[concept]
        assert other not in {alternative.name for alternative in metric.alternatives}
        assert other not in {name for form in metric.forms for name in form.names}


def test_the_forms_of_a_concept_that_are_equal_to_it_come_before_its_stand_ins() -> None:
    for metric in TABLE.metrics:
        stands_in = [form.derivation.most_off_pct is not None for form in metric.forms]
        assert stands_in == sorted(stands_in), metric.concept


def test_no_concept_is_derived_from_itself() -> None:
    for metric in TABLE.metrics:
        own = {alternative.name for alternative in metric.alternatives}
        assert not any(own.intersection(form.names) for form in metric.forms), metric.concept


def test_the_time_under_ncu_is_never_derived() -> None:
    assert TABLE.by_concept["duration"].forms == ()


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["cutlass", "esmm", "hyperspec", "llm.c", "mistic", "ncar"])
def test_each_form_is_as_near_to_the_counter_as_the_file_says(reports: Path, folder: str) -> None:
    """Over launches of public reports that carry the counter and what a form of it needs."""
    farthest: dict[tuple[str, str], float] = defaultdict(float)
    for path in sorted((reports / folder).glob("*.ncu-rep")):
        try:
            report = reports_read.read_report(path)
        except ProfilerError:
            continue
        chip = chip_of(report.compute_capability)
        for launch in report.launches:
            for metric in TABLE.of(Evidence.MEASURED):
                numbers = [launch.values.number(name) for name in metric.names_for(chip)]
                truth = next((number for number in numbers if number is not None), None)
                for form in metric.forms_for(chip) if truth else ():
                    if (value := form.read(launch.values, metric.unit)) and value.number is not None:
                        off = 100 * abs(value.number - truth) / truth if truth else 0.0
                        key = (metric.concept, form.name)
                        farthest[key] = max(farthest[key], off)
    assert farthest
    claimed = {
        (metric.concept, form.name): form.derivation.most_off_pct or 0.05
        for metric in TABLE.metrics
        for form in metric.forms
    }
    assert {key: off for key, off in farthest.items() if off > claimed[key]} == {}


# --- what a launch has


def test_the_counter_itself_wins_over_every_form(tmp_path: Path) -> None:
    table = table_of(tmp_path, ELAPSED, SUM_FORM)
    both = values(smsp__cycles_elapsed__DOT__avg=100.0, smsp__cycles_elapsed__DOT__sum=4e5) | {SMS: Value(10)}
    name, value = table.resolve(table.metrics[0], both, "sm_80")
    assert (name, value.number, value.derivation) == ("smsp__cycles_elapsed.avg", 100.0, None)


def test_without_the_counter_the_first_form_with_all_its_numbers_is_shown_with_its_formula(
    tmp_path: Path,
) -> None:
    table = table_of(tmp_path, ELAPSED, "elapsed = sm__cycles_elapsed.avg", SUM_FORM)
    held = pack_values(values(smsp__cycles_elapsed__DOT__sum=4e5) | {SMS: Value(10)})
    name, value = table.resolve(table.metrics[0], held, "sm_80")
    formula = SUM_FORM.partition("= ")[2]
    assert name == f"derived from {formula}"
    assert value == Value(1e4, "cycle", derivation=Derivation(formula))
    assert formatting.as_json(value) == {"value": 1e4, "unit": "cycle", "derived_from": formula}
    assert formatting.label("elapsed cycles", value) == "elapsed cycles (derived)"


def test_a_stand_in_says_how_far_it_may_be_off(tmp_path: Path) -> None:
    table = table_of(tmp_path, ELAPSED, "elapsed ~ 10.3 % = gpc__cycles_elapsed.max")
    name, value = table.resolve(table.metrics[0], values(gpc__cycles_elapsed__DOT__max=5.0), None)
    assert name == "stand-in: gpc__cycles_elapsed.max, seen up to 10.3 % off"
    assert formatting.as_json(value)["most_off_pct"] == 10.3
    assert formatting.label("elapsed cycles", value) == "elapsed cycles (stand-in)"


@pytest.mark.parametrize(
    "sum_of_cycles",
    [
        pytest.param(Value(None, state=State.FAILED), id="failed"),
        pytest.param(Value(None, state=State.INSTANCES_ONLY), id="instances only"),
        pytest.param(Value(None, text="many"), id="a text"),
        pytest.param(Value(0.0), id="zero, which no cycles are"),
        pytest.param(Value(float("1e400")), id="infinite"),
        pytest.param(Value(4e5, "Kbyte"), id="in a scaled unit"),
        pytest.param(Value(-4e5), id="negative"),
    ],
)
def test_missing_stays_missing_where_a_needed_number_is_no_number(
    tmp_path: Path, sum_of_cycles: Value
) -> None:
    table = table_of(tmp_path, ELAPSED, SUM_FORM)
    held = {"smsp__cycles_elapsed.sum": sum_of_cycles, SMS: Value(10)}
    name, value = table.resolve(table.metrics[0], held, "sm_80")
    assert (name, value.number) == ("smsp__cycles_elapsed.avg", None)
    assert value.state is State.NOT_COLLECTED


def test_a_division_by_zero_is_missing_and_a_part_that_is_zero_is_none(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        "bandwidth | DRAM bandwidth | byte/s | - | 2% | memory | lean | dram__bytes.sum.per_second",
        "bandwidth = (dram__bytes_read.sum + dram__bytes_write.sum) / gpu__time_duration.sum * 1e9",
    )
    held = values(dram__bytes_read__DOT__sum=0, dram__bytes_write__DOT__sum=0)
    for duration, expected in ((0.0, None), (10.0, 0.0)):
        held["gpu__time_duration.sum"] = Value(duration, "ns")
        assert table.resolve(table.metrics[0], held, None)[1].number == expected


def test_a_counter_that_failed_says_so_and_nothing_takes_its_place(tmp_path: Path) -> None:
    table = table_of(tmp_path, ELAPSED, SUM_FORM)
    held = values(smsp__cycles_elapsed__DOT__avg=None, smsp__cycles_elapsed__DOT__sum=4e5) | {SMS: Value(10)}
    name, value = table.resolve(table.metrics[0], held, "sm_80")
    assert (name, value.state) == ("smsp__cycles_elapsed.avg", State.FAILED)


def test_a_form_holds_on_its_chips_and_not_where_the_chip_has_not_the_concept(tmp_path: Path) -> None:
    table = table_of(
        tmp_path,
        ELAPSED.replace(".avg", ".avg@sm_80 sm_90"),
        "elapsed = sm__cycles_elapsed.avg @sm_90",
        "elapsed ~ 1% = gpc__cycles_elapsed.max",
    )
    held = values(sm__cycles_elapsed__DOT__avg=1.0, gpc__cycles_elapsed__DOT__max=2.0)
    numbers = {chip: table.resolve(table.metrics[0], held, chip)[1].number for chip in ("sm_90", "sm_80")}
    assert numbers == {"sm_90": 1.0, "sm_80": 2.0}
    assert table.resolve(table.metrics[0], held, "sm_70")[1].state is State.NOT_AVAILABLE


@pytest.mark.parametrize(
    ("block", "blocks", "is_given"),
    [
        (128, 1, True),  # a warp for each of four schedulers
        (32, 31, False),  # one warp on an SM: the SM counts four times what its schedulers do on average
        (64, 7.5 * 40, True),  # several blocks on an SM
        (96, 40, False),
        (None, None, True),  # nobody knows
    ],
)
def test_an_sm_stands_for_its_schedulers_where_each_has_a_warp(
    block: float | None, blocks: float | None, is_given: bool
) -> None:
    held = values(sm__cycles_active__DOT__avg=8.0, sm__cycles_elapsed__DOT__avg=9.0) | {SMS: Value(40)}
    if block and blocks:
        held |= {"launch__block_size": Value(block), "launch__grid_size": Value(blocks)}
    numbers = {
        concept: TABLE.resolve(TABLE.by_concept[concept], held, "sm_80")[1].number
        for concept in ("cycles_active", "cycles_elapsed")
    }
    assert numbers == {"cycles_active": 8.0 if is_given else None, "cycles_elapsed": 9.0}


def test_active_cycles_follow_from_what_was_issued_and_how_often() -> None:
    held = values(
        smsp__inst_issued__DOT__sum=1e6,
        smsp__issue_active__DOT__avg__DOT__pct_of_peak_sustained_active=25.0,
        sm__cycles_active__DOT__avg=9e4,
    ) | {SMS: Value(10)}
    _, value = TABLE.resolve(TABLE.by_concept["cycles_active"], held, "sm_80")
    assert (value.number, value.derivation is not None and value.derivation.is_stand_in) == (1e5, False)


def test_a_sector_of_l2_is_32_bytes() -> None:
    """Thor's reports have the bytes alone: 268.6 MB are the sectors that a fill of 256 MiB writes."""
    metric = TABLE.by_concept["l2_sectors"]
    stored = pack_values(values(lts__t_bytes__DOT__sum=Value(268_637_408.0, "byte")))
    _, value = TABLE.resolve(metric, stored, "sm_110")
    assert (value.number, value.unit) == (8_394_919.0, "sector")
    assert value.derivation is not None
    assert not value.derivation.is_stand_in


def test_the_bandwidth_of_dram_follows_from_its_bus_its_clock_and_its_share() -> None:
    held = values(
        gpu__dram_throughput__DOT__avg__DOT__pct_of_peak_sustained_elapsed=50.0,
        dram__cycles_elapsed__DOT__avg__DOT__per_second=1.2e9,
        device__attribute_global_memory_bus_width=5120,
    )
    numbers = [
        TABLE.resolve(TABLE.by_concept[concept], held, chip)[1].number
        for concept in ("roof_dram_peak", "dram_bandwidth")
        for chip in ("sm_80", "sm_120")  # of the newest chips no report has shown it
    ]
    assert numbers == [1280.0, None, 1280.0 * 1.2e9 / 2, None]


def test_only_stand_ins_between_an_sm_and_its_schedulers_ask_for_the_size_of_a_launch() -> None:
    between = {metric.concept for metric in TABLE.metrics for form in metric.forms if form.between_units}
    assert between == {
        "cycles_active", "sm_cycles_active", "occupancy", "warps_active", "sm_warps_active",
        "issue_active", "no_eligible", "warp_latency",
    }  # fmt: skip


# --- two launches


def test_a_pair_is_read_by_the_best_form_that_both_have(tmp_path: Path) -> None:
    table = table_of(tmp_path, ELAPSED, SUM_FORM, "elapsed ~ 10.3% = gpc__cycles_elapsed.max")
    a = values(smsp__cycles_elapsed__DOT__avg=10.0, gpc__cycles_elapsed__DOT__max=11.0)
    b = values(smsp__cycles_elapsed__DOT__sum=480.0, gpc__cycles_elapsed__DOT__max=12.5) | {SMS: Value(10)}
    (name_a, value_a), (name_b, value_b) = table.resolve_pair(table.metrics[0], a, "sm_80", b, "sm_80")
    assert name_a == name_b == "stand-in: gpc__cycles_elapsed.max, seen up to 10.3 % off"
    assert (value_a.number, value_b.number) == (11.0, 12.5)


def test_a_counter_and_a_stand_in_keep_their_own_names_where_no_form_is_common(tmp_path: Path) -> None:
    table = table_of(tmp_path, ELAPSED, "elapsed ~ 10.3% = gpc__cycles_elapsed.max")
    a, b = values(smsp__cycles_elapsed__DOT__avg=10.0), values(gpc__cycles_elapsed__DOT__max=10.0)
    (name_a, _), (name_b, _) = table.resolve_pair(table.metrics[0], a, None, b, None)
    assert (name_a, name_b[:8]) == ("smsp__cycles_elapsed.avg", "stand-in")


# --- reading a file


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("elapses = sm__cycles_elapsed.avg", "no concept 'elapses': did you mean elapsed?"),
        ("elapsed = abs(sm__cycles_elapsed.avg)", "write ncu names and numbers with"),
        ("elapsed = sm__cycles_elapsed.avg ** 2", "write ncu names and numbers with"),
        ("elapsed = __import__('os').path", "write ncu names and numbers with"),
        ("elapsed = sm__cycles_elapsed.avg *", "is no formula"),
        ("elapsed = 4 * 5", "names no ncu metric"),
        ("elapsed =", "is no formula"),
        ("elapsed ~ much = sm__cycles_elapsed.avg", "write how far the stand-in can be off"),
        ("elapsed = sm__cycles_elapsed.avg @sm_91", "unknown chip 'sm_91'"),
        ("elapsed = sm__cycles_elapsed.avg @", "names no chip"),
        ("= sm__cycles_elapsed.avg", "write concept = formula"),
    ],
)
def test_a_mistake_in_a_form_names_its_line(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(BadMetricsFile, match=r"metrics\.txt:2: .*" + re.escape(message)):
        table_of(tmp_path, ELAPSED, line)


def test_a_form_written_twice_names_both_lines(tmp_path: Path) -> None:
    with pytest.raises(BadMetricsFile, match=r"metrics\.txt:3: elapsed has this form on line 2 already"):
        table_of(tmp_path, ELAPSED, SUM_FORM, SUM_FORM)


def test_only_what_ncu_measures_has_forms(tmp_path: Path) -> None:
    static = "regs | registers | | - | 0% | static | lean | static__registers"
    with pytest.raises(BadMetricsFile, match="regs is static"):
        table_of(tmp_path, static, "regs = launch__registers_per_thread")


def test_the_check_of_names_names_the_line_of_a_form_with_a_wrong_name(tmp_path: Path) -> None:
    if not chip_metrics.is_library_available():
        pytest.skip("NVIDIA's library does not load here: pip install ncu-report, on Linux")
    table = table_of(tmp_path, ELAPSED, "elapsed = sm__cycles_elapsd.avg")
    (problem,) = chip_metrics.check_names(table)
    assert ":2: no chip has a metric sm__cycles_elapsd.avg: did you mean sm__cycles_elapsed.avg?" in problem
