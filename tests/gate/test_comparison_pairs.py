"""Which sides the gate compares: what a name stands for, what its baseline is, and what either lacks."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles.location import open_root
from profiler.bundles.run import Result
from profiler.compare.resolve_names import resolve_all
from profiler.errors import CannotJudge, UnknownName
from profiler.evidence.cell import CellFilter
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence
from profiler.gate.comparison_pairs import ComparisonPair, find_pairs, pair_of_sides
from profiler.gate.inventory import Inventory
from profiler.gate.pins import set_baseline
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.readable_index import open_store
from profiler.store.run_decisions import forget_run
from profiler.store.sync import rebuild_index
from tests import lineages

STATIC, MEASURED = Evidence.STATIC, Evidence.MEASURED
DAY = timedelta(days=1)
CHECKED = "1x1x8x64"  # the workload of the CPU's check


def results(**more: Any) -> tuple[Result, ...]:
    """The small lineage on one architecture: enough, and quicker."""
    every = lineages.results(**more)
    return tuple(result for result in every if all(facts.target != "sm_90a" for facts in result.facts))


class Workspace:
    """A data folder with runs of the small lineage, and the index over it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.opened: list[Store] = []

    def run(self, made: tuple[Result, ...] | None = None, day: int = 0, **more: Any) -> str:
        """A sealed run, made so many days after the first; its id."""
        created = lineages.CREATED + day * DAY
        return lineages.dissected(self.folder, made or results(), created=created, **more).run_id

    @property
    def store(self) -> Store:
        """The index, brought up to date."""
        store = open_store(str(self.folder))
        self.opened.append(store)
        return store

    def pin(self, name: str) -> None:
        set_baseline(open_root(str(self.folder)), self.store, lineages.FAMILY, name)

    def forget(self, run_id: str) -> None:
        forget_run(run_id, data=str(self.folder))

    def pairs(
        self, *names: str, against: str | None = None, across: tuple[str, ...] = (), **cells: Any
    ) -> list[ComparisonPair]:
        root, store = open_root(str(self.folder)), self.store
        return find_pairs(names, against, lambda: store, root, CellFilter(**cells), across)

    def sides(self, *names: str) -> list[Side]:
        """What the compiler says of one size of each."""
        store = self.store
        return resolve_all(names, lambda: store, "head dim 64", None, STATIC)

    def pair_of(self, a: Side, b: Side) -> ComparisonPair:
        """The pair of two sides that somebody has resolved already."""
        store = self.store
        return pair_of_sides(a, b, lambda: store, open_root(str(self.folder)))


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Workspace]:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    made = Workspace(tmp_path)
    yield made
    for store in made.opened:
        store.close()


def compared(pairs: list[ComparisonPair]) -> list[ComparisonPair]:
    return [pair for pair in pairs if pair.a and pair.b and not pair.same_results]


def reasons(pairs: list[ComparisonPair], *, noted: bool = False) -> list[str]:
    """Why a side is missing, or nothing was compared."""
    return [pair.why for pair in pairs if pair.why and pair.noted == noted]


def without(*keep_out: Callable[[Result], bool]) -> tuple[Result, ...]:
    """The results of the lineage less those of which one of the tests is true."""
    return tuple(result for result in results() if not any(test(result) for test in keep_out))


def is_alpha(result: Result) -> bool:
    return result.version == "alpha"


