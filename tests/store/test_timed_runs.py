"""Files of times become runs: dated, told apart by GPU, imported once, and judged by their own noise."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import profiler
from profiler.bundles import bundle, location
from profiler.errors import ProfilerError
from profiler.statistics.verdict import Verdict
from profiler.store.begin_import import import_paths
from profiler.store.timed_runs import MOST_SAMPLES
from tests.timings.test_read import nvbench

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def night(number: int, factor: float = 1.0, seed: int = 0, commit: str | None = None) -> dict[str, Any]:
    """A file of pytest-benchmark: one night of two benchmarks, of which one takes `factor` as long."""
    draw = random.Random(1000 * seed + number)
    shift = draw.gauss(1, 0.003)
    benchmarks = []
    for name, seconds in (("test_gemm", 2e-3 * factor), ("test_softmax[8]", 4e-4)):
        data = [seconds * shift * draw.lognormvariate(0, 0.01) for _ in range(20)]
        benchmarks.append({"name": name, "fullname": f"bench_ops.py::{name}", "stats": {"data": data}})
    return {
        "machine_info": {"node": "box"},
        "commit_info": {"id": commit or f"{number:08d}" + "a" * 32},
        "benchmarks": benchmarks,
        "datetime": (BEGIN + timedelta(days=number)).isoformat(),
    }


def write(folder: Path, *contents: Any) -> list[Path]:
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number:04d}.json" for number in range(len(contents))]
    for path, content in zip(paths, contents, strict=True):
        path.write_text(json.dumps(content), "utf-8")
    return paths


def test_a_folder_of_files_is_a_history_in_which_a_step_is_found(tmp_path: Path) -> None:
    write(tmp_path / "nights", *(night(n, 1.05 if n >= 20 else 1.0) for n in range(30)))
    data = str(tmp_path / "data")
    summary = import_paths([tmp_path / "nights"], data=data, gpu="NVIDIA H100 SXM5")
    assert (len(summary.imported), summary.refused) == (30, ())
    assert {new.calls for new in summary.imported} == {40}
    found = profiler.list_regressions(data=data).report.regressions
    (step,) = found
    assert (step.series.family, step.series.workload) == ("bench_ops", "test_gemm")
    assert (step.series.gpu, step.possible[0].version) == ("NVIDIA H100 SXM5", "00000020aaaa")
    assert step.effect == pytest.approx(0.05, abs=0.01)


def test_importing_again_adds_nothing_and_half_an_import_is_completed(tmp_path: Path) -> None:
    write(tmp_path / "files", nvbench(None))
    data = str(tmp_path / "data")
    first = import_paths([tmp_path / "files"], data=data)
    assert len(first.imported) == 2  # one of each GPU
    (tmp_path / "files" / "0000.json").touch()  # a copy has another time
    again = import_paths([tmp_path / "files"], data=data)
    assert (again.imported, [known.run_id for known in again.already]) == ((), [first.imported[0].run_id])


def test_runs_say_their_gpu_and_what_failed(tmp_path: Path) -> None:
    write(tmp_path / "files", nvbench(None))
    data = str(tmp_path / "data")
    import_paths([tmp_path / "files"], data=data, gpu="not asked")
    root = location.open_root(data)
    runs = {
        run.provenance["gpu"]: run for run in (bundle.load_run(root, name) for name in bundle.list_runs(root))
    }
    assert set(runs) == {"NVIDIA H100 SXM5", "NVIDIA L4"}
    (failed,) = runs["NVIDIA L4"].results
    assert (failed.status, failed.samples, "too small" in (failed.reason or "")) == ("failed", (), True)
    (done,) = runs["NVIDIA H100 SXM5"].results
    assert (done.workload, [block.mode for block in done.samples]) == (
        "T=I32 N=4096",
        ["NVBench; cold; mean", "NVBench; batch; mean"],
    )


def test_what_is_not_the_version_is_part_of_the_workload(tmp_path: Path) -> None:
    table = tmp_path / "op_softmax_ab12cd_x.csv"
    table.write_text("x_val;naive-latency;triton-latency\n8;0.5;0.25\n", "utf-8")
    import_paths([table], data=str(tmp_path / "a"))
    import_paths([table], data=str(tmp_path / "b"), version="nightly-7", family="ops")
    cells = {}
    for name in "ab":
        root = location.open_root(str(tmp_path / name))
        (run_id,) = bundle.list_runs(root)
        results = bundle.load_run(root, run_id).results
        cells[name] = [(result.family, result.version, result.workload) for result in results]
    assert cells["a"] == [("softmax", "naive", "8"), ("softmax", "triton", "8")]
    assert cells["b"] == [("ops", "nightly-7", "naive 8"), ("ops", "nightly-7", "triton 8")]


def test_files_of_one_build_are_the_noise_that_later_files_are_judged_by(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    gpu = "NVIDIA H100 SXM5"
    sessions = write(tmp_path / "same", *(night(n, seed=1, commit="f" * 40) for n in range(40)))
    import_paths(sessions, data=data, gpu=gpu, are_noise=True)
    old, new, slow = write(tmp_path / "new", night(50), night(51), night(52, 1.06))
    import_paths([old, new, slow], data=data, gpu=gpu)
    root = location.open_root(data)
    runs = sorted(name for name in bundle.list_runs(root) if "-0000" in name)
    equal = profiler.compare(runs[0], runs[1], workload="test_gemm", data=data)
    assert [latency.verdict for latency in equal.comparison.latency] == [Verdict.SAME]
    worse = profiler.compare(runs[1], runs[2], workload="test_gemm", data=data)
    assert [latency.verdict for latency in worse.comparison.latency] == [Verdict.WORSE]


def test_noise_of_several_builds_is_refused(tmp_path: Path) -> None:
    sessions = write(tmp_path / "files", night(0), night(1))
    with pytest.raises(ProfilerError, match="unchanged build"):
        import_paths(sessions, data=str(tmp_path / "data"), are_noise=True)


def test_very_many_calls_are_thinned_and_that_is_said(tmp_path: Path) -> None:
    content = night(0)
    content["benchmarks"][0]["stats"]["data"] = [1e-6 + 1e-12 * n for n in range(2 * MOST_SAMPLES)]
    summary = import_paths(write(tmp_path / "files", content), data=str(tmp_path / "data"))
    assert len(summary.imported) == 1
    assert summary.imported[0].calls <= MOST_SAMPLES
    assert any("n-th call" in words for _, words in summary.warnings)


def test_recorded_times_are_a_run_of_the_commit_that_the_history_knows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = str(tmp_path / "data")
    monkeypatch.chdir(tmp_path)  # in no repository
    monkeypatch.setenv("PROFILER_COMMIT", "c" * 40)
    run_id = profiler.record("softmax", {"N=8": [1.5, 1.7], "N=16": [3]}, unit="us", gpu="L4", data=data)
    run = bundle.load_run(location.open_root(data), run_id)
    assert [(one.version, one.workload, one.samples[0].ns) for one in run.results] == [
        ("c" * 12, "N=8", (1500.0, 1700.0)),
        ("c" * 12, "N=16", (3000.0,)),
    ]
    assert (run.provenance["gpu"], run.provenance["git_commit"]) == ("L4", "c" * 40)
    again = profiler.record("softmax", {"N=8": [1.5, 1.7]}, unit="us", gpu="L4", data=data)
    assert again != run_id
    assert profiler.list_regressions(data=data).report.regressions == ()


@pytest.mark.parametrize(
    ("times", "options"),
    [
        ({"N": [0.0]}, {}),
        ({"N": [float("nan")]}, {}),
        ({"N": ["1"]}, {}),
        ({}, {}),
        ({"N": []}, {}),
        ({"N": [1.0]}, {"unit": "weeks"}),
        ({"N": [1.0]}, {"version": " "}),
    ],
)
def test_what_is_no_time_is_not_recorded(tmp_path: Path, times: Any, options: dict[str, str]) -> None:
    with pytest.raises(ProfilerError):
        profiler.record("softmax", times, data=str(tmp_path / "data"), **{"version": "v1", **options})
    assert not (tmp_path / "data").exists()
