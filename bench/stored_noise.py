"""Floors and counters under heavy tails, doubled noise, a wild pair, another family's noise, and zeros."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from profiler.statistics import counters, exceedance
from profiler.statistics.multiple_testing import discoveries
from profiler.statistics.noise_floor import CHANGED_P, NoiseFloor, floor_of_ratios

Floats = NDArray[np.float64]
Line = tuple[str, str, float, str, float]  # as in bench/verdicts.py

CELLS = 20  # of a gate
ROWS = 100  # counters of a comparison
SD = 0.006  # of the log-ratio of an A/A pair
FLOORS = 1000
DRAWS = 20  # of so many floors: a gate in 20 fails, so that fewer are a matter of luck


def _draw(noise: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    if noise == "ties":  # short calls that mostly tie, and at times lie 100 times as far apart
        return SD * np.abs(rng.normal(size=shape)) * rng.choice((0.05, 0.5, 5), shape, p=(0.8, 0.15, 0.05))
    if noise == "unseen":  # all close together, but one pair in ten 100 times as far apart
        return SD * np.abs(rng.normal(size=shape)) * rng.choice((0.05, 5), shape, p=(0.9, 0.1))
    sizes: Floats = rng.normal(size=shape) if noise == "normal" else rng.standard_t(int(noise[1:]), shape)
    return SD * np.abs(sizes)


def _false_rows(p: Floats) -> tuple[float, float, float]:
    """The share in % of rows called changed alone, of tables with one, of tables with one that is unclear."""
    alone, together = p <= CHANGED_P, discoveries(p) & (p <= CHANGED_P)
    unclear = (alone & ~together).any(axis=-1)
    return 100 * float(alone.mean()), 100 * float(together.any(axis=-1).mean()), 100 * float(unclear.mean())


def floors_and_gates() -> Iterator[Line]:
    """F1: equal builds by floors of 20 to 200 pairs, one by one and in gates of 20 that share a floor."""
    print(f"\nFloors by noise: rows of equal builds called changed, gates of {CELLS}, in %")
    rng = np.random.default_rng(31)
    for noise in ("normal", "t3", "t2", "ties", "unseen"):
        for pairs in (20, 50, 200):
            draws = []
            for _ in range(DRAWS):
                seen, new = _draw(noise, rng, (FLOORS, pairs)), _draw(noise, rng, (FLOORS, CELLS))
                moved = exceedance.p_values(new + np.log1p(0.05), seen) <= CHANGED_P
                draws.append((*_false_rows(exceedance.p_values(new, seen)), 100 * float(moved.mean())))
            rows, gates, unclear, power = np.mean(draws, axis=0).tolist()
            print(
                f"  {noise:8}{pairs:5} pairs: rows {rows:5.2f}   gates fail {gates:5.2f}, unclear "
                f"{unclear:5.1f}   power at 5 % {power:4.0f}"
            )
            if noise != "unseen":  # what no pair of a floor showed nothing can know: printed only
                yield "F1", f"{noise}, {pairs} pairs: rows", rows, "<=", 1.0
                yield "F1", f"{noise}, {pairs} pairs: gates of {CELLS}", gates, "<=", 5.0


def changing_floors() -> Iterator[Line]:
    """F2: noise that doubled 20 to 100 pairs ago, a wild pair among 1,000, and another family's floor."""
    rng = np.random.default_rng(32)
    print("\nNoise that changed by a factor, some pairs ago: rows called changed and unclear, in %")
    for noise in ("normal", "t3"):
        for factor, newer in ((2, 20), (2, 50), (2, 100), (1.5, 20), (1, 20)):
            floors = [
                floor_of_ratios(
                    np.concatenate((_draw(noise, rng, (400,)), factor * _draw(noise, rng, (newer,))))
                )
                for _ in range(FLOORS)
            ]
            what = f"{noise}, {factor} times as much {newer} pairs ago" if factor > 1 else f"{noise}, steady"
            rows = _print_changed(what, floors, factor * _draw(noise, rng, (2000,)))
            if factor != 1.5:  # too small a change to be known of 20 pairs: printed only
                yield "F2", f"{what}: rows", rows, "<=", 1.0
    seen = _draw("normal", rng, (FLOORS // 5, 1000))
    wild = seen.copy()
    wild[:, 700] = 0.3
    limits = [exceedance.limits(sizes, CHANGED_P) for sizes in (seen, wild)]
    wider = 100 * float((limits[1] / limits[0]).mean()) - 100
    yield "F2", "one wild pair of 1,000: limit is wider by", wider, "<=", 5.0
    other = _draw("normal", rng, (FLOORS, CELLS)) * 3
    wrong = 100 * float((exceedance.p_values(other, _draw("normal", rng, (FLOORS, 50))) <= CHANGED_P).mean())
    print(f"\nBy the floor of a family that varies a third as much: {wrong:.0f} % wrong")


def _print_changed(what: str, floors: list[NoiseFloor], new: Floats) -> float:
    """A row of what floors make of sizes [new] of equal builds; the share called changed, in %."""
    limits = np.array([(floor.changed_limit_without_growth, floor.changed_limit) for floor in floors])
    alike, rows = (100 * float((new > limit[:, None]).mean()) for limit in limits.T)
    power = [100 * float((new + np.log1p(0.03) > limit[:, None]).mean()) for limit in limits.T]
    grown = 100 * float(np.mean([floor.growth > 1 for floor in floors]))
    print(
        f"  {what:36} rows {rows:5.2f} (by all pairs alike {alike:5.2f})   power at 3 % {power[1]:4.0f} "
        f"({power[0]:4.0f})   newest vary more in {grown:3.0f}"
    )
    return rows


def tables_of_counters() -> Iterator[Line]:
    """F3: comparisons of 100 counters of equal builds, one in five of them small counts with zeros."""
    print(f"\nTables of {ROWS} counters by their A/A pairs: false rows, tables with one, unclear, in %")
    rng = np.random.default_rng(33)
    tables = FLOORS // 5
    for noise in ("normal", "t3"):
        for pairs in (5, 20, 50):
            shape = (tables, ROWS, pairs + 1)
            a, b = (1e6 * np.exp(_draw(noise, rng, shape) * rng.choice((-1, 1), shape)) for _ in range(2))
            a[:, ::5], b[:, ::5] = rng.poisson(1.5, (2, *a[:, ::5].shape))
            offset = counters.zero_offset(a[..., :-1], b[..., :-1])[..., None]
            sizes = counters.log_ratios(a, b, offset)
            new, seen = sizes[..., -1:], sizes[..., :-1]
            p = counters.p_of_sizes(new, seen)[..., 0]
            moved = counters.p_of_sizes(new + np.log1p(0.1), seen)[..., 0]
            planted = np.where(np.arange(ROWS) % 10 == 1, moved, p)
            power = 100 * float((discoveries(planted) & (planted <= CHANGED_P))[:, 1::10].mean())
            rows, false_tables, unclear = _false_rows(p)
            judged = "" if pairs >= counters.MIN_COUNTER_PAIRS else "   (all are unclear: too few)"
            print(
                f"  {noise:8}{pairs:5} pairs: rows {rows:5.2f}   tables {false_tables:5.2f}, unclear "
                f"{unclear:5.1f}   power at 10 % in ten rows {power:4.0f}{judged}"
            )
            if pairs >= counters.MIN_COUNTER_PAIRS:
                yield "F3", f"{noise}, {pairs} pairs: rows", rows, "<=", 1.0
                yield "F3", f"{noise}, {pairs} pairs: tables of {ROWS}", false_tables, "<=", 5.0


def tables_of_exact_counters() -> Iterator[Line]:
    """F4: comparisons of 100 counters that are exact but for one launch in 50, which has 30 % more."""
    print("\nThe same of counters that are exact but for one launch in 50 at +30 %")
    rng = np.random.default_rng(34)
    for pairs in (20, 50, 100):
        shape = (2, FLOORS // 5, ROWS, pairs + 1)
        a, b = np.where(rng.random(shape) < 0.02, 1.3, 1.0)
        sizes = counters.log_ratios(a, b)
        rows, false_tables, unclear = _false_rows(
            counters.p_of_sizes(sizes[..., -1:], sizes[..., :-1])[..., 0]
        )
        print(f"  {pairs:5} pairs: rows {rows:5.2f}   tables {false_tables:5.2f}, unclear {unclear:5.1f}")
        yield "F4", f"one launch in 50 at +30 %, {pairs} pairs: tables of {ROWS}", false_tables, "<=", 5.0


def stored_noise() -> list[Line]:
    """Every row of this module."""
    return [
        *floors_and_gates(),
        *changing_floors(),
        *tables_of_counters(),
        *tables_of_exact_counters(),
    ]
