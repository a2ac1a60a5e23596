"""How many alarms a store of many series raises: `profiler regressions` over nights of many versions.

    python bench/alarms.py                    10 stores a row; `--stores N` for others

Every night is a run of 60 series of timed calls, 12 versions on 5 workloads. Their noise of 0.6 % a night
remembers (lag-1 autocorrelation 0.3); noise floors have 50 A/A pairs for each length of call, or 200. Five
nights before the end something happens: nothing, a step of the environment by 3 to 8 % that all series
or 60 % of them share, other code that makes a version 5 % slower on one workload, or both at once. Rows are
what is listed as worse or changed, a row a series; alarms are what somebody has to look at. An alarm is
false where it stands for no step that was made; the last column is the share of stores with any alarm.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiler.bundles import bundle, location
from profiler.bundles.run import COLLECT, NOISE, Facts, Result, Run, Samples
from profiler.documents.regressions import list_regressions
from profiler.evidence.metric_table import load_metrics
from profiler.evidence.values import Evidence, Value
from profiler.regressions.regression import Regression
from profiler.regressions.shared_regressions import shared_run
from profiler.store.readable_index import open_store

VERSIONS, WORKLOADS, NIGHTS, AFTER = 12, 5, 40, 5
SIGMA, MEMORY = 0.006, 0.3  # of the logarithm from night to night
CODE_STEP = math.log(1.05)
START = datetime(2026, 3, 1, 2, tzinfo=UTC)
MODE, GPU = "events; cache warm; clock none", "NVIDIA H100"
ABOUT = {"gpu": GPU, "compute_capability": "9.0", "driver": "570.1", "cuda": "13.0", "nvcc": "13.0.88"}


class Case(NamedTuple):
    """What happens in a store."""

    name: str
    moved: float = 0.0  # share of the series that a step of the environment moves
    recompiled: int = 0  # versions whose code changes, and gets slower on one workload, on the same night
    keeps_code: bool = True  # whether runs say what their machine code is
    nights: int = NIGHTS
    pairs: int = 50  # of a floor
    builds_nightly: bool = False  # whether each night has other code, that is as fast


CASES = (
    Case("quiet"),
    Case("quiet, code unknown", keeps_code=False),
    Case("quiet, 2 nights, other code each, floors of 200", nights=2, pairs=200, builds_nightly=True),
    Case("the same, 12 nights", nights=12, pairs=200, builds_nightly=True),
    Case("environment moves all", 1.0),
    Case("environment moves all, code unknown", 1.0, keeps_code=False),
    Case("environment moves 60 %, code unknown", 0.6, keeps_code=False),
    Case("slower code in 1 series", 0.0, 1),
    Case("environment moves 60 %, slower code in 2", 0.6, 2),
    Case("environment moves all, slower code in 2", 1.0, 2),
)


class Outcome(NamedTuple):
    """What `profiler regressions` says about a store."""

    rows: int
    alarms: int
    shared: int  # alarms that several series share
    found: int  # series with slower code that are alarms of their own
    false: int  # alarms that stand for nothing that happened


def timed(level_ns: float, rng: np.random.Generator, rounds: int = 10) -> Samples:
    """Two calls a round that jitter by 0.4 %."""
    ns = level_ns * np.exp(rng.normal(0, 0.004, 2 * rounds))
    return Samples(MODE, tuple(ns.tolist()), tuple(np.repeat(np.arange(rounds), 2).tolist()))


def nights(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """The logarithm of each series' level, by night, version and workload."""
    out = rng.normal(0, SIGMA, (count, VERSIONS, WORKLOADS))
    for night in range(1, count):
        out[night] = MEMORY * out[night - 1] + math.sqrt(1 - MEMORY**2) * out[night]
    level = np.log(170e3 * (1 + np.arange(WORKLOADS)) * (2 - np.arange(VERSIONS)[:, None] / VERSIONS))
    return np.asarray(out + level)


def floor(level_ns: float, number: int, pairs: int, rng: np.random.Generator) -> Run:
    """A/A pairs, which lie as far apart as two nights without memory."""
    sessions = tuple(timed(level_ns * at, rng) for at in np.exp(rng.normal(0, SIGMA, 2 * pairs)))
    result = Result("flash", "v00", "1", {"dtype": "fp16"}, source_sha256="v00", samples=sessions)
    created = START - timedelta(days=1, minutes=number)
    about = {**ABOUT, "purpose": NOISE}
    return Run(f"{created:%Y%m%dT%H%M%S}-noise", COLLECT, created, about, (result,))


