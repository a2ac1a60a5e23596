"""A catalogue of somebody else: looked at without running anything, run once somebody has said so."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.catalog import trust
from profiler.catalog.catalog import PROJECT_KERNELS, load_catalog
from profiler.catalog.sources import source_sha256
from profiler.catalog.trust import NotTrusted, remember_trust, require_trust
from profiler.cli import main
from profiler.errors import ProfilerError

CATALOG = """
family = "theirs"
problem = "problem.py:PROBLEM"
compile_flags = ["-ccbin=./compiler"]

[[version]]
id = "k"
technique = "a kernel"
file = "k.cu"

[[version]]
id = "module"
technique = "a callable of a package"
state = "baseline"
callable = "theirs_package.inner:f"
"""


@pytest.fixture
def theirs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a catalogue whose Python leaves a mark when it runs, and nothing trusted yet."""
    monkeypatch.delenv(trust.TRUST)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "theirs"
    package = folder / "theirs_package"
    package.mkdir(parents=True)
    mark = f"open({str(tmp_path / 'ran')!r}, 'w')\n"
    (folder / "catalog.toml").write_text(CATALOG)
    (folder / "k.cu").write_text("// nothing\n")
    (folder / "problem.py").write_text(mark)
    (package / "__init__.py").write_text(mark)
    (package / "inner.py").write_text(mark)
    monkeypatch.syspath_prepend(str(folder))
    return folder


@pytest.mark.parametrize(
    "command",
    [
        *(
            ["static", "--build-only"],
            ["static"],
            ["check"],
            ["static", "--check"],
            ["collect"],
            ["collect", "--dry-run"],
        ),
        ["collect", "--noise", "k"],
        ["sass", "k", "--build", "--arch", "sm_90a"],
    ],
    ids=" ".join,
)
def test_a_command_that_would_run_it_says_so_and_runs_nothing(
    command: list[str], theirs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--catalog", str(theirs)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"{theirs / 'catalog.toml'} is not trusted here, and nothing of it was run" in line
    assert "Python of problem.py, theirs_package.inner" in line
    assert "a compiler with -ccbin=./compiler" in line
    assert "repeat with --trust, or name the folder in PROFILER_TRUST" in line
    assert not (tmp_path / "ran").exists()


def test_trust_is_remembered_until_the_catalogue_or_its_python_changes(theirs: Path, tmp_path: Path) -> None:
    assert main(["check", "--catalog", str(theirs), "--trust"]) == 2, "its problem is none"
    assert (tmp_path / "ran").exists()
    require_trust(load_catalog(theirs))
    (theirs / "k.cu").write_text("// an edit of a kernel\n")
    require_trust(load_catalog(theirs))
    copy = tmp_path / "copy"
    theirs.rename(copy)
    with pytest.raises(NotTrusted):
        require_trust(load_catalog(copy))
    copy.rename(theirs)
    for changed in ("problem.py", "catalog.toml"):
        before = (theirs / changed).read_text()
        (theirs / changed).write_text(before + "\n")
        with pytest.raises(NotTrusted):
            require_trust(load_catalog(theirs))
        (theirs / changed).write_text(before)
    require_trust(load_catalog(theirs))


def test_the_projects_own_catalogue_and_named_folders_are_trusted(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require_trust(load_catalog(PROJECT_KERNELS))
    monkeypatch.setenv(trust.TRUST, f"/nowhere:{tmp_path}")
    require_trust(load_catalog(theirs))
    monkeypatch.setenv(trust.TRUST, str(theirs)[:-1])
    with pytest.raises(NotTrusted):
        require_trust(load_catalog(theirs))


def test_looking_at_a_catalogue_and_hashing_its_sources_runs_nothing(theirs: Path, tmp_path: Path) -> None:
    catalog = load_catalog(theirs)
    hashes = {source_sha256(catalog, version) for version in catalog.versions}
    assert len(hashes) == 2
    before = source_sha256(catalog, catalog.by_id["module"])
    (theirs / "theirs_package" / "inner.py").write_text("# other\n")
    assert source_sha256(catalog, catalog.by_id["module"]) != before, "the file of a package was found"
    assert not (tmp_path / "ran").exists()


def test_where_trust_cannot_be_kept_the_way_out_is_named(
    theirs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(ProfilerError, match=r"cannot keep that .* is trusted .* PROFILER_TRUST instead"):
        remember_trust(load_catalog(theirs))
