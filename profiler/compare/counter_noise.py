"""Run-to-run variation of counters, kernel by kernel, learned from launches of equal builds in the index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from profiler.bundles.run import ncu_mode
from profiler.compare.same_code import SameCodeLookup, same_code_lookup
from profiler.evidence.launch import Launch
from profiler.evidence.one_measurement import agreeing_digits
from profiler.evidence.side import Side
from profiler.statistics.counters import Wobble, counter_noise
from profiler.statistics.decision import share_text

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener
    from profiler.store.index import Store
    from profiler.store.rows import ResultInfo

MAX_PAIRS = 50  # newest pairs that the noise of one kernel is learned from
MAX_RUNS = 100  # newest runs among which pairs of equal machine code are looked for
MAX_KERNELS = 10  # kernels of one key: those with most pairs
INSTRUCTIONS_EXECUTED = ("smsp__inst_executed.sum", "sm__inst_executed.sum")

_RowPair = tuple["ResultInfo", "ResultInfo"]


class CounterNoise(NamedTuple):
    """How far a counter varies from run to run of one build."""

    wobble: Wobble
    kernel: str  # whose pairs they are; "": those of all kernels of the family on that workload

    @property
    def judges(self) -> bool:
        """Whether a change can be called better or worse by it: by enough pairs, of the kernel itself.

        Other noise excuses a change, and calls none better or worse: kernels differ too much.
        """
        return bool(self.kernel) and self.wobble.judges

    @property
    def words(self) -> str:
        """The noise as a phrase, with what it was learned from."""
        largest = share_text(self.wobble.largest)
        return f"{self.wobble.pairs} A/A pairs of {self.kernel or 'its family'} vary by up to {largest}"


class CounterKey(NamedTuple):
    """Launches with one key have comparable noise; "" where a field is unknown."""

    family: str
    workload: str  # decides how long a launch takes
    gpu: str
    mode: str  # clock control, cache control and replay mode of ncu

    @staticmethod
    def of_side(side: Side) -> CounterKey:
        """The key of a side's launches."""
        return CounterKey(
            side.family or "", side.workload or "", side.gpu or "", ncu_mode(side.launch_session)
        )


# From key, kernel, exact metric name, and whether only pairs of two runs count. None: not enough is known.
CounterNoiseLookup = Callable[[CounterKey, str, str, bool], CounterNoise | None]


class AALaunchPair(NamedTuple):
    """Two launches of equal builds that did the same work."""

    a: Launch
    b: Launch
    kernel: str  # the base name
    between_runs: bool  # False: both are in one report


class LearnedNoise:
    """The A/A pairs of one key; the noise of a metric is computed when it is asked for."""

    def __init__(self, pairs: Sequence[AALaunchPair]) -> None:
        self.pairs = tuple(pairs)
        self._learned: dict[tuple[str, str, bool], CounterNoise | None] = {}

    def of(self, kernel: str, metric: str, between_runs: bool) -> CounterNoise | None:
        """The noise of a metric for this kernel, else for all kernels together; None without a pair.

        Pairs of two runs are preferred to pairs within a report; with `between_runs` only they count. Where
        neither are enough to judge by, the kernel's own are preferred.
        """
        question = kernel, metric, between_runs
        if question not in self._learned:
            candidates = list(self._candidates(*question))
            weak = candidates[0] if candidates else None
            self._learned[question] = next((noise for noise in candidates if noise.judges), weak)
        return self._learned[question]

    def _candidates(self, kernel: str, metric: str, between_runs: bool) -> Iterator[CounterNoise]:
        """The noise by each choice of pairs that has any, best choice first."""
        for name in (kernel, ""):
            within = [pair for pair in self.pairs if name in ("", pair.kernel)]
            across = [pair for pair in within if pair.between_runs]
            for pairs in (across,) if between_runs else (across, within):
                a, b = (
                    np.array([_number(launch, metric) for launch in launches], np.float64)
                    for launches in ([pair.a for pair in pairs], [pair.b for pair in pairs])
                )
                if (wobble := counter_noise(a, b)) is not None:
                    yield CounterNoise(wobble, name)


