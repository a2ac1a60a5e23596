"""Bundles: the folder is whole or not there, and a zip is not trusted."""

from __future__ import annotations

import errno
import io
import json
import os
import stat
import zipfile
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from time import process_time

import pytest

from profiler.bundles import bundle, location, run_json, zip_file
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import COLLECT, IMPORT, Attachment, Capture, Facts, ReportFile, Result, Run, Samples
from profiler.errors import BadBundle, ProfilerError
from profiler.evidence.values import Evidence, State, Value
from tests.made import START

CONTENT = b"NVR\0 not really a report, but bytes are bytes here " * 40


def made(content: bytes = CONTENT, **changed: object) -> Run:
    digest = sha256(content).hexdigest()
    run = Run(
        run_id=f"20250301T120000-f-v-{digest[:8]}",
        kind=IMPORT,
        created=START,
        provenance={"host": "ü", "clocks": [1, 2.5, None]},
        results=(Result("f", "v", captures=(Capture(digest),)),),
        reports=(ReportFile("v.ncu-rep", digest, len(content), "reports/v.ncu-rep"),),
    )
    run = replace(run, **changed)
    captures = tuple(Capture(report.sha256) for report in run.reports)
    return replace(run, results=(Result("f", "v", captures=captures),))


def rich() -> Run:
    values = {
        "registers": Value(40, "register/thread"),
        "share": Value(0.1, "%"),
        "name": Value(None, "", "x"),
    }
    values["absent"] = Value(None, "byte", state=State.NOT_AVAILABLE)
    result = Result(
        "attention",
        "v2",
        "b1",
        {"dtype": "fp16", "len_q": 128},
        "wrong",
        "error 0.5",
        "ab" * 32,
        ("-O3",),
        {"max_abs_error": 0.5},
        (Samples("events; warm", (10.5, 11.25), (0, 1), (1410.0, 1410.0), (1,)),),
        (Facts(Evidence.STATIC, "main", values, "sm_90", "", {"HMMA": 64}),),
        (Capture("cd" * 32, (0, 2), ("main", "combine"), "ncu; x"),),
    )
    table = Attachment("source", "v2.cu", sha256(b"").hexdigest(), 0, "files/v2.cu")
    report = ReportFile("r.ncu-rep", "cd" * 32, 5, "reports/r.ncu-rep")
    return Run("collected-1", COLLECT, START, {}, (result,), (report,), (table,), continues="collected-0")


@pytest.fixture
def source(tmp_path: Path) -> dict[str, Path]:
    path = tmp_path / "somewhere" / "v.ncu-rep"
    path.parent.mkdir()
    path.write_bytes(CONTENT)
    return {"reports/v.ncu-rep": path}


@pytest.fixture
def root(tmp_path: Path) -> LocalRoot:
    return LocalRoot(tmp_path / "data")


def everything_in(folder: Path) -> dict[str, bytes]:
    files = (path for path in folder.rglob("*") if path.is_file() and not path.name.startswith("."))
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.mark.parametrize("run", [made(), rich()])
def test_a_run_is_written_and_read_without_loss(run: Run) -> None:
    content = run_json.dump_run(run)
    assert run_json.parse_run(content, "x") == run
    assert run_json.dump_run(run_json.parse_run(content, "x")) == content
    plain = json.dumps(json.loads(content), ensure_ascii=False, indent=1, sort_keys=True)
    assert content == plain.encode()  # as the runs in use are written


@pytest.mark.parametrize("run", [made(), rich()], ids=["imported", "collected"])
def test_an_outline_says_the_same_as_the_run_and_leaves_out_the_rest(run: Run) -> None:
    names = {name for result in run.results for facts in result.facts for name in facts.values}
    chosen = sorted(names)[:1]
    outline = run_json.parse_outline(run_json.dump_run(run), "here", chosen)
    for result, of_outline in zip(run.results, outline.results, strict=True):
        facts = tuple(
            replace(block, values={name: block.values[name] for name in chosen}, opcodes={})
            for block in result.facts
            if set(chosen) <= set(block.values)
        )
        code = replace(result, problem={}, check=None, samples=(), captures=())
        assert of_outline == replace(code, facts=facts)
    assert replace(outline, results=run.results) == run


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"run_id": 1}'])
def test_an_outline_of_no_run_json_is_refused(content: bytes) -> None:
    with pytest.raises(BadBundle, match=r"no run\.json"):
        run_json.parse_outline(content, "here")


