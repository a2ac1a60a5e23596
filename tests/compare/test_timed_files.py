"""Two files of times are compared as they are: a row for each benchmark, judged by known noise."""

from __future__ import annotations

from pathlib import Path

import pytest

import profiler
from profiler.compare.resolve_names import NothingShared
from profiler.compare.timed_files import timed_pairs
from profiler.documents.gate import GateDocument
from profiler.errors import Exit, UnknownName
from profiler.statistics.verdict import Verdict
from profiler.store.begin_import import import_paths
from tests.store.test_timed_runs import night, write
from tests.timings.test_read import nvbench


def verdicts(old: Path, new: Path, data: Path) -> dict[str | None, Verdict]:
    compared = profiler.compare(str(old), str(new), data=str(data))
    return {one.b.workload: one.verdict for one in compared.comparisons}


def test_without_known_noise_nothing_is_decided_and_with_it_what_moved_is(tmp_path: Path) -> None:
    data = tmp_path / "data"
    (data / "runs").mkdir(parents=True)
    old, new = write(tmp_path / "files", night(1), night(2, 1.06))
    assert set(verdicts(old, new, data).values()) == {Verdict.UNCLEAR}
    sessions = write(tmp_path / "same", *(night(n, seed=1, commit="f" * 40) for n in range(40)))
    import_paths(sessions, data=str(data), are_noise=True)
    assert verdicts(old, new, data) == {"test_gemm": Verdict.WORSE, "test_softmax[8]": Verdict.SAME}


def gate(new: Path, old: Path, data: Path) -> GateDocument:
    return profiler.gate(str(new), baseline=str(old), data=str(data))


def test_the_gate_fails_by_a_file_that_is_slower_and_judges_no_copy(tmp_path: Path) -> None:
    data = tmp_path / "data"
    sessions = write(tmp_path / "same", *(night(n, seed=1, commit="f" * 40) for n in range(40)))
    import_paths(sessions, data=str(data), are_noise=True)
    old, new, slow = write(tmp_path / "files", night(1), night(2), night(3, 1.06))
    assert gate(new, old, data).exit_code is Exit.PASS
    assert gate(slow, old, data).exit_code is Exit.REGRESSION
    assert gate(old, old, data).exit_code is Exit.UNJUDGED


def test_a_version_that_both_have_is_compared_with_itself(tmp_path: Path) -> None:
    for name, times in (("a", "0.5;0.25"), ("b", "0.25;0.5")):
        (tmp_path / f"{name}.csv").write_text(f"x_val;naive-latency;triton-latency\n8;{times}\n", "utf-8")
    pairs = timed_pairs(str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), None, None)
    assert [(a.version, b.version, b.workload) for a, b in pairs] == [
        ("naive", "naive", "8"),
        ("triton", "triton", "8"),
    ]
    assert [(a.latencies[0].ns[0], b.latencies[0].ns[0]) for a, b in pairs] == [(5e5, 2.5e5), (2.5e5, 5e5)]


def test_files_that_share_nothing_say_what_there_is(tmp_path: Path) -> None:
    first, second = write(tmp_path / "files", night(1), nvbench(None))
    with pytest.raises(NothingShared, match="bench_ops"):
        timed_pairs(str(first), str(second), None, None)
    with pytest.raises(NothingShared, match="H100"):
        timed_pairs(str(first), str(first), None, "NVIDIA H100")


def test_a_file_of_times_is_no_report(tmp_path: Path) -> None:
    (path,) = write(tmp_path / "files", night(1))
    with pytest.raises(UnknownName, match="profiler import"):
        profiler.insights(str(path), data=str(tmp_path / "data"))
