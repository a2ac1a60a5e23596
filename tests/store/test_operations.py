"""From files to bundles and the index, on real reports: whole or not at all, once, rebuilt the same."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import pytest

from profiler.bundles import bundle, decisions, location
from profiler.bundles.run import Run
from profiler.cli import main
from profiler.errors import ProfilerError, UnknownName
from profiler.evidence.launch import Report
from profiler.evidence.values import State
from profiler.reports.read import read_report
from profiler.store import import_files, report_cache, sync
from profiler.store.begin_import import import_paths
from profiler.store.family_mix import family_mixes
from profiler.store.import_files import AlreadyImported
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.run_decisions import forget_run, relabel
from profiler.store.run_files import export_run, open_report
from profiler.store.run_rows import RunRows
from profiler.store.sync import rebuild_index, sync_index
from tests import made

pytestmark = pytest.mark.slow  # each import is a process

ROOT = Path(__file__).resolve().parents[2]
FILES = (
    "mistic/prof1.ncu-rep",
    "mistic/prof2.ncu-rep",
    "esmm/profile@5c6231e5.ncu-rep",
    "csv/kernel_0009.metrics.csv",
)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "data"
    monkeypatch.setenv("PROFILER_DATA", str(folder))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    return folder


@pytest.fixture
def paths(made_reports: Path) -> list[Path]:
    return [made_reports / name for name in FILES]


@pytest.fixture
def paths_of_either(reports: Path) -> list[Path]:
    """Made reports, and public ones: for what comes out of the reports themselves."""
    return [reports / name for name in FILES]


@pytest.fixture
def store() -> Iterator[Store]:
    opened = open_store()
    yield opened
    opened.close()


def profiler(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a command says in this process, which has loaded everything already."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8") for _ in range(2))
    words = [str(word) for word in arguments]
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
        for name, value in environment.items():
            patch.setenv(name, value)
        code = main(words)
    said = []
    for stream in (out, err):
        stream.flush()
        said.append(stream.buffer.getvalue().decode("utf-8"))  # type: ignore[attr-defined]
    return subprocess.CompletedProcess(words, code, *said)


def profiler_process(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """What a command says in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "profiler", *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )


