"""Live pairs under one kind of noise each: how often the rule is wrong, unclear, and holds what it says.

Called by bench/verdicts.py. Each row is one assumption of docs/calibration.md broken on purpose; "before"
is the plain t interval over rounds. Sizes are those of a server GPU, 0.55 % from round to round, unless
said.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import numpy as np
from numpy.typing import NDArray

from profiler.statistics import ratios
from profiler.statistics.ratios import Estimate

Floats = NDArray[np.float64]
Line = tuple[str, str, float, str, float]  # id, what, figure, "<=" or ">=", target

ROUNDS, SAMPLES = 25, 4
SERVER, BOOST = 0.0055, 0.012  # sd of the log-ratios of rounds
TICK_NS = 512.0
NEAR_MARGIN = 0.0035


def live_noise(repeats: int) -> list[Line]:
    """Print all rows; the lines that have a target."""
    print("\nLive pairs under one kind of noise each: equal builds, and a true change of 1 / 2 / 5 %; in %")
    print(f"  {'':58}{'false':>7}{'before':>8}{'unclear':>9}{'CI99 holds':>12}   power")
    rng = np.random.default_rng(20)
    return [
        *_offsets(rng, repeats),
        *_correlated(rng, repeats),
        *_heavy_tails(rng, repeats),
        *_outliers(rng, min(repeats, 2000)),
        *_ticks(rng, min(repeats, 2000)),
        *_resonance(rng, repeats),
        *_asked_for(rng, min(repeats, 300)),
        *_two_lengths(rng, repeats),
        *_slow_in_some(rng, repeats),
        *_correlated_processes(rng, repeats),
    ]


def _offsets(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """Each process has an offset of its own between A and B; the rounds are shared out among processes."""
    for count in (3, 5, 10, 25):
        processes = np.arange(ROUNDS) * count // ROUNDS
        for offset in (0.001, 0.003, 0.005):
            own = rng.normal(0, offset, (repeats, count))[:, processes]
            rounds = own + rng.normal(0, SERVER, (repeats, ROUNDS))
            means = ratios.process_means(rounds, processes)
            false, holds = _print_row(f"offset {offset:.1%} a process, {count} processes", means, rounds)
            yield "L1", f"offset {offset:.1%}, {count} processes: FPR", false, "<=", 1.0
            yield "L1", f"offset {offset:.1%}, {count} processes: CI99 holds", holds, ">=", 98.0


def _correlated(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """Log-ratios of rounds whose process is unknown, and which follow one another as an AR(1) series."""
    gates, called_same = [], []
    for count in (8, 16, ROUNDS, 50):
        for name, sd in (("server", SERVER), ("boost", BOOST)):
            for phi in (0.0, 0.3, 0.5):
                rounds = _ar1(rng, (repeats, count), phi, sd)
                what = f"process unknown, lag 1 of {phi:g}, {count} rounds, {name}"
                false, holds = _print_row(what, rounds, rounds, fresh=False)
                yield "L2", f"{what}: FPR", false, "<=", 1.0
                yield "L2", f"{what}: CI99 holds", holds, ">=", 98.0
                gates.append(float(ratios.is_worse_beyond_margin(ratios.estimate(rounds)).mean()))
                # The other way to be wrong: what moved by the margin is not the same.
                moved = ratios.estimate(rounds + np.log1p(ratios.MARGIN))
                called_same.append(float(ratios.is_same(moved).mean()))
    yield "L2", "process unknown: gate's FPR, largest", 100 * max(gates), "<=", 1.0
    yield "L2", "process unknown: 0.5 % called same, largest", 100 * max(called_same), "<=", 2.5
    inside = _ar1(rng, (repeats, 10, 5), 0.5, BOOST).reshape(repeats, 50)
    means = ratios.process_means(inside, np.arange(50) // 5)
    false, holds = _print_row("lag 1 of 0.5 within 10 processes of 5 rounds, boost", means, inside)
    yield "L2", "lag 1 of 0.5 within processes, boost: FPR", false, "<=", 1.0
    yield "L2", "lag 1 of 0.5 within processes: CI99 holds", holds, ">=", 98.0


def _heavy_tails(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """One round in ten is far out."""
    far = np.where(rng.random((repeats, ROUNDS)) < 0.1, 15.0, 1.0)
    rounds = rng.normal(0, 0.004, (repeats, ROUNDS)) * far
    false, holds = _print_row("a round in ten varies 15 times as much", rounds, rounds)
    yield "L3", "heavy tails: FPR", false, "<=", 1.0
    yield "L3", "heavy tails: CI99 holds", holds, ">=", 98.0
    yield "L3", "heavy tails: power at 2 %", _called(rounds, 0.02), ">=", 99.0


def _outliers(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """One sample of 100 takes ten times as long, on each side."""
    for level_ns in (40e3, 1.8e6):
        called, before = [], []
        for change in (0.0, 0.05):
            a, b = (
                level_ns * factor * np.exp(rng.normal(0, 0.004, (repeats, ROUNDS * SAMPLES)))
                for factor in (1.0, 1.0 + change)
            )
            for side in (a, b):
                side[np.arange(repeats), rng.integers(0, ROUNDS * SAMPLES, repeats)] *= 10
            a, b = (side.reshape(repeats, ROUNDS, SAMPLES) for side in (a, b))
            found = ratios.estimate(ratios.log_ratios(a, b), fresh=True)
            called.append(100 * float(ratios.is_changed(found).mean()))
            average = np.mean if level_ns < ratios.SHORT_NS else np.median
            before.append(_before(np.log(average(b, axis=-1) / average(a, axis=-1))))
        name = f"one sample of 100 ten times as long, {level_ns / 1e3:g} µs"
        print(f"  {name:58}{called[0]:7.2f}{before[0]:8.2f}{'':21}   5 %: {called[1]:.0f}, {before[1]:.0f}")
        yield "L3", f"outlier, {level_ns / 1e3:g} µs: power at 5 %", called[1], ">=", 99.0


def _ticks(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """+0.2 % of calls of 5 µs whose readings are rounded to a tick of 512 ns."""
    for noise in (0.0005, 0.003, 0.01):
        level = rng.uniform(4700, 5700, (repeats, 1, 1))
        a, b = (
            np.round(level * factor * np.exp(rng.normal(0, noise, (repeats, ROUNDS, SAMPLES))) / TICK_NS)
            * TICK_NS
            for factor in (1.0, 1.002)
        )
        tick = ratios.tick_error(a.reshape(repeats, -1), b.reshape(repeats, -1))
        found = ratios.estimate(ratios.log_ratios(a, b), tick, fresh=True)
        called = 100 * float(ratios.is_changed(found).mean())
        before = _before(np.log(b.mean(axis=-1) / a.mean(axis=-1)))
        name = f"+0.2 % at 5 µs, a tick of 512 ns, jitter {noise:.2%}"
        print(f"  {name:58}{called:7.2f}{before:8.2f}{100 - called:9.1f}")
        yield "L4", f"tick of 512 ns, jitter {noise:.2%}: called changed", called, "<=", 1.0


def _resonance(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """A wave of ±1 % whose period is two rounds, in a fixed A B B A and in an order drawn at random."""
    turns = np.arange(2 * ROUNDS)
    for name, drawn in (("A B B A", False), ("order drawn", True)):
        phase = rng.uniform(0, 2 * np.pi, (repeats, 1))
        wave = 0.01 * np.sin(2 * np.pi * turns / 4 + phase) + rng.normal(0, 0.003, (repeats, 2 * ROUNDS))
        first, second = wave[:, ::2], wave[:, 1::2]
        b_first = rng.random((repeats, ROUNDS)) < 0.5 if drawn else np.arange(ROUNDS)[None] % 2 == 1
        rounds = np.where(b_first, first - second, second - first)
        false, _ = _print_row(f"a wave of two rounds, {name}", rounds, rounds)
        if drawn:
            yield "L5", "a wave of two rounds, order drawn: FPR", false, "<=", 1.0


def _asked_for(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """Whether the rounds that an unclear verdict asks for, collected again, settle it."""
    print("\nUnclear at 25 rounds, collected again with the rounds asked for")
    cells = (
        *((SERVER, effect) for effect in (0.002, 0.003, 0.007)),
        *((BOOST, effect) for effect in (0.0, 0.002, NEAR_MARGIN, 0.01, 0.015)),
        *((0.03, effect) for effect in (0.0, 0.01, 0.02)),
    )
    for fresh, (sd, effect) in product((True, False), cells):
        unclear, counts, settled = 0, [], []
        for rounds in rng.normal(effect, sd, (repeats, ROUNDS)):
            pair = ratios.estimate(rounds, fresh=fresh)
            if ratios.is_changed(pair) or ratios.is_same(pair):
                continue
            unclear += 1
            if needed := ratios.rounds_needed(pair):
                again = ratios.estimate(rng.normal(effect, sd, (10, needed)), fresh=fresh)
                counts.append(needed)
                settled.append(float((ratios.is_changed(again) | ratios.is_same(again)).mean()))
        share = 100 * float(np.mean(settled)) if settled else 100.0
        middle = int(np.median(counts)) if counts else 0
        basis = "" if fresh else ", process unknown"
        print(
            f"  rounds' sd {sd:5.2%}, true change {effect:5.2%}{basis}: {unclear} of {repeats} unclear, "
            f"{len(counts)} with an answer (median {middle} rounds), {share:.0f} % then settled"
        )
        if effect != NEAR_MARGIN:  # no number of rounds settles what lies at the margin
            yield "L6", f"sd {sd:.2%}, change {effect:.2%}{basis}: settled", share, ">=", 80.0


def _two_lengths(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """Calls of 40 µs, a share of which takes 1.6 times as long: as many on both sides, or more in B."""

    def side(share: float) -> Floats:
        shape = (repeats, ROUNDS, SAMPLES)
        return 40e3 * np.exp(rng.normal(0, 0.004, shape)) * np.where(rng.random(shape) < share, 1.6, 1.0)

    print("\nShort calls, some 1.6 times as long, in 25 processes: changed, same; in %")
    for of_a, of_b in ((0.1, 0.1), (0.3, 0.3), (0.5, 0.5), (0.1, 0.3), (0.05, 0.45)):
        found = ratios.estimate(ratios.log_ratios(side(of_a), side(of_b)), fresh=True)
        changed, same = (100 * float(rule(found).mean()) for rule in (ratios.is_changed, ratios.is_same))
        print(f"  {f'{of_a:.0%} of A, {of_b:.0%} of B':58}{changed:7.2f}{same:8.2f}")
        if of_a == of_b:
            yield "L7", f"{of_a:.0%} of short calls 1.6 times as long: FPR", changed, "<=", 1.0
        else:
            yield "L7", f"{of_a:.0%} of A's, {of_b:.0%} of B's calls slow: same", same, "<=", 1.0


def _slow_in_some(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """B is slower in some of its 25 processes only, or in a share of them drawn at random."""
    print("\nB slower in some processes only: changed, same; in %")
    quiet = rng.normal(0, 0.003, (repeats, ROUNDS))
    for slower in (0.1, 0.2):
        for count in (1, 2, 3, 5):
            _print_some(
                f"+{slower:.0%} in {count} of 25", quiet + np.log1p(slower) * (np.arange(ROUNDS) < count)
            )
            if count > 1:
                found = ratios.estimate(quiet + np.log1p(slower) * (np.arange(ROUNDS) < count), fresh=True)
                same = 100 * float(ratios.is_same(found).mean())
                yield "L8", f"+{slower:.0%} in {count} of 25 processes: same", same, "<=", 1.0
        drawn = rng.random((repeats, ROUNDS)) < 0.1
        _print_some(f"+{slower:.0%} in a process in ten", quiet + np.log1p(slower) * drawn)
    for size, share in ((0.03, 0.25), (0.05, 0.1), (0.2, 0.1)):
        offsets = size * ((rng.random((repeats, ROUNDS)) < share) - share)
        _print_some(f"+{size:.0%} in {share:.0%} and as much less in the others", quiet + offsets)


def _print_some(what: str, rounds: Floats) -> None:
    found = ratios.estimate(rounds, fresh=True)
    changed, same = (100 * float(rule(found).mean()) for rule in (ratios.is_changed, ratios.is_same))
    print(f"  {what:58}{changed:7.2f}{same:8.2f}")


def _correlated_processes(rng: np.random.Generator, repeats: int) -> Iterator[Line]:
    """Known processes that follow one another, and independent ones, whose power must not suffer by it."""
    print("\nKnown processes that follow one another, boost: changed, a gate fails, 2 % and 5 % found; in %")
    for count in (10, ROUNDS):
        for phi in (0.0, 0.3, 0.5, 0.7, 0.9):
            rounds = _ar1(rng, (repeats, count), phi, BOOST)
            found = ratios.estimate(rounds, fresh=True)
            changed = 100 * float(ratios.is_changed(found).mean())
            fails = 100 * float(ratios.is_worse_beyond_margin(found).mean())
            power = "/".join(f"{_called(rounds, change):.0f}" for change in (0.02, 0.05))
            print(f"  {f'lag 1 of {phi:g}, {count} processes':58}{changed:7.2f}{fails:8.2f}   {power}")
            if count == ROUNDS:
                yield "L9", f"lag 1 of {phi:g} of 25 known processes: gate's FPR", fails, "<=", 1.0
    independent = rng.normal(0, SERVER, (repeats, ROUNDS))
    yield "L9", "25 independent processes, server: power at 2 %", _called(independent, 0.02), ">=", 99.0


def _print_row(what: str, judged: Floats, rounds: Floats, *, fresh: bool = True) -> tuple[float, float]:
    """Print a row; the share of false changes, and how often the 99 % interval holds the truth."""
    found = ratios.estimate(judged, fresh=fresh)
    changed = ratios.is_changed(found)
    unclear = 100 * float((~changed & ~ratios.is_same(found)).mean())
    false, holds = 100 * float(changed.mean()), 100 * float((np.abs(found.mean) <= found.half(0.99)).mean())
    power = "/".join(f"{_called(judged, change, fresh=fresh):.0f}" for change in (0.01, 0.02, 0.05))
    print(f"  {what:58}{false:7.2f}{_before(rounds):8.2f}{unclear:9.1f}{holds:12.1f}   {power}")
    return false, holds


def _called(rounds: Floats, change: float, *, fresh: bool = True) -> float:
    moved = ratios.estimate(rounds + np.log1p(change), fresh=fresh)
    return 100 * float(ratios.is_changed(moved).mean())


def _before(rounds: Floats) -> float:
    """The share called changed by the plain t interval over rounds."""
    error = rounds.std(axis=-1, ddof=1) / np.sqrt(rounds.shape[-1])
    plain = Estimate(rounds.mean(axis=-1), np.median(rounds, axis=-1), error, rounds.shape[-1])
    return 100 * float(ratios.is_changed(plain).mean())


def _ar1(rng: np.random.Generator, shape: tuple[int, ...], phi: float, sd: float) -> Floats:
    series = rng.normal(0, sd, shape)
    for number in range(1, shape[-1]):
        fresh = np.sqrt(1 - phi * phi) * series[..., number]
        series[..., number] = phi * series[..., number - 1] + fresh
    return series
