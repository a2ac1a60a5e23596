"""The gate: what fails it, what nobody could judge, what it says and by which exit code."""

from __future__ import annotations

import csv
import json
import re
import shutil
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from profiler.bundles import COLLECT, Facts, Result, Run, Samples, bundle, decisions, location
from profiler.cli import main, parser
from profiler.errors import Exit
from profiler.evidence import Evidence, Value
from profiler.gate import judgement
from tests import lineages, made, timed_runs
from tests.toolchain import needs_gxx, needs_sass

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
LATER = lineages.CREATED + timedelta(days=1)


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    return tmp_path


def gate(capsys: pytest.CaptureFixture[str], *arguments: str, code: int) -> dict[str, Any]:
    assert main(["gate", *arguments, "--json"]) == code
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert answer["exit_code"] == code
    return answer


def lines(answer: dict[str, Any], outcome: str) -> list[str]:
    return [one["line"] for one in answer["findings"] if one["outcome"] == outcome]


def changed(version: str, evidence: Evidence, **values: float | str | None) -> tuple[Result, ...]:
    """The results of the small lineage with some facts of one version moved; None takes a fact out."""
    found = []
    for result in lineages.results():
        moved = []
        for facts in result.facts:
            now = dict(facts.values)
            if result.version == version and facts.evidence is evidence:
                for name, content in values.items():
                    now.pop(name, None)
                    if isinstance(content, str):
                        now[name] = Value(None, text=content)
                    elif content is not None:
                        now[name] = Value(content)
            moved.append(Facts(facts.evidence, facts.part, now, facts.target, facts.mode, facts.opcodes))
        found.append(replace(result, facts=tuple(moved)))
    return tuple(found)


