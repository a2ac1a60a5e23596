"""Reports that are dropped: the numbers stay, and every answer that is made from them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from profiler import cli
from profiler.bundles import bundle
from profiler.bundles.dropped import load_dropped
from profiler.bundles.location import LocalRoot, Root
from profiler.errors import BadBundle
from profiler.store.backups import back_up, restore_backup
from profiler.store.begin_import import import_paths
from profiler.store.pruning import plan_pruning, prune_runs
from profiler.store.readable_index import open_store
from profiler.store.run_files import export_run, open_report
from profiler.store.sync import rebuild_index
from profiler.store.verify import verify_data
from tests.bundles.test_backup import killed_at

pytestmark = pytest.mark.slow  # each import is a process

FILES = ("mistic/prof1.ncu-rep", "mistic/prof2.ncu-rep", "csv/kernel_0009.metrics.csv")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_reports: Path) -> Path:
    """A data folder with the runs of two reports and a CSV."""
    folder = tmp_path / "data"
    monkeypatch.setenv("PROFILER_DATA", str(folder))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    assert len(import_paths([made_reports / name for name in FILES]).imported) == 3
    return folder


@pytest.fixture
def root(data: Path) -> LocalRoot:
    return LocalRoot(data)


def rows() -> object:
    with open_store() as store:
        return store.row_digests().runs


def test_every_row_stays_and_the_report_says_that_it_was_dropped(
    data: Path, root: Root, tmp_path: Path, made_reports: Path
) -> None:
    before = rows()
    summary = prune_runs(0.001, family="mistic", why="space", who="me")
    assert (len(summary.runs), summary.refused) == (2, ())
    assert not list(data.rglob("*.ncu-rep"))
    assert len(list(data.rglob("*.csv"))) == 1
    shutil.rmtree(data / "cache", ignore_errors=True)
    rebuild_index()
    assert rows() == before
    assert verify_data().findings == ()
    run = bundle.load_run(root, summary.runs[0].run_id)
    said = r"the report was dropped on \d{4}-\d\d-\d\d by me \(space\)"
    with pytest.raises(BadBundle, match=said), open_report(run.run_id, run.reports[0].sha256):
        pass
    with pytest.raises(BadBundle, match=said):
        export_run(run.run_id, tmp_path)
    assert len(import_paths([made_reports / FILES[0]]).already) == 1
    assert prune_runs(0.001, family="mistic").runs == ()

    back_up(tmp_path / "b.tar.gz")
    shutil.rmtree(data)
    assert len(restore_backup(tmp_path / "b.tar.gz")[0].restored) == 3
    assert rows() == before
    values = next(data.glob(f"runs/{run.run_id}/values/*"))
    values.write_bytes(values.read_bytes()[:-1] + b"X")
    assert [finding.subject for finding in verify_data(quick=True).findings] == [run.run_id]


def test_a_killed_pruning_loses_nothing_and_is_finished_by_another_one(data: Path, root: Root) -> None:
    before = rows()
    shutil.rmtree(data / "cache")  # what is read comes from the bundles
    for method, number in (("write", 1), ("write", 2), ("remove", 1)):
        assert killed_at(number, LocalRoot, method, lambda: prune_runs(0.001, family="mistic"))
        rebuild_index()
        assert rows() == before
    (planned,) = plan_pruning(0.001, family="mistic").runs
    (data / "runs" / planned.run_id / "values").mkdir(exist_ok=True)
    (data / "runs" / planned.run_id / "values" / ".tmp-0").touch()  # killed while it wrote
    assert len(prune_runs(0.001, family="mistic").runs) == 1  # of the other the report was only left over
    assert not list(data.rglob("*.ncu-rep"))
    assert not list(data.rglob("runs/**/.tmp-*"))
    assert verify_data().findings == ()
    assert rows() == before


def test_a_damaged_report_is_kept_and_named(
    data: Path, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    report = next(data.rglob("prof1.ncu-rep"))
    report.write_bytes(report.read_bytes()[:-1] + b"X")
    assert cli.main(["data", "prune", "--older", "1", "--family", "mistic"]) == 0
    assert "reports of 2 runs" in (printed := capsys.readouterr().out)
    assert "nothing was dropped" in printed
    assert cli.main(["data", "prune", "--older", "1", "--family", "mistic", "--yes"]) == 2
    printed = capsys.readouterr().out
    assert "reports of 1 run," in printed
    assert "keeps its reports: reports/prof1.ncu-rep has another sha256" in printed
    assert report.exists()
    dropped = [load_dropped(root, bundle.load_run(root, run_id)) for run_id in bundle.list_runs(root)]
    assert sum(record is not None for record in dropped) == 1
