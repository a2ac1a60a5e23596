"""The line or instruction that a lever names: where most of the excess is, and what would do there."""

from __future__ import annotations

import numpy as np
import pytest

from profiler.advice.insights import Insights
from profiler.advice.places import GLOBAL, SHARED, with_places, worst_access
from profiler.advice.statement import Statement
from profiler.advice.subject import ComparedSide, Subject
from profiler.errors import UnreadableReport
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.reports.instances import LaunchDetail, PcColumn, SourceFile

SASS = ("LDG.E R2, [R4.64]", "@!P0 STG.E [R6.64], R2", "LDS R8, [R9]", "EXIT")


def detail(
    columns: dict[str, list[float]], lines: tuple[int, ...] = (11, 18, 20, 21), functions: int = 1
) -> LaunchDetail:
    return LaunchDetail(
        "0" * 64,
        0,
        "transpose",
        tuple(0x100 * (1 + index) for index in range(functions)),
        np.array([0x100 + 16 * index for index in range(len(SASS))], dtype=np.uint64),
        SASS,
        (SourceFile("/src/transpose.cu", None),),
        np.zeros(len(SASS), dtype=np.int32),
        np.array(lines, dtype=np.int32),
        {
            name: PcColumn("", np.array(values, dtype=np.float64))
            for name, values in {"inst_executed": [100, 100, 50, 100], **columns}.items()
        },
        {},
        {},
    )


def test_the_worst_line_is_named_with_what_a_request_takes_and_what_would_do() -> None:
    code = detail({GLOBAL.taken: [800, 3200, 0, 0], GLOBAL.ideal: [400, 400, 0, 0]})
    words = "the store of transpose.cu:18 (32 sectors per request, 4 would do; 88 % of the excess)"
    assert worst_access(code, GLOBAL) == words


def test_without_line_info_the_instruction_is_named_by_its_offset() -> None:
    code = detail({SHARED.taken: [0, 0, 400, 0], SHARED.ideal: [0, 0, 50, 0]}, lines=(-1, -1, -1, -1))
    words = "the shared load at +0x0020 (8 wavefronts per request, 1 would do; 100 % of the excess)"
    assert worst_access(code, SHARED) == words


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {GLOBAL.taken: [800.0, 0, 0, 0]},
        {GLOBAL.taken: [400.0, 0, 0, 0], GLOBAL.ideal: [400.0, 0, 0, 0]},
        {GLOBAL.taken: [float("nan")] * 4, GLOBAL.ideal: [float("nan")] * 4},
    ],
    ids=["not collected", "no ideal", "no excess", "no number"],
)
def test_no_place_is_named_where_the_report_does_not_tell(columns: dict[str, list[float]]) -> None:
    assert worst_access(detail(columns), GLOBAL) == ""


def insights(name: str, lever: str | None) -> Insights:
    statement = Statement(name, "lever", "", (), Evidence.MEASURED, "", lever)
    subject = Subject("x", ComparedSide(Side("x", ())))
    return Insights(subject, "transpose", "", (statement,), 0)


def test_a_lever_about_accesses_ends_in_its_line() -> None:
    code = detail({GLOBAL.taken: [800, 3200, 0, 0], GLOBAL.ideal: [400, 400, 0, 0]})
    placed = with_places(insights("sectors", "coalesce"), lambda: code).statements[0].lever
    assert placed == f"coalesce; worst: {worst_access(code, GLOBAL)}"


def test_a_report_that_is_gone_leaves_the_lever_without_its_line() -> None:
    def gone() -> LaunchDetail:
        raise UnreadableReport("dropped")

    for opener in (gone, lambda: None):
        assert with_places(insights("sectors", "coalesce"), opener) == insights("sectors", "coalesce")


@pytest.mark.parametrize(("name", "lever"), [("idle:grid", "more blocks"), ("sectors", None)])
def test_no_report_is_opened_for_what_has_no_place(name: str, lever: str | None) -> None:
    def never() -> LaunchDetail:
        raise AssertionError("opened")

    assert with_places(insights(name, lever), never) == insights(name, lever)
