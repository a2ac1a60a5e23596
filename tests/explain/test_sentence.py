"""The sentence that answers why: which cause comes first, what is against it, what is left out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.explain.identity_factors import StandIn
from profiler.explain.sentence import (
    UNDIVIDED,
    SentenceParts,
    compose_sentence,
    format_change,
    format_side,
    format_time,
    split_notes,
)
from profiler.explain.time_identity import CYCLES_ONLY, FULL, Term, TimeSplit, WaterfallStep
from profiler.explain.what_moved import WhatMoved
from profiler.statistics.verdict import Verdict


def split(
    delta_us: float, *, residue_us: float = 0.0, depth: str = FULL, flagged: str = "", **us: float
) -> TimeSplit:
    """A split of a change into terms by their causes; `waiting_barrier` is the waiting for barriers."""
    terms = tuple(Term(cause.replace("_", ":"), size) for cause, size in us.items())
    return TimeSplit(terms, residue_us, delta_us, depth, flagged=flagged, longer_us=abs(delta_us))


def answer(made: TimeSplit | None, a_us: float = 100.0, b_us: float = 200.0, **more: str) -> SentenceParts:
    verdict = Verdict.WORSE if b_us > a_us else Verdict.BETTER
    return compose_sentence(verdict, "a reason", a_us, b_us, made, **more)  # type: ignore[arg-type]


def test_the_largest_cause_of_the_change_leads_and_what_is_against_it_follows() -> None:
    told = answer(split(100.0, work=80.0, waiting_barrier=60.0, waiting_wait=-5.0, clock=-30.0, balance=-9.0))
    assert told.headline == "100 µs slower"
    assert told.causes == (
        "mainly from more work (+80 µs), partly offset by a higher clock (−30 µs); "
        "also waiting +55 µs (most: barrier), balance −9 µs"
    )
    back = answer(split(-100.0, work=-80.0, clock=30.0, parallelism=-50.0), 200.0, 100.0)
    assert back.answer == (
        "100 µs faster, mainly from less work (−80 µs), partly offset by a lower clock (+30 µs); "
        "also parallelism −50 µs."
    )


def test_a_cause_is_the_main_one_from_half_of_the_change_on_and_against_it_from_a_tenth() -> None:
    assert answer(split(100.0, work=50.0, clock=-10.0)).causes == (
        "mainly from more work (+50 µs), partly offset by a higher clock (−10 µs)"
    )
    assert (
        answer(split(100.0, work=49.0, clock=-9.0)).causes
        == "most of all from more work (+49 µs); also clock −9 µs"
    )
    assert answer(split(100.0, work=50.0, clock=-20.0, balance=-30.0)).causes.endswith(
        "offset by better balance (−30 µs) and a higher clock (−20 µs)"
    )
    assert answer(split(100.0, work=-50.0)).causes == (
        "which none of its counters explains, partly offset by less work (−50 µs)"
    )
    assert answer(split(100.0, work=0.0)).causes == "which none of its counters explains"


def test_waiting_names_the_reason_that_waited_most_in_its_direction_or_the_pipe_it_waits_for() -> None:
    less = answer(split(-100.0, waiting_barrier=-90.0, waiting_wait=20.0), 200.0, 100.0)
    assert less.causes == "mainly from less waiting (−70 µs, most: barrier)"
    busy = answer(split(100.0, waiting_math=90.0), busy_pipe="FMA at 95 %")
    assert busy.causes == "mainly from more waiting for a busy pipe (+90 µs, most: math; FMA at 95 %)"
    undivided = answer(split(100.0, waiting=90.0))
    assert undivided.causes == "mainly from more waiting (+90 µs)"


def test_cycles_are_the_change_itself_and_the_clock_is_a_cause_where_it_did_more() -> None:
    cycles = split(100.0, depth=CYCLES_ONLY, cycles=80.0, clock=20.0)
    told = answer(cycles, collect="Collect this.")
    assert told.causes == f"cycles +80.0 µs, clock +20.0 µs; {UNDIVIDED}"
    assert told.others == ("Collect this.", "Residue ±0.")
    even = split(100.0, depth=CYCLES_ONLY, cycles=50.0, clock=50.0)
    assert answer(even).causes.endswith(UNDIVIDED)
    clock = answer(split(100.0, depth=CYCLES_ONLY, cycles=20.0, clock=80.0), collect="Collect this.")
    assert clock.causes == "mainly from a lower clock (+80 µs); also cycles +20 µs"
    assert clock.collect == "", "there is an answer"


def test_where_computed_counters_may_be_off_by_more_than_any_cause_none_is_certain() -> None:
    made = split(100.0, work=80.0, clock=20.0)
    stand_in = StandIn("instructions", ("inst_executed",), "instructions issued ≈ executed", 1.2, 9.0)
    off = replace(made, stand_ins=(stand_in,), longer_us=1000.0)
    assert answer(off, 900.0, 1000.0).causes == (
        "mainly from more work (+80 µs); also clock +20 µs; "
        "no cause is certain: each is below 90 µs, the error of computed counters"
    )
    assert "certain" not in answer(replace(off, longer_us=500.0), 400.0, 500.0).causes, "work is above 45 µs"
    assert [off.is_noise(us) for us in (89.0, -89.0, 91.0)] == [True, True, False]


@pytest.mark.parametrize(
    ("residue_us", "words"),
    [
        (0.0, "Residue ±0."),
        (3.0, "Residue +3 µs, 3.0 % of the change."),
        (-3.0, "Residue −3 µs, 3.0 % of the change."),
        (0.04, "Residue ±0."),
        (0.6, "Residue +1 µs, 0.6 % of the change."),
    ],
)
def test_the_residue_is_a_share_of_the_change(residue_us: float, words: str) -> None:
    assert answer(split(100.0, work=100.0, residue_us=residue_us)).remainder == words


def test_a_flagged_residue_says_that_no_term_is_to_be_trusted() -> None:
    made = split(100.0, work=60.0, residue_us=40.0, flagged="40 % of the change")
    assert answer(made).remainder == ("Residue +40 µs, too large to trust the terms: 40 % of the change.")
    assert next(split_notes(made, True)).startswith("residue flagged: 40 % of the change; ")
    assert next(split_notes(made, False)).startswith("the verdict is unclear")


def test_without_a_split_or_a_change_the_sentence_says_why() -> None:
    made = split(100.0, work=100.0)
    told = {
        verdict: str(compose_sentence(verdict, "a reason", 100.0, 1100.0, made))
        for verdict in (Verdict.NOT_COMPARABLE, Verdict.SAME, Verdict.UNCLEAR)
    }
    assert [*told.values()] == [
        "No causes: a reason.",
        "Unchanged, 0.100 ms → 1.10 ms: a reason, so no causes.",
        "Unclear whether it changed, 0.100 ms → 1.10 ms, so no causes.",
    ]
    for a_us, b_us in ((None, 1.0), (1.0, None)):
        lacking = compose_sentence(Verdict.WORSE, "a reason", a_us, b_us, made)
        assert str(lacking) == "No split without a duration: a reason."
    by_cycles = compose_sentence(Verdict.SAME, "equal cycles", 100.0, 110.0, None, by_cycles=True)
    assert str(by_cycles) == "100 µs → 110 µs: equal cycles."
    few = answer(None, moved=WhatMoved((), ()), collect="Collect this.")  # type: ignore[arg-type]
    assert str(few) == (
        "100 µs slower, but no split: too few counters for the causes. "
        "Moved most: no counter beyond its threshold. Collect this."
    )
    assert answer(made).moved == ""


def test_times_share_the_unit_and_the_digits_of_the_largest() -> None:
    assert format_time(1234.5) == "1.23 ms"
    assert format_time(-12.0, 1234.5) == "−0.01 ms"
    assert format_time(-0.001, 1234.5) == "0.00 ms", "no sign before nothing"
    assert format_time(12.0, 1234.5, 12.0) == "0.0120 ms"
    assert format_time(0.0, 0.0) == "0.00 ns"
    assert format_time(5e6, 5e8) == "5 s"
    assert format_change(12.0) == "+12 µs"
    assert format_change(-12.0) == "−12 µs"
    assert format_change(0.0) == "±0"
    assert format_side(20.0, 2000.0) == "0.0200 ms"


def test_a_step_says_of_what_kind_it_is_and_for_which_reason() -> None:
    steps = [WaterfallStep("waiting: barrier", 1.0, True), WaterfallStep("work", 1.0)]
    assert [(step.kind, step.reason) for step in steps] == [("waiting", "barrier"), ("work", "")]