def test_a_sealed_run_is_there_whole_and_nothing_is_left_in_staging(
    root: LocalRoot, source: dict[str, Path]
) -> None:
    run = made()
    assert bundle.seal(root, run, source) is True
    assert bundle.list_runs(root) == [run.run_id]
    assert bundle.load_run(root, run.run_id) == run
    assert set(everything_in(root.folder)) == {
        f"runs/{run.run_id}/run.json",
        f"runs/{run.run_id}/reports/v.ncu-rep",
    }


def test_the_same_run_again_changes_nothing_and_another_content_is_refused(
    root: LocalRoot, source: dict[str, Path]
) -> None:
    bundle.seal(root, made(), source)
    before = everything_in(root.folder)
    assert bundle.seal(root, made(), source) is False
    with pytest.raises(BadBundle, match="other content"):
        bundle.seal(root, made(provenance={"host": "another"}), source)
    assert everything_in(root.folder) == before


def test_a_file_that_changed_meanwhile_is_refused_and_nothing_is_kept(
    root: LocalRoot, source: dict[str, Path]
) -> None:
    for content in (CONTENT[:-1], CONTENT + b"!", b"?" + CONTENT[1:]):
        source["reports/v.ncu-rep"].write_bytes(content)
        with pytest.raises(BadBundle, match=r"reports/v\.ncu-rep"):
            bundle.seal(root, made(), source)
        assert everything_in(root.folder) == {}


def test_a_folder_without_run_json_is_no_run(root: LocalRoot) -> None:
    (root.folder / "runs" / "half" / "reports").mkdir(parents=True)
    assert bundle.list_runs(root) == []
    with pytest.raises(BadBundle, match="no run half"):
        bundle.load_run(root, "half")


def test_a_folder_with_another_runs_name_is_refused(root: LocalRoot, source: dict[str, Path]) -> None:
    bundle.seal(root, made(), source)
    (root.folder / "runs" / made().run_id).rename(root.folder / "runs" / "renamed")
    with pytest.raises(BadBundle, match=made().run_id):
        bundle.load_run(root, "renamed")


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'{"schema": 1}', b"\xff\xfe", b"[" * 100_000, b'{"schema": "x"}', b"null"],
)
def test_what_is_no_run_json_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(BadBundle, match=r"somewhere/run\.json") as caught:
        run_json.parse_run(content, "somewhere/run.json")
    assert "\n" not in str(caught.value)


def test_a_run_json_of_a_later_version_says_so() -> None:
    body = json.loads(run_json.dump_run(made())) | {"schema": 99}
    with pytest.raises(BadBundle, match="schema 99"):
        run_json.parse_run(json.dumps(body).encode(), "x")


@pytest.mark.parametrize(
    "path",
    ["../out", "/etc/passwd", "a/../../out", "C:\\x", "a\\..\\b", "", ".", "a//b", "./a", "run.json", "a\0b"],
)
def test_a_run_json_that_names_a_file_outside_is_refused(path: str) -> None:
    run = made(reports=(ReportFile("v", "0" * 64, 1, path),))
    with pytest.raises(BadBundle):
        run_json.parse_run(run_json.dump_run(run), "x")


@pytest.mark.parametrize("run_id", ["../x", ".hidden", "a/b", "", "a" * 300, "a b", "ü"])
def test_a_run_id_that_is_no_folder_name_is_refused(run_id: str) -> None:
    with pytest.raises(BadBundle):
        run_json.parse_run(run_json.dump_run(made(run_id=run_id)), "x")


