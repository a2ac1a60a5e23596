"""Makes a data folder with a long history: real bundles, and the index that an import of them would give.

    python bench/data_folder.py FOLDER                            10,000 runs x 5 workloads, 5 million samples
    python bench/data_folder.py FOLDER --runs 500 --samples 20
    PROFILER_DATA=FOLDER profiler dashboard

A run is one night of one version of attention: a CSV as ncu prints it, with 60 metrics of a launch a
workload, and the latencies of its calls. A night in a hundred a version gets 4 % slower, or faster again.
The numbers are drawn; the versions are those of the catalogue that are measured. The newest of this
repository's runs that keeps the catalogue is copied beside them, so that pages have a lineage to show.
"""

from __future__ import annotations

import argparse
import csv
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import numpy as np

from profiler.bundles import bundle, location
from profiler.bundles.run import IMPORT, Capture, Result, Run, Samples
from profiler.catalog.catalog import PROJECT_KERNELS, load_catalog
from profiler.evidence.launch import Report
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Evidence
from profiler.reports.csv_export import read_csv
from profiler.store.readable_index import open_store
from profiler.store.report_values import cache_report
from profiler.store.sync import sync_index

WORKLOADS = ("1x8x512x64", "1x8x512x64 causal", "2x8x2048x64", "2x8x2048x64 causal", "2x8x2048x128")
METRICS = 60
ROOT = Path(__file__).resolve().parent.parent
CATALOGUED = "*-attention-dissect-*"  # runs of this repository that keep the catalogue
START = datetime(2024, 1, 1, 2, tzinfo=UTC)
AT_ONCE = 100  # runs in one transaction of the index
GPU, CHIP, CAPABILITY = "NVIDIA H100 80GB HBM3", "sm_90", "9.0"
_ABOUT = ("ID", "Process ID", "Process Name", "Host Name", "Kernel Name", "Context", "Stream")
_GEOMETRY = ("Block Size", "Grid Size", "Device", "CC")
_STEP_CHANCE, _STEP = 0.01, 0.04


def metric_names() -> list[tuple[str, str]]:
    """(ncu name, unit) of 60 metrics of the table, of which the duration is the first."""
    names = {"gpu__time_duration.sum": "ns"}
    for metric in load_metrics().of(Evidence.MEASURED):
        for name in metric.names_for(CHIP)[:1]:
            names.setdefault(name, metric.unit)
    return list(names.items())[:METRICS]


def levels(versions: int, nights: int) -> np.ndarray:
    """How long a version takes in a night, relative to its first [versions, nights]: steps of 4 %."""
    chance = np.random.default_rng(1)
    steps = np.where(chance.random((versions, nights)) < _STEP_CHANCE, _STEP, 0.0)
    signs = np.where(np.cumsum(steps > 0, axis=1) % 2, 1.0, -1.0)
    return np.exp(np.cumsum(steps * signs, axis=1))


def csv_text(kernel: str, metrics: Sequence[tuple[str, str]], values: np.ndarray) -> str:
    """The raw page with a launch a workload; values [workloads, metrics] in base units."""
    out = io.StringIO()
    write = csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerow
    write([*_ABOUT, *_GEOMETRY, *(name for name, _ in metrics)])
    write([*("" for _ in (*_ABOUT, *_GEOMETRY)), *(unit for _, unit in metrics)])
    for number, row in enumerate(values):
        about = [number, 1, "python", "host", f"void {kernel}<64>(const __half *)", 1, 7]
        write([*about, "(128, 1, 1)", "(64, 8, 1)", 0, CAPABILITY, *(f"{value:.6f}" for value in row)])
    return out.getvalue()


def runs(count: int, samples: int, folder: Path) -> Iterator[tuple[Run, Report, Path]]:
    """Runs in the order of time, each with its report, which lies in `folder` until the next one."""
    catalog = load_catalog(PROJECT_KERNELS / "catalog.toml")
    versions = [version.id for version in catalog.versions if version.state == "good" and version.source]
    metrics = metric_names()
    nights = -(-count // len(versions))
    level = levels(len(versions), nights)
    typical = np.random.default_rng(2).uniform(1.0, 100.0, (len(versions), len(WORKLOADS), len(metrics)))
    typical[..., 0] = np.geomspace(4e5, 4e4, len(versions))[:, None] * np.array((1, 0.6, 24, 13, 40))
    rounds = tuple(number // 4 for number in range(samples))
    for number in range(count):
        night, at = divmod(number, len(versions))
        version, created = versions[at], START + timedelta(days=night, minutes=at)
        chance = np.random.default_rng(number)
        values = typical[at] * chance.normal(1.0, 0.004, typical[at].shape)
        values[:, 0] *= level[at, night]
        path = folder / f"{version}-{night:05d}.csv"
        path.write_text(csv_text(version, metrics, values), encoding="utf-8")
        content = path.read_bytes()
        digest = sha256(content).hexdigest()
        calls = 0.96 * values[:, :1] * chance.normal(1.0, 0.006, (len(WORKLOADS), samples))
        results = tuple(
            Result(
                catalog.family,
                version,
                workload,
                captures=(Capture(digest, (ordinal,)),),
                samples=(Samples("events; cache warm; clock none", tuple(call.round().tolist()), rounds),)
                if samples
                else (),
            )
            for ordinal, (workload, call) in enumerate(zip(WORKLOADS, calls, strict=True))
        )
        run = Run(
            bundle.imported_run_id(created, catalog.family, version, digest),
            IMPORT,
            created,
            {"gpu": GPU, "driver": "580.95.05", "created_from": "clock", "git_commit": f"{night:040x}"},
            results,
            (bundle.imported_report_file(path.name, digest, len(content)),),
        )
        yield run, read_csv(path), path
        path.unlink()


def make(target: Path, count: int, samples: int) -> None:
    """Seal the bundles in `target` and fill its index."""
    root = location.open_root(str(target))
    assert isinstance(root, location.LocalRoot)
    items = []
    with (
        tempfile.TemporaryDirectory() as scratch,
        bundle.importing(root),
        open_store(str(target), sync=False) as store,
    ):
        for number, (run, report, path) in enumerate(runs(count, samples, Path(scratch)), 1):
            bundle.publish(root, bundle.stage(root, run, {run.reports[0].path: path}))
            cache_report(root, report)  # as an import does
            items.append((run, {report.sha256: report}, None))
            if len(items) == AT_ONCE or number == count:
                store.add_many(items)
                items = []
                print(f"\r{number} of {count}", end="", file=sys.stderr, flush=True)
    newest = max((ROOT / "data/runs").glob(CATALOGUED))
    shutil.copytree(newest, target / "runs" / newest.name)
    sync_index(str(target))  # which also prepares the series, as an import does
    print(file=sys.stderr)


def main(argv: Sequence[str] | None = None) -> int:
    """Make the folder that is named."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--samples", type=int, default=100, help="latencies a result (100)")
    arguments = parser.parse_args(argv)
    if arguments.folder.exists() and any(arguments.folder.iterdir()):
        parser.error(f"{arguments.folder} is not empty")
    make(arguments.folder, arguments.runs, arguments.samples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