class TestBaselineOfRunsAndVersions:
    def test_without_a_baseline_it_is_the_run_before(self, workspace: Workspace) -> None:
        before, after = workspace.run(), workspace.run(day=1)
        pairs = workspace.pairs(after)
        assert {pair.baseline for pair in pairs} == {before}
        assert len(compared([pair for pair in pairs if not pair.rejected_in_run])) == 6, (
            "two versions, of two sizes and one checked workload each"
        )
        assert {pair.subject for pair in pairs if pair.rejected_in_run} == {"mine/bad"}
        assert {pair.a.run_id for pair in pairs if pair.a} == {before}

    def test_without_a_name_it_is_the_newest_run(self, workspace: Workspace) -> None:
        workspace.run()
        after = workspace.run(day=1)
        assert {pair.b.run_id for pair in workspace.pairs() if pair.b} == {after}

    @pytest.mark.slow
    def test_what_is_pinned_comes_before_the_run_before(self, workspace: Workspace) -> None:
        released, _, _ = workspace.run(), workspace.run(day=1), workspace.run(day=2)
        workspace.pin(released)
        for against in (None, "pinned"):
            assert {pair.baseline for pair in workspace.pairs("mine/alpha", against=against)} == {released}

    @pytest.mark.slow
    def test_a_pinned_version_is_held_against_its_last_run_and_not_against_itself(
        self, workspace: Workspace
    ) -> None:
        before, after = workspace.run(), workspace.run(day=1)
        workspace.pin("mine/alpha")
        for name in (after, "mine/alpha"):
            own = [pair for pair in workspace.pairs(name) if pair.subject == "mine/alpha"]
            assert {pair.baseline for pair in compared(own)} == {before}
            assert {pair.baseline_choice for pair in own} == {
                "previous run; these results are what is pinned"
            }
        pairs = workspace.pairs("mine/alpha", against="pinned")
        assert compared(pairs) == []
        assert all("these results are what is pinned" in why for why in reasons(pairs))

    @pytest.mark.slow
    def test_a_pinned_run_that_was_forgotten_is_no_baseline_and_nothing_stands_in_for_it(
        self, workspace: Workspace
    ) -> None:
        released, _, after = (workspace.run(day=day) for day in range(3))
        workspace.pin(released)
        workspace.forget(released)
        with pytest.raises(UnknownName, match="was forgotten: `profiler data forget --undo"):
            workspace.pairs(after, against=released)
        pairs = workspace.pairs(after)
        assert compared(pairs) == []
        assert any("was forgotten" in why for why in reasons(pairs))

    @pytest.mark.slow
    def test_the_parent_is_the_nearest_correct_ancestor(self, workspace: Workspace) -> None:
        workspace.run()
        assert {pair.baseline for pair in workspace.pairs("mine/alpha", against="parent")} == {"mine/zero"}, (
            "bad lies between and is wrong"
        )
        (why,) = {*reasons(workspace.pairs("mine/zero", against="parent"))}
        assert "has no correct ancestor" in why
        run = workspace.run(day=1)
        workspace.pin(run)
        of_zero = [pair for pair in workspace.pairs(run, against="parent") if pair.subject == "mine/zero"]
        assert {pair.noted for pair in of_zero} == {True}, "beside others it weighs nothing"

    def test_nothing_to_compare_with_says_what_to_do(self, workspace: Workspace) -> None:
        workspace.run()
        pairs = workspace.pairs("mine/alpha")
        assert {pair.a for pair in pairs} == {None}
        assert {pair.why for pair in pairs} == {"mine/alpha has no baseline"}
        assert {pair.next_command for pair in pairs} == {"profiler decide baseline set mine RUN_OR_VERSION"}
        assert not any(pair.noted for pair in pairs)

    def test_a_version_of_a_run_is_that_of_the_run_alone(self, workspace: Workspace) -> None:
        before, between, _ = (workspace.run(day=day) for day in range(3))
        pairs = workspace.pairs(f"mine/alpha~{between}")
        assert {pair.subject for pair in pairs} == {"mine/alpha"}
        assert {pair.b.run_id for pair in pairs if pair.b} == {between}
        assert {(pair.baseline, pair.created) for pair in pairs} == {(before, lineages.CREATED + DAY)}

    @pytest.mark.parametrize("name", ["mine/alhpa", "nothing.ncu-rep", ""])
    def test_a_name_that_means_nothing_is_refused_on_both_sides(
        self, workspace: Workspace, name: str
    ) -> None:
        workspace.run()
        for names, against in (((name,), "mine/zero"), (("mine/zero",), name)):
            with pytest.raises(UnknownName):
                workspace.pairs(*names, against=against)

    def test_a_family_stands_for_its_versions_unless_versions_are_called_that(
        self, workspace: Workspace
    ) -> None:
        (one,) = [result for result in results() if is_alpha(result) and result.workload == CHECKED]
        for day, (family, version) in enumerate((("a", "x"), ("b", "x"), ("x", "y"), ("b", "z"))):
            workspace.run((replace(one, family=family, version=version),), day=day)
        assert {pair.subject for pair in workspace.pairs("b")} == {"b/x", "b/z"}
        with pytest.raises(UnknownName, match="a/x"):
            workspace.pairs("x")

    @pytest.mark.slow
    def test_results_of_another_gpu_are_compared_where_that_is_the_question(
        self, workspace: Workspace
    ) -> None:
        measured = tuple(result for result in results(measured=True) if result.samples)
        on_l4, on_h100 = (workspace.run(measured, day=day, gpu=gpu) for day, gpu in enumerate(("L4", "H100")))
        (why,) = {*reasons(workspace.pairs("mine/alpha~" + on_h100, against=on_l4))}
        assert why == f"mine/alpha: no baseline has measured results there; available baselines: {CHECKED} L4"
        for name in ("mine/alpha", "mine/zero"):
            (pair,) = workspace.pairs(f"{name}~{on_h100}", against=on_l4, across=("gpu",))
            assert pair.a
            assert pair.b
            assert (pair.a.gpu, pair.b.gpu, pair.gpu) == ("L4", "H100", "H100")
            assert (pair.a.version, pair.b.version) == (name[5:], name[5:])
        (one,) = [result for result in measured if is_alpha(result)]
        newest = workspace.run((one,), day=3, gpu="B200")
        assert not compared(workspace.pairs(newest, against="mine/zero", across=("gpu",))), "of two GPUs"

    def test_a_cell_that_is_new_weighs_only_where_no_other_of_its_kind_is_shared(
        self, workspace: Workspace
    ) -> None:
        of_alpha = tuple(result for result in results() if is_alpha(result) and result.workload != CHECKED)
        small, large = of_alpha
        other = replace(large, workload="head dim 32")
        shared, lone = workspace.run((small, other)), workspace.run((other,), day=1)
        after = workspace.run(of_alpha, day=2)
        new = [pair for pair in workspace.pairs(after, against=shared) if not pair.a and pair.b]
        assert [(pair.workload, pair.noted) for pair in new] == [("head dim 128", True)]
        new = [pair for pair in workspace.pairs(after, against=lone) if not pair.a and pair.b]
        assert [(pair.workload, pair.noted) for pair in new] == [
            ("head dim 64", False),
            ("head dim 128", False),
        ]
        assert {pair.why.partition("; ")[2] for pair in new} == {"available baselines: head dim 32 sm_80"}

    @pytest.mark.slow
    def test_sides_that_were_resolved_already_are_known_to_the_index(self, workspace: Workspace) -> None:
        before, after = workspace.run(), workspace.run(day=1)
        a, b = workspace.sides(f"mine/alpha~{before}", f"mine/alpha~{after}")
        pair = workspace.pair_of(a, b)
        assert (pair.same_results, pair.rejected) == (False, False)
        assert pair.created == lineages.CREATED + DAY
        (named, *_) = workspace.pairs(f"mine/alpha~{after}", against=before, workload="head dim 64")
        assert pair.rerun_command == named.rerun_command != ""
        assert workspace.pair_of(b, b).same_results
        (bad,) = workspace.sides(f"mine/bad~{after}")
        assert not workspace.pair_of(b, bad).same_results, "two versions of one run"
        assert workspace.pair_of(b, bad).rejected


