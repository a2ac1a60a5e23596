"""`profiler decide pair` and `--pair`, as typed: declared once, then followed by every command."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import profiler
from profiler.cli import main
from tests.reportfiles.ncu_rep import LaunchResult, ReportFile, SessionDetails

CHIP = {f"device__attribute_{name}": 0x170 for name in ("architecture", "chip", "implementation")}  # GA100


def write(path: Path, kernel: str, ns: float, day: int, launches: int = 1) -> str:
    """A report of one kernel."""
    metrics = {**CHIP, "gpu__time_duration.sum": ns, "device__attribute_display_name": "NVIDIA Test 1"}
    grid = (64 + day, 1, 1)  # no two alike, so that nothing is proposed
    launch = LaunchResult(kernel, f"void {kernel}(float*)", f"_Z{kernel}", metrics, grid)
    created = SessionDetails(created=1730121091 + 86400 * day)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(ReportFile((launch,) * launches, created).to_bytes())
    return str(path)


@pytest.fixture
def two_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    pytest.importorskip("ncu_report")
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    folder = tmp_path / "gemms"
    return write(folder / "v6.ncu-rep", "gemm_v6", 1e6, 0), write(folder / "v7.ncu-rep", "gemm_v7", 2e6, 1)


def test_a_pair_for_one_comparison(two_reports: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    def said(*command: str, code: int = 0) -> str:
        assert main([*command]) == code
        captured = capsys.readouterr()
        return captured.err if code == 2 else captured.out

    assert "no launch of A has a partner in B: --pair A=B" in said("compare", *two_reports)
    assert "Gate could not judge" in said("compare", *two_reports, "--fail", code=3)
    assert "Gate could not judge" in said("explain", *two_reports, "--fail", code=3)
    assert "Gate could not judge" in said("gate", two_reports[1], "--baseline", two_reports[0], code=3)
    pair = ("--pair", "gemm_v6=gemm_v7")
    assert "gemm_v6 → gemm_v7: paired as declared" in said("compare", *two_reports, *pair)
    assert "gemm_v6 → gemm_v7" in said("compare", *two_reports, *pair, "--fail", code=1)
    assert "gemm_v6 → gemm_v7: paired as declared" in said("explain", *two_reports, *pair)
    assert "paired as declared" in said("gate", two_reports[1], "--baseline", two_reports[0], *pair, code=1)
    (launch,) = json.loads(said("compare", *two_reports, *pair, "--json"))["launches"]
    assert launch["paired_by"] == "declared"
    wrong = said("compare", *two_reports, "--pair", "gemm_v6=gemm_v9", code=2)
    assert wrong == "profiler: pair gemm_v6=gemm_v9: no kernel of B is called gemm_v9; there are gemm_v7\n"
    assert said("compare", *two_reports, "--pair", "gemm", code=2).count("\n") == 1
    library = profiler.compare(*two_reports, pairs={"gemm_v6": "gemm_v7"})
    assert library.verdict.value == "worse"
    read = [profiler.read_report(path) for path in two_reports]
    explained = profiler.explain(*read, pairs=["gemm_v6=gemm_v7"])
    assert explained.to_dict()["launches"][0]["paired_by"] == "declared"  # type: ignore[index]


@pytest.mark.slow
def test_a_pair_that_is_kept_is_followed_by_every_command(
    two_reports: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def said(*command: str, code: int = 0) -> str:
        assert main([*command]) == code
        captured = capsys.readouterr()
        return captured.err if code == 2 else captured.out

    def answer(*command: str, code: int = 0) -> dict[str, Any]:
        document: dict[str, Any] = json.loads(said(*command, "--json", code=code))
        return document

    said("import", str(Path(two_reports[0]).parent))
    names = ("gemms/v6", "gemms/v7")
    assert not answer("compare", *names)["launches"]
    assert len(answer("trend", "duration")["series"]) == 2
    assert "no pair is recorded" in said("decide", "pair", "--list")
    assert "no kernel of gemms is called gemm_v9" in said(
        "decide", "pair", "gemms", "gemm_v6=gemm_v9", code=2
    )
    assert "which kernels of gemms are one" in said("decide", "pair", "gemms", code=2)
    assert "gemm_v6 and gemm_v7 are one kernel" in said(
        "pair", "gemms", "gemm_v6=gemm_v7", "--why", "renamed"
    )
    assert "renamed" in said("decide", "pair", "--list")
    assert "renamed" in said("decide", "pair", "--list", "gemms")
    assert "no pair is recorded: `profiler decide pair convs A=B`" in said(
        "decide", "pair", "--list", "convs"
    )
    assert "--list takes no pair" in said("decide", "pair", "--list", "gemms", "a=b", code=2)
    assert "--undo takes only an id" in said("decide", "pair", "gemms", "--undo", "1", code=2)
    assert "gemm_v6 is one name" in said("decide", "pair", "gemms", "gemm_v6=gemm_v6", code=2)
    assert "which kernels of FAMILY are one" in said("decide", "pair", code=2)
    assert answer("compare", *names)["launches"][0]["paired_by"] == "declared"
    assert answer("explain", *names[::-1])["launches"][0]["paired_by"] == "declared"
    assert answer("gate", "gemms/v7", "--baseline", "gemms/v6", code=1)["verdict"] == "failed"
    (series,) = answer("trend", "duration")["series"]
    assert (series["part"], series["other_names"]) == ("gemm_v7#0", ["gemm_v6"])
    assert [point["value"] for point in series["points"]] == [1e6, 2e6]
    assert [point["kernel"] for point in series["points"]] == ["gemm_v6", "gemm_v7"]
    assert not any(point["breaks"] for point in series["points"]), "another grid is meant"
    assert "gemm_v7 (also gemm_v6)" in said("trend", "duration")
    assert answer("trend", "--steps", "duration")["series"][0]["other_names"] == ["gemm_v6"]
    (regression,) = answer("regressions")["regressions"]
    assert (regression["concept"], regression["version"]) == ("duration", "v7")
    said("data", "index", "--rebuild")
    assert answer("compare", *names)["launches"][0]["paired_by"] == "declared"
    (kept,) = answer("decide", "pair", "--list")["pairs"]
    assert "two kernels again" in said("decide", "pair", "--undo", kept["id"])
    assert not answer("compare", *names)["launches"]


def test_launches_that_do_not_pair_come_with_the_option_that_pairs_them(
    two_reports: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["compare", *two_reports])
    assert "--pair gemm_v6=gemm_v7 compares the two, if they are one kernel" in capsys.readouterr().out
    one = write(tmp_path / "one.ncu-rep", "gemm", 1e6, 0)
    two = write(tmp_path / "two.ncu-rep", "gemm", 1e6, 0, launches=2)
    main(["compare", one, two])
    said_of_it = capsys.readouterr().out
    assert "--pair gemm=gemm pairs what is ambiguous in order" in said_of_it
    assert "has a partner" not in said_of_it, "gemm is in both, and ambiguous"
    assert main(["compare", one, two, "--pair", "gemm=gemm", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert [(pair["a"]["ordinal"], pair["b"]["ordinal"]) for pair in answer["launches"]] == [(0, 0)]
    assert [launch["part"] for launch in answer["only_in_b"]] == ["gemm#1"]


def test_a_proposed_pair_is_judged_unless_it_is_refused(
    two_reports: tuple[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Nothing compared is never exit code 0 where something was to be judged."""
    old, new = (write(tmp_path / f"{name}.ncu-rep", f"gemm_{name}", 1e6, 0) for name in ("v1", "v2"))
    assert main(["compare", old, new, "--fail"]) == 0
    shown = capsys.readouterr().out
    assert "gemm_v1 → gemm_v2: paired by similar name, names differ" in shown
    assert "--pair A=B declares it, --no-guess refuses it" in shown
    for judging in (["compare", old, new, "--fail"], ["explain", old, new, "--fail"]):
        assert main([*judging, "--no-guess"]) == 3
    assert main(["gate", new, "--baseline", old]) == 0
    assert "paired by similar name, names differ" in capsys.readouterr().out
    assert main(["gate", new, "--baseline", old, "--no-guess"]) == 3
    other = write(tmp_path / "other.ncu-rep", "fast_gemm_rows", 2e6, 0)
    capsys.readouterr()
    assert main(["compare", old, other, "--fail"]) == 3, "a position is too little to fail by"
    assert "judged where --pair gemm_v1=fast_gemm_rows declares it" in capsys.readouterr().out
    assert main(["compare", old, other, "--fail", "--pair", "gemm_v1=fast_gemm_rows"]) == 1
    assert main(["compare", old, new, "--no-guess"]) == 0, "without --fail nothing is judged"
    assert profiler.compare(old, new, guess=False).verdict.value == "missing"
    assert profiler.gate(new, baseline=old, guess=False).exit_code == 3