def store_of(case: Case, folder: Path, rng: np.random.Generator) -> set[tuple[str, str]]:
    """Seal a store's runs into a folder; the version and workload of each series with slower code."""
    level = nights(case.nights, rng)
    series = [(version, workload) for version in range(VERSIONS) for workload in range(WORKLOADS)]
    size = math.log1p(rng.uniform(0.03, 0.08))
    for at in rng.permutation(len(series))[: round(case.moved * len(series))]:
        level[-AFTER:, series[at][0], series[at][1]] += size
    other_code = rng.permutation(VERSIONS)[: case.recompiled]
    recompiled = {int(version): int(rng.integers(WORKLOADS)) for version in other_code}
    for version, workload in recompiled.items():
        level[-AFTER:, version, workload] += CODE_STEP
    runs = [floor(ns, number, case.pairs, rng) for number, ns in enumerate((50e3, 200e3, 1.5e6))]
    for night in range(case.nights):
        results = []
        for version, workload in series:
            is_new = night >= case.nights - AFTER and version in recompiled
            code = f"v{version:02}{night if case.builds_nightly else 'b' if is_new else 'a'}"
            facts = Facts(
                Evidence.STATIC, "main", {"static__sass_sha256": Value(None, text=code)}, target="sm_90a"
            )
            results.append(
                Result(
                    "flash",
                    f"v{version:02}",
                    f"{1 + workload}x8x2048x64",
                    {"dtype": "fp16"},
                    source_sha256=code if case.keeps_code else None,
                    samples=(timed(math.exp(level[night, version, workload]), rng),),
                    facts=(facts,) if case.keeps_code else (),
                )
            )
        created = START + timedelta(days=night)
        runs.append(Run(f"{created:%Y%m%dT%H%M%S}-night", COLLECT, created, ABOUT, tuple(results)))
    root = location.open_root(str(folder))
    for run in runs:
        with bundle.importing(root):
            bundle.seal(root, run, {})
    return {(f"v{version:02}", f"{1 + workload}x8x2048x64") for version, workload in recompiled.items()}


def ask(case: Case, rng: np.random.Generator) -> Outcome:
    """Make a store and list what is worse in it."""
    with tempfile.TemporaryDirectory() as folder:
        recompiled = store_of(case, Path(folder), rng)
        store = open_store(folder)
        try:
            document = list_regressions(load_metrics(), store, data=folder)
            answer = document.to_dict()
        finally:
            store.close()
    regressions, shared = document.report.regressions, document.shared

    def is_of_code(regression: Regression) -> bool:
        return (regression.series.version, regression.series.workload) in recompiled

    versions = {version for version, _ in recompiled}
    lone = [one for one in document.report.open if not shared_run(shared, one)]
    found = sum(map(is_of_code, lone))
    # A version with other code that the environment moved too is rightly an alarm: either can have done it.
    other = sum(one.series.version not in versions or not case.moved for one in lone if not is_of_code(one))
    false = other + max(0, len(shared) - (case.moved > 0))
    alarms = answer["alarms"]
    assert isinstance(alarms, int)
    return Outcome(len(regressions), alarms, len(shared), found, false)


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--stores", type=int, default=10, help="stores a row")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(arguments.seed)
    print(
        f"{arguments.stores} stores of {VERSIONS * WORKLOADS} series over {NIGHTS} nights, or as said: means"
    )
    print(f"{'':48}{'rows':>7}{'alarms':>8}{'shared':>8}{'of code':>9}{'false':>7}{'alarmed, %':>12}")
    for case in CASES:
        outcomes = np.array([ask(case, rng) for _ in range(arguments.stores)], float)
        rows, alarms, shared, found, false = outcomes.mean(axis=0)
        alarmed = 100 * (outcomes[:, 1] > 0).mean()
        of_code = f"{found:.1f}/{case.recompiled}" if case.recompiled else "–"
        print(
            f"{case.name:48}{rows:7.1f}{alarms:8.1f}{shared:8.1f}{of_code:>9}{false:7.1f}{alarmed:12.0f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
