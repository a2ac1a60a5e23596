"""Two processes whose clocks are an hour apart decide about the runs of one folder: no decision is lost.

PROFILER_TEST_DECISIONS=1000 makes so many of them in all.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from profiler.bundles import decisions
from profiler.bundles.location import LocalRoot
from profiler.store.begin_import import import_paths
from profiler.store.readable_index import open_store
from profiler.store.sync import rebuild_index
from tests.conftest import ROOT
from tests.store.conftest import SQLITE_FIRST

pytestmark = pytest.mark.slow  # two processes

COUNT = int(os.environ.get("PROFILER_TEST_DECISIONS", "40"))
_DECIDES = """
import contextlib, fcntl, json, sys
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from profiler.bundles import decisions
from profiler.store.readable_index import open_store
from profiler.store.run_decisions import forget_run, relabel

who, hours, count, log, locked, *runs = sys.argv[1:]

class Clock(datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.now(tz) + timedelta(hours=float(hours))

decisions.datetime = Clock
random = Random(who)
with contextlib.closing(open_store()) as store, open(log, "a") as file:
    for number in range(int(count)):
        with open(log + ".lock", "w") as lock:
            if locked == "in turns":
                fcntl.flock(lock, fcntl.LOCK_EX)
            run, field = random.choice(runs), random.choice(["family", "version", "workload", "hidden"])
            said = random.random() < 0.5 if field == "hidden" else f"{who}{number}"
            if field == "hidden":
                is_new = forget_run(run, undo=not said, store=store)
            else:
                relabel(run, **{field: said}, store=store)
                is_new = True
            file.write(json.dumps([who, run, field, said, is_new]) + "\\n")
            file.flush()
"""


def decide(data: Path, log: Path, how: str, runs: list[str], database: str) -> list[list[object]]:
    """What two processes decided, in the order in which they wrote it down."""
    environment = {**os.environ, "PROFILER_DATA": str(data), "PROFILER_DB": database, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", _DECIDES, who, hours, str(COUNT // 2), str(log), how, *runs],
            env=environment,
        )
        for who, hours in (("early", "0"), ("late", "1"))
    ]
    assert [process.wait() for process in processes] == [0, 0]
    return [json.loads(line) for line in log.read_text().splitlines()]


@pytest.fixture
def runs(tmp_path: Path, url: str, made_reports: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("PROFILER_DB", url)
    paths = [made_reports / "mistic" / f"prof{number}.ncu-rep" for number in (1, 2)]
    return [new.run_id for new in import_paths(paths).imported]


def labels(data: Path, runs: list[str]) -> dict[tuple[str, str], object]:
    """The labels that count now, which the index has too, and one that is made anew."""
    decided = decisions.load_labels(LocalRoot(data)).labels
    of_runs = {(run, field): getattr(decided[run], field) for run in runs for field in ("family", "hidden")}
    for _ in range(2):
        with open_store() as store:
            indexed = {run.run_id: run for run in store.runs(hidden=True)}
            shown = {run.run_id for run in store.runs()}
        for run in runs:
            assert indexed[run].family == of_runs[run, "family"]
            assert (run not in shown) == of_runs[run, "hidden"]
        rebuild_index()
    return {
        (run, field): getattr(decided[run], field)
        for run in runs
        for field in ("family", "version", "workload", "hidden")
    }


@SQLITE_FIRST
def test_decisions_made_in_turns_are_those_of_a_model(tmp_path: Path, url: str, runs: list[str]) -> None:
    made = decide(tmp_path / "data", tmp_path / "log", "in turns", runs, url)
    assert len(made) == COUNT // 2 * 2
    model: dict[tuple[str, str], object] = {}
    for _, run, field, said, _ in made:
        model[str(run), str(field)] = said
    now = labels(tmp_path / "data", runs)
    assert {key: now[key] for key in model} == model
    recorded = decisions.load_decisions(LocalRoot(tmp_path / "data"))
    assert len(recorded) == sum(bool(is_new) for *_, is_new in made)


@SQLITE_FIRST
def test_decisions_made_at_once_are_all_there_and_the_last_of_a_process_counts(
    tmp_path: Path, url: str, runs: list[str]
) -> None:
    made = decide(tmp_path / "data", tmp_path / "log", "at once", runs, url)
    last: defaultdict[tuple[object, object], dict[object, object]] = defaultdict(dict)
    for who, run, field, said, _ in made:
        last[run, field][who] = said
    now = labels(tmp_path / "data", runs)
    for key, by_process in last.items():
        assert now[str(key[0]), str(key[1])] in by_process.values()
    recorded = decisions.load_decisions(LocalRoot(tmp_path / "data"))
    assert len(recorded) == sum(bool(is_new) for *_, is_new in made)
    assert len({record.id for record in recorded}) == len(recorded)