def content(folder: Path) -> dict[str, str]:
    """Every file of bundles and decisions, by its hash."""
    files = (path for kind in ("runs", "decisions") for path in (folder / kind).rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_reports_come_in_under_the_names_of_folder_and_file(
    paths_of_either: list[Path], store: Store
) -> None:
    seen = []
    summary = import_paths(
        paths_of_either, progress=lambda done, total, what: seen.append((done, total, what)), store=store
    )
    assert [(item.family, item.version, item.launches) for item in summary.imported] == [
        ("mistic", "prof1", 4),
        ("mistic", "prof2", 4),
        ("esmm", "profile@5c6231e5", 6),
        ("csv", "kernel_0009.metrics", 1),
    ]
    assert seen == [(n + 1, 4, path.name) for n, path in enumerate(paths_of_either)]
    digest = hashlib.sha256(paths_of_either[0].read_bytes()).hexdigest()
    assert summary.imported[0].run_id == f"20220713T172902-mistic-prof1-{digest[:8]}"
    assert [(info.version, info.runs) for info in store.versions("mistic")] == [("prof1", 1), ("prof2", 1)]
    provenance = {family: store.runs(family=family)[0].provenance for family in ("csv", "esmm")}
    assert [kept["created_from"] for kept in provenance.values()] == ["file time", "session"]
    assert [str(kept["folder"]).rpartition("/")[2] for kept in provenance.values()] == ["csv", "esmm"]


def test_the_report_in_a_bundle_is_the_users_file_byte_for_byte(paths_of_either: list[Path]) -> None:
    [imported] = import_paths(paths_of_either[:1]).imported
    digest = hashlib.sha256(paths_of_either[0].read_bytes()).hexdigest()
    with open_report(imported.run_id, digest) as path:
        assert path.read_bytes() == paths_of_either[0].read_bytes()
    with pytest.raises(UnknownName), open_report(imported.run_id, "0" * 64):
        pass


def test_the_nan_launch_of_esmm_is_failed_in_its_series(paths_of_either: list[Path], store: Store) -> None:
    import_paths(paths_of_either, store=store)
    [failed] = [info for info in store.results(family="esmm") if info.duration_ns.state is not State.PRESENT]
    assert failed.part == "one_d_vec#0"
    [series] = store.series([made.DURATION], family="esmm", kernel="one_d_vec")
    assert [point.value.state for point in series.points] == [State.FAILED]


def test_importing_again_changes_nothing_and_names_the_run(
    paths: list[Path], data: Path, tmp_path: Path
) -> None:
    first = import_paths(paths)
    before = content(data)
    copy = tmp_path / "elsewhere" / "another name.ncu-rep"
    copy.parent.mkdir()
    shutil.copyfile(paths[0], copy)
    again = import_paths([*paths, copy], family="other", version="v9")
    assert again.imported == again.refused == ()
    assert [item.run_id for item in again.already] == [
        *(item.run_id for item in first.imported),
        first.imported[0].run_id,
    ]
    assert content(data) == before


def test_one_content_under_two_names_is_one_run(paths: list[Path], tmp_path: Path, store: Store) -> None:
    copies = [tmp_path / "f" / name for name in ("a.ncu-rep", "b.ncu-rep")]
    copies[0].parent.mkdir()
    for copy in copies:
        shutil.copyfile(paths[0], copy)
    summary = import_paths(copies, store=store)
    assert [item.version for item in summary.imported] == ["a"]
    assert [(Path(item.path).name, item.run_id) for item in summary.already] == [
        ("b.ncu-rep", summary.imported[0].run_id)
    ]
    assert len(store.runs()) == 1


def test_damaged_reports_are_refused_alone_and_leave_nothing(
    reports: Path, data: Path, paths: list[Path]
) -> None:
    bad = sorted((reports / "bad").glob("*.ncu-rep"))
    summary = import_paths([*bad[:6], paths[0], *bad[6:]])
    assert [Path(path).name for path, _ in summary.refused] == [path.name for path in bad]
    assert all("\n" not in message and path in message for path, message in summary.refused)
    assert [item.version for item in summary.imported] == ["prof1"]
    assert [path.name for path in (data / "runs").iterdir()] == [summary.imported[0].run_id]
    assert [path for path in (data / "staging").iterdir() if path.is_dir()] == []


def test_copies_of_a_damaged_report_are_each_refused_under_their_own_name(tmp_path: Path) -> None:
    copies = [tmp_path / f"{name}.ncu-rep" for name in ("a", "b", "c")]
    for copy in copies:
        copy.touch()
    assert import_paths(copies).refused == tuple(
        (str(copy), f"{copy}: the file is empty; copy it again") for copy in copies
    )


def test_folders_are_searched_and_other_files_counted(
    made_reports: Path, tmp_path: Path, store: Store
) -> None:
    folder = tmp_path / "results"
    for name in ("a/v1.ncu-rep", "a/notes.txt", "b/deep/v2.ncu-rep", ".git/v3.ncu-rep", "table.csv", "x.zip"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("time,value\n1,2\n")
    for name, source in (("a/v1.ncu-rep", "prof1"), ("b/deep/v2.ncu-rep", "prof2")):
        shutil.copyfile(made_reports / "mistic" / f"{source}.ncu-rep", folder / name)
    summary = import_paths([folder], store=store)
    assert [(item.family, item.version) for item in summary.imported] == [("a", "v1"), ("deep", "v2")]
    assert (summary.refused, summary.skipped) == ((), 3)
    missing = import_paths([folder / "none", folder / "a" / "notes.txt"], store=store)
    assert ["no such file" in message or "neither" in message for _, message in missing.refused] == [
        True,
        True,
    ]


def test_labels_given_are_taken_and_silly_ones_refused(paths: list[Path], store: Store) -> None:
    import_paths(paths[:2], family="gemm", version="v1", workload="big", store=store)
    [version] = store.versions()
    assert (version.family, version.version, version.runs, version.workloads) == ("gemm", "v1", 2, ("big",))
    for labels in ({"family": "a/b"}, {"version": " "}, {"workload": "a\nb"}, {"version": "x" * 201}):
        with pytest.raises(ProfilerError):
            import_paths(paths, **labels)


def test_a_rebuilt_index_gives_the_same_answers(paths_of_either: list[Path], data: Path) -> None:
    for path in reversed(paths_of_either):
        import_paths([path], family="all", version="v" + path.stem[-1])
    ids = bundle.list_runs(location.open_root())
    relabel(ids[0], version="mended", workload="w")
    forget_run(ids[1])
    with_store = open_store()
    before = made.everything(with_store)
    with_store.close()
    rebuild_index()
    answers = [answer_of(open_store())]
    shutil.rmtree(data / "cache")
    for left in data.glob("index.db*"):
        left.unlink()
    answers.append(answer_of(open_store()))
    (data / "index.db").write_bytes(b"not a database at all, but long enough to be taken for one" * 50)
    with pytest.raises(ProfilerError, match="index --rebuild"):
        open_store()
    assert rebuild_index().refused == ()
    answers.append(answer_of(open_store()))
    assert set(answers) == {before}
    assert "mended" in before


def answer_of(store: Store) -> str:
    answer = made.everything(store)
    store.close()
    return answer


def test_relabel_and_forget_are_kept_beside_the_bundles_and_can_be_undone(
    paths: list[Path], data: Path
) -> None:
    [one, two] = import_paths(paths[:2]).imported
    before = content(data)
    relabel(one.run_id, family="other", why="wrong folder")
    forget_run(two.run_id)
    store = open_store()
    assert [(run.family, run.version) for run in store.runs()] == [("other", "prof1")]
    assert import_paths(paths[1:2], store=store).already == (
        AlreadyImported(str(paths[1]), two.run_id, hidden=True),
    )
    forget_run(two.run_id, undo=True, store=store)
    assert {run.family for run in store.runs()} == {"other", "mistic"}
    store.close()
    assert {path: digest for path, digest in content(data).items() if path.startswith("runs")} == before
    reasons = [decision.why for decision in decisions.load_decisions(location.open_root())]
    assert reasons == ["wrong folder", "", ""]
    for call in (forget_run, lambda run: relabel(run, family="x")):
        with pytest.raises(UnknownName, match=r"near: .*prof1"):
            call(one.run_id[:-1])
    with pytest.raises(ProfilerError, match="nothing to change"):
        relabel(one.run_id)


def test_a_bundle_travels_as_zip_or_folder_and_is_imported_once(
    paths: list[Path], data: Path, tmp_path: Path
) -> None:
    [one, two] = import_paths(paths[:2], workload="big").imported
    packed = export_run(one.run_id, tmp_path)
    there = str(tmp_path / "there")
    summary = import_paths([packed, data / "runs" / two.run_id], data=there)
    assert [run.run_id for run in summary.imported] == [one.run_id, two.run_id]
    again = import_paths([packed, data / "runs", paths[0]], data=there)
    assert (again.imported, again.refused, len(again.already)) == ((), (), 4)
    assert content(tmp_path / "there") == content(data)
    assert answer_of(open_store(there)) == answer_of(open_store())
    elsewhere = str(tmp_path / "elsewhere")
    [item] = import_paths([packed], family="mine", version="v9", data=elsewhere).imported
    assert (item.family, item.version) == ("mistic", "prof1")  # a bundle says its own


def test_the_report_of_a_bundle_that_is_here_under_another_name_is_here_already(
    paths: list[Path], tmp_path: Path
) -> None:
    [item] = import_paths(paths[:1], family="mine").imported
    [theirs] = import_paths(paths[:1], family="theirs", data=str(tmp_path / "theirs")).imported
    packed = export_run(theirs.run_id, tmp_path, data=str(tmp_path / "theirs"))
    summary = import_paths([packed])
    assert [one.run_id for one in summary.already] == [item.run_id]


def test_a_bundle_with_a_damaged_report_is_refused_whole(
    paths: list[Path], made_reports: Path, data: Path, tmp_path: Path
) -> None:
    [item] = import_paths(paths[:1]).imported
    folder = tmp_path / "copy"
    shutil.copytree(data / "runs" / item.run_id, folder)
    bad = made_reports / "bad" / "truncated_near_end.ncu-rep"
    shutil.copyfile(bad, folder / "reports" / "prof1.ncu-rep")
    body = json.loads((folder / "run.json").read_text())
    body["run_id"] = "another"
    (folder / "run.json").write_text(json.dumps(body))
    there = str(tmp_path / "there")
    assert len(import_paths([folder], data=there).refused) == 1
    digest, size = bundle.hash_file(bad)
    body["reports"][0] |= {"sha256": digest, "size_bytes": size}
    body["results"][0]["captures"][0]["report"] = digest
    (folder / "run.json").write_text(json.dumps(body))
    [(_, message)] = import_paths([folder], data=there).refused
    assert "damaged" in message or "declares" in message
    assert not (tmp_path / "there" / "runs").exists()


def test_bundles_that_appear_or_go_are_followed_by_the_index(
    paths: list[Path], data: Path, tmp_path: Path
) -> None:
    [one, two] = import_paths(paths[:2], data=str(tmp_path / "other")).imported
    shutil.copytree(tmp_path / "other" / "runs" / one.run_id, data / "runs" / one.run_id)
    store = open_store()
    assert [run.run_id for run in store.runs()] == [one.run_id]
    shutil.move(data / "runs" / one.run_id, tmp_path / "gone")
    shutil.copytree(tmp_path / "other" / "runs" / two.run_id, data / "runs" / two.run_id)
    summary = sync_index(store=store)
    assert (summary.added, summary.removed) == ((two.run_id,), (one.run_id,))
    assert [run.run_id for run in store.runs()] == [two.run_id]
    before = store.data_version()
    assert sync_index(store=store) == sync.SyncSummary()
    assert store.data_version() == before
    store.close()


def test_a_run_that_cannot_be_read_is_left_out_and_told(paths: list[Path], data: Path) -> None:
    [one, two] = import_paths(paths[:2]).imported
    kept = data / "runs" / one.run_id / "reports" / "prof1.ncu-rep"
    kept.write_bytes(kept.read_bytes()[:1000])
    (data / "runs" / "broken").mkdir()
    (data / "runs" / "broken" / "run.json").write_text("{")
    shutil.rmtree(data / "cache")
    summary = rebuild_index()
    assert [run for run, _ in summary.refused] == [one.run_id, "broken"]
    store = open_store()
    assert [run.run_id for run in store.runs()] == [two.run_id]
    shutil.copyfile(paths[0], kept)
    assert [run.run_id for run in open_store().runs()] == [two.run_id]
    assert sync_index(store=store).added == (one.run_id,)
    assert len(store.runs()) == 2
    store.close()


def test_a_remote_root_takes_reports_and_gives_them_back(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    url = f"memory://{tmp_path.name}/team"
    summary = import_paths(paths, data=url)
    assert len(summary.imported) == len(paths)
    forget_run(summary.imported[1].run_id, data=url)
    assert len(import_paths(paths, data=url).already) == len(paths)
    import_paths(paths)
    forget_run(summary.imported[1].run_id)
    here = answer_of(open_store())
    assert answer_of(open_store(url)) == here
    shutil.rmtree(tmp_path / "cache")
    assert answer_of(open_store(url)) == here
    packed = export_run(summary.imported[0].run_id, tmp_path, data=url)
    assert packed.read_bytes() == export_run(summary.imported[0].run_id, tmp_path / "x.zip").read_bytes()


def test_an_import_killed_at_any_moment_leaves_whole_runs_only(
    paths: list[Path], data: Path, tmp_path: Path
) -> None:
    def importing(data: Path) -> subprocess.Popen[bytes]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "PROFILER_DATA": str(data)}
        command = [sys.executable, "-m", "profiler", "import", *map(str, paths)]
        return subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)

    begun = time.perf_counter()
    assert importing(tmp_path / "whole").wait() == 0
    whole_s = time.perf_counter() - begun
    whole, kills = content(tmp_path / "whole"), 0
    for share in (0.3, 0.5, 0.7, 0.8, 0.9):  # of the time a whole import takes; its end is writing
        process = importing(data)
        time.sleep(share * whole_s)
        process.send_signal(signal.SIGKILL)
        kills += process.wait() == -signal.SIGKILL
        assert content(data).items() <= whole.items()
        for run in bundle.list_runs(location.open_root()):
            bundle.load_run(location.open_root(), run)
    assert kills
    summary = import_paths(paths)
    assert summary.refused == ()
    assert content(data) == whole
    assert [path for path in (data / "staging").iterdir() if path.is_dir()] == []
    assert answer_of(open_store()) == answer_of(open_store(str(tmp_path / "whole")))


@pytest.mark.parametrize("labels", ["different", pytest.param("same", marks=pytest.mark.long)])
def test_two_imports_at_once_lose_and_double_nothing(paths: list[Path], tmp_path: Path, labels: str) -> None:
    families = ("f", "f" if labels == "same" else "g")
    commands = [
        [sys.executable, "-m", "profiler", "import", *map(str, order), "--family", family]
        for order, family in zip((paths, paths[::-1]), families, strict=True)
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    said = [process.communicate() for process in processes]
    assert [process.returncode for process in processes] == [0, 0], said
    store = open_store()
    assert len(store.runs()) == len(bundle.list_runs(location.open_root())) == len(paths)
    assert len({report.sha256 for run in store.runs() for report in run.reports}) == len(paths)
    incremental = answer_of(store)
    rebuild_index()
    assert answer_of(open_store()) == incremental


@pytest.mark.server
def test_the_index_can_be_postgresql(
    paths: list[Path], postgres: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_paths(paths)
    here = answer_of(open_store())
    with made.fresh_database(postgres) as url:
        monkeypatch.setenv("PROFILER_DB", url)
        assert answer_of(open_store()) == here
        assert rebuild_index().refused == ()
        assert answer_of(open_store()) == here


def test_the_commands_say_what_they_did(paths: list[Path], tmp_path: Path, made_reports: Path) -> None:
    bad = made_reports / "bad" / "empty.ncu-rep"
    done = profiler("import", *paths[:2], bad, "--workload", "w")
    assert done.returncode == 2
    assert "2 imported, 1 refused" in done.stdout
    assert "mistic/prof1  4 launches" in done.stdout
    assert done.stderr.count("\n") == 1
    assert str(bad) in done.stderr
    run = bundle.list_runs(location.open_root())[0]
    assert profiler("data", "relabel", run, "--version", "v1", "--why", "typo").returncode == 0
    assert profiler("data", "forget", run).returncode == 0
    again = profiler("import", paths[0])
    assert again.returncode == 0
    assert f"profiler data forget --undo {run}" in again.stdout
    assert profiler("data", "forget", run, "--undo").returncode == 0
    exported = profiler("data", "export", run, "--out", tmp_path)
    assert Path(exported.stdout.strip()).is_file()
    assert profiler("data", "index").stdout == "index: nothing to do\n"
    assert profiler("data", "index", "--rebuild").stdout == "index: 2 runs added\n"
    unknown = profiler("data", "forget", "nothing")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert "no run nothing" in unknown.stderr
    nothing = profiler("import", tmp_path / "data" / "decisions")
    assert (nothing.returncode, nothing.stdout) == (2, "")
    assert "nothing to import" in nothing.stderr


def test_a_version_has_none_of_the_suffixes_that_writers_add(tmp_path: Path) -> None:
    names = (
        "prof.out.ncu-rep",
        "a.ncu-rep.ncu-rep",
        "b.metrics.csv",
        "v1.2.ncu-rep",
        "x.OUT.exe.ncu-rep",
        ".out.csv",
    )
    versions = [import_files.version_of(tmp_path / name) for name in names]
    assert versions == ["prof", "a", "b.metrics", "v1.2", "x", ".out"]
    (tmp_path / "prof.ncu-rep").touch()
    assert import_files.version_of(tmp_path / "prof.out.ncu-rep") == "prof.out", (
        "prof.ncu-rep is another report"
    )


def copies(made_reports: Path, folder: Path, *names: str) -> list[Path]:
    """A report under each name below a folder, no two the same."""
    sources = [f"mistic/prof{n}" for n in (1, 2)] + [f"ncar/MW_{n}" for n in ("Baseline", "DivToMult")]
    for name, source in zip(names, sources, strict=False):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(made_reports / f"{source}.ncu-rep", folder / name)
    return [folder / name for name in names]


def test_folders_of_one_name_are_families_of_their_own(
    made_reports: Path, tmp_path: Path, store: Store
) -> None:
    repository = tmp_path / "lab"
    _, _, more, other = copies(
        made_reports,
        repository,
        "silu/ncu-reports/v1.ncu-rep",
        "rms_norm/ncu-reports/v1.ncu-rep",
        "silu/ncu-reports/v2.ncu-rep",
        "../elsewhere/silu/ncu-reports/v1.ncu-rep",
    )
    more.rename(tmp_path / "later")
    summary = import_paths([repository], store=store)
    assert [(item.family, item.version) for item in summary.imported] == [("rms_norm", "v1"), ("silu", "v1")]
    (tmp_path / "later").rename(more)
    assert [item.family for item in import_paths([repository], store=store).imported] == ["silu"]
    # The same names in another place are not the same kernels.
    assert [item.family for item in import_paths([other.parent], store=store).imported] == ["elsewhere-silu"]
    assert sorted((info.version, info.runs) for info in store.versions("silu")) == [("v1", 1), ("v2", 1)]


def test_labels_by_pattern_are_each_reports_own(made_reports: Path, tmp_path: Path, store: Store) -> None:
    folder = tmp_path / "lab"
    copies(made_reports, folder, "a/silu_n64.ncu-rep", "b/rms_n128.ncu-rep", "c/other.ncu-rep")
    options = {
        "family": ["silu*=act", "rms*={folder}-{stem}"],
        "workload": r"/_n(\d+)/=n {1}",
        "version": "v",
    }
    import_paths([folder], **options, store=store)
    labels = [(run.family, run.version, run.workload) for run in store.runs()]
    assert sorted(labels, key=str) == [("act", "v", "n 64"), ("b-rms_n128", "v", "n 128"), ("c", "v", None)]
    # Given again, they say nothing new; given otherwise, the import says how to change what is there.
    assert not any(item.other_labels for item in import_paths([folder], **options, store=store).already)
    again = import_paths([folder], family="silu*=swish", store=store).already
    assert [item.other_labels for item in again] == [(("family", "swish"),), (), ()]


def mixed(folder: Path, store: Store, monkeypatch: pytest.MonkeyPatch, *paths: Path) -> None:
    """Import each report as its own family would be named on a machine that knows of no other."""
    for path in paths:
        with monkeypatch.context() as patch:
            patch.setattr(Store, "import_folders", lambda _store: [])
            import_paths([path], store=store)


def test_a_family_of_several_folders_is_parted_by_one_decision(
    made_reports: Path, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lab"
    names = ("silu/mm/v1.ncu-rep", "rms/mm/v1.ncu-rep", "rms/mm/v2.ncu-rep")
    mixed(folder, store, monkeypatch, *copies(made_reports, folder, *names))
    assert sorted((info.version, info.runs) for info in store.versions("mm")) == [("v1", 2), ("v2", 1)]
    [mix] = family_mixes(store.runs(), store.import_folders())
    assert [(place.split("/")[-2:], *rest) for place, *rest in mix.folders] == [
        (["rms", "mm"], "rms-mm", 2),
        (["silu", "mm"], "silu-mm", 1),
    ]
    assert mix.way_out in profiler("list", "runs").stdout
    done = profiler(*mix.way_out.split()[1:], "--why", "two kernels")
    assert (done.returncode, done.stdout.count(" is rms-mm/"), done.stdout.count(" is silu-mm/")) == (0, 2, 1)
    [decision] = decisions.load_decisions(location.open_root())
    assert (decision.kind, decision.subject, decision.why) == ("relabel-runs", "mm", "two kernels")
    sync_index(store=store)
    answers = [sorted((run.family, run.version) for run in store.runs())]
    rebuild_index()
    with contextlib.closing(open_store()) as rebuilt:
        answers.append(sorted((run.family, run.version) for run in rebuilt.runs()))
        assert family_mixes(rebuilt.runs(), rebuilt.import_folders()) == []
    assert answers == [[("rms-mm", "v1"), ("rms-mm", "v2"), ("silu-mm", "v1")]] * 2
    # What comes later from a folder follows the decision; what somebody joined is not to be mended.
    shutil.copyfile(made_reports / "ncar" / "MW_DivToMult.ncu-rep", folder / "silu" / "mm" / "v3.ncu-rep")
    assert [item.family for item in import_paths([folder]).imported] == ["silu-mm"]
    relabel("rms-mm", family="silu-mm")
    with contextlib.closing(open_store()) as joined:
        assert family_mixes(joined.runs(), joined.import_folders()) == []


def test_runs_that_do_not_say_their_folder_are_labelled_anew_by_an_import(
    made_reports: Path, tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "lab"
    paths = copies(
        made_reports,
        folder,
        "silu/ncu-reports/v1.out.ncu-rep",
        "rms/ncu-reports/v1.ncu-rep",
        "rms/own.ncu-rep",
    )
    # As they came in before runs kept the folder: the folder's name was the family.
    with monkeypatch.context() as patch:
        patch.setattr(import_files, "family_labels", lambda _folders, _known: {"": "ncu-reports"})
        for path, version in zip(paths, ("v1.out", "v1", "own"), strict=True):
            [item] = import_paths([path], version=version, keep_folder=False, store=store).imported
    relabel(item.run_id, family="mine", store=store)
    [mix] = family_mixes(store.runs(), store.import_folders())
    assert (mix.folders, mix.unknown, mix.way_out) == ((), 2, "profiler import FOLDER… --relabel")
    with pytest.raises(ProfilerError, match="do not record the folder"):
        relabel("ncu-reports", by_folder=True, store=store)
    summary = import_paths([folder], relabel=True, store=store)
    assert sorted(labels for _, *labels in summary.relabelled) == [["rms-ncu-reports", "v1"], ["silu", "v1"]]
    assert sorted((run.family, run.version) for run in store.runs()) == [
        ("mine", "own"),
        ("rms-ncu-reports", "v1"),
        ("silu", "v1"),
    ]
    assert import_paths([folder], relabel=True, store=store).relabelled == ()
    assert len(decisions.load_decisions(location.open_root())) == 2


def test_a_familys_runs_are_relabelled_by_rules_and_nonsense_is_refused(
    made_reports: Path, tmp_path: Path, store: Store
) -> None:
    folder = tmp_path / "lab"
    import_paths(copies(made_reports, folder, "silu_n64.ncu-rep", "rms_n8.ncu-rep", "x.ncu-rep"), store=store)
    changed = relabel("lab", family=["silu*=silu", "rms*=rms"], workload=r"/_n(\d+)/=n {1}", store=store)
    assert sorted((labels.family, labels.workload) for labels in changed.values()) == [
        ("rms", "n 8"),
        ("silu", "n 64"),
    ]
    assert store.families() == ["lab", "rms", "silu"]
    assert relabel("lab", family="silu*=silu", store=store) == {}
    for name, options in (
        ("nothing", {"family": "x"}),
        ("lab", {}),
        ("lab", {"family": "{no}"}),
        (store.runs()[0].run_id, {"by_folder": True}),
    ):
        with pytest.raises(ProfilerError):
            relabel(name, **options, store=store)


def test_a_label_that_a_path_cannot_give_refuses_this_report_alone(
    made_reports: Path, tmp_path: Path, store: Store
) -> None:
    folder = tmp_path / "lab"
    copies(made_reports, folder, "a/v1.ncu-rep", "b/v2.ncu-rep")
    summary = import_paths([folder], family="v1={folder}", version=["v1*={folder[-99]}"], store=store)
    assert [item.version for item in summary.imported] == ["v2"]
    [(_, message)] = summary.refused
    assert "folder[-99]" in message
    assert "v1.ncu-rep" in message


def seal_badly(data: Path, run_id: str, **captured: object) -> str:
    """A copy of a sealed run that reads well and of which no rows can be made."""
    copy = data / "runs" / "bad"
    shutil.copytree(data / "runs" / run_id, copy)
    body = json.loads((copy / "run.json").read_text()) | {"run_id": "bad", "kind": "collect"}
    body["results"][0]["captures"][0] |= captured
    (copy / "run.json").write_text(json.dumps(body))
    return "bad"


@pytest.mark.parametrize("captured", [{"parts": ["x"]}, {"ordinals": [99]}, {"ordinals": ["a"]}])
def test_a_run_that_fits_into_no_index_stops_no_other_and_is_refused_on_its_way_in(
    paths: list[Path], data: Path, tmp_path: Path, captured: dict[str, object]
) -> None:
    [item] = import_paths(paths[:1]).imported
    bad = seal_badly(data, item.run_id, **captured)
    store = open_store()
    assert [run.run_id for run in store.runs()] == [item.run_id]
    [(refused, message)] = store.refused()
    assert refused == bad
    assert "\n" not in message
    assert [run for run, _ in rebuild_index().refused] == [bad]
    there = tmp_path / "there"
    summary = import_paths([data / "runs" / bad, paths[1]], data=str(there))
    assert [Path(path).name for path, _ in summary.refused] == [bad]
    assert str(data / "runs" / bad) in summary.refused[0][1]
    assert [path.name for path in (there / "runs").iterdir()] == [summary.imported[0].run_id]
    shutil.rmtree(data / "runs" / bad)
    open_store()
    assert store.refused() == []
    store.close()


def test_a_run_that_cannot_be_read_is_told_to_whoever_asks(paths: list[Path], data: Path) -> None:
    [item] = import_paths(paths[:1]).imported
    (data / "runs" / item.run_id / "reports" / "prof1.ncu-rep").write_bytes(b"")
    for left in (*data.glob("index.db*"), *(data / "cache").rglob("*.bin")):
        left.unlink()
    for _ in range(2):
        store = open_store()
        assert [run for run, _ in store.refused()] == [item.run_id]
        store.close()


def test_whatever_is_wrong_with_one_file_the_others_come_in(
    paths: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    new_run = import_files.Importer._new_run

    def fails(importer: import_files.Importer, path: Path, report: Report) -> Run:
        if path == paths[0]:
            raise RuntimeError("nobody thought of this")
        if path == paths[1]:
            raise OSError(errno.ENOSPC, "No space left on device")
        return new_run(importer, path, report)

    monkeypatch.setattr(import_files.Importer, "_new_run", fails)
    summary = import_paths(paths[:3])
    assert [item.version for item in summary.imported] == ["profile@5c6231e5"]
    assert [path for path, _ in summary.refused] == [str(paths[0]), str(paths[1])]
    assert "nobody thought of this" in summary.refused[0][1]
    assert all(path in message for path, message in summary.refused)


def test_a_run_that_cannot_be_sealed_is_refused_alone_with_its_copies(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.ncu-rep"
    shutil.copyfile(paths[0], copy)
    seal_import = bundle.seal_import

    def fails(root: location.Root, run: Run, sources: Mapping[str, Path]) -> str | None:
        if paths[0] in sources.values():
            raise OSError(errno.ENOSPC, "No space left on device")
        return seal_import(root, run, sources)

    monkeypatch.setattr(bundle, "seal_import", fails)
    summary = import_paths([*paths[:3], copy])
    assert [item.version for item in summary.imported] == ["prof2", "profile@5c6231e5"]
    assert [path for path, _ in summary.refused] == [str(paths[0]), str(copy)]
    with open_store() as store:
        assert sorted(run.version for run in store.runs()) == ["prof2", "profile@5c6231e5"]


def test_a_bundle_is_on_the_disk_before_it_is_seen_and_its_place_before_it_is_indexed(
    paths: list[Path], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_disk: set[str] = set()
    events: list[tuple[str, str]] = []
    fsync, rename, add_many = os.fsync, Path.rename, Store.add_many

    def noted_fsync(descriptor: int) -> None:
        fsync(descriptor)
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        on_disk.add(path)
        if path == str(data / "runs"):
            events.append(("flushed", ""))

    def noted_rename(folder: Path, target: Path) -> Path:
        assert {str(path) for path in folder.rglob("*") if path.is_file()} <= on_disk
        renamed = rename(folder, target)
        events.append(("seen", target.name))
        return renamed

    def noted_add(store: Store, items: list[RunRows], *, decided: decisions.DecidedLabels) -> list[bool]:
        events.extend(("indexed", rows.run["run_id"]) for rows in items)
        return add_many(store, items, decided=decided)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "rename", noted_rename)
    monkeypatch.setattr(Store, "add_many", noted_add)
    runs = [item.run_id for item in import_paths(paths).imported]
    assert len(runs) == len(paths)
    for run_id in runs:
        seen, indexed = events.index(("seen", run_id)), events.index(("indexed", run_id))
        assert ("flushed", "") in events[seen:indexed]


def test_a_file_from_no_time_at_all_is_refused_alone(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "far.csv"
    shutil.copyfile(paths[3], path)
    stat = Path.stat

    def far(of: Path, **options: bool) -> os.stat_result:
        found = stat(of, **options)
        return os.stat_result((*found[:8], 10**12, found[9])) if of == path else found

    monkeypatch.setattr(Path, "stat", far)
    summary = import_paths([path, paths[0]])
    assert len(summary.imported) == 1
    [(refused, message)] = summary.refused
    assert refused == str(path)
    assert "touch it" in message


def test_names_that_are_no_text_come_in_under_some_that_are(paths: list[Path], tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/f\xff"))
    folder.mkdir()
    shutil.copyfile(paths[0], folder / os.fsdecode(b"k\xe9.ncu-rep"))
    done = profiler_process("import", folder)
    assert done.returncode == 0, done.stderr
    assert "f\ufffd/k\ufffd  4 launches" in done.stdout
    assert "1 already there" in profiler("import", folder).stdout
    assert rebuild_index().refused == ()


def test_labels_given_to_what_is_there_already_are_not_dropped_without_a_word(paths: list[Path]) -> None:
    [item] = import_paths(paths[:1]).imported
    again = import_paths(paths[:1], family="fam 2", version="prof1").already
    assert again == (AlreadyImported(str(paths[0]), item.run_id, other_labels=(("family", "fam 2"),)),)
    said = profiler("import", paths[0], "--family", "fam 2", "--version", "prof1").stdout
    assert str(paths[0]) in said
    assert f"profiler data relabel {item.run_id} --family 'fam 2'`" in said
    relabel(item.run_id, family="fam 2")
    assert import_paths(paths[:1], family="fam 2").already[0].other_labels == ()


def test_what_is_so_already_is_not_decided_again(paths: list[Path]) -> None:
    [item] = import_paths(paths[:1]).imported
    assert forget_run(item.run_id, undo=True) is False
    assert [forget_run(item.run_id), forget_run(item.run_id)] == [True, False]
    for _ in range(2):
        labels = relabel(item.run_id, version="v2", workload="w")[item.run_id]
        assert (labels.family, labels.version, labels.workload) == ("mistic", "v2", "w")
    assert [decision.kind for decision in decisions.load_decisions(location.open_root())] == [
        "forget",
        "relabel",
    ]
    assert f"{item.run_id} was hidden before" in profiler("data", "forget", item.run_id).stdout
    assert (
        f"{item.run_id} is mistic/v3, workload w"
        in profiler("data", "relabel", item.run_id, "--version", "v3").stdout
    )


@pytest.mark.parametrize(
    "command",
    [("list", "runs"), ("import", "."), ("data", "index", "--rebuild"), ("data", "forget", "x")],
    ids=" ".join,
)
def test_a_data_folder_that_cannot_be_is_one_line(command: tuple[str, ...]) -> None:
    done = profiler(*command, PROFILER_DATA="/dev/null/x")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "/dev/null/x" in done.stderr


def test_an_export_to_nowhere_is_one_line_and_leaves_nothing(paths: list[Path], tmp_path: Path) -> None:
    [item] = import_paths(paths[:1]).imported
    for target in (tmp_path / "none" / "z.zip", Path("/dev/null/z.zip")):
        with pytest.raises(ProfilerError, match=str(target)):
            export_run(item.run_id, target)
    (tmp_path / "data" / "runs" / item.run_id / "reports" / "prof1.ncu-rep").unlink()
    with pytest.raises(ProfilerError, match=r"prof1\.ncu-rep"):
        export_run(item.run_id, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_zip_of_reports_says_what_to_do_with_it(paths: list[Path], tmp_path: Path) -> None:
    path = tmp_path / "reports.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.write(paths[0], "a.ncu-rep")
    [(_, message)] = import_paths([path]).refused
    assert "unpack it" in message
    path.write_bytes(path.read_bytes()[:-30])
    [(_, message)] = import_paths([path]).refused
    assert "cut short: copy it again" in message


def test_an_index_of_other_data_is_left_alone(
    paths: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DB", f"sqlite:///{tmp_path / 'shared.db'}")
    mine, theirs = str(tmp_path / "mine"), str(tmp_path / "theirs")
    [item] = import_paths(paths[:1], data=mine).imported
    for call in (open_store, lambda data: import_paths(paths[1:2], data=data)):
        with pytest.raises(ProfilerError, match=r"mine.*index --rebuild"):
            call(theirs)
    assert bundle.list_runs(location.open_root(theirs)) == []
    shutil.copytree(mine, tmp_path / "moved")
    for data in (mine, str(tmp_path / "moved")):
        store = open_store(data)
        assert [run.run_id for run in store.runs()] == [item.run_id]
        store.close()
    rebuild_index(theirs)
    import_paths(paths[1:2], data=theirs)
    with pytest.raises(ProfilerError, match="theirs"):
        open_store(mine)


def test_an_index_whose_damage_shows_late_and_one_without_a_table_are_made_again(
    paths: list[Path], data: Path
) -> None:
    import_paths(paths)
    before = answer_of(open_store())
    index = data / "index.db"
    with contextlib.closing(sqlite3.connect(index)) as opened:
        opened.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = index.read_bytes()
    first = 3 * 8192  # read as soon as it is opened
    index.write_bytes(whole[:first] + b"\xff" * (len(whole) - first))
    assert rebuild_index().refused == ()
    assert answer_of(open_store()) == before
    with contextlib.closing(sqlite3.connect(index)) as opened:
        opened.execute("DROP TABLE result")
    with (
        contextlib.closing(open_store()) as store,
        pytest.raises(ProfilerError, match=r"no such table.*index --rebuild"),
    ):
        store.results()
    assert rebuild_index().refused == ()
    assert answer_of(open_store()) == before


@pytest.mark.parametrize("columns", ["(key TEXT, value TEXT)", "(a, b)"])
def test_a_database_of_something_else_loses_nothing_and_gets_no_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columns: str
) -> None:
    """Names such as meta, run and version are everybody's."""
    path = tmp_path / "theirs.db"
    with contextlib.closing(sqlite3.connect(path)) as theirs:
        for statement in (
            f"CREATE TABLE meta {columns}",
            "CREATE TABLE run (x)",
            "INSERT INTO run VALUES (7)",
            "INSERT INTO meta VALUES ('schema', '1')",
        ):
            theirs.execute(statement)
        theirs.commit()
    monkeypatch.setenv("PROFILER_DB", f"sqlite:///{path}")
    for call in (open_store, rebuild_index):
        with pytest.raises(ProfilerError, match=r"of something else, whose tables \(meta, run\)"):
            call()
    with contextlib.closing(sqlite3.connect(path)) as theirs:
        assert theirs.execute("SELECT x FROM run").fetchall() == [(7,)]
        assert len(theirs.execute("SELECT name FROM sqlite_master").fetchall()) == 2


def test_a_file_somebody_named_as_the_index_is_never_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database at all, but long enough to be taken for one" * 50)
    before = notes.read_bytes()
    monkeypatch.setenv("PROFILER_DB", f"sqlite:///{notes}")
    with pytest.raises(ProfilerError, match="remove that file"):
        rebuild_index()
    assert notes.read_bytes() == before


def test_a_folder_that_may_only_be_read_is_read_and_nothing_in_it_is_touched(
    paths: list[Path], data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [item] = import_paths(paths[:1]).imported
    access = os.access  # and not chmod: root may write everywhere
    monkeypatch.setattr(
        os, "access", lambda path, mode: data not in (Path(path), Path(path).parent) and access(path, mode)
    )

    def asked() -> list[str]:
        store = open_store()
        found = [run.run_id for run in store.runs()]
        store.close()
        return found

    def there() -> dict[str, tuple[int, int]]:
        return {path.name: (path.stat().st_mtime_ns, path.stat().st_size) for path in data.iterdir()}

    before = there()
    assert asked() == [item.run_id]
    assert there() == before
    for change in (rebuild_index, lambda: forget_run(item.run_id)):
        with pytest.raises(ProfilerError, match=r"PROFILER_DB=sqlite:////"):
            change()
    shutil.rmtree(data / "runs" / item.run_id)
    with open_store() as store:  # no longer in step
        assert "without the newest decisions and with 1 run that is gone: " in store.behind
    monkeypatch.setenv("PROFILER_DB", f"sqlite:///{tmp_path / 'elsewhere.db'}")
    assert asked() == []
    monkeypatch.delenv("PROFILER_DB")
    (data / "index.db").unlink()
    with open_store() as store:
        assert "a temporary index made for this command: " in store.behind
    assert not (data / "index.db").exists()


def test_a_reader_who_may_not_write_sees_what_a_writer_has_in_its_log(
    paths: list[Path], data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (data / "runs").mkdir(parents=True)
    writer = open_store()
    import_paths(paths[:1], store=writer)
    assert (data / "index.db-wal").stat().st_size
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    reader = open_store()
    assert len(reader.runs()) == 1
    assert import_paths(paths[1:2], store=writer).refused == ()
    assert len(reader.runs()) == 2
    writer.close()
    assert len(reader.runs()) == 2
    reader.close()


def test_what_an_import_caches_is_what_reading_the_report_gives(
    paths_of_either: list[Path], data: Path
) -> None:
    """It packs the launches once, for the index and for the cache."""
    import_paths(paths_of_either)
    cached = {file.stem.split("-")[0]: file.read_bytes() for file in (data / "cache" / "values").iterdir()}
    read = {report.sha256: report for report in map(read_report, paths_of_either)}
    assert cached == {sha256: report_cache.pack_report(report) for sha256, report in read.items()}
