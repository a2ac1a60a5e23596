"""Noise floors as JSON, rows and HTML."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from profiler.bundles.run import Result
from profiler.cli.output import text_of
from profiler.documents.noise import NoiseFloorsDocument, floors_of_run, list_noise_floors
from profiler.errors import Exit
from profiler.store.index import Store
from tests import timed_runs
from tests.documents.printed import assert_html_escapes, assert_same_as_printed


def test_a_floor_is_printed_and_is_a_row(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    document = list_noise_floors(store)
    answer = assert_same_as_printed(document, capsys, "noise", "--list")
    (row,) = document.to_frame().to_dict("records")
    (floor,) = answer["floors"]
    assert (row["gpu"], row["class"], row["pairs"]) == (timed_runs.GPU, "medium", 50)
    assert (row["family"], row["driver"]) == (timed_runs.FAMILY, floor["driver"])
    assert row["limit"] == floor["limit"] > row["process_sd"] == floor["process_sd"] > 0
    assert row["growth"] == floor["growth"] >= 1
    assert document.sentences == answer["missing"] == []


def test_too_few_pairs_have_no_limit() -> None:
    document = floors_of_run(timed_runs.noise(170e3, 0.003, pairs=4))
    (row,) = document.to_frame().to_dict("records")
    assert (row["pairs"], row["needed"]) == (4, 20)
    (floor,) = document.to_dict()["floors"]
    assert all(floor[name] is None for name in ("limit", "detectable", "process_sd", "growth"))
    assert document.exit_code == Exit.PASS


def test_a_wrong_version_is_the_exit_code_and_stands_escaped_in_html() -> None:
    run = timed_runs.noise(170e3, 0.003)
    wrong = Result(timed_runs.FAMILY, "v2", None, status="wrong", reason="off by <1>")
    document = floors_of_run(replace(run, results=(*run.results, wrong)))
    assert document.exit_code == Exit.REGRESSION
    assert_html_escapes(document, "<1>", "off by &lt;1&gt;")


def test_an_index_without_pairs_says_what_makes_them() -> None:
    assert NoiseFloorsDocument((), (), has_timed_calls=False).sentences == [
        "no A/A pairs (`profiler collect --noise`) and no timed calls (`profiler collect`)"
    ]


def test_the_text_says_the_floor_the_pairs_that_lack_and_what_was_wrong() -> None:
    few, left_out = timed_runs.noise(170e3, 0.003, pairs=4), {"left_out": ["time v3: no GPU"]}
    wrong = Result(timed_runs.FAMILY, "v2", None, status="wrong", reason="off by 1")
    run = replace(few, results=(*few.results, wrong), provenance={**few.provenance, **left_out})
    lines = [" ".join(line.split()) for line in text_of(floors_of_run(run).blocks()).splitlines()]
    assert "4 of 20 – – –" in lines[1]
    assert "v2 wrong off by 1" in lines
    assert "left out: no GPU: time v3" in lines
    assert lines[-1] == f"sealed as {run.run_id}"
    (whole,) = floors_of_run(timed_runs.noise(170e3, 0.003)).floors
    assert f"±{100 * math.expm1(whole.floor.limit):.1f}" in text_of(
        NoiseFloorsDocument((whole,), (), True).blocks()
    )
