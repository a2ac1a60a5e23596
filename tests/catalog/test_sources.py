"""What a version is made from: the files that count for its hash, and the ones that do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.catalog import catalog, sources
from tests.conftest import ROOT

CATALOG = """
family = "mine"
problem = "profiler.catalog.attention:ATTENTION"
[[version]]
id = "one"
technique = "t"
file = "one.cu"
flags = ["-DTILE=64"]
"""


@pytest.fixture
def mine(tmp_path: Path) -> catalog.Catalog:
    (tmp_path / "one.cu").write_text('#include "mine.cuh"\n#include <cuda_fp16.h>\nint x = TILE;\n')
    (tmp_path / "mine.cuh").write_text('#pragma once\n  #  include "deep/deeper.h"\n')
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "deeper.h").write_text('#include "../mine.cuh"\n#include "attention.h"\n')
    (tmp_path / "other.cuh").write_text("nobody includes this\n")
    (tmp_path / "catalog.toml").write_text(CATALOG)
    return catalog.load_catalog(tmp_path)


def hashed(mine: catalog.Catalog, *flags: str) -> str:
    return sources.source_sha256(mine, mine.versions[0], flags)


def test_includes_are_followed_in_circles_and_into_the_projects_kernels(mine: catalog.Catalog) -> None:
    found = sources.source_files(mine.versions[0])
    assert found[0] == mine.folder / "one.cu"
    assert set(found) == {
        mine.folder / "one.cu",
        mine.folder / "mine.cuh",
        mine.folder / "deep" / "deeper.h",
        ROOT / "kernels" / "attention.h",
    }


@pytest.mark.parametrize("name", ["one.cu", "mine.cuh", "deep/deeper.h"])
def test_every_file_that_is_included_changes_the_hash(mine: catalog.Catalog, name: str) -> None:
    before = hashed(mine)
    path = mine.folder / name
    path.write_text(path.read_text() + "// changed\n")
    assert hashed(mine) != before


def test_a_header_that_is_not_included_changes_nothing(mine: catalog.Catalog) -> None:
    before = hashed(mine)
    (mine.folder / "other.cuh").write_text("changed\n")
    assert hashed(mine) == before


def test_flags_are_part_of_the_hash(mine: catalog.Catalog) -> None:
    text = (mine.folder / "catalog.toml").read_text()
    (mine.folder / "catalog.toml").write_text(text.replace("TILE=64", "TILE=32"))
    smaller = catalog.load_catalog(mine.folder)
    (mine.folder / "catalog.toml").write_text('compile_flags = ["-O1"]\n' + text)
    slower = catalog.load_catalog(mine.folder)
    assert len({hashed(mine), hashed(mine, "-DONLY=1"), hashed(smaller), hashed(slower)}) == 4


def test_the_hash_does_not_depend_on_where_the_folder_lies(mine: catalog.Catalog, tmp_path: Path) -> None:
    import shutil

    moved = catalog.load_catalog(Path(shutil.copytree(mine.folder, tmp_path / "elsewhere")))
    assert hashed(moved) == hashed(mine)


def test_versions_of_one_source_have_hashes_of_their_own() -> None:
    ours = catalog.load_catalog(ROOT / "kernels")
    built = [version for version in ours.versions if version.buildable]
    assert len({sources.source_sha256(ours, version) for version in built}) == len(built)


def test_the_planted_bug_is_read_from_the_flags() -> None:
    ours = catalog.load_catalog(ROOT / "kernels")
    assert sources.planted_bug(ours.by_id["v2"]) == "BUG_V2"
    assert sources.planted_bug(ours.by_id["v2d_a"]) is None


def test_folders_of_flags_lie_beside_the_catalogue_and_their_headers_count(
    mine: catalog.Catalog, monkeypatch: pytest.MonkeyPatch
) -> None:
    (mine.folder / "given").mkdir()
    header = mine.folder / "given" / "tile.h"
    header.write_text("constexpr int A = 1;\n")
    (mine.folder / "one.cu").write_text("#include <tile.h>\n#include <cuda_fp16.h>\n")
    (mine.folder / "catalog.toml").write_text(CATALOG.replace('"-DTILE=64"', '"-DTILE=64", "-Igiven"'))
    monkeypatch.chdir("/")
    there = catalog.load_catalog(mine.folder)
    (version,) = there.versions
    assert sources.include_folders(version)[0] == mine.folder / "given"
    assert header in sources.source_files(version)
    assert sources.without_include_flags(version.flags) == ("-DTILE=64",)
    before = hashed(there)
    header.write_text("constexpr int A = 2;\n")
    assert hashed(there) != before
