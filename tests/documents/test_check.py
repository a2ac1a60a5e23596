"""The check of versions on the CPU as JSON and rows; its exit code by what was found."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.catalog.attention import ATTENTION
from profiler.documents.check import CheckDocument, check_names
from profiler.emulator.cpu_check import CheckRun, VersionCheck
from profiler.emulator.run_result import RunResult
from profiler.errors import BadCatalog, BuildFailed, CannotJudge, Exit, UnknownName
from tests.documents.printed import assert_html_escapes, assert_same_as_printed


@pytest.mark.compiler("g++")
def test_a_version_is_checked_as_the_command_prints(capsys: pytest.CaptureFixture[str]) -> None:
    done: list[str] = []
    document = check_names(["v1"], seeds=1, progress=lambda version, _: done.append(version))
    assert set(done) <= {"v1"}
    assert document.exit_code is Exit.PASS
    answer = assert_same_as_printed(document, capsys, "check", "v1", "--seeds", "1")
    frame = document.to_frame()
    assert frame.workload.is_unique
    assert frame.passed.all()
    assert len(frame) == len(answer["cells"])
    assert document.sentences == [f"v1: passed in all {len(frame)} runs"]
    off = replace(document.checks[0].runs[0], as_expected=False)
    assert CheckDocument((VersionCheck("v1", "good", (off,)),)).exit_code is Exit.REGRESSION


def test_a_version_that_does_not_compile_outweighs_one_without_a_workload() -> None:
    failed = VersionCheck("v<1>", "good", (), BuildFailed("v<1>: no such file"))
    idle = VersionCheck("v2", "good", ())
    document = CheckDocument((failed, idle))
    assert document.exit_code is Exit.UNUSABLE_INPUT
    assert document.idle == ("v<1>", "v2")
    assert document.to_dict() == {
        "cells": [],
        "failed": [{"version": "v<1>", "error": "v<1>: no such file"}],
        "findings": [],
        "not_run": [],
        "contract": [],
        "gpu_only": [],
    }
    assert CheckDocument((idle,)).exit_code is Exit.UNJUDGED
    assert_html_escapes(document, "v<1>", "v&lt;1&gt;: ")


@pytest.mark.slow
def test_what_cannot_be_checked_is_an_error() -> None:
    with pytest.raises(UnknownName, match="v2d_d"):
        check_names(["v2d_x"])
    with pytest.raises(UnknownName, match="has no stage"):
        check_names(["v1"], stage="NOTHING")
    with pytest.raises(CannotJudge, match="nothing to check"):
        check_names(["v2h"])
    with pytest.raises(UnknownName, match="leave out --seed"):
        check_names(["v1"], contract=True, seed=1)
    with pytest.raises(UnknownName, match="leave out --landing"):
        check_names(["v1"], contract=True, landing="rows")
    with pytest.raises(UnknownName, match="'early': there are late, rows, at-once and all"):
        check_names(["v1"], landing="early")


@pytest.mark.compiler("g++")
def test_every_schedule_has_the_landings_that_are_asked_for_where_anything_lands() -> None:
    workload = "1x2x128x64"
    runs = check_names(["v1", "v2e"], seeds=2, landing="all", workload=workload, jobs=1).rows()
    assert [row[:6] for row in runs] == [
        *(("v1", "good", workload, "ALL", seed, None) for seed in range(2)),
        *(
            ("v2e", "good", workload, "ALL", seed, landing)
            for seed in range(2)
            for landing in ("late", "rows", "at-once")
        ),
    ]
    (late,) = check_names(["v2e"], seed=1, landing="late", workload=workload, jobs=1).rows()
    assert late[:6] == ("v2e", "good", workload, "ALL", 1, "late")


def test_runs_that_an_error_left_are_told_beside_it() -> None:
    def cell(label: str, returned: int) -> CheckRun:
        result = RunResult(returned, None, (), (), (), 0.0)
        workload = ATTENTION.workload(batch=1, heads=1, len_q=int(label), head_dim=64)
        return CheckRun("v1", "good", workload, 0, "ALL", result, None, returned == 0, int(label))

    error = BadCatalog("p.py:3: case() of 1x1x9x64 fails: KeyError: 9")
    document = CheckDocument((VersionCheck("v1", "good", (cell("7", 0), cell("8", 719)), error),))
    assert document.exit_code is Exit.UNUSABLE_INPUT
    assert document.sentences == [
        f"v1: {error}; of the others: not right in 1 of 2 runs, the smallest on 1x1x8x64, seed 0: "
        "nothing was found, and 719 was returned"
    ]
    assert len(document.rows()) == 2
