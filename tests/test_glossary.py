"""The glossary defines every word that an answer uses as a verdict, a state or a kind, in order and once."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path

import pytest

from profiler.compare.match_launches import PairedBy
from profiler.evidence.values import Evidence, State
from profiler.gate.finding import Outcome
from profiler.judge.judgement import StageState
from profiler.statistics.changepoint import LevelKind
from profiler.statistics.verdict import Verdict

DOCS = Path(__file__).resolve().parent.parent / "docs"
TEXT = (DOCS / "glossary.md").read_text("utf-8")
MEANINGS = dict(re.findall(r"^- \*\*(.+?)\*\*: (.+)$", TEXT, re.M))
WORDS = re.findall(r"^- \*\*(.+?)\*\*:", TEXT, re.M)
IN_TABLES = re.findall(r"^\| `?([^`|]+?)`? \|", (DOCS / "verdicts.md").read_text("utf-8"), re.M)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param([member.words for member in Verdict], id="verdicts"),
        pytest.param([member.words for member in State if member is not State.PRESENT], id="states"),
        *(
            pytest.param([member.value for member in kind], id=kind.__name__)
            for kind in (Evidence, Outcome, LevelKind, StageState)
        ),
    ],
)
def test_every_word_of_an_answer_is_defined(said: list[str]) -> None:
    assert [word for word in said if word not in MEANINGS] == []


@pytest.mark.parametrize("kind", [PairedBy, Verdict], ids=lambda kind: kind.__name__)
def test_a_word_that_the_glossary_leaves_to_the_verdicts_has_its_row_there(kind: type[Enum]) -> None:
    assert [member.value for member in kind if member.value not in IN_TABLES] == []


def test_the_words_come_in_order_and_once() -> None:
    assert sorted(set(WORDS), key=str.lower) == WORDS


def test_every_word_has_a_meaning_and_the_whole_is_short() -> None:
    assert [word for word in WORDS if len(MEANINGS.get(word, "").split()) < 3] == []
    assert len(TEXT.split()) <= 1200
