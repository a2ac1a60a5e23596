"""`profiler list runs` of a long history: the newest, and how to see the others."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from profiler.cli import output
from profiler.documents.listing import RUNS_SHOWN, RunsDocument
from profiler.evidence.values import Evidence
from profiler.store.rows import RunInfo


def runs(count: int) -> RunsDocument:
    """So many runs, newest first, one name of which would do something to a terminal."""
    unknown: dict[str, Any] = dict.fromkeys(
        ("gpu", "compute_capability", "driver", "ncu_version", "cuda", "host")
    )
    newest = datetime(2026, 1, 1, tzinfo=UTC)
    return RunsDocument(
        [
            RunInfo(
                run_id=f"run-{number}",
                family="f\x1b[2J",
                version="v1",
                workload=None,
                kind="import",
                created=newest - timedelta(days=number),
                **unknown,
                command_line=None,
                clock_control=None,
                cache_control=None,
                launches=1,
                reports=(),
                evidence=frozenset({Evidence.MEASURED}),
                hidden=False,
            )
            for number in range(count)
        ]
    )


def printed(document: RunsDocument, every: bool, capsys: pytest.CaptureFixture[str]) -> list[str]:
    with output.standard_output():
        output.print_blocks(document.blocks(everything=every))
    return capsys.readouterr().out.splitlines()


@pytest.mark.slow
def test_the_newest_runs_are_listed_and_the_line_below_says_how_to_see_all(
    capsys: pytest.CaptureFixture[str],
) -> None:
    lines = printed(runs(RUNS_SHOWN + 5), False, capsys)
    assert len(lines) == 1 + RUNS_SHOWN + 1
    assert lines[1].startswith("run-0 ")
    assert lines[-1] == "  and 5 earlier: --all, --family, or --json for all"


def test_all_runs_are_a_plain_table(capsys: pytest.CaptureFixture[str]) -> None:
    document = runs(output._MOST_STYLED + 1)
    lines = printed(document, True, capsys)
    assert len(lines) == 1 + len(document.runs)
    assert lines[0].split()[:2] == ["run", "family/version"]
    assert not any("\x1b" in line for line in lines)
    assert len({line.index("f\\") for line in lines[1:]}) == 1
