"""Backup, verification and deletion of a data folder that has an index."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from profiler import cli
from profiler.bundles import bundle, decisions
from profiler.bundles.location import LocalRoot
from profiler.errors import UnknownName
from profiler.store.backups import back_up, restore_backup
from profiler.store.begin_import import import_paths
from profiler.store.deletion import delete_runs
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.run_decisions import forget_run, relabel
from profiler.store.verify import verify_data

EXAMPLES = Path(__file__).resolve().parents[2] / "data" / "runs"
WHY = "it holds the name of a customer"


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A data folder with the four example runs, which ncu's CSVs came from."""
    folder = tmp_path / "data"
    monkeypatch.setenv("PROFILER_DATA", str(folder))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    for path in EXAMPLES.glob("*-example-*"):
        shutil.copytree(path, folder / "runs" / path.name)
    return folder


def run_ids(data: Path) -> list[str]:
    return bundle.list_runs(LocalRoot(data))


def rows() -> object:
    with open_store() as store:
        return store.row_digests().runs


@pytest.mark.slow
def test_a_restored_folder_gives_the_same_index(data: Path, tmp_path: Path) -> None:
    relabel(run_ids(data)[0], version="better", why="a typing error")
    before = rows()
    back_up(tmp_path / "b.tar.gz")
    shutil.rmtree(data)
    restored, indexed = restore_backup(tmp_path / "b.tar.gz")
    assert len(indexed.added) == len(restored.restored) == 4
    assert rows() == before
    assert verify_data().findings == ()


def change_report(folder: Path) -> None:
    next((folder / "reports").iterdir()).write_bytes(b"other")


def change_byte(folder: Path) -> None:
    path = next((folder / "reports").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b"X")


DAMAGES: dict[str, Callable[[Path], object]] = {
    "has 5 bytes, not": change_report,
    "has another sha256": change_byte,
    "is not there": lambda folder: next((folder / "reports").iterdir()).unlink(),
    "does not name it": lambda folder: (folder / "reports" / "other").write_bytes(b""),
    "holds no run.json": lambda folder: (folder / "run.json").unlink(),
    "is no run.json of a bundle": lambda folder: (folder / "run.json").write_bytes(b"{}"),
}


@pytest.mark.parametrize("message", DAMAGES)
def test_verify_finds_what_is_damaged(data: Path, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = run_ids(data)[1]
    DAMAGES[message](data / "runs" / run_id)
    assert cli.main(["data", "verify", "--quick"]) == 2
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(run_id)
    assert message in printed[0]
    assert len(printed) == 2


def test_verify_finds_a_decision_that_is_none(data: Path) -> None:
    (data / "decisions").mkdir()
    (data / "decisions" / "x.json").write_text("[]")
    assert [finding.subject for finding in verify_data(quick=True).findings] == ["x"]


def test_verify_finds_a_decision_of_a_time_to_come(data: Path) -> None:
    far = decisions.write_decision(
        LocalRoot(data), decisions.NOTE, "x", created=datetime.now(UTC) + timedelta(days=30)
    )
    [finding] = verify_data(quick=True).findings
    assert finding.subject == far.id
    assert f"{far.id}.json is of" in finding.message


def test_verify_calls_no_index_wrong_whose_bundle_came_with_its_keys_in_another_order(
    data: Path, tmp_path: Path
) -> None:
    run_id = run_ids(data)[0]
    shutil.move(data / "runs" / run_id, tmp_path / run_id)
    path = tmp_path / run_id / "run.json"
    body = json.loads(path.read_text())
    body["provenance"] = dict(sorted(body["provenance"].items(), reverse=True))
    body["results"][0]["problem"] = {"b": 1, "a": {"d": 1, "c": 2}}
    path.write_text(json.dumps(body))
    assert len(import_paths([tmp_path / run_id]).imported) == 1
    assert verify_data().findings == ()


CHANGES = {
    "other rows of run": "UPDATE result SET duration = 1 WHERE id = (SELECT min(id) FROM result)",
    "rows of runs that it does not list": "UPDATE report SET run = 1 WHERE id = (SELECT min(id) FROM report)",
    "other rows in its table kernel": "DELETE FROM kernel WHERE id = (SELECT min(id) FROM kernel)",
}


@pytest.mark.slow
@pytest.mark.parametrize("message", CHANGES)
def test_verify_finds_an_index_that_is_not_of_the_bundles(data: Path, message: str) -> None:
    assert verify_data().findings == ()
    with Store.open(data / "index.db") as store, store._engine.begin() as connection:
        connection.exec_driver_sql(CHANGES[message])
    findings = verify_data().findings
    assert any(message in finding.message for finding in findings)
    assert {finding.subject for finding in findings} == {"index"}


@pytest.mark.slow
def test_a_deleted_run_is_gone_and_its_report_can_come_again(data: Path, tmp_path: Path) -> None:
    run_id = run_ids(data)[0]
    rows()
    copy = tmp_path / "copy"
    shutil.copytree(data / "runs" / run_id, copy)
    cached = len(list((data / "cache" / "values").iterdir()))
    forget_run(run_id)
    delete_runs([run_id], why=WHY, who="me")
    assert run_id not in run_ids(data)
    assert not list(data.rglob(f"*{run_id}*"))
    assert len(list((data / "cache" / "values").iterdir())) == cached - 1
    record = decisions.load_decisions(LocalRoot(data))[-1]
    assert (record.kind, record.subject, record.why, record.who) == ("delete", run_id, WHY, "me")
    assert verify_data().findings == ()
    assert [new.run_id for new in import_paths([copy]).imported] == [run_id]
    with open_store() as store:
        assert run_id in [run.run_id for run in store.runs()]  # that it was forgotten counts no more


def test_delete_asks_first_and_refuses_what_is_not_there(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_id = run_ids(data)[0]
    assert cli.main(["data", "delete", run_id, "--why", WHY]) == 2
    printed = capsys.readouterr()
    assert printed.out.startswith(f"{run_id}: 2 files, ")
    assert "--yes" in printed.err
    with pytest.raises(UnknownName):
        delete_runs([run_id, "nothing"], why=WHY)
    assert len(run_ids(data)) == 4
    assert cli.main(["data", "delete", run_id, "--why", WHY, "--yes"]) == 0
    assert len(run_ids(data)) == 3


def test_the_commands_say_what_they_did(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    packed = tmp_path / "b.tar.gz"
    assert cli.main(["data", "backup", str(packed)]) == 0
    assert f"{packed}: 4 runs and 0 decisions" in capsys.readouterr().out
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "new"))
    assert cli.main(["data", "restore", str(packed)]) == 0
    assert capsys.readouterr().out == "4 runs restored\n"
    assert cli.main(["data", "restore", str(packed)]) == 0
    assert capsys.readouterr().out == "4 runs already there\n"
    assert cli.main(["data", "backup", str(tmp_path)]) == 2
    assert "is a folder" in capsys.readouterr().err
