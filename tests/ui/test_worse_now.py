"""What is worse now is one number: the command, the gate and the pages count the same groups and rows."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from profiler import cli
from profiler.bundles.run import Run
from profiler.evidence.values import Evidence, Value
from profiler.ui import addresses
from tests import lineages, timed_runs
from tests.timed_runs import run
from tests.ui.test_pages import page, text

pytestmark = [pytest.mark.usefixtures("pages_of"), pytest.mark.slow]

CELLS = ("1x8x1024x64", "2x8x2048x64", "4x8x4096x64")


def night(day: int, code: str = "new") -> list[Run]:
    """A run a cell: v1 got worse on all cells on day 2 and v2 on one; v3 was always slower than they."""
    worse = day >= 2
    hashes = {"v1": f"a {code if worse else 'old'}", "v2": f"b {code if worse else 'old'}", "v3": "c"}
    runs = []
    for number, workload in enumerate(CELLS):
        levels = {
            "v1": 170e3 * (1.04 + 0.01 * number if worse else 1),
            "v2": 160e3 * (1.06 if worse and number == 1 else 1),
            "v3": 190e3,
        }
        seed = 10 * min(day, 2) + number  # the same samples again show no noise as a change
        runs.append(run(levels, day + number / 100, sass=hashes, workload=workload, seed=seed))
    return runs


@pytest.fixture
def several_worse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    nights = [made for day in range(3) for made in night(day)]
    return timed_runs.seal(tmp_path, timed_runs.noise(170e3, 0.003), *nights)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    capsys.readouterr()
    cli.main([*arguments, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def test_command_gate_and_pages_say_the_same(
    several_worse: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = printed(capsys, "regressions")
    worse = printed(capsys, "regressions", "--family", "flash")["worse_now"]
    assert worse == printed(capsys, "gate", "flash")["worse_now"]
    assert worse["groups"] == listed["worse_now"]["groups"]
    assert [(group["versions"], group["cells"], group["due_to"]) for group in worse["groups"]] == [
        (["v2"], 1, "code"),
        (["v1"], 3, "code"),
    ]
    assert worse["count"] == listed["alarms"] == 2
    assert worse["rows"] == sum(row["counted"] for row in listed["regressions"]) == 4
    (slower,) = listed["slower_than_parent"]
    assert slower["versions"] == ["v3"]
    assert slower["held_against"] == "the version before, v2"
    assert addresses.regressions("flash").endswith(worse["address"])
    shown = text(page("regressions", several_worse, monkeypatch))
    assert "Worse now ! 2 4 rows of 2 versions" in shown
    overview = text(page("overview", several_worse, monkeypatch))
    assert "Worse now ! 2 4 rows, in Regressions" in overview
    assert "Got worse" not in overview


def test_a_lineage_is_counted_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """alpha spills since its second dissection; that it is slower than its parent is no regression."""
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    lineages.dissected(tmp_path)
    spills = {"static__spill_bytes": Value(16)}
    worse_facts = tuple(
        replace(
            result,
            facts=tuple(
                replace(facts, values={**facts.values, **spills})
                if result.version == "alpha" and facts.evidence is Evidence.STATIC
                else facts
                for facts in result.facts
            ),
        )
        for result in lineages.results()
    )
    lineages.dissected(tmp_path, worse_facts, created=lineages.CREATED + timedelta(days=1))
    timed_runs.seal(
        tmp_path, run({"zero": 170e3, "alpha": 175.1e3}, 1, family=lineages.FAMILY, workload="1x1x8x64")
    )
    listed = printed(capsys, "regressions", "--family", lineages.FAMILY)
    worse = listed["worse_now"]
    assert worse == printed(capsys, "gate", lineages.FAMILY)["worse_now"]
    assert (worse["count"], worse["groups"][0]["versions"]) == (1, ["alpha"])
    (slower,) = listed["slower_than_parent"]
    assert slower["held_against"] == "parent zero"
    rows = worse["rows"]
    shown = text(page("regressions", tmp_path, monkeypatch, family=lineages.FAMILY))
    assert f"Worse now ! 1 {f'{rows} rows ' if rows > 1 else ''}of 1 version" in shown
    overview = text(page("overview", tmp_path, monkeypatch))
    assert f"Worse now ! 1 on {rows} row" in overview
    assert "1 slower than the parent" in overview


def test_a_gate_that_passes_says_what_an_earlier_run_made_worse(
    several_worse: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    timed_runs.seal(several_worse, *night(3))
    assert cli.main(["gate", "flash"]) == 0
    shown = capsys.readouterr().out
    assert "Gate passed" in shown
    assert "worse now: 2 on 4 rows in flash, from this change or an earlier one:" in shown