class TestSameResults:
    """What a mistaken pipeline asks: results cannot be worse than themselves, whatever they are."""

    @pytest.mark.slow
    def test_results_held_against_themselves_have_weight(self, workspace: Workspace) -> None:
        workspace.run()
        run = workspace.run(day=1)
        for name, against in ((run, run), ("mine/alpha", "mine/alpha"), ("mine/alpha", run)):
            pairs = workspace.pairs(name, against=against)
            assert all(pair.same_results and not pair.noted for pair in pairs if pair.a), (name, against)

    def test_the_baseline_in_a_run_that_is_judged_weighs_nothing(self, workspace: Workspace) -> None:
        run = workspace.run()
        pairs = workspace.pairs(run, against="mine/zero", evidence=[STATIC])
        assert {(pair.subject, pair.noted) for pair in pairs if pair.same_results} == {("mine/zero", True)}
        assert len([pair for pair in compared(pairs) if pair.subject == "mine/alpha"]) == 2

    def test_the_best_version_is_as_fast_as_the_best(self, workspace: Workspace) -> None:
        workspace.run(results(measured=True), gpu="H100")
        pairs = workspace.pairs("mine/zero", against="best", evidence=[MEASURED])
        assert [(pair.baseline, pair.same_results) for pair in pairs] == [("mine/zero", False)]


