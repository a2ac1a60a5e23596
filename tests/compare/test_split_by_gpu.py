"""A launch has a GPU of its own: it is compared with launches of that GPU, and filed under it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

import profiler
from profiler.cli import main
from profiler.cli.output import add_across
from profiler.compare.comparability import ACROSS
from profiler.compare.comparison import compare
from profiler.compare.resolve_names import side_of_report
from profiler.compare.split_by_gpu import split_by_gpu
from profiler.errors import Exit, UnknownName
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.side import Side
from profiler.reports.read import read_report
from profiler.statistics.verdict import Verdict
from profiler.store.begin_import import import_paths
from profiler.store.readable_index import open_store
from tests.conftest import REPORTS

TABLE = load_metrics()
STRANGERS = REPORTS.parent / "strangers"
A100, H100 = ("NVIDIA A100-SXM4-40GB", "8.0"), ("NVIDIA H100 80GB HBM3", "9.0")
Row = tuple[tuple[str, str], float, int]  # GPU and capability, ns, device


def report(
    path: Path, rows: Sequence[Row], *, multiprocessors: Sequence[int] = (), named: bool = True
) -> Path:
    """A raw CSV with a launch of `attn_fwd` a row."""
    head = ["ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]
    metrics = {"gpu__time_duration.sum": "ns", "launch__registers_per_thread": "register/thread"}
    metrics |= {"device__attribute_display_name": ""} if named else {}
    metrics |= {"device__attribute_multiprocessor_count": ""} if multiprocessors else {}
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow([*head, *metrics])
    writer.writerow([*("" for _ in head), *metrics.values()])
    for number, ((name, capability), ns, device) in enumerate(rows):
        place = [number, "attn_fwd(float *)", 1, 7, "(128, 1, 1)", "(64, 1, 1)", device, capability]
        numbers = [ns, 40, *([name] if named else []), *multiprocessors[number : number + 1]]
        writer.writerow([*place, *numbers])
    path.write_text(text.getvalue())
    return path


def sides(*paths: Path) -> list[Side]:
    return [side_of_report(read_report(path), str(path)) for path in paths]


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """An A100 and an H100 in one report; in the next the A100 is as fast and the H100 10 % slower."""
    return (
        report(tmp_path / "a.csv", [(A100, 203_456, 0), (H100, 101_234, 1)]),
        report(tmp_path / "b.csv", [(H100, 111_357, 0), (A100, 203_460, 1)]),
    )


def test_a_report_has_the_gpus_of_its_launches(two: tuple[Path, Path]) -> None:
    made = read_report(two[0])
    assert made.gpus == (A100[0], H100[0])
    assert (made.gpu, made.compute_capability) == (None, None)
    assert [launch.gpu for launch in made.launches] == [A100[0], H100[0]]
    assert [launch.compute_capability for launch in made.launches] == ["8.0", "9.0"]
    assert [launch.device for launch in made.launches] == [0, 1]


def test_launches_pair_within_their_gpu_in_whatever_order(two: tuple[Path, Path]) -> None:
    comparison = compare(*sides(*two), TABLE)
    assert comparison.comparable
    found = {(pair.a.gpu, pair.b.gpu): pair.verdict for pair in comparison.pairs}
    assert found == {(A100[0], A100[0]): Verdict.SAME, (H100[0], H100[0]): Verdict.WORSE}


def test_a_launch_without_a_partner_on_its_gpu_is_compared_with_none(tmp_path: Path) -> None:
    a = report(tmp_path / "a.csv", [(A100, 203_456, 0), (H100, 101_234, 1)])
    b = report(tmp_path / "b.csv", [(A100, 203_460, 0)])
    comparison = compare(*sides(a, b), TABLE)
    assert [(pair.a.gpu, pair.b.gpu) for pair in comparison.pairs] == [(A100[0], A100[0])]
    assert [launch.gpu for launch in comparison.only_in_a] == [H100[0]]
    assert main(["gate", str(b), "--baseline", str(a)]) == Exit.UNJUDGED


def test_reports_that_share_no_gpu_are_not_comparable_and_both_are_named(tmp_path: Path) -> None:
    a, b = report(tmp_path / "a.csv", [(A100, 203_456, 0)]), report(tmp_path / "b.csv", [(H100, 101_234, 0)])
    comparison = compare(*sides(a, b), TABLE)
    (blocking,) = comparison.blocked_by
    assert (blocking.field, blocking.a, blocking.b) == ("GPU", A100[0], H100[0])
    assert main(["compare", str(a), str(b), "--fail"]) == Exit.UNJUDGED


@pytest.mark.skipif(not STRANGERS.exists(), reason="../shared/strangers is absent")
def test_the_stranger_with_two_gpus_fails_nobody() -> None:
    a, b = (STRANGERS / "12" / name for name in ("tg_a.csv", "tg_b.csv"))
    comparison = compare(*sides(a, b), TABLE)
    assert all(pair.a.gpu == pair.b.gpu for pair in comparison.pairs)
    assert [launch.gpu for launch in comparison.only_in_a] == [H100[0]]
    assert main(["compare", str(a), str(b), "--fail"]) == Exit.UNJUDGED


def test_across_gpu_makes_the_difference_of_gpus_the_question(tmp_path: Path) -> None:
    a, b = report(tmp_path / "a.csv", [(A100, 203_456, 0)]), report(tmp_path / "b.csv", [(H100, 101_234, 0)])
    comparison = compare(*sides(a, b), TABLE, across=("gpu",))
    assert comparison.comparable
    assert [pair.verdict for pair in comparison.pairs] == [Verdict.BETTER]
    assert profiler.compare(a, b, across="gpu").verdict is Verdict.BETTER
    assert profiler.compare(a, b).verdict is Verdict.NOT_COMPARABLE
    assert main(["compare", str(a), str(b), "--across", "gpu", "--fail"]) == Exit.PASS
    assert main(["compare", str(b), str(a), "--across", "gpu", "--fail"]) == Exit.REGRESSION
    assert main(["gate", str(a), "--baseline", str(b), "--across", "gpu"]) == Exit.REGRESSION
    assert main(["explain", str(a), str(b), "--across", "gpu"]) == Exit.PASS
    assert main(["compare", str(a), str(b), str(a), "--across", "gpu"]) == Exit.UNUSABLE_INPUT


def test_the_commands_offer_what_the_library_takes(capsys: pytest.CaptureFixture[str]) -> None:
    import argparse

    command = argparse.ArgumentParser()
    add_across(command)
    for name in ACROSS:
        assert command.parse_args(["--across", name]).across == [name]


def test_gpu_chooses_among_the_launches_of_a_report(two: tuple[Path, Path]) -> None:
    a, b = two
    document = profiler.compare(a, b, gpu=H100[0])
    assert [pair.b.gpu for pair in document.comparison.pairs] == [H100[0]]
    assert main(["compare", str(a), str(b), "--gpu", A100[0], "--fail"]) == Exit.PASS
    assert main(["compare", str(a), str(b), "--gpu", H100[0], "--fail"]) == Exit.REGRESSION
    assert main(["compare", str(a), str(b), "--gpu", "NVIDIA L4"]) == Exit.UNUSABLE_INPUT
    with pytest.raises(UnknownName):
        profiler.compare(profiler.read_report(a), profiler.read_report(b), gpu="NVIDIA L4")


def test_a_table_has_a_place_for_each_gpu_of_a_report(two: tuple[Path, Path]) -> None:
    frame = profiler.compare_many(list(map(str, two))).to_frame()
    times = frame[(frame["concept"] == "duration") & (frame["version"] == str(two[1]))]
    assert dict(zip(times["gpu"], times["verdict"], strict=True)) == {A100[0]: "same", H100[0]: "worse"}


def test_json_says_the_gpus_of_a_side_and_of_a_pair(
    two: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compare", *map(str, two), "--json"]) == Exit.PASS
    document = json.loads(capsys.readouterr().out)
    assert document["a"]["gpus"] == [A100[0], H100[0]]
    assert document["a"]["gpu"] is None
    assert {(launch["gpu_a"], launch["gpu_b"]) for launch in document["launches"]} == {
        (A100[0], A100[0]),
        (H100[0], H100[0]),
    }


def test_without_names_the_capabilities_tell_the_gpus_apart(tmp_path: Path) -> None:
    a = report(tmp_path / "a.csv", [(A100, 203_456, 0), (H100, 101_234, 1)], named=False)
    b = report(tmp_path / "b.csv", [(H100, 101_238, 0), (A100, 203_461, 1)], named=False)
    comparison = compare(*sides(a, b), TABLE)
    assert [(pair.a.compute_capability, pair.verdict) for pair in comparison.pairs] == [
        ("8.0", Verdict.SAME),
        ("9.0", Verdict.SAME),
    ]


@pytest.mark.slow
def test_a_part_of_a_gpu_under_the_whole_ones_name_is_another(tmp_path: Path) -> None:
    """An instance of MIG, or a card of the same name with fewer multiprocessors."""
    whole = report(tmp_path / "a.csv", [(A100, 203_456, 0)], multiprocessors=[108])
    part = report(tmp_path / "b.csv", [(A100, 1_403_456, 0)], multiprocessors=[14])
    comparison = compare(*sides(whole, part), TABLE)
    assert [difference.field for difference in comparison.blocked_by] == ["multiprocessors"]
    assert main(["compare", str(whole), str(part), "--fail"]) == Exit.UNJUDGED
    both = report(tmp_path / "c.csv", [(A100, 1_403_460, 0), (A100, 203_458, 1)], multiprocessors=[14, 108])
    comparison = compare(*sides(both, both), TABLE)
    assert all(pair.a.multiprocessors == pair.b.multiprocessors for pair in comparison.pairs)
    comparison = compare(*sides(whole, both), TABLE)
    assert [(pair.b.multiprocessors, pair.verdict) for pair in comparison.pairs] == [(108, Verdict.SAME)]


def test_two_devices_of_one_model_pair_by_their_index(tmp_path: Path) -> None:
    a = report(tmp_path / "a.csv", [(A100, 203_456, 0), (A100, 151_234, 1)])
    b = report(tmp_path / "b.csv", [(A100, 151_238, 1), (A100, 203_461, 0)])
    comparison = compare(*sides(a, b), TABLE)
    assert [pair.verdict for pair in comparison.pairs] == [Verdict.SAME, Verdict.SAME]
    assert all(pair.a.device == pair.b.device for pair in comparison.pairs)


def test_the_only_device_of_a_process_may_have_another_index(tmp_path: Path) -> None:
    a, b = report(tmp_path / "a.csv", [(A100, 203_456, 0)]), report(tmp_path / "b.csv", [(A100, 203_461, 3)])
    assert [pair.verdict for pair in compare(*sides(a, b), TABLE).pairs] == [Verdict.SAME]
    assert len(split_by_gpu(*sides(a, b))) == 1


class TestIndex:
    @pytest.fixture
    def data(self, two: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        data = str(tmp_path / "data")
        monkeypatch.setenv("PROFILER_DATA", data)
        for path, version in zip(two, ("v1", "v2"), strict=True):
            import_paths([path], family="attention", version=version, data=data)
        return data

    def test_a_run_is_filed_under_both_gpus(self, data: str) -> None:
        with open_store(data) as store:
            runs = store.runs()
            assert [dict(run.gpus) for run in runs] == [{A100[0]: "8.0", H100[0]: "9.0"}] * 2
            assert {run.gpu for run in runs} == {run.compute_capability for run in runs} == {None}
            assert [info.gpus for info in store.versions("attention")] == [(A100[0], H100[0])] * 2
            assert [info.runs for info in store.versions("attention")] == [1, 1]
            assert {(cell.version, cell.gpu) for cell in store.cells("attention")} == {
                (version, gpu) for version in ("v1", "v2") for gpu in (A100[0], H100[0])
            }

    def test_a_side_has_the_launches_and_the_capability_of_its_gpu(self, data: str) -> None:
        with open_store(data) as store:
            for gpu, capability in (A100, H100):
                side = store.side(family="attention", version="v1", gpu=gpu)
                assert [launch.gpu for launch in side.launches] == [gpu]
                assert (side.gpu, side.compute_capability) == (gpu, capability)
                assert len(side.result_ids) == 1
            assert store.side(family="attention", version="v1", gpu=H100[0]).launches[0].device == 1

    def test_the_places_of_launches_are_counted_on_each_gpu(self, data: str) -> None:
        with open_store(data) as store:
            rows = store.results(family="attention", kind="launch")
            assert {(row.version, row.gpu, row.part) for row in rows} == {
                (version, gpu, "attn_fwd#0") for version in ("v1", "v2") for gpu in (A100[0], H100[0])
            }

    @pytest.mark.slow
    def test_gate_and_regressions_judge_each_gpu(self, data: str) -> None:
        assert main(["gate", "attention/v2", "--baseline", "attention/v1"]) == Exit.REGRESSION
        document = profiler.gate("attention/v2", baseline="attention/v1")
        judged = {
            (finding.gpu, finding.verdict)
            for finding in document.report.verdicts.findings
            if finding.effect is not None
        }
        assert judged == {(H100[0], Verdict.WORSE), (A100[0], Verdict.SAME)}

    @pytest.mark.slow
    def test_runs_with_several_gpus_are_compared_within_each(self, data: str) -> None:
        with open_store(data) as store:
            side = store.side(family="attention", version="v1")
            assert (side.gpu, side.compute_capability, side.gpus) == (None, None, (A100[0], H100[0]))
            assert len(side.result_ids) == len(side.launches) == 2
        document = profiler.compare("attention/v1", "attention/v2")
        found = {(pair.a.gpu, pair.b.gpu): pair.verdict for pair in document.comparison.pairs}
        assert found == {(A100[0], A100[0]): Verdict.SAME, (H100[0], H100[0]): Verdict.WORSE}
        assert set(document.to_frame()["gpu"]) == {A100[0], H100[0]}
        assert main(["compare", "attention/v1", "attention/v2", "--fail"]) == Exit.REGRESSION
        assert main(["compare", "attention/v1", "attention/v2", "--gpu", A100[0], "--fail"]) == Exit.PASS

    def test_versions_of_two_runs_on_two_gpus_still_ask_which(self, data: str, tmp_path: Path) -> None:
        for name, gpu in (("x", A100), ("y", H100)):
            path = report(tmp_path / f"{name}.csv", [(gpu, 303_456, 0)])
            import_paths([path], family="attention", version="v3", data=data)
        with pytest.raises(UnknownName, match="--gpu"), open_store(data) as store:
            store.side(family="attention", version="v3")

    @pytest.mark.slow
    def test_a_gate_across_gpus_pairs_stored_results_of_two(self, data: str, tmp_path: Path) -> None:
        for name, gpu, ns in (("x", A100, 303_456), ("y", H100, 153_456)):
            path = report(tmp_path / f"{name}.csv", [(gpu, ns, 0)])
            import_paths([path], family="other", version=name, data=data)
        assert main(["gate", "other/y", "--baseline", "other/x"]) == Exit.UNJUDGED
        assert main(["gate", "other/y", "--baseline", "other/x", "--across", "gpu"]) == Exit.PASS
        assert main(["gate", "other/x", "--baseline", "other/y", "--across", "gpu"]) == Exit.REGRESSION
        assert main(["compare", "other/y", "other/x", "--across", "gpu", "--fail"]) == Exit.REGRESSION

    def test_lists_name_both_gpus(self, data: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert main(["list", "runs", "--json"]) == Exit.PASS
        runs = json.loads(capsys.readouterr().out)["runs"]
        assert [sorted(run["gpus"]) for run in runs] == [[A100[0], H100[0]]] * 2
        assert main(["roofline", "attention/v1", "--json"]) in (Exit.PASS, Exit.UNJUDGED)
        assert json.loads(capsys.readouterr().out)["gpus"] == [A100[0], H100[0]]


def test_a_run_that_was_timed_on_one_gpu_and_profiled_on_another_has_both(tmp_path: Path) -> None:
    from profiler.bundles.bundle import imported_report_file
    from profiler.bundles.run import COLLECT, Capture, Result, Run, Samples
    from profiler.store.run_rows import make_rows

    made = read_report(report(tmp_path / "a.csv", [(H100, 101_234, 0)]))
    samples = Samples("events; cache warm; clock none", (1e6, 2e6), (0, 1))
    result = Result("attention", "v1", samples=(samples,), captures=(Capture(made.sha256),))
    run = Run(
        "20250101T000000-a-00000000",
        COLLECT,
        datetime(2025, 1, 1, tzinfo=UTC),
        {"gpu": A100[0], "compute_capability": "8.0"},
        (result,),
        (imported_report_file("a.csv", made.sha256, made.size_bytes),),
    )
    rows = make_rows((run, {made.sha256: made}, None))
    assert json.loads(rows.run["gpus"]) == {A100[0]: "8.0", H100[0]: "9.0"}
    assert rows.run["gpu"] is None
    assert {gpu for _, _, gpu in rows.cells} == {A100[0], H100[0]}
    assert sum(row["describes"] for row in rows.cells.values()) == 1
    assert sum(row["counts"] for row in rows.cells.values()) == 1
