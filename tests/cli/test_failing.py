"""`compare --fail` and `profiler gate` on the same two sides: one answer, with the same reason."""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import decisions, location
from profiler.bundles.run import Run
from profiler.cli import main
from profiler.errors import Exit
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


def wrong(run: Run, version: str) -> Run:
    """The run in which a check found the version wrong; so it was not timed."""
    results = (
        replace(one, status="wrong", reason="off by 1", samples=()) if one.version == version else one
        for one in run.results
    )
    return replace(run, results=tuple(results))


class TestReports:
    @pytest.mark.slow
    def test_a_counter_asked_for_without_aa_pairs_is_unclear_and_every_form_says_what_settles_it(
        self, made_reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        a, b = (str(made_reports / f"ncar/MW_{name}.ncu-rep") for name in ("Baseline", "DivToMult"))
        code, lines = agree(capsys, a, b, "--on", "dram_read")
        assert code == Exit.UNJUDGED
        assert any(line.startswith("DRAM read: 1.21 GB") for line in lines)
        only = ("compare", a, b, "--fail", "--on", "dram_read", "--kernel", "279")
        for form in ((), ("--markdown",)):
            assert main([*only, *form]) == Exit.UNJUDGED
            out = capsys.readouterr().out
            assert "Gate could not judge: 1 check undecided" in out
            assert "no A/A pairs say how far this counter moves by itself: import reports with 40" in out

    @pytest.mark.slow
    @pytest.mark.parametrize(
        ("a", "b"),
        [
            ("ncar/MW_DivToMult", "ncar/MW_Baseline"),
            ("cutlass/report75", "cutlass/report80"),
            ("cutlass/report75", "ncar/MW_Baseline"),
            ("ncar/MW_Baseline", "ncar/MW_Baseline"),
        ],
    )
    def test_files_that_got_worse_or_have_nothing_in_common(
        self, made_reports: Path, capsys: pytest.CaptureFixture[str], a: str, b: str
    ) -> None:
        agree(capsys, str(made_reports / f"{a}.ncu-rep"), str(made_reports / f"{b}.ncu-rep"))

    def test_a_launch_that_lacks_a_counter_and_a_new_one_are_no_pass(
        self, made_reports: Path, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        whole = made_reports / "oracle/cutlass__report75.ncu-rep.raw.csv"
        with whole.open(newline="") as text:
            head, units, *rows = csv.reader(text)
        column = head.index("lts__t_sectors.sum")  # no other counter stands in for it

        def write(name: str, content: list[list[str]]) -> str:
            with (data / name).open("w", newline="") as out:
                csv.writer(out).writerows(content)
            return str(data / name)

        # Measured again: else what lacks a counter or a launch is an export of the same measurement.
        time = head.index("gpu__time_duration.sum")
        again = [[*row[:time], f"{float(row[time]) * 1.001:.2f}", *row[time + 1 :]] for row in rows]
        bare = write("bare.csv", [row[:column] + row[column + 1 :] for row in (head, units, *again)])
        code, lines = agree(capsys, str(whole), bare)
        assert (code, lines[0].split(":")[0]) == (Exit.UNJUDGED, "l2_sectors")
        less = write("less.csv", [head, units, *again[:-1]])
        assert agree(capsys, less, str(whole)) == (
            Exit.UNJUDGED,
            ["kernel Fused-GEMM/Kernel is new: the baseline does not have it"],
        )


class TestTimed:
    def test_versions_timed_together_in_an_older_run_are_a_live_pair_to_both(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        timed_runs.seal(data, timed_runs.run({"v1": 1e6, "v2": 1.05e6}, 0), timed_runs.run({"v1": 1.3e6}, 1))
        code, lines = agree(capsys, "flash/v1", "flash/v2", "--evidence", "measured")
        assert code == Exit.REGRESSION
        assert "+5" in lines[0] or "+4.9" in lines[0]

    @pytest.mark.slow
    def test_an_older_run_of_a_version_is_not_held_against_itself(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = timed_runs.run({"v1": 1e6}, 0), timed_runs.run({"v1": 1.3e6}, 1)
        timed_runs.seal(data, before, after)
        for name in ("flash/v1", after.run_id):
            code, lines = agree(capsys, before.run_id, name, "--evidence", "measured")
            assert code == Exit.UNJUDGED, name
            assert "no noise floor" in lines[0]

    def test_a_run_that_was_forgotten_is_refused_by_both(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = timed_runs.run({"v1": 1e6}, 0), timed_runs.run({"v1": 1e6}, 1)
        timed_runs.seal(data, before, after)
        assert main(["data", "forget", before.run_id]) == 0
        capsys.readouterr()
        for command in (
            ("gate", after.run_id, "--baseline", before.run_id),
            ("compare", before.run_id, after.run_id, "--fail", "--evidence", "measured"),
        ):
            assert main([*command]) == Exit.UNUSABLE_INPUT
            said = capsys.readouterr()
            assert (said.out, said.err.count("\n")) == ("", 1)
            assert f"was forgotten: `profiler data forget --undo {before.run_id}`" in said.err

    @pytest.mark.slow
    def test_a_forgotten_run_is_shown_by_its_id_and_that_it_was_forgotten_is_said(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        before, after = timed_runs.run({"v1": 1e6}, 0), timed_runs.run({"v1": 1e6}, 1)
        timed_runs.seal(data, wrong(before, "v1"), after)
        assert main(["data", "forget", before.run_id]) == 0
        capsys.readouterr()
        for name in (before.run_id, f"v1~{before.run_id}"):
            assert main(["compare", name, after.run_id, "--json", "--evidence", "static"]) == 0
            said = capsys.readouterr()
            assert json.loads(said.out)["a"]["wrong"] == "off by 1", "wrong as it was"
            assert said.err == f"profiler: run {before.run_id} is hidden (forgotten): no verdict uses it\n"
            assert main(["gate", name, "--baseline", after.run_id]) == Exit.UNUSABLE_INPUT
            capsys.readouterr()

    @pytest.mark.slow
    def test_a_run_is_as_right_as_its_own_check_whatever_was_found_since(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        runs = [
            timed_runs.run({"v1": 1e6}, 0),
            timed_runs.run({"v2": 1e6}, 1),
            timed_runs.run({"v2": 1e6}, 2),
        ]
        timed_runs.seal(data, *runs[:2], wrong(runs[2], "v2"))
        code, lines = agree(capsys, runs[0].run_id, runs[1].run_id, "--evidence", "measured")
        assert code == Exit.UNJUDGED
        assert lines[0].startswith("latency")
        assert agree(capsys, runs[0].run_id, runs[2].run_id, "--evidence", "static")[0] == Exit.REGRESSION
        assert agree(capsys, runs[0].run_id, "flash/v2", "--evidence", "measured")[0] == Exit.REGRESSION

    @pytest.mark.slow
    def test_the_evidence_asked_for_is_what_runs_and_reports_are_compared_by(
        self, data: Path, made_reports: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        runs = [
            timed_runs.run({"v1": 1e6}, day, facts={"v1": {"static__registers": registers}})
            for day, registers in ((0, 40), (1, 80))
        ]
        timed_runs.seal(data, *runs)
        code, lines = agree(capsys, runs[1].run_id, runs[0].run_id, "--evidence", "static")
        assert (code, lines) == (Exit.PASS, [])
        assert main(["compare", runs[0].run_id, runs[1].run_id, "--evidence", "static", "--all"]) == 0
        out = capsys.readouterr().out
        assert "40" in out
        assert "80" in out
        assert "latency" not in out
        report = str(made_reports / "mistic/prof1.ncu-rep")
        for options, code in (([], Exit.UNUSABLE_INPUT), (["--fail"], Exit.UNJUDGED)):
            assert main(["compare", report, runs[0].run_id, "--evidence", "static", *options]) == code
            assert "prof1.ncu-rep is a report, which is measured: it has nothing static" in (
                capsys.readouterr().err
            )

    def test_versions_measured_on_two_gpus_are_shown_as_not_comparable(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        other = {"gpu": "NVIDIA A100", "compute_capability": "8.0"}
        one, two = timed_runs.run({"v1": 1e6}, 0), timed_runs.run({"v2": 1e6}, 1, told=other)
        bare = [replace(run, results=tuple(replace(r, facts=()) for r in run.results)) for run in (one, two)]
        timed_runs.seal(data, *bare)
        assert main(["compare", "flash/v1", "flash/v2"]) == 0
        assert "GPU differs: NVIDIA H100 and NVIDIA A100" in capsys.readouterr().out
        assert main(["compare", "flash/v1", "flash/v2", "--fail"]) == Exit.UNJUDGED
        assert main(["compare", "flash/v1", "flash/v2", "--fail", "--evidence", "static"]) == Exit.UNJUDGED
        assert main(["compare", "flash/v1", "flash/v2", "--evidence", "static"]) == Exit.UNUSABLE_INPUT

    @pytest.mark.slow
    def test_a_run_of_several_versions_says_how_one_is_named_and_that_name_is_taken(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Also where only one of them was measured: that is not silently the one."""
        before, after = timed_runs.run({"v1": 1e6}, 0), timed_runs.run({"v1": 1.3e6, "v2": 1e6}, 1)
        timed_runs.seal(data, before, wrong(after, "v1"))
        for command in (("compare", before.run_id, after.run_id), ("show", after.run_id)):
            assert main([*command]) == Exit.UNUSABLE_INPUT
            said = capsys.readouterr().err
            assert f"several versions: v1, v2; choose one, as in flash/v1~{after.run_id}" in said
        one, two = (f"flash/{name}~{after.run_id}" for name in ("v1", "v2"))
        assert agree(capsys, before.run_id, one)[0] == Exit.REGRESSION
        assert agree(capsys, before.run_id, two, "--evidence", "measured")[0] == Exit.UNJUDGED
        assert agree(capsys, one, before.run_id, "--evidence", "static")[0] == Exit.PASS
        assert main(["show", two.removeprefix("flash/")]) == 0
        assert two in capsys.readouterr().out
        assert main(["compare", f"v3~{after.run_id}", two]) == Exit.UNUSABLE_INPUT
        assert f"run {after.run_id} has no v3; there are flash/v1, flash/v2" in capsys.readouterr().err

    def test_a_run_of_the_future_hides_the_newest_results_from_both(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        timed_runs.seal(
            data, timed_runs.run({"v1": 1e6, "v2": 1.05e6}, 0), timed_runs.run({"v2": 9e5}, 100 * 365)
        )
        for command in (
            ("gate", "flash/v2", "--baseline", "flash/v1"),
            ("compare", "flash/v1", "flash/v2", "--fail"),
        ):
            assert main([*command, "--evidence", "measured"]) == Exit.UNJUDGED
            assert "says that it was made in the future" in capsys.readouterr().err

    @pytest.mark.slow
    def test_what_somebody_acknowledged_passes_both(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        timed_runs.seal(data, timed_runs.run({"v1": 1e6, "v2": 1.05e6}, 0))
        values = {"family": "flash", "version": "v2", "concept": "latency"}
        decisions.write_decision(
            location.open_root(), decisions.ACKNOWLEDGE, "flash/v2", values, why="known", who="ada"
        )
        code, lines = agree(capsys, "flash/v1", "flash/v2", "--evidence", "measured")
        assert code == Exit.PASS
        assert lines[0].startswith("latency")
        assert main(["compare", "flash/v1", "flash/v2", "--fail"]) == Exit.PASS
        assert "acknowledged: ada, without an end: known" in capsys.readouterr().out


class TestFacts:
    @pytest.mark.slow
    def test_facts_that_got_worse_and_what_is_wrong(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        lineages.dissected(data)
        for a, b in (("mine/zero", "mine/alpha"), ("mine/alpha", "mine/zero"), ("mine/zero", "mine/bad")):
            agree(capsys, a, b)
        assert agree(capsys, "mine/bad", "mine/bad")[0] == Exit.UNJUDGED, "wrong as its catalogue says"

    @pytest.mark.slow
    def test_a_workload_that_only_the_baseline_has_is_missed(
        self, data: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        fewer = [one for one in lineages.results() if (one.version, one.workload) != ("zero", "head dim 128")]
        lineages.dissected(data, tuple(fewer))
        code, lines = agree(capsys, "mine/alpha", "mine/zero", "--evidence", "static")
        assert code == Exit.UNJUDGED
        assert "mine/zero has no static results here; its baseline mine/alpha has" in lines