@pytest.mark.parametrize("family", ["a/b", "..", "ü ö", "-", "x" * 500, "a\nb"])
def test_every_label_makes_a_run_id_that_is_a_folder_name(family: str) -> None:
    run = made(run_id=bundle.imported_run_id(START, family, family, "a" * 64))
    assert run_json.parse_run(run_json.dump_run(run), "x").run_id.endswith("-aaaaaaaa")


@pytest.mark.parametrize(
    "name", ["a b.ncu-rep", "..ncu-rep", "ü.csv", "x" * 300 + ".ncu-rep", "noSuffix", "a:b.ncu-rep"]
)
def test_every_report_name_is_kept_and_makes_a_safe_path(name: str) -> None:
    entry = bundle.imported_report_file(name, "0" * 64, 1)
    run = run_json.parse_run(run_json.dump_run(made(reports=(entry,))), "x")
    assert run.reports[0].name == name
    assert Path(entry.path).suffix in (Path(name).suffix, ".ncu-rep")


def changed(run: Run, path: str, content: object) -> bytes:
    """The run's run.json with another content at `results.0.family`."""
    body = json.loads(run_json.dump_run(run))
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    place = body
    for step in way:
        place = place[step]
    place[last] = content
    return json.dumps(body).encode()


@pytest.mark.parametrize(
    ("path", "content"),
    [
        ("schema", -5),
        ("kind", "zzz"),
        ("created", "2026-01-01T00:00:00"),
        ("created", "0001-01-01T00:00:00+14:00"),
        ("created", 5),
        ("provenance", [1]),
        ("provenance.x", float("nan")),
        ("provenance.x", "\ud800"),
        ("provenance.gpu", {"a": 1}),
        ("provenance.compute_capability", "x.y"),
        ("provenance.compute_capability", "9"),
        ("results", []),
        ("results.0.family", ""),
        ("results.0.family", "a/b"),
        ("results.0.family", "x\ny"),
        ("results.0.version", " v"),
        ("results.0.workload", 5),
        ("results.0.status", "weird"),
        ("results.0.problem.dtype", 5),
        ("results.0.flags", "-O3"),
        ("results.0.samples.0.ns", [1, float("nan")]),
        ("results.0.samples.0.ns", [1, -1]),
        ("results.0.samples.0.ns", [1, 2, 3]),
        ("results.0.samples.0.ns", [1, 0]),
        ("results.0.samples.0.ns", [1, 1e-46]),  # 0 as float32
        ("results.0.samples.0.rounds", [70000, -1]),
        ("results.0.samples.0.rounds", ["x", "y"]),
        ("results.0.samples.0.rounds", [True, 1]),
        ("results.0.samples.0.clocks_mhz", [1]),
        ("results.0.samples.0.throttled", [2]),
        ("results.0.samples.0.processes", [0]),
        ("results.0.samples.0.processes", [0, 70000]),
        ("results.0.facts.0.opcodes", {"A": "x"}),
        ("results.0.facts.0.opcodes", {"A": float("inf")}),
        ("results.0.facts.0.values", [["a", float("inf"), ""]]),
        ("results.0.facts.0.values", [["a", 10**400, ""]]),
        ("results.0.facts.0.values", [["a", None, "", 77]]),
        ("results.0.facts.0.values", [["a", None, ""]]),
        ("results.0.facts.0.values", [["a", True, ""]]),
        ("results.0.facts.0.values", [["a", 5, None]]),
        ("results.0.check", {"passed": "no"}),
        ("results.0.check", {"passed": None}),
        ("results.0.captures.0.report", "00" * 32),
        ("results.0.captures.0.ordinals", ["a", "b"]),
        ("results.0.captures.0.parts", ["one"]),
        ("reports.0.sha256", "../../x"),
        ("reports.0.size_bytes", "5"),
        ("reports.0.size_bytes", -1),
        ("reports.0.path", None),
        ("reports.0.path", 5),
        ("reports.0.name", None),
    ],
)
def test_a_run_json_with_a_field_that_cannot_be_is_refused_in_one_line(path: str, content: object) -> None:
    with pytest.raises(BadBundle, match=r"x/run\.json") as caught:
        run_json.parse_run(changed(rich(), path, content), "x/run.json")
    assert "\n" not in str(caught.value)


