"""Setting the baseline of a family and taking it away: what is refused, and what is never lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.bundles import bundle, decisions, location
from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.run import Run
from profiler.errors import UnknownName
from profiler.gate.pins import set_baseline, unset_baseline
from profiler.history.baselines import list_pins
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.run_decisions import forget_run
from tests import lineages, timed_runs
from tests.lineages import FAMILY

SIZE, GPU = "1x1x8x64", "NVIDIA Test 1"


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    return tmp_path


@pytest.fixture
def runs(data: Path) -> list[Run]:
    return lineages.timed_twice(data, GPU)


@pytest.fixture
def store(runs: list[Run]) -> Iterator[Store]:
    opened = open_store()
    yield opened
    opened.close()


@pytest.fixture
def root(data: Path) -> Root:
    return LocalRoot(data)


def pinned(root: Root) -> list[str]:
    """The names of all that is pinned now."""
    return [pin.name for pin in list_pins(decisions.load_decisions(root))]


def test_a_baseline_is_set_and_unset_place_by_place_and_no_decision_is_deleted(
    root: Root, store: Store, runs: list[Run]
) -> None:
    set_baseline(root, store, FAMILY, runs[0].run_id)
    set_baseline(root, store, FAMILY, "alpha", gpu=GPU)
    set_baseline(root, store, FAMILY, "mine/bad", gpu=GPU)
    set_baseline(root, store, FAMILY, "zero", workload=SIZE, gpu=GPU, why="released", who="ada")
    assert pinned(root) == [runs[0].run_id, "mine/bad", "mine/zero"], "the most general first"
    assert unset_baseline(root, FAMILY, workload=SIZE, gpu=GPU).why == "released"
    unset_baseline(root, FAMILY)
    assert pinned(root) == ["mine/bad"]
    assert len(decisions.load_decisions(root)) == 6


def test_a_pin_says_who_when_and_why(root: Root, store: Store) -> None:
    pin = set_baseline(root, store, FAMILY, "torch:theirs", why="the rival", who="ada")
    [read] = list_pins(decisions.load_decisions(root))
    assert read == pin
    assert (read.who, read.why, read.version, read.run_id) == ("ada", "the rival", "theirs", None)
    assert read.words.startswith("pinned by ada on ")
    assert read.words.endswith(": the rival")


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
        set_baseline(root, store, family, name, **place)
    assert decisions.load_decisions(root) == []


def test_a_run_that_was_forgotten_cannot_become_one(root: Root, store: Store, runs: list[Run]) -> None:
    forget_run(runs[0].run_id, store=store)
    with pytest.raises(UnknownName, match="forget --undo"):
        set_baseline(root, store, FAMILY, runs[0].run_id)


def test_sessions_of_a_noise_floor_are_no_baseline(root: Root, data: Path) -> None:
    sessions = timed_runs.noise(2e6, 0.003)
    timed_runs.seal(data, sessions)
    opened = open_store()
    with pytest.raises(UnknownName, match="nothing to compare with"):
        set_baseline(root, opened, timed_runs.FAMILY, sessions.run_id)
    opened.close()


def test_unset_without_set_says_where_one_is_set(root: Root, store: Store) -> None:
    with pytest.raises(UnknownName, match="none anywhere"):
        unset_baseline(root, FAMILY)
    set_baseline(root, store, FAMILY, "zero", gpu=GPU)
    with pytest.raises(UnknownName, match=f"every workload · {GPU}"):
        unset_baseline(root, FAMILY)


def test_a_data_folder_that_cannot_be_written_is_one_line(
    store: Store, tmp_path_factory: pytest.TempPathFactory
) -> None:
    blocked = tmp_path_factory.mktemp("blocked")
    (blocked / decisions.FOLDER).write_text("a file where the folder would be")
    with pytest.raises(location.ProfilerError, match=str(blocked)):
        set_baseline(LocalRoot(blocked), store, FAMILY, "zero")
    assert bundle.list_runs(LocalRoot(blocked)) == []
