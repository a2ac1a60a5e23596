"""How far counters move by themselves, kernel by kernel: learned from launches of one build in the index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from profiler.bundles import ncu_mode
from profiler.compare.same_code import SameCodeLookup, same_code_lookup
from profiler.evidence import Evidence, Launch, Side
from profiler.statistics import MIN_COUNTER_PAIRS, counter_noise, share_text

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.store import ResultInfo, Store

MAX_PAIRS = 20  # that one kernel is learned from, the newest ones
MAX_RUNS = 100  # the newest ones, among which two of one machine code are looked for
MAX_KERNELS = 10  # of one key, those with most pairs
INSTRUCTIONS_EXECUTED = ("smsp__inst_executed.sum", "sm__inst_executed.sum")

_RowPair = tuple["ResultInfo", "ResultInfo"]


class CounterNoise(NamedTuple):
    """How far a counter moves by itself."""

    share: float  # of its value
    pairs: int  # A/A pairs that it was learned from
    kernel: str  # whose they are; "" for all kernels of the family's workload

    @property
    def words(self) -> str:
        """What was learned and from what."""
        return f"{self.pairs} A/A pairs of {self.kernel or 'its family'} wobble by {share_text(self.share)}"


class CounterKey(NamedTuple):
    """Where a counter moves alike; the workload says how long a launch takes. "" where nobody says."""

    family: str
    workload: str
    gpu: str
    mode: str  # clock and cache control, replay

    @staticmethod
    def of_side(side: Side) -> CounterKey:
        """Where the launches of a side were measured."""
        return CounterKey(side.family or "", side.workload or "", side.gpu or "", ncu_mode(side.session))


# By key, kernel, exact metric name, and whether only pairs of two runs count.
CounterNoiseLookup = Callable[[CounterKey, str, str, bool], CounterNoise | None]


class AALaunchPair(NamedTuple):
    """Two launches of one build that did the same work."""

    a: Launch
    b: Launch
    kernel: str  # the base name
    between_runs: bool  # else both stand in one report


class LearnedNoise:
    """The A/A pairs of one key, and the noise of the metrics that were asked for."""

    def __init__(self, pairs: Sequence[AALaunchPair]) -> None:
        self.pairs = tuple(pairs)
        self._learned: dict[tuple[str, str, bool], CounterNoise | None] = {}

    def of(self, kernel: str, metric: str, between_runs: bool) -> CounterNoise | None:
        """The noise of a metric: of the kernel, else of all kernels there; None for too few pairs.

        Pairs of two runs go before those within a report; `between_runs` takes nothing else.
        """
        question = kernel, metric, between_runs
        if question not in self._learned:
            self._learned[question] = next(self._candidates(*question), None)
        return self._learned[question]

    def _candidates(self, kernel: str, metric: str, between_runs: bool) -> Iterator[CounterNoise]:
        for name in (kernel, ""):
            within = [pair for pair in self.pairs if name in ("", pair.kernel)]
            across = [pair for pair in within if pair.between_runs]
            for pairs in (across,) if between_runs else (across, within):
                if len(pairs) < MIN_COUNTER_PAIRS:
                    continue
                a, b = (
                    np.array([_number(launch, metric) for launch in launches], np.float64)
                    for launches in ([pair.a for pair in pairs], [pair.b for pair in pairs])
                )
                share = counter_noise(a, b)
                if share is not None:
                    count = int((np.isfinite(a) & np.isfinite(b) & (a != 0) & (b != 0)).sum())
                    yield CounterNoise(share, count, name)


def counter_noise_lookup(store_opener: StoreOpener, data: str | None = None) -> CounterNoiseLookup:
    """The lookup over an index, which is opened when first asked for. `data` is as in `same_code_lookup`.

    Launches of no family, or of a GPU that nobody named, have no A/A pairs.
    """
    learned: dict[CounterKey, LearnedNoise] = {}

    def lookup(key: CounterKey, kernel: str, metric: str, between_runs: bool) -> CounterNoise | None:
        if not (key.family and key.gpu):
            return None
        if key not in learned:
            store = store_opener()
            learned[key] = _learn(store, store.data_version(), key, data)
        return learned[key].of(kernel, metric, between_runs)

    return lookup


@lru_cache(maxsize=8)
def _learn(store: Store, _data_version: str, key: CounterKey, data: str | None) -> LearnedNoise:
    """`learn` once for each state of the index."""
    return learn(store, key, same_code_lookup(data))


def learn(store: Store, key: CounterKey, same_code: SameCodeLookup) -> LearnedNoise:
    """The A/A pairs of a key: of two runs of one machine code, and repeated launches in one report.

    `same_code` is asked about every two runs; where nobody knows it is no A/A pair. No launch is in two pairs
    of a kind, so that the count is one of independent pairs.
    """
    rows = [
        row
        for row in store.results(
            family=key.family,
            workload=key.workload,
            gpu=key.gpu,
            evidence=Evidence.MEASURED,
            kind="launch",
            latest=False,
        )
        if row.mode == key.mode and row.status == "done"
    ]
    rows.sort(key=lambda row: (row.created, row.run_id, row.ordinal))
    chosen = [(a, b, True) for a, b in _newest(_pairs_between_runs(rows, same_code))]
    chosen += [(a, b, False) for a, b in _newest(_pairs_within_reports(rows))]
    ids = list(dict.fromkeys(row.result_id for a, b, _ in chosen for row in (a, b)))
    launches = dict(zip(ids, store.load(ids), strict=True))
    pairs = (
        AALaunchPair(launches[a.result_id], launches[b.result_id], a.base_name, between_runs)
        for a, b, between_runs in chosen
    )
    return LearnedNoise([pair for pair in pairs if pair.between_runs or _same_work(pair.a, pair.b)])


def _pairs_between_runs(rows: Sequence[ResultInfo], same_code: SameCodeLookup) -> Iterator[_RowPair]:
    """The first launch of a part in one run and that in the next run of the same machine code, newest first.

    Nothing is asked about a kernel that has its pairs, nor about older runs: each costs a bundle to read.
    """
    first_launches: dict[str, dict[Hashable, ResultInfo]] = defaultdict(dict)  # by run, oldest first
    for row in rows:
        kernel: Hashable = (row.version, row.part, row.demangled, row.grid, row.block)
        first_launches[row.run_id].setdefault(kernel, row)
    pair_counts: dict[str, int] = defaultdict(int)  # by kernel
    unpaired: dict[Hashable, ResultInfo] = {}
    for launches in islice(reversed(first_launches.values()), MAX_RUNS):
        for kernel, row in launches.items():
            if pair_counts[row.base_name] >= MAX_PAIRS:
                continue
            newer = unpaired.get(kernel)
            # One report imported as two runs is one measurement, not two.
            is_copy = newer and row.report_sha256 and row.report_sha256 == newer.report_sha256
            if newer and not is_copy and same_code((row.run_id, row.version), (newer.run_id, newer.version)):
                yield row, newer
                pair_counts[row.base_name] += 1
                del unpaired[kernel]
            else:
                unpaired[kernel] = row


def _pairs_within_reports(rows: Sequence[ResultInfo]) -> Iterator[_RowPair]:
    """The first and second launch of a kernel in a report, the third and fourth, …; newest report first."""

    def kernel_in_report(row: ResultInfo) -> Hashable:
        return row.report_sha256, row.part.rpartition("#")[0], row.demangled, row.grid, row.block

    # By report and ordinal: a report that several runs hold counts once.
    by_launch = {(row.report_sha256, row.ordinal): row for row in rows if row.report_sha256}
    for repeats in reversed(_groups(by_launch.values(), kernel_in_report)):
        yield from zip(repeats[::2], repeats[1::2], strict=False)


def _newest(pairs: Iterable[_RowPair]) -> list[_RowPair]:
    """At most MAX_PAIRS of each of the MAX_KERNELS kernels that have most of them."""
    by_kernel: dict[str, list[_RowPair]] = defaultdict(list)
    for pair in pairs:
        by_kernel[pair[0].base_name].append(pair)
    most_pairs_first = sorted(by_kernel.values(), key=len, reverse=True)
    return [pair for of_kernel in islice(most_pairs_first, MAX_KERNELS) for pair in of_kernel[:MAX_PAIRS]]


def _groups(rows: Iterable[ResultInfo], key: Callable[[ResultInfo], Hashable]) -> list[list[ResultInfo]]:
    groups: dict[Hashable, list[ResultInfo]] = defaultdict(list)
    for row in rows:
        groups[key(row)].append(row)
    return list(groups.values())


def _same_work(a: Launch, b: Launch) -> bool:
    """Whether both executed as many instructions, as far as a counter says so."""
    counts = [(a.values.number(name), b.values.number(name)) for name in INSTRUCTIONS_EXECUTED]
    known = [pair for pair in counts if None not in pair]
    return bool(known) and all(x == y for x, y in known)


def _number(launch: Launch, metric: str) -> float:
    number = launch.values.number(metric)
    return float("nan") if number is None else number