def test_results_held_against_themselves_are_nothing_compared(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What a mistaken pipeline asks: they cannot be worse, whatever they are."""
    lineages.dissected(data)
    spilling = changed("alpha", Evidence.STATIC, static__spill_bytes=80)
    run = lineages.dissected(data, spilling, created=LATER).run_id
    for names in ((run, run), ("mine/alpha", "mine/alpha"), ("mine/alpha", run)):
        answer = gate(capsys, names[0], "--baseline", names[1], code=Exit.UNJUDGED)
        assert answer["compared"] == 0
        assert all("held against itself" in line for line in lines(answer, "unjudged"))


def test_the_baseline_in_a_run_that_is_judged_weighs_nothing(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = lineages.dissected(data, changed("alpha", Evidence.STATIC, static__registers=40)).run_id
    answer = gate(capsys, run, "--baseline", "mine/zero", "--evidence=static", code=Exit.PASS)
    assert answer["compared"] == 4
    told = [one for one in answer["findings"] if "held against itself" in one["line"]]
    assert {(one["subject"], one["outcome"]) for one in told} == {("mine/zero", "noted")}


@pytest.mark.parametrize("took_ns", [0.0, -5000.0])
def test_a_launch_that_took_no_time_is_missing_and_no_unclear_one_that_may_pass(
    reports: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], took_ns: float
) -> None:
    before = reports / "ncar" / "MW_Baseline.ncu-rep"
    after = made.lasting(before, 11360.0, took_ns, tmp_path / "reports" / "after.ncu-rep")
    held = (str(after), "--baseline", str(before), "--allow", "unclear")
    answer = gate(capsys, *held, code=Exit.UNJUDGED)
    (told,) = [one for one in answer["findings"] if one["outcome"] == "unjudged"]
    assert (told["verdict"], told["concept"]) == ("missing", "duration")
    assert "failed in B" in told["line"]
    assert main(["import", str(before), str(after)]) == 0
    capsys.readouterr()
    versions = ("reports/after", "--baseline", "ncar/MW_Baseline", "--allow", "unclear")
    assert gate(capsys, *versions, code=Exit.UNJUDGED)["verdict"] == "unjudged"


def test_the_same_build_again_is_no_regression(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    again = lineages.dissected(data, created=LATER)
    answer = gate(capsys, again.run_id, code=Exit.PASS)  # without --baseline: against the run before
    assert answer["compared"] == 10, "two versions on four architectures and sizes, and one checked workload"
    noted = [one for one in answer["findings"] if one["outcome"] == "noted"]
    assert [one["subject"] for one in noted] == ["mine/bad"], "rejected on purpose, and in the run"
    assert {one["outcome"] for one in answer["findings"]} == {"noted", "passed"}


@pytest.mark.parametrize(
    ("evidence", "fact", "before", "after", "line"),
    [
        (Evidence.STATIC, "static__opcode_BAR", 3, 4, "barriers: 3 → 4"),
        (Evidence.STATIC, "static__registers", 64, 84, "registers: 64 → 84"),
        (Evidence.STATIC, "static__spill_bytes", 0, 8, "spills: 0 → 8 B"),
        (Evidence.STATIC, "static__blocks_per_sm", 4, 3, "blocks per SM: 4 → 3"),
        (Evidence.MODELLED, "modelled__bank_conflicts", 4000, 8000, "modelled bank conflicts: 4000 → 8000"),
    ],
)
def test_a_fact_that_got_worse_fails_with_the_line_that_names_it(
    data: Path,
    capsys: pytest.CaptureFixture[str],
    evidence: Evidence,
    fact: str,
    before: int,
    after: int,
    line: str,
) -> None:
    lineages.dissected(data, changed("alpha", evidence, **{fact: before}))
    lineages.dissected(data, changed("alpha", evidence, **{fact: after}), created=LATER)
    answer = gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    assert line in lines(answer, "failed")
    before_that, after_that = sorted(run.name for run in (data / "runs").iterdir())
    gate(capsys, before_that, "--baseline", after_that, code=Exit.PASS)


def test_what_is_over_its_budget_fails_although_the_baseline_was_too(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    over = changed("alpha", Evidence.STATIC, static__over_budget="72 registers, budget 64")
    run = lineages.dissected(data, over)
    answer = gate(capsys, "mine/alpha", "--baseline", run.run_id, code=Exit.REGRESSION)
    assert lines(answer, "failed") == ["over its budget, as the baseline is: 72 registers, budget 64"]
    assert {one["check"] for one in answer["findings"] if one["outcome"] == "failed"} == {"budget"}


def test_a_version_that_became_wrong_fails_once(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    lineages.dissected(data, lineages.results(alpha="wrong"), created=LATER)
    answer = gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    assert lines(answer, "failed") == ["wrong: race at k.cu:6 in alpha"]
    assert answer["findings"][0]["check"] == "correctness"


def test_a_wrong_version_asked_for_by_name_never_passes(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = lineages.dissected(data)
    gate(capsys, "mine/bad", "--baseline", "mine/zero", code=Exit.REGRESSION)
    gate(capsys, "mine/bad", "--baseline", run.run_id, code=Exit.UNJUDGED)


def test_a_fact_that_the_baseline_has_and_the_subject_lacks_is_missing(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data)
    lineages.dissected(data, changed("alpha", Evidence.STATIC, static__spill_bytes=None), created=LATER)
    answer = gate(capsys, "mine/alpha", code=Exit.UNJUDGED)
    assert lines(answer, "unjudged") == ["spills: not known, where the baseline has a number"]
    silent = changed("alpha", Evidence.STATIC, static__over_budget=None)
    lineages.dissected(data, silent, created=LATER + timedelta(days=1))
    answer = gate(capsys, "mine/alpha", "--baseline=mine/zero", "--evidence=static", code=Exit.REGRESSION)
    assert lines(answer, "unjudged") == ["the budget: not known, where the baseline says it"]
    gate(capsys, "mine/alpha", "--allow", "unclear", code=Exit.UNJUDGED)


def test_a_cell_and_a_version_that_are_gone_are_missing(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data)
    fewer = tuple(
        result
        for result in lineages.results()
        if result.version != "zero" and not (result.version == "alpha" and result.workload == "head dim 64")
    )
    before, after = sorted(run.name for run in (data / "runs").iterdir()), None
    lineages.dissected(data, fewer, created=LATER)
    after = max(run.name for run in (data / "runs").iterdir())
    answer = gate(capsys, after, "--baseline", before[0], code=Exit.UNJUDGED)
    told = "\n".join(lines(answer, "unjudged"))
    assert f"mine/zero is in {before[0]}, not in {after}" in told
    assert "nothing static of mine/alpha" in told


def test_what_was_tried_and_gave_nothing_fails(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    broken = Result(lineages.FAMILY, "alpha", "1x1x8x64", status="failed", reason="does not compile")
    rest = tuple(one for one in lineages.results() if one.version != "alpha")
    run = lineages.dissected(data, (*rest, broken), created=LATER)
    answer = gate(capsys, run.run_id, code=Exit.REGRESSION)
    assert "mine/alpha gave no result: does not compile" in lines(answer, "failed")


def test_what_somebody_acknowledged_passes_until_its_day_and_is_listed(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data, changed("alpha", Evidence.STATIC, static__opcode_BAR=3))
    lineages.dissected(data, changed("alpha", Evidence.STATIC, static__opcode_BAR=4), created=LATER)
    gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    about = ["acknowledge", "mine/alpha", "--concept", "static_bar", "--why", "a phase more"]
    values = {"family": "mine", "version": "alpha", "concept": "static_bar", "until_day": "2001-01-01"}
    decisions.write_decision(
        location.open_root(), decisions.ACKNOWLEDGE, "mine/alpha", values, why="known", who="ada"
    )
    answer = gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    ended = "not any more: its last day, 2001-01-01, is over (ada, until 2001-01-01: known)"
    assert ended in [one["acknowledged"] for one in answer["findings"]]
    assert main(about) == 0
    capsys.readouterr()
    answer = gate(capsys, "mine/alpha", code=Exit.PASS)
    assert lines(answer, "acknowledged") == ["barriers: 3 → 4"], "once, with both sizes and chips"
    assert main(["gate", "mine/alpha", "--markdown"]) == Exit.PASS
    assert "a phase more" in capsys.readouterr().out
    assert main(["acknowledge", "mine/alpha", "--concept", "static_spills", "--why", "other"]) == 0


def test_an_acknowledgement_with_a_limit_lets_no_larger_change_pass(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data, changed("alpha", Evidence.MODELLED, modelled__bank_conflicts=1000))
    worse = changed("alpha", Evidence.MODELLED, modelled__bank_conflicts=1100)
    lineages.dissected(data, worse, created=LATER)
    about = ["acknowledge", "mine/alpha", "--concept", "modelled_conflicts", "--why", "known"]
    assert main([*about, "--up-to", "9%"]) == 0
    capsys.readouterr()
    answer = gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    assert "up to 9 %" in next(one["acknowledged"] for one in answer["findings"] if one["acknowledged"])
    assert main([*about, "--up-to", "10"]) == 0
    capsys.readouterr()
    gate(capsys, "mine/alpha", code=Exit.PASS)
    with pytest.raises(SystemExit) as refused:
        main([*about, "--up-to", "0%"])
    assert refused.value.code == Exit.UNUSABLE_INPUT


def test_a_pinned_baseline_is_what_counts_without_a_name(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = lineages.dissected(data, changed("alpha", Evidence.STATIC, static__opcode_BAR=3))
    lineages.dissected(data, changed("alpha", Evidence.STATIC, static__opcode_BAR=4), created=LATER)
    newest = timedelta(days=2) + lineages.CREATED
    lineages.dissected(data, changed("alpha", Evidence.STATIC, static__opcode_BAR=4), created=newest)
    gate(capsys, "mine/alpha", code=Exit.PASS)
    assert main(["baseline", "set", "mine", run.run_id, "--why", "released"]) == 0
    capsys.readouterr()
    answer = gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    assert {one["baseline"] for one in answer["findings"]} == {run.run_id}
    gate(capsys, "mine/alpha", "--baseline", "pinned", code=Exit.REGRESSION)


def test_a_pinned_version_is_held_against_its_last_run_and_not_against_itself(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lineages.dissected(data, changed("alpha", Evidence.STATIC, static__opcode_BAR=3)).run_id
    worse = lineages.dissected(
        data, changed("alpha", Evidence.STATIC, static__opcode_BAR=4), created=LATER
    ).run_id
    main(["baseline", "set", "mine", "mine/alpha", "--why", "released"])
    capsys.readouterr()
    for name in (worse, "mine/alpha"):
        answer = gate(capsys, name, code=Exit.REGRESSION)
        failed = [one for one in answer["findings"] if one["line"] == "barriers: 3 → 4"]
        assert {one["baseline"] for one in failed} == {before}
    answer = gate(capsys, "mine/alpha", "--baseline", "pinned", code=Exit.UNJUDGED)
    assert "these results are what is pinned" in lines(answer, "unjudged")[0]


def test_nothing_to_compare_with_is_never_a_pass(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    answer = gate(capsys, "mine/alpha", code=Exit.UNJUDGED)
    assert answer["compared"] == 0
    assert answer["headline"].endswith("nothing was compared")
    assert "profiler baseline set mine" in answer["findings"][0]["next"]
    gate(capsys, "mine/zero", "--baseline", "parent", code=Exit.UNJUDGED)


def test_the_parent_is_the_nearest_correct_ancestor(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    answer = gate(capsys, "mine/alpha", "--baseline", "parent", code=Exit.REGRESSION)
    assert {one["baseline"] for one in answer["findings"]} == {"mine/zero"}, "bad lies between and is wrong"


def test_a_new_version_that_is_wrong_or_over_its_budget_fails_without_a_baseline(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data, tuple(one for one in lineages.results() if one.version != "alpha"))
    run = lineages.dissected(data, lineages.results(alpha="wrong"), created=LATER)
    for name in (run.run_id, "mine/alpha"):
        answer = gate(capsys, name, code=Exit.REGRESSION)
        assert lines(answer, "failed") == ["wrong: race at k.cu:6 in alpha"], name
    over = changed("alpha", Evidence.STATIC, static__over_budget="72 registers, budget 64")
    run = lineages.dissected(data, over, created=LATER + timedelta(days=1))
    main(["forget", min(path.name for path in (data / "runs").iterdir())])
    capsys.readouterr()
    answer = gate(capsys, run.run_id, "--baseline", "parent", code=Exit.REGRESSION)
    assert "over its budget: 72 registers, budget 64" in lines(answer, "failed")


def test_what_stays_wrong_stays_a_failure(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data, lineages.results(alpha="wrong"))
    run = lineages.dissected(data, lineages.results(alpha="wrong"), created=LATER)
    answer = gate(capsys, run.run_id, code=Exit.REGRESSION)
    assert lines(answer, "failed") == ["wrong, as its baseline is: race at k.cu:6 in alpha"]


def test_a_rejected_version_that_the_check_lets_through_fails(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data)
    missed = tuple(
        replace(one, status="done", reason=None) if one.version == "bad" else one
        for one in lineages.results()
    )
    run = lineages.dissected(data, missed, created=LATER)
    answer = gate(capsys, run.run_id, code=Exit.REGRESSION)
    assert [one["subject"] for one in answer["findings"] if one["outcome"] == "failed"] == ["mine/bad"]
    assert "not caught" in lines(answer, "failed")[0]


def test_a_kind_of_evidence_that_is_gone_is_told_and_never_passes_where_it_was_asked_for(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lineages.dissected(data, lineages.results(measured=True), gpu="H100").run_id
    after = lineages.dissected(data, created=LATER).run_id
    answer = gate(capsys, after, "--baseline", before, code=Exit.PASS)
    assert "nothing measured of mine/alpha" in "\n".join(lines(answer, "noted")), "a machine without a GPU"
    for kinds in (("measured",), ("measured", "static")):
        options = [f"--evidence={kind}" for kind in kinds]
        answer = gate(capsys, after, "--baseline", before, *options, code=Exit.UNJUDGED)
        assert "nothing measured of mine/alpha" in "\n".join(lines(answer, "unjudged"))
    gate(capsys, after, "--baseline", after, "--evidence=measured", "--evidence=static", code=Exit.UNJUDGED)
    unchecked = tuple(one for one in lineages.results() if one.workload != "1x1x8x64")
    last = lineages.dissected(data, unchecked, created=LATER + timedelta(days=1)).run_id
    answer = gate(capsys, last, "--baseline", after, code=Exit.UNJUDGED)
    assert any(line.startswith("nothing modelled of mine/alpha") for line in lines(answer, "unjudged"))


def test_every_name_has_to_be_compared(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What passes of one name says nothing of another that met no baseline, or that the filters left out."""
    lineages.dissected(data)
    answer = gate(capsys, "mine/zero", "mine/alpha", "--baseline", "mine/alpha", code=Exit.UNJUDGED)
    assert {one["subject"] for one in answer["findings"] if one["outcome"] == "unjudged"} == {"mine/alpha"}
    both = ("mine/alpha", "mine/zero", "--baseline")
    answer = gate(capsys, *both, "parent", "--allow=unclear", "--evidence=modelled", code=Exit.REGRESSION)
    assert any("has no correct ancestor" in line for line in lines(answer, "unjudged"))
    answer = gate(capsys, *both, "mine/alpha", "--workload", "head dim 46", code=Exit.UNJUDGED)
    assert lines(answer, "unjudged") == [
        f"nothing that is head dim 46 of mine/{name} was compared" for name in ("alpha", "zero")
    ]


def test_a_run_that_was_forgotten_is_no_baseline(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = lineages.dissected(data).run_id
    lineages.dissected(data, created=LATER)
    after = lineages.dissected(data, created=LATER + timedelta(days=1)).run_id
    main(["baseline", "set", "mine", before, "--why", "released"])
    main(["forget", before])
    capsys.readouterr()
    assert main(["gate", after, "--baseline", before]) == Exit.UNUSABLE_INPUT
    assert "was forgotten: `profiler forget --undo" in capsys.readouterr().err
    answer = gate(capsys, after, code=Exit.UNJUDGED)
    assert any("was forgotten" in line for line in lines(answer, "unjudged")), "nothing stands in for it"


def test_a_cell_that_the_pinned_baseline_has_is_missed(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lineages.dissected(data).run_id
    fewer = tuple(
        one for one in lineages.results() if (one.version, one.workload) != ("alpha", "head dim 64")
    )
    after = lineages.dissected(data, fewer, created=LATER).run_id
    main(["baseline", "set", "mine", before, "--why", "released"])
    capsys.readouterr()
    answer = gate(capsys, after, "--baseline", "pinned", code=Exit.UNJUDGED)
    assert lines(answer, "unjudged") == [f"nothing static of mine/alpha, where {before} has it"]


def test_a_newest_run_that_cannot_be_read_is_not_passed_over(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data)
    lineages.dissected(data, created=LATER)
    newest = lineages.dissected(data, created=LATER + timedelta(days=1)).run_id
    (data / "runs" / newest / "run.json").write_text("{")
    assert main(["gate"]) == Exit.UNUSABLE_INPUT
    assert newest in capsys.readouterr().err


def test_a_run_that_cannot_be_read_may_be_the_newest_of_a_version_too(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data)
    between = lineages.dissected(data, created=LATER).run_id
    last = lineages.dissected(data, created=LATER + timedelta(days=1)).run_id
    newest = lineages.dissected(data, created=LATER + timedelta(days=2)).run_id
    for damaged in (newest, between):  # the subject, and what would be its baseline
        (data / "runs" / damaged / "run.json").write_text("{")
        assert main(["index", "--rebuild"]) == Exit.UNUSABLE_INPUT
        capsys.readouterr()
        assert main(["gate", "mine/alpha"]) == Exit.UNUSABLE_INPUT
        told = capsys.readouterr().err.splitlines()[-1]
        assert damaged in told
        assert f"profiler forget {damaged}" in told
        assert main(["forget", damaged]) == 0
        capsys.readouterr()
        assert gate(capsys, "mine/alpha", code=Exit.PASS)["compared"] == 5
    assert {one["baseline"] for one in gate(capsys, last, code=Exit.PASS)["findings"]} - {between, ""}


def test_a_run_from_the_future_does_not_hide_what_comes_after_it(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data)
    ahead = lineages.dissected(data, created=datetime.now(UTC).replace(microsecond=0) + timedelta(days=9))
    worse = changed("alpha", Evidence.STATIC, static__spill_bytes=80)
    worse_run = lineages.dissected(data, worse, created=LATER).run_id
    for names in ([], ["mine/alpha"]):
        assert main(["gate", *names]) == Exit.UNJUDGED
        assert f"profiler forget {ahead.run_id}" in capsys.readouterr().err
    gate(capsys, worse_run, code=Exit.REGRESSION)
    main(["forget", ahead.run_id])
    capsys.readouterr()
    gate(capsys, "mine/alpha", code=Exit.REGRESSION)


@pytest.mark.parametrize("worse_first", [True, False])
def test_of_two_runs_of_the_same_moment_nobody_knows_the_newer(
    data: Path, capsys: pytest.CaptureFixture[str], worse_first: bool
) -> None:
    worse = changed("alpha", Evidence.STATIC, static__spill_bytes=80)
    first, second = (worse, None) if worse_first else (None, worse)
    a = lineages.dissected(data, first).run_id
    b = lineages.dissected(data, second, lines=False).run_id
    for name in (a, b, "mine/alpha"):
        answer = gate(capsys, name, code=Exit.UNJUDGED)
        assert any("say the same time" in line for line in lines(answer, "unjudged"))
    gate(capsys, a, "--baseline", b, code=Exit.REGRESSION if worse_first else Exit.PASS)


def test_a_version_that_a_run_left_out_is_missing_beside_what_it_compared(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data)
    left_out = tuple(
        replace(one, status="skipped", reason="no time was left", facts=(), check=None)
        if one.version == "alpha"
        else one
        for one in lineages.results()
    )
    run = lineages.dissected(data, left_out, created=LATER).run_id
    answer = gate(capsys, run, code=Exit.UNJUDGED)
    assert answer["compared"] == 5
    assert {line.partition(",")[0] for line in lines(answer, "unjudged")} == {
        "nothing static of mine/alpha",
        "nothing modelled of mine/alpha",
    }


def test_a_check_of_an_older_build_says_nothing_of_the_newest(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Built anew and not checked: the version's newest check is of another source."""
    lineages.dissected(data)
    checked = lineages.dissected(data, created=LATER).run_id
    unchecked = tuple(
        replace(one, source_sha256="new") for one in lineages.results() if one.workload != "1x1x8x64"
    )
    lineages.dissected(data, unchecked, created=LATER + timedelta(days=1))
    answer = gate(capsys, "mine/alpha", code=Exit.UNJUDGED)
    (line,) = lines(answer, "unjudged")
    assert f"modelled results there are of an older build ({checked})" in line
    gate(capsys, "mine/alpha", "--evidence=static", code=Exit.PASS)


def test_a_concept_asked_for_that_nothing_compared_carries_never_passes(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data)
    lineages.dissected(data, created=LATER)
    answer = gate(capsys, "mine/alpha", "--on=dram_read", code=Exit.UNJUDGED)
    assert lines(answer, "unjudged") == [
        "dram_read was asked for, and nothing measured that could carry it was compared"
    ]
    gate(capsys, "mine/alpha", "--on=static_spills", code=Exit.PASS)


def test_a_fact_that_turned_into_a_text_is_missing(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    lineages.dissected(data, changed("alpha", Evidence.STATIC, static__spill_bytes="0"), created=LATER)
    answer = gate(capsys, "mine/alpha", code=Exit.UNJUDGED)
    assert lines(answer, "unjudged") == ["spills: not known, where the baseline has a number"]


def test_a_page_of_many_versions_has_a_row_for_each(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = lineages.dissected(data).run_id
    worse = changed("alpha", Evidence.STATIC, static__spill_bytes=8)
    lineages.dissected(data, worse, created=LATER)
    assert main(["gate", "--markdown", "--link", "https://a.example"]) == Exit.REGRESSION
    page = capsys.readouterr().out
    assert f"Baseline: [`{before}`](https://a.example/runs?run={before})" in page
    rows = [line for line in page.splitlines() if line.startswith("| ") and "alpha" in line]
    assert len(rows) == 1
    assert "spills: 0 → 8 B" in rows[0]
    assert before not in rows[0]


def test_names_that_mean_nothing_are_unusable_input(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    for arguments in (
        ["mine/alhpa", "--baseline", "mine/zero"],
        ["mine/alpha", "--baseline", "mine/zeero"],
        ["nothing.ncu-rep", "--baseline", "mine/zero"],
        ["", "--baseline", "mine/zero"],
        ["mine/alpha", "--baseline", ""],
        ["mine/alpha", "--on", "durration"],
        ["mine/alpha", "--out", "gate.pdf"],
        ["mine/alpha", "--out", "nowhere/gate.md"],
    ):
        assert main(["gate", *arguments]) == Exit.UNUSABLE_INPUT, arguments
        assert capsys.readouterr().err.count("\n") == 1


def test_an_empty_index_says_how_to_fill_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["gate"]) == Exit.UNUSABLE_INPUT
    assert "profiler import" in capsys.readouterr().err


class TestLatencies:
    """Calls timed in alternating rounds of one run, and in two runs."""

    def collected(self, data: Path, minute: int, **factors: float) -> str:
        """A run in which each version takes so many times a millisecond; its rounds share their states."""
        state = np.repeat(1 + 0.05 * np.random.default_rng(minute).random(25), 4)
        rounds = tuple(int(one) for one in np.repeat(np.arange(25), 4))
        results = []
        for seed, (version, factor) in enumerate(factors.items()):
            jitter = np.exp(np.random.default_rng([minute, seed]).normal(0, 0.004, 100))
            samples = Samples("events; cache warm; clock none", tuple(1e6 * factor * state * jitter), rounds)
            results.append(Result("mine", version, "1x8x512x64", source_sha256="abc", samples=(samples,)))
        created = lineages.CREATED + timedelta(minutes=minute)
        run_id = f"20260102T03{minute:02}00-mine-collect-{minute:08x}"
        about = {"gpu": "H100", "compute_capability": "9.0", "driver": "580", "clock_control": "none"}
        run = Run(run_id, COLLECT, created, about, tuple(results))
        root = location.open_root(str(data))
        with bundle.importing(root):
            bundle.seal(root, run, {})
        return run_id

    def test_three_per_cent_slower_in_one_run_fails_with_its_interval(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.collected(data, 1, v1=1.0, v2=1.03)
        answer = gate(capsys, "mine/v2", "--baseline", "mine/v1", code=Exit.REGRESSION)
        (found,) = [one for one in answer["findings"] if one["outcome"] == "failed"]
        assert found["concept"] == "latency"
        low, high = found["interval"]
        assert 0.02 < low < found["effect"] < high < 0.04
        assert 0 < found["detectable"] < 0.02
        gate(capsys, "mine/v1", "--baseline", "mine/v2", code=Exit.PASS)

    def test_many_equal_modes_are_judged_as_one_table(
        self, data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """What one row would be called by itself does not stand among others that say nothing."""
        seen: list[int] = []
        together = judgement.judge_together
        monkeypatch.setattr(
            judgement, "judge_together", lambda rows: seen.append(len(rows)) or together(rows)
        )
        self.collected(data, 1, v1=1.0, v2=1.0, v3=1.0)
        run = self.collected(data, 2, v1=1.0, v2=1.0, v3=1.0)
        gate(capsys, run, "--baseline", "mine/v1", code=Exit.PASS)
        assert seen == [3]

    def test_equal_builds_of_one_run_pass(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.collected(data, 1, v1=1.0, v2=1.0)
        gate(capsys, "mine/v2", "--baseline", "mine/v1", code=Exit.PASS)

    def test_two_runs_without_a_noise_floor_are_unclear_and_say_what_to_do(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = (self.collected(data, minute, v1=1.0) for minute in (1, 2))
        answer = gate(capsys, after, "--baseline", before, code=Exit.UNJUDGED)
        assert "no noise floor" in lines(answer, "unjudged")[0]
        assert all(one["next"] for one in answer["findings"] if one["outcome"] == "unjudged")
        gate(capsys, after, "--baseline", before, "--allow", "unclear", code=Exit.PASS)


class TestReports:
    """Plain files, with no store and no GPU."""

    def both(self, reports: Path) -> tuple[str, str]:
        return str(reports / "ncar/MW_Baseline.ncu-rep"), str(reports / "ncar/MW_DivToMult.ncu-rep")

    def test_a_slower_kernel_fails_and_says_why(
        self, reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = self.both(reports)
        answer = gate(capsys, before, "--baseline", after, code=Exit.REGRESSION)
        slower = next(one for one in answer["findings"] if one["concept"] == "duration")
        assert slower["outcome"] == "failed"
        assert slower["effect"] == pytest.approx(0.778, abs=0.001)
        assert "mainly by work (+3.71 ms)" in slower["cause"]

    def test_a_faster_one_with_short_neighbours_is_unclear_until_that_is_allowed(
        self, reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = self.both(reports)
        answer = gate(capsys, after, "--baseline", before, code=Exit.UNJUDGED)
        assert {one["verdict"] for one in answer["findings"] if one["outcome"] == "unjudged"} == {"unclear"}
        gate(capsys, after, "--baseline", before, "--allow", "unclear", code=Exit.PASS)

    def test_an_imported_report_is_judged_as_the_file_is_and_no_command_could_collect_it(
        self, reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = self.both(reports)
        assert main(["import", before, after]) == 0
        capsys.readouterr()
        files = gate(capsys, after, "--baseline", before, code=Exit.UNJUDGED)["findings"]
        versions = gate(capsys, "ncar/MW_DivToMult", "--baseline", "ncar/MW_Baseline", code=Exit.UNJUDGED)[
            "findings"
        ]
        assert [one["line"] for one in versions] == [one["line"] for one in files]
        assert {one["next"] for one in versions} == {None}

    def test_a_filter_that_leaves_a_file_out_is_never_a_pass(
        self, reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, _ = self.both(reports)
        for option in ("--gpu=NVIDIA L4", "--evidence=static"):
            gate(capsys, before, "--baseline", before, option, code=Exit.UNJUDGED)

    def test_what_wobbles_weighs_only_where_it_is_asked_for_and_is_unclear_without_its_wobble(
        self, reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = self.both(reports)
        held = (after, "--baseline", before)
        read = "DRAM read: 1.21 GB → 1.24 GB"
        answer = gate(capsys, *held, "--allow", "unclear", code=Exit.PASS)
        assert any(line.startswith(read) for line in lines(answer, "noted"))
        answer = gate(capsys, *held, "--on", "dram_read", code=Exit.UNJUDGED)
        (told,) = (line for line in lines(answer, "unjudged") if line.startswith(read))
        assert "unclear: +3.0 %, and no A/A pairs say how far this counter moves by itself" in told

    def test_a_copy_of_the_baseline_is_no_new_report(
        self, reports: Path, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Two captures are never equal byte by byte: a step of the pipeline brought the old one."""
        _, after = self.both(reports)
        copy = str(shutil.copy(after, data / "copy.ncu-rep"))
        assert main(["import", after, "--family", "ncar"]) == 0
        capsys.readouterr()
        for a, b in ((after, copy), ("ncar/MW_DivToMult", copy), (copy, "ncar/MW_DivToMult")):
            answer = gate(capsys, b, "--baseline", a, code=Exit.UNJUDGED)
            assert answer["compared"] == 0
            assert "held against itself" in lines(answer, "unjudged")[-1]

    @pytest.mark.parametrize(
        ("metric", "concept"), [("smsp__inst_executed.sum", "inst_executed"), ("gpu__time_duration.sum", "")]
    )
    def test_a_report_without_a_judged_metric_is_missing_and_the_line_says_which(
        self, reports: Path, data: Path, capsys: pytest.CaptureFixture[str], metric: str, concept: str
    ) -> None:
        whole = reports / "oracle/cutlass__report75.ncu-rep.raw.csv"
        bare = data / "bare.csv"
        with whole.open(newline="") as text:
            rows = list(csv.reader(text))
        column = rows[0].index(metric)
        with bare.open("w", newline="") as out:
            csv.writer(out).writerows([row[:column] + row[column + 1 :] for row in rows])
        answer = gate(capsys, str(bare), "--baseline", str(whole), code=Exit.UNJUDGED)
        told = [one for one in answer["findings"] if one["outcome"] == "unjudged"]
        assert {one["verdict"] for one in told} == {"missing"}
        assert {one["concept"] for one in told} == {concept or "duration"}
        assert all((concept or "ncu duration") in one["line"] for one in told)
        same = data / "same.csv"
        same.write_bytes(whole.read_bytes() + b"\n")
        gate(capsys, str(same), "--baseline", str(whole), code=Exit.PASS)

    def test_a_launch_more_is_work_that_nothing_is_held_against(
        self, reports: Path, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        whole = reports / "oracle/cutlass__report75.ncu-rep.raw.csv"
        with whole.open(newline="") as text:
            rows = list(csv.reader(text))
        with (data / "less.csv").open("w", newline="") as out:
            csv.writer(out).writerows(rows[:-1])
        answer = gate(capsys, str(whole), "--baseline", str(data / "less.csv"), code=Exit.UNJUDGED)
        assert lines(answer, "unjudged") == ["Fused-GEMM/Kernel is new: the baseline has no such launch"]

    def test_a_damaged_report_is_unusable_input(
        self, reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        _, after = self.both(reports)
        damaged = str(reports / "bad/truncated_near_end.ncu-rep")
        assert main(["gate", damaged, "--baseline", after]) == Exit.UNUSABLE_INPUT

    def test_another_gpu_is_not_comparable(self, reports: Path, capsys: pytest.CaptureFixture[str]) -> None:
        _, after = self.both(reports)
        answer = gate(
            capsys, str(reports / "cutlass/report75.ncu-rep"), "--baseline", after, code=Exit.UNJUDGED
        )
        assert answer["compared"] == 0
        assert "GPU" in lines(answer, "unjudged")[0]


def test_every_form_is_written_by_its_suffix(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    out = data / "out"
    out.mkdir()
    files = [out / f"gate{suffix}" for suffix in (".txt", ".json", ".md", ".xml")]
    arguments = ["gate", "mine/alpha", "--baseline", "mine/zero", "--link", "https://a.example/"]
    assert main([*arguments, *(f"--out={file}" for file in files)]) == Exit.REGRESSION
    printed = capsys.readouterr().out
    text, document, markdown, junit = (file.read_text() for file in files)
    assert text == printed
    assert json.loads(document)["verdict"] == "failed"
    assert markdown.startswith("### Gate failed: ")
    assert "[`mine/alpha`](https://a.example/diff?a=mine%2Fzero&b=mine%2Falpha&workload=" in markdown
    suite = ElementTree.fromstring(junit).find("testsuite")
    assert suite is not None
    cases = suite.findall("testcase")
    assert suite.get("tests") == str(len(cases))
    assert suite.get("failures") == str(len(suite.findall("testcase/failure"))) != "0"


def test_an_origin_that_only_one_side_tells_is_noted(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What nobody says cannot be a mismatch, and is no match either."""
    silent = timed_runs.run({"v1": 2e6}, 1)
    told = timed_runs.run({"v1": 2e6}, 2, told={"clock_control": "base"})
    timed_runs.seal(data, silent, told)
    answer = gate(capsys, told.run_id, "--baseline", silent.run_id, "--allow=unclear", code=Exit.PASS)
    assert lines(answer, "noted") == ["not known to match: clock control unknown in A (base in the other)"]


def test_junit_of_nothing_compared_is_an_error(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    assert main(["gate", "mine/alpha", "--junit"]) == Exit.UNJUDGED
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert "nothing was compared" in [error.get("message") for error in root.iter("error")]


@needs_sass
@needs_gxx
def test_real_builds_that_got_worse_fail_on_a_machine_without_a_gpu(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """v1 with a barrier more, with values held in registers, with a wider stride in shared memory."""
    folder = planted(tmp_path / "planted")
    assert main(["dissect", "--catalog", str(folder), "--arch", "sm_80"]) == 0
    capsys.readouterr()
    expected = {
        "barrier": "barriers: 5 → 6",
        "held": "registers: 32 → ",
        "spread": "modelled bank conflicts: 1024 → 3072",
    }
    for version, line in expected.items():
        arguments = (f"attention/{version}", "--baseline", "attention/plain")
        failed = lines(gate(capsys, *arguments, code=Exit.REGRESSION), "failed")
        assert any(one.startswith(line) for one in failed), (version, failed)
    gate(capsys, "attention/plain", "--baseline", "attention/plain", code=Exit.UNJUDGED)


def planted(folder: Path) -> Path:
    """A catalogue of v1 and three builds of it that are right, and worse by one fact each."""
    folder.mkdir()
    for header in (*KERNELS.glob("*.cuh"), *KERNELS.glob("*.h")):
        shutil.copy(header, folder)
    source = (KERNELS / "v1.cu").read_text()
    each = "for (int i = 0; i < HELD; ++i)"
    held = f"#ifdef HELD\n  float held[HELD];\n  {each} held[i] = m * Q_smem[i];\n#endif\n"
    used = f"#ifdef HELD\n  {each} l += held[i] == 3e30f ? 1.f : 0.f;\n#endif\n"
    barrier = "\n#ifdef BARRIER\n    __syncthreads();\n#endif"
    for old, new in (
        ("constexpr int THREADS", "#ifndef SPREAD\n#define SPREAD 2\n#endif\nconstexpr int THREADS"),
        ("P_smem + THREADS;", "P_smem + THREADS * SPREAD;"),
        ("(D + THREADS + 2", "(D + THREADS * SPREAD + 2"),
        ("P_smem[thread] = p;", f"P_smem[thread * SPREAD] = p;{barrier}"),
        ("P_smem[n] *", "P_smem[n * SPREAD] *"),
        ("  // --- tile loop: load K,V\n", f"{held}  // --- tile loop: load K,V\n"),
        ("  // --- normalise and store O\n", f"  // --- normalise and store O\n{used}"),
    ):
        assert source.count(old) == 1, old
        source = source.replace(old, new)
    (folder / "v1.cu").write_text(source)
    flags = {"plain": "", "barrier": '"-DBARRIER"', "held": '"-DHELD=32"', "spread": '"-DSPREAD=4"'}
    entries = "".join(
        f'[[version]]\nid = "{name}"\nfile = "v1.cu"\ntechnique = "{name}"\nflags = [{flag}]\n'
        for name, flag in flags.items()
    )
    (folder / "catalog.toml").write_text(
        f'family = "attention"\nproblem = "profiler.catalog.attention:ATTENTION"\n{entries}'
    )
    return folder


def test_the_action_calls_the_command_as_it_is() -> None:
    """Every option that action.yml and its example give to `profiler gate` and `dissect` is one they take."""
    root = KERNELS.parent
    action = (root / "action.yml").read_text()
    script = action[action.index("- name: Gate") :].replace("\\\n", " ")
    (call,) = [line for line in script.splitlines() if '/profiler" gate' in line]
    options = set(re.findall(r"--[a-z]+", call))
    assert options == {"--baseline", "--link", "--out"}
    example = (root / "docs/gate-workflow.yml").read_text()
    given = re.search(r"arguments: (.*)", example)
    assert given
    parsed = parser().parse_args(
        ["gate", "--baseline", "b", "--link", "l", "--out", "o.md", *given[1].split()]
    )
    assert parsed.evidence == ["static", "modelled"]
    inputs = set(re.findall(r"inputs\.([a-z]+)", action))
    declared = set(re.findall(r"^  ([a-z]+):$", action[: action.index("outputs:")], re.M))
    assert inputs == declared
