"""The split of a difference in time: exact on real launches, true on planted changes, the same both ways."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.compare.resolve_names import side_of_report
from profiler.evidence import metric_table
from profiler.evidence.gpu_arch import chip_of
from profiler.evidence.launch import Launch, Report
from profiler.evidence.values import NOT_COLLECTED, State, Value
from profiler.explain.identity_factors import CONCEPTS
from profiler.explain.sentence import compose_sentence, split_notes
from profiler.explain.time_identity import (
    OTHER_REASONS,
    RESIDUE,
    TimeIdentity,
    TimeSplit,
    log_mean,
    log_ratio,
    read_identities,
    split_time,
    usable_time_us,
    waterfall_steps,
)
from profiler.reports import read
from profiler.statistics.verdict import Verdict

TABLE = metric_table.load_metrics()
STALL = re.compile(r"smsp__average_warps_issue_stalled_(\w+)_per_issue_active\.ratio")
Read = tuple[dict[str, Value], dict[str, Value]]  # by concept, by stall reason


def read_all(reports: Path, *names: str) -> list[tuple[str, Read]]:
    """Every launch of the reports: its values by concept and by stall reason."""
    values_by_launch = []
    for path, report in zip(
        names, read.read_reports([reports / f"{name}.ncu-rep" for name in names]), strict=True
    ):
        assert isinstance(report, Report)
        chip = chip_of(side_of_report(report, path).compute_capability or "")
        values_by_launch += [
            (f"{path}#{launch.ordinal}", values_of(launch, chip)) for launch in report.launches
        ]
    return values_by_launch


def values_of(launch: Launch, chip: str) -> Read:
    concepts = {name: TABLE.resolve(TABLE.by_concept[name], launch.values, chip)[1] for name in CONCEPTS}
    stalls = {
        match[1]: TABLE.resolve(metric, launch.values, chip)[1]
        for metric in TABLE.metrics
        if (match := STALL.fullmatch(metric.alternatives[0].name)) and metric.names_for(chip)
    }
    return concepts, stalls


def both(a: Read, b: Read) -> tuple[TimeIdentity, TimeIdentity]:
    return read_identities(a[0], b[0], {reason: (a[1][reason], b[1][reason]) for reason in a[1]})


def terms(split: TimeSplit) -> dict[str, float]:
    return {term.cause: term.us for term in split.terms}


def adds_up(split: TimeSplit) -> bool:
    """Whether terms and residue are the difference, to the last bit of whichever of the two is larger."""
    total = math.fsum((*(term.us for term in split.terms), split.residue_us))
    return abs(total - split.delta_us) <= math.ulp(max(abs(split.delta_us), abs(split.residue_us)))


@pytest.fixture(scope="module")
def full(reports: Path) -> list[tuple[str, Read]]:
    """The launches that carry every counter of the identity, on three GPUs."""
    cutlass = ("cutlass/report75", "cutlass/report80", "cutlass/report80@eba551e9")
    return read_all(
        reports, *cutlass, "llm.c/adamw_coalsecing_shared", "ncar/MW_Baseline", "ncar/MW_DivToMult"
    )


@pytest.fixture(scope="module")
def launch(full: list[tuple[str, Read]]) -> Read:
    return dict(full)["cutlass/report75#2"]


@pytest.mark.slow
def test_on_every_pair_of_real_launches_terms_and_residue_are_the_measured_difference(
    full: list[tuple[str, Read]],
) -> None:
    assert len(full) == 21
    pairs = 0
    for (name_a, a), (name_b, b) in itertools.permutations(full, 2):
        one, other = both(a, b)
        split = split_time(one, other)
        assert split.depth == "full", (name_a, name_b)
        assert one.time_us is not None
        assert other.time_us is not None
        assert split.delta_us == other.time_us - one.time_us
        assert adds_up(split), (name_a, name_b)
        if abs(split.residue_us) < abs(split.delta_us):
            whole = math.fsum((*(term.us for term in split.terms), split.residue_us))
            assert whole == split.delta_us, (name_a, name_b)
        pairs += 1
    assert pairs == 420


@pytest.mark.slow
def test_the_terms_are_the_change_of_what_the_counters_model(full: list[tuple[str, Read]]) -> None:
    for (_, a), (_, b) in itertools.permutations(full, 2):
        one, other = both(a, b)
        assert one.modelled_us is not None
        assert other.modelled_us is not None
        total = math.fsum(term.us for term in split_time(one, other).terms)
        assert total == pytest.approx(
            other.modelled_us - one.modelled_us, rel=1e-9, abs=1e-9 * one.modelled_us
        )


def test_the_residue_is_small_where_the_passes_agree(full: list[tuple[str, Read]]) -> None:
    by_name = dict(full)
    for place in range(3):
        split = split_time(*both(by_name[f"cutlass/report75#{place}"], by_name[f"cutlass/report80#{place}"]))
        time = by_name[f"cutlass/report75#{place}"][0]["duration"].number or 0
        assert abs(split.residue_us) < 0.03 * time / 1000
        assert not split.flagged


def test_what_scaling_the_stalls_hides_is_the_residue_that_the_stalls_as_they_are_would_leave(
    full: list[tuple[str, Read]],
) -> None:
    by_name, shares = dict(full), []
    for place in range(3):
        one, other = both(by_name[f"cutlass/report75#{place}"], by_name[f"cutlass/report80#{place}"])
        split = split_time(one, other)
        bare = [replace(side, latency=math.fsum(side.stalls.values())) for side in (one, other)]
        left = split_time(bare[0], bare[1]).residue_us
        assert left == pytest.approx(split.residue_us - split.stall_skew_us, rel=1e-9)
        assert one.time_us is not None
        shares.append(round(100 * abs(left) / one.time_us, 1))
        assert not split.reasons_flagged
    assert sorted(shares) == [0.5, 1.2, 2.6], "of A's time, in per cent"


def test_reasons_whose_skew_is_most_of_the_change_are_flagged_though_the_residue_is_small(
    full: list[tuple[str, Read]],
) -> None:
    by_name = dict(full)
    launches = [by_name[f"llm.c/adamw_coalsecing_shared#{place}"] for place in (1, 3)]
    split = split_time(*both(*launches))
    assert not split.flagged
    assert split.reasons_flagged == "5.2 % of the time and 95 % of the change"
    (note,) = split_notes(split, True)
    assert "and were rescaled; effect 3.88 µs" in note
    assert note.endswith("waiting holds as a whole, its reasons do not")
    parts = compose_sentence(Verdict.WORSE, "", 70.5, 74.6, split)
    assert "waiting −0.39 µs" in parts.causes
    assert "most:" not in parts.causes, "no single reason is named"


def test_a_launch_against_itself_is_zero_everywhere(full: list[tuple[str, Read]]) -> None:
    for _, one in full:
        split = split_time(*both(one, one))
        assert split.depth == "full"
        assert {str(term.us) for term in split.terms} == {"0.0"}, "and no negative zero"
        assert (str(split.residue_us), split.delta_us, split.flagged) == ("0.0", 0.0, "")


def test_swapping_the_sides_flips_every_sign_exactly(full: list[tuple[str, Read]]) -> None:
    for (_, a), (_, b) in itertools.combinations(full, 2):
        there, back = split_time(*both(a, b)), split_time(*both(b, a))
        assert terms(there) == {cause: -us for cause, us in terms(back).items()}
        assert (there.residue_us, there.delta_us) == (-back.residue_us, -back.delta_us)
        assert there.flagged == back.flagged


def planted(
    of: TimeIdentity, *, work: float = 1.0, clock: float = 1.0, reason: str = "", waits: float = 1.0
) -> TimeIdentity:
    """The same launch with known changes: latency from its stalls and time from the identity made anew."""
    stalls = {name: cycles * (waits if name == reason else 1.0) for name, cycles in of.stalls.items()}
    assert of.latency is not None
    assert of.instructions is not None
    assert of.clock_hz is not None
    latency = of.latency * math.fsum(stalls.values()) / math.fsum(of.stalls.values())
    changed = replace(
        of, stalls=stalls, latency=latency, instructions=of.instructions * work, clock_hz=of.clock_hz * clock
    )
    return replace(changed, time_us=changed.modelled_us)


def test_planted_changes_are_recovered(launch: Read) -> None:
    one, _ = both(launch, launch)
    one = replace(one, time_us=one.modelled_us)
    assert one.time_us is not None
    reason = max(one.stalls, key=lambda name: one.stalls[name])
    share = one.stalls[reason] / math.fsum(one.stalls.values())
    for changes, cause, expected in (
        ({"work": 1.2}, "work", 0.2 * one.time_us),
        ({"clock": 0.9}, "clock", (1 / 0.9 - 1) * one.time_us),
        ({"reason": reason, "waits": 2.0}, f"waiting:{reason}", share * one.time_us),
    ):
        split = split_time(one, planted(one, **changes))  # type: ignore[arg-type]
        assert terms(split)[cause] == pytest.approx(expected, rel=0.01)
        others = [us for name, us in terms(split).items() if name != cause]
        assert max(map(abs, others)) < 1e-9 * one.time_us, cause
        assert abs(split.residue_us) < 1e-9 * one.time_us


def test_changes_planted_together_are_told_apart(launch: Read) -> None:
    one, _ = both(launch, launch)
    one = replace(one, time_us=one.modelled_us)
    other = planted(one, work=1.2, clock=0.9, reason="barrier", waits=2.0)
    assert one.time_us is not None
    assert other.time_us is not None
    found = terms(split_time(one, other))
    weights = []
    for name in one.stalls:
        a, b = (side.time_us * side.stalls[name] / math.fsum(side.stalls.values()) for side in (one, other))  # type: ignore[operator]
        weights.append((a if a == b else (b - a) / math.log(b / a)) if a else 0.0)
    assert found["work"] == pytest.approx(sum(weights) * math.log(1.2), rel=0.01)
    assert found["clock"] == pytest.approx(-sum(weights) * math.log(0.9), rel=0.01)
    barrier = weights[list(one.stalls).index("barrier")]
    assert found["waiting:barrier"] == pytest.approx(barrier * math.log(2), rel=0.01)
    assert math.fsum(found.values()) == pytest.approx(other.time_us - one.time_us, rel=1e-9)


def test_a_stall_that_is_zero_on_one_side_takes_its_whole_change(launch: Read) -> None:
    one, _ = both(launch, launch)
    one = replace(one, time_us=one.modelled_us)
    assert one.stalls["barrier"] > 0
    other = planted(one, reason="barrier", waits=0.0)
    assert one.time_us is not None
    there, back = split_time(one, other), split_time(other, one)
    share = one.stalls["barrier"] / math.fsum(one.stalls.values())
    assert terms(there)["waiting:barrier"] == pytest.approx(-share * one.time_us, rel=1e-9)
    assert terms(there) == {cause: -us for cause, us in terms(back).items()}
    assert adds_up(there)
    assert adds_up(back)


def test_a_stall_that_is_zero_on_both_sides_is_a_zero_term() -> None:
    identity = made(stalls={"wait": 3.0, "membar": 0.0, "selected": 1.0})
    found = terms(split_time(identity, replace(identity, time_us=24.0, instructions=2e6)))
    assert found["waiting:membar"] == 0.0
    assert found["work"] > 0


def made(**changes: object) -> TimeIdentity:
    plain = TimeIdentity(
        time_us=10.0,
        clock_hz=1e9,
        instructions=1e6,
        latency=4.0,
        warps=4.0,
        schedulers=100.0,
        active_share=1.0,
        cycles=10_000.0,
        stalls={"wait": 3.0, "selected": 1.0},
        stalls_whole=True,
    )
    return replace(plain, **changes)  # type: ignore[arg-type]


def test_without_stalls_waiting_is_one_term() -> None:
    one, other = (
        made(stalls={}, stalls_whole=False),
        made(stalls={}, stalls_whole=False, latency=8.0, time_us=20.0),
    )
    split = split_time(one, other)
    assert split.depth == "waiting undivided"
    assert terms(split)["waiting"] == pytest.approx(10.0)
    assert terms(split)["work"] == 0.0
    assert adds_up(split)


def test_with_some_stalls_only_the_others_stay_undivided() -> None:
    identity = made(stalls={"wait": 1.0}, stalls_whole=False)
    other = made(stalls={"wait": 1.0}, stalls_whole=False, latency=8.0, time_us=20.0)
    split = split_time(identity, other)
    assert split.depth == "full"
    assert terms(split)["waiting:wait"] == pytest.approx(0.0, abs=1e-12), "it did not change"
    assert terms(split)["waiting"] == pytest.approx(10.0)
    assert split.stall_ratio_a == 0.25


def test_stalls_that_stand_for_a_part_of_the_latency_are_not_blown_up_to_all_of_it() -> None:
    identity = made(stalls={"wait": 1.0})
    other = made(stalls={"wait": 1.0}, latency=8.0, time_us=20.0)
    assert terms(split_time(identity, other))["waiting"] == pytest.approx(10.0)


def test_stalls_that_one_side_alone_has_are_not_divided() -> None:
    split = split_time(made(), made(stalls={}, stalls_whole=False, latency=8.0, time_us=20.0))
    assert split.depth == "waiting undivided"
    assert terms(split)["waiting"] == pytest.approx(10.0)


@pytest.mark.parametrize("lacking", ["instructions", "latency", "warps", "schedulers", "active_share"])
def test_without_a_factor_the_split_is_cycles_and_clock(lacking: str) -> None:
    one, other = made(**{lacking: None}), made(cycles=18_000.0, clock_hz=0.9e9, time_us=20.0)
    split = split_time(one, other)
    assert split.depth == "cycles"
    assert list(terms(split)) == ["cycles", "clock"]
    assert terms(split)["cycles"] == pytest.approx(log_mean(10, 20) * math.log(1.8))
    assert terms(split)["clock"] == pytest.approx(-log_mean(10, 20) * math.log(0.9))
    assert abs(split.residue_us) < 1e-12


def test_block_barriers_that_became_polling_are_divided_without_a_counter_of_warps() -> None:
    """The shape of a public case of +21 %: more instructions, fewer cycles at barriers, new ones asleep."""
    counters = {
        "duration": (Value(2_000_000, "ns"), Value(2_420_000, "ns")),
        "sm_clock": (Value(1.2e9, "hz"), Value(1.2e9, "hz")),
        "cycles": (Value(2_400_000, "cycle"), Value(2_904_000, "cycle")),
        "cycles_elapsed": (Value(2_400_000.0, "cycle"), Value(2_904_000.0, "cycle")),
        "cycles_active": (Value(2_380_000.0, "cycle"), Value(2_880_000.0, "cycle")),
        "sm_count": (Value(100), Value(100)),
        "inst_issued": (Value(400e6, "inst"), Value(490e6, "inst")),
        "issue_active": (Value(42.0, "%"), Value(42.5, "%")),
        "warp_latency": (Value(10.0, "cycle"), Value(9.9, "cycle")),
    }
    stalls = {
        "barrier": (Value(4.0), Value(1.2)),
        "sleeping": (Value(0.0), Value(0.8)),
        "branch_resolving": (Value(1.0), Value(1.7)),
        "long_scoreboard": (Value(5.0), Value(6.2)),
    }
    a, b = read_identities(
        {concept: values[0] for concept, values in counters.items()},
        {concept: values[1] for concept, values in counters.items()},
        stalls,
    )
    assert (a.warps, b.warps) == (pytest.approx(4.2), pytest.approx(9.9 * 0.425))
    split = split_time(a, b)
    found = terms(split)
    assert split.depth == "full"
    assert adds_up(split)
    assert found["work"] == pytest.approx(log_mean(2000, 2420) * math.log(490 / 400), rel=0.1)
    assert found["waiting:barrier"] < -400
    assert found["waiting:sleeping"] == pytest.approx(2420 * 0.8 / 9.9, rel=0.02)
    assert found["waiting:branch_resolving"] > 100
    assert abs(split.residue_us) < 0.05 * 2420


def test_polling_that_became_barriers_is_divided_where_one_side_counted_its_warps() -> None:
    """The other way round, on a GPU of two schedulers an SM: warps of both sides follow from the rest."""
    concepts: dict[str, tuple[Value, Value]] = {
        "duration": (Value(900_000, "ns"), Value(750_000, "ns")),
        "sm_clock": (Value(1.5e9, "hz"), Value(1.5e9, "hz")),
        "cycles": (Value(1_350_000, "cycle"), Value(1_125_000, "cycle")),
        "cycles_elapsed": (Value(1_350_000.0, "cycle"), Value(1_125_000.0, "cycle")),
        "cycles_active": (Value(1_340_000.0, "cycle"), Value(1_115_000.0, "cycle")),
        "sm_count": (Value(30), Value(30)),
        "schedulers_per_sm": (Value(2), Value(2)),
        "inst_issued": (Value(40e6, "inst"), Value(32e6, "inst")),
        "issue_active": (Value(49.8, "%"), Value(47.8, "%")),
        "warp_latency": (Value(8.0, "cycle"), Value(8.4, "cycle")),
        "warps_active": (Value(None, "warp", state=State.NOT_COLLECTED), Value(8.4 * 0.478, "warp")),
    }
    stalls = {
        "barrier": (Value(0.5), Value(3.1)),
        "sleeping": (Value(2.0), Value(0.0)),
        "wait": (Value(5.5), Value(5.3)),
    }
    a, b = read_identities(
        {concept: values[0] for concept, values in concepts.items()},
        {concept: values[1] for concept, values in concepts.items()},
        stalls,
    )
    split = split_time(a, b)
    found = terms(split)
    assert split.depth == "full"
    assert adds_up(split)
    assert found["waiting:barrier"] > 150
    assert found["waiting:sleeping"] == pytest.approx(-900 * 2 / 8, rel=0.02)
    kept = log_mean(900 * 0.5 / 8, 750 * 3.1 / 8.4) + log_mean(900 * 5.5 / 8, 750 * 5.3 / 8.4)
    assert found["work"] == pytest.approx(kept * math.log(32 / 40), rel=0.01)


def test_without_a_clock_it_is_cycles_over_time() -> None:
    split = split_time(made(clock_hz=None), made(cycles=18_000.0, time_us=20.0))
    assert (split.depth, split.clock_from_time) == ("cycles", True)
    assert abs(split.residue_us) < 1e-12


def test_with_neither_there_is_no_split() -> None:
    split = split_time(made(clock_hz=None, cycles=None), made())
    assert (split.depth, split.terms, split.flagged) == ("none", (), "")


def test_a_launch_without_a_time_has_no_difference() -> None:
    with pytest.raises(ValueError, match="without a time"):
        split_time(made(time_us=None), made())


def test_a_large_residue_is_flagged_with_its_share() -> None:
    assert split_time(made(), made(time_us=10.4)).flagged == "3.8 % of the time and 100 % of the change"
    small = split_time(made(), made(time_us=20.0, instructions=1.97e6))
    assert abs(small.residue_us) == pytest.approx(0.3)
    assert not small.flagged
    assert split_time(made(time_us=1000.0), made(time_us=1000.2)).flagged == "100 % of the change"
    assert "all of the change" in split_time(made(), made(instructions=2e6)).flagged, (
        "the time did not change at all"
    )


def test_the_logarithms_are_exact_near_one_and_antisymmetric() -> None:
    assert log_ratio(1.0, 1.0) == 0.0
    assert log_ratio(1.0, 1 + 1e-12) == pytest.approx(1e-12, rel=1e-3)
    for a, b in ((3.0, 7.0), (1.0, 1e9), (5.0, 5.0000001), (1e-9, 2.0)):
        assert log_ratio(a, b) == -log_ratio(b, a)
        assert log_ratio(a, b) == pytest.approx(math.log(b / a))
        assert log_mean(a, b) == log_mean(b, a)
        assert min(a, b) < log_mean(a, b) <= (a + b) / 2 * (1 + 1e-15)


def concepts(**changes: Value) -> dict[str, Value]:
    plain = {
        "duration": Value(10_000, "ns"),
        "sm_clock": Value(1e9, "hz"),
        "cycles": Value(10_000, "cycle"),
        "inst_issued": Value(1_000_000, "inst"),
        "warp_latency": Value(4.0, "cycle"),
        "warps_active": Value(4.0, "warp"),
        "sm_count": Value(25),
        "cycles_active": Value(9_000.0, "cycle"),
        "cycles_elapsed": Value(10_000.0, "cycle"),
        "sm_cycles_active": Value(9_500.0, "cycle"),
    }
    return {**plain, **changes}


def one_of(values: Mapping[str, Value], other: Mapping[str, Value] | None = None) -> TimeIdentity:
    return read_identities(values, other or values, {})[0]


def test_the_factors_are_read_with_their_fallbacks() -> None:
    plain = one_of(concepts())
    assert (plain.time_us, plain.clock_hz, plain.warps, plain.schedulers) == (10.0, 1e9, 4.0, 100.0)
    assert plain.active_share == 0.9
    sm = one_of(concepts(cycles_active=NOT_COLLECTED))
    assert sm.active_share == 0.95, "of the cycles that the time makes at the clock"
    elapsed = Value(9_600.0, "cycle")
    of_sm = concepts(cycles_active=NOT_COLLECTED, cycles_elapsed=NOT_COLLECTED, sm_cycles_elapsed=elapsed)
    assert one_of(of_sm).active_share == 9_500 / 9_600
    warps = {"warps_active": NOT_COLLECTED, "sm_warps_active": Value(12.0, "warp")}
    assert one_of(concepts(**warps)).warps == 3.0
    little = one_of(concepts(**warps, issue_active=Value(80.0, "%")))
    assert little.warps == pytest.approx(4.0 * 0.8), (
        "latency times issue rate is exact, a count of the SM is not"
    )
    assert [(stand_in.factor, stand_in.most_off_pct) for stand_in in little.stand_ins] == [
        ("active warps", 0.0)
    ]
    uncounted = one_of(concepts(warps_active=NOT_COLLECTED))
    assert uncounted.warps == pytest.approx(4.0 * 1e6 / (100 * 9_000)), "instructions per active cycle"
    assert one_of(concepts(schedulers_per_sm=Value(2))).schedulers == 50.0
    assert not plain.missing


def test_a_factor_is_read_alike_on_both_sides() -> None:
    sm_warps = Value(15.4, "warp")
    a, b = read_identities(
        concepts(sm_warps_active=sm_warps), concepts(sm_warps_active=sm_warps, warps_active=NOT_COLLECTED), {}
    )
    assert a.warps == b.warps == 15.4 / 4, "else the change of the counter reads as one of the warps"
    lacking = concepts(sm_warps_active=sm_warps, warps_active=NOT_COLLECTED, warp_latency=NOT_COLLECTED)
    a, b = read_identities(concepts(), lacking, {})
    assert (a.warps, b.warps) == (None, None)
    assert a.missing == b.missing == ("warps_active", "warp_latency")


@pytest.mark.parametrize(
    "value",
    [NOT_COLLECTED, Value(None, "inst", state=State.FAILED), Value(0, "inst"), Value(None, "", "text")],
)
def test_what_is_no_number_above_zero_is_missing_and_no_factor(value: Value) -> None:
    identity = one_of(concepts(warps_active=value, warp_latency=NOT_COLLECTED))
    assert identity.warps is None
    assert identity.missing == ("warps_active", "warp_latency")
    assert split_time(identity, identity).depth == "cycles"


def test_cycles_are_missed_only_where_they_would_help() -> None:
    assert one_of(concepts(cycles=NOT_COLLECTED, cycles_elapsed=NOT_COLLECTED)).missing == ()
    bare = one_of({"duration": Value(10_000, "ns"), "sm_count": Value(25)})
    assert {"cycles", "sm_clock", "inst_issued", "warp_latency", "warps_active"} <= set(bare.missing)


def test_a_stall_without_a_number_is_missing_by_its_reason() -> None:
    stalls = {"wait": (Value(3.0), Value(3.0)), "barrier": (Value(1.0), NOT_COLLECTED)}
    a, b = read_identities(concepts(), concepts(), stalls)
    assert a.stalls == b.stalls == {"wait": 3.0}
    assert a.missing == ("barrier",)
    assert not a.stalls_whole


def test_times_in_any_unit_are_microseconds() -> None:
    for number, unit in (
        (13_056, "ns"),
        (13.056, "us"),
        (13.056, "usecond"),
        (0.013056, "ms"),
        (0.013056, "msecond"),
        (13_056, "nsecond"),
        (13.056e-6, "s"),
        (13.056e-6, "second"),
    ):
        assert usable_time_us(Value(number, unit)) == pytest.approx(13.056)
    assert usable_time_us(Value(13_056, "ns")) == 13.056
    assert usable_time_us(Value(13_056, "cycle")) is None
    assert usable_time_us(Value(None, "ns", state=State.FAILED)) is None
    assert one_of(concepts(sm_clock=Value(1.5, "cycle/nsecond"))).clock_hz == pytest.approx(1.5e9)


@pytest.mark.slow
def test_a_waterfall_leads_from_the_old_time_to_the_new_and_never_under_zero(
    full: list[tuple[str, Read]],
) -> None:
    for (_, a), (_, b) in itertools.permutations(full, 2):
        one, other = both(a, b)
        assert one.time_us is not None
        assert other.time_us is not None
        steps = waterfall_steps(one.time_us, split_time(one, other))
        sums = list(itertools.accumulate((step.us for step in steps), initial=one.time_us))
        assert sums[-1] == pytest.approx(other.time_us)
        assert min(sums) > -1e-9 * one.time_us


def test_a_waterfall_tells_what_adds_before_what_takes_away_and_the_small_ones_together() -> None:
    identity = made(stalls={"wait": 2.0, "barrier": 1.0, "drain": 0.001, "selected": 0.999})
    other = made(
        stalls={"wait": 1.0, "barrier": 3.0, "drain": 0.002, "selected": 0.998}, latency=5.0, time_us=13.0
    )
    steps = waterfall_steps(10.0, split_time(identity, other))
    labels = [step.label for step in steps]
    assert [step.label for step in steps if step.is_stall] == labels[1:4]
    assert labels == [
        "work", "waiting: barrier", "waiting: wait", OTHER_REASONS,
        "parallelism", "balance", "clock", RESIDUE,
    ]  # fmt: skip
