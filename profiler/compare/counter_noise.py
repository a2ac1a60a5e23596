"""How far counters move by themselves, kernel by kernel: learned from launches of one build in the index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from profiler.bundles import ncu_mode
from profiler.compare import environment_change
from profiler.compare.metric_verdict import CounterNoise, CounterNoiseLookup
from profiler.evidence import Evidence, Launch, Side
from profiler.statistics import counters

if TYPE_CHECKING:
    from profiler.compare.latency import CodeLookup
    from profiler.store import ResultInfo, Store

PAIRS = 20  # that one kernel is learned from, the newest ones
RUNS = 100  # the newest ones, among which two of one machine code are looked for
KERNELS = 10  # of one place, those with most pairs
EXECUTED = ("smsp__inst_executed.sum", "sm__inst_executed.sum")


class CounterKey(NamedTuple):
    """Where a counter wobbles alike; the workload says how long a launch takes."""

    family: str
    workload: str
    gpu: str
    mode: str  # clock and cache control, replay


KeyedNoiseLookup = Callable[
    [CounterKey, str, str, bool], CounterNoise | None
]  # kernel, metric, only pairs of two runs


class AALaunchPair(NamedTuple):
    """Two launches of one build that did the same work."""

    a: Launch
    b: Launch
    kernel: str  # the base name
    sessions: bool  # of two runs; else both stand in one report


class LearnedNoise:
    """The A/A pairs of one place, and the wobbles that were asked of them."""

    def __init__(self, pairs: Sequence[AALaunchPair]) -> None:
        self.pairs = tuple(pairs)
        self._held: dict[tuple[str, str, bool], CounterNoise | None] = {}

    def of(self, kernel: str, metric: str, sessions: bool) -> CounterNoise | None:
        """The wobble of a metric: of the kernel, else of all kernels there; None for too few pairs.

        Pairs of two runs go before those within a report, and `sessions` takes nothing else.
        """
        asked = kernel, metric, sessions
        if asked not in self._held:
            self._held[asked] = next(self._candidates(*asked), None)
        return self._held[asked]

    def _candidates(self, kernel: str, metric: str, sessions: bool) -> Iterator[CounterNoise]:
        for part in (kernel, ""):
            own = [pair for pair in self.pairs if part in ("", pair.kernel)]
            across = [pair for pair in own if pair.sessions]
            for pairs in (across,) if sessions else (across, own):
                if len(pairs) < counters.MIN_COUNTER_PAIRS:
                    continue
                a, b = (
                    np.array([_number(launch, metric) for launch in side], np.float64)
                    for side in ([pair.a for pair in pairs], [pair.b for pair in pairs])
                )
                share = counters.counter_noise(a, b)
                if share is not None:
                    yield CounterNoise(
                        share, int((np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)).sum()), part
                    )


def lookup(opener: Callable[[], Store]) -> CounterNoiseLookup:
    """What gives a comparison its wobbles; the index is opened when first asked for.

    A side that is no version of a family, or whose GPU nobody named, has none.
    """
    places = by_place(opener)

    def asked(side: Side, kernel: str, metric: str, sessions: bool) -> CounterNoise | None:
        if side.family is None or side.gpu is None:
            return None
        place = CounterKey(side.family, side.workload or "", side.gpu, ncu_mode(side.session))
        return places(place, kernel, metric, sessions)

    return asked


def by_place(opener: Callable[[], Store]) -> KeyedNoiseLookup:
    """The same of a series, which says itself where it lies."""
    held: dict[CounterKey, LearnedNoise] = {}

    def asked(place: CounterKey, kernel: str, metric: str, sessions: bool) -> CounterNoise | None:
        if place not in held:
            store = opener()
            held[place] = _learned(store, store.data_version(), place)
        return held[place].of(kernel, metric, sessions)

    return asked


@lru_cache(maxsize=8)
def _learned(store: Store, _data_version: str, place: CounterKey) -> LearnedNoise:
    return learn(store, place, environment_change.same_code_lookup())


def learn(store: Store, place: CounterKey, same_code: CodeLookup) -> LearnedNoise:
    """The A/A pairs of a place: of two runs of one machine code, and repeated launches in one report.

    `same_code` is asked about every two runs; where nobody knows it is no A/A pair. No launch is in two pairs
    of a kind, so that the count is one of independent pairs.
    """
    rows = [
        row
        for row in store.results(
            family=place.family,
            workload=place.workload,
            gpu=place.gpu,
            evidence=Evidence.MEASURED,
            kind="launch",
            latest=False,
        )
        if row.mode == place.mode and row.status == "done"
    ]
    rows.sort(key=lambda row: (row.created, row.run_id, row.ordinal))
    chosen = [(a, b, True) for a, b in _newest(_across(rows, same_code))]
    chosen += [(a, b, False) for a, b in _newest(_within(rows))]
    ids = list(dict.fromkeys(row.result_id for a, b, _ in chosen for row in (a, b)))
    launches = dict(zip(ids, store.load(ids), strict=True))
    pairs = (
        AALaunchPair(launches[a.result_id], launches[b.result_id], a.base_name, sessions)
        for a, b, sessions in chosen
    )
    return LearnedNoise([pair for pair in pairs if pair.sessions or _same_work(pair.a, pair.b)])


def _across(rows: Sequence[ResultInfo], same_code: CodeLookup) -> Iterator[tuple[ResultInfo, ResultInfo]]:
    """The first launch of a part in one run and that in the next run of the same machine code, newest first.

    Nobody is asked about a kernel that has its pairs, nor about older runs: each is a bundle to read.
    """
    first: dict[str, dict[Hashable, ResultInfo]] = defaultdict(dict)  # by run, oldest first; then by part
    for row in rows:
        part = row.version, row.part, row.demangled, row.grid, row.block
        first[row.run_id].setdefault(part, row)
    found: dict[str, int] = defaultdict(int)
    waiting: dict[Hashable, ResultInfo] = {}
    for launches in islice(reversed(first.values()), RUNS):
        for key, row in launches.items():
            if found[row.base_name] >= PAIRS:
                continue
            newer = waiting.get(key)
            copy = newer and row.report_sha256 and row.report_sha256 == newer.report_sha256
            if newer and not copy and same_code((row.run_id, row.version), (newer.run_id, newer.version)):
                yield row, newer
                found[row.base_name] += 1
                del waiting[key]
            else:
                waiting[key] = row


def _within(rows: Sequence[ResultInfo]) -> Iterator[tuple[ResultInfo, ResultInfo]]:
    """The first and second launch of a kernel in a report, the third and fourth, …; newest report first."""

    def repeats(row: ResultInfo) -> Hashable:
        return row.report_sha256, row.part.rpartition("#")[0], row.demangled, row.grid, row.block

    seen = {(row.report_sha256, row.ordinal): row for row in rows if row.report_sha256}
    for group in reversed(_groups(seen.values(), repeats)):
        yield from zip(group[::2], group[1::2], strict=False)


def _newest(pairs: Iterable[tuple[ResultInfo, ResultInfo]]) -> list[tuple[ResultInfo, ResultInfo]]:
    """At most PAIRS of each of the KERNELS kernels that have most of them."""
    by_kernel: dict[str, list[tuple[ResultInfo, ResultInfo]]] = defaultdict(list)
    for pair in pairs:
        by_kernel[pair[0].base_name].append(pair)
    most = sorted(by_kernel.values(), key=len, reverse=True)
    return [pair for found in islice(most, KERNELS) for pair in found[:PAIRS]]


def _groups(rows: Iterable[ResultInfo], key: Callable[[ResultInfo], Hashable]) -> list[list[ResultInfo]]:
    found: dict[Hashable, list[ResultInfo]] = defaultdict(list)
    for row in rows:
        found[key(row)].append(row)
    return list(found.values())


def _same_work(a: Launch, b: Launch) -> bool:
    """Whether both executed as many instructions, as far as a counter says so."""
    counts = [(a.values.number(name), b.values.number(name)) for name in EXECUTED]
    known = [pair for pair in counts if None not in pair]
    return bool(known) and all(x == y for x, y in known)


def _number(launch: Launch, metric: str) -> float:
    found = launch.values.number(metric)
    return float("nan") if found is None else found