class TestWhatIsMissing:
    def test_a_cell_and_a_version_that_are_gone_are_missed(self, workspace: Workspace) -> None:
        before = workspace.run()
        fewer = without(
            lambda result: result.version == "zero",
            lambda result: is_alpha(result) and result.workload == "head dim 64",
        )
        after = workspace.run(fewer, day=1)
        why = reasons(workspace.pairs(after, against=before))
        assert f"mine/zero is in {before}, not in {after}" in why
        assert f"mine/alpha has no static results here; its baseline {before} has" in why

    def test_a_cell_that_the_pinned_baseline_has_is_missed(self, workspace: Workspace) -> None:
        before = workspace.run()
        after = workspace.run(
            without(lambda result: is_alpha(result) and result.workload == "head dim 64"), day=1
        )
        workspace.pin(before)
        why = reasons(workspace.pairs(after, against="pinned"))
        assert {*why} == {f"mine/alpha has no static results here; its baseline {before} has"}

    def test_what_was_tried_and_gave_nothing_says_why(self, workspace: Workspace) -> None:
        workspace.run()
        broken = Result(lineages.FAMILY, "alpha", CHECKED, status="failed", reason="does not compile")
        run = workspace.run((*without(is_alpha), broken), day=1)
        (pair,) = [pair for pair in workspace.pairs(run) if pair.gave_no_result]
        assert pair.why == "mine/alpha gave no result: does not compile"

    def test_a_version_that_a_run_left_out_is_missing_beside_what_it_compared(
        self, workspace: Workspace
    ) -> None:
        workspace.run()
        left_out = tuple(
            replace(result, status="skipped", reason="no time was left", facts=(), check=None)
            if is_alpha(result)
            else result
            for result in results()
        )
        pairs = workspace.pairs(workspace.run(left_out, day=1))
        assert {pair.subject for pair in compared(pairs) if not pair.rejected_in_run} == {"mine/zero"}
        assert {why.partition(";")[0] for why in reasons(pairs)} == {
            "mine/alpha has no static results here",
            "mine/alpha has no modelled results here",
        }

    @pytest.mark.slow
    def test_what_only_a_gpu_can_tell_may_be_lacking_unless_it_is_asked_for(
        self, workspace: Workspace
    ) -> None:
        before = workspace.run(results(measured=True), gpu="H100")
        after = workspace.run(day=1)
        gap = f"mine/alpha has no measured results here; its baseline {before} has"
        assert gap in reasons(workspace.pairs(after, against=before), noted=True), "a machine without a GPU"
        for kinds in ([MEASURED], [MEASURED, STATIC]):
            assert gap in reasons(workspace.pairs(after, against=before, evidence=kinds))

    def test_a_check_that_is_gone_has_weight(self, workspace: Workspace) -> None:
        """Who built and disassembled a version could have checked it too."""
        before = workspace.run()
        after = workspace.run(without(lambda result: result.workload == CHECKED), day=1)
        why = reasons(workspace.pairs(after, against=before))
        assert f"mine/alpha has no modelled results here; its baseline {before} has" in why

    @pytest.mark.slow
    def test_evidence_that_was_asked_for_and_is_of_nothing_is_missed(self, workspace: Workspace) -> None:
        run, again = workspace.run(), workspace.run(day=1)
        assert run != again
        why = reasons(workspace.pairs(again, evidence=[MEASURED, STATIC]))
        assert f"{again} has no measured results to compare, although --evidence measured was given" in why

    @pytest.mark.slow
    def test_every_name_has_to_be_compared(self, workspace: Workspace) -> None:
        """What passes of one name says nothing of another that the filters left out."""
        workspace.run()
        pairs = workspace.pairs("mine/zero", "mine/alpha", against="mine/alpha")
        assert {pair.subject for pair in compared(pairs)} == {"mine/zero"}
        assert {pair.subject for pair in pairs if not pair.noted and pair.same_results} == {"mine/alpha"}
        pairs = workspace.pairs("mine/alpha", "mine/zero", against="mine/alpha", workload="head dim 46")
        assert reasons(pairs) == [
            f"mine/{name} has no results for --workload head dim 46; "
            f"there are {CHECKED}, head dim 64, head dim 128"
            for name in ("alpha", "zero")
        ]

    def test_a_workload_that_no_version_is_checked_on_any_more_has_no_command_to_collect_it(
        self, workspace: Workspace
    ) -> None:
        """Only a baseline that somebody named misses it, with the command that compares its newest run."""
        gone = [replace(result, workload="gone") for result in results() if result.workload == CHECKED]
        workspace.run((*results(), *(result for result in gone if is_alpha(result))))
        after = workspace.run(day=1)
        (pair,) = [pair for pair in workspace.pairs(after) if pair.workload == "gone"]
        assert (pair.noted, pair.next_command) == (True, "")
        assert pair.why == "no mine version is checked on this workload any more, so nothing is missing there"
        (pair,) = [
            pair for pair in workspace.pairs("mine/zero", against="mine/alpha") if pair.workload == "gone"
        ]
        command = f"profiler gate mine/zero --baseline 'mine/alpha~{after}'"
        assert (pair.noted, pair.next_command) == (False, command)
        named = workspace.pairs("mine/zero", against=f"mine/alpha~{after}")
        assert all(pair.workload != "gone" for pair in named)

    @pytest.mark.slow
    def test_a_check_of_an_older_build_says_nothing_of_the_newest(self, workspace: Workspace) -> None:
        """Built anew and not checked: the version's newest check is of another source."""
        workspace.run()
        checked = workspace.run(day=1)
        unchecked = tuple(
            replace(result, source_sha256="new")
            for result in without(lambda result: result.workload == CHECKED)
        )
        workspace.run(unchecked, day=2)
        (why,) = reasons(workspace.pairs("mine/alpha"))
        assert f"modelled results there are of an older build ({checked})" in why
        assert reasons(workspace.pairs("mine/alpha", evidence=[STATIC])) == []

    @pytest.mark.slow
    def test_a_workload_that_the_problem_no_longer_has_is_missed_from_no_version(
        self, workspace: Workspace
    ) -> None:
        checked = [result for result in results() if result.workload == CHECKED]
        both = (*results(), *(replace(result, workload="1x1x16x64") for result in checked))
        fewer = tuple(replace(result, source_sha256="new") for result in both if result.workload != CHECKED)
        workspace.run(both)
        newest = workspace.run(fewer, day=1)
        for name in (newest, "mine"):
            gaps = [pair for pair in workspace.pairs(name) if pair.workload == CHECKED and not pair.rejected]
            assert gaps, name
            assert all(pair.noted for pair in gaps), name
        # Where another version still has it, the problem does.
        zero = tuple(replace(result, source_sha256="new") for result in checked if result.version == "zero")
        last = workspace.run((*fewer, *zero), day=2)
        gaps = [pair for pair in workspace.pairs(last) if pair.workload == CHECKED and pair.b is None]
        assert {pair.subject for pair in gaps if not pair.noted} == {"mine/alpha"}


