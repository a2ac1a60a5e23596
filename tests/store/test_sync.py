"""The index follows bundles and decisions as a whole: nobody sees a run that belies what the index says."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from profiler.bundles import bundle, decisions, location
from profiler.bundles.location import Root
from profiler.bundles.run import COLLECT, Labels, Result, Run, Samples
from profiler.store import sync
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.rows import WriteConflict
from profiler.store.run_decisions import forget_run
from tests.made import START


@pytest.fixture
def where(tmp_path: Path) -> Root:
    return location.open_root(str(tmp_path / "data"))


def sealed(where: Root, minute: int) -> str:
    """A run of one timed call, kept for good; its id."""
    result = Result("attention", f"v{minute}", "b1", samples=(Samples("warm", (9.0,), (0,)),))
    run = Run(f"run-{minute}", COLLECT, START + timedelta(minutes=minute), {}, (result,))
    with bundle.importing(where):
        assert bundle.seal(where, run, {})
    return run.run_id


def state(store: Store) -> tuple[str | None, dict[str, Labels]]:
    """Which decisions the index says that it follows, and what it calls its runs."""
    return store.notes().get("decisions"), store.applied_labels()


def true_state(where: Root, decided: decisions.DecidedLabels, *runs: str) -> tuple[str, dict[str, Labels]]:
    return decided.digest, {run: decided.labels.get(run, Labels()) for run in runs}


def interrupted(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], Any]) -> None:
    """Let something happen once, after a step looked at what there is and before it writes."""
    extract, left = sync.read_runs, [happens]

    def extracted(where: Root, runs: Sequence[str]) -> Iterator[Any]:
        while left:
            left.pop()()
        yield from extract(where, runs)

    monkeypatch.setattr(sync, "read_runs", extracted)


def test_whoever_looks_meanwhile_sees_the_state_before_a_decision_or_after_it(where: Root, url: str) -> None:
    runs = [sealed(where, minute) for minute in range(3)]
    store, reader = Store.open(url), Store.open(url)
    sync.sync_store(where, store)
    old = decisions.load_labels(where)
    decisions.write_decision(where, decisions.FORGET, runs[0])
    decisions.write_decision(where, decisions.FORGET, runs[1])
    runs.append(sealed(where, 3))
    new = decisions.load_labels(where)
    seen = []
    event.listen(store._engine, "checkin", lambda *_: seen.append(state(reader)))  # after every transaction
    sync.sync_store(where, store)
    whole = [
        true_state(where, old, *runs[:3]),
        true_state(where, new, *runs[:3]),
        true_state(where, new, *runs),
    ]
    assert [one for one in seen if one not in whole] == []
    assert state(reader) == whole[-1]
    store.close()
    reader.close()


def test_a_run_that_another_process_took_in_before_a_decision_about_it_follows_the_decision(
    where: Root, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = sealed(where, 0)
    ours, theirs = Store.open(url), Store.open(url)
    sync.sync_store(where, ours)
    late = sealed(where, 1)
    before = decisions.load_labels(where)
    decisions.write_decision(where, decisions.FORGET, late)
    run = bundle.load_run(where, late)
    interrupted(monkeypatch, lambda: theirs.add_many([(run, {}, None)], decided=before))
    sync.sync_store(where, ours)
    assert state(ours) == true_state(where, decisions.load_labels(where), first, late)
    ours.close()
    theirs.close()


def test_a_step_that_is_overtaken_by_a_later_decision_ends_with_that(
    where: Root, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = [sealed(where, minute) for minute in range(2)]
    ours, theirs = Store.open(url), Store.open(url)
    sync.sync_store(where, ours)
    decisions.write_decision(where, decisions.FORGET, runs[0])

    def later() -> None:
        decisions.write_decision(where, decisions.FORGET, runs[1])
        decisions.write_decision(where, decisions.REMEMBER, runs[0])
        sync.sync_store(where, theirs)

    interrupted(monkeypatch, later)
    sync.sync_store(where, ours)
    decided = decisions.load_labels(where)
    assert decided.labels == {runs[0]: Labels(), runs[1]: Labels(hidden=True)}
    assert state(ours) == true_state(where, decided, *runs)
    ours.close()
    theirs.close()


def test_rows_made_before_a_decision_are_not_added_after_it(where: Root, url: str) -> None:
    first = sealed(where, 0)
    store = Store.open(url)
    sync.sync_store(where, store)
    before = decisions.load_labels(where)
    decisions.write_decision(where, decisions.FORGET, first)
    sync.sync_store(where, store)
    run = bundle.load_run(where, sealed(where, 1))
    with pytest.raises(WriteConflict):
        store.add_many([(run, {}, None)], decided=before)
    assert list(store.applied_labels()) == [first]
    store.close()


@pytest.mark.slow
def test_an_import_during_which_something_is_decided_follows_it(
    where: Root, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PROFILER_DB", url)
    coming = tmp_path / "elsewhere"
    late = sealed(location.open_root(str(coming)), 1)
    first = sealed(where, 0)
    settle, left = bundle.flush_runs, [first, late]

    def settled(root: Root) -> None:
        settle(root)
        while left:
            forget_run(left.pop(), data=str(tmp_path / "data"))

    monkeypatch.setattr(bundle, "flush_runs", settled)
    summary = import_paths([coming / "runs" / late])
    assert [item.run_id for item in summary.imported] == [late]
    store = open_store(sync=False)
    assert state(store) == true_state(where, decisions.load_labels(where), first, late)
    store.close()


def test_a_decision_about_a_run_that_cannot_be_read_any_more_takes_it_out(where: Root, url: str) -> None:
    runs = [sealed(where, minute) for minute in range(2)]
    store = Store.open(url)
    sync.sync_store(where, store)
    decisions.write_decision(where, decisions.FORGET, runs[0])
    (location.open_root(where.url).folder / "runs" / runs[0] / "run.json").write_text("{")  # type: ignore[attr-defined]
    done = sync.sync_store(where, store)
    assert (done.changed, done.removed, [run for run, _ in done.refused]) == ((), (runs[0],), [runs[0]])
    assert state(store) == true_state(where, decisions.load_labels(where), runs[1])
    store.close()


def test_a_rebuild_that_is_killed_on_its_way_leaves_one_whole_state(
    where: Root, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", where.url)
    monkeypatch.setenv("PROFILER_DB", url)
    first = sealed(where, 0)
    store = Store.open(url)
    sync.sync_store(where, store)
    decisions.write_decision(where, decisions.FORGET, first)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    for method in ("put_notes", "prepare_series"):
        monkeypatch.setattr(Store, method, killed)
    with pytest.raises(KeyboardInterrupt):
        sync.rebuild_index()
    assert state(store) == true_state(where, decisions.load_labels(where), first)
    store.close()


@pytest.mark.parametrize("room_for", [0, 1, 3])
def test_a_rebuild_without_room_for_its_rows_reads_the_runs_again(
    where: Root, monkeypatch: pytest.MonkeyPatch, room_for: int
) -> None:
    for minute in range(3):
        sealed(where, minute)
    with open_store(where.url) as store:
        before = store.row_digests()
    written: list[object] = []
    dump = pickle.dump

    def dump_while_there_is_room(rows: object, *arguments: Any) -> None:
        if len(written) == room_for:
            raise OSError(28, "No space left on device")
        written.append(rows)
        dump(rows, *arguments)

    monkeypatch.setattr(pickle, "dump", dump_while_there_is_room)
    assert len(sync.rebuild_index(where.url).added) == 3
    assert len(written) == room_for
    with open_store(where.url, sync=False) as store:
        assert store.row_digests() == before
