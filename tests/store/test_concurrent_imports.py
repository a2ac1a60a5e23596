"""Imports that meet each other, a reader, or kill -9, on both databases: nothing lost, nothing doubled."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from profiler.bundles import bundle
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import COLLECT, Facts, Result, Run, Samples
from profiler.evidence.values import Evidence, Value
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from tests import made
from tests.conftest import ROOT
from tests.store.conftest import SQLITE_FIRST

pytestmark = pytest.mark.slow  # each import is a process

RUNS, ROWS = 120, 4  # runs that are imported, and rows of results in each


@pytest.fixture
def place(url: str, tmp_path: Path) -> dict[str, str]:
    """The environment of an import into an empty data folder of its own."""
    return {"PROFILER_DATA": str(tmp_path / "data"), "PROFILER_DB": url}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of sealed bundles from elsewhere, every one of the same versions and workloads."""
    elsewhere = LocalRoot(tmp_path_factory.mktemp("elsewhere"))
    (elsewhere.folder / bundle.STAGING_FOLDER).mkdir()
    for number in range(RUNS):
        bundle.seal(elsewhere, collected(number), {})
    return elsewhere.folder / bundle.RUNS_FOLDER


def collected(number: int) -> Run:
    """One collection of two versions: registers and the latencies of both."""
    results = tuple(
        Result(
            family="attention",
            version=version,
            workload=f"b{number % 3}",
            samples=(Samples("events; cache warm; clock none", (10.0 + number, 11.0 + number), (0, 1)),),
            facts=(Facts(Evidence.STATIC, "main", {"registers": Value(40 + number, "")}, "sm_90"),),
        )
        for version in ("v1", "v2")
    )
    created = made.START + timedelta(minutes=number)
    return Run(f"{created:%Y%m%dT%H%M%S}-{number:04d}", COLLECT, created, {"gpu": "NVIDIA Test 1"}, results)


def importing(bundles: Path, place: Mapping[str, str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "profiler", "import", str(bundles)]
    environment = {**os.environ, **place, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, cwd=ROOT, stdout=subprocess.DEVNULL)


def answers(place: Mapping[str, str]) -> str:
    """Everything that the index says once it is in step with the bundles."""
    store = open_store(place["PROFILER_DATA"], place["PROFILER_DB"])
    statements = made.everything(store)
    store.close()
    return statements


@pytest.fixture(scope="module")
def expected(bundles: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the index says after one import that nothing disturbed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    place = {"PROFILER_DATA": str(folder / "data"), "PROFILER_DB": f"sqlite:///{folder / 'index.db'}"}
    assert importing(bundles, place).wait() == 0
    return answers(place)


def sealed(place: Mapping[str, str]) -> list[str]:
    return bundle.list_runs(LocalRoot(Path(place["PROFILER_DATA"])))


@SQLITE_FIRST
def test_imports_killed_at_random_moments_leave_whole_runs_and_the_next_one_does_the_rest(
    bundles: Path, place: dict[str, str], expected: str
) -> None:
    chance = random.Random(str(sorted(place)))
    killed_midway = 0
    # After so many runs of its own an import dies; after each 50 it writes to the index.
    for runs in (chance.randrange(1, 20), 50, chance.randrange(1, 20)):
        before, process = len(sealed(place)), importing(bundles, place)
        while len(sealed(place)) < before + runs and process.poll() is None:
            time.sleep(0.001)
        time.sleep(chance.uniform(0.0, 0.03))
        process.kill()
        assert process.wait() in (0, -signal.SIGKILL)
        killed_midway += before < len(sealed(place)) < RUNS
        store = Store.open(place["PROFILER_DB"])  # as it was left, without looking at the bundles
        indexed = {run.run_id for run in store.runs()}
        assert indexed <= set(sealed(place)), "what is in the index is sealed"
        assert len(store.results(latest=False)) == ROWS * len(indexed), "a run is in the index whole"
        store.close()
    assert killed_midway, "none was killed in the middle: the test shows nothing"
    assert importing(bundles, place).wait() == 0
    assert len(sealed(place)) == RUNS
    assert answers(place) == expected


@SQLITE_FIRST
def test_two_imports_of_the_same_bundles_at_once_give_what_one_gives(
    bundles: Path, place: dict[str, str], expected: str
) -> None:
    processes = [importing(bundles, place) for _ in range(2)]
    assert [process.wait() for process in processes] == [0, 0]
    assert len(sealed(place)) == RUNS
    assert answers(place) == expected


@SQLITE_FIRST
def test_a_reader_beside_an_import_sees_whole_runs_and_never_fewer_than_before(
    bundles: Path, place: dict[str, str]
) -> None:
    store = Store.open(place["PROFILER_DB"])
    process, seen = importing(bundles, place), [0]
    while process.poll() is None:
        rows = len(store.results(latest=False))
        assert rows % ROWS == 0, "half a run"
        assert rows >= seen[-1], "a run was there and is gone"
        seen.append(rows)
        time.sleep(0.005)
    assert process.returncode == 0
    assert len(store.results(latest=False)) == ROWS * RUNS
    assert len(store.results()) == 3 * ROWS, "of two versions on three workloads the newest"
    store.close()


_OPENED = """
import sys, threading
from pathlib import Path
from profiler.store import engine
from sqlalchemy import text

failed = []
for at in range(100):
    together = threading.Barrier(4)
    made = [engine.connect(Path(sys.argv[1]) / f"{at}.db") for _ in range(4)]

    def open_it(one):
        together.wait()
        try:
            with engine.writing(one) as connection:
                connection.execute(text("CREATE TABLE IF NOT EXISTS one (at INTEGER)"))
        except Exception as error:
            failed.append(str(error))

    threads = [threading.Thread(target=open_it, args=(one,)) for one in made]
    [one.start() for one in threads]
    [one.join() for one in threads]
print(len(failed), *failed[:1])
"""


def test_a_new_index_that_several_open_together_is_locked_to_none_of_them(tmp_path: Path) -> None:
    ran = subprocess.run([sys.executable, "-c", _OPENED, str(tmp_path)], capture_output=True, text=True)
    assert ran.stdout.split() == ["0"], ran.stdout + ran.stderr
