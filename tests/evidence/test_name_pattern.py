"""Patterns of users: what fits as before, and that none takes long."""

from __future__ import annotations

import time

import pytest

from profiler.compare.kernel_pairs import captures
from profiler.compare.match_launches import name_filter
from profiler.evidence.name_pattern import BadPattern, compile_expression, compile_wildcards

# Python's `re` is busy with any of these for longer than the tests run.
BACKTRACKING = [r"^(\w+\W*)+\d\d\dzz$", r"(a|aa)+$", r"(\w*a){12}z", r"(.*?,){11}P"]
NAME = "a" * 4000 + "!"


@pytest.mark.parametrize("expression", BACKTRACKING)
def test_a_pattern_that_backtracks_takes_no_time(expression: str) -> None:
    before = time.process_time()
    assert compile_expression(expression).search(NAME) is None
    assert name_filter(f"regex:{expression}")(NAME) is False
    assert captures(f"regex:{expression}", NAME) is None
    assert time.process_time() - before < 1


def test_many_wildcards_take_no_time() -> None:
    before = time.process_time()
    assert captures("*a" * 20 + "z", NAME) is None
    assert name_filter("*a" * 20 + "z")(NAME) is False
    assert time.process_time() - before < 1


def test_wildcards_are_groups_of_a_whole_name_and_brackets_are_letters() -> None:
    match = compile_wildcards("gemm[*]_v?").search("GEMM[fp16\n]_v6")
    assert match is not None
    assert match.groups() == ("fp16\n", "6")
    assert compile_wildcards("gemm*").search("a_gemm") is None


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("(", "not a regular expression: missing \\)"),
        (r"(a)\1", "backreferences and lookaround"),
        ("(?<=a)b", "backreferences and lookaround"),
        (".{0,500}x.{0,500}y", "too large to match in reasonable time"),
        ("x" * 1001, "1,001 characters"),
        ("\udcff", "it is not UTF-8 text"),
    ],
)
def test_what_cannot_be_matched_in_time_is_refused_with_the_reason(expression: str, reason: str) -> None:
    with pytest.raises(BadPattern, match=reason):
        compile_expression(expression)


def test_wildcards_that_are_no_text_are_refused_too() -> None:
    with pytest.raises(BadPattern, match="not UTF-8"):
        compile_wildcards("\udcff*")
