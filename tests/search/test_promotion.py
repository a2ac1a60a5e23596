"""A candidate as a version: the patch applies, and the catalogue then has the same candidate."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from profiler.catalog.catalog import load_catalog
from profiler.errors import ProfilerError, UnknownName
from profiler.judge.candidate import load_candidate
from profiler.search.generator import CallableGenerator
from profiler.search.promotion import promotion_patch
from profiler.search.variants import write_version
from tests.search.simulated import make_search, run_search

ROOT = Path(__file__).resolve().parent.parent.parent


def applied(tmp_path: Path, patch: str) -> Path:
    """The kernels with a patch applied by git, as its reader would."""
    shutil.copytree(ROOT / "kernels", tmp_path / "clone" / "kernels")
    command = ["git", "apply", "--whitespace=error-all", "-"]
    subprocess.run(command, cwd=tmp_path / "clone", input=patch.encode(), check=True)
    return tmp_path / "clone" / "kernels" / "catalog.toml"


def test_a_candidate_of_flags_becomes_an_entry_with_flags(tmp_path: Path) -> None:
    journal = make_search(tmp_path / "data")
    run_search(journal, 8)
    best = journal.archive().elites[0]
    catalog = load_catalog()
    path = applied(tmp_path, promotion_patch(journal, catalog, best.name, "v2d_best"))
    after = load_catalog(path)
    version = after.by_id["v2d_best"]
    assert version.parent == "v2d_a"
    assert "SWIZZLE 0 → 1" in version.technique, "all that differs from the version, not the last step alone"
    assert version.source is not None
    assert version.source.name == "v2d.cu"
    assert [v for v in after.by_id if v != "v2d_best"] == list(catalog.by_id)
    folder = tmp_path / "again"
    folder.mkdir()
    write_version(after, version, catalog.spaces[0], folder)
    assert load_candidate(folder, catalog).id == best.content_id


def test_another_source_comes_as_a_file_of_its_own(tmp_path: Path) -> None:
    def rewrite(prompt: str, parent: Path, candidate: Path) -> None:
        source = candidate / "v2d.cu"
        source.write_text(source.read_text().replace("#define KEYS 64", "#define KEYS 64 "))
        manifest = candidate / "candidate.toml"
        manifest.write_text(manifest.read_text().replace("-DSWIZZLE=0", "-DSWIZZLE=1"))

    journal = make_search(tmp_path / "data")
    run_search(journal, 1, generator=CallableGenerator(rewrite))
    path = applied(tmp_path, promotion_patch(journal, load_catalog(), "c1").replace("64 \n", "64\n"))
    version = load_catalog(path).by_id["v2d_a_c1"]
    assert version.source == path.parent / "v2d_a_c1.cu"
    assert "-DSWIZZLE=1" in version.flags


@pytest.mark.slow
def test_what_is_wrong_or_taken_or_not_there_is_not_promoted(tmp_path: Path) -> None:
    journal = make_search(tmp_path / "data", seed=3)
    run_search(journal, 30)
    catalog = load_catalog()
    wrong = next(record for record in journal.archive().records if not record.is_valid)
    with pytest.raises(ProfilerError, match=str(wrong.status)):
        promotion_patch(journal, catalog, wrong.name)
    with pytest.raises(ProfilerError, match="--as"):
        promotion_patch(journal, catalog, "c0", "v2d_b")
    with pytest.raises(UnknownName, match="c0 to c30"):
        promotion_patch(journal, catalog, "c99")
