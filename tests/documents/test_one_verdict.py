"""One verdict on two sides, whoever is asked: launches weigh by their time."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

import profiler
from profiler.compare.judged import Judge
from profiler.documents.comparison import ComparisonDocument
from profiler.errors import Exit
from profiler.evidence.metric_table import load_metrics
from profiler.gate.comparison_pairs import ComparisonPair
from profiler.gate.judgement import judge
from profiler.statistics.verdict import Verdict
from tests.gate import made_sides

TABLE = load_metrics()

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","gpu__time_duration.sum"\n"","","","","","","","","","","","ns"\n'
)


def report(folder: Path, name: str, times: dict[str, float]) -> str:
    rows = "".join(
        f'"{place}","7","app","h","{kernel}","1","7","(128, 1, 1)","(64, 1, 1)","0","8.0","{us * 1e3:.0f}"\n'
        for place, (kernel, us) in enumerate(times.items())
    )
    path = folder / f"{name}.csv"
    path.write_text(HEAD + rows)
    return str(path)


LAUNCHES = {
    "a short unclear launch beside a gain": ({"gemm": (900, 600), "halo": (10, 12)}, "better", Exit.PASS),
    "as many unclear as the gain": ({"gemm": (900, 870), "halo": (45, 65)}, "unclear", Exit.UNJUDGED),
    "a short unclear launch in much time": ({"gemm": (9000, 9000), "halo": (10, 12)}, "same", Exit.PASS),
    "unclear alone": ({"halo": (10, 12)}, "unclear", Exit.UNJUDGED),
    "a loss beside a larger gain": ({"gemm": (900, 600), "rows": (100, 120)}, "worse", Exit.REGRESSION),
    "a loss and an unclear launch": ({"gemm": (900, 990), "halo": (10, 12)}, "worse", Exit.REGRESSION),
}


@pytest.mark.parametrize(("launches", "word", "code"), LAUNCHES.values(), ids=LAUNCHES)
def test_a_comparison_an_explanation_and_a_gate_give_one_verdict(
    tmp_path: Path, launches: dict[str, tuple[float, float]], word: str, code: Exit
) -> None:
    a, b = (
        report(tmp_path, name, {kernel: times[place] for kernel, times in launches.items()})
        for place, name in enumerate("ab")
    )
    compared = profiler.compare(a, b)
    assert compared.verdict.value == word
    assert compared.verdict is compared.comparison.verdict
    assert profiler.compare(a, b, top=1).verdict is compared.verdict
    assert profiler.explain(a, b).verdict is compared.verdict
    assert profiler.gate([b], baseline=a).exit_code is code


def test_nothing_paired_is_missing(tmp_path: Path) -> None:
    a, b = report(tmp_path, "a", {"gemm": 100}), report(tmp_path, "b", {"softmax": 100})
    assert profiler.compare(a, b).verdict is profiler.explain(a, b).verdict is Verdict.MISSING


FACTS = {
    "half the blocks": ({"static__blocks_per_sm": 2}, "worse", Exit.REGRESSION),
    "more blocks": ({"static__blocks_per_sm": 5}, "changed", Exit.PASS),
    "registers of another step": ({"static__registers": 72}, "worse", Exit.REGRESSION),
    "registers within a step": ({"static__registers": 63}, "changed", Exit.PASS),
    "spills": ({"static__spill_bytes": 8}, "worse", Exit.REGRESSION),
    "shared memory alone": ({"static__shared_bytes": 57_000}, "changed", Exit.PASS),
    "over its budget": ({made_sides.BUDGET: "72 registers, budget 64"}, "worse", Exit.REGRESSION),
    "equal": ({}, "same", Exit.PASS),
}


@pytest.mark.parametrize(("changes", "word", "code"), FACTS.values(), ids=FACTS)
def test_a_comparison_and_a_gate_give_facts_one_verdict(
    changes: dict[str, float | str], word: str, code: Exit
) -> None:
    a, b = (
        made_sides.facts(static__shared_bytes=41_000),
        made_sides.facts(**{"static__shared_bytes": 41_000, **changes}),
    )
    document = ComparisonDocument((Judge(TABLE).sides(a, b),))
    assert judge([ComparisonPair("b", "a", a, b)], TABLE).exit_code() is code
    (launch,) = cast(list[dict[str, Any]], document.to_dict()["launches"])
    assert document.verdict.value == launch["verdict"] == word
    assert document.verdict.label in document.sentence
    printed = document.to_markdown().partition("\n")[2]
    assert (Verdict.WORSE.label in printed) is (word == "worse"), "the head has its reason below it"


def test_facts_of_wrong_results_break_no_rule() -> None:
    a, b = made_sides.facts(), made_sides.facts(wrong="races", static__blocks_per_sm=2)
    assert ComparisonDocument((Judge(TABLE).sides(a, b),)).verdict is Verdict.NOT_COMPARABLE
