"""Factors of the time identity from stand-ins: exact or near, alike on both sides, each saying what it is."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from pathlib import Path

import pytest

from profiler.evidence.values import NOT_COLLECTED, Derivation, Value
from profiler.explain.identity_factors import CONCEPTS, read_factors
from profiler.explain.sentence import split_notes
from profiler.explain.time_identity import TimeSplit, read_identities, split_time
from tests.explain.test_time_identity import Read, adds_up, both, read_all, terms

# One launch of a GPU with 25 SMs of 4 schedulers: 10 µs at 1 GHz, of which 90 % of the cycles are active and
# 30 % of those issue, with 5 warps in each scheduler. So I = 100 · 9000 · 0.3, and L = 5 / 0.3.
LAUNCH = {
    "duration": Value(10_000, "ns"),
    "sm_clock": Value(1e9, "hz"),
    "roof_sm_clock": Value(1e9, "hz"),
    "cycles": Value(10_000, "cycle"),
    "cycles_elapsed": Value(10_000.0, "cycle"),
    "sm_cycles_elapsed": Value(10_000.0, "cycle"),
    "cycles_active": Value(9_000.0, "cycle"),
    "sm_cycles_active": Value(9_000.0, "cycle"),
    "inst_issued": Value(270_000, "inst"),
    "inst_executed": Value(270_000, "inst"),
    "issue_active": Value(30.0, "%"),
    "issue_elapsed": Value(27.0, "%"),
    "issue_slots": Value(27.0, "%"),
    "warp_latency": Value(5 / 0.3, "cycle"),
    "warps_active": Value(5.0, "warp"),
    "sm_warps_active": Value(20.0, "warp"),
    "sm_count": Value(25),
    "schedulers_per_sm": Value(4),
}
FACTORS = {"T": 10.0, "f": 1e9, "I": 270_000.0, "L": 5 / 0.3, "W": 5.0, "S": 100.0, "a": 0.9}
# What a report of ncu's basic set holds, and one of its warp and scheduler sections without speed of light.
BASIC = (
    "duration", "sm_clock", "cycles", "sm_cycles_active", "issue_elapsed", "sm_warps_active", "sm_count",
)  # fmt: skip
SCHEDULER = (
    "duration",
    "cycles",
    "inst_executed",
    "issue_active",
    "warp_latency",
    "warps_active",
    "sm_count",
)
WAYS = {
    "as counted": tuple(concept for concept in LAUNCH if concept != "issue_slots"),
    "executed for issued": (
        "duration", "sm_clock", "cycles_active", "cycles_elapsed", "inst_executed", "warp_latency",
        "warps_active", "sm_count",
    ),
    "the basic set": BASIC,
    "the scheduler's sections": SCHEDULER,
    "issued of active cycles": (
        "duration", "sm_clock", "cycles_active", "cycles_elapsed", "issue_active", "warps_active", "sm_count",
    ),
    "issued of the SM's active cycles": (
        "duration", "sm_clock", "sm_cycles_active", "sm_cycles_elapsed", "issue_active", "warps_active",
        "sm_count",
    ),
    "issued of elapsed cycles": (
        "duration", "sm_clock", "sm_cycles_active", "sm_cycles_elapsed", "issue_elapsed", "sm_warps_active",
        "sm_count",
    ),
    "issued of the scheduler's elapsed cycles": (
        "duration", "cycles_active", "cycles_elapsed", "issue_elapsed", "warps_active", "sm_count",
    ),
    "issued of warps and their latency": (
        "duration", "sm_clock", "cycles_active", "cycles_elapsed", "warp_latency", "warps_active", "sm_count",
    ),
    "the clock of the roofs": (
        "duration", "roof_sm_clock", "cycles_active", "inst_issued", "warp_latency", "warps_active",
        "sm_count",
    ),
}  # fmt: skip


# The reports that the other ways are tried on do not hold the share of issue slots.
OF_ISSUE_SLOTS = (
    "duration", "sm_clock", "cycles", "sm_cycles_active", "issue_slots", "sm_warps_active", "sm_count",
)  # fmt: skip


def holding(concepts: tuple[str, ...], launch: Mapping[str, Value] = LAUNCH) -> dict[str, Value]:
    return {concept: launch[concept] for concept in concepts}


@pytest.fixture(scope="module")
def full(made_reports: Path) -> list[tuple[str, Read]]:
    """Launches that carry every counter of the identity."""
    return read_all(made_reports, "cutlass/report75", "llm.c/adamw_coalsecing_shared", "ncar/MW_Baseline")


@pytest.mark.parametrize("concepts", [*WAYS.values(), OF_ISSUE_SLOTS], ids=[*WAYS, "of the issue slots"])
def test_every_way_to_a_factor_gives_the_factor(concepts: tuple[str, ...]) -> None:
    values = holding(concepts)
    factors = read_factors(values, values)
    assert factors.missing == ()
    for letter, expected in FACTORS.items():
        assert factors.a[letter] == factors.b[letter] == pytest.approx(expected), letter
    assert set(factors.inputs) <= set(values)


def test_what_is_counted_has_no_stand_in() -> None:
    assert read_factors(LAUNCH, LAUNCH).stand_ins == ()


def test_a_stand_in_names_itself_its_concepts_and_how_far_off_it_may_be() -> None:
    values = holding(WAYS["executed for issued"])
    (stand_in,) = read_factors(values, values).stand_ins
    assert (stand_in.factor, stand_in.concepts) == ("instructions", ("inst_executed",))
    assert stand_in.words == "instructions issued ≈ executed"
    assert (stand_in.median_off_pct, stand_in.most_off_pct) == (1.2, 9.7)
    values = holding(WAYS["issued of active cycles"])
    issued, latency = read_factors(values, values).stand_ins
    assert issued.most_off_pct == latency.most_off_pct == 0
    assert latency.words == "latency = active warps / issue rate"
    assert latency.concepts == ("warps_active", "issue_active")


def test_every_stand_in_says_how_far_off_it_was_seen_to_be() -> None:
    ways = [holding(concepts) for concepts in (*WAYS.values(), OF_ISSUE_SLOTS)]
    found = [stand_in for values in ways for stand_in in read_factors(values, values).stand_ins]
    assert {(one.words, one.median_off_pct, one.most_off_pct) for one in found} == {
        ("active cycles = instructions / issue rate", 0.0, 0.0),
        ("active cycles of a scheduler ≈ those of its SM", 0.5, 8.2),
        ("active warps per scheduler ≈ those of its SM / schedulers", 0.6, 9.6),
        ("clock = elapsed cycles / time", 0.03, 1.4),
        ("elapsed cycles = time × clock", 0.15, 8.1),
        ("instructions executed = elapsed cycles × the share of issue slots used, for issued", 0.9, 9.7),
        ("instructions issued ≈ executed", 1.2, 9.7),
        ("instructions issued = active cycles × active warps / latency", 0.0, 0.0),
        ("instructions issued = active cycles × the share of them that issue", 0.0, 0.0),
        ("instructions issued = active cycles × the share of them that issue", 0.5, 8.2),
        ("instructions issued = elapsed cycles × the share of them that issue", 0.0, 0.0),
        ("instructions issued = elapsed cycles × the share of them that issue", 0.14, 8.1),
        ("latency = active warps / instructions per active cycle", 0.3, 6.1),
        ("latency = active warps / issue rate", 0.0, 0.0),
        ("clock of the GPCs ≈ that of the SMs", 0.002, 7.5),
    }


def test_a_basic_report_names_every_factor_that_it_lacks_a_counter_of() -> None:
    values = holding(BASIC)
    by_factor = {stand_in.factor: stand_in for stand_in in read_factors(values, values).stand_ins}
    assert list(by_factor) == ["elapsed cycles", "instructions", "active cycles", "active warps", "latency"]
    assert by_factor["instructions"].concepts == ("sm_count", "issue_elapsed", "cycles")


def test_a_number_that_metrics_txt_derives_is_named_too() -> None:
    values = holding(WAYS["executed for issued"])
    formula = "smsp__cycles_active.sum / (4 * device__attribute_multiprocessor_count)"
    values["cycles_active"] = Value(9_000.0, "cycle", derivation=Derivation(formula))
    issued, active = read_factors(values, values).stand_ins
    assert (active.factor, active.concepts) == ("active cycles", ("cycles_active",))
    assert active.words == f"cycles_active derived from {formula}"
    assert active.most_off_pct == 0
    assert issued.factor == "instructions"


def test_a_form_is_taken_on_both_sides_or_on_neither() -> None:
    issued = {**holding(WAYS["executed for issued"]), "inst_issued": Value(280_000, "inst")}
    executed = holding(WAYS["executed for issued"])
    for a, b in itertools.permutations((issued, executed)):
        factors = read_factors(a, b)
        assert factors.a["I"] == factors.b["I"] == 270_000, "not issued on one side and executed on the other"
    basic, scheduler = holding(BASIC), holding(SCHEDULER)
    factors = read_factors(basic, scheduler)
    assert (factors.a["I"], factors.a["W"], factors.a["L"]) == (None, None, None)
    assert {"inst_issued", "warps_active", "warp_latency"} <= set(factors.missing)


def test_only_what_the_split_uses_is_named() -> None:
    values = holding(("duration", "cycles", "sm_warps_active"))
    factors = read_factors(values, values)
    assert [stand_in.factor for stand_in in factors.stand_ins] == ["clock"], "the warps divide nothing here"
    assert factors.inputs == ("duration", "cycles")


def test_numbers_that_are_none_make_no_factor() -> None:
    values = {**holding(BASIC), "issue_elapsed": Value(0.0, "%")}
    assert read_factors(values, values).a["I"] is None
    assert read_factors({**values, "issue_elapsed": NOT_COLLECTED}, values).a["L"] is None


def without(read: Read, concepts: tuple[str, ...], *, stalls: bool) -> Read:
    """The values of a launch of which only these concepts were collected, and no stalls unless `stalls`."""
    values, reasons = read
    kept = {name: value if name in concepts else NOT_COLLECTED for name, value in values.items()}
    return kept, reasons if stalls else dict.fromkeys(reasons, NOT_COLLECTED)


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("stalls", [True, False])
def test_terms_and_residue_are_the_measured_difference_by_every_way(
    full: list[tuple[str, Read]], way: str, stalls: bool
) -> None:
    needs = [name for name in WAYS[way] if name != "schedulers_per_sm"]
    kept = [
        without(read, (*WAYS[way], "schedulers_per_sm"), stalls=stalls)
        for _, read in full
        if all(read[0][name].number for name in needs)
    ]
    assert len(kept) >= 7
    for a, b in itertools.permutations(kept, 2):
        identity_a, identity_b = both(a, b)
        split = split_time(identity_a, identity_b)
        back = split_time(*both(b, a))
        assert split.delta_us == (identity_b.time_us or 0) - (identity_a.time_us or 0)
        assert adds_up(split)
        assert terms(split) == {cause: -us for cause, us in terms(back).items()}
        if abs(split.residue_us) < abs(split.delta_us):
            assert math.fsum((*(term.us for term in split.terms), split.residue_us)) == split.delta_us
        assert split.depth == ("full" if stalls else "waiting undivided")


@pytest.mark.parametrize("way", ["executed for issued", "the basic set", "the scheduler's sections"])
def test_a_split_by_stand_ins_is_near_the_one_by_the_counters(full: list[tuple[str, Read]], way: str) -> None:
    worst, compared = 0.0, 0
    long = [read for _, read in full if (read[0]["duration"].number or 0) > 50_000]
    holding = [read for read in long if all(read[0][name].number for name in WAYS[way])]
    for a, b in itertools.permutations(holding, 2):
        # Without stalls on either: the weights of a split are summed over them.
        counted = split_time(*both(*(without(read, tuple(LAUNCH), stalls=False) for read in (a, b))))
        computed = split_time(*both(*(without(read, WAYS[way], stalls=False) for read in (a, b))))
        longer = max(read[0]["duration"].number or 0 for read in (a, b)) / 1000
        for kind in ("work", "waiting", "parallelism", "balance", "clock"):
            worst = max(worst, abs(counted.total(kind) - computed.total(kind)) / longer)
        compared += 1
    assert compared >= 12
    assert worst < 0.1, "of the longer time"


def test_the_residue_still_tells_where_the_identity_does_not_give_the_time() -> None:
    a = holding(WAYS["executed for issued"])
    b = {**a, "duration": Value(20_000, "ns")}  # and nothing else moved
    split = split_time(*read_identities(a, b, {}))
    assert split.residue_us == pytest.approx(10.0)
    assert split.flagged == "50.0 % of the time and 100 % of the change"


def notes(split: TimeSplit) -> list[str]:
    return list(split_notes(split, True))


def test_a_split_says_what_it_computed_and_where_no_residue_can_be_left() -> None:
    a = holding(BASIC)
    b = {**a, "duration": Value(20_000, "ns"), "cycles": Value(20_000, "cycle")}
    b["sm_cycles_active"] = Value(18_000.0, "cycle")
    split = split_time(*read_identities(a, b, {}))
    assert split.depth == "waiting undivided"
    assert split.residue_is_made_zero
    computed, uncertain, no_residue = notes(split)
    assert computed.startswith(
        "computed from other counters (not collected in A, B or both): elapsed cycles = time × clock"
    )
    assert uncertain.endswith("were off by up to 9.6 %: terms below 1.9 µs are noise")
    assert no_residue.startswith("residue is zero by construction")
    counted = split_time(*read_identities(LAUNCH, {**LAUNCH, "duration": Value(10_100, "ns")}, {}))
    assert notes(counted)[0].startswith("residue flagged")
    assert not any("computed from" in line for line in notes(counted))


def test_every_concept_of_a_form_is_asked_for() -> None:
    assert set(LAUNCH) == set(CONCEPTS)
