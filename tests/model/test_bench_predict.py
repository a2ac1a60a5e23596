"""bench/predict.py: which reports, whose halves, which pairs; and a whole report where there is one."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from bench import predict
from bench.predict import DEVELOPMENT, SEEN, UNSEEN, Row, find_pairs, find_reports, ratio_rows
from profiler.model.error_table import TABLE_FILE, Known
from tests.conftest import REPORTS

REPORT = REPORTS / "llm.c" / "adamw_coalsecing_shared.ncu-rep"


def row(name: str, measured: float, predicted: float, stored: float = 1e6, repository: str = "a/b") -> Row:
    """A launch of which only these are known."""
    made = Row(repository, "", "r", name, "GPU", "sm_80", measured, (name,), stored)
    made.levels = {"level 2": predicted}
    return made


def test_reports_are_of_the_repository_that_their_folder_names(tmp_path: Path) -> None:
    for name in ("owner+name@c0ffee/a.ncu-rep", "owner+name@c0ffee/deep/b.ncu-rep", "x+y/c.ncu-rep"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    whole = [(repository, commit, path.name) for repository, commit, path in find_reports([tmp_path])]
    assert sorted(whole) == [
        ("owner/name", "c0ffee", "a.ncu-rep"),
        ("owner/name", "c0ffee", "b.ncu-rep"),
        ("x/y", "", "c.ncu-rep"),
    ]
    file = tmp_path / "x+y/c.ncu-rep"
    assert list(find_reports([file])) == [("x/y", "", file)]
    assert [found[:2] for found in find_reports([tmp_path / "x+y"])] == [("x/y", "")]


def test_what_was_looked_at_is_for_development() -> None:
    for names in SEEN.values():
        assert {row("k", 1, 1, repository=name).part for name in names} == {DEVELOPMENT}
    assert row("k", 1, 1, repository="nobody/looked").part == UNSEEN


def test_no_error_of_the_program_is_of_what_was_looked_at() -> None:
    document = json.loads(TABLE_FILE.read_text(encoding="utf-8"))
    unseen = {entry["name"] for entry in document["repositories"]["unseen"]}
    assert unseen.isdisjoint(frozenset().union(*SEEN.values()))
    assert len(unseen) >= 5


def test_pairs_are_launches_that_store_as_much() -> None:
    rows = [
        row("a", 100, 110),
        row("b", 50, 44, stored=1.005e6),
        row("c", 50, 44, stored=2e6),
        row("d", 50, 44, repository="other/one"),
        row("e", 50, 44, stored=math.nan),
    ]
    (pair,) = find_pairs(rows)
    assert (pair.measured, pair.predicted) == (0.5, 0.4)
    (of_measured,) = ratio_rows([pair], by_measured=True)
    assert of_measured == {"below": None, "pairs": 1, "p50": 1.25, "p80": 1.25, "direction": 1.0}


@pytest.mark.slow
@pytest.mark.skipif(not REPORT.is_file(), reason="../shared/reports is not here: no public report to predict")
def test_a_report_is_predicted_with_and_without_its_inputs() -> None:
    rows, _ = predict.run_report(("karpathy/llm.c", "", REPORT))
    (launch,) = rows
    assert launch.kernel == "adamw_kernel2"
    assert launch.limiter == launch.measured_limiter == "DRAM"
    assert 0.7 < launch.off("level 2") < 1.2
    assert launch.levels["level 0"] < launch.levels["level 1"]
    assert launch.variants[Known(True, True, True)] == launch.levels["level 2"]
    assert len(launch.variants) == 8
    assert launch.bracket[0] < launch.cycles < launch.bracket[1]
