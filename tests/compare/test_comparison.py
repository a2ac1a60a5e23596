"""Verdicts, comparability and the gate, on made-up launches and on real reports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.compare.comparison import Comparison, check_concepts, compare
from profiler.compare.metric_verdict import decide_inexact
from profiler.compare.pair_comparison import MetricChange
from profiler.compare.resolve_names import side_of_report
from profiler.documents.comparison import ComparisonDocument
from profiler.errors import Exit, UnknownName
from profiler.evidence import metric_table
from profiler.evidence.launch import Launch, Session
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence, State, Value, pack_values
from profiler.gate import judgement
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.reports import read as reports_read
from profiler.statistics.verdict import Verdict

TABLE_TEXT = """\
duration   | ncu duration | ns     | lower  | 2%  | time         | lean | gpu__time_duration.sum
clock      | SM clock     | hz     | -      | 1%  | clock        | lean | clock.a, clock.b
tensor     | tensor busy  | %      | higher | 1pp | tensor core  | lean | tensor.sm90@sm_90
issued     | issued       | inst   | lower  | 1%  | instructions | lean | smsp__inst_issued.sum
ipc        | ipc          | inst/cycle | higher | 1% | instructions | lean | ipc.avg
hits       | hit rate     | %      | higher | 1pp | memory       | lean | hit.pct
read       | DRAM read    | byte   | lower  | 2%  | memory       | lean | dram__bytes_read.sum
spills     | spills       | inst   | lower  | 0%  | spills       | lean | spills.sum
registers  | registers    | register/thread | - | 0% | launch     | lean | launch__registers_per_thread
issued ~ 10% = issued.nearly
issued = issued.rate * 1000
"""
SESSION = Session("2024.1", "560.1", "12.6", None, "ncu ./a", "base", "all", "kernel")
LONG, SHORT = 1_000_000.0, 12_000.0


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> metric_table.MetricTable:
    path = tmp_path_factory.mktemp("table") / "metrics.txt"
    path.write_text(TABLE_TEXT, "utf-8")
    return metric_table.load_metrics(path)


def launch(
    duration: float | None = LONG, *, name: str = "kernel", ordinal: int = 0, **values: Value
) -> Launch:
    told = {
        "gpu__time_duration.sum": Value(
            duration, "ns", state=State.FAILED if duration is None else State.PRESENT
        )
    }
    told |= {key.replace("__DOT__", "."): value for key, value in values.items()}
    return Launch(name, name, "", (1, 1, 1), (64, 1, 1), 7, (), ordinal, pack_values(told))


def side(*launches: Launch, **changes: object) -> Side:
    plain = Side(
        "side", launches, "GPU", "8.0", "2x8x512", "fp16", Evidence.MEASURED, SESSION, "family", "v1", "run"
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def change_of(comparison: Comparison, concept: str) -> MetricChange:
    (pair,) = comparison.pairs
    return next(change for change in pair.metrics if change.concept == concept)


def change(
    table: metric_table.MetricTable, concept: str, name: str, a: Value, b: Value, *, of: float = LONG
) -> MetricChange:
    """The verdict on one metric of two otherwise equal launches."""
    sides = [side(launch(of, **{name: value})) for value in (a, b)]
    return change_of(compare(*sides, table), concept)


def code(comparison: Comparison, table: metric_table.MetricTable, on: Sequence[str] = ()) -> Exit:
    """What --fail makes of it."""
    contest = ComparisonPair("b", "a", comparison.a, comparison.b)
    return judgement.judge_comparisons([contest], [comparison], table, on=on).exit_code()


# ---- verdicts


@pytest.mark.parametrize(
    ("a", "b", "verdict"),
    [
        (100_000.0, 90_000.0, Verdict.BETTER),
        (100_000.0, 103_000.0, Verdict.WORSE),
        (100_000.0, 102_000.0, Verdict.SAME),  # at the threshold, not over it
        (100_000.0, 98_001.0, Verdict.SAME),
        (100_000.0, 100_000.0, Verdict.SAME),
        (49_999.0, 60_000.0, Verdict.UNCLEAR),
        (60_000.0, 49_999.0, Verdict.UNCLEAR),
        (11_000.0, 11_100.0, Verdict.SAME),
        (50_000.0, 60_000.0, Verdict.WORSE),
    ],
)
def test_the_verdict_on_a_duration(
    table: metric_table.MetricTable, a: float, b: float, verdict: Verdict
) -> None:
    comparison = compare(side(launch(a)), side(launch(b)), table)
    assert comparison.pairs[0].verdict is verdict
    assert change_of(comparison, "duration").unreplicated is (verdict in (Verdict.BETTER, Verdict.WORSE))


def test_an_unclear_verdict_says_why_and_what_to_do(table: metric_table.MetricTable) -> None:
    reason = change_of(compare(side(launch(11_000.0)), side(launch(12_500.0)), table), "duration").reason
    assert "under 50 µs" in reason
    assert "moves as much by itself: profile several launches" in reason
    far = change_of(compare(side(launch(11_000.0)), side(launch(440_000.0)), table), "duration")
    assert far.verdict is Verdict.UNCLEAR
    assert "is judged by several a side, not by one" in far.reason, "40 times as long is no noise"


def test_on_a_short_launch_rates_are_unclear_and_counts_are_judged(table: metric_table.MetricTable) -> None:
    hits = change(table, "hits", "hit__DOT__pct", Value(50.0, "%"), Value(40.0, "%"), of=SHORT)
    assert hits.verdict is Verdict.UNCLEAR
    ipc = change(table, "ipc", "ipc__DOT__avg", Value(2.0, "inst/cycle"), Value(1.0, "inst/cycle"), of=SHORT)
    assert ipc.verdict is Verdict.UNCLEAR, "a rate in the group instructions wobbles like any other"
    name = "smsp__inst_issued__DOT__sum"
    issued = change(table, "issued", name, Value(1000, "inst"), Value(1100, "inst"), of=SHORT)
    assert issued.verdict is Verdict.WORSE
    registers = change(table, "registers", "launch__registers_per_thread", Value(64), Value(62), of=SHORT)
    assert registers.verdict is Verdict.CHANGED


def test_higher_can_be_better_and_points_are_absolute(table: metric_table.MetricTable) -> None:
    up = change(table, "hits", "hit__DOT__pct", Value(50.0, "%"), Value(52.0, "%"))
    assert up.verdict is Verdict.BETTER
    within = change(table, "hits", "hit__DOT__pct", Value(0.5, "%"), Value(1.4, "%"))
    assert within.verdict is Verdict.SAME, "0.9 points, though 180 %"
    assert within.change_pct == pytest.approx(180)


@pytest.mark.parametrize(
    ("b", "verdict", "reason"),
    [
        (1050.0, Verdict.UNCLEAR, "over 1 %, but by a stand-in that may be 10 % off"),
        (900.0, Verdict.UNCLEAR, "over 1 %, but by a stand-in that may be 10 % off"),
        (1200.0, Verdict.WORSE, "over 1 %, lower is better; unreplicated: one launch per side"),
        (1005.0, Verdict.SAME, "within 1 %"),
    ],
)
def test_a_stand_in_decides_nothing_smaller_than_it_may_be_off(
    table: metric_table.MetricTable, b: float, verdict: Verdict, reason: str
) -> None:
    found = change(table, "issued", "issued__DOT__nearly", Value(1000.0), Value(b))
    assert (found.verdict, found.reason) == (verdict, reason)
    assert found.label == "issued (stand-in)"
    assert found.metric == "stand-in: issued.nearly, seen up to 10 % off"
    assert found.derivation == "approximated by issued.nearly, error up to 10 % seen"


def test_a_counter_is_never_compared_with_its_stand_in(table: metric_table.MetricTable) -> None:
    counter = {"smsp__inst_issued__DOT__sum": Value(1000, "inst")}
    stand_in = {"issued__DOT__nearly": Value(1500.0, "inst")}
    found = change_of(compare(side(launch(**counter)), side(launch(**stand_in)), table), "issued")
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.reason.startswith("different counters: smsp__inst_issued.sum and stand-in: issued.nearly")
    both = change_of(compare(side(launch(**counter, **stand_in)), side(launch(**stand_in)), table), "issued")
    assert (both.a.number, both.verdict) == (1500.0, Verdict.SAME), "by the stand-in that both have"


def test_what_is_derived_does_not_repeat_exactly_and_fails_no_gate(table: metric_table.MetricTable) -> None:
    """It comes from several replay passes, unlike the count that it equals."""
    sides = [side(launch(of, issued__DOT__rate=Value(rate))) for of, rate in ((LONG, 1.0), (LONG, 1.1))]
    comparison = compare(*sides, table)
    assert change_of(comparison, "issued").verdict is Verdict.WORSE
    assert code(comparison, table) is Exit.PASS
    short = change(table, "issued", "issued__DOT__rate", Value(1.0), Value(1.1), of=SHORT)
    assert short.verdict is Verdict.UNCLEAR


def test_what_rounding_sets_apart_is_equal(table: metric_table.MetricTable) -> None:
    """Registers have a threshold of 0: two computations of 1280 are no change, 1281 is one."""
    name = "launch__registers_per_thread"
    for number, verdict in ((1280.0000000000002, Verdict.SAME), (1281.0, Verdict.CHANGED)):
        values = [Value(one, "register/thread") for one in (1280.0, number)]
        found = change(table, "registers", name, *values)
        assert (found.verdict, found.change_pct == 0.0) == (verdict, verdict is Verdict.SAME)


def test_from_zero_there_is_a_verdict_and_no_percentage(table: metric_table.MetricTable) -> None:
    spilled = change(table, "spills", "spills__DOT__sum", Value(0, "inst"), Value(8, "inst"))
    assert (spilled.verdict, spilled.change_pct) == (Verdict.WORSE, None)
    gone = change(table, "spills", "spills__DOT__sum", Value(8, "inst"), Value(0, "inst"))
    assert (gone.verdict, gone.change_pct) == (Verdict.BETTER, -100)
    none = change(table, "spills", "spills__DOT__sum", Value(0, "inst"), Value(0, "inst"))
    assert (none.verdict, none.change_pct) == (Verdict.SAME, 0)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (Value(None, "byte", state=State.FAILED), Value(1, "byte"), "failed in A"),
        (Value(1, "byte"), Value(None, "byte", state=State.INSTANCES_ONLY), "instances only in B"),
        (Value(None, state=State.FAILED), Value(None, state=State.FAILED), "failed in both"),
        (
            Value(None, state=State.FAILED),
            Value(None, state=State.INSTANCES_ONLY),
            "failed in A, instances only in B",
        ),
        (Value(float("nan"), "byte"), Value(1, "byte"), "failed in A"),
        (Value(1, "byte"), Value(float("inf"), "byte"), "infinite in B"),
    ],
)
def test_a_missing_side_makes_the_verdict_missing(
    table: metric_table.MetricTable, a: Value, b: Value, reason: str
) -> None:
    found = change(table, "read", "dram__bytes_read__DOT__sum", a, b)
    assert (found.verdict, found.reason, found.change_pct) == (Verdict.MISSING, reason, None)


def test_a_metric_that_nobody_collected_or_the_gpu_lacks_is_missing(table: metric_table.MetricTable) -> None:
    comparison = compare(side(launch()), side(launch()), table)
    assert change_of(comparison, "read").reason == "not collected in either"
    assert change_of(comparison, "tensor").reason == "not available on this GPU in either"


def test_a_counter_is_compared_by_one_name_only(table: metric_table.MetricTable) -> None:
    a = side(launch(clock__DOT__a=Value(1.0, "hz"), clock__DOT__b=Value(5.0, "hz")))
    b = side(launch(clock__DOT__b=Value(5.0, "hz")))
    change = change_of(compare(a, b, table), "clock")
    assert (change.metric, change.verdict) == ("clock.b", Verdict.SAME), (
        "the name that both carry, not A's first"
    )
    a = side(launch(clock__DOT__a=Value(5.0, "hz")))
    other = change_of(compare(a, b, table), "clock")
    assert other.verdict is Verdict.NOT_COMPARABLE
    assert other.reason == "different counters: clock.a and clock.b"
    assert (other.a.number, other.b.number, other.change_pct) == (5.0, 5.0, None)


def test_a_counter_is_compared_in_one_unit_only(table: metric_table.MetricTable) -> None:
    name = "dram__bytes_read__DOT__sum"
    found = change(table, "read", name, Value(5, "byte"), Value(5, "sector"))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert "byte and sector" in found.reason


# ---- comparability


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"gpu": "other"}, "GPU differs: GPU and other"),
        ({"workload": "4x8x512"}, "workload differs: 2x8x512 and 4x8x512"),
        ({"dtype": "bf16"}, "dtype differs: fp16 and bf16"),
        ({"evidence": Evidence.MODELLED}, "evidence differs: measured and modelled"),
        ({"session": replace(SESSION, clock_control="none")}, "clock control differs: base and none"),
        ({"session": replace(SESSION, cache_control="none")}, "cache control differs: all and none"),
        ({"session": replace(SESSION, replay_mode="range")}, "replay mode differs: kernel and range"),
        ({"session": replace(SESSION, driver="570")}, "driver differs: 560.1 and 570"),
        ({"session": replace(SESSION, ncu_version="2025.1")}, "ncu differs: 2024.1 and 2025.1"),
    ],
)
def test_a_mismatch_blocks_every_verdict_names_itself_and_keeps_the_numbers(
    table: metric_table.MetricTable, changes: dict[str, object], words: str
) -> None:
    comparison = compare(side(launch(100_000.0)), side(launch(50_000.0), **changes), table)
    assert not comparison.comparable
    assert [difference.words for difference in comparison.blocked_by] == [words]
    assert {metric.verdict for metric in comparison.pairs[0].metrics} == {Verdict.NOT_COMPARABLE}
    duration = change_of(comparison, "duration")
    assert words in duration.reason
    assert (duration.a.number, duration.b.number, duration.change_pct) == (100_000.0, 50_000.0, -50)


@pytest.mark.parametrize(("field", "word"), [("driver", "driver"), ("ncu_version", "ncu")])
def test_across_lets_driver_or_ncu_differ_and_still_shows_it(
    table: metric_table.MetricTable, field: str, word: str
) -> None:
    b = side(launch(50_000.0), session=replace(SESSION, **{field: "9"}))
    comparison = compare(side(launch(100_000.0)), b, table, across={word})
    assert comparison.comparable
    assert comparison.pairs[0].verdict is Verdict.BETTER
    assert [(d.field, d.kind, d.blocks) for d in comparison.differences] == [(word, "differs", False)]
    other = {"driver", "ncu"} - {word}
    assert not compare(side(launch()), b, table, across=other).comparable


def test_what_nobody_says_is_a_warning_that_blocks_nothing(table: metric_table.MetricTable) -> None:
    bare = side(launch(), workload=None, dtype=None, session=Session())
    comparison = compare(side(launch()), bare, table)
    assert comparison.comparable
    unknown = {difference.field for difference in comparison.unknown}
    assert unknown == {"workload", "dtype", "clock control", "cache control", "replay mode", "driver", "ncu"}
    assert comparison.unknown[0].words == "workload unknown in B (2x8x512 in the other)"
    assert compare(bare, side(launch()), table).unknown[0].words == (
        "workload unknown in A (2x8x512 in the other)"
    )
    both = compare(bare, bare, table)
    assert both.comparable
    assert both.unknown[0].words == "workload unknown on both sides"


def test_concepts_that_are_judged_are_those_with_a_direction_and_a_number(
    table: metric_table.MetricTable,
) -> None:
    lost = {"spills__DOT__sum": Value(3, "inst"), "launch__registers_per_thread": Value(32)}
    found = compare(side(launch(**lost)), side(launch(), launch(name="other", ordinal=1)), table)
    assert found.judged == ("duration", "spills")


def short(number: int, changed_ns: float) -> list[Launch]:
    """So many short kernels, whose changes are unclear."""
    return [launch(SHORT + changed_ns, name=f"short{place}", ordinal=place) for place in range(number)]


@pytest.mark.parametrize(
    ("others", "count", "outweighed"),
    [
        (((50e3, 50e3),), 1, True),  # 1 µs of 62 µs
        (((37e3, 37e3),), 1, False),  # of 49 µs: a threshold is 2 %
        (((1e6, 9e5),), 49, True),  # half of the 100 µs that were gained
        (((1e6, 9e5),), 51, False),
        (((1e6, 9e5), (1e6, None)), 49, True),  # what has no time weighs nothing
        (((9e5, 1e6),), 49, False),  # a loss is no gain
        ((), 1, False),  # nothing is decided
    ],
)
def test_unclear_pairs_are_outweighed_where_all_they_may_have_lost_is_little(
    table: metric_table.MetricTable,
    others: Sequence[tuple[float, float | None]],
    count: int,
    outweighed: bool,
) -> None:
    a, b = (
        side(
            *(launch(times[at], name=f"long{n}", ordinal=n) for n, times in enumerate(others)),
            *short(count, at * 1e3),
        )
        for at in (0, 1)
    )
    found = compare(a, b, table)
    unclear = [pair for pair in found.pairs if pair.verdict is Verdict.UNCLEAR]
    assert len(unclear) == count
    assert {found.is_outweighed(pair) for pair in unclear} == {outweighed}


def test_a_pair_without_points_may_move_from_zero_within_them_only(table: metric_table.MetricTable) -> None:
    hits = table.by_concept["hits"]
    moved = [decide_inexact(hits, 0.0, b, None).verdict for b in (0.0, 1.0, 1.1, -1.0)]
    assert moved == [Verdict.SAME, Verdict.SAME, Verdict.UNCLEAR, Verdict.SAME]
    assert decide_inexact(hits, 50.0, 51.0, None).verdict is Verdict.SAME
    assert decide_inexact(hits, -50.0, -51.1, None).verdict is Verdict.UNCLEAR


def test_source_and_compiler_may_differ_and_are_shown(table: metric_table.MetricTable) -> None:
    b = side(launch(), session=replace(SESSION, cuda="13.0", command_line="ncu ./b"))
    comparison = compare(side(launch()), b, table)
    assert comparison.comparable
    assert [(d.field, d.kind) for d in comparison.differences] == [("CUDA", "info"), ("command line", "info")]
    assert ("GPU", "GPU") in comparison.same


def test_where_a_gpu_is_not_named_its_compute_capability_must_match(table: metric_table.MetricTable) -> None:
    """An ncu CSV names no GPU."""
    bare, other = (side(launch(), gpu=None, compute_capability=cc) for cc in ("8.0", "9.0"))
    assert not compare(bare, other, table).comparable
    assert not compare(side(launch()), other, table).comparable
    mixed = compare(side(launch()), bare, table)
    assert mixed.comparable
    assert [difference.words for difference in mixed.unknown] == ["GPU unknown in B (GPU in the other)"]
    assert ("compute capability", "8.0") in mixed.same
    assert all(
        name != "compute capability" for name, _ in compare(side(launch()), side(launch()), table).same
    )


# ---- pairs, filters, gate


def test_pairs_come_longest_first_and_top_counts_the_rest(table: metric_table.MetricTable) -> None:
    launches = [
        launch(1e6, name="middle", ordinal=0),
        launch(9e6, name="long", ordinal=1),
        launch(1e5, name="brief", ordinal=2),
        launch(None, name="failed", ordinal=3),
    ]
    comparison = compare(side(*launches), side(*launches), table)
    assert [pair.kernel for pair in comparison.pairs] == ["failed", "long", "middle", "brief"]
    cut = compare(side(*launches), side(*launches), table, top=2)
    assert ([pair.kernel for pair in cut.pairs], cut.hidden_pairs) == (["failed", "long"], 2)
    assert cut.hidden_verdicts == (Verdict.SAME, Verdict.SAME)


@pytest.mark.parametrize(
    ("b", "expected"),
    [
        ((("fill", 5e4), ("flash", 3e5)), [("A", "attend", 0.9), ("B", "flash", 6 / 7)]),
        ((("fill", 5e4),), [("A", "attend", 0.9)]),
        ((("fill", 5e4), ("attend", 4e5)), []),
        ((("fill", 9e5), ("flash", 3e5)), [("A", "attend", 0.9)]),
        ((("other", 5e4), ("flash", 3e5)), []),  # nothing was compared at all, which the verdict says
    ],
)
def test_a_kernel_with_most_time_and_no_partner_is_named(
    table: metric_table.MetricTable, b: Sequence[tuple[str, float]], expected: list[tuple[str, str, float]]
) -> None:
    of_b = [launch(time, name=name, ordinal=place) for place, (name, time) in enumerate(b)]
    a = side(launch(5e4, name="fill"), launch(4.5e5, name="attend", ordinal=1))
    comparison = compare(a, side(*of_b), table)
    assert [(letter, name, pytest.approx(share)) for letter, name, share in expected] == list(
        comparison.uncompared
    )
    sentence = ComparisonDocument((comparison,)).sentence
    assert sentence.count("% of") == len(expected)
    assert all(name in sentence for _, name, _ in expected)


def test_a_kernel_pattern_filters_pairs_and_leftovers(table: metric_table.MetricTable) -> None:
    a = side(launch(name="gemm"), launch(name="softmax", ordinal=1), launch(name="gemm_old", ordinal=2))
    b = side(launch(name="gemm"), launch(name="softmax", ordinal=1))
    comparison = compare(a, b, table, kernel="GEMM")
    assert [pair.kernel for pair in comparison.pairs] == ["gemm"]
    assert [x.base_name for x in comparison.only_in_a] == ["gemm_old"]


def test_a_kernel_that_neither_side_has_is_an_error(table: metric_table.MetricTable) -> None:
    with pytest.raises(UnknownName, match=r"no kernel matches 'flash' .* there are kernel"):
        compare(side(launch()), side(launch()), table, kernel="flash")


def test_the_gate_follows_the_durations_and_the_concepts_named(table: metric_table.MetricTable) -> None:
    steady = {"smsp__inst_issued__DOT__sum": Value(1000, "inst")}
    more = {"smsp__inst_issued__DOT__sum": Value(2000, "inst")}
    same = compare(side(launch(**steady)), side(launch(**more)), table)
    assert code(same, table) is Exit.PASS, "in as much time they cost nothing"
    assert code(same, table, ["issued"]) is Exit.REGRESSION
    unclear = compare(side(launch(12_000.0, **steady)), side(launch(13_000.0, **more)), table)
    assert code(unclear, table) is Exit.REGRESSION, "an exact count needs no asking where no time decides"
    read = {"dram__bytes_read__DOT__sum": Value(1000, "byte")}
    wobbles = {"dram__bytes_read__DOT__sum": Value(2000, "byte")}
    same = compare(side(launch(**read)), side(launch(**wobbles)), table)
    assert code(same, table) is Exit.PASS, "what wobbles does not fail the gate by itself"
    assert code(same, table, ["read"]) is Exit.UNJUDGED, "nor where nobody knows how far"
    assert code(same, table, ["hits"]) is Exit.UNJUDGED, "a missing counter never passes a gate"
    worse = compare(side(launch(1e6)), side(launch(2e6)), table)
    assert code(worse, table) is Exit.REGRESSION
    assert code(compare(side(launch(1e6)), side(launch(0.5e6)), table), table) is Exit.PASS


def test_the_gate_does_not_pass_what_it_could_not_judge(table: metric_table.MetricTable) -> None:
    unclear = compare(side(launch(10_000.0)), side(launch(20_000.0)), table)
    assert code(unclear, table) is Exit.UNJUDGED
    missing = compare(side(launch(None)), side(launch(1e6)), table)
    assert code(missing, table) is Exit.UNJUDGED
    apart = compare(side(launch()), side(launch(), gpu="other"), table)
    assert code(apart, table) is Exit.UNJUDGED
    nothing = compare(side(launch(name="a")), side(launch(name="b")), table)
    assert code(nothing, table) is Exit.UNJUDGED
    lost = compare(side(launch(), launch(name="b", ordinal=1)), side(launch()), table)
    assert code(lost, table) is Exit.UNJUDGED
    new = compare(side(launch()), side(launch(), launch(name="b", ordinal=1)), table)
    assert code(new, table) is Exit.UNJUDGED, "one launch more takes time too"
    doubled = compare(side(launch(), launch(ordinal=1)), side(launch()), table)
    assert doubled.ambiguous
    assert code(doubled, table) is Exit.UNJUDGED


def test_a_regression_outweighs_what_could_not_be_judged(table: metric_table.MetricTable) -> None:
    a = side(launch(1e6), launch(1e4, name="b", ordinal=1))
    b = side(launch(2e6), launch(2e4, name="b", ordinal=1))
    assert code(compare(a, b, table), table) is Exit.REGRESSION


def test_a_gate_on_a_concept_that_nobody_judges_is_refused(table: metric_table.MetricTable) -> None:
    with pytest.raises(UnknownName, match="registers has no direction"):
        check_concepts(table, ["registers"])
    with pytest.raises(UnknownName, match="no concept 'regs'"):
        check_concepts(table, ["regs"])
    check_concepts(table, ["duration", "hits"])


def test_opcodes_are_listed_by_the_size_of_their_change(table: metric_table.MetricTable) -> None:
    a = replace(launch(), opcodes={"FFMA": 100.0, "MUFU": 5.0, "IMAD": 7.0})
    b = replace(launch(), opcodes={"FFMA": 90.0, "HMMA": 50.0, "IMAD": 7.0})
    (pair,) = compare(side(a), side(b), table).pairs
    assert [(o.opcode, o.a, o.b) for o in pair.opcodes] == [
        ("HMMA", 0.0, 50.0),
        ("FFMA", 100.0, 90.0),
        ("MUFU", 5.0, 0.0),
        ("IMAD", 7.0, 7.0),
    ]
    (pair,) = compare(side(a), side(launch()), table).pairs
    assert pair.opcodes == (), "a side without an opcode mix has not run zero instructions"


# ---- real reports


@pytest.fixture(scope="module")
def real(reports: Path) -> dict[str, Side]:
    wanted = (
        "ncar/MW_Baseline",
        "ncar/MW_DivToMult",
        "cutlass/report75",
        "cutlass/report80",
        "cutlass/report80@eba551e9",
        "esmm/profile@a62323b2",
        "esmm/profile@cd89388e",
        "esmm/profile@5c6231e5",
        "esmm/profile@17f278cb",
        "mistic/prof1",
        "mistic/prof2",
    )
    sides = {}
    for name, found in zip(
        wanted, reports_read.read_reports([reports / f"{name}.ncu-rep" for name in wanted]), strict=True
    ):
        assert not isinstance(found, Exception), found
        sides[name] = side_of_report(found, name)
    return sides


@pytest.fixture(scope="module")
def shipped() -> metric_table.MetricTable:
    return metric_table.load_metrics()


@pytest.mark.slow
def test_of_five_ncar_kernels_one_got_faster_three_stayed_and_one_is_unclear(
    real: dict[str, Side], shipped: metric_table.MetricTable
) -> None:
    comparison = compare(real["ncar/MW_Baseline"], real["ncar/MW_DivToMult"], shipped)
    assert comparison.comparable
    told = {pair.kernel: pair for pair in comparison.pairs}
    assert {name: pair.verdict.value for name, pair in told.items()} == {
        "compute_tendencies_x_279_gpu": "better",
        "compute_tendencies_x_309_gpu": "same",
        "semi_discrete_step_232_gpu": "same",
        "set_halo_values_x_396_gpu": "same",  # 12.4 % longer at a clock 9.5 % lower
        "set_halo_values_x_419_gpu": "unclear",
    }
    faster = told["compute_tendencies_x_279_gpu"].headline
    assert faster is not None
    assert (faster.a.number, faster.b.number) == (6190944.0, 3482240.0)
    assert faster.change_pct == pytest.approx(-43.75, abs=0.01)
    # The unclear one took 11 of 6,900 µs: it cannot have lost what the first gained.
    assert [pair.kernel for pair in comparison.outweighed] == ["set_halo_values_x_419_gpu"]
    assert comparison.verdict is comparison.top(1).verdict is Verdict.BETTER
    assert code(comparison, shipped) is Exit.PASS


@pytest.mark.slow
def test_every_report_is_one_measurement_with_itself_and_equal_in_every_number(
    real: dict[str, Side], shipped: metric_table.MetricTable
) -> None:
    for side_ in real.values():
        comparison = compare(side_, side_, shipped)
        assert len(comparison.pairs) == len(side_.launches)
        assert (comparison.only_in_a, comparison.only_in_b, comparison.ambiguous) == ((), (), ())
        assert (comparison.comparable, comparison.verdict) == (False, Verdict.NOT_COMPARABLE)
        assert comparison.one_measurement is not None
        changes = [change for pair in comparison.pairs for change in pair.metrics]
        assert {change.verdict for change in changes} <= {Verdict.NOT_COMPARABLE, Verdict.MISSING}
        moved = {change.change_pct for change in changes if change.a.number} - {None}
        assert moved == {0.0}


def test_cutlass_launches_of_one_name_pair_within_their_range(
    real: dict[str, Side], shipped: metric_table.MetricTable
) -> None:
    comparison = compare(real["cutlass/report75"], real["cutlass/report80"], shipped)
    assert comparison.comparable
    pairs = {pair.kernel: (pair.a.ordinal, pair.b.ordinal) for pair in comparison.pairs}
    assert pairs == {
        "Non-fused-GEMM/Kernel#0": (0, 0),
        "Non-fused-GEMM/Kernel#1": (1, 1),
        "Fused-GEMM/Kernel": (2, 2),
    }
    assert all(pair.differs == ("template",) for pair in comparison.pairs)
    alone = compare(real["cutlass/report80"], real["cutlass/report80@eba551e9"], shipped)
    assert [(pair.a.ordinal, pair.differs) for pair in alone.pairs] == [(2, ("template", "grid", "block"))]
    assert [launch.ordinal for launch in alone.only_in_a] == [0, 1]


def test_esmm_kernels_come_and_go_and_a_doubled_grid_still_pairs(
    real: dict[str, Side], shipped: metric_table.MetricTable
) -> None:
    comparison = compare(real["esmm/profile@a62323b2"], real["esmm/profile@cd89388e"], shipped)
    (warptiling,) = [pair for pair in comparison.pairs if pair.kernel == "warptiling"]
    assert (warptiling.a.grid, warptiling.b.grid) == ((8, 8, 1), (16, 8, 1))
    assert warptiling.verdict is Verdict.BETTER
    assert [launch.base_name for launch in comparison.only_in_b] == ["warptiling_two"]
    assert {p.kernel for p in comparison.pairs} >= {"ampere_sgemm_128x64_nn#0", "ampere_sgemm_128x64_nn#1"}


def test_the_esmm_launch_whose_duration_is_nan_is_missing_and_failed(
    real: dict[str, Side], shipped: metric_table.MetricTable
) -> None:
    comparison = compare(
        real["esmm/profile@17f278cb"], real["esmm/profile@5c6231e5"], shipped, kernel="one_d_vec"
    )
    (pair,) = comparison.pairs
    assert pair.headline is not None
    assert (pair.verdict, pair.headline.reason) == (Verdict.MISSING, "failed in B")
    assert pair.headline.b == Value(None, "ns", state=State.FAILED)


@pytest.mark.slow
def test_four_mistic_launches_of_one_kernel_pair_by_grid(
    real: dict[str, Side], shipped: metric_table.MetricTable
) -> None:
    comparison = compare(real["mistic/prof1"], real["mistic/prof2"], shipped)
    by_grid = {
        tuple(sorted({launch.grid for side in pair.launches for launch in side})): pair
        for pair in comparison.pairs
    }
    alone, alike = by_grid[((2045, 1, 1),)], by_grid[((2048, 1, 1),)]
    assert (alone.a.ordinal, alone.b.ordinal, alone.verdict) == (1, 1, Verdict.BETTER)
    # Three batches of data, which executed up to 10 % more or less than one another, and nothing tells which.
    assert [[launch.ordinal for launch in side] for side in alike.launches] == [[0, 2, 3], [0, 2, 3]]
    assert alike.headline is not None
    assert alike.headline.interval is not None
    assert alike.headline.interval.low < 0 < alike.headline.interval.high
    assert alike.verdict is Verdict.UNCLEAR


def test_different_gpus_are_not_comparable_and_say_so(
    real: dict[str, Side], shipped: metric_table.MetricTable
) -> None:
    comparison = compare(real["esmm/profile@a62323b2"], real["mistic/prof1"], shipped)
    assert not comparison.comparable
    assert comparison.blocked_by[0].words == "GPU differs: NVIDIA A10G and NVIDIA A100-PCIE-40GB"
