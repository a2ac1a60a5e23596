"""What was found worse is kept beside the index, and searched anew where what it rests on changed."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from profiler import cli
from profiler.bundles import location
from profiler.cli import output
from profiler.compare.noise_model import NoiseModel
from profiler.documents import regressions
from profiler.documents.regressions import list_regressions
from profiler.errors import ProfilerError
from profiler.evidence.metric_table import MetricTable, load_metrics
from profiler.regressions import stored_search
from profiler.regressions.cause import CauseFinder
from profiler.regressions.report import RegressionReport, find_regressions
from profiler.regressions.stored_search import KnownCauses, load_regressions
from profiler.store import answers
from profiler.store.readable_index import open_store
from profiler.store.run_decisions import forget_run
from profiler.store.sync import rebuild_index
from tests import timed_runs
from tests.timed_runs import run


@pytest.fixture(autouse=True)
def own_index(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PROFILER_DB", raising=False)
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """An entry for each search that was made."""
    made: list[None] = []
    search = find_regressions

    def counted(*arguments: object, **named: object) -> RegressionReport:
        made.append(None)
        return search(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(stored_search, "find_regressions", counted)
    return made


def slower(folder: Path) -> list[str]:
    """Two versions, one of which a newer run found 3 % slower; the ids of the runs."""
    noise = timed_runs.noise(170e3, 0.003)
    before, now = (
        run({"v1": 170e3, "v2": 150e3}, 0, sass={"v1": "a", "v2": "c"}),
        run({"v1": 175.1e3, "v2": 150e3}, 1, sass={"v1": "b", "v2": "c"}),
    )
    timed_runs.seal(folder, noise, before, now)
    return [before.run_id, now.run_id]


def look(folder: Path) -> RegressionReport:
    with open_store(str(folder)) as store:
        noise = NoiseModel.of_store(lambda: store, str(folder))
        return load_regressions(location.open_root(str(folder)), store, load_metrics(), noise)


@pytest.mark.slow
def test_the_same_state_is_searched_once_and_gives_the_same_report(
    tmp_path: Path, searches: list[None]
) -> None:
    slower(tmp_path)
    first, second = look(tmp_path), look(tmp_path)
    assert len(searches) == 1
    assert first.regressions
    assert second.regressions == first.regressions
    assert second.coverage == first.coverage


def _import(folder: Path, _runs: list[str]) -> None:
    timed_runs.seal(folder, run({"v1": 170e3, "v2": 150e3}, 2, sass={"v1": "a", "v2": "c"}))


def _forget(folder: Path, runs: list[str]) -> None:
    forget_run(runs[-1])


def _pin(folder: Path, runs: list[str]) -> None:
    assert cli.main(["decide", "baseline", "set", "flash", "v2", "--why", "fastest"]) == 0


def _rebuild(folder: Path, _runs: list[str]) -> None:
    rebuild_index(str(folder))


@pytest.mark.slow
@pytest.mark.parametrize("change", [_import, _forget, _pin, _rebuild])
def test_after_a_change_of_data_or_decisions_the_answer_is_a_new_one(
    tmp_path: Path, searches: list[None], change: Callable[[Path, list[str]], None]
) -> None:
    runs = slower(tmp_path)
    before = look(tmp_path)
    change(tmp_path, runs)
    after = look(tmp_path)
    assert len(searches) == 2
    if change in (_import, _forget):
        assert before.open
        assert not after.open


@pytest.mark.slow
def test_an_acknowledgement_counts_at_once(tmp_path: Path, searches: list[None]) -> None:
    slower(tmp_path)
    (one,) = look(tmp_path).open
    assert cli.main(["decide", "acknowledge", one.subject, "--why", "known"]) == 0
    assert not look(tmp_path).open
    assert len(searches) == 1


@pytest.mark.slow
def test_another_program_or_table_asks_again(
    tmp_path: Path, searches: list[None], monkeypatch: pytest.MonkeyPatch
) -> None:
    slower(tmp_path)
    look(tmp_path)
    monkeypatch.setattr(answers, "_program", lambda: "another")
    look(tmp_path)
    assert len(searches) == 2
    table = load_metrics()
    monkeypatch.setitem(globals(), "load_metrics", lambda: replace(table, metrics=table.metrics[:-1]))
    look(tmp_path)
    assert len(searches) == 3


def test_an_answer_of_an_older_state_is_not_kept(tmp_path: Path) -> None:
    slower(tmp_path)
    with open_store(str(tmp_path)) as store:
        state = store.data_version()
        timed_runs.seal(tmp_path, run({"v3": 1e5}, 3))
        open_store(str(tmp_path)).close()
        assert not store.keep_answer("name", "question", "old", state)
        assert store.answer("name", "question") is None
        assert store.keep_answer("name", "question", "new", store.data_version())
        assert store.answer("name", "question") == "new"


def test_nobody_waits_for_a_writer_to_keep_an_answer(tmp_path: Path) -> None:
    slower(tmp_path)
    with open_store(str(tmp_path)) as store:
        writer = sqlite3.connect(tmp_path / "index.db", isolation_level=None)
        writer.execute("BEGIN IMMEDIATE")
        assert not store.keep_answer("name", "question", "content", store.data_version())
        writer.execute("ROLLBACK")
        writer.close()
        assert store.keep_answer("name", "question", "content", store.data_version())


@pytest.mark.slow
def test_causes_are_found_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slower(tmp_path)

    def causes() -> dict[str, object]:
        with open_store(str(tmp_path)) as store:
            document = list_regressions(load_metrics(), store, data=str(tmp_path))
            answered = document.to_dict()
            document.keep()
        return answered

    first = causes()
    monkeypatch.setattr(CauseFinder, "changes", lambda *_: pytest.fail("looked up again"))
    assert causes() == first


@pytest.mark.slow
def test_the_command_that_adds_runs_to_a_long_history_searches_it(
    tmp_path: Path, searches: list[None], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slower(tmp_path)
    assert cli.main(["data", "index"]) == 0
    assert not searches  # three runs: the first question is answered soon enough
    assert cli.main(["regressions", "--json"]) == 0
    timed_runs.seal(tmp_path, run({"v3": 1e5}, 3))
    monkeypatch.setattr(output, "LONG_HISTORY", 4)
    assert cli.main(["data", "index"]) == 0
    assert len(searches) == 2
    # Neither the search nor a cause is left for who asks next.
    monkeypatch.setattr(CauseFinder, "changes", lambda *_: pytest.fail("looked up again"))
    capsys.readouterr()
    assert cli.main(["regressions", "--json"]) == 0
    assert '"alarms": 1' in capsys.readouterr().out
    assert len(searches) == 2


def test_a_search_that_fails_fails_no_command_that_adds_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slower(tmp_path)
    monkeypatch.setattr(output, "LONG_HISTORY", 1)
    monkeypatch.setattr(regressions, "load_metrics", _unusable)
    assert cli.main(["data", "index"]) == 0
    assert capsys.readouterr().out.startswith("index: 3 runs added")


def _unusable() -> MetricTable:
    raise ProfilerError("metrics.txt:1: not a line")


@pytest.mark.slow
def test_a_damaged_answer_is_found_anew(tmp_path: Path, searches: list[None]) -> None:
    slower(tmp_path)
    first = look(tmp_path)
    with sqlite3.connect(tmp_path / "index.db") as database:
        database.execute("UPDATE answer SET content = x'00'")
    database.close()
    assert look(tmp_path).regressions == first.regressions
    assert len(searches) == 2
    with open_store(str(tmp_path)) as store:
        KnownCauses(CauseFinder(store, location.open_root(str(tmp_path)), load_metrics()))
