"""Versions that no GPU has run, on the command line: each kind of facts by itself, wrong ones as wrong."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.errors import Exit
from tests import lineages


@pytest.fixture(autouse=True)
def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    lineages.dissected(tmp_path)


def said(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    assert main(arguments) == code
    return capsys.readouterr().out


def test_both_kinds_are_compared_each_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "compare", "mine/zero", "mine/alpha")
    static, modelled = out.split("\nmodelled: ")
    assert "registers, compiled" in static
    assert "bank conflicts, modelled" in modelled
    assert "! worse" in modelled
    assert "head dim 64 sm_80, sm_90a; head dim 128 sm_80, sm_90a" not in static  # registers differ by one


def test_evidence_and_place_can_be_chosen(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("--evidence", "static", "--workload", "head dim 64", "--gpu", "sm_90a", "--json")
    document = json.loads(said(capsys, "compare", "zero", "alpha", *arguments))
    assert (document["a"]["evidence"], document["a"]["gpu"]) == ("static", "sm_90a")
    changes = {one["concept"]: one for one in document["launches"][0]["metrics"]}
    assert (changes["static_registers"]["a"], changes["static_registers"]["b"]) == (41, 65)
    assert not any(concept.startswith("modelled") for concept in changes)


def test_several_places_are_a_list(capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(said(capsys, "compare", "zero", "alpha", "--json"))
    assert len(document["comparisons"]) == 5


def test_facts_that_got_worse_fail_the_gate(capsys: pytest.CaptureFixture[str]) -> None:
    said(capsys, "compare", "zero", "alpha", "--evidence", "modelled", "--fail", code=Exit.REGRESSION)
    said(capsys, "compare", "alpha", "zero", "--evidence", "modelled", "--fail", code=Exit.PASS)


def test_a_wrong_version_has_no_verdict_and_fails_the_gate(capsys: pytest.CaptureFixture[str]) -> None:
    out = said(capsys, "compare", "zero", "bad", "--fail", code=Exit.REGRESSION)
    assert "⊘ B is wrong: race at k.cu:6 in bad" in out
    assert "worse" not in out
    assert "better" not in out


def test_what_two_versions_do_not_share_is_an_error_that_lists_what_they_do(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(("compare", "zero", "alpha", "--workload", "none of them")) == Exit.UNUSABLE_INPUT
    assert "share nothing" in capsys.readouterr().err


def test_a_trend_comes_in_the_catalogues_order_and_marks_what_is_wrong(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = said(
        capsys, "trend", "static_registers", "--family", "mine", "--gpu", "sm_80", "--workload", "head dim 64"
    )
    head, row = out.splitlines()[1:3]
    assert head.split() == ["kernel", "zero", "bad", "alpha"]
    assert row.split() == ["main", "40", "⊘", "42", "64"]


def test_a_trend_of_one_kind_of_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("trend", "modelled_conflicts", "--family", "mine", "--json")
    series = json.loads(said(capsys, *command))["series"]
    assert [one["evidence"] for one in series] == ["modelled"]
    assert [(p["version"], p["wrong"], p["value"]) for p in series[0]["points"]] == [
        ("zero", False, 0),
        ("bad", True, 8),
        ("alpha", False, 4000),
    ]
    assert main([*command, "--evidence", "measured"]) == 3  # nothing of that kind carries it
