"""A run whose own check did not pass and that says it is done: whoever is asked says wrong, with no speed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import bundle, location
from profiler.bundles.run import Result, Samples
from profiler.cli import main
from profiler.errors import Exit
from profiler.history import lineage
from profiler.store.readable_index import open_store
from profiler.ui.views import lineage_summary, run_results
from tests import lineages

SAID = "its own check did not pass, and it is called done"
PLACE = ("--workload", "1x1x8x64", "--gpu", "Test GPU")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    return tmp_path


def contradictory(one: Result, status: str = "done") -> Result:
    """alpha is said to be done, and fast, by a result whose check failed."""
    if one.version == "alpha" and one.check:
        fast = (Samples("events", (1.0, 1.0), (0, 1)),)
        return replace(one, status=status, check={**one.check, "passed": False}, samples=fast)
    return one


@pytest.fixture(params=[True, False], ids=["with a catalogue", "without one"])
def run_id(request: pytest.FixtureRequest, data: Path) -> str:
    results = [contradictory(row) for row in lineages.results(measured=True)]
    held = [row for row in results if not (row.version == "alpha" and row.samples and not row.check)]
    catalog = lineages.CATALOG if request.param else None
    return lineages.dissected(data, tuple(held), gpu="Test GPU", catalog=catalog).run_id


def asked(capsys: pytest.CaptureFixture[str], *words: str, code: int = Exit.PASS) -> Any:
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.mark.slow
@pytest.mark.parametrize("evidence", ["measured", "modelled", "static"])
def test_the_gate_fails_it(run_id: str, capsys: pytest.CaptureFixture[str], evidence: str) -> None:
    answer = asked(
        capsys, "gate", "mine/alpha", "--baseline=mine/zero", f"--evidence={evidence}", code=Exit.REGRESSION
    )
    assert {(one["check"], one["outcome"]) for one in answer["findings"]} == {("correctness", "failed")}
    assert SAID in answer["findings"][0]["line"]


@pytest.mark.parametrize("name", ["mine/alpha", "mine/alpha~{run_id}"])
def test_compare_shows_it_as_wrong(run_id: str, capsys: pytest.CaptureFixture[str], name: str) -> None:
    answer = asked(capsys, "compare", "mine/zero", name.format(run_id=run_id), *PLACE)
    assert (answer["comparable"], answer["b"]["wrong"]) == (False, SAID)
    assert answer["a"]["wrong"] is None


def test_the_lineage_leaves_it_out_of_every_ranking(data: Path) -> None:
    held = [contradictory(row) for row in lineages.results(measured=True)]
    lineages.dissected(data, tuple(held), gpu="Test GPU")
    found = lineage.load_lineages(location.open_root(str(data)), open_store())["mine"]
    assert (found.by_id["alpha"].state, found.by_id["alpha"].reason) == ("wrong", SAID)
    best = found.best("1x1x8x64", "Test GPU")
    assert best is not None
    assert best.version.id == "zero"
    assert found.wrong == {"bad": "wrong", "alpha": "wrong"}, "which trends and speed-ups go by"
    assert SAID in lineage_summary.wrong(found)


def test_the_page_of_runs_says_wrong(run_id: str, data: Path) -> None:
    table = run_results.table(bundle.load_run(location.open_root(str(data)), run_id))
    assert SAID in table


def test_the_bundle_stays_as_it_came(run_id: str, data: Path) -> None:
    run = bundle.load_run(location.open_root(str(data)), run_id)
    assert {row.status for row in run.results if row.version == "alpha"} == {"done"}


@pytest.mark.parametrize(
    ("one", "told"),
    [
        (Result("f", "v", check={"passed": True}), ("done", None)),
        (Result("f", "v", check={"passed": False}), ("wrong", SAID)),
        (Result("f", "v", reason="no ncu", check={"passed": False}), ("wrong", f"{SAID}; no ncu")),
        (Result("f", "v", status="wrong", reason="race", check={"passed": False}), ("wrong", "race")),
        (Result("f", "v", status="wrong", reason="race", check={"passed": True}), ("wrong", "race")),
        (Result("f", "v", status="failed", reason="no GPU", check={"passed": False}), ("failed", "no GPU")),
        (Result("f", "v", status="skipped", reason="time", check={"passed": False}), ("skipped", "time")),
        (Result("f", "v", check={"evidence": "measured"}), ("done", None)),
        (Result("f", "v", check={"passed": False, "state": "rejected"}), ("done", None)),
    ],
)
def test_a_result_comes_out_by_all_that_it_says(one: Result, told: tuple[str, str | None]) -> None:
    assert one.outcome == told


def test_what_was_skipped_and_measured_all_the_same_is_wrong_too() -> None:
    fast = (Samples("events", (1.0,), (0,)),)
    one = Result("f", "v", status="skipped", check={"passed": False}, samples=fast)
    assert one.outcome == ("wrong", "its own check did not pass, and it is called skipped")
