"""How versions stand: state, ancestor, facts and catalogue come from the run, not from the working tree."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from profiler.bundles import location
from profiler.bundles.run import Result
from profiler.errors import BadBundle
from profiler.evidence.values import Evidence
from profiler.history import lineage
from profiler.history.catalog_snapshot import working_tree_difference
from profiler.history.lineage import Lineage
from profiler.store.readable_index import open_store
from tests import lineages
from tests.conftest import ROOT


def of(data: Path) -> Lineage:
    loaded = lineage.load_lineages(location.open_root(str(data)), open_store(str(data)))
    return loaded[lineages.FAMILY]


@pytest.fixture
def made_lineage(tmp_path: Path) -> Lineage:
    lineages.dissected(tmp_path)
    return of(tmp_path)


def test_versions_stand_in_the_catalogues_order(made_lineage: Lineage) -> None:
    assert made_lineage.order == ("zero", "bad", "alpha", "later", "theirs")
    assert [status.state for status in made_lineage.statuses] == [
        "good",
        "wrong",
        "good",
        "planned",
        "baseline",
    ]
    assert made_lineage.wrong == {"bad": "wrong"}


def test_a_version_is_held_against_its_nearest_correct_ancestor(made_lineage: Lineage) -> None:
    against = {
        name: one.correct_ancestor.id if one.correct_ancestor else None
        for name, one in made_lineage.by_id.items()
    }
    assert against == {"zero": None, "bad": "zero", "alpha": "zero", "later": "alpha", "theirs": None}


def test_facts_are_told_apart_by_architecture_size_and_workload(made_lineage: Lineage) -> None:
    alpha = made_lineage.by_id["alpha"]
    assert alpha.static["sm_90a", "head dim 128"].values.number("static__registers") == 65
    assert alpha.modelled["1x1x8x64"].values.number("modelled__bank_conflicts") == 4000
    assert alpha.evidence == {Evidence.STATIC, Evidence.MODELLED}
    assert made_lineage.by_id["later"].evidence == set()
    assert (made_lineage.architectures, made_lineage.static_workloads, made_lineage.run_workloads) == (
        ["sm_80", "sm_90a"],
        ["head dim 64", "head dim 128"],
        ["1x1x8x64"],
    )


def test_without_a_gpu_the_newest_correct_version_ends_the_path(made_lineage: Lineage) -> None:
    best = made_lineage.best()
    assert best is not None
    assert made_lineage.ancestry(best) == {"zero", "bad", "alpha"}
    assert made_lineage.gpus == ()


@pytest.mark.slow
def test_the_furthest_correct_version_has_the_most_ancestors_wherever_it_stands(
    tmp_path: Path, committed_data: Path
) -> None:
    data = str(shutil.copytree(committed_data, tmp_path / "data"))
    store = open_store(data)
    committed = lineage.load_lineages(location.open_root(data), store)["attention"]
    correct_deepest_first = [status.version.id for status in committed.correct_deepest_first]
    assert correct_deepest_first[0] == "v2g_multicast", "not fp8_stage_c, the last of the catalogue"
    assert correct_deepest_first[-1] == "v1"


def test_latencies_decide_the_best_once_there_are_any_and_a_wrong_version_never_is(tmp_path: Path) -> None:
    lineages.dissected(tmp_path, lineages.results(measured=True), gpu="Test GPU")
    insights = of(tmp_path)
    best = insights.best("1x1x8x64", "Test GPU")
    assert best is not None
    assert best.version.id == "zero"
    assert best.latency_ns == {("1x1x8x64", "Test GPU"): 400.0}
    assert insights.gpus == ("Test GPU",)


def test_a_version_that_the_catalogue_calls_good_is_wrong_where_a_check_failed(tmp_path: Path) -> None:
    lineages.dissected(tmp_path, lineages.results(alpha="wrong"))
    alpha = of(tmp_path).by_id["alpha"]
    assert (alpha.state, alpha.reason) == ("wrong", "race at k.cu:6 in alpha")
    later = of(tmp_path).by_id["later"]
    assert later.correct_ancestor is not None
    assert later.correct_ancestor.id == "zero"


def test_a_rejected_version_that_nothing_caught_says_so(tmp_path: Path) -> None:
    made = tuple(
        row if row.version != "bad" else type(row)(**{**vars(row), "status": "done", "reason": None})
        for row in lineages.results()
    )
    lineages.dissected(tmp_path, made)
    bad = of(tmp_path).by_id["bad"]
    assert (bad.state, bad.note) == ("wrong", "not caught by the check")


def test_a_good_version_without_a_check_is_not_called_checked(tmp_path: Path) -> None:
    made = tuple(row for row in lineages.results() if row.check is None)
    lineages.dissected(tmp_path, made)
    assert of(tmp_path).by_id["alpha"].note == "not checked"


def test_the_newest_run_with_a_catalogue_wins_and_one_without_is_passed_over(tmp_path: Path) -> None:
    lineages.dissected(tmp_path)
    later = lineages.CREATED + timedelta(days=1)
    changed = lineages.CATALOG.replace("a warp a row", "one warp, one row")
    lineages.dissected(tmp_path, created=later, catalog=changed)
    lineages.dissected(tmp_path, created=later + timedelta(days=1), catalog=None)
    assert of(tmp_path).by_id["alpha"].version.technique == "one warp, one row"


def test_a_version_of_the_family_that_no_catalogue_names_is_listed_last(tmp_path: Path) -> None:
    extra = type(lineages.results()[0])(lineages.FAMILY, "stray", "head dim 64", facts=(lineages.static(9),))
    lineages.dissected(tmp_path, (*lineages.results(), extra))
    assert of(tmp_path).uncatalogued == ("stray",)
    assert of(tmp_path).order[-1] == "stray"


def test_a_family_without_a_catalogue_has_no_lineage(tmp_path: Path) -> None:
    lineages.dissected(tmp_path, catalog=None)
    assert lineage.load_lineages(location.open_root(str(tmp_path)), open_store(str(tmp_path))) == {}


def test_a_catalogue_that_cannot_be_read_names_the_run(tmp_path: Path) -> None:
    run = lineages.dissected(tmp_path, catalog="family = [")
    with pytest.raises(BadBundle, match=run.run_id):
        of(tmp_path)


def test_sources_and_line_tables_come_from_the_run(tmp_path: Path, made_lineage: Lineage) -> None:
    root = location.open_root(str(tmp_path))
    assert made_lineage.snapshot.source_text(root, made_lineage.by_id["bad"].version) == lineages.SOURCE
    assert made_lineage.snapshot.source_text(root, made_lineage.by_id["theirs"].version) is None
    assert made_lineage.snapshot.shared_traffic(root, "alpha")["1x1x8x64"][0] == (
        "k.cu",
        10,
        "store",
        10,
        4010,
        10,
    )
    assert made_lineage.snapshot.shared_traffic(root, "bad") == {}


class TestARunOfSomeVersions:
    """Measured on a GPU, say: newer than what was dissected, without all sources and without line tables."""

    def later(self, folder: Path, source: str | None = None, catalog: str = lineages.CATALOG) -> Lineage:
        lineages.dissected(folder)
        created = lineages.CREATED + timedelta(days=1)
        lineages.dissected(folder, created=created, catalog=catalog, source=source, lines=False)
        return of(folder)

    def test_what_it_lacks_comes_from_older_runs(self, tmp_path: Path) -> None:
        loaded, root = self.later(tmp_path), location.open_root(str(tmp_path))
        assert loaded.snapshot.created == lineages.CREATED + timedelta(days=1)
        assert loaded.snapshot.source_text(root, loaded.by_id["bad"].version) == lineages.SOURCE
        assert loaded.snapshot.source_texts(root) == {"k.cu": lineages.SOURCE}
        assert loaded.snapshot.shared_traffic(root, "alpha")["1x1x8x64"][0][4] == 4010

    def test_lines_of_another_source_or_other_flags_are_none_of_this_one(self, tmp_path: Path) -> None:
        other = self.later(tmp_path / "a", source="int y;\n")
        root = location.open_root(str(tmp_path / "a"))
        assert other.snapshot.source_text(root, other.by_id["alpha"].version) == "int y;\n"
        assert other.snapshot.shared_traffic(root, "alpha") == {}
        flags = self.later(tmp_path / "b", lineages.SOURCE, lineages.CATALOG.replace("TILE=64", "TILE=16"))
        root = location.open_root(str(tmp_path / "b"))
        assert flags.snapshot.shared_traffic(root, "alpha") == {}
        assert flags.snapshot.shared_traffic(root, "zero") != {}

    def test_an_older_catalogue_that_cannot_be_read_costs_only_what_it_would_add(
        self, tmp_path: Path
    ) -> None:
        lineages.dissected(tmp_path, catalog="family = [")
        lineages.dissected(tmp_path, created=lineages.CREATED + timedelta(days=1), lines=False)
        assert of(tmp_path).by_id["alpha"].state == "good"


class TestApart:
    def tree(self, folder: Path, text: str = lineages.CATALOG, source: str = lineages.SOURCE) -> Path:
        folder.mkdir()
        (folder / "k.cu").write_text(source)
        (folder / "catalog.toml").write_text(text)
        return folder / "catalog.toml"

    def test_the_same_catalogue_and_sources_need_no_word(self, made_lineage: Lineage, tmp_path: Path) -> None:
        assert working_tree_difference(made_lineage.snapshot, self.tree(tmp_path / "kernels")) == ""

    def test_versions_that_came_and_went_are_named(self, made_lineage: Lineage, tmp_path: Path) -> None:
        path = self.tree(tmp_path / "kernels", lineages.CATALOG.replace('id = "later"', 'id = "sooner"'))
        assert "it adds sooner; it lacks later" in working_tree_difference(made_lineage.snapshot, path)

    def test_changed_entries_and_sources_are_named(self, made_lineage: Lineage, tmp_path: Path) -> None:
        path = self.tree(tmp_path / "kernels", lineages.CATALOG.replace("a warp a row", "x"), "int y;\n")
        assert "entries differ; sources differ: k.cu" in working_tree_difference(made_lineage.snapshot, path)

    def test_no_kernels_beside_it_and_another_family_are_no_difference(
        self, made_lineage: Lineage, tmp_path: Path
    ) -> None:
        assert working_tree_difference(made_lineage.snapshot, tmp_path / "none" / "catalog.toml") == ""
        assert working_tree_difference(made_lineage.snapshot, ROOT / "kernels" / "catalog.toml") == ""


def test_what_failed_or_was_left_out_on_a_gpu_does_not_make_a_right_version_wrong(tmp_path: Path) -> None:
    rows = list(lineages.results(measured=True))
    about = {"family": lineages.FAMILY, "version": "alpha", "workload": "1x8x512x64"}
    rows.append(Result(**about, status="skipped", reason="time: the time budget of 60 s was used up"))
    rows.append(Result(**{**about, "workload": "2x8x2048x64"}, status="failed", reason="lean: NaN"))
    lineages.dissected(tmp_path, tuple(rows), gpu="Test GPU")
    alpha = of(tmp_path).by_id["alpha"]
    assert alpha.state == "good"
    assert alpha.note == "failed on Test GPU, 2x8x2048x64: lean: NaN"
    assert alpha.latency_ns