def test_a_name_with_a_line_end_is_refused_in_one_line() -> None:
    body = json.loads(run_json.dump_run(rich()))
    body["reports"][0]["\n"] = "x"
    with pytest.raises(BadBundle) as refused:
        run_json.parse_run(json.dumps(body).encode(), "x/run.json")
    assert "\n" not in str(refused.value)


def test_a_report_named_twice_is_refused() -> None:
    twice = rich().reports[0]
    run = replace(rich(), reports=(twice, twice._replace(path="reports/other")))
    with pytest.raises(BadBundle, match="twice"):
        run_json.parse_run(run_json.dump_run(run), "x")


def test_a_report_whose_name_is_no_text_is_kept_under_one_that_is() -> None:
    entry = bundle.imported_report_file(os.fsdecode(b"k\xe9.csv"), "0" * 64, 1)
    assert (entry.name, entry.path) == ("k\ufffd.csv", "reports/k.csv")
    assert run_json.parse_run(run_json.dump_run(made(reports=(entry,))), "x").reports == (entry,)


# ---- zips


@pytest.fixture
def packed(root: LocalRoot, source: dict[str, Path], tmp_path: Path) -> Path:
    bundle.seal(root, made(), source)
    return zip_file.pack(root, made().run_id, tmp_path)


def test_a_zip_brings_the_bundle_unchanged_and_is_the_same_every_time(
    root: LocalRoot, packed: Path, tmp_path: Path
) -> None:
    assert packed.name == f"{made().run_id}.zip"
    assert zip_file.unpack(packed, tmp_path / "out") == made()
    assert everything_in(tmp_path / "out") == everything_in(root.folder / "runs" / made().run_id)
    again = zip_file.pack(root, made().run_id, tmp_path / "again.zip")
    assert again.read_bytes() == packed.read_bytes()
    assert sorted(path.name for path in tmp_path.glob("*.zip")) == sorted([packed.name, "again.zip"])


def rewritten(packed: Path, change: Callable[[zipfile.ZipFile, dict[str, bytes]], None]) -> Path:
    """The zip with other contents: `change` gets the new archive and the old contents."""
    with zipfile.ZipFile(packed) as archive:
        contents = {entry.filename: archive.read(entry) for entry in archive.infolist()}
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        change(archive, contents)
    return packed


def write_all(archive: zipfile.ZipFile, contents: dict[str, bytes]) -> None:
    for name, content in contents.items():
        archive.writestr(name, content)


def refused(path: Path, tmp_path: Path, said: str) -> None:
    out = tmp_path / "out"
    with pytest.raises(BadBundle, match=said) as caught:
        zip_file.unpack(path, out)
    assert "\n" not in str(caught.value)
    assert list(tmp_path.rglob("*evil*")) == []


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "/evil",
        "{run}/../../evil",
        "{run}/evil",
        "evil",
        "{run}\\evil",
        "{run}/reports/evil.ncu-rep",
    ],
)
def test_a_file_that_nobody_declared_is_never_written(packed: Path, tmp_path: Path, name: str) -> None:
    def change(archive: zipfile.ZipFile, contents: dict[str, bytes]) -> None:
        write_all(archive, contents)
        archive.writestr(name.format(run=made().run_id), b"evil")

    refused(rewritten(packed, change), tmp_path, str(packed))


def test_a_link_is_never_written(packed: Path, tmp_path: Path) -> None:
    def change(archive: zipfile.ZipFile, contents: dict[str, bytes]) -> None:
        name = f"{made().run_id}/reports/v.ncu-rep"
        archive.writestr(f"{made().run_id}/run.json", contents[f"{made().run_id}/run.json"])
        link = zipfile.ZipInfo(name)
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, b"/etc/passwd")

    refused(rewritten(packed, change), tmp_path, "link")


