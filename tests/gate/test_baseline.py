"""Baselines: the most special pin counts, implicit ones are always there, decisions outlive the index."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import LocalRoot, Root, Run, Samples, bundle, decisions, location
from profiler.cli import main
from profiler.errors import CannotJudge, UnknownName
from profiler.gate import pins
from profiler.history import Baselines
from profiler.history.baselines import list_pins
from profiler.store import Store, forget_run, open_store, rebuild_index
from tests import lineages, timed_runs
from tests.lineages import FAMILY

SIZE, GPU = "1x1x8x64", "NVIDIA Test 1"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def runs(data: Path) -> list[Run]:
    """Two measured collections of the lineage; in the second a torch backend was timed too."""
    first = lineages.results(measured=True)
    theirs = first[0].__class__(FAMILY, "theirs", SIZE, samples=(Samples("events", (90.0, 90.0), (0, 1)),))
    return [
        lineages.dissected(data, made, created=lineages.CREATED + timedelta(days=day), gpu=GPU)
        for day, made in enumerate((first, (*first, theirs)))
    ]


@pytest.fixture
def store(runs: list[Run]) -> Iterator[Store]:
    opened = open_store()
    yield opened
    opened.close()


@pytest.fixture
def root(data: Path) -> Root:
    return LocalRoot(data)


def names(root: Root, store: Store, *places: tuple[str | None, str | None]) -> list[str]:
    held = Baselines.load(root, store, FAMILY)
    return [(held.for_gate(*place) or held.named("parent", "alpha", *place)).name for place in places]


def test_the_most_special_pin_counts_and_the_next_when_it_goes(
    root: Root, store: Store, runs: list[Run]
) -> None:
    places = ((SIZE, GPU), (SIZE, "another"), ("other", GPU), ("other", "another"))
    assert names(root, store, *places) == [f"{FAMILY}/zero"] * 4, "nothing is pinned: the parent"
    pins.set_baseline(root, store, FAMILY, "alpha", gpu=GPU)
    pins.set_baseline(root, store, FAMILY, runs[0].run_id)
    pins.set_baseline(root, store, FAMILY, "mine/bad", workload=SIZE)
    first = runs[0].run_id
    assert names(root, store, *places) == ["mine/bad", "mine/bad", "mine/alpha", first]
    pins.set_baseline(root, store, FAMILY, "zero", workload=SIZE, gpu=GPU, why="released", who="ada")
    assert names(root, store, *places)[0] == "mine/zero"
    assert pins.unset_baseline(root, FAMILY, workload=SIZE, gpu=GPU).why == "released"
    pins.unset_baseline(root, FAMILY, workload=SIZE)
    assert names(root, store, *places) == ["mine/alpha", first, "mine/alpha", first]
    pins.unset_baseline(root, FAMILY)
    pins.unset_baseline(root, FAMILY, gpu=GPU)
    assert names(root, store, *places) == ["mine/zero"] * 4
    assert len(decisions.load_decisions(root)) == 8, "nothing that was decided is ever deleted"


def test_a_pin_says_who_when_and_why(root: Root, store: Store) -> None:
    made = pins.set_baseline(root, store, FAMILY, "torch:theirs", why="the rival", who="ada")
    [read] = list_pins(decisions.load_decisions(root))
    assert read == made
    assert (read.who, read.why, read.version, read.run_id) == ("ada", "the rival", "theirs", None)
    assert read.words.startswith("pinned by ada on ")
    assert read.words.endswith(": the rival")


def test_the_last_pin_of_a_place_counts(root: Root, store: Store) -> None:
    for name in ("zero", "alpha"):
        pins.set_baseline(root, store, FAMILY, name)
    assert [pin.version for pin in list_pins(decisions.load_decisions(root))] == ["alpha"]


def test_implicit_baselines_are_always_there(root: Root, store: Store) -> None:
    held = Baselines.load(root, store, FAMILY)
    found = {one.how: one.version for one in held.available("alpha", SIZE, GPU)}
    assert found == {"parent": "zero", "best": "zero", "torch:theirs": "theirs"}
    assert held.named("best", "zero", SIZE, GPU).words == "the fastest correct version there"
    assert held.places("alpha") == [(SIZE, GPU)]
    assert held.places("theirs") == [(SIZE, GPU)]


@pytest.mark.parametrize(
    ("name", "version", "gpu", "said"),
    [
        ("parent", "zero", GPU, "its lineage begins with it"),
        ("parent", "stray", GPU, "in no catalogue"),
        ("best", "alpha", "another", "no correct version of mine was timed there"),
        ("torch:theirs", "alpha", "another", "`profiler collect theirs`"),
        ("pinned", "alpha", GPU, "profiler baseline set mine"),
    ],
)
def test_a_baseline_that_is_not_there_says_the_way_to_one(
    root: Root, store: Store, name: str, version: str, gpu: str, said: str
) -> None:
    with pytest.raises(CannotJudge, match=said):
        Baselines.load(root, store, FAMILY).named(name, version, SIZE, gpu)


@pytest.mark.parametrize("name", ["torch:zero", "torch:nothing", "fastest"])
def test_a_name_that_is_no_baseline_is_refused_with_those_there_are(
    root: Root, store: Store, name: str
) -> None:
    with pytest.raises(UnknownName, match="torch:"):
        Baselines.load(root, store, FAMILY).named(name, "alpha", SIZE, GPU)


@pytest.mark.parametrize(
    ("family", "name", "place", "said"),
    [
        ("nine", "zero", {}, "no family 'nine' in the index; there are mine"),
        (FAMILY, "alpho", {}, "no version of mine is called alpho; there are alpha"),
        (FAMILY, "zero", {"workload": "huge"}, "no workload 'huge'"),
        (FAMILY, "zero", {"gpu": "a toaster"}, "no GPU 'a toaster'"),
    ],
)
def test_what_is_not_there_cannot_be_pinned(
    root: Root, store: Store, family: str, name: str, place: dict[str, str], said: str
) -> None:
    with pytest.raises(UnknownName, match=said):
        pins.set_baseline(root, store, family, name, **place)
    assert decisions.load_decisions(root) == []


def test_a_run_that_was_forgotten_is_no_baseline_and_cannot_become_one(
    root: Root, store: Store, runs: list[Run]
) -> None:
    pins.set_baseline(root, store, FAMILY, runs[0].run_id)
    forget_run(runs[0].run_id, store=store)
    with pytest.raises(CannotJudge, match="was forgotten"):
        Baselines.load(root, store, FAMILY).for_gate(SIZE, GPU)
    with pytest.raises(UnknownName, match="forget --undo"):
        pins.set_baseline(root, store, FAMILY, runs[0].run_id)


def test_a_pin_whose_run_was_forgotten_or_is_gone_is_marked_with_the_way_out(
    runs: list[Run], data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*command: str, code: int = 0) -> str:
        assert main([*command]) == code
        return capsys.readouterr().out

    name = runs[0].run_id
    said("baseline", "set", FAMILY, name)
    said("baseline", "set", FAMILY, "alpha", "--workload", SIZE)
    assert "lost" not in said("baseline", "list")
    said("forget", name)
    back = f"run {name} was forgotten: `profiler forget --undo {name}` brings it back, `profiler baseline set"
    listed = said("baseline", "list")
    assert f"{name} (lost)" in listed
    assert f"baseline of {FAMILY} (every workload · every GPU): {back}" in listed
    whole, special = json.loads(said("baseline", "list", "--json"))["baselines"]
    assert whole["lost"].startswith(back)
    assert special["lost"] is None
    assert back in said("gate", "mine/alpha", "--evidence", "static", code=3)
    assert back in said("gate", "mine/alpha", "--baseline", "pinned", "--evidence", "static", code=3)
    said("forget", "--undo", name)
    assert "lost" not in said("baseline", "list")
    shutil.rmtree(data / "runs" / name)
    said("index", "--rebuild")
    assert f"run {name} is gone: `profiler baseline set {FAMILY} RUN_OR_VERSION` pins" in said(
        "baseline", "list"
    )


def test_sessions_of_a_noise_floor_are_no_baseline(root: Root, data: Path) -> None:
    sessions = timed_runs.noise(2e6, 0.003)
    timed_runs.seal(data, sessions)
    opened = open_store()
    with pytest.raises(UnknownName, match="nothing to compare with"):
        pins.set_baseline(root, opened, timed_runs.FAMILY, sessions.run_id)
    opened.close()


def test_unset_without_set_says_where_one_is_set(root: Root, store: Store) -> None:
    with pytest.raises(UnknownName, match="none anywhere"):
        pins.unset_baseline(root, FAMILY)
    pins.set_baseline(root, store, FAMILY, "zero", gpu=GPU)
    with pytest.raises(UnknownName, match=f"every workload · {GPU}"):
        pins.unset_baseline(root, FAMILY)


def test_a_rebuilt_index_loses_no_decision(root: Root, store: Store, data: Path, runs: list[Run]) -> None:
    pins.set_baseline(root, store, FAMILY, runs[0].run_id, workload=SIZE, why="the release")
    before = Baselines.load(root, store, FAMILY).available("alpha", SIZE, GPU)
    store.close()
    for file in data.glob("index.db*"):
        file.unlink()
    rebuild_index()
    again = open_store()
    assert Baselines.load(root, again, FAMILY).available("alpha", SIZE, GPU) == before
    assert before[0].name == runs[0].run_id
    again.close()


def test_the_commands_set_show_list_and_unset(runs: list[Run], capsys: pytest.CaptureFixture[str]) -> None:
    def said(*command: str, code: int = 0) -> str:
        assert main(["baseline", *command]) == code
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
    assert "no baseline of mine any more" in said("unset", FAMILY, "--workload", SIZE)


def test_a_data_folder_that_cannot_be_written_is_one_line(
    store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    blocked = tmp_path_factory.mktemp("blocked")
    (blocked / decisions.FOLDER).write_text("a file where the folder would be")
    with pytest.raises(location.ProfilerError, match=str(blocked)):
        pins.set_baseline(LocalRoot(blocked), store, FAMILY, "zero")
    assert bundle.list_runs(LocalRoot(blocked)) == []
