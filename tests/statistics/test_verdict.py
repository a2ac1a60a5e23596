"""The table of verdict words: everything that shows or counts one takes it from there."""

from __future__ import annotations

import ast
import pickle
import re
from itertools import pairwise
from pathlib import Path

import pytest

import profiler
from profiler.gate import rules
from profiler.gate.finding import Outcome
from profiler.statistics.verdict import Traits, Verdict, heaviest, over_workloads
from profiler.ui import theme

PACKAGE = Path(profiler.__file__).parent


def test_every_verdict_has_a_sign_and_words() -> None:
    labels = [verdict.label for verdict in Verdict]
    assert labels[:3] == ["✓ better", "! worse", "= same"]
    assert {"? unclear", "≠ not comparable", "– missing", "Δ changed"} <= set(labels)


def test_every_word_is_explained_where_verdicts_are() -> None:
    _, _, section = (PACKAGE.parent / "docs" / "verdicts.md").read_text("utf-8").partition("\n## Verdicts\n")
    section = section.partition("\n## ")[0]
    unexplained = [word.value for word in Verdict if not re.search(rf"\| `{word}` \| .*\w.* \|", section)]
    assert unexplained == [], "docs/verdicts.md has a row for each word"


def test_a_sign_stands_for_one_verdict() -> None:
    assert len({verdict.traits.sign for verdict in Verdict}) == len(Verdict)


def test_a_verdict_is_its_word_everywhere() -> None:
    for verdict in Verdict:
        assert Verdict(str(verdict)) is verdict
        assert pickle.loads(pickle.dumps(verdict)) is verdict
    assert f"{Verdict.NOT_COMPARABLE}" == "not_comparable"


def test_a_colour_is_one_of_the_palette_and_of_the_style_sheet() -> None:
    sheet = (PACKAGE / "ui" / "style.css").read_text("utf-8")
    for colour in {verdict.traits.colour for verdict in Verdict} - {""}:
        assert colour in theme.PALETTE
        assert re.search(rf"\.v\.{colour}\b|\.{colour}\{{", sheet), colour


def test_only_what_moved_has_a_colour_and_only_what_nobody_decided_may_pass() -> None:
    for verdict in Verdict:
        traits = verdict.traits
        assert bool(traits.colour) == traits.moved
        assert not (traits.moved and not traits.decided)
        assert not (traits.fails and not traits.moved)
        assert not (traits.may_pass and traits.decided)


def test_a_gate_fails_on_what_is_worse_and_does_not_pass_what_nobody_decided() -> None:
    for verdict in Verdict:
        failed = Outcome.FAILED if verdict.traits.fails else Outcome.PASSED
        assert rules._outcome(verdict) is (failed if verdict.traits.decided else Outcome.UNJUDGED)
    assert rules._outcome(Verdict.WORSE) is Outcome.FAILED
    assert rules._outcome(Verdict.BETTER) is Outcome.PASSED
    assert rules._outcome(Verdict.MISSING) is Outcome.UNJUDGED


def test_of_several_verdicts_what_a_gate_fails_on_is_that_of_the_whole() -> None:
    by_weight = ["worse", "not_comparable", "unclear", "better", "changed", "same", "missing"]
    for heavier, lighter in pairwise(by_weight):
        assert heaviest([Verdict(lighter), Verdict(heavier), Verdict(lighter)]) == heavier
    assert heaviest([]) is Verdict.MISSING


@pytest.mark.parametrize(
    ("of_workloads", "whole"),
    [
        ("", "missing"),
        ("same same", "same"),
        ("same unclear", "unclear"),
        ("same better", "better"),
        ("unclear better", "better"),
        ("better missing", "missing"),
        ("better not_comparable", "missing"),
        ("worse better", "worse"),
        ("worse missing not_comparable", "worse"),
        ("changed same", "unclear"),
    ],
)
def test_over_workloads_better_needs_one_that_is_and_none_that_is_worse_or_unknown(
    of_workloads: str, whole: str
) -> None:
    assert over_workloads(map(Verdict, of_workloads.split())) == whole


def test_traits_that_are_left_out_are_those_of_changed() -> None:
    assert Verdict.CHANGED.traits == Traits(sign="Δ")


def test_no_other_module_groups_verdicts_or_has_a_table_of_them() -> None:
    """A module may say which verdict it means; what several have in common is a trait."""
    groups = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        if path.name == "verdict.py" or "Verdict." not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict):
                members = [
                    part
                    for part in (node.keys if isinstance(node, ast.Dict) else node.elts)
                    if isinstance(part, ast.Attribute)
                    and isinstance(part.value, ast.Name)
                    and part.value.id == "Verdict"
                ]
                if len(members) > 1:
                    groups.append(f"{path.relative_to(PACKAGE)}:{node.lineno}")
    assert groups == []