def test_a_report_other_than_the_declared_one_is_refused(packed: Path, tmp_path: Path) -> None:
    def change(archive: zipfile.ZipFile, contents: dict[str, bytes]) -> None:
        write_all(
            archive,
            {
                name: content.replace(b"bytes", b"BYTES", 1) if name.endswith("rep") else content
                for name, content in contents.items()
            },
        )

    refused(rewritten(packed, change), tmp_path, r"reports/v\.ncu-rep")


def test_a_missing_report_is_refused(packed: Path, tmp_path: Path) -> None:
    refused(
        rewritten(packed, lambda archive, old: write_all(archive, dict(list(old.items())[:1]))),
        tmp_path,
        "lacks",
    )


@pytest.mark.slow
def test_a_zip_bomb_is_refused_before_it_is_unpacked(packed: Path, tmp_path: Path) -> None:
    zeros = bytes(200 << 20)
    run = made(reports=(ReportFile("b", sha256(zeros).hexdigest(), len(zeros), "reports/b"),))

    def change(archive: zipfile.ZipFile, contents: dict[str, bytes]) -> None:
        archive.writestr("run.json", run_json.dump_run(run))
        archive.writestr("reports/b", zeros)

    assert rewritten(packed, change).stat().st_size < 1 << 20
    refused(packed, tmp_path, "bomb")
    assert not (tmp_path / "out").exists()


def test_a_zip_that_lies_about_its_sizes_is_refused(packed: Path, tmp_path: Path) -> None:
    """The size in the directory is small, the deflated stream is not."""
    zeros = bytes(1 << 20)
    run = made(reports=(ReportFile("b", sha256(zeros[:100]).hexdigest(), 100, "reports/b"),))

    def change(archive: zipfile.ZipFile, contents: dict[str, bytes]) -> None:
        archive.writestr("run.json", run_json.dump_run(run))
        archive.writestr("reports/b", zeros)

    content = bytearray(rewritten(packed, change).read_bytes())
    true_size, lie = len(zeros).to_bytes(4, "little"), (100).to_bytes(4, "little")
    packed.write_bytes(bytes(content).replace(true_size, lie))
    refused(packed, tmp_path, "reports/b|can be read|damaged")


@pytest.mark.parametrize("cut", [0, 10, 200, -30, -1])
def test_a_truncated_zip_is_refused(packed: Path, tmp_path: Path, cut: int) -> None:
    packed.write_bytes(packed.read_bytes()[:cut])
    refused(packed, tmp_path, "zip")


def test_a_flipped_byte_in_a_zip_is_refused(packed: Path, tmp_path: Path) -> None:
    content = bytearray(packed.read_bytes())
    for place in range(40, len(content) - 200, 37):
        damaged = bytes(content[:place]) + bytes([content[place] ^ 0x55]) + bytes(content[place + 1 :])
        packed.write_bytes(damaged)
        try:
            run = zip_file.unpack(packed, tmp_path / f"out{place}")
        except BadBundle:
            continue
        assert run == made()  # what the byte said is not used, such as a time
        assert (tmp_path / f"out{place}" / "reports" / "v.ncu-rep").read_bytes() == CONTENT


def test_a_zip_of_something_else_is_no_bundle(tmp_path: Path) -> None:
    path = tmp_path / "x.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a/b/run.json", b"{}")
    assert not zip_file.is_bundle_zip(path)
    path.write_bytes(b"PK\x05\x06" + bytes(18))
    assert not zip_file.is_bundle_zip(path)
    path.write_bytes(io.BytesIO(b"text").getvalue())
    assert not zip_file.is_bundle_zip(path)


# ---- elsewhere


