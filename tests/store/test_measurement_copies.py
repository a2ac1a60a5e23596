"""A folder that holds a report and its exports is one run; two measurements of one program are two."""

from __future__ import annotations

import csv
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from profiler.bundles import bundle
from profiler.bundles.location import Root
from profiler.bundles.run import Run
from profiler.cli import main
from profiler.errors import Exit
from profiler.evidence.launch import Report
from profiler.store.begin_import import import_paths
from profiler.store.index import Store
from profiler.store.prefetch import Prefetch
from profiler.store.readable_index import open_store
from tests.conftest import REPORTS
from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile, Scalar, SessionDetails

TIME, CYCLES, BUSY = (
    "gpu__time_duration.sum",
    "gpc__cycles_elapsed.max",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed",
)
UNITS = {TIME: "ns", CYCLES: "cycle", BUSY: "%"}
GPU: dict[str, Metric | Scalar] = {
    **{f"device__attribute_{name}": 0x170 for name in ("architecture", "chip", "implementation")},
    "device__attribute_display_name": "NVIDIA A100",
    "device__attribute_compute_capability_major": 8,
    "device__attribute_compute_capability_minor": 0,
}
FIRST = {TIME: 437_440.0, CYCLES: 612_345.0, BUSY: 43.218765}
SECOND = {TIME: 151_872.0, CYCLES: 212_733.0, BUSY: 71.926531}
LAUNCHES = (("gemm", FIRST), ("softmax", SECOND))
Launches = Sequence[tuple[str, Mapping[str, float]]]


def report(path: Path, launches: Launches = LAUNCHES, *, created: int = 1_730_000_000) -> Path:
    results = [
        LaunchResult(name, f"{name}(float*)", f"_Z{name}", GPU | dict(numbers), (64, 1, 1))
        for name, numbers in launches
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(ReportFile(results, SessionDetails(created=created)).to_bytes())
    return path


def raw_csv(path: Path, launches: Launches = LAUNCHES, *, digits: int = 6, names: Sequence[str] = ()) -> Path:
    """As `ncu --page raw --csv --print-units base` prints it."""
    names = names or tuple(UNITS)
    head = ["ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow([*head, *names])
        writer.writerow([*("" for _ in head), *(UNITS[name] for name in names)])
        for number, (name, numbers) in enumerate(launches):
            place = [number, f"{name}(float *)", 1, 7, "(128, 1, 1)", "(64, 1, 1)", 0, "8.0"]
            writer.writerow([*place, *(f"{numbers[metric]:.{digits}f}" for metric in names)])
    return path


def details_csv(path: Path, launches: Launches = LAUNCHES) -> Path:
    """As `ncu --page details --csv --print-metric-name name` prints it: two decimals, units that suit."""
    head = ["ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC"]
    columns = ["Section Name", "Metric Name", "Metric Unit", "Metric Value", "Rule Name", "Rule Type"]
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.writer(file, quoting=csv.QUOTE_ALL)
        writer.writerow([*head, *columns, "Rule Description"])
        for number, (name, numbers) in enumerate(launches):
            place = [number, f"{name}(float *)", 1, 7, "(128, 1, 1)", "(64, 1, 1)", 0, "8.0"]
            for metric, unit, value in (
                (TIME, "us", f"{numbers[TIME] / 1000:.2f}"),
                (CYCLES, "cycle", f"{numbers[CYCLES]:,.0f}"),
                (BUSY, "%", f"{numbers[BUSY]:.2f}"),
            ):
                writer.writerow([*place, "Speed Of Light", metric, unit, value, "", "", ""])
    return path


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path / "data"))
    return str(tmp_path / "data")


