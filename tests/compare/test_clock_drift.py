"""A launch under ncu whose clock moved and nothing else: equal in cycles, in every answer that judges it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from profiler import cli
from profiler.compare import resolve_names
from profiler.compare.clock_drift import clock_change
from profiler.compare.comparison import Comparison, compare
from profiler.compare.pair_comparison import MetricChange
from profiler.errors import Exit
from profiler.evidence.metric_table import MetricTable, load_metrics
from profiler.explain.explanation import explain
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.gate.finding import Outcome
from profiler.gate.judgement import judge
from profiler.history.overview import load_overview
from profiler.regressions.report import RegressionReport, find_regressions
from profiler.statistics.verdict import Verdict
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.ui.views import launch_pairs
from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile, Scalar, SessionDetails

DURATION, CYCLES = "gpu__time_duration.sum", "gpc__cycles_elapsed.max"
CLOCK, EXECUTED = "gpc__cycles_elapsed.avg.per_second", "smsp__inst_executed.sum"
READ, WRITTEN = "dram__bytes_read.sum", "dram__bytes_write.sum"
SECTORS = "lts__t_sectors.sum"
MEMORY_CLOCK, BUSY = (
    "dram__cycles_elapsed.avg.per_second",
    "dram__cycles_active.avg.pct_of_peak_sustained_elapsed",
)
GPU: dict[str, Metric | Scalar] = {
    # By these three NVIDIA's library knows the chip, and with it the units: a GA100.
    **{f"device__attribute_{name}": 0x170 for name in ("architecture", "chip", "implementation")},
    "device__attribute_display_name": "NVIDIA A100",
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 0,
}
BASE = {
    DURATION: 142_112.0,
    CYCLES: 214_000.0,
    CLOCK: 1_505_866_851.0,
    EXECUTED: 5_000_000,
    READ: 18_176,
    WRITTEN: 240_000_000,
    SECTORS: 9_000_000,
}
LOWER_CLOCK = {DURATION: 145_120.0, CYCLES: 213_786.0, CLOCK: 1_473_000_000.0}
SAME_IN_CYCLES = "same in cycles (−0.1 %); the time is +2.1 % because the SM clock was 2.2 % lower"


@pytest.fixture(scope="module")
def table() -> MetricTable:
    return load_metrics()


def report(path: Path, number: int = 0, **changes: float | None) -> Path:
    """A report of one launch: BASE, with what changed; None takes a counter out."""
    return write(path, {**BASE, **changes}, number)


def write(path: Path, counters: Mapping[str, float | None], number: int = 0) -> Path:
    metrics = GPU | {name: value for name, value in counters.items() if value is not None}
    launch = LaunchResult("fill", "fill(float*)", "_Z4fillPf", metrics, (1024, 1, 1))
    session = SessionDetails(created=1_730_000_000 + 3600 * number)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ReportFile([launch], session).to_bytes())
    return path


def compared(
    tmp_path: Path,
    table: MetricTable,
    changes: Mapping[str, float | None],
    base: Mapping[str, float | None] | None = None,
) -> Comparison:
    a = write(tmp_path / "a.ncu-rep", {**BASE, **(base or {})})
    b = write(tmp_path / "b.ncu-rep", {**BASE, **(base or {}), **changes}, 1)
    sides = resolve_names.resolve_all([str(a), str(b)], _no_store)
    return compare(sides[0], sides[1], table)


def _no_store() -> Store:
    raise AssertionError("two files need no store")


def duration(comparison: Comparison) -> MetricChange:
    (pair,) = comparison.pairs
    assert pair.headline is not None
    return pair.headline


def fails(comparison: Comparison, table: MetricTable) -> Exit:
    return judge([ComparisonPair("b", "a", comparison.a, comparison.b)], table).exit_code()


@pytest.mark.slow
def test_a_lower_clock_alone_is_same_and_the_sentence_has_cycles_time_and_clock(
    tmp_path: Path, table: MetricTable
) -> None:
    comparison = compared(tmp_path, table, {**LOWER_CLOCK})
    headline = duration(comparison)
    assert (headline.verdict, headline.reason) == (Verdict.SAME, SAME_IN_CYCLES)
    assert headline.change_pct == pytest.approx(2.117, abs=1e-3), "the time stands beside it"
    assert (headline.judged_by, headline.unreplicated) == ("cycles", False)
    assert comparison.pairs[0].verdict is Verdict.SAME


def test_a_higher_clock_alone_is_not_better(tmp_path: Path, table: MetricTable) -> None:
    faster = {DURATION: 138_000.0, CYCLES: 214_200.0, CLOCK: 1_552_000_000.0}
    headline = duration(compared(tmp_path, table, faster))
    assert headline.verdict is Verdict.SAME
    assert headline.reason.endswith("the time is −2.9 % because the SM clock was 3.1 % higher")


def test_a_slowdown_with_a_lower_clock_is_worse_since_its_cycles_moved(
    tmp_path: Path, table: MetricTable
) -> None:
    slower = {DURATION: 153_000.0, CYCLES: 225_000.0, CLOCK: 1_473_000_000.0}
    headline = duration(compared(tmp_path, table, slower))
    assert (headline.verdict, headline.judged_by) == (Verdict.WORSE, "")


# A reduction that keeps DRAM busy, run again while the memory clock was an eighth lower; the SM clock stayed.
BUSY_DRAM = {MEMORY_CLOCK: 8_000_000_000.0, BUSY: 96.1}
LOWER_MEMORY_CLOCK = {
    DURATION: BASE[DURATION] * 8 / 7,
    CYCLES: BASE[CYCLES] * 8 / 7,
    MEMORY_CLOCK: 7_000_000_000.0,
    BUSY: 95.8,
}


@pytest.mark.parametrize("is_slower", [True, False])
def test_a_launch_that_waits_for_memory_is_same_at_another_memory_clock(
    tmp_path: Path, table: MetricTable, is_slower: bool
) -> None:
    states = [BUSY_DRAM, {**BUSY_DRAM, **LOWER_MEMORY_CLOCK}]
    base, changes = states if is_slower else reversed(states)
    comparison = compared(tmp_path, table, {DURATION: BASE[DURATION], CYCLES: BASE[CYCLES], **changes}, base)
    headline = duration(comparison)
    assert (headline.verdict, headline.judged_by) == (Verdict.SAME, "memory_clock")
    times, clock, busy = (
        ("+14.3 %", "12.5 % lower", "96 and 96") if is_slower else ("−12.5 %", "14.3 % higher", "96 and 96")
    )
    assert headline.reason == (
        f"the time is {times} because the memory clock was {clock}, and DRAM was busy {busy} % of the time"
    )
    assert fails(comparison, table) is Exit.PASS


@pytest.mark.parametrize(
    "changes",
    [
        {BUSY: 70.0},  # something else sets its pace
        {MEMORY_CLOCK: 7_700_000_000.0},  # accounts for 4 of 14 %
        {WRITTEN: 274_000_000},  # it moves more
        {MEMORY_CLOCK: None},
    ],
    ids=str,
)
def test_a_memory_clock_that_does_not_account_for_the_time_excuses_nothing(
    tmp_path: Path, table: MetricTable, changes: Mapping[str, float | None]
) -> None:
    comparison = compared(tmp_path, table, {**LOWER_MEMORY_CLOCK, **changes}, BUSY_DRAM)
    headline = duration(comparison)
    assert (headline.verdict, headline.judged_by) == (Verdict.WORSE, "")
    assert fails(comparison, table) is Exit.REGRESSION


@pytest.mark.parametrize("missing", [CYCLES, CLOCK])
def test_where_cycles_or_clock_was_not_collected_the_other_says_the_clock_and_it_is_unclear(
    tmp_path: Path, table: MetricTable, missing: str
) -> None:
    headline = duration(compared(tmp_path, table, {**LOWER_CLOCK}, {missing: None}))
    assert (headline.verdict, headline.judged_by, headline.unreplicated) == (Verdict.UNCLEAR, "cycles", False)
    one_side = compared(tmp_path, table, {**LOWER_CLOCK, missing: None})
    assert duration(one_side).verdict is Verdict.UNCLEAR
    assert fails(one_side, table) is Exit.UNJUDGED


def test_eleven_per_cent_in_equal_cycles_without_a_clock_counter_are_unclear(
    tmp_path: Path, table: MetricTable
) -> None:
    slower = {DURATION: BASE[DURATION] * 1.11, CYCLES: BASE[CYCLES] * 0.999}
    comparison = compared(tmp_path, table, slower, {CLOCK: None})
    assert duration(comparison).verdict is Verdict.UNCLEAR
    assert fails(comparison, table) is Exit.UNJUDGED
    assert clock_change(0.11, -0.001) == pytest.approx(-0.1)
    faster = {DURATION: BASE[DURATION] / 1.11}
    assert duration(compared(tmp_path, table, faster, {CLOCK: None})).verdict is Verdict.UNCLEAR


@pytest.mark.parametrize(("time_factor", "cycle_factor"), [(1.35, 1.004), (1 / 1.2, 0.997)])
def test_another_clock_by_time_over_cycles_is_unclear_whichever_way_and_however_far(
    tmp_path: Path, table: MetricTable, time_factor: float, cycle_factor: float
) -> None:
    moved = {DURATION: BASE[DURATION] * time_factor, CYCLES: BASE[CYCLES] * cycle_factor}
    comparison = compared(tmp_path, table, moved, {CLOCK: None})
    assert duration(comparison).verdict is Verdict.UNCLEAR
    assert fails(comparison, table) is Exit.UNJUDGED


@pytest.mark.parametrize("missing", [CYCLES, CLOCK])
@pytest.mark.parametrize(
    "work", [{EXECUTED: 5_200_000}, {WRITTEN: 252_000_000}, {SECTORS: 9_500_000}], ids=str
)
def test_work_that_moved_is_worse_without_a_clock_counter_too(
    tmp_path: Path, table: MetricTable, missing: str, work: Mapping[str, float | None]
) -> None:
    comparison = compared(tmp_path, table, {**LOWER_CLOCK, **work}, {missing: None})
    assert duration(comparison).verdict is Verdict.WORSE


def test_more_cycles_without_a_clock_counter_are_worse(tmp_path: Path, table: MetricTable) -> None:
    slower = {DURATION: BASE[DURATION] * 1.11, CYCLES: BASE[CYCLES] * 1.10}
    assert duration(compared(tmp_path, table, slower, {CLOCK: None})).verdict is Verdict.WORSE


def test_without_cycles_and_clock_the_time_decides(tmp_path: Path, table: MetricTable) -> None:
    both = {CYCLES: None, CLOCK: None}
    assert duration(compared(tmp_path, table, {**LOWER_CLOCK}, both)).verdict is Verdict.WORSE
    assert duration(compared(tmp_path, table, {**LOWER_CLOCK, **both})).verdict is Verdict.WORSE


def test_without_any_count_of_work_cycles_and_clock_are_enough(tmp_path: Path, table: MetricTable) -> None:
    basic: Mapping[str, float | None] = {EXECUTED: None, READ: None, WRITTEN: None, SECTORS: None}
    assert duration(compared(tmp_path, table, {**LOWER_CLOCK}, basic)).judged_by == "cycles"


@pytest.mark.parametrize(
    "work", [{EXECUTED: 5_200_000}, {WRITTEN: 252_000_000}, {SECTORS: 9_500_000}], ids=str
)
def test_work_that_moved_too_keeps_the_verdict_on_the_time(
    tmp_path: Path, table: MetricTable, work: Mapping[str, float | None]
) -> None:
    """5 % more bytes take a memory-bound kernel 5 % longer, in equal cycles if the SM clock fell by 5 %."""
    assert duration(compared(tmp_path, table, {**LOWER_CLOCK, **work})).verdict is Verdict.WORSE


@pytest.mark.parametrize(
    "work", [{EXECUTED: 4_800_000}, {WRITTEN: 228_000_000}, {SECTORS: 8_500_000}], ids=str
)
def test_less_work_is_no_cause_of_more_time(
    tmp_path: Path, table: MetricTable, work: Mapping[str, float | None]
) -> None:
    comparison = compared(tmp_path, table, {**LOWER_CLOCK, **work})
    assert (duration(comparison).verdict, duration(comparison).judged_by) == (Verdict.SAME, "cycles")
    assert fails(comparison, table) is Exit.PASS
    memory = compared(tmp_path, table, {**LOWER_MEMORY_CLOCK, **work}, BUSY_DRAM)
    assert (duration(memory).verdict, duration(memory).judged_by) == (Verdict.SAME, "memory_clock")
    faster = {DURATION: 138_000.0, CYCLES: 214_200.0, CLOCK: 1_552_000_000.0, **work}
    assert duration(compared(tmp_path, table, faster)).verdict is Verdict.BETTER


def test_a_few_kilobytes_read_are_no_work_that_moved(tmp_path: Path, table: MetricTable) -> None:
    headline = duration(compared(tmp_path, table, {**LOWER_CLOCK, READ: 20_992}))
    assert headline.judged_by == "cycles", "of 240 MB that DRAM moved in all"


def test_cycles_that_follow_the_clock_at_one_time_are_no_verdict(tmp_path: Path, table: MetricTable) -> None:
    """Memory-bound: DRAM takes as long as before, and fewer cycles of a slower SM pass in that time."""
    for clock, cycles in ((1_355_000_000.0, 192_600.0), (1_656_000_000.0, 235_400.0)):
        comparison = compared(tmp_path, table, {DURATION: 142_300.0, CYCLES: cycles, CLOCK: clock})
        headline = duration(comparison)
        assert (headline.verdict, headline.judged_by) == (Verdict.SAME, "")
        assert fails(comparison, table) is Exit.PASS


def test_a_memory_bound_kernel_that_slowed_down_at_a_lower_clock_is_worse(
    tmp_path: Path, table: MetricTable
) -> None:
    """The SM clock fell by 10 %; DRAM time rose by 5 %: cycles fell, so they decide nothing."""
    slower = {DURATION: 149_200.0, CYCLES: 202_200.0, CLOCK: 1_355_000_000.0}
    assert duration(compared(tmp_path, table, slower)).verdict is Verdict.WORSE


def test_a_clock_that_does_not_account_for_the_time_decides_nothing(
    tmp_path: Path, table: MetricTable
) -> None:
    """Counters of several replay passes: the cycles agree, and time and clock were seen in other passes."""
    assert duration(compared(tmp_path, table, {DURATION: 160_000.0, CLOCK: 1_473e6})).verdict is Verdict.WORSE
    assert duration(compared(tmp_path, table, {DURATION: 145_120.0, CLOCK: 1_600e6})).verdict is Verdict.WORSE
    assert duration(compared(tmp_path, table, {DURATION: 145_120.0})).verdict is Verdict.WORSE


def test_a_clock_within_its_threshold_is_no_cause(tmp_path: Path, table: MetricTable) -> None:
    mostly_cycles = {DURATION: 145_300.0, CYCLES: 217_800.0, CLOCK: 1_499_000_000.0}
    assert duration(compared(tmp_path, table, mostly_cycles)).verdict is Verdict.WORSE


def test_clocks_that_were_locked_and_moved_all_the_same_are_judged_likewise(
    tmp_path: Path, table: MetricTable
) -> None:
    """A GPU that gets too hot falls below its base clock, whatever ncu asked for."""
    sides = compared(tmp_path, table, {**LOWER_CLOCK})
    assert sides.a.session.clock_control == sides.b.session.clock_control
    assert duration(sides).judged_by == "cycles"


def test_a_short_launch_whose_clock_moved_is_the_same_and_not_unclear(
    tmp_path: Path, table: MetricTable
) -> None:
    short: Mapping[str, float | None] = {DURATION: 14_211.0, CYCLES: 21_400.0}
    drifted = {DURATION: 14_512.0, CYCLES: 21_380.0, CLOCK: 1_473_000_000.0}
    assert duration(compared(tmp_path, table, drifted, short)).verdict is Verdict.SAME
    moved = {DURATION: 14_800.0, CYCLES: 22_300.0}
    assert duration(compared(tmp_path, table, moved, short)).verdict is Verdict.UNCLEAR


def test_gate_explanation_and_page_say_the_same(tmp_path: Path, table: MetricTable) -> None:
    comparison = compared(tmp_path, table, {**LOWER_CLOCK})
    verdicts = judge([ComparisonPair("b", "a", comparison.a, comparison.b)], table)
    assert verdicts.exit_code() is Exit.PASS
    (finding,) = [one for one in verdicts.of(Outcome.PASSED) if one.concept == "duration"]
    assert finding.line == f"ncu duration: 142 µs → 145 µs (+2.1 %), same: {SAME_IN_CYCLES}"
    (explanation,) = explain(comparison, table)
    assert explanation.verdict is Verdict.SAME
    assert explanation.sentence == f"142 µs → 145 µs: {SAME_IN_CYCLES}."
    assert SAME_IN_CYCLES in launch_pairs.notes(comparison)[0]
    assert SAME_IN_CYCLES in launch_pairs.verdict(comparison, comparison.pairs[0])


def test_the_command_says_it_in_text_markdown_and_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = [
        str(report(tmp_path / "a.ncu-rep")),
        str(write(tmp_path / "b.ncu-rep", {**BASE, **LOWER_CLOCK}, 1)),
    ]
    for arguments in (["compare", *names, "--fail"], ["compare", *names, "--markdown"], ["explain", *names]):
        assert cli.main(arguments) == 0
        assert SAME_IN_CYCLES in capsys.readouterr().out
    assert cli.main(["compare", *names, "--json"]) == 0
    (launch,) = json.loads(capsys.readouterr().out)["launches"]
    assert launch["verdict"] == "same"
    told = {change["concept"]: change.get("judged_by") for change in launch["metrics"]}
    assert (told["duration"], told["cycles"]) == ("cycles", None)


def regressions(data: Path, table: MetricTable) -> RegressionReport:
    store = open_store(str(data))
    found = find_regressions(store, table)
    store.close()
    return found


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 20])
def test_regressions_and_overview_agree(
    tmp_path: Path, table: MetricTable, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """Between the two newest runs, and by a step in a long history."""
    monkeypatch.delenv("PROFILER_DB", raising=False)

    def history(name: str, after: Mapping[str, float]) -> Path:
        for number in range(count):
            counters = {**BASE, **(after if number >= count // 2 else {})}
            counters[DURATION] *= 1 + 0.0005 * (number * 7 % 5)
            write(tmp_path / name / "fills" / f"v{number:02}.ncu-rep", {**counters}, number)
        data = tmp_path / f"{name}-data"
        import_paths([tmp_path / name / "fills"], data=str(data))
        return data

    slower = history("slower", {DURATION: 149_000.0, CYCLES: 224_000.0})
    assert [one.series.concept for one in regressions(slower, table).regressions] == ["duration"]
    drifted = history("drifted", LOWER_CLOCK)
    assert regressions(drifted, table).regressions == ()
    store = open_store(str(drifted))
    (cell,) = load_overview(store, table).cells
    store.close()
    expected = SAME_IN_CYCLES if count == 2 else "within 2 %"
    assert [(row.verdict, row.reason.partition(";")[0]) for row in cell.rows] == [
        (Verdict.SAME, expected.partition(";")[0])
    ]