def test_a_remote_root_holds_the_same_bundle(source: dict[str, Path], tmp_path: Path) -> None:
    where = location.open_root(f"memory://{tmp_path.name}/team")
    assert bundle.list_runs(where) == []
    assert bundle.seal(where, made(), source) is True
    assert bundle.seal(where, made(), source) is False
    with pytest.raises(BadBundle, match="other content"):
        bundle.seal(where, made(provenance={}), source)
    assert bundle.list_runs(where) == [made().run_id]
    assert bundle.load_run(where, made().run_id) == made()
    with where.open_local(f"runs/{made().run_id}/reports/v.ncu-rep") as path:
        assert (path.name, path.read_bytes()) == ("v.ncu-rep", CONTENT)
    assert not path.exists()
    assert zip_file.unpack(zip_file.pack(where, made().run_id, tmp_path), tmp_path / "out") == made()


def test_a_remote_upload_that_breaks_off_leaves_no_run(source: dict[str, Path], tmp_path: Path) -> None:
    where = location.open_root(f"memory://{tmp_path.name}/broken")
    source["reports/v.ncu-rep"].write_bytes(b"changed")
    with pytest.raises(BadBundle):
        bundle.seal(where, made(), source)
    assert bundle.list_runs(where) == []


def test_the_data_folder_is_the_named_one_then_here_then_beside_the_package(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "named"))
    assert location.open_root().url == str(tmp_path / "named")
    assert location.open_root("other").url == str(tmp_path / "other")
    assert location.open_root(f"file://{tmp_path}/f").url == f"{tmp_path}/f"
    monkeypatch.delenv("PROFILER_DATA")
    (tmp_path / "data").mkdir()
    assert location.open_root().url == str(tmp_path / "data")
    monkeypatch.delenv("PROFILER_DB", raising=False)
    assert location.index_location(location.open_root()) == tmp_path / "data" / "index.db"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert str(tmp_path / "cache") in str(location.index_location(location.open_root("memory://x")))
    monkeypatch.setenv("PROFILER_DB", "postgresql://h/d")
    assert location.index_location(location.open_root()) == "postgresql://h/d"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("file:///x/f%20y", "/x/f y"),
        ("file://localhost/x", "/x"),
        ("file:///x/a%3Fb", "/x/a?b"),
        ("/x/a?b%20", "/x/a?b%20"),
    ],
)
def test_a_place_on_this_machine_is_taken_by_its_path(url: str, path: str) -> None:
    found = location.open_root(url)
    assert isinstance(found, LocalRoot)
    assert str(found.folder) == path
    assert location.index_location(found, None) == Path(path, "index.db")


@pytest.mark.parametrize("url", ["file://host/x", "file:///x?y", "file:///x#y", "file://"])
def test_a_file_url_that_is_no_path_here_is_refused(url: str) -> None:
    with pytest.raises(ProfilerError, match=r"PROFILER_DATA=file://"):
        location.open_root(url)


def test_a_data_folder_that_would_be_gone_at_once_is_refused_where_commands_take_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROFILER_DATA", "memory://x")
    with pytest.raises(ProfilerError, match="name a folder"):
        location.open_root()
    assert location.open_root("memory://x").url == "memory://x"


def test_whatever_a_remote_file_system_raises_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no.zip").write_bytes(b"no zip")
    with pytest.raises(ProfilerError, match="cannot be used: File is not a zip file"):
        location.open_root(f"zip://::{tmp_path / 'no.zip'}")
    where = location.open_root("memory://x")

    def refuse(*_: object) -> None:
        raise RuntimeError("no credentials")

    monkeypatch.setattr(where._files, "glob", refuse)  # type: ignore[attr-defined]
    with pytest.raises(ProfilerError, match=r"memory://x cannot be used: RuntimeError: no credentials; PROF"):
        where.list_files("decisions", ".json")
    assert location.open_root("~nobody-here/x").url.endswith("/~nobody-here/x")


def test_a_full_disk_names_the_file(root: LocalRoot, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"decisions/x\.json"):
        root.write("decisions/x.json", b"x")
    assert everything_in(root.folder) == {}


def test_what_a_killed_import_left_is_swept_unless_another_is_at_work(
    root: LocalRoot, source: dict[str, Path]
) -> None:
    abandoned = bundle.stage(root, made(), source)
    with bundle.importing(root):
        assert not abandoned.folder.exists()
        staged = bundle.stage(root, made(), source)
        with bundle.importing(root):
            assert staged.folder.exists()
    assert not (root.folder / "runs").exists()


