"""What a name on the command line means."""

from __future__ import annotations

import shutil
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import bundle, run_json
from profiler.compare.resolve_names import (
    NothingShared,
    find_fact_pairs,
    find_facts,
    find_measured,
    forgotten_runs,
    resolve,
    resolve_all,
    resolve_measured,
    resolve_version,
)
from profiler.errors import CannotJudge, UnknownName, UnreadableReport
from profiler.evidence.values import Evidence
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.run_decisions import forget_run
from profiler.store.sync import rebuild_index
from tests import lineages


def no_store() -> Store:
    raise AssertionError("a plain file needs no store")


@pytest.fixture(scope="module")
def store(reports: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two families that share a version name, and one version on two workloads."""
    patch = pytest.MonkeyPatch()
    patch.setenv("PROFILER_DATA", str(tmp_path_factory.mktemp("sources")))
    patch.delenv("PROFILER_DB", raising=False)
    import_paths([reports / "mistic" / "prof1.ncu-rep"], version="v1", workload="small")
    import_paths([reports / "mistic" / "prof2.ncu-rep"], version="v1", workload="large")
    import_paths([reports / "ncar" / "MW_Baseline.ncu-rep"], version="v1")
    import_paths([reports / "ncar" / "MW_DivToMult.ncu-rep"])
    index = open_store()
    patch.undo()
    return index


@pytest.mark.slow
def test_a_path_comes_first_and_opens_no_store(reports: Path) -> None:
    names = [str(reports / "ncar" / f"{name}.ncu-rep") for name in ("MW_Baseline", "MW_DivToMult")]
    a, b = resolve_all(names, no_store)
    assert [a.label, b.label] == names
    assert [len(a.launches), len(b.launches)] == [5, 5]
    assert (a.gpu, a.compute_capability, a.workload) == ("Tesla V100-SXM2-32GB", "7.0", None)
    assert a.session.ncu_version == "2022.2.0.0"


def test_a_path_that_is_not_there_is_not_looked_for_in_the_store() -> None:
    with pytest.raises(UnknownName, match=r"nowhere/a\.ncu-rep: no such file"):
        resolve("nowhere/a.ncu-rep", no_store)


def test_a_folder_is_refused_with_a_way_out(reports: Path) -> None:
    with pytest.raises(UnknownName, match="is a folder: name one report in it"):
        resolve(str(reports / "ncar"), no_store)


def test_a_damaged_report_is_refused_beside_a_good_one(reports: Path) -> None:
    good, bad = reports / "ncar" / "MW_Baseline.ncu-rep", reports / "bad" / "truncated_near_end.ncu-rep"
    with pytest.raises(UnreadableReport, match="truncated_near_end"):
        resolve_all([str(good), str(bad)], no_store)


@pytest.mark.slow
def test_a_run_id_family_and_version_and_a_unique_version_name_one_side(store: Store) -> None:
    (run,) = [run for run in store.runs("ncar") if run.version == "MW_DivToMult"]
    sides = [resolve(name, lambda: store) for name in (run.run_id, "ncar/MW_DivToMult", "MW_DivToMult")]
    assert {(side.family, side.version, side.run_id) for side in sides} == {
        ("ncar", "MW_DivToMult", run.run_id)
    }
    assert [len(side.launches) for side in sides] == [5, 5, 5]
    assert [side.label for side in sides] == [run.run_id, "ncar/MW_DivToMult", "ncar/MW_DivToMult"]


@pytest.mark.slow
def test_a_version_of_two_families_lists_both(store: Store) -> None:
    with pytest.raises(UnknownName, match="v1 names 2 versions: mistic/v1, ncar/v1"):
        resolve("v1", lambda: store)
    assert resolve("ncar/v1", lambda: store).family == "ncar"


def test_a_version_on_two_workloads_asks_which(store: Store) -> None:
    with pytest.raises(UnknownName, match=r"large.*small"):
        resolve("mistic/v1", lambda: store)
    assert resolve("mistic/v1", lambda: store, workload="large").workload == "large"


def test_a_workload_or_gpu_that_is_not_there_is_named_and_not_the_version(store: Store) -> None:
    with pytest.raises(UnknownName, match=r"mistic/v1 has no workload 'smal'; there are small, large"):
        resolve("mistic/v1", lambda: store, workload="smal")
    with pytest.raises(UnknownName, match=r"mistic/v1 has no GPU 'V100' on small; there are "):
        resolve("mistic/v1", lambda: store, workload="small", gpu="V100")
    with pytest.raises(UnknownName, match=r"ncar/v1 has no workload 'small'; none was given"):
        resolve("ncar/v1", lambda: store, workload="small")
    (run,) = [run for run in store.runs("mistic") if run.workload == "large"]
    with pytest.raises(UnknownName, match="has no workload 'small'; there are large"):
        resolve(run.run_id, lambda: store, workload="small")


def test_an_empty_name_is_refused() -> None:
    for name in ("", " "):
        with pytest.raises(UnknownName, match="an empty name"):
            resolve(name, no_store)


def test_a_folder_does_not_hide_a_version_of_its_name(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for folder in ("MW_DivToMult", "ncar/v1", "empty"):
        Path(folder).mkdir(parents=True)
    assert resolve("MW_DivToMult", lambda: store).version == "MW_DivToMult"
    assert resolve("ncar/v1", lambda: store).version == "v1"
    with pytest.raises(UnknownName, match=r"empty is a folder: name one report in it.*no run or version"):
        resolve("empty", lambda: store)
    for name in (".", "./empty", "empty/"):
        with pytest.raises(UnknownName, match="is a folder: name one report in it"):
            resolve(name, no_store)


@pytest.mark.slow
def test_a_file_that_is_no_report_and_hides_a_version_says_so(
    store: Store, reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ncar").mkdir()
    Path("ncar/v1").write_text("not a report")
    with pytest.raises(UnreadableReport, match=r"^ncar/v1: .*the index has ncar/v1 too, but a file comes"):
        resolve("ncar/v1", lambda: store)
    shutil.copy(reports / "ncar" / "MW_Baseline.ncu-rep", "ncar/v1")
    assert resolve("ncar/v1", no_store).family is None, "a file comes first"


def test_a_run_that_cannot_be_read_says_why(
    reports: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    (new,) = import_paths([reports / "ncar" / "MW_Baseline.ncu-rep"]).imported
    (tmp_path / "data" / bundle.RUNS_FOLDER / new.run_id / run_json.RUN_FILE).write_text("{")
    rebuild_index()
    index = open_store()
    with pytest.raises(UnknownName, match=rf"run {new.run_id} cannot be read: .*run\.json"):
        resolve(new.run_id, lambda: index)


def test_an_unknown_name_says_what_is_near(store: Store) -> None:
    with pytest.raises(UnknownName, match=r"near: .*MW_DivToMult"):
        resolve("MW_DivToMul", lambda: store)
    with pytest.raises(UnknownName, match="neither a file nor a run or version"):
        resolve("quite else", lambda: store)


class TestFacts:
    """What compilers and models say of versions, a pair or a side for each cell."""

    @pytest.fixture(autouse=True)
    def runs(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
        """The small lineage twice; the second time it was also timed, on a GPU."""
        monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
        monkeypatch.delenv("PROFILER_DB", raising=False)
        compiled = lineages.dissected(tmp_path)
        timed = tuple(result for result in lineages.results(measured=True) if result.samples)
        zero = tuple(result for result in timed if result.version == "zero")
        measured = lineages.dissected(
            tmp_path, zero, created=lineages.CREATED + timedelta(days=1), gpu="H100"
        )
        return compiled.run_id, measured.run_id

    def pairs(self, *names: str, **choice: Any) -> list[tuple[str, str, str]]:
        """Workload, GPU and evidence of each pair."""
        found = find_fact_pairs(names, open_store, **choice)  # type: ignore[arg-type]
        assert all(a.evidence is b.evidence for a, b in found)
        assert all((a.workload, a.gpu) == (b.workload, b.gpu) for a, b in found)
        return [(b.workload or "", b.gpu or "", b.evidence) for _, b in found]

    def test_versions_pair_in_every_cell_that_both_have_static_ones_first(self) -> None:
        cells = [
            *((f"head dim {size}", arch, "static") for size in (64, 128) for arch in ("sm_80", "sm_90a")),
            ("1x1x8x64", "", "modelled"),
        ]
        assert self.pairs("mine/alpha", "mine/bad") == cells
        assert self.pairs("mine/zero", "mine/alpha") == cells, "one of them alone was measured"
        assert self.pairs("mine/alpha", "mine/bad", evidence=Evidence.MODELLED) == cells[-1:]
        assert self.pairs("mine/alpha", "mine/bad", workload="head dim 64") == cells[:2]
        assert self.pairs("mine/alpha", "mine/bad", gpu="sm_90a") == cells[1:4:2]
        assert self.pairs("mine/alpha", "mine/bad", evidence=Evidence.MEASURED) == []
        assert self.pairs("mine/alpha", "x.ncu-rep") == []

    def test_where_both_were_measured_no_facts_stand_in(self, runs: tuple[str, str]) -> None:
        assert self.pairs("mine/zero", "mine/zero") == []
        assert len(self.pairs("mine/zero", "mine/zero", evidence=Evidence.STATIC)) == 4
        assert self.pairs(f"mine/zero~{runs[1]}", "mine/alpha") == [], "a run shares no cell"
        assert len(self.pairs(f"mine/zero~{runs[0]}", "mine/alpha")) == 5

    def test_nothing_shared_says_what_is(self) -> None:
        with pytest.raises(
            NothingShared, match="share nothing that is static or modelled, b1; they share"
        ) as raised:
            self.pairs("mine/alpha", "mine/bad", workload="b1")
        assert {"modelled 1x1x8x64", "static head dim 128 sm_80"} <= {
            *str(raised.value).split("share ")[2].split(", ")
        }

    def test_the_facts_of_one_version_are_a_side_a_cell(self, runs: tuple[str, str]) -> None:
        sides = find_facts("mine/zero", open_store)
        assert [(side.workload, side.gpu or "") for side in sides] == [
            ("1x1x8x64", ""),
            *((f"head dim {size}", arch) for size in (64, 128) for arch in ("sm_80", "sm_90a")),
        ]
        assert {side.evidence for side in sides} == {Evidence.STATIC, Evidence.MODELLED}
        assert len(find_facts("mine/zero", open_store, workload="head dim 64")) == 2
        assert len(find_facts("mine/zero", open_store, gpu="sm_80")) == 2
        assert find_facts(runs[0], open_store) == find_facts("x.ncu-rep", no_store) == []

    def test_what_was_measured_is_found_and_what_was_not_is_none(self, runs: tuple[str, str]) -> None:
        zero = find_measured("mine/zero", open_store, None, None)
        assert zero is not None
        assert (zero.evidence, zero.gpu, zero.run_id) == (Evidence.MEASURED, "H100", runs[1])
        there = find_measured("mine/zero", open_store, "1x1x8x64", "H100")
        assert there is not None
        assert there.run_id == runs[1]
        for workload, gpu in (("head dim 64", None), (None, "sm_80")):
            assert find_measured("mine/zero", open_store, workload, gpu) is None
        assert find_measured("mine/alpha", open_store, None, None) is None
        assert resolve_measured("mine/zero", open_store).run_id == runs[1]
        with pytest.raises(CannotJudge, match="`profiler collect alpha --full alpha` on a GPU"):
            resolve_measured("mine/alpha", open_store)
        with pytest.raises(CannotJudge, match="it has modelled facts"):
            resolve_measured(f"mine/alpha~{runs[0]}", open_store, workload="1x1x8x64")

    def test_forgotten_runs_among_names_are_told(self, runs: tuple[str, str], tmp_path: Path) -> None:
        forget_run(runs[1], data=str(tmp_path))
        names = [runs[0], f"mine/zero~{runs[1]}", "mine/zero", f"{runs[1]}.ncu-rep"]
        assert list(forgotten_runs(names, open_store)) == [runs[1]]
        assert list(forgotten_runs(["mine/zero"], no_store)) == [], "no name holds a run's id"

    def test_a_version_of_a_run_that_has_none_or_several_names_those_there_are(
        self, runs: tuple[str, str]
    ) -> None:
        with pytest.raises(UnknownName, match=f"run {runs[1]} has no alpha; there are mine/zero"):
            resolve_version(open_store(), f"alpha~{runs[1]}")
        with pytest.raises(UnknownName, match=f"choose one, as in mine/alpha~{runs[0]}"):
            resolve_version(open_store(), runs[0])
        assert resolve_version(open_store(), runs[1]) == ("mine", "zero", runs[1])
        assert resolve_version(open_store(), "zero") == ("mine", "zero", None)
