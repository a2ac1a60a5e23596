"""`profiler decide baseline`: set, show, list and unset, and what it says of a pin that is lost."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles.run import Run
from profiler.cli import main
from tests import lineages
from tests.lineages import FAMILY

SIZE, GPU = "1x1x8x64", "NVIDIA Test 1"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def runs(data: Path) -> list[Run]:
    return lineages.timed_twice(data, GPU)


@pytest.mark.slow
def test_the_commands_set_show_list_and_unset(runs: list[Run], capsys: pytest.CaptureFixture[str]) -> None:
    def said(*command: str, code: int = 0) -> str:
        assert main(["decide", "baseline", *command]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    assert "no baseline is set" in said("list")
    assert said("set", FAMILY, "zero", "--workload", SIZE, "--why", "released") == (
        f"the baseline of mine is mine/zero ({SIZE} · every GPU)\n"
    )
    [pin] = json.loads(said("list", "--json"))["baselines"]
    assert (pin["version"], pin["workload"], pin["gpu"], pin["why"]) == ("zero", SIZE, None, "released")
    assert ": released" in said("list", "--family", FAMILY)
    shown: list[dict[str, Any]] = json.loads(said("show", "alpha", "--json"))["baselines"]
    assert [one["how"] for one in shown] == ["pinned", "parent", "best", "torch:theirs"]
    assert "torch:theirs" in said("show", "mine/alpha", "--gpu", GPU)
    assert said("set", "nine", "zero", code=2).count("\n") == 1
    assert "every workload" in said("unset", FAMILY, code=2)
    assert "no longer a baseline of mine" in said("unset", FAMILY, "--workload", SIZE)


@pytest.mark.slow
def test_a_pin_whose_run_was_forgotten_or_is_gone_is_marked_with_the_way_out(
    runs: list[Run], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*command: str, code: int = 0) -> str:
        assert main([*command]) == code
        return capsys.readouterr().out

    name = runs[0].run_id
    said("decide", "baseline", "set", FAMILY, name)
    said("decide", "baseline", "set", FAMILY, "alpha", "--workload", SIZE)
    assert "lost" not in said("decide", "baseline", "list")
    said("data", "forget", name)
    undo = f"`profiler data forget --undo {name}`"
    back = f"run {name} was forgotten: {undo} brings it back, `profiler decide baseline set"
    listed = said("decide", "baseline", "list")
    assert f"{name} (lost)" in listed
    assert f"baseline of {FAMILY} (every workload · every GPU): {back}" in listed
    whole, special = json.loads(said("decide", "baseline", "list", "--json"))["baselines"]
    assert whole["lost"].startswith(back)
    assert special["lost"] is None
    assert back in said("gate", "mine/alpha", "--evidence", "static", code=3)
    assert back in said("gate", "mine/alpha", "--baseline", "pinned", "--evidence", "static", code=3)
    said("data", "forget", "--undo", name)
    assert "lost" not in said("decide", "baseline", "list")
    shutil.rmtree(data / "runs" / name)
    said("data", "index", "--rebuild")
    assert f"run {name} is gone: `profiler decide baseline set {FAMILY} RUN_OR_VERSION` pins" in said(
        "baseline", "list"
    )
