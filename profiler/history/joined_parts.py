"""Which parts are one series under two names, by the pairs of kernels that people declared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from profiler.compare.kernel_pairs import KernelPair, captures
from profiler.evidence.values import State

if TYPE_CHECKING:
    from profiler.store.rows import PartArrays, Series


_NEVER = (datetime.min.replace(tzinfo=UTC), "")


class PartMoments(NamedTuple):
    """A part and the moments at which it has values."""

    part: str  # range/kernel#n
    base_name: str
    moments: Collection[Hashable]  # run and version
    newest: Any  # the age of its newest value, which sorts


def parts_of_series(members: Iterable[Series]) -> list[PartMoments]:
    """The parts of series of one workload, GPU and mode: each may have a series a metric."""
    moments: dict[tuple[str, str], set[tuple[str, str]]] = defaultdict(set)
    newest: dict[tuple[str, str], tuple[datetime, str]] = {}
    for series in members:
        key = (series.part, series.base_name)
        moments[key] |= {(point.run_id, point.version) for point in series.points}
        ages = [(point.created, point.run_id) for point in series.points]
        newest[key] = max([*ages, newest.get(key, _NEVER)])
    return [PartMoments(*key, found, newest[key]) for key, found in moments.items()]


def joined_parts(parts: Sequence[PartMoments], pairs: Sequence[KernelPair]) -> dict[str, str]:
    """For each part that has another name, the name that its kernel has in its newest run.

    Parts join where their kernels are declared to be one and range and number are equal. Those that have a
    value of one run each stay apart: there they are two kernels.
    """
    if not pairs:
        return {}
    kernel_of = one_kernel({part.base_name for part in parts}, pairs)
    groups: dict[tuple[str, str, str], list[PartMoments]] = defaultdict(list)
    for part in parts:
        prefix, name, suffix = part.part.rpartition(part.base_name)
        if name and part.base_name in kernel_of:  # a role of a catalogue is no kernel's name
            groups[prefix, kernel_of[part.base_name], suffix].append(part)
    joined: dict[str, str] = {}
    for group in groups.values():
        moments = [moment for part in group for moment in part.moments]
        if len(group) > 1 and len(moments) == len(set(moments)):
            newest = max(group, key=lambda part: part.newest)
            joined |= {part.part: newest.part for part in group if part is not newest}
    return joined


def one_kernel(names: Collection[str], pairs: Iterable[KernelPair]) -> Mapping[str, str]:
    """For each name that a pair says is of one kernel with another, a name that stands for them all."""
    kernel_of: dict[str, str] = {}
    for pair in pairs:
        for name, other in _names_of_pair(sorted(names), pair):
            old, new = kernel_of.get(other, other), kernel_of.get(name, name)
            kernel_of |= {name: new, other: new}
            kernel_of |= {known: new for known, kernel in kernel_of.items() if kernel == old}
    return kernel_of


def _names_of_pair(names: Sequence[str], pair: KernelPair) -> list[tuple[str, str]]:
    """The two names of each kernel that a pair is about, by the rule that pairs launches.

    A pattern beside itself is of a kernel with a number of its build in its name: all that fit are one.
    """
    if pair.a == pair.b:
        fitting = [name for name in names if captures(pair.a, name) is not None]
        return list(pairwise(fitting))
    texts_a = {name: found for name in names if (found := captures(pair.a, name)) is not None}
    texts_b = {name: found for name in names if (found := captures(pair.b, name)) is not None}
    equal = [(a, b) for a, text in texts_a.items() for b, other in texts_b.items() if text == other]
    left_a = texts_a.keys() - {a for a, _ in equal}
    left_b = texts_b.keys() - {b for _, b in equal}
    if len(left_a) == len(left_b) == 1:
        equal += zip(left_a, left_b, strict=True)
    return [(a, b) for a, b in equal if a != b]


def joined_arrays(parts: Sequence[PartArrays], pairs: Sequence[KernelPair]) -> list[PartArrays]:
    """The arrays of all parts, where those of a kernel under two names are one, by the newest name."""
    if not pairs:
        return list(parts)
    cells: dict[tuple[object, ...], list[PartArrays]] = defaultdict(list)
    for part in parts:
        cells[part.workload, part.gpu, part.evidence, part.mode].append(part)
    result = []
    for members in cells.values():
        joined = joined_parts(list(map(_moments_of_arrays, members)), pairs)
        by_name: dict[str, list[PartArrays]] = defaultdict(list)
        for part in members:
            by_name[joined.get(part.part, part.part)].append(part)
        for name, group in by_name.items():
            newest = next(part for part in group if part.part == name)
            result.append(_concatenated(newest, group) if len(group) > 1 else newest)
    return result


def _moments_of_arrays(part: PartArrays) -> PartMoments:
    versions = (part.versions[index] for index in part.version.tolist())
    moments = set(zip(part.run_keys.tolist(), versions, strict=True))
    newest = int(part.created_us.max()) if len(part.created_us) else -1
    return PartMoments(part.part, part.base_name, moments, newest)


def _concatenated(newest: PartArrays, group: Sequence[PartArrays]) -> PartArrays:
    """The points of all parts in the order of time; a metric that a part lacks was not collected there."""
    metrics = tuple(dict.fromkeys(name for part in group for name in part.metrics))
    versions = tuple(dict.fromkeys(name for part in group for name in part.versions))
    created = np.concatenate([part.created_us for part in group])
    order = np.argsort(created, kind="stable")
    units, numbers, states = [], [], []
    for name in metrics:
        places = [part.metrics.index(name) if name in part.metrics else None for part in group]
        with_place = list(zip(group, places, strict=True))
        units.append(next(part.units[at] for part, at in with_place[::-1] if at is not None))
        columns = [
            np.full(len(part.created_us), np.nan) if at is None else part.numbers[at]
            for part, at in with_place
        ]
        missing = [
            np.full(len(part.created_us), State.NOT_COLLECTED, np.uint8) if at is None else part.states[at]
            for part, at in with_place
        ]
        numbers.append(np.concatenate(columns)[order])
        states.append(np.concatenate(missing)[order])
    version = np.concatenate(
        [
            np.array([versions.index(name) for name in part.versions], np.uint32)[part.version]
            for part in group
        ]
    )[order]
    runs = np.concatenate([part.run_keys for part in group])[order]
    newest_run = {
        int(index): int(run) for index, run in zip(version, runs, strict=True)
    }  # the last one stays
    return replace(
        newest,
        metrics=metrics,
        units=tuple(units),
        numbers=tuple(numbers),
        states=tuple(states),
        result_ids=np.concatenate([part.result_ids for part in group])[order],
        run_keys=runs,
        created_us=created[order],
        versions=versions,
        version=version,
        latest=np.array([newest_run[int(v)] == int(r) for v, r in zip(version, runs, strict=True)], np.bool_),
    )