def test_sealing_writes_run_json_once_even_where_the_run_is_there(
    root: LocalRoot, source: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    dumped: list[str] = []

    def counted(run: Run) -> bytes:
        dumped.append(run.run_id)
        return run_json.dump_run(run)

    monkeypatch.setattr(bundle, "dump_run", counted)
    with bundle.importing(root):
        assert bundle.seal_import(root, made(), source) is None
        assert bundle.seal_import(root, made(), source) == made().run_id
    assert dumped == [made().run_id] * 2


def arriving(*paths: str, run_id: str | None = None) -> Run:
    """A run that names its report and these other files."""
    run = made()
    files = tuple(Attachment("source", "x", f"{number:064x}", 1, path) for number, path in enumerate(paths))
    return replace(run, files=files, run_id=run_id or run.run_id)


@pytest.mark.parametrize(
    "paths",
    [
        ("Run.json",),
        ("DROPPED.json",),
        ("a/x", "a/X"),
        ("a/x", "A/y"),
        ("a", "A/y"),
        ("REPORTS/y",),
        ("a/e\u0301", "a/\u00e9"),
    ],
)
def test_files_that_are_one_on_other_systems_do_not_come_in(paths: tuple[str, ...]) -> None:
    with pytest.raises(BadBundle, match="on some systems"):
        bundle.check_arriving(arriving(*paths), "here")
    bundle.check_arriving(arriving("a/x", "a/y", "b/x", "reports/other"), "here")


def test_an_id_of_another_report_does_not_come_in() -> None:
    with pytest.raises(BadBundle, match="of another report"):
        bundle.check_arriving(arriving(run_id="20250301T120000-f-v-00000000"), "here")
    result = replace(made().results[0], version="w")
    for run in (replace(made(), results=(result,)), replace(made(), created=START + timedelta(days=1))):
        with pytest.raises(BadBundle, match="contradicts its time and labels, which make 2025030"):
            bundle.check_arriving(run, "here")


@pytest.mark.parametrize("path", ["reports/a\nb", "reports/a\u202eb", "reports/\u200fb", "reports/a\x1b[2Jb"])
def test_a_path_has_no_line_end_and_turns_no_writing(path: str) -> None:
    content = run_json.dump_run(arriving(path))
    with pytest.raises(BadBundle, match="cannot be printed") as refused:
        run_json.parse_run(content, "here")
    assert path not in str(refused.value)


def test_a_key_that_comes_twice_in_run_json_is_refused() -> None:
    content = run_json.dump_run(made()).replace(b'"kind":', b'"kind": "collect",\n "kind":', 1)
    with pytest.raises(BadBundle, match="'kind' stands there twice"):
        run_json.parse_run(content, "here")


@pytest.mark.slow
def test_keys_that_come_twice_among_many_are_found_at_once() -> None:
    """Counting each of 200,000 keys would take minutes."""
    keys = ",".join(f'"k{number}": 1' for number in range(200_000))
    content = run_json.dump_run(made()).replace(b'"provenance": {', f'"provenance": {{{keys},'.encode())
    content = content.replace(b'"k199999": 1', b'"k199999": 1, "k199999": 2')
    began = process_time()
    with pytest.raises(BadBundle, match="'k199999' stands there twice"):
        run_json.parse_run(content, "here")
    assert process_time() - began < 5


@pytest.mark.slow
def test_many_results_of_many_reports_are_checked_in_linear_time() -> None:
    """4,000 versions of 4,000 reports would make 16 million ids."""
    reports = tuple(
        ReportFile("r", f"{number:08x}{0:056x}", 1, f"reports/{number}") for number in range(4000)
    )
    results = tuple(Result("f", f"v{number}") for number in range(4000))
    run = replace(made(), run_id="20250301T120000-f-v3999-00000f9f", results=results, reports=reports)
    began = process_time()
    bundle.check_arriving(run, "here")
    with pytest.raises(BadBundle, match=r"which make 20250301T120000-f-v0-00000f9f"):
        bundle.check_arriving(replace(run, run_id="20250301T120000-f-w-00000f9f"), "here")
    assert process_time() - began < 5


def of_captures(*captures: list[int] | None, several_results: bool = False) -> Run:
    """A run whose captures name these launches of its one report."""
    digest = made().reports[0].sha256
    named = [Capture(digest, None if ordinals is None else tuple(ordinals)) for ordinals in captures]
    each = [(capture,) for capture in named] if several_results else [tuple(named)]
    return replace(made(), results=tuple(Result("f", "v", captures=own) for own in each))


@pytest.mark.parametrize("several_results", [False, True])
@pytest.mark.parametrize(
    ("captures", "said"),
    [
        ([[0, 1, 0]], "launch 0"),
        ([[0, 1], [2, 1]], "launch 1"),
        ([None, None], "every launch"),
        ([None, [7]], "launch 7"),
        ([[7], None], "launch 7"),
    ],
)
def test_a_launch_that_is_there_twice_does_not_come_in(
    captures: list[list[int] | None], said: str, several_results: bool
) -> None:
    run = of_captures(*captures, several_results=several_results)
    with pytest.raises(BadBundle, match=f"^here names {said} of the report [0-9a-f]{{12}} twice$"):
        bundle.check_arriving(run, "here")


@pytest.mark.parametrize("captures", [[[0], [1]], [[], [], None], [None, []]])
def test_captures_may_share_a_report_but_no_launch(captures: list[list[int] | None]) -> None:
    run = of_captures(*captures, several_results=True)
    bundle.check_arriving(run, "here")


def test_the_order_of_keys_in_run_json_changes_nothing() -> None:
    def turned(value: object) -> object:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in sorted(value, reverse=True)}
        return [turned(item) for item in value] if isinstance(value, list) else value

    content = run_json.dump_run(made(provenance={"b": {"y": 1, "x": 2}, "a": [{"d": 1, "c": 2}]}))
    other = json.dumps(turned(json.loads(content))).encode()
    for one, two in ((content, other), (other, content)):
        assert repr(run_json.parse_run(one, "x")) == repr(run_json.parse_run(two, "x"))


