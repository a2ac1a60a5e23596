"""Which derived numbers of a pair repeat another, on made changes."""

from __future__ import annotations

from profiler.compare.pair_comparison import MetricChange
from profiler.compare.repeated_numbers import split_repeats
from profiler.evidence.values import Derivation, Value
from profiler.statistics.verdict import Verdict

ACTIVE = "smsp__cycles_active.avg"


def change(concept: str, metric: str, a: Value, b: Value, group: str = "cycles") -> MetricChange:
    return MetricChange(concept, concept, metric, group, "cycle", a, b, None, Verdict.SAME, "", False)


def derived(number: float, formula: str, most_off_pct: float | None = None) -> Value:
    return Value(number, "cycle", derivation=Derivation(formula, most_off_pct))


CARRIED = change("cycles", ACTIVE, Value(100.0, "cycle"), Value(120.0, "cycle"))


def test_what_is_computed_from_one_counter_of_the_list_repeats_it_however_far_off() -> None:
    values = (derived(number, f"{ACTIVE} * 4", 30.0) for number in (400.0, 480.0))
    scaled = change("sm_cycles", "stand-in", *values)
    assert split_repeats([scaled, CARRIED]) == ([CARRIED], [scaled])


def test_what_is_computed_from_another_counter_too_is_a_number_of_its_own() -> None:
    formulas = (f"{ACTIVE} * 4", f"{ACTIVE} * sm__warps_active.avg")
    for of_a, of_b in (formulas, formulas[::-1], (formulas[1], formulas[1])):
        own = change("warp_cycles", "derived", derived(400.0, of_a), derived(480.0, of_b))
        assert split_repeats([CARRIED, own]) == ([CARRIED, own], [])


def test_a_number_of_another_group_is_no_repeat() -> None:
    values = (derived(number, ACTIVE) for number in (100.0, 120.0))
    elsewhere = change("clock_cycles", "derived", *values, group="clock")
    assert split_repeats([CARRIED, elsewhere]) == ([CARRIED, elsewhere], [])


def test_what_the_report_carries_is_never_a_repeat() -> None:
    equal = change("also_cycles", "sm__cycles_active.avg", CARRIED.a, CARRIED.b)
    assert split_repeats([CARRIED, equal]) == ([CARRIED, equal], [])