def test_a_launcher_of_two_functions_neither_passes_nor_fails_a_gate(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ncu_report")
    paths = []
    for functor, ns in (("FillFunctor", 1e6), ("AddFunctor", 2e6)):
        launcher = LaunchResult(
            "elementwise",
            f"void elementwise<4, {functor}<float>>(int)",
            f"_Z{functor}",
            {**CHIP, "gpu__time_duration.sum": ns, "device__attribute_display_name": "NVIDIA Test 1"},
            (64, 1, 1),
        )
        paths.append(tmp_path / f"{functor}.ncu-rep")
        paths[-1].write_bytes(ReportFile((launcher,), SessionDetails(created=1730121091)).to_bytes())
    fill, add = map(str, paths)
    assert main(["compare", fill, add, "--fail"]) == 3
    shown = capsys.readouterr().out
    assert (
        "elementwise: paired by name, but functions in their templates differ in name, number or arguments"
        in shown
    )
    assert "judged where --pair elementwise=elementwise declares it" in shown
    assert main(["compare", fill, add, "--fail", "--no-guess"]) == 3
    assert "--pair elementwise=elementwise compares the two" in capsys.readouterr().out
    assert main(["compare", fill, add, "--fail", "--pair", "elementwise=elementwise"]) == 1


def test_kernels_in_renamed_ranges_are_named_with_their_ranges_and_the_option_that_pairs_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ncu_report")
    names = []
    for side, nvtx in (("a", "step"), ("b", "epoch")):
        metrics = {**CHIP, "gpu__time_duration.sum": 1e6, "device__attribute_display_name": "NVIDIA Test 1"}
        launch = LaunchResult(
            "gemm", "void gemm(float*)", "_Zgemm", metrics, (64, 1, 1), nvtx={"<default domain>": [nvtx]}
        )
        path = tmp_path / f"{side}.ncu-rep"
        path.write_bytes(ReportFile((launch,), SessionDetails(created=1730121091)).to_bytes())
        names.append(str(path))
    main(["compare", *names])
    shown = capsys.readouterr().out
    assert "gemm: launches pair within a range: NVTX step in A, epoch in B" in shown
    assert "if they are one kernel" not in shown, "it is one kernel"
    assert main(["compare", *names, "--pair", "gemm=gemm", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["launches"]) == 1
