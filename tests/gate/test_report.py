"""The answer of a gate in words: headings, counts, the times that moved, and kernels judged alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles.location import LocalRoot
from profiler.compare.comparison import compare
from profiler.compare.resolve_names import resolve_all
from profiler.errors import Exit, ProfilerError, UnknownName
from profiler.evidence.metric_table import MetricTable
from profiler.gate.acknowledgement import parse_limit
from profiler.gate.finding import LATENCY, Check, Finding, Outcome, Verdicts
from profiler.gate.report import GateReport, gate_comparisons, run_gate
from profiler.statistics.decision import Interval
from profiler.statistics.verdict import Verdict
from profiler.store.index import Store
from tests.reportfiles.ncu_rep import LaunchResult, ReportFile

PASSED, FAILED, UNJUDGED = Outcome.PASSED, Outcome.FAILED, Outcome.UNJUDGED


def finding(verdict: Verdict, effect: float | None = None, concept: str = LATENCY, **more: Any) -> Finding:
    outcome = FAILED if verdict.traits.fails else PASSED if verdict.traits.decided else UNJUDGED
    plain = Finding(
        Check.REGRESSION,
        outcome,
        verdict,
        "mine/alpha",
        "mine/zero",
        "a line",
        concept=concept,
        effect=effect,
    )
    return replace(plain, **more)


def report(*findings: Finding, compared: int = 1) -> GateReport:
    verdicts = Verdicts(findings, compared)
    return GateReport(verdicts, verdicts.exit_code(), "")


def no_store() -> Store:
    raise AssertionError("files need no index")


def test_a_heading_says_where_and_against_what_unless_that_is_itself() -> None:
    bare = finding(Verdict.SAME, baseline="")
    assert (bare.place, bare.heading) == ("mine/alpha", "mine/alpha")
    full = finding(Verdict.SAME, kernel="gemm", workload="b1", gpu="H100", evidence="measured")
    assert full.place == "mine/alpha · kernel gemm · b1 · H100"
    assert full.heading == f"{full.place} [measured], against mine/zero"
    assert replace(full, baseline="mine/alpha").heading == f"{full.place} [measured]"


def test_a_place_names_what_its_parts_are() -> None:
    built = finding(Verdict.SAME, kernel="main", workload="head dim 64", gpu="sm_80", evidence="static")
    assert built.place == "mine/alpha · kernel main · build: head dim 64 · sm_80"
    modelled = finding(Verdict.SAME, kernel="total", workload="1x2x128x64", evidence="modelled")
    assert modelled.place == "mine/alpha · all kernels · 1x2x128x64"
    assert finding(Verdict.SAME, kernel="total", evidence="measured").place == "mine/alpha · kernel total"


@pytest.mark.parametrize(
    ("verdict", "more", "label"),
    [
        (Verdict.WORSE, {}, "regression"),
        (Verdict.WORSE, {"outcome": Outcome.NOTED}, "time"),
        (Verdict.BETTER, {}, "time"),
        (Verdict.BETTER, {"concept": "inst_executed"}, "counter"),
        (Verdict.UNCLEAR, {"concept": "duration"}, "time"),
        (Verdict.MISSING, {"check": Check.MISSING}, "not compared"),
    ],
)
def test_only_what_got_worse_and_counts_is_labelled_a_regression(
    verdict: Verdict, more: dict[str, Any], label: str
) -> None:
    assert finding(verdict, **more).lines == [f"{label}: a line"]


def test_the_lines_of_a_finding_are_what_is_known_of_it() -> None:
    bare = finding(Verdict.SAME)
    assert bare.lines == ["time: a line"]
    told = replace(
        bare, interval=Interval(-0.01, 0.02), cause="more work", acknowledged="ada", next_command="again"
    )
    assert told.lines[1:] == [
        "interval −1.0 % to +2.0 %",
        "why: more work",
        "acknowledged: ada",
        "next: again",
    ]
    assert replace(told, detectable=0.03, interval_name="95 % interval").lines[1] == (
        "95 % interval −1.0 % to +2.0 %; a change of 3 % would have been found"
    )


def test_times_are_listed_before_the_rest_and_largest_first() -> None:
    count = finding(Verdict.BETTER, -0.9, "inst_executed")
    slower, faster, fastest = (
        finding(Verdict.BETTER, effect, concept)
        for effect, concept in ((0.2, LATENCY), (-0.1, "duration"), (-0.3, LATENCY))
    )
    unknown = finding(Verdict.MISSING)
    verdicts = Verdicts((count, faster, unknown, slower, fastest), 1)
    assert verdicts.times == [slower, faster, fastest, unknown]
    assert verdicts.of(PASSED) == [faster, slower, fastest, count]
    assert verdicts.better == [fastest, faster, slower, count]
    assert verdicts.of(FAILED, UNJUDGED) == [unknown]


def test_one_failure_fails_and_only_what_is_allowed_passes_undecided() -> None:
    same, unclear, missing = (
        finding(verdict) for verdict in (Verdict.SAME, Verdict.UNCLEAR, Verdict.MISSING)
    )
    worse = finding(Verdict.WORSE, 0.1)
    assert Verdicts((same, unclear, worse), 1).exit_code(["unclear"]) is Exit.REGRESSION
    assert Verdicts((same, unclear), 1).exit_code(["unclear"]) is Exit.PASS
    assert Verdicts((unclear, missing), 1).exit_code(["unclear"]) is Exit.UNJUDGED
    assert Verdicts((same,), 0).exit_code() is Exit.UNJUDGED


def test_the_headline_counts_each_outcome_and_what_passed() -> None:
    worse, same = finding(Verdict.WORSE, 0.1), finding(Verdict.SAME)
    noted = finding(Verdict.CHANGED, outcome=Outcome.NOTED)
    assert report(worse, worse, same, noted).headline == (
        "Gate failed: 2 checks failed, 1 passed, 1 informational"
    )
    assert report(compared=0).headline == "Gate could not judge: nothing was compared"
    alone = finding(
        Verdict.MISSING, check=Check.MISSING, outcome=UNJUDGED, is_without_baseline=True, concept=""
    )
    assert report(alone, compared=0).headline == (
        "Gate could not judge: 1 version without a baseline, nothing was compared"
    )
    others = [replace(alone, subject=f"mine/{name}", outcome=Outcome.NOTED) for name in ("beta", "gamma")]
    assert report(same, noted, *others, others[0]).headline == (
        "Gate passed: 1 check passed, 1 informational, 2 versions without a baseline"
    )
    assert (
        report(same, finding(Verdict.UNCLEAR)).headline == "Gate could not judge: 1 check undecided, 1 passed"
    )


def test_the_line_of_times_counts_them_and_names_the_two_that_moved_most() -> None:
    assert report(finding(Verdict.BETTER, -0.5, "inst_executed")).time_line == ""
    assert report(finding(Verdict.SAME, 0.001)).time_line == "Time: 1 same"
    assert report(finding(Verdict.WORSE)).time_line == "Time: 1 worse", "by how much nobody knows"
    one = finding(Verdict.WORSE, 0.1)
    assert report(one).time_line == "Time: 1 worse; most: mine/alpha +10 %"
    between = finding(Verdict.WORSE, 0.05, "duration", kernel="sum")
    faster = finding(Verdict.BETTER, -0.2, "duration", kernel="gemm", workload="b1")
    missing, same = finding(Verdict.MISSING), finding(Verdict.SAME, 0.001)
    assert report(missing, faster, between, one).time_line == (
        "Time: 1 better, 2 worse, 1 missing; most: mine/alpha +10 %, gemm · b1 −20 %"
    )
    assert report(one, between, same).time_line == "Time: 2 worse, 1 same; most: mine/alpha +10 %"


@pytest.mark.parametrize(("text", "share"), [("8 %", 0.08), (" 8% ", 0.08), ("0.5", 0.005), ("150%", 1.5)])
def test_a_limit_is_a_percentage(text: str, share: float) -> None:
    assert parse_limit(text) == pytest.approx(share)


@pytest.mark.parametrize("text", ["0", "-3 %", "much", "%", "nan", "inf"])
def test_a_limit_that_is_no_percentage_above_0_is_refused(text: str) -> None:
    with pytest.raises(ProfilerError, match="is no percentage above 0"):
        parse_limit(text)


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """Two reports that share one kernel; the first has another, and so has the second."""
    paths = []
    for number, (kernels, factor) in enumerate(((("gemm", "sum"), 1.0), (("gemm", "max"), 1.5))):
        launches = [
            LaunchResult(name, f"{name}(int)", f"_Z3{name}i", {"gpu__time_duration.sum": factor * 1e6})
            for name in kernels
        ]
        paths.append(tmp_path / f"{number}.ncu-rep")
        paths[-1].write_bytes(ReportFile(launches).to_bytes())
    return str(paths[0]), str(paths[1])


@pytest.mark.slow
def test_a_kernel_is_judged_alone_where_a_side_has_it(files: tuple[str, str], table: MetricTable) -> None:
    gemm = run_gate([files[1]], files[0], no_store, table, kernel="gemm")
    assert gemm.code is Exit.REGRESSION
    assert [one.effect for one in gemm.verdicts.times] == [pytest.approx(0.5)]
    assert gemm.not_judged == ""
    for kernel in ("sum", "max"):  # of one side alone
        assert run_gate([files[1]], files[0], no_store, table, kernel=kernel).code is Exit.UNJUDGED
    with pytest.raises(UnknownName, match="no kernel matches 'gem_m'") as raised:
        run_gate([files[1]], files[0], no_store, table, kernel="gem_m")
    assert raised.value.option == "--kernel"
    assert {"gemm", "max", "sum"} <= {*str(raised.value).replace(",", "").split()}


def test_sides_that_were_compared_already_are_judged_as_their_names_are(
    files: tuple[str, str], table: MetricTable, tmp_path: Path
) -> None:
    a, b = resolve_all(files, no_store)
    told = gate_comparisons(*files, [compare(a, b, table)], no_store, LocalRoot(tmp_path), table)
    asked = run_gate([files[1]], files[0], no_store, table)
    assert told.code is asked.code is Exit.REGRESSION
    assert [one.line for one in told.verdicts.findings] == [one.line for one in asked.verdicts.findings]
    assert told.baseline == files[0]
    copy = tmp_path / "copy.ncu-rep"
    copy.write_bytes(Path(files[0]).read_bytes())
    (again,) = resolve_all([str(copy)], no_store)
    itself = gate_comparisons(
        files[0], str(copy), [compare(a, again, table)], no_store, LocalRoot(tmp_path), table
    )
    assert itself.code is Exit.UNJUDGED
    assert "is the same result" in itself.verdicts.of(UNJUDGED)[0].line
