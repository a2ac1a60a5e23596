"""The floor of a place out of stored A/A pairs, and what a comparison of two runs says by it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiler import cli, decisionwords, noisefloor
from profiler.statistics.floor import Floor
from profiler.sync import open_store
from tests import timed_runs
from tests.timed_runs import GPU, WARM


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    return timed_runs.seal(
        tmp_path,
        timed_runs.noise(170e3, 0.003),
        timed_runs.run({"v1": 170e3}, 0),
        timed_runs.run({"v1": 175.1e3}, 1),
    )


def test_the_floor_is_of_one_gpu_mode_and_length_of_call(data: Path) -> None:
    store = open_store()
    opened = []

    def opener() -> object:
        opened.append(1)
        return store

    asked = noisefloor.lookup(opener)
    here = asked(GPU, WARM, 200e3)
    assert here is not None
    assert here.pairs == 20
    assert here.sd == pytest.approx(0.003, rel=0.5)
    assert asked(GPU, WARM, 50e3) is None, "short calls have a floor of their own"
    assert asked("another", WARM, 200e3) is None
    assert asked(GPU, timed_runs.COLD, 200e3) is None
    assert len(opened) == 1
    store.close()


def test_compare_judges_two_runs_by_the_stored_floor(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = sorted(path.name for path in (data / "runs").iterdir() if "noise" not in path.name)
    assert cli.main(["compare", *runs, "--json", "--fail"]) == 1
    (one,) = json.loads(capsys.readouterr().out)["latency"]
    assert one["verdict"] == "worse"
    assert one["rule"] == "stored baseline"


def test_without_a_floor_the_words_name_the_command_that_makes_one() -> None:
    assert decisionwords.aa_floor(None, "v2", "2x8 long") == (
        "no A/A floor here: `profiler noise v2 --workloads '2x8 long'`"
    )
    assert decisionwords.aa_floor(Floor(20, 0.001, 0.01), "v2", None) == "A/A floor here ±1 % (20 pairs)"
    few = decisionwords.aa_floor(Floor(3, 0.001, 0.01), None, None)
    assert few == "A/A floor of 3 pairs, 20 are needed: `profiler noise VERSION`"
