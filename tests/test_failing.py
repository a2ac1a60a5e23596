"""`compare --fail` and `profiler gate` on the same two sides: one answer, with the same reason."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler import decisions, location
from profiler.cli import main
from profiler.errors import Exit
from profiler.values import Evidence, Value
from tests import lineages, timed_runs

WEIGHTY = ("failed", "unjudged", "acknowledged")


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *command: str) -> tuple[int, dict[str, Any]]:
    code = main([*command, "--json"])
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return code, answer


def agree(capsys: pytest.CaptureFixture[str], a: str, b: str, *options: str) -> tuple[int, list[str]]:
    """What both answer: the exit code, and the lines with weight."""
    code, answer = told(capsys, "gate", b, "--baseline", a, *options)
    compared, document = told(capsys, "compare", a, b, "--fail", *options)
    assert compared == code == document["gate"]["exit_code"]
    lines, same = (
        [one["line"] for one in found["findings"] if one["outcome"] in WEIGHTY]
        for found in (answer, document["gate"])
    )
    assert lines == same
    return code, lines


class TestReports:
    def test_a_counter_asked_for_without_aa_pairs_is_unclear_and_every_form_says_what_settles_it(
        self, reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        a, b = (str(reports / f"ncar/MW_{name}.ncu-rep") for name in ("Baseline", "DivToMult"))
        code, lines = agree(capsys, a, b, "--on", "dram_read")
        assert code == Exit.UNJUDGED
        assert any(line.startswith("DRAM read: 1.21 GB") for line in lines)
        only = ("compare", a, b, "--fail", "--on", "dram_read", "--kernel", "279")
        for form in ((), ("--markdown",)):
            assert main([*only, *form]) == Exit.UNJUDGED
            out = capsys.readouterr().out
            assert "Gate could not judge: 1 could not be judged" in out
            assert "no A/A pairs say how far this counter moves by itself: import reports with 10" in out

    @pytest.mark.parametrize(
        ("a", "b"),
        [
            ("ncar/MW_Baseline", "ncar/MW_DivToMult"),
            ("ncar/MW_DivToMult", "ncar/MW_Baseline"),
            ("cutlass/report75", "cutlass/report80"),
            ("cutlass/report80", "cutlass/report75"),
            ("cutlass/report75", "ncar/MW_Baseline"),
            ("esmm/profile@17f278cb", "esmm/profile@5c6231e5"),
            ("esmm/profile@5c6231e5", "esmm/profile@17f278cb"),
            ("mistic/prof1", "mistic/prof1"),
        ],
    )
    def test_real_reports(self, reports: Path, capsys: pytest.CaptureFixture[str], a: str, b: str) -> None:
        agree(capsys, str(reports / f"{a}.ncu-rep"), str(reports / f"{b}.ncu-rep"))

    def test_more_instructions_in_the_same_time_fail_both(
        self, reports: Path, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Exact counts weigh without being asked for; a launch that lacks a counter or is new is no pass."""
        whole = reports / "oracle/cutlass__report75.ncu-rep.raw.csv"
        with whole.open(newline="") as text:
            head, units, *rows = csv.reader(text)
        column = head.index("smsp__inst_executed.sum")

        def write(name: str, found: list[list[str]]) -> str:
            with (data / name).open("w", newline="") as out:
                csv.writer(out).writerows(found)
            return str(data / name)

        def doubled(row: list[str]) -> list[str]:
            count = str(2 * int(row[column].replace(",", "")))
            return [*row[:column], count, *row[column + 1 :]]

        more = write("more.csv", [head, units, *map(doubled, rows)])
        code, lines = agree(capsys, str(whole), more)
        assert code == Exit.REGRESSION
        assert lines[0].startswith("executed: ")
        bare = write("bare.csv", [row[:column] + row[column + 1 :] for row in (head, units, *rows)])
        code, lines = agree(capsys, str(whole), bare)
        assert (code, lines[0].split(":")[0]) == (Exit.UNJUDGED, "inst_executed")
        less = write("less.csv", [head, units, *rows[:-1]])
        assert agree(capsys, less, str(whole)) == (
            Exit.UNJUDGED,
            ["Fused-GEMM/Kernel is new: the baseline has no such launch"],
        )