class TestWhichRunIsTheNewest:
    """A gate must not pass by results that are out of date."""

    def test_an_empty_index_says_how_to_fill_it(self, workspace: Workspace) -> None:
        with pytest.raises(UnknownName, match="profiler import"):
            workspace.pairs()

    def test_a_newest_run_that_cannot_be_read_is_not_passed_over(self, workspace: Workspace) -> None:
        _, _, newest = (workspace.run(day=day) for day in range(3))
        (workspace.folder / "runs" / newest / "run.json").write_text("{")
        with pytest.raises(UnknownName, match=newest):
            workspace.pairs()

    @pytest.mark.slow
    def test_a_run_that_cannot_be_read_may_be_the_newest_of_a_version_and_its_baseline(
        self, workspace: Workspace
    ) -> None:
        oldest, first, between, last, newest = (workspace.run(day=day) for day in range(5))
        (workspace.folder / "runs" / oldest / "run.json").write_text("{")  # older than what is compared
        for damaged in (newest, between):  # the subject, and what would be its baseline
            (workspace.folder / "runs" / damaged / "run.json").write_text("{")
            rebuild_index(str(workspace.folder))
            with pytest.raises(
                UnknownName, match=f"{damaged}, which may be .* profiler data forget {damaged}"
            ):
                workspace.pairs("mine/alpha")
            workspace.forget(damaged)
        pairs = workspace.pairs("mine/alpha")
        assert {(pair.baseline, pair.b.run_id) for pair in compared(pairs) if pair.b} == {(first, last)}

    @pytest.mark.slow
    def test_a_run_from_the_future_does_not_hide_what_comes_after_it(self, workspace: Workspace) -> None:
        before = workspace.run()
        ahead = lineages.dissected(
            workspace.folder, results(), created=datetime.now(UTC).replace(microsecond=0) + 9 * DAY
        ).run_id
        worse = workspace.run(day=1)
        for names in ((), ("mine/alpha",)):
            with pytest.raises(CannotJudge, match=f"made in the future .* profiler data forget {ahead}"):
                workspace.pairs(*names)
        assert {pair.baseline for pair in compared(workspace.pairs(worse))} == {before}
        workspace.forget(ahead)
        assert {pair.baseline for pair in compared(workspace.pairs("mine/alpha"))} == {before}

    @pytest.mark.slow
    def test_of_two_runs_of_the_same_moment_nobody_knows_the_newer(self, workspace: Workspace) -> None:
        a, b = workspace.run(), workspace.run(lines=False)
        for name in (a, b, "mine/alpha"):
            pairs = workspace.pairs(name)
            assert compared(pairs) == []
            assert all("have the same time, so the newer one is unknown" in why for why in reasons(pairs))
        assert compared(workspace.pairs(a, against=b)) != []