@pytest.mark.slow
def test_a_folder_with_all_forms_of_a_capture_is_one_run_of_the_report(tmp_path: Path, data: str) -> None:
    folder = tmp_path / "captures"
    details_csv(folder / "a.details.csv")
    raw_csv(folder / "a.raw.csv")
    raw_csv(folder / "elsewhere" / "under another name.csv")
    report(folder / "z.ncu-rep")
    summary = import_paths([folder], data=data)
    (imported,) = summary.imported
    assert Path(imported.path).name == "z.ncu-rep"
    assert {(item.run_id, item.from_other_file) for item in summary.already} == {(imported.run_id, True)}
    assert len(summary.already) == 3
    with open_store(data) as store:
        assert [run.run_id for run in store.runs()] == [imported.run_id]


def test_exports_are_known_while_their_report_is_being_sealed(
    tmp_path: Path, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, seal_import = tmp_path / "captures", bundle.seal_import
    report(folder / "a.ncu-rep")
    raw_csv(folder / "elsewhere" / "under another name.csv")
    raw_csv(folder / "a.raw.csv", digits=0, names=[TIME])

    def slow(root: Root, run: Run, sources: Mapping[str, Path]) -> str | None:
        time.sleep(1)
        return seal_import(root, run, sources)

    monkeypatch.setattr(bundle, "seal_import", slow)
    summary = import_paths([folder], data=data)
    (imported,) = summary.imported
    assert {(Path(item.path).name, item.run_id) for item in summary.already} == {
        ("a.raw.csv", imported.run_id),
        ("under another name.csv", imported.run_id),
    }


def test_exports_are_known_while_only_earlier_reports_are_in_the_index(
    tmp_path: Path, data: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first report is sealed and indexed, the second one still being sealed when its export is read."""
    folder, seal_import = tmp_path / "captures", bundle.seal_import
    other = tuple((name, {**numbers, TIME: numbers[TIME] * 1.5}) for name, numbers in LAUNCHES)
    report(folder / "a.ncu-rep", other)
    report(folder / "b.ncu-rep")
    raw_csv(folder / "elsewhere" / "under another name.csv")
    sealed, indexed, asked = threading.Event(), threading.Event(), threading.Event()
    add_many, items = Store.add_many, Prefetch.__next__

    def slow(root: Root, run: Run, sources: Mapping[str, Path]) -> str | None:
        if "b" in (path.stem for path in sources.values()):
            assert indexed.wait(20)
        else:  # the first one: not before the import has looked whether it is sealed
            assert asked.wait(20)
        run_id = seal_import(root, run, sources)
        sealed.set()
        return run_id

    def noted(store: Store, *arguments: Any, **named: Any) -> list[bool]:
        is_new = add_many(store, *arguments, **named)
        indexed.set()
        return is_new

    def late(reports: Prefetch[Report]) -> Report:
        found = items(reports)
        if found.name == "b.ncu-rep":
            asked.set()
            assert sealed.wait(20)
            time.sleep(0.2)  # until its thread says so
        assert indexed.is_set() == (found.form != "ncu-rep")
        return found

    monkeypatch.setattr(bundle, "seal_import", slow)
    monkeypatch.setattr(Store, "add_many", noted)
    monkeypatch.setattr(Prefetch, "has_next", False)
    monkeypatch.setattr(Prefetch, "__next__", late)
    summary = import_paths([folder], data=data)
    assert [item.version for item in summary.imported] == ["a", "b"]
    assert [item.run_id for item in summary.already] == [summary.imported[1].run_id]


def test_an_export_that_comes_later_or_before_is_known(tmp_path: Path, data: str) -> None:
    (first,) = import_paths([details_csv(tmp_path / "b.csv")], data=data).imported
    for path in (report(tmp_path / "a.ncu-rep"), raw_csv(tmp_path / "c.csv")):
        summary = import_paths([path], data=data)
        assert [item.run_id for item in summary.already] == [first.run_id], path
        assert summary.imported == ()


def test_two_runs_of_one_program_stay_two(tmp_path: Path, data: str) -> None:
    """Each differs in the fourth digit of one counter alone."""
    again = [
        (("gemm", {**FIRST, name: FIRST[name] * 1.0009}), ("softmax", SECOND))
        for name in (TIME, CYCLES, BUSY)
    ]
    paths = [
        raw_csv(tmp_path / f"{number}.csv", launches) for number, launches in enumerate((LAUNCHES, *again))
    ]
    assert len(import_paths(paths, data=data).imported) == 4


def test_reports_made_at_two_times_are_two_measurements(tmp_path: Path, data: str) -> None:
    paths = [report(tmp_path / f"{when}.ncu-rep", created=1_730_000_000 + when) for when in (0, 60)]
    assert len(import_paths(paths, data=data).imported) == 2


def test_a_page_of_few_digits_is_known_by_its_name_beside_its_report(tmp_path: Path, data: str) -> None:
    short = (("gemm", {TIME: 5_152.0, CYCLES: 7_433.0, BUSY: 8.1234}),)
    report(tmp_path / "in" / "short.ncu-rep", short)
    raw_csv(tmp_path / "in" / "short.raw.csv", short, digits=0, names=[TIME])
    raw_csv(tmp_path / "in" / "other.csv", short, digits=0, names=[TIME])
    summary = import_paths([tmp_path / "in"], data=data)
    assert [Path(item.path).name for item in summary.already] == ["short.raw.csv"]
    other = (("gemm", {TIME: 5_216.0, CYCLES: 7_433.0, BUSY: 8.1234}),)
    report(tmp_path / "next" / "short.ncu-rep", other)
    third = (("gemm", {TIME: 5_184.0}),)
    raw_csv(tmp_path / "next" / "short.raw.csv", third, digits=0, names=[TIME])
    assert import_paths([tmp_path / "next"], data=data).already == (), "its number contradicts the report"


@pytest.mark.slow
def test_a_gate_and_a_comparison_of_an_export_compare_nothing(tmp_path: Path, data: str) -> None:
    files = report(tmp_path / "a.ncu-rep"), raw_csv(tmp_path / "b.csv"), details_csv(tmp_path / "c.csv")
    for a in map(str, files):
        for b in map(str, files):
            assert main(["gate", a, "--baseline", b]) == Exit.UNJUDGED, (a, b)
            assert main(["compare", a, b, "--fail"]) == Exit.UNJUDGED, (a, b)
    slower = [
        (name, {**numbers, TIME: numbers[TIME] * 1.2, CYCLES: numbers[CYCLES] * 1.2})
        for name, numbers in LAUNCHES
    ]
    again = [(name, {**numbers, TIME: numbers[TIME] * 1.001}) for name, numbers in LAUNCHES]
    assert (
        main(["gate", str(raw_csv(tmp_path / "d.csv", slower)), "--baseline", str(files[0])])
        == Exit.REGRESSION
    )
    assert main(["gate", str(raw_csv(tmp_path / "e.csv", again)), "--baseline", str(files[0])]) == Exit.PASS


@pytest.mark.slow
def test_a_stored_run_and_its_export_are_one_for_the_gate(tmp_path: Path, data: str) -> None:
    (imported,) = import_paths([report(tmp_path / "a.ncu-rep")], data=data).imported
    export = str(details_csv(tmp_path / "c.csv"))
    assert main(["gate", imported.run_id, "--baseline", export]) == Exit.UNJUDGED
    assert main(["gate", export, "--baseline", imported.run_id]) == Exit.UNJUDGED


@pytest.mark.slow
@pytest.mark.skipif(not (REPORTS / "oracle").exists(), reason="../shared/reports is absent")
def test_public_reports_and_what_ncu_printed_of_them_are_one_run_each(data: str) -> None:
    reports = [
        path for path in sorted(REPORTS.glob("*/*.ncu-rep")) if path.parent.name not in ("bad", "oracle")
    ]
    exports = sorted((REPORTS / "oracle").glob("*.raw.csv"))
    summary = import_paths([*reports, *exports], data=data)
    assert len(summary.imported) == len(reports) + 1, "of HIGGS nothing was measured, which tells nothing"
    assert len(summary.already) == len(exports) - 1
