"""Insights on real launches: what is said, and that a counter which is missing never becomes advice."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from profiler.advice import what_changed
from profiler.advice.insights import (
    MAX_STATEMENTS,
    Insights,
    choose_launch,
    find_insights,
    launch_statements,
    rank_statements,
)
from profiler.advice.quantities import read_quantity
from profiler.advice.statement import (
    KINDS,
    LaunchMetrics,
    MetricInput,
    OpenQuestion,
    Statement,
)
from profiler.advice.subject import ComparedSide, Subject
from profiler.compare.comparison import compare
from profiler.compare.counter_noise import CounterNoise
from profiler.compare.latency import LatencyComparison
from profiler.compare.noise_model import UNKNOWN_NOISE, NoiseModel
from profiler.compare.resolve_names import side_of_report
from profiler.errors import UnknownName
from profiler.evidence import formatting, metric_table
from profiler.evidence.launch import Launch
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.side import Side
from profiler.evidence.values import NOT_COLLECTED, Evidence, State, Value, pack_values
from profiler.reports import read
from profiler.statistics.counters import Wobble
from profiler.statistics.decision import Decision, Interval
from profiler.statistics.live_pair import LIVE_PAIR
from profiler.statistics.noise_floor import STORED_BASELINE
from profiler.statistics.verdict import Verdict
from tests import made

TABLE = metric_table.load_metrics()
NAMES = {name for metric in TABLE.metrics for name in metric.names_for(None)}
REAL = (
    "cutlass/report75.ncu-rep",
    "cutlass/report80.ncu-rep",
    "llm.c/adamw_coalsecing_shared.ncu-rep",
    "ncar/MW_Baseline.ncu-rep",
    "ncar/MW_DivToMult.ncu-rep",
    "mistic/prof1.ncu-rep",
    "hyperspec/profile.ncu-rep",
    "esmm/profile@ee5ce738.ncu-rep",
)
ALIKE = ("cutlass/report75.ncu-rep", "ncar/MW_Baseline.ncu-rep")


@functools.cache
def side(path: Path) -> Side:
    return side_of_report(read.read_report(path), path.stem)


def of(path: Path, against: Path | None = None, kernel: str | None = None) -> Insights:
    b = side(path)
    cell = ComparedSide(b, compare(side(against), b, TABLE) if against else None)
    return find_insights(Subject(path.stem, cell, baseline=against.stem if against else None), TABLE, kernel)


def by_id(found: Insights) -> dict[str, Statement]:
    return {statement.id: statement for statement in found.statements}


def everything(
    b: Side, launch: Launch, a: Side | None = None, table: MetricTable = TABLE
) -> dict[str, Statement]:
    """Every statement on one launch by its id, before six of them are chosen."""
    statements = launch_statements(ComparedSide(b, compare(a, b, table) if a else None), launch, table)
    assert rank_statements(statements)[1] >= 0
    return {statement.id: statement for statement in statements if isinstance(statement, Statement)}


def slim(launch: Launch) -> Launch:
    """The launch with the values of metrics.txt and the device alone."""
    kept = {name: value for name, value in launch.values.items() if name in NAMES or "device__" in name}
    return replace(launch, values=pack_values(kept))


def spoilt(launch: Launch, in_every_way: bool = False) -> Iterator[tuple[str, Launch]]:
    """The launch without each of its counters in turn, and with each failed or beyond what can be true.

    Of the last two every counter has one, by turns, or both.
    """
    values = dict(launch.values)
    for place, name in enumerate(values):
        yield (
            name,
            replace(launch, values=pack_values({key: one for key, one in values.items() if key != name})),
        )
        failed = Value(None, values[name].unit, state=State.FAILED)
        if in_every_way or place % 2:
            yield name, replace(launch, values=pack_values({**values, name: failed}))
        if values[name].number is not None and (in_every_way or not place % 2):
            yield name, replace(launch, values=pack_values({**values, name: Value(-1.0, values[name].unit)}))
    yield "sass__inst_executed_per_opcode", replace(launch, opcodes={})


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    # Of two reports of a program, in which the same statements are made, one takes less time.
    [pytest.param(name, marks=pytest.mark.long if name in ALIKE else ()) for name in REAL],
)
@pytest.mark.parametrize("in_every_way", [False, pytest.param(True, marks=pytest.mark.long)])
def test_taking_any_counter_away_never_adds_advice(reports: Path, name: str, in_every_way: bool) -> None:
    whole = side(reports / name)
    launch = slim(whole.launches[0])
    levers = {statement.lever for statement in everything(whole, launch).values()}
    for gone, less in spoilt(launch, in_every_way):
        for statement in everything(whole, less).values():
            assert statement.lever is None or statement.lever in levers, (gone, statement.id, statement.lever)
            used = [metric for metric in statement.inputs if metric.name.partition("[")[0] == gone]
            assert not (statement.lever and used), (gone, statement.id)
            assert statement.valid is all(metric.valid for metric in statement.inputs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(1, 4))])
def test_nor_does_it_where_the_counters_say_something_else(made_reports: Path, seed: int) -> None:
    whole = side(made_reports / "llm.c/adamw_coalsecing_shared.ncu-rep")
    launch, dice = slim(whole.launches[0]), Random(seed)
    other = {
        name: one._replace(number=_elsewhere(one, dice)) if name in NAMES and one.number else one
        for name, one in launch.values.items()
    }
    launch = replace(
        launch, values=pack_values(other), opcodes={"FFMA": 9.0, "LDS": float(dice.randrange(30))}
    )
    # These counters contradict each other, so that what is derived from others would be another number.
    table = replace(TABLE, metrics=tuple(replace(metric, forms=()) for metric in TABLE.metrics))
    levers = {one.lever for one in everything(whole, launch, table=table).values()}
    assert levers != {None}
    for gone, less in spoilt(launch, in_every_way=seed > 0):
        for one in everything(whole, less, table=table).values():
            assert one.lever is None or one.lever in levers, (gone, one.id, one.lever)


def _elsewhere(value: Value, dice: Random) -> float:
    """A number of the same kind: any share of a peak, else up to three times more or less."""
    return dice.uniform(0, 100) if value.unit == "%" else float(value.number or 0) * 3 ** dice.uniform(-1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("swap", [False, pytest.param(True, marks=pytest.mark.long)])
@pytest.mark.parametrize("spoil", ["a", pytest.param("b", marks=pytest.mark.long)])
def test_nor_does_it_in_a_pair(made_reports: Path, swap: bool, spoil: str) -> None:
    names = ["MW_Baseline.ncu-rep", "MW_DivToMult.ncu-rep"]
    a, b = (side(made_reports / "ncar" / name) for name in (names[::-1] if swap else names))
    a, b = (
        replace(one, launches=tuple(slim(x) for x in one.launches if "279" in x.function)) for one in (a, b)
    )
    whole = everything(b, b.launches[0], a)
    levers = {one.lever for one in whole.values()}
    assert any(one.id.startswith("cause:") and one.lever for one in whole.values())
    for gone, less in spoilt((a if spoil == "a" else b).launches[0], in_every_way=swap):
        one_a = replace(a, launches=(less,)) if spoil == "a" else a
        one_b = replace(b, launches=(less,)) if spoil == "b" else b
        for one in everything(one_b, one_b.launches[0], one_a).values():
            assert one.lever is None or one.lever in levers, (gone, one.id, one.lever)


def test_without_any_counter_all_is_unknown_and_names_the_command_that_collects_it(reports: Path) -> None:
    whole = side(reports / "llm.c/adamw_coalsecing_shared.ncu-rep")
    bare = replace(whole.launches[0], values=pack_values({}), opcodes={})
    insights = find_insights(Subject("bare", ComparedSide(replace(whole, launches=(bare,)))), TABLE)
    assert {one.kind for one in insights.statements} == {"unknown"}
    assert {one.id for one in insights.statements} == {"limit", "waiting", "others"}
    for one in insights.statements:
        assert not one.valid
        assert one.lever is None
        assert "ncu --metrics " in one.text
        assert "metrics.txt" not in one.text
    waiting = by_id(insights)["waiting"]
    assert TABLE.by_concept["stall_long_scoreboard"].line in {one.line for one in waiting.inputs}


def test_a_kernel_at_drams_peak_is_not_told_to_prefetch(reports: Path) -> None:
    statements = by_id(of(reports / "llm.c/adamw_coalsecing_shared.ncu-rep"))
    assert statements["limit:memory"].text.startswith("DRAM limits this launch: 91.5 %")
    waiting = statements["waiting:long_scoreboard"]
    assert waiting.share is not None
    assert 0.8 < waiting.share <= 0.89
    assert waiting.lever is not None
    assert "fewer bytes" in waiting.lever


def test_a_kernel_that_waits_far_below_every_peak_is_told_to_prefetch(reports: Path) -> None:
    statements = by_id(of(reports / "cutlass/report80.ncu-rep"))
    assert "latency, not bandwidth" in statements["waiting:long_scoreboard"].text
    assert "cp.async" in (statements["waiting:long_scoreboard"].lever or "")
    volta = of(reports / "ncar/MW_Baseline.ncu-rep", kernel="279")
    assert "cp.async" not in (by_id(volta)["waiting:long_scoreboard"].lever or "cp.async"), "sm_70 has none"


def test_hardware_conflicts_without_excess_are_arbitration_and_ask_for_nothing(reports: Path) -> None:
    statement = by_id(of(reports / "llm.c/adamw_coalsecing_shared.ncu-rep"))["shared:arbitration"]
    assert (statement.kind, statement.lever, statement.valid) == ("no_action", None, True)
    assert "10.6 k hardware bank conflicts, but no excess" in statement.text


def test_conflicts_that_rose_while_the_excess_stayed_zero_stand_before_what_is_known_anyway(
    reports: Path,
) -> None:
    b = side(reports / "llm.c/adamw_coalsecing_shared.ncu-rep")
    name = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
    before = [
        replace(one, values=pack_values({**one.values, name: Value(7000.0, "")}))
        for one in map(slim, b.launches)
    ]
    cell = ComparedSide(b, compare(replace(b, launches=tuple(before)), b, TABLE))
    one = by_id(find_insights(Subject("b", cell), TABLE))["shared:arbitration"]
    assert "(baseline 7\u2009000)" in one.text
    assert one.lever is None
    assert one.rank == 0.5


def test_excess_wavefronts_ask_for_a_swizzle_and_without_the_excess_nothing_does(reports: Path) -> None:
    b = side(reports / "cutlass/report75.ncu-rep")
    launch = slim(b.launches[0])
    excess = "derived__memory_l1_wavefronts_shared_excessive"
    bad = replace(launch, values=pack_values({**launch.values, excess: Value(200_000.0, "")}))
    statement = everything(b, bad)["shared:excess"]
    assert statement.lever == "swizzle or pad the shared-memory tile"
    assert statement.share is not None
    assert 0 < statement.share < 0.1
    gone = replace(bad, values=pack_values({name: v for name, v in bad.values.items() if name != excess}))
    assert "shared:excess" not in everything(b, gone)
    assert not [
        statement
        for statement in everything(b, gone).values()
        if statement.lever and "swizzle" in statement.lever
    ]


def is_part(name: str, of: str, times: float) -> Callable[[dict[str, Value]], dict[str, Value]]:
    """One counter as so many times another that it is a part of."""
    return lambda values: {name: Value(times * float(values[of].number or 0), values[name].unit)}


def is_number(name: str, number: float) -> Callable[[dict[str, Value]], dict[str, Value]]:
    return lambda values: {name: values[name]._replace(number=number)}


LONG = "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio"
SHORT = "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio"
LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
WAVEFRONTS = "memory_l1_wavefronts_shared"
SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
THREADS = "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"


@pytest.mark.parametrize(
    ("spoil", "prefix"),
    [
        (is_part(LONG, LATENCY, 5), "waiting"),
        (is_part(SHORT, LATENCY, 5), "waiting"),
        (is_part("derived__memory_l1_wavefronts_shared_excessive", WAVEFRONTS, 3), "shared"),
        (is_part("derived__memory_l2_theoretical_sectors_global_excessive", SECTORS, 9), "sectors"),
        (is_number(THREADS, 0), "divergence"),
        (is_number(THREADS, 90), "divergence"),
    ],
)
def test_counters_that_contradict_each_other_carry_no_advice(
    reports: Path, spoil: Callable[[dict[str, Value]], dict[str, Value]], prefix: str
) -> None:
    b = side(reports / "llm.c/adamw_coalsecing_shared.ncu-rep")
    launch = slim(b.launches[0])
    values = dict(launch.values)
    changed = spoil(values)
    bad = replace(launch, values=pack_values({**values, **changed}))
    statements = launch_statements(ComparedSide(b), bad, TABLE)
    (question,) = [one for one in statements if isinstance(one, OpenQuestion) and one.id == prefix]
    assert {*changed} <= {one.name for one in question.invalid_inputs}
    assert {one.state for one in question.invalid_inputs if one.name in changed} == {"implausible"}
    assert not [
        one.id for one in statements if isinstance(one, Statement) and one.id.startswith(prefix) and one.lever
    ]


@pytest.mark.parametrize(
    "spoil",
    [
        is_part("sm__cycles_active.avg", "gpc__cycles_elapsed.max", 1.5),
        is_number("sm__cycles_active.avg", 0),
        is_number("launch__waves_per_multiprocessor", 0),
    ],
)
def test_cycles_and_waves_of_what_ran_contradict_where_they_are_zero_or_too_many(
    made_reports: Path, spoil: Callable[[dict[str, Value]], dict[str, Value]]
) -> None:
    launch = slim(side(made_reports / "llm.c/adamw_coalsecing_shared.ncu-rep").launches[0])
    assert read_quantity("idle_sms", LaunchMetrics(launch, TABLE)).number is not None
    values = dict(launch.values)
    bad = replace(launch, values=pack_values({**values, **spoil(values)}))
    reading = read_quantity("idle_sms", LaunchMetrics(bad, TABLE))
    assert reading.number is None
    assert {metric.state for metric in reading.inputs} == {"implausible"}


def test_every_number_in_the_words_on_the_pipes_is_among_the_metrics(reports: Path) -> None:
    side_of_279 = side(reports / "ncar/MW_Baseline.ncu-rep")
    launch = next(one for one in side_of_279.launches if "279" in one.function)
    name = "sm__pipe_fp64_cycles_active.avg.pct_of_peak_sustained_elapsed"
    busy = replace(launch, values=pack_values({**launch.values, name: Value(70.3, "%")}))
    statements = everything(side_of_279, busy)
    assert "the busiest part: FP64 pipe busy, 70.3 %" in statements["limit:compute"].text
    assert "pipe_fp64" in {metric.concept for metric in statements["limit:compute"].inputs}
    assert statements["fp64:fewer"].techniques == ("fewer instructions",)
    assert "fp64:slow" not in statements, "a V100 has FP64 at half the rate of FP32"


def test_tensor_cores_are_judged_by_the_opcodes_and_never_by_a_busy_counter(reports: Path) -> None:
    b = side(reports / "cutlass/report75.ncu-rep")
    launch = slim(b.launches[0])  # IMMA: its float tensor counter is 0
    assert "tensor:unused" not in everything(b, launch)
    fma = "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_elapsed"
    dram = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed"
    values = {**launch.values, fma: Value(45.0, "%"), dram: Value(10.0, "%")}
    scalar = replace(
        launch,
        opcodes={"FFMA": 700.0, "HFMA2.MMA": 50.0, "LDS": 250.0},
        values=pack_values(values),
    )
    lever = everything(b, scalar)["tensor:unused"].lever or ""
    assert lever.startswith("matrix products on the tensor cores: mma.sync (the precision")  # no wgmma
    starved = replace(scalar, values=pack_values({**values, dram: Value(80.0, "%")}))
    assert "tensor:unused" not in everything(b, starved), "DRAM is what limits"
    busy = "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed"
    idle = replace(scalar, opcodes={}, values=pack_values({**launch.values, busy: Value(0.0, "%")}))
    assert "tensor:unused" not in everything(b, idle)


def test_a_share_above_its_peak_is_implausible_and_carries_no_advice(reports: Path) -> None:
    whole = side(reports / "hyperspec/profile.ncu-rep")  # 104.7 % achieved occupancy
    launch = max(whole.launches, key=lambda one: one.values.value(OCCUPANCY).number or 0)
    metrics = LaunchMetrics(launch, TABLE)
    assert metrics["occupancy"].state == "implausible"
    assert read_quantity("occupancy", metrics).number is None
    for statement in everything(whole, launch).values():
        assert not (statement.lever and OCCUPANCY in {metric.name for metric in statement.inputs})


def test_a_limiter_that_failed_is_no_limiter(reports: Path) -> None:
    b = side(reports / "ncar/MW_Baseline.ncu-rep")
    latency = {
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": Value(20.0, "%"),
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": Value(20.0, "%"),
    }
    launch = next(one for one in map(slim, b.launches) if "279" in one.function)
    starved = replace(launch, values=pack_values({**launch.values, **latency}))
    one = everything(b, starved)["occupancy:room"]
    assert (one.lever or "").startswith("fewer live registers")
    assert (one.lever or "").endswith("(registers limit an SM to 8 blocks)")
    assert "With 56 registers in place of 64 one block more fits" in one.text
    name = "launch__occupancy_limit_shared_mem"
    for bad in (Value(None, "block", state=State.FAILED), Value(0.0, "block")):
        values = pack_values({**starved.values, name: bad})
        assert "occupancy:room" not in everything(b, replace(starved, values=values))


@pytest.mark.slow
def test_the_cause_of_a_change_is_said_with_the_opcodes_and_what_undoes_it(reports: Path) -> None:
    folder = reports / "ncar"
    statements = by_id(of(folder / "MW_Baseline.ncu-rep", folder / "MW_DivToMult.ncu-rep"))
    work = statements["cause:work"]
    assert work.lever == "save what was added: IMAD, DFMA, DMUL"
    assert work.text.startswith("+3.71 ms from the number of instructions (issued 0.553 G → 1.38 G)")
    assert "mainly from more work" in statements["change"].text
    back = by_id(of(folder / "MW_DivToMult.ncu-rep", folder / "MW_Baseline.ncu-rep", "279"))
    assert back["cause:work"].lever is None, "what takes time away needs no lever"
    assert back["cause:work"].share == pytest.approx(statements["cause:work"].share), "of the longer side"
    assert back["cause:waiting:long_scoreboard"].text.startswith("+1.51 ms from more waiting for data")


@pytest.mark.slow
def test_how_far_a_change_can_be_believed_is_what_judged_it(reports: Path) -> None:
    """One launch per side is unreplicated; not so where A/A pairs say how far equal builds lie apart."""
    a, b = (side(reports / f"ncar/MW_{name}.ncu-rep") for name in ("DivToMult", "Baseline"))
    asked = {"change", "cause:work"}
    for noise, wanted in (
        (UNKNOWN_NOISE, {"unreplicated: one launch per side, under the profiler"}),
        (
            NoiseModel(
                counter_noise=lambda _key, kernel, *_: CounterNoise(Wobble((math.log(1.1),) * 120), kernel)
            ),
            {
                "+68 % to +88 % by A/A pairs, under the profiler; 10 % would have shown",
                "the change by A/A pairs, under the profiler; its split of one launch per side",
            },
        ),
    ):
        cell = ComparedSide(b, compare(a, b, TABLE, noise=noise))
        statements = by_id(find_insights(Subject("v", cell, baseline="a"), TABLE, "279"))
        confidences = {statements[name].confidence.partition("; computed: ")[0] for name in asked}
        assert confidences == wanted
        assert "computed" not in statements["change"].confidence, "a scheduler's cycles follow exactly"
    a, b = (_without(one, "smsp__issue_active.") for one in (a, b))
    statements = by_id(
        find_insights(Subject("v", ComparedSide(b, compare(a, b, TABLE)), baseline="a"), TABLE, "279")
    )
    assert statements["change"].confidence.endswith(
        "; computed: active cycles of a scheduler ≈ those of its SM"
    ), "what is left of the V100 reports has the cycles of the SM alone"


def _without(side: Side, prefix: str) -> Side:
    """The side without the counters whose names begin so."""
    launches = (
        replace(
            launch,
            values=pack_values(
                {name: launch.values[name] for name in launch.values if not name.startswith(prefix)}
            ),
        )
        for launch in side.launches
    )
    return replace(side, launches=tuple(launches))


@pytest.mark.parametrize(
    ("rule", "rests"),
    [
        (LIVE_PAIR, "live pair, 25 rounds"),
        (STORED_BASELINE, "two runs, by a floor of 25 A/A pairs"),
    ],
)
def test_a_latency_says_the_rounds_or_the_pairs_it_rests_on(rule: str, rests: str) -> None:
    plain = Side("v", (), "GPU", "9.0", "2x8x512", "fp16")
    comparison = compare(plain, plain, TABLE)
    decision = Decision(Verdict.WORSE, "+3 %", rule, effect=0.03, interval=Interval(0.02, 0.04), rounds=25)
    timed = replace(comparison, latency=(LatencyComparison("events", None, None, decision),))
    (one,) = what_changed.latency_statements(timed)
    assert one.confidence == rests


@pytest.mark.slow
def test_the_longest_launch_is_looked_at_and_the_others_that_moved_are_named(reports: Path) -> None:
    folder = reports / "ncar"
    insights = of(folder / "MW_DivToMult.ncu-rep", folder / "MW_Baseline.ncu-rep")
    assert insights.launch == "semi_discrete_step_232_gpu"
    assert insights.launch_why == "longest of 5 launches (44 % of total time)"
    statements = by_id(insights)
    assert statements["change"].text.startswith("Unchanged")
    assert not [name for name in statements if name.startswith("cause:")]
    elsewhere = statements["change:elsewhere"]
    assert "compute_tendencies_x_279_gpu 6.19 ms → 3.48 ms (better)" in elsewhere.text
    assert elsewhere.weight == pytest.approx((6.19 - 3.48) / 6.19, rel=0.01), "of the longer side"


def test_what_only_prepares_or_stands_for_comparison_is_passed_over_where_there_is_more(
    made_reports: Path,
) -> None:
    whole = side(made_reports / "cutlass/report75.ncu-rep")
    launch = whole.launches[0]
    time = "gpu__time_duration.sum"

    def named(name: str, ns: float) -> Launch:
        values = pack_values({**launch.values, time: Value(ns, "ns")})
        return replace(launch, function=name, demangled=f"void {name}(float*)", values=values)

    fill = named("vectorized_elementwise_kernel", 9e6)
    fill = replace(
        fill,
        demangled="void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)",
    )
    other = (named("ampere_sgemm_128x64_nn", 8e6), fill)
    mine = replace(whole, launches=(*other, named("my_gemm", 7e6)))
    chosen = choose_launch(mine, TABLE, None)
    assert chosen.launch.function == "my_gemm"
    assert chosen.why == "the only launch; 2 of cuBLAS and PyTorch passed over"
    assert choose_launch(mine, TABLE, "sgemm").launch.function == "ampere_sgemm_128x64_nn"
    assert choose_launch(replace(whole, launches=other), TABLE, None).launch is fill
    sort = replace(
        named("_kernel_agent", 8e6),
        demangled="void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::Agent<int>>(int)",
    )
    of_cub = named("DeviceRadixSortKernel", 8e6)
    of_cub = replace(of_cub, demangled="void cub::CUB_200200_860_NS::DeviceRadixSortKernel<int>(int)")
    launches = (sort, sort, of_cub, named("my_gemm", 7e6))
    chosen = choose_launch(replace(whole, launches=launches), TABLE, None)
    assert chosen.why == "the only launch; 3 of Thrust and CUB passed over"


def test_a_launch_without_a_duration_is_not_the_longest(reports: Path) -> None:
    insights = of(reports / "esmm/profile@5c6231e5.ncu-rep")
    assert insights.launch == "basic"
    assert insights.launch_why.endswith("; 1 without a duration")


def test_a_short_launch_that_moved_is_unclear_and_gives_no_cause(reports: Path) -> None:
    folder = reports / "cutlass"
    statements = by_id(of(folder / "report80.ncu-rep", folder / "report75.ncu-rep"))
    assert statements["change"].kind == "unknown"
    assert not [name for name in statements if name.startswith("cause:")]


@pytest.mark.slow
def test_two_gpus_give_no_change(reports: Path) -> None:
    a, b = (side(reports / "ncar" / name) for name in ("MW_Baseline.ncu-rep", "MW_DivToMult.ncu-rep"))
    other = replace(a, gpu="NVIDIA A100 80GB PCIe")
    statements = by_id(find_insights(Subject("b", ComparedSide(b, compare(other, b, TABLE))), TABLE))
    assert statements["change"].kind == "unknown"
    assert "GPU" in statements["change"].text
    assert not [name for name in statements if name.startswith("cause:")]


def test_without_counters_for_causes_the_change_says_so_and_what_to_collect(reports: Path) -> None:
    folder = reports / "esmm"
    statements = by_id(
        of(folder / "profile@ee5ce738.ncu-rep", folder / "profile@049ec612.ncu-rep", "one_warp")
    )
    assert "no split" in statements["change"].text
    assert "the full split of the change into causes" in statements["others"].text


def test_a_wrong_version_gets_its_correctness_and_nothing_else(reports: Path) -> None:
    cell = ComparedSide(side(reports / "ncar/MW_Baseline.ncu-rep"))
    insights = find_insights(Subject("v2", cell, wrong="race:read-after-write at v2b.cu:119"), TABLE)
    (statement,) = insights.statements
    assert (statement.kind, statement.share) == ("correctness", None)
    assert "v2b.cu:119" in statement.text
    assert statement.lever is not None
    assert "order the write and the read" in statement.lever
    assert insights.to_dict()["correct"] is False


@pytest.mark.parametrize("name", [*REAL, "mistic/profileHIGGS.ncu-rep", "csv/kernel_0009.metrics.csv"])
def test_at_most_six_statements_and_the_unknown_ones_last(reports: Path, name: str) -> None:
    insights = of(reports / name)
    assert 0 < len(insights.statements) <= MAX_STATEMENTS
    kinds = [statement.kind == "unknown" for statement in insights.statements]
    assert kinds == sorted(kinds)
    ranks = [statement.rank for statement in insights.statements if statement.kind != "unknown"]
    assert ranks == sorted(ranks, reverse=True)
    assert len({statement.id for statement in insights.statements}) == len(insights.statements)


@pytest.mark.slow
def test_the_document_is_strict_json_of_the_documented_shape(reports: Path) -> None:
    folder = reports / "ncar"
    insights = of(folder / "MW_Baseline.ncu-rep", folder / "MW_DivToMult.ncu-rep")
    document = json.loads(json.dumps(insights.to_dict(), allow_nan=False))
    told = (Path(__file__).resolve().parents[2] / "docs" / "insights.md").read_text("utf-8")
    statement = document["statements"][0]
    for key in (*document, *statement, *statement["metrics"][0]):
        assert f"`{key}`" in told, key
    for kind in KINDS:
        assert f"`{kind}`" in told, kind
    duration = next(
        one for s in document["statements"] for one in s["metrics"] if one["concept"] == "duration"
    )
    assert duration["value"] > duration["baseline_value"] > 3e6
    assert (duration["state"], duration["baseline_state"], duration["unit"]) == ("present", "present", "ns")


def test_a_kernel_that_is_not_there_is_refused_with_those_that_are(reports: Path) -> None:
    with pytest.raises(UnknownName, match=r"no kernel matches 'gemm' in .*there are"):
        of(reports / "ncar/MW_Baseline.ncu-rep", kernel="gemm")


def test_a_lever_on_a_missing_counter_is_a_defect() -> None:
    missing = MetricInput("x", "x", "x", NOT_COLLECTED)
    with pytest.raises(ValueError, match="must not rest on"):
        Statement("x", "lever", "text", (missing,), Evidence.MEASURED, "sure", "do it")


def test_advice_that_a_cause_carries_already_takes_no_place_of_its_own() -> None:
    metric = MetricInput("x", "x", "x", Value(1.0))
    cause = Statement("waiting", "bottleneck", "", (metric,), Evidence.MEASURED, "", "swizzle", 0.3)
    lever = Statement("shared", "lever", "", (metric,), Evidence.MEASURED, "", "swizzle", 0.4)
    assert rank_statements([lever, cause])[0] == (cause,)
    assert rank_statements([lever])[0] == (lever,)


def test_open_questions_share_one_statement_but_for_the_main_ones() -> None:
    missing = tuple(MetricInput(name, name, name, NOT_COLLECTED, line=at) for at, name in enumerate("abc", 5))
    gaps = [OpenQuestion(str(at), f"whether {at}", missing[at : at + 1], main=at == 0) for at in range(3)]
    kept, hidden = rank_statements(gaps)
    assert [one.id for one in kept] == ["0", "others"]
    assert kept[1].text == "Unknown: whether 1; whether 2. To collect: b, c: `ncu --metrics b,c PROGRAM`."
    assert hidden == 0


def test_a_baseline_is_read_under_the_same_counter_as_the_version(reports: Path) -> None:
    a, b = (
        side(reports / "ncar" / name).launches[2] for name in ("MW_Baseline.ncu-rep", "MW_DivToMult.ncu-rep")
    )
    metric = LaunchMetrics(b, TABLE, "sm_70", a)["sm_clock"]
    assert metric.baseline is not None
    assert metric.baseline == a.values[metric.name]


def test_a_duration_that_is_a_text_is_no_duration(reports: Path) -> None:
    """What a damaged CSV gives."""
    whole = side(reports / "cutlass/report75.ncu-rep")
    first, *others = whole.launches
    held = {**first.values, "gpu__time_duration.sum": Value(None, "ns", "12,3x")}
    damaged = replace(whole, launches=(replace(first, values=pack_values(held)), *others))
    insights = find_insights(Subject("x", ComparedSide(damaged, None)), TABLE)
    assert "1 without a duration" in json.dumps(insights.to_dict())


def test_two_values_share_their_unit() -> None:
    assert formatting.from_to(Value(6_190_944.0, "ns"), Value(3_482_240.0, "ns")) == "6.19 → 3.48 ms"
    assert formatting.from_to(Value(128, "register/thread"), Value(168, "register/thread")) == "128 → 168"
    assert formatting.from_to(Value(80_500, "byte/block"), Value(83_600, "byte/block")) == "80.5 → 83.6 kB"
    assert formatting.from_to(Value(9548), Value(17_400)) == "9.55 k → 17.4 k"
    assert formatting.from_to(Value(15_200, "inst"), Value(0, "inst")) == "15.2 k → 0"
    assert formatting.from_to(NOT_COLLECTED, Value(1.0, "%")) == "not collected → 1.0 %"


def test_opcodes_of_one_mix_are_one_metric_to_collect() -> None:
    metrics = LaunchMetrics(replace(made.launch(), opcodes={}), TABLE, "sm_80")
    question = OpenQuestion(
        "atomics", "whether atomics are waited for", (metrics.opcodes("RED"), metrics.every_opcode)
    )
    (statement,), _ = rank_statements([question])
    assert statement.text.endswith(": `ncu --metrics sass__inst_executed_per_opcode PROGRAM`.")
