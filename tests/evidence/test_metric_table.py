"""metrics.txt itself, what a mistake in it is answered with, and which value a launch shows for a concept."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from profiler.errors import BadMetricsFile, Exit
from profiler.evidence import metric_table
from profiler.evidence.gpu_arch import ARCHITECTURES, chip_of
from profiler.evidence.metric_table import Alternative, Metric, MetricTable
from profiler.evidence.values import NOT_COLLECTED, State, Value, Values, pack_values

TABLE = metric_table.load_metrics()
GOOD = "duration | ncu duration | ns | lower | 2% | time | lean | gpu__time_duration.sum"
FAILED = Value(None, "ns", state=State.FAILED)


def table_of(tmp_path: Path, *lines: str) -> MetricTable:
    return metric_table.load_metrics(written(tmp_path, *lines))


def written(tmp_path: Path, *lines: str) -> Path:
    path = tmp_path / "metrics.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def metric_of(*alternatives: Alternative) -> Metric:
    return Metric("c", "label", "ns", "lower", 0.02, None, "time", "lean", alternatives, 1)


# --- the file we ship


def test_the_shipped_file_has_every_group_of_the_design_in_its_order() -> None:
    assert TABLE.groups == metric_table.GROUPS
    assert len(TABLE.metrics) >= 45


def test_the_headline_concepts_are_lean_and_judged_as_the_design_says() -> None:
    better = {
        "duration": "lower",
        "tensor_busy": "higher",
        "shared_conflicts": "lower",
        "shared_excess": "lower",
        "occupancy": "-",
    }
    assert {concept: TABLE.by_concept[concept].better for concept in better} == better
    assert {TABLE.by_concept[concept].tier for concept in better} == {"lean"}
    assert TABLE.by_concept["registers"].better == "-"


def test_the_order_of_the_file_is_the_order_of_the_table() -> None:
    lines = [metric.line for metric in TABLE.metrics]
    assert lines == sorted(lines)


@pytest.mark.parametrize("chip", ARCHITECTURES)
def test_every_term_of_the_time_identity_is_lean_on_every_chip(chip: str) -> None:
    lean = {
        metric.names_for(chip)[0]
        for metric in TABLE.metrics
        if metric.tier == "lean" and metric.names_for(chip)
    }
    assert lean >= {
        "gpu__time_duration.sum",
        "smsp__inst_issued.sum",
        "smsp__average_warp_latency_per_inst_issued.ratio",
        "smsp__warps_active.avg.per_cycle_active",
        "device__attribute_multiprocessor_count",
        "device__attribute_num_schedulers_per_multiprocessor",
        "smsp__cycles_active.avg",
        "smsp__cycles_elapsed.avg",
        "sm__cycles_active.avg",
        "sm__cycles_elapsed.avg",
        "gpc__cycles_elapsed.avg.per_second",
    }


def test_the_traps_of_each_architecture_are_respected() -> None:
    first = {chip: TABLE.by_concept["tensor_busy"].names_for(chip)[0] for chip in ("sm_89", "sm_90")}
    assert "type_hmma_hgmma" in first["sm_90"]
    assert "cycles_active_v2" in first["sm_89"]
    assert "subpipe_hmma" in TABLE.by_concept["tensor_float_active"].names_for("sm_100")[0]
    assert TABLE.by_concept["dram_read"].names_for("sm_120")[0] == "dram__bytes_op_read.sum"
    assert TABLE.by_concept["stall_imc_miss"].names_for("sm_100") == ()
    chips = [chip for chip, row in ARCHITECTURES.items() if row.ncu_chip]
    assert [chip for chip in chips if TABLE.by_concept["stall_gmma"].names_for(chip)] == ["sm_90"]
    assert TABLE.by_concept["shared_conflicts_cp_async"].names_for("sm_86")[0].startswith("smsp__sass_")


def test_a_share_of_active_and_a_share_of_elapsed_cycles_are_never_one_concept() -> None:
    for metric in TABLE.metrics:
        shares = {one.name.rsplit("_", 1)[-1] for one in metric.alternatives if ".pct_of_peak" in one.name}
        assert len(shares) <= 1, metric.concept


# --- reading a file


def test_comments_blank_lines_and_a_byte_order_mark_say_nothing(tmp_path: Path) -> None:
    table = table_of(tmp_path, "\ufeff# a comment", "", GOOD + "  # why", "   ")
    assert [metric.concept for metric in table.metrics] == ["duration"]
    assert table.metrics[0].alternatives == (Alternative("gpu__time_duration.sum"),)
    assert table.metrics[0].line == 3


def test_a_bare_name_is_captured_and_not_a_metric(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD, "sm__cycles_active.avg")
    assert table.captured == ("sm__cycles_active.avg",)
    assert table.captured_lines == (2,)
    assert len(table.metrics) == 1


def test_alternatives_keep_their_order_and_their_chips(tmp_path: Path) -> None:
    table = table_of(tmp_path, GOOD.replace("gpu__time_duration.sum", "a__x.sum@sm_89 sm_90, a__y.sum"))
    metric = table.metrics[0]
    assert metric.alternatives == (
        Alternative("a__x.sum", frozenset({"sm_89", "sm_90"})),
        Alternative("a__y.sum"),
    )
    assert metric.names_for("sm_90") == ("a__x.sum", "a__y.sum")
    assert metric.names_for("sm_80") == ("a__y.sum",)
    assert metric.names_for(None) == ("a__x.sum", "a__y.sum")


@pytest.mark.parametrize(
    ("cell", "unit", "fraction", "points"),
    [
        ("2%", "ns", 0.02, None),
        ("0.5%", "%", 0.005, None),
        ("0.02", "ns", 0.02, None),
        ("1.5pp", "%", 0.0, 1.5),
    ],
)
def test_a_threshold_is_relative_or_in_percentage_points(
    tmp_path: Path, cell: str, unit: str, fraction: float, points: float | None
) -> None:
    metric = table_of(tmp_path, GOOD.replace("2%", cell).replace("| ns |", f"| {unit} |")).metrics[0]
    assert metric.threshold == pytest.approx(fraction)
    assert metric.threshold_pp == points


def test_a_threshold_may_name_what_the_metric_is_a_part_of(tmp_path: Path) -> None:
    whole = GOOD.replace("duration |", "whole |", 1)
    parts = [
        GOOD.replace("duration |", f"{concept} |", 1).replace("2%", cell)
        for concept, cell in (("below", "5%, 1% of whole"), ("tight", "5% ,0.5%  of  whole"))
    ]
    table = table_of(tmp_path, *parts, whole)
    told = {metric.concept: (metric.threshold, metric.whole_share, metric.whole) for metric in table.metrics}
    assert told["below"] == (pytest.approx(0.05), pytest.approx(0.01), "whole"), "it may stand further down"
    assert told["tight"] == (pytest.approx(0.05), pytest.approx(0.005), "whole")
    assert told["whole"] == (pytest.approx(0.02), 0.0, "")
    capacity = table_of(tmp_path, GOOD.replace("2%", "2%, 1% of dram_capacity")).metrics[0]
    assert capacity.whole == "dram_capacity", "computed, so no line declares it"


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        (
            GOOD.replace("2%", "2%, 1% of cycle_count"),
            "is a part of cycle_count, which is no concept: name a",
        ),
        (GOOD.replace("2%", "2%, 1% of dram_capacty"), "no concept: did you mean dram_capacity?"),
        (GOOD.replace("2%", "2%, 1% of duration"), "duration is no part of itself"),
        (GOOD.replace("2%", "2%, 1 of cycles"), "'1 of cycles' after the threshold: write 1% of CONCEPT"),
        (GOOD.replace("2%", "2%, 0% of cycles"), "'0% of cycles' after the threshold"),
        (GOOD.replace("2%", "2%, 100% of cycles"), "'100% of cycles' after the threshold"),
        (GOOD.replace("2%", "2%,"), "'' after the threshold: write 1% of CONCEPT"),
        (GOOD.replace("| ns |", "| % |").replace("2%", "1pp, 1% of cycles"), "beside percentage points"),
        (GOOD.replace("lower", "lowr"), "unknown better 'lowr': did you mean lower?"),
        (GOOD.replace("| time", "| tme"), "unknown group 'tme': did you mean time?"),
        (GOOD.replace("lean", "ful"), "unknown tier 'ful': did you mean full?"),
        (GOOD + "@sm_91", "unknown chip 'sm_91': write one of sm_70"),
        (GOOD + "@", "names no chip"),
        (GOOD.replace("| ns |", "| us |"), "unit 'us' is scaled: write ncu's base unit"),
        (GOOD.replace("2%", "2pp"), "percentage points need the unit %"),
        (GOOD.replace("2%", "5"), "threshold '5': write 2%"),
        (GOOD.replace("2%", "fast"), "threshold 'fast': write 2%"),
        (GOOD.replace("duration |", "Duration |", 1), "concept 'Duration': write small letters"),
        (GOOD.replace("ncu duration", ""), "duration has no label"),
        (GOOD.replace("gpu__time_duration.sum", "regex:gpu__.*"), "regex: stands for several metrics"),
        (GOOD.replace("gpu__time_duration.sum", "group:memory__chart"), "group: stands for several metrics"),
        (GOOD.replace("gpu__time_duration.sum", ""), "an ncu metric is missing"),
        (GOOD + ", ", "an ncu metric is missing"),
        (GOOD + ", gpu__time_duration.sum@sm_90", "gpu__time_duration.sum stands twice"),
        (GOOD + " extra", "is not an ncu metric name"),
        (GOOD + " | more", "9 cells, not 8"),
        ("duration | ns", "2 cells, not 8: write concept | label"),
        ("regex:smsp__.*", "regex: stands for several metrics"),
        ("two words", "is not an ncu metric name"),
    ],
)
def test_a_mistake_is_one_line_that_names_file_and_line(tmp_path: Path, line: str, answer: str) -> None:
    path = written(tmp_path, "# first", "", line)
    with pytest.raises(BadMetricsFile) as caught:
        metric_table.load_metrics(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert answer in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == Exit.UNUSABLE_INPUT


def test_a_metric_declared_twice_names_both_lines(tmp_path: Path) -> None:
    with pytest.raises(BadMetricsFile, match=r"metrics\.txt:2: concept duration stands on line 1 already"):
        table_of(tmp_path, GOOD, GOOD)


def test_one_mistake_does_not_hide_the_next(tmp_path: Path) -> None:
    path = written(tmp_path, GOOD, GOOD, "sm__x.sum", GOOD.replace("lean", "ful"))
    table, problems = metric_table.load_with_problems(path)
    assert [problem.split(": ")[0] for problem in problems] == [f"{path}:2", f"{path}:4"]
    assert len(table.metrics) == 1
    assert table.captured == ("sm__x.sum",)
    with pytest.raises(BadMetricsFile, match=r"and 1 more: profiler list metrics --check"):
        metric_table.load_metrics(path)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("", "x" * 300_000), ":2: a line of 300,000 characters, and 4,096 are read"),
        (("",) * 5001, ":5001: a metrics file has at most 5,000 lines"),
        (("x" * 4000,) * 300, ": over 1 MiB, so no metrics file"),
        (("duration = " + "+".join(["a"] * 2000),), ":1: a formula of 3,999 characters, and 1,000 are read"),
    ],
)
def test_a_file_line_or_formula_that_is_too_long_is_one_line(
    tmp_path: Path, lines: tuple[str, ...], said: str
) -> None:
    path = written(tmp_path, *lines)
    with pytest.raises(BadMetricsFile) as refused:
        metric_table.load_metrics(path)
    assert str(refused.value).startswith(f"{path}{said}")
    assert "\n" not in str(refused.value)


def test_a_form_with_many_blanks_takes_no_time(tmp_path: Path) -> None:
    path = written(tmp_path, *["a" + " " * 4000 + "b = c"] * 200, *["a ~" + " " * 4000 + "b = c"] * 50)
    began = time.process_time()
    _, problems = metric_table.load_with_problems(path)
    assert len(problems) == 250
    assert time.process_time() - began < 2


def test_a_file_that_is_absent_empty_or_not_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadMetricsFile, match="No such file"):
        metric_table.load_metrics(tmp_path / "none.txt")
    with pytest.raises(BadMetricsFile, match=":1: no metric in this file"):
        table_of(tmp_path, "# nothing")
    (tmp_path / "bytes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadMetricsFile, match="not UTF-8"):
        metric_table.load_metrics(tmp_path / "bytes.txt")


# --- which value a launch shows


def test_the_first_alternative_with_a_number_wins_over_an_earlier_failed_one() -> None:
    metric = metric_of(Alternative("a__new.sum"), Alternative("a__old.sum"))
    values = pack_values({"a__new.sum": FAILED, "a__old.sum": Value(7.0, "ns")})
    assert MetricTable.resolve(metric, values, "sm_90") == ("a__old.sum", Value(7.0, "ns"))


def test_without_a_number_the_first_carried_name_shows_its_state() -> None:
    metric = metric_of(Alternative("a__new.sum"), Alternative("a__old.sum"))
    only = Value(None, "", state=State.INSTANCES_ONLY)
    assert MetricTable.resolve(metric, pack_values({"a__old.sum": only}), None) == ("a__old.sum", only)


def test_a_launch_without_the_name_says_not_collected_and_never_zero() -> None:
    metric = metric_of(Alternative("a__x.sum"))
    name, value = MetricTable.resolve(metric, pack_values({"b__y.sum": Value(0.0)}), "sm_90")
    assert (name, value) == ("a__x.sum", NOT_COLLECTED)
    assert value.number is None


def test_a_chip_without_any_name_for_the_concept_says_not_available() -> None:
    metric = metric_of(Alternative("a__x.sum", frozenset({"sm_90"})))
    values = pack_values({"a__x.sum": Value(1.0, "ns")})
    assert MetricTable.resolve(metric, values, "sm_100")[1].state is State.NOT_AVAILABLE
    assert MetricTable.resolve(metric, values, "sm_90")[1].number == 1.0


def test_a_zero_is_a_number() -> None:
    metric = metric_of(Alternative("a__x.sum"), Alternative("a__y.sum"))
    values = pack_values({"a__x.sum": Value(0.0, "ns"), "a__y.sum": Value(5.0, "ns")})
    assert MetricTable.resolve(metric, values, None)[0] == "a__x.sum"


@pytest.mark.parametrize("chip", ["sm_61", "sm_999", "gfx942"])
def test_a_chip_that_the_table_does_not_list_hides_no_number(chip: str) -> None:
    for metric in TABLE.metrics:
        for one in metric.alternatives:
            found = TABLE.resolve(metric, pack_values({one.name: Value(42.5, metric.unit)}), chip)
            assert found == (one.name, Value(42.5, metric.unit))
    busy = TABLE.by_concept["tensor_busy"]
    assert TABLE.resolve(busy, pack_values({}), chip)[1] == NOT_COLLECTED


@pytest.mark.parametrize(("capability", "chip"), [("9.0", "sm_90"), ("12.0", "sm_120"), ("7.5", "sm_75")])
def test_a_compute_capability_names_its_chip(capability: str, chip: str) -> None:
    assert chip_of(capability) == chip


# --- real reports, by what NVIDIA's own command line printed of them


def oracle(reports: Path, name: str) -> list[tuple[str, Values]]:
    """Chip and values of every launch in one raw CSV; what the CSV leaves empty is left out."""
    with (reports / "oracle" / f"{name}.ncu-rep.raw.csv").open(encoding="utf-8", newline="") as file:
        names, units, *rows = csv.reader(file)
    launches = []
    for row in rows:
        values = {
            name: value
            for name, unit, cell in zip(names, units, row, strict=True)
            if (value := number(cell, unit))
        }
        launches.append((chip_of(row[names.index("CC")]), pack_values(values)))
    return launches


def number(cell: str, unit: str) -> Value | None:
    if cell == "nan":
        return Value(None, unit, state=State.FAILED)
    try:
        return Value(float(cell.replace(",", "")), unit)
    except ValueError:
        return None


@pytest.mark.parametrize(
    ("report", "chip", "at_least"),
    [
        ("ncar__MW_Baseline", "sm_70", 83),
        ("hyperspec__profile", "sm_75", 36),
        ("cutlass__report75", "sm_80", 91),
        ("mistic__prof1", "sm_80", 46),
        ("esmm__profile@a62323b2", "sm_86", 33),
        ("llm.c__adamw_coalsecing_shared", "sm_86", 91),
    ],
)
def test_a_real_report_of_any_age_shows_most_of_what_it_holds(
    reports: Path, report: str, chip: str, at_least: int
) -> None:
    for found, values in oracle(reports, report):
        assert found == chip
        resolved = [TABLE.resolve(metric, values, chip)[1] for metric in TABLE.metrics]
        assert sum(value.number is not None for value in resolved) >= at_least


def test_the_units_declared_are_the_units_of_real_reports(reports: Path) -> None:
    wrong = set()
    for path in sorted((reports / "oracle").glob("*.raw.csv")):
        for chip, values in oracle(reports, path.name.removesuffix(".ncu-rep.raw.csv")):
            for metric in TABLE.metrics:
                name, value = TABLE.resolve(metric, values, chip)
                if value.number is not None and value.unit != metric.unit:
                    wrong.add((metric.concept, name, value.unit))
    excess = "derived__memory_l2_theoretical_sectors_global_excessive"
    assert wrong == {("global_excess", excess, "byte")}  # ncu's slip, which reading mends: see test_oracle


def test_a_collection_that_failed_resolves_to_failed_and_to_no_number(reports: Path) -> None:
    [(chip, values)] = oracle(reports, "mistic__profileHIGGS")
    resolved = {metric.concept: TABLE.resolve(metric, values, chip)[1] for metric in TABLE.metrics}
    assert resolved["duration"].state is State.FAILED
    assert resolved["occupancy"].state is State.FAILED


@pytest.mark.parametrize("report", ["cutlass__report75", "llm.c__adamw_coalsecing_shared"])
def test_the_lean_metrics_close_the_time_identity_on_a_real_report(reports: Path, report: str) -> None:
    for chip, values in oracle(reports, report):
        v = {metric.concept: TABLE.resolve(metric, values, chip)[1].number or 0.0 for metric in TABLE.metrics}
        schedulers = v["sm_count"] * v["schedulers_per_sm"]
        active = v["cycles_active"] / v["cycles_elapsed"]
        work = v["inst_issued"] * v["warp_latency"]
        predicted_ns = 1e9 * work / (v["warps_active"] * schedulers * active * v["sm_clock"])
        assert predicted_ns == pytest.approx(v["duration"], rel=0.05)
        stalls = sum(value for concept, value in v.items() if concept.startswith("stall_"))
        assert stalls == pytest.approx(v["warp_latency"], rel=0.06)