@pytest.mark.parametrize(
    ("kind", "name"), [("reports", "path"), ("reports", "sha256"), ("files", "kind"), ("files", "name")]
)
def test_a_file_without_a_field_is_said_in_plain_words(kind: str, name: str) -> None:
    body = json.loads(run_json.dump_run(rich()))
    del body[kind][0][name]
    with pytest.raises(BadBundle, match=rf"a file that it names, .*, is without '{name}'"):
        run_json.parse_run(json.dumps(body).encode(), "here")
    body[kind][0] |= {name: "x", "other": 1}
    with pytest.raises(BadBundle, match="has 'other', which means nothing here"):
        run_json.parse_run(json.dumps(body).encode(), "here")


@pytest.mark.parametrize("path", ["a/" * 40 + "x", "x" * 1001, "a/" * 500_000 + "x"], ids=len)
def test_a_path_of_many_folders_or_characters_is_refused(path: str) -> None:
    with pytest.raises(BadBundle, match="at most 1000 characters and 32 folders"):
        run_json.parse_run(run_json.dump_run(arriving(path)), "here")


def test_a_bundle_from_elsewhere_has_a_limited_number_of_files() -> None:
    with pytest.raises(BadBundle, match="over 10,000 files"):
        bundle.check_arriving(arriving(*(f"a/{number}" for number in range(10_000))), "here")


def test_a_zip_with_several_run_json_says_so(tmp_path: Path) -> None:
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("a/run.json", "b/run.json"):
            archive.writestr(name, run_json.dump_run(made()))
    assert zip_file.is_bundle_zip(path)
    with pytest.raises(BadBundle, match=r"holds 2 files run\.json, and a bundle has one"):
        zip_file.unpack(path, tmp_path)