class TestTimed:
    def test_versions_timed_together_in_an_older_run_are_a_live_pair_to_both(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        timed_runs.seal(data, timed_runs.run({"v1": 1e6, "v2": 1.05e6}, 0), timed_runs.run({"v1": 1.3e6}, 1))
        code, lines = agree(capsys, "flash/v1", "flash/v2", "--evidence", "measured")
        assert code == Exit.REGRESSION
        assert "+5" in lines[0] or "+4.9" in lines[0]

    def test_an_older_run_of_a_version_is_not_held_against_itself(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = timed_runs.run({"v1": 1e6}, 0), timed_runs.run({"v1": 1.3e6}, 1)
        timed_runs.seal(data, before, after)
        for name in ("flash/v1", after.run_id):
            code, lines = agree(capsys, before.run_id, name, "--evidence", "measured")
            assert code == Exit.UNJUDGED, name
            assert "no noise floor" in lines[0]

    def test_a_mode_that_is_newly_timed_has_nothing_to_lose(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        modes = (timed_runs.WARM, timed_runs.COLD)
        run = timed_runs.run({"v1": 1e6, "v2": 1e6}, 0, modes=modes)
        fewer = replace(run.results[0], samples=run.results[0].samples[:1])
        timed_runs.seal(data, replace(run, results=(fewer, run.results[1])))
        assert agree(capsys, "flash/v1", "flash/v2", "--evidence", "measured") == (Exit.PASS, [])
        assert agree(capsys, "flash/v2", "flash/v1", "--evidence", "measured")[0] == Exit.UNJUDGED

    def test_a_run_that_was_forgotten_is_refused_by_both(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = timed_runs.run({"v1": 1e6}, 0), timed_runs.run({"v1": 1e6}, 1)
        timed_runs.seal(data, before, after)
        assert main(["forget", before.run_id]) == 0
        capsys.readouterr()
        for command in (
            ("gate", after.run_id, "--baseline", before.run_id),
            ("compare", before.run_id, after.run_id, "--fail", "--evidence", "measured"),
        ):
            assert main([*command]) == Exit.UNUSABLE_INPUT
            said = capsys.readouterr()
            assert (said.out, said.err.count("\n")) == ("", 1)
            assert f"was forgotten: `profiler forget --undo {before.run_id}`" in said.err

    def test_what_somebody_acknowledged_passes_both(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        timed_runs.seal(data, timed_runs.run({"v1": 1e6, "v2": 1.05e6}, 0))
        values = {"family": "flash", "version": "v2", "concept": "latency"}
        decisions.record(location.root(), decisions.ACKNOWLEDGE, "flash/v2", values, why="known", who="ada")
        code, lines = agree(capsys, "flash/v1", "flash/v2", "--evidence", "measured")
        assert code == Exit.PASS
        assert lines[0].startswith("latency")
        assert main(["compare", "flash/v1", "flash/v2", "--fail"]) == Exit.PASS
        assert "acknowledged: ada, without an end: known" in capsys.readouterr().out


class TestFacts:
    def test_facts_that_got_worse_and_what_is_wrong(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        lineages.dissected(data)
        for a, b in (("mine/zero", "mine/alpha"), ("mine/alpha", "mine/zero"), ("mine/zero", "mine/bad")):
            agree(capsys, a, b)
        assert agree(capsys, "mine/bad", "mine/bad")[0] == Exit.UNJUDGED, "wrong as its catalogue says"

    def test_a_workload_that_only_the_baseline_has_is_missed(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fewer = [one for one in lineages.results() if (one.version, one.workload) != ("zero", "head dim 128")]
        lineages.dissected(data, tuple(fewer))
        code, lines = agree(capsys, "mine/alpha", "mine/zero", "--evidence", "static")
        assert code == Exit.UNJUDGED
        assert "nothing static of mine/zero, where mine/alpha has it" in lines

    def test_rules_on_facts_and_the_budget(self, data: Path, capsys: pytest.CaptureFixture[str]) -> None:
        over = {"static__over_budget": Value(None, text="72 registers, budget 64")}
        results = tuple(
            replace(
                one,
                facts=tuple(
                    replace(facts, values={**facts.values, **over})
                    if one.version == "alpha" and facts.evidence is Evidence.STATIC
                    else facts
                    for facts in one.facts
                ),
            )
            for one in lineages.results()
        )
        lineages.dissected(data, results)
        code, lines = agree(capsys, "mine/zero", "mine/alpha", "--evidence", "static")
        assert code == Exit.REGRESSION
        assert any("72 registers, budget 64" in line for line in lines)
