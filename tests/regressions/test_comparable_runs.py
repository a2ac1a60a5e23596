"""One rule of comparability: what `compare` refuses or leaves unclear is worse for no gate and no history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import profiler
from profiler.cli import main
from profiler.errors import Exit
from profiler.evidence.metric_table import load_metrics
from profiler.regressions.report import find_regressions
from profiler.statistics.verdict import Verdict
from profiler.store.begin_import import import_paths
from profiler.store.readable_index import open_store
from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile, Scalar, SessionDetails

TABLE = load_metrics()
DURATION, CYCLES, CLOCK = (
    "gpu__time_duration.sum",
    "gpc__cycles_elapsed.max",
    "gpc__cycles_elapsed.avg.per_second",
)
EXECUTED, SECTORS = "smsp__inst_executed.sum", "lts__t_sectors.sum"
MULTIPROCESSORS = "device__attribute_multiprocessor_count"
GPU: dict[str, Metric | Scalar] = {
    **{f"device__attribute_{name}": 0x170 for name in ("architecture", "chip", "implementation")},
    "device__attribute_display_name": "NVIDIA A100",
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 0,
}
BASE: dict[str, float] = {
    DURATION: 142_112.0,
    CYCLES: 214_003.0,
    CLOCK: 1_505_866_851.0,
    EXECUTED: 5_000_000,
    SECTORS: 9_000_000,
    MULTIPROCESSORS: 108,
}
SLOWER = {DURATION: 157_744.0, CYCLES: 237_541.0}
MUCH_MORE = {name: BASE[name] * 36.1 for name in (DURATION, CYCLES, EXECUTED, SECTORS)}
SESSION = SessionDetails()


def write(path: Path, numbers: Mapping[str, float | None], session: SessionDetails) -> Path:
    metrics = GPU | {name: number for name, number in numbers.items() if number is not None}
    launch = LaunchResult("merge", "merge(float*)", "_Z5merge", metrics, (2000, 1, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ReportFile([launch], session).to_bytes())
    return path


def history(
    folder: Path,
    after: Mapping[str, float | None],
    session: SessionDetails = SESSION,
    base: Mapping[str, float | None] | None = None,
    count: int = 2,
) -> str:
    """A data folder with `count` imports of a kernel, of which the second half is as `after` says."""
    paths = []
    for number in range(count):
        is_after = number >= count // 2
        numbers = {**BASE, **(base or {}), **(after if is_after else {})}
        numbers[DURATION] = (numbers[DURATION] or 0.0) * (1 + 0.0005 * (number * 7 % 5))
        made = replace(session if is_after else SESSION, created=1_730_000_000 + 3600 * number)
        paths.append(write(folder / "merges" / f"v{number:02}.ncu-rep", numbers, made))
    import_paths(paths, data=str(folder / "data"))
    return str(folder / "data")


def answers(data: str, monkeypatch: pytest.MonkeyPatch, count: int = 2) -> tuple[Verdict, int, int, int]:
    """The verdict of `compare`, the exit code of `gate`, and what `regressions` found worse and unclear."""
    monkeypatch.setenv("PROFILER_DATA", data)
    monkeypatch.delenv("PROFILER_DB", raising=False)
    names = "merges/v00", f"merges/v{count - 1:02}"
    verdict = profiler.compare(*names, data=data).verdict
    code = main(["gate", names[1], "--baseline", names[0]])
    with open_store(data) as store:
        report = find_regressions(store, TABLE)
    return verdict, code, len(report.regressions), report.coverage.unclear.total()


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 16])
def test_a_slower_kernel_of_one_machine_is_worse_in_all_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    data = history(tmp_path, SLOWER, count=count)
    verdict, code, worse, _ = answers(data, monkeypatch, count)
    assert (verdict, code, worse) == (Verdict.WORSE, Exit.REGRESSION, 1)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 16])
@pytest.mark.parametrize(
    ("after", "session", "expected"),
    [
        (MUCH_MORE, replace(SESSION, driver="570.00.01"), Verdict.NOT_COMPARABLE),
        (
            MUCH_MORE,
            replace(SESSION, ncu_version="2025.1.0.0 (build 1) (public-release)"),
            Verdict.NOT_COMPARABLE,
        ),
        (SLOWER, replace(SESSION, driver="570.00.01"), Verdict.NOT_COMPARABLE),
        ({**SLOWER, MULTIPROCESSORS: 14}, SESSION, Verdict.NOT_COMPARABLE),
        (MUCH_MORE, SESSION, Verdict.UNCLEAR),
    ],
    ids=["driver and size", "ncu and size", "driver", "part of a GPU", "size"],
)
def test_what_compare_refuses_is_worse_for_none(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
    after: Mapping[str, float | None],
    session: SessionDetails,
    expected: Verdict,
) -> None:
    data = history(tmp_path, after, session, count=count)
    verdict, code, worse, unclear = answers(data, monkeypatch, count)
    assert (verdict, code, worse) == (expected, Exit.UNJUDGED, 0)
    assert unclear, "what could not be judged is counted"


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 16])
def test_a_lower_clock_without_its_counter_is_unclear_for_all_three(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    data = history(tmp_path, {DURATION: BASE[DURATION] * 1.11}, base={CLOCK: None}, count=count)
    verdict, code, worse, unclear = answers(data, monkeypatch, count)
    assert (verdict, code, worse) == (Verdict.UNCLEAR, Exit.UNJUDGED, 0)
    assert unclear


def test_a_declared_workload_may_have_another_driver_along_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """There a step may be the driver's, which is what a history is looked at for."""
    session = replace(SESSION, driver="570.00.01")
    paths = [
        write(tmp_path / "merges" / "v.ncu-rep", BASE, SESSION),
        write(tmp_path / "merges" / "w.ncu-rep", {**BASE, **SLOWER}, replace(session, created=1_740_000_000)),
    ]
    import_paths(paths, family="merges", version="v", workload="2^20", data=str(tmp_path / "data"))
    with open_store(str(tmp_path / "data")) as store:
        assert len(find_regressions(store, TABLE).regressions) == 1
