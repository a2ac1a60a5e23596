"""Splits two sides by the GPUs of their launches: a launch is compared with launches of its GPU alone."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace

from profiler.evidence.launch import Launch, only
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence

_OfLaunch = Callable[[Launch], Hashable]


def split_by_gpu(a: Side, b: Side) -> list[tuple[Side, Side]]:
    """The two sides in parts of one GPU each, in the order of A's launches, then of B's.

    A part may have launches on one side alone. A GPU is known by its name, where launches have none by its
    compute capability, and where reports of one name hold parts of different size by its multiprocessors.
    Several devices of one model are told apart where both sides used the same ones.
    """
    sides = (a, b)
    if any(side.evidence is not Evidence.MEASURED for side in sides):
        return [sides]
    parts = [sides]
    for tell in (_named, _with_capability, _with_multiprocessors, _on_device):
        parts = [part for pair in parts for part in tell(*pair)]
    return parts


def _named(a: Side, b: Side) -> list[tuple[Side, Side]]:
    return _split(a, b, a.gpu_of, b.gpu_of) if max(len(a.gpus), len(b.gpus)) > 1 else [(a, b)]


def _with_capability(a: Side, b: Side) -> list[tuple[Side, Side]]:
    if max(len(a.capabilities), len(b.capabilities)) < 2:
        return [(a, b)]
    return _split(a, b, a.capability_of, b.capability_of)


def _with_multiprocessors(a: Side, b: Side) -> list[tuple[Side, Side]]:
    counts = [{launch.multiprocessors for launch in side.launches} - {None} for side in (a, b)]
    if max(map(len, counts)) < 2:
        return [(a, b)]
    return _split(a, b, _multiprocessors, _multiprocessors)


def _on_device(a: Side, b: Side) -> list[tuple[Side, Side]]:
    devices = [{launch.device for launch in side.launches} for side in (a, b)]
    # Which of several devices a process is given changes from run to run, and is no other GPU.
    if devices[0] != devices[1] or len(devices[0]) < 2 or None in devices[0]:
        return [(a, b)]
    return _split(a, b, _device, _device)


def _multiprocessors(launch: Launch) -> int | None:
    return launch.multiprocessors


def _device(launch: Launch) -> int | None:
    return launch.device


def _split(a: Side, b: Side, of_a: _OfLaunch, of_b: _OfLaunch) -> list[tuple[Side, Side]]:
    keys_a, keys_b = [of_a(launch) for launch in a.launches], [of_b(launch) for launch in b.launches]
    return [(_part(a, keys_a, key), _part(b, keys_b, key)) for key in dict.fromkeys((*keys_a, *keys_b))]


def _part(side: Side, keys: Sequence[Hashable], key: Hashable) -> Side:
    """The launches of a side with this key."""
    launches = tuple(launch for launch, own in zip(side.launches, keys, strict=True) if own == key)
    ids = (
        tuple(row for row, own in zip(side.result_ids, keys, strict=True) if own == key)
        if side.result_ids
        else ()
    )
    return replace(
        side,
        launches=launches,
        result_ids=ids,
        gpu=side.gpu or only(launch.gpu for launch in launches),
        compute_capability=side.compute_capability or only(launch.compute_capability for launch in launches),
    )
