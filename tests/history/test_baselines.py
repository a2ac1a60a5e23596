"""Which baseline counts: the most special pin, what a catalogue implies, and each caller's own question."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from profiler.bundles import decisions
from profiler.bundles.decisions import DecisionRecord
from profiler.bundles.location import LocalRoot, Root
from profiler.bundles.run import Run
from profiler.errors import CannotJudge, UnknownName
from profiler.history.baselines import (
    Baselines,
    LostPin,
    NoBaseline,
    Pin,
    RunBefore,
    effective_pin,
    for_advice,
    list_pins,
    newest_and_before,
    run_before,
)
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.run_decisions import forget_run
from profiler.store.sync import rebuild_index
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


@pytest.fixture
def store(runs: list[Run]) -> Iterator[Store]:
    opened = open_store()
    yield opened
    opened.close()


@pytest.fixture
def root(data: Path) -> Root:
    return LocalRoot(data)


def pin(root: Root, name: str, **place: str) -> None:
    """A decision that a version, or a run, is the baseline."""
    kind = "run" if name.startswith("2") else "version"
    values = {"workload": None, "gpu": None, **place, kind: name}
    decisions.write_decision(root, decisions.BASELINE, FAMILY, values, why="released", who="ada")


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANYWHERE = Pin(FAMILY, None, None, None, "any", "ada", NOON, "", "1")
OF_GPU = replace(ANYWHERE, gpu=GPU, version="gpu")
OF_SIZE = replace(ANYWHERE, workload=SIZE, version="size")
OF_BOTH = replace(ANYWHERE, workload=SIZE, gpu=GPU, version="both")


@pytest.mark.parametrize(
    ("pins", "workload", "gpu", "version"),
    [
        ((ANYWHERE, OF_GPU, OF_SIZE, OF_BOTH), SIZE, GPU, "both"),
        ((ANYWHERE, OF_GPU, OF_SIZE), SIZE, GPU, "size"),
        ((ANYWHERE, OF_GPU), SIZE, GPU, "gpu"),
        ((ANYWHERE, OF_GPU, OF_SIZE, OF_BOTH), "other", GPU, "gpu"),
        ((ANYWHERE, OF_GPU, OF_SIZE, OF_BOTH), "other", "another", "any"),
        ((OF_BOTH,), "other", GPU, None),
    ],
)
def test_the_most_special_pin_counts(
    pins: tuple[Pin, ...], workload: str, gpu: str, version: str | None
) -> None:
    counts = effective_pin(pins, FAMILY, workload, gpu)
    assert (counts and counts.version) == version
    assert effective_pin(pins, "another family", workload, gpu) is None


def test_the_last_decision_of_a_place_counts_and_one_can_be_taken_back() -> None:
    def record(kind: str, version: str | None, day: int) -> DecisionRecord:
        values = {"workload": SIZE, "gpu": None, "version": version}
        return DecisionRecord(str(day), kind, FAMILY, NOON + timedelta(days=day), "ada", "", values)

    set_twice = [record(decisions.BASELINE, "zero", 0), record(decisions.BASELINE, "alpha", 1)]
    assert [(pin.version, pin.id) for pin in list_pins(set_twice)] == [("alpha", "1")]
    assert list_pins([*set_twice, record(decisions.UNSET_BASELINE, None, 2)]) == []


def test_every_caller_asks_its_own_question(root: Root, store: Store, runs: list[Run]) -> None:
    """Of alpha, whose parent is wrong and whose nearest correct ancestor is zero."""
    baselines = Baselines.load(root, store, FAMILY)
    assert baselines.lineage is not None
    status = baselines.lineage.by_id["alpha"]
    assert baselines.for_gate(SIZE, GPU) is None, "nothing is pinned: the gate takes the run before"
    regressions = baselines.for_regressions("alpha", SIZE, GPU, ["zero", "alpha"])
    assert regressions
    assert not isinstance(regressions, LostPin)
    assert (regressions.name, regressions.label) == ("mine/zero", "parent zero")
    advice = for_advice(FAMILY, status)
    assert not isinstance(advice, NoBaseline)
    assert (advice.name, advice.words) == ("mine/zero", "its nearest correct ancestor: bad is not")
    pin(root, runs[0].run_id)
    pinned = Baselines.load(root, store, FAMILY)
    of_gate = pinned.for_gate(SIZE, GPU)
    assert of_gate
    assert of_gate.name == runs[0].run_id
    assert pinned.for_regressions("alpha", SIZE, GPU, ["zero", "alpha"]) == of_gate
    assert for_advice(FAMILY, status) == advice, "what is pinned is no matter of advice"


def test_a_pinned_version_is_no_baseline_of_itself(root: Root, store: Store) -> None:
    pin(root, "alpha")
    baselines = Baselines.load(root, store, FAMILY)
    assert baselines.for_regressions("alpha", SIZE, GPU, ["alpha"]) is None


def test_without_a_catalogue_regressions_take_the_version_before(root: Root, store: Store) -> None:
    baselines = replace(Baselines.load(root, store, FAMILY), lineage=None)
    present = [*baselines.versions][:2]
    before = baselines.for_regressions(present[1], SIZE, GPU, present)
    assert before
    assert not isinstance(before, LostPin)
    assert before.label == f"the version before, {present[0]}"
    assert baselines.for_regressions(present[0], SIZE, GPU, present) is None, "only of the newest"


def test_advice_says_why_there_is_no_baseline(root: Root, store: Store) -> None:
    assert for_advice(None, None) == NoBaseline(
        "no baseline (this report is not in a catalogue); use --against"
    )
    lineage = Baselines.load(root, store, FAMILY).lineage
    assert lineage is not None
    assert for_advice(FAMILY, lineage.by_id["zero"]) == NoBaseline(
        "no baseline: it has no parent in the catalogue"
    )


def test_the_newest_and_the_version_before_are_of_those_present() -> None:
    order = ["v1", "v2", "v3"]
    assert newest_and_before(order, {"v1", "v3"}) == ("v3", "v1")
    assert newest_and_before(order, ["v2"]) == ("v2", None)
    assert newest_and_before(order, []) == (None, None)


def test_the_run_before_is_the_last_earlier_one_and_a_tie_is_told() -> None:
    made = {run: NOON + timedelta(hours=hour) for run, hour in (("a", 0), ("b", 1), ("own", 2), ("c", 3))}
    assert run_before("own", made) == RunBefore("b")
    assert run_before("a", made) == RunBefore(None)
    assert run_before("own", {**made, "twin": made["own"]}) == RunBefore("b", "twin")


def test_implicit_baselines_are_always_there(root: Root, store: Store) -> None:
    launches = Baselines.load(root, store, FAMILY)
    found = {baseline.how: baseline.version for baseline in launches.available("alpha", SIZE, GPU)}
    assert found == {"parent": "zero", "best": "zero", "torch:theirs": "theirs"}
    assert launches.named("best", "zero", SIZE, GPU).words == "the fastest correct version there"
    assert launches.places("alpha") == [(SIZE, GPU)]
    assert launches.places("theirs") == [(SIZE, GPU)]


@pytest.mark.parametrize(
    ("name", "version", "gpu", "said"),
    [
        ("parent", "zero", GPU, "its lineage begins with it"),
        ("parent", "stray", GPU, "in no catalogue"),
        ("best", "alpha", "another", "no correct version of mine was timed there"),
        ("torch:theirs", "alpha", "another", "`profiler collect theirs`"),
        ("pinned", "alpha", GPU, "profiler decide baseline set mine"),
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


def test_a_pin_of_a_run_that_was_forgotten_is_lost_to_the_gate_and_to_regressions(
    root: Root, store: Store, runs: list[Run]
) -> None:
    pin(root, runs[0].run_id)
    forget_run(runs[0].run_id, store=store)
    baselines = Baselines.load(root, store, FAMILY)
    with pytest.raises(CannotJudge, match="was forgotten"):
        baselines.for_gate(SIZE, GPU)
    lost = baselines.for_regressions("alpha", SIZE, GPU, ["zero", "alpha"])
    assert isinstance(lost, LostPin)
    assert lost.command == f"profiler data forget --undo {runs[0].run_id}"


def test_a_rebuilt_index_loses_no_pin(root: Root, store: Store, data: Path, runs: list[Run]) -> None:
    pin(root, runs[0].run_id, workload=SIZE)
    before = Baselines.load(root, store, FAMILY).available("alpha", SIZE, GPU)
    store.close()
    for file in data.glob("index.db*"):
        file.unlink()
    rebuild_index()
    again = open_store()
    assert Baselines.load(root, again, FAMILY).available("alpha", SIZE, GPU) == before
    assert before[0].name == runs[0].run_id
    again.close()
