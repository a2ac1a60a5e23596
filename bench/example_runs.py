"""Makes the example runs of data/runs: the numbers of two pairs of public reports, and nothing else of them.

    python bench/example_runs.py FOLDER [DATA]     FOLDER holds the reports by the names below

Of each launch the kernel's name, its grid and block, and every metric that is a number are written as the CSV
that ncu prints (`--page raw --csv --print-units base`), which is the report of the run. Source, machine code,
rules' texts, paths, host names and command lines stay behind. Where the numbers are from, and under which
licence, stands in the run's provenance and on every page that shows an example.
"""

from __future__ import annotations

import csv
import io
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiler.bundles import bundle
from profiler.bundles.bundle import hash_file
from profiler.bundles.location import LocalRoot
from profiler.bundles.run import EXAMPLE, IMPORT, Capture, Result, Run
from profiler.evidence.launch import Launch, Report
from profiler.evidence.values import State
from profiler.reports.read import read_report

ROOT = Path(__file__).resolve().parent.parent
_HEAD = ("ID", "Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC")
_OF_THE_MACHINE = ("pci", "numa", "uuid")  # numbers that tell one machine from another
_LAUNCHES = 8  # of a report, the longest


@dataclass(frozen=True)
class Example:
    """One report of which the numbers are taken."""

    path: str  # below the folder
    family: str
    version: str
    source: str  # repository, path and commit
    licence: str


_JOIN = "bwd29/self-join-MiSTIC, {}, commit 8c817a78"
_GEMM = "AveryClapp/ESMM-Research, profile.ncu-rep, commit {}"
EXAMPLES = (
    Example("mistic/prof1.ncu-rep", "example-join", "before", _JOIN.format("prof1.ncu-rep"), "MIT"),
    Example("mistic/prof2.ncu-rep", "example-join", "after", _JOIN.format("prof2.ncu-rep"), "MIT"),
    Example("esmm/profile@ee5ce738.ncu-rep", "example-gemm", "ee5ce738", _GEMM.format("ee5ce738"), "MIT"),
    Example("esmm/profile@17f278cb.ncu-rep", "example-gemm", "17f278cb", _GEMM.format("17f278cb"), "MIT"),
)


def numbers_of(report: Report) -> str:
    """The report as ncu's CSV: names, shapes and numbers of its longest launches, in their order."""
    by_duration = sorted(report.launches, key=_duration, reverse=True)[:_LAUNCHES]
    launches = [launch for launch in report.launches if launch in by_duration]
    units: dict[str, str] = {}
    for launch in launches:
        for name, value in launch.values.items():
            is_number = value.state is State.PRESENT and value.number is not None and value.number >= 0
            if any(words in name for words in _OF_THE_MACHINE):
                continue
            if is_number or value.state is State.FAILED:
                units.setdefault(name, value.unit)
    text = io.StringIO(newline="")
    writer = csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n")
    names = sorted(units)
    writer.writerow([*_HEAD, *names])
    writer.writerow([*("" for _ in _HEAD), *(units[name] for name in names)])
    for ordinal, launch in enumerate(launches):
        writer.writerow([*_head_cells(ordinal, launch), *(_cell(launch, name) for name in names)])
    return text.getvalue()


def _duration(launch: Launch) -> float:
    return float(launch.values.value("gpu__time_duration.sum").number or 0)


def _head_cells(ordinal: int, launch: Launch) -> list[str]:
    names = (f"device__attribute_compute_capability_{part}" for part in ("major", "minor"))
    capability = [launch.values.value(name).number for name in names]
    cc = ".".join(f"{part:.0f}" for part in capability if part is not None)
    return [str(ordinal), f"{launch.base_name}()", "1", "7", str(launch.block), str(launch.grid), "0", cc]


def _cell(launch: Launch, name: str) -> str:
    value = launch.values.value(name)
    if value.state is State.FAILED:
        return "nan"
    if value.state is not State.PRESENT or value.number is None or value.number < 0:
        return ""
    return str(value.number) if isinstance(value.number, int) else f"{value.number:.9g}"


def seal(root: LocalRoot, example: Example, report: Report) -> str:
    """Keep the numbers as a run, and return its id."""
    created = report.session.created
    assert created is not None
    launch = report.launches[0]
    gpu = launch.values.value("device__attribute_display_name").text
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / f"{example.version}.csv"
        path.write_text(numbers_of(report), encoding="utf-8", newline="")
        digest, size = hash_file(path)
        file = bundle.imported_report_file(path.name, digest, size)
        session = report.session
        provenance = {
            EXAMPLE: {"source": example.source, "licence": example.licence},
            "created_from": "session",
            "gpu": gpu,
            "compute_capability": _head_cells(0, launch)[-1],
            "driver": session.driver,
            "cuda": session.cuda,
            "ncu_version": session.ncu_version,
            **{
                name: value
                for name, value in (
                    ("clock_control", session.clock_control),
                    ("cache_control", session.cache_control),
                )
                if value
            },
        }
        run = Run(
            bundle.imported_run_id(created, example.family, example.version, digest),
            IMPORT,
            created,
            provenance,
            (Result(example.family, example.version, captures=(Capture(digest),)),),
            (file,),
        )
        with bundle.importing(root):
            bundle.seal(root, run, {file.path: path})
    return run.run_id


def main() -> None:
    """Make every example run."""
    folder = Path(sys.argv[1])
    root = LocalRoot(Path(sys.argv[2]) if len(sys.argv) > 2 else ROOT / "data")
    for example in EXAMPLES:
        report = read_report(folder / example.path)
        print(seal(root, example, report), len(report.launches), "launches")


if __name__ == "__main__":
    main()
