"""Which family a folder's reports get: told apart from every other folder, and always the same."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from profiler.store.folder_families import ImportFolder, family_labels, folder_of, is_generic


def family(folder: str, *known: ImportFolder) -> str:
    return family_labels([folder], known)[folder]


def derived(folder: str, name: str, runs: int = 1) -> ImportFolder:
    return ImportFolder(folder, name, False, runs)


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/lab/silu", "silu"),
        ("/lab/silu/ncu-reports", "silu"),
        ("/lab/silu/profiling/NCU_Results", "silu"),
        ("/lab/silu/2025-04-21", "silu"),
        ("github.com/lab/norms/build/out", "norms"),
        ("~/reports", "reports"),
        ("/home/out", "out"),
        ("/lab/sm_90", "sm_90"),
    ],
)
def test_a_generic_name_is_no_family_where_a_better_part_exists(folder: str, name: str) -> None:
    assert family(folder) == name


def test_names_of_what_lies_in_a_folder_are_generic() -> None:
    assert [is_generic(name) for name in ("ncu-reports", "Build", "run_42", "2025", "silu", "v1")] == [
        True,
        True,
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    "families",
    [
        {"/lab/silu/ncu-reports": "silu", "/lab/rms_norm/ncu-reports": "rms_norm"},
        {"/lab/silu/mm": "silu-mm", "/lab/rms/mm": "rms-mm"},
        {"/lab/silu/src/kernels/v1": "silu-v1", "/lab/rms/src/kernels/v1": "rms-v1"},
        {"/lab/silu": "silu", "/lab/silu/reports": "silu-reports", "/lab/silu/out": "silu-out"},
        {"/lab/silu/build/reports": "silu-build", "/lab/silu/out/reports": "silu-out"},
        {"/a/silu/mm": "silu-mm", "/a/rms/mm/reports": "rms-mm", "/a/mm": "a-mm"},
        {"/a-b/c/x": "c-x", "/a/b-c/x": "b-c-x"},
    ],
)
def test_folders_of_one_import_are_told_apart_by_the_shortest_part(families: dict[str, str]) -> None:
    for order in itertools.permutations(families):
        assert family_labels(order, ()) == families


def test_two_spellings_that_no_part_tells_apart_still_differ() -> None:
    names = family_labels(["~/reports", "/reports"], ())
    assert len(set(names.values())) == 2


def test_a_folder_keeps_the_family_that_its_runs_have() -> None:
    known = [derived("/lab/silu/reports", "silu"), derived("/lab/silu/reports", "swish", 3)]
    assert family("/lab/silu/reports", *known) == "swish"
    assert family("/lab/rms/reports", *known) == "rms"


def test_another_repositorys_folder_does_not_join_a_family() -> None:
    known = (derived("github.com/a/kernels/silu/reports", "silu"), derived("github.com/b/silu", "b-silu"))
    assert family("github.com/b/other/silu/reports", *known) == "other-silu"
    assert family("github.com/c/kernels/silu/reports", *known) == "c-silu"
    assert family("github.com/a/kernels/silu", *known) != "silu"


def test_a_family_that_somebody_named_may_be_joined() -> None:
    assert family("/lab/silu", ImportFolder("/other/x", "silu", True, 4)) == "silu"
    assert family("/lab/silu", ImportFolder("", "silu", False, 4)) == "silu"
    # Nor does it say what the folder is: that one import named it otherwise.
    assert family("/lab/silu", ImportFolder("/lab/silu", "try-1", True, 1)) == "silu"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("https://github.com/lab/norms.git", "github.com/lab/norms"),
        ("https://user:secret@host.example:8443/lab/norms/", "host.example/lab/norms"),
        ("git@github.com:lab/norms.git", "github.com/lab/norms"),
        ("ssh://git@host.example:22/lab/norms", "host.example/lab/norms"),
    ],
)
def test_clones_of_one_repository_are_one_place(tmp_path: Path, url: str, place: str) -> None:
    for clone in ("one", "two"):
        (tmp_path / clone / ".git").mkdir(parents=True)
        (tmp_path / clone / "silu" / "reports").mkdir(parents=True)
        config = (
            f'[core]\n\tbare = false\n[remote "origin"]\n\turl = {url}\n\tfetch = +refs\n[branch "main"]\n'
        )
        (tmp_path / clone / ".git" / "config").write_text(config)
        assert folder_of(tmp_path / clone / "silu" / "reports" / "v1.ncu-rep") == f"{place}/silu/reports"
        assert folder_of(tmp_path / clone / "v1.ncu-rep") == place


def test_a_worktree_is_of_its_repository(tmp_path: Path) -> None:
    git = tmp_path / "main" / ".git"
    (git / "worktrees" / "w").mkdir(parents=True)
    (git / "worktrees" / "w" / "commondir").write_text("../..\n")
    (git / "config").write_text('[remote "origin"]\n\turl = https://host.example/lab/norms\n')
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / ".git").write_text(f"gitdir: {git}/worktrees/w\n")
    assert folder_of(tmp_path / "w" / "silu" / "v1.ncu-rep") == "host.example/lab/norms/silu"


def test_without_a_remote_a_place_is_the_path_and_home_is_not_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "norms" / ".git").mkdir(parents=True)
    assert folder_of(tmp_path / "norms" / "silu" / "v1.ncu-rep") == f"{tmp_path}/norms/silu"
    monkeypatch.setenv("HOME", str(tmp_path))
    assert folder_of(tmp_path / "norms" / "silu" / ".." / "v1.ncu-rep") == "~/norms"