def counter_noise_lookup(store_opener: StoreOpener, data: str | None = None) -> CounterNoiseLookup:
    """The lookup over an index, which is opened at the first question. `data` is as in `same_code_lookup`.

    It answers None for launches without a family or GPU: their builds cannot be known to be equal.
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
    """`learn`, once for each state of the index."""
    return learn(store, key, same_code_lookup(data))


def learn(store: Store, key: CounterKey, same_code: SameCodeLookup) -> LearnedNoise:
    """The A/A pairs of a key: of two runs with equal machine code, and repeated launches in one report.

    Two runs whose code is not known to be equal make no pair. No launch is in two pairs of one kind, so that
    the pairs are independent.
    """
    rows = store.noise_launches(
        family=key.family, workload=key.workload, gpu=key.gpu, mode=key.mode, newest_runs=MAX_RUNS
    )
    chosen = [(a, b, True) for a, b in _newest(_pairs_between_runs(rows, same_code))]
    chosen += [(a, b, False) for a, b in _newest(_pairs_within_reports(rows))]
    ids = list(dict.fromkeys(row.result_id for a, b, _ in chosen for row in (a, b)))
    launches = dict(zip(ids, store.load(ids), strict=True))
    pairs = (
        AALaunchPair(launches[a.result_id], launches[b.result_id], a.base_name, between_runs)
        for a, b, between_runs in chosen
    )
    return LearnedNoise(
        [pair for pair in pairs if (_are_two if pair.between_runs else _same_work)(pair.a, pair.b)]
    )


def _pairs_between_runs(rows: Sequence[ResultInfo], same_code: SameCodeLookup) -> Iterator[_RowPair]:
    """Pairs of a kernel's first launch in one run and in the next run with equal machine code, newest first.

    Only the newest runs are looked at, and only for kernels that lack pairs: to compare the code of two runs
    two bundles have to be read.
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
            # One report imported into two runs is one measurement, not two.
            is_copy = newer and row.report_sha256 and row.report_sha256 == newer.report_sha256
            if newer and not is_copy and same_code((row.run_id, row.version), (newer.run_id, newer.version)):
                yield row, newer
                pair_counts[row.base_name] += 1
                del unpaired[kernel]
            else:
                unpaired[kernel] = row


def _pairs_within_reports(rows: Sequence[ResultInfo]) -> Iterator[_RowPair]:
    """Pairs of a kernel's first and second launch in a report, third and fourth, …; newest report first."""

    def kernel_in_report(row: ResultInfo) -> Hashable:
        return row.report_sha256, row.part.rpartition("#")[0], row.demangled, row.grid, row.block

    # By report and ordinal: a report that several runs hold counts once.
    by_launch = {(row.report_sha256, row.ordinal): row for row in rows if row.report_sha256}
    for repeats in reversed(_groups(by_launch.values(), kernel_in_report)):
        yield from zip(repeats[::2], repeats[1::2], strict=False)


def _newest(pairs: Iterable[_RowPair]) -> list[_RowPair]:
    """The newest MAX_PAIRS pairs of each of the MAX_KERNELS kernels that have most pairs."""
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


def _are_two(a: Launch, b: Launch) -> bool:
    """Whether two launches of two runs were measured apart: a report and its export have no noise."""
    return not agreeing_digits(a, b)


def _same_work(a: Launch, b: Launch) -> bool:
    """Whether both executed equally many instructions. Without such a counter: False."""
    counts = [(a.values.number(name), b.values.number(name)) for name in INSTRUCTIONS_EXECUTED]
    known_counts = [pair for pair in counts if None not in pair]
    return bool(known_counts) and all(x == y for x, y in known_counts)


def _number(launch: Launch, metric: str) -> float:
    number = launch.values.number(metric)
    return float("nan") if number is None else number