class TestReports:
    """Plain files, made by the tests; two need no index."""

    @pytest.fixture
    def report_paths(self, made_reports: Path) -> tuple[str, str]:
        return tuple(str(made_reports / f"ncar/MW_{name}.ncu-rep") for name in ("Baseline", "DivToMult"))  # type: ignore[return-value]

    @pytest.mark.slow
    def test_a_file_beside_a_file(self, workspace: Workspace, report_paths: tuple[str, str]) -> None:
        (pair,) = workspace.pairs(report_paths[1], against=report_paths[0])
        assert (pair.baseline, pair.subject, pair.evidence) == (*report_paths, "measured")
        assert (pair.rerun_command, pair.diff_names) == ("", None)

    def test_a_workload_selects_among_versions_and_nothing_among_files(
        self, workspace: Workspace, report_paths: tuple[str, str]
    ) -> None:
        with pytest.raises(UnknownName, match="--workload b1"):
            workspace.pairs(report_paths[1], against=report_paths[0], workload="b1")
        workspace.run()
        pairs = workspace.pairs(report_paths[1], "mine/alpha", against="mine/zero", workload="head dim 64")
        assert {pair.subject for pair in pairs} == {report_paths[1], "mine/alpha"}

    def test_a_file_needs_a_baseline(self, workspace: Workspace, report_paths: tuple[str, str]) -> None:
        with pytest.raises(UnknownName, match=r"\.ncu-rep is a report file: name its baseline with"):
            workspace.pairs(report_paths[1])
        with pytest.raises(UnknownName, match=r"^mistyped\.ncu-rep: no such file$"):
            workspace.pairs("mistyped.ncu-rep")

    @pytest.mark.parametrize("cells", [{"gpu": "NVIDIA L4"}, {"evidence": [STATIC]}])
    def test_a_filter_that_leaves_a_file_out_compares_nothing(
        self, workspace: Workspace, report_paths: tuple[str, str], cells: dict[str, Any]
    ) -> None:
        (pair,) = workspace.pairs(report_paths[1], against=report_paths[0], **cells)
        assert (pair.a, pair.b) == (None, None)
        assert "which was not requested" in pair.why

    @pytest.mark.slow
    def test_a_copy_of_the_baseline_is_no_new_report(
        self, workspace: Workspace, report_paths: tuple[str, str], tmp_path: Path
    ) -> None:
        """Two captures are never equal byte by byte: a step of the pipeline brought the old one."""
        copy = str(shutil.copy(report_paths[1], tmp_path / "copy.ncu-rep"))
        import_paths([Path(report_paths[1])], data=str(workspace.folder), family="ncar")
        for a, b in ((report_paths[1], copy), ("ncar/MW_DivToMult", copy), (copy, "ncar/MW_DivToMult")):
            pairs = workspace.pairs(b, against=a)
            assert compared(pairs) == []
            assert all(pair.same_results and not pair.noted for pair in pairs), (a, b)

    @pytest.mark.slow
    def test_an_imported_report_is_what_the_file_is_and_no_command_could_collect_it(
        self, workspace: Workspace, report_paths: tuple[str, str]
    ) -> None:
        import_paths([Path(name) for name in report_paths], data=str(workspace.folder))
        (pair,) = workspace.pairs("ncar/MW_DivToMult", against="ncar/MW_Baseline")
        (of_files,) = workspace.pairs(report_paths[1], against=report_paths[0])
        assert pair.a
        assert of_files.a
        assert [launch.function for launch in pair.a.launches] == [
            launch.function for launch in of_files.a.launches
        ]
        assert pair.rerun_command == ""

    @pytest.mark.slow
    def test_a_family_stands_for_all_its_versions_and_the_newest_run_says_what_is_beside_it(
        self, workspace: Workspace, report_paths: tuple[str, str]
    ) -> None:
        import_paths([Path(name) for name in report_paths], data=str(workspace.folder), family="mw")
        pairs = workspace.pairs("mw", against="mw/MW_Baseline")
        assert [pair.subject for pair in pairs] == ["mw/MW_Baseline", "mw/MW_DivToMult"]
        assert [pair.same_results for pair in pairs] == [True, False]
        inventory = Inventory(workspace.store, open_root(str(workspace.folder)))
        assert inventory.beside_newest_import() == ("mw", 1)
        with pytest.raises(UnknownName):
            workspace.pairs("mx")
