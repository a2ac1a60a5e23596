"""`profiler gate` as a command: exit codes, forms, and a whole round with pins and acknowledgements."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from profiler.bundles.run import Result
from profiler.cli import main
from profiler.cli.gate import FORMATS
from profiler.documents.gate import GateDocument
from profiler.errors import Exit
from profiler.evidence.values import Evidence, Value
from tests import lineages
from tests.toolchain import needs_gxx, needs_sass

KERNELS = Path(__file__).resolve().parents[2] / "kernels"
LATER = lineages.CREATED + timedelta(days=1)
BARRIERS = "static__opcode_BAR"


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
    return [finding["line"] for finding in answer["findings"] if finding["outcome"] == outcome]


def changed(values: Mapping[str, Value]) -> tuple[Result, ...]:
    """The results of the small lineage with some static facts of alpha replaced."""
    return tuple(
        replace(
            result,
            facts=tuple(
                replace(facts, values={**facts.values, **values})
                if result.version == "alpha" and facts.evidence is Evidence.STATIC
                else facts
                for facts in result.facts
            ),
        )
        for result in lineages.results()
    )


@pytest.mark.slow
def test_the_same_build_again_passes_and_a_planted_regression_fails(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lineages.dissected(data).run_id
    again = lineages.dissected(data, created=LATER).run_id
    answer = gate(capsys, again, code=Exit.PASS)
    assert answer["compared"] == 10
    assert {finding["outcome"] for finding in answer["findings"]} == {"noted", "passed"}
    worse = changed({"static__spill_bytes": Value(8)})
    lineages.dissected(data, worse, created=LATER + timedelta(days=1))
    answer = gate(capsys, code=Exit.REGRESSION)
    assert lines(answer, "failed") == ["spills: 0 → 8 B"]
    answer = gate(capsys, "mine/alpha", "--baseline", before, "--evidence=modelled", code=Exit.PASS)
    assert {finding["evidence"] for finding in answer["findings"]} == {"modelled"}


@pytest.mark.slow
def test_a_pinned_baseline_is_what_counts_until_it_is_taken_away(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = lineages.dissected(data, changed({BARRIERS: Value(3)}))
    for day in (1, 2):
        more = changed({BARRIERS: Value(4)})
        lineages.dissected(data, more, created=lineages.CREATED + timedelta(days=day))
    gate(capsys, "mine/alpha", code=Exit.PASS)
    assert main(["decide", "baseline", "set", "mine", run.run_id, "--why", "released"]) == 0
    capsys.readouterr()
    answer = gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    assert {finding["baseline"] for finding in answer["findings"]} == {run.run_id}


@pytest.mark.slow
def test_what_somebody_acknowledged_passes_and_is_listed(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lineages.dissected(data, changed({BARRIERS: Value(3)}))
    lineages.dissected(data, changed({BARRIERS: Value(4)}), created=LATER)
    gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    about = ["decide", "acknowledge", "mine/alpha", "--concept", "static_bar", "--why", "a phase more"]
    assert main([*about, "--up-to", "9%"]) == 0
    capsys.readouterr()
    answer = gate(capsys, "mine/alpha", code=Exit.REGRESSION)
    assert "up to 9 %" in next(filter(None, (finding["acknowledged"] for finding in answer["findings"])))
    assert main([*about, "--up-to", "50"]) == 0
    capsys.readouterr()
    answer = gate(capsys, "mine/alpha", code=Exit.PASS)
    assert lines(answer, "acknowledged") == ["barriers: 3 → 4"], "once, with both sizes and chips"
    assert main(["gate", "mine/alpha", "--markdown"]) == Exit.PASS
    assert "a phase more" in capsys.readouterr().out
    with pytest.raises(SystemExit) as refused:
        main([*about, "--up-to", "0%"])
    assert refused.value.code == Exit.UNUSABLE_INPUT


@pytest.mark.slow
def test_a_slower_kernel_of_a_report_fails_and_says_why(
    made_reports: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before, after = (str(made_reports / f"ncar/MW_{name}.ncu-rep") for name in ("Baseline", "DivToMult"))
    answer = gate(capsys, before, "--baseline", after, code=Exit.REGRESSION)
    slower = next(finding for finding in answer["findings"] if finding["concept"] == "duration")
    assert slower["outcome"] == "failed"
    assert slower["effect"] == pytest.approx(0.778, abs=0.001)
    assert "mainly from more work (+3.71 ms)" in slower["cause"]
    # The other way it is better, though one launch of 13 µs is unclear: noted, unless it is asked for.
    answer = gate(capsys, after, "--baseline", before, code=Exit.PASS)
    assert "unclear" in {
        finding["verdict"] for finding in answer["findings"] if finding["outcome"] == "noted"
    }
    asked = ("--on", "duration")
    answer = gate(capsys, after, "--baseline", before, *asked, code=Exit.UNJUDGED)
    assert {finding["verdict"] for finding in answer["findings"] if finding["outcome"] == "unjudged"} == {
        "unclear"
    }
    gate(capsys, after, "--baseline", before, *asked, "--allow", "unclear", code=Exit.PASS)


def test_a_damaged_report_is_unusable_input(made_reports: Path) -> None:
    after = str(made_reports / "ncar/MW_DivToMult.ncu-rep")
    damaged = str(made_reports / "bad/truncated_near_end.ncu-rep")
    assert main(["gate", damaged, "--baseline", after]) == Exit.UNUSABLE_INPUT


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


@pytest.mark.slow
def test_a_page_of_many_versions_has_a_row_for_each(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = lineages.dissected(data).run_id
    worse = changed({"static__spill_bytes": Value(8)})
    lineages.dissected(data, worse, created=LATER)
    assert main(["gate", "--markdown", "--link", "https://a.example"]) == Exit.REGRESSION
    page = capsys.readouterr().out
    assert f"**Baseline:** [`{before}`](https://a.example/runs?run={before})" in page
    rows = [line for line in page.splitlines() if line.startswith("| ") and "alpha" in line]
    assert len(rows) == 1
    assert "spills: 0 → 8 B" in rows[0]
    assert before not in rows[0]


def test_junit_of_nothing_compared_is_an_error(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lineages.dissected(data)
    assert main(["gate", "mine/alpha", "--junit"]) == Exit.UNJUDGED
    root = ElementTree.fromstring(capsys.readouterr().out)
    assert "nothing was compared" in [error.get("message") for error in root.iter("error")]


@pytest.mark.slow
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


@pytest.mark.long
@needs_sass
@needs_gxx
def test_real_builds_that_got_worse_fail_on_a_machine_without_a_gpu(
    tmp_path: Path, data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """v1 with a barrier more, with values held in registers, with a wider stride in shared memory."""
    folder = planted(tmp_path / "planted")
    assert main(["static", "--check", "--catalog", str(folder), "--arch", "sm_80"]) == 0
    capsys.readouterr()
    expected = {
        "barrier": "barriers: 5 → 6",
        "held": "registers: 32 → ",
        "spread": "modelled bank conflicts: 32 → 96",
    }
    for version, line in expected.items():
        arguments = (f"attention/{version}", "--baseline", "attention/plain")
        failed = lines(gate(capsys, *arguments, code=Exit.REGRESSION), "failed")
        assert any(failure.startswith(line) for failure in failed), (version, failed)
    gate(capsys, "attention/plain", "--baseline", "attention/plain", code=Exit.UNJUDGED)


# Attention on the smallest shape that shows a fact of each kind.
PROBLEM = """\
from profiler.catalog.attention import Attention, AttentionWorkload

class Small(Attention):
    def check_workloads(self, dtype, sizes):
        return [AttentionWorkload(1, 1, 8, 128, size, dtype=dtype) for size in sizes]

ATTENTION = Small()
"""


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
    (folder / "small.py").write_text(PROBLEM)
    (folder / "catalog.toml").write_text(f'family = "attention"\nproblem = "small.py:ATTENTION"\n{entries}')
    return folder


def test_every_form_is_a_method_of_the_document_and_has_a_suffix_of_its_own() -> None:
    methods = [name for name in FORMATS if callable(getattr(GateDocument, f"to_{name}", None))]
    assert methods == [name for name in FORMATS if name != "text"]
    assert len(set(FORMATS.values())) == len(FORMATS)
