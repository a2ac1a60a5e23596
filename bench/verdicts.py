"""How often verdicts are right on made latencies: targets P1, P2, P3, P4, P6 and M1, and other rules beside.

    python bench/verdicts.py                    10,000 repeats a cell, some minutes
    python bench/verdicts.py --repeats 2000

FPR is how often two equal builds are called different, power how often a true change of that size is. Our
rules are the product's own code. `design` is how the samples were taken: 25 rounds of A and B, 4 samples
each, in 25 fresh processes (what `profiler collect` does), in a process a turn (harder), or 100 samples of A,
then of B. Rows L1 to L9 are one kind of noise each (bench/live_pair_noise.py).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.live_pair_noise import live_noise
from bench.simulator import SCENARIOS, alone, in_turn, paired
from bench.stored_noise import stored_noise
from profiler.statistics import exceedance, ratios
from profiler.statistics.multiple_testing import which_stand
from profiler.statistics.noise_floor import CHANGED_P, MIN_FLOOR_PAIRS, typical_ns

ROUNDS, SAMPLES = 25, 4
DESIGNS = {"25 processes": 25, "a process a turn": 0}
CHANGES = (0.01, 0.02, 0.05)
FLOORS, DEALS = 200, 50
ROWS, PLANTED = 1500, 0.05  # of a comparison; the share of its rows that changed
TABLES = 40

Floats = NDArray[np.float64]
Sides = tuple[NDArray[np.float64], NDArray[np.float64]]
Rule = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.bool_]]


def round_t(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    return ratios.is_changed(_estimate(a, b))


def gate(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    return ratios.is_worse_beyond_margin(_estimate(a, b))


def _estimate(a: NDArray[np.float64], b: NDArray[np.float64]) -> ratios.Estimate:
    tick = ratios.tick_error(_flat(a), _flat(b))
    return ratios.estimate(ratios.log_ratios(a, b), tick, fresh=True)


def mann_whitney(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """p < .01 by scipy, and medians 1 % apart."""
    x, y = _flat(a), _flat(b)
    p = mannwhitneyu(x, y, axis=-1, method="asymptotic").pvalue
    return (p < 0.01) & (np.abs(np.median(y, axis=-1) / np.median(x, axis=-1) - 1) >= 0.01)


def nvbench(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.bool_]:
    """NVBench's legacy rule, as documented: means further apart than the smaller relative sd."""
    x, y = _flat(a), _flat(b)
    noise = np.minimum(x.std(axis=-1, ddof=1) / x.mean(axis=-1), y.std(axis=-1, ddof=1) / y.mean(axis=-1))
    return np.abs(y.mean(axis=-1) / x.mean(axis=-1) - 1) > noise


def _flat(ns: NDArray[np.float64]) -> NDArray[np.float64]:
    return ns.reshape(len(ns), -1)


OURS: dict[str, Rule] = {"round t, CI99 and 0.5 %": round_t, "gate: CI95 beyond 0.5 %": gate}
OTHERS: dict[str, Rule] = {"Mann-Whitney p<.01 and 1 %": mann_whitney, "NVBench legacy": nvbench}
Figures = dict[tuple[str, str, str, float], float]  # rule, design, scenario, change: per cent called changed


def pairs(repeats: int) -> Figures:
    """How often each rule calls each change."""
    found: Figures = {}
    for index, scenario in enumerate(SCENARIOS):
        for step, change in enumerate((0.0, *CHANGES)):
            seed = 1000 * index + 10 * step
            for place, (design, processes) in enumerate(DESIGNS.items()):
                sides = paired(
                    scenario,
                    repeats,
                    rounds=ROUNDS,
                    samples=SAMPLES,
                    change=change,
                    seed=seed + place,
                    processes=processes,
                )
                others = OTHERS if design == "25 processes" else {}
                for name, rule in (OURS | others).items():
                    found[name, design, scenario, change] = 100 * float(rule(*sides).mean())
            sides = in_turn(scenario, repeats, ROUNDS * SAMPLES, change=change, seed=seed + 5)
            for name, rule in OTHERS.items():
                found[name, "A, then B", scenario, change] = 100 * float(rule(*sides).mean())
    return found


def print_pairs(found: Figures) -> None:
    sizes = " / ".join(f"{change:.0%}" for change in CHANGES)
    print(f"\nLive pairs, {ROUNDS} rounds x {SAMPLES}: FPR % · power % at {sizes}")
    rows = list(dict.fromkeys((rule, design) for rule, design, _, _ in found))
    print(f"  {'rule':28}{'design':18}" + "".join(f"{name:>22}" for name in SCENARIOS))
    for rule, design in rows:
        cells = []
        for scenario in SCENARIOS:
            numbers = [found[rule, design, scenario, change] for change in (0.0, *CHANGES)]
            power = "/".join(f"{number:.0f}" for number in numbers[1:])
            cells.append(f"{numbers[0]:.2f} · {power}")
        print(f"  {rule:28}{design:18}" + "".join(f"{cell:>22}" for cell in cells))


Line = tuple[str, str, float, str, float]  # id, what, figure, "<=" or ">=", target


def pair_targets(found: Figures) -> Iterator[Line]:
    """P1, P2, P3 and P6, each in the worse of the two designs."""

    def worst(rule: str, scenario: str, change: float) -> float:
        figures = [found[rule, design, scenario, change] for design in DESIGNS]
        return min(figures) if change else max(figures)

    ours, gates = OURS
    for scenario in ("locked", "server", "throttle"):
        yield "P1", f"{scenario}: FPR", worst(ours, scenario, 0.0), "<=", 1.0
        yield "P1", f"{scenario}: power at 1 %", worst(ours, scenario, 0.01), ">=", 80.0
        yield "P1", f"{scenario}: power at 2 %", worst(ours, scenario, 0.02), ">=", 99.0
    yield "P2", "boost: FPR", worst(ours, "boost", 0.0), "<=", 1.5
    yield "P2", "boost: power at 2 %", worst(ours, "boost", 0.02), ">=", 65.0
    yield "P2", "boost: power at 5 %", worst(ours, "boost", 0.05), ">=", 99.0
    for scenario in SCENARIOS:
        yield (
            "P3",
            f"{scenario}: gate's FPR",
            worst(gates, scenario, 0.0),
            "<=",
            1.0 if scenario == "boost" else 0.3,
        )
    yield "P3", "server: gate's power at 2 %", worst(gates, "server", 0.02), ">=", 99.0
    yield "P6", "40 µs, 1 µs tick: FPR", worst(ours, "short", 0.0), "<=", 1.0
    yield "P6", "40 µs, 1 µs tick: power at 1 %", worst(ours, "short", 0.01), ">=", 85.0


FLOOR_SIZES = (20, 50, 100)  # A/A pairs


def baselines() -> list[Line]:
    """P4: stored baselines by floors of 20 to 100 A/A pairs; each floor judges all pairs that it is not of.

    The pairs are dealt out to floors many times over, so that the mean is not one of a few lucky floors.
    `before` is the rule that the product had: 3.5 MAD-sd, or the largest pair.
    """
    found: list[Line] = []
    rng = np.random.default_rng(78)
    print(f"\nStored baselines, {FLOORS} floors dealt {DEALS} times, 100 samples a run: shares in %")
    print("  scenario   pairs   FPR mean   limit, median (5 to 95 % of floors)   unclear   power at 2/5/10 %")
    most = FLOORS * max(FLOOR_SIZES)
    deals = np.stack([rng.permutation(most) for _ in range(DEALS)])
    for index, scenario in enumerate(SCENARIOS):
        runs = alone(scenario, 2 * most, ROUNDS * SAMPLES, seed=77 + index)
        levels = np.log(typical_ns(runs)).reshape(-1, 2)
        spread = levels[:, 1] - levels[:, 0]
        for pairs in FLOOR_SIZES:
            seen = spread[deals].reshape(-1, max(FLOOR_SIZES))[:, :pairs]
            limits = np.maximum(exceedance.limits(seen, CHANGED_P), np.log1p(ratios.MARGIN))
            unsure = exceedance.limits(seen, CHANGED_P, tail=exceedance.likely_tail(seen))
            rate = _print_floors(scenario, str(pairs), limits, spread, seen, unsure)
            found.append(("P4", f"{scenario}: mean FPR by {pairs} pairs", rate, "<=", 1.0))
        seen = spread[deals].reshape(-1, max(FLOOR_SIZES))[:, :20]
        before = np.maximum(_before(seen), np.log1p(ratios.MARGIN))
        _print_floors(scenario, "20 before", before, spread, seen)
        if scenario == "server":
            wrong = 100 * (np.abs(spread)[None] > _alternating(scenario)[:, None]).mean()
    print(f"  server, by floors of alternating pairs, which are none: FPR {wrong:.0f}")
    return found


def _print_floors(
    scenario: str, pairs: str, limits: Floats, spread: Floats, seen: Floats, unsure: Floats | None = None
) -> float:
    """A row of what limits [floors] make of the log-ratios of equal builds [pairs]; the mean FPR in %.

    `seen` [floors, pairs] are those of `spread` that a floor is made of, which it does not judge. Between
    `unsure` and the limits the answer is unclear.
    """
    from_size = limits if unsure is None else np.clip(unsure, np.log1p(ratios.MARGIN), limits)
    unclear = _share_beyond(from_size, spread, seen)
    rate = _share_beyond(limits, spread, seen)
    power = [_share_beyond(limits, spread + np.log1p(change)) for change in (0.02, 0.05, 0.1)]
    low, middle, high = 100 * np.expm1(np.percentile(limits, (5, 50, 95)))
    cells = f"{pairs:10}{rate:8.2f}{middle:16.2f} ({low:.2f} to {high:.2f})"
    print(f"  {scenario:9}{cells:60}{unclear - rate:6.2f}   " + "/".join(f"{number:.0f}" for number in power))
    return rate


def _share_beyond(limits: Floats, spread: Floats, seen: Floats | None = None) -> float:
    """The share in % of log-ratios beyond the limits [floors], without those that each floor has seen."""
    sizes = np.sort(np.abs(spread))
    beyond = len(sizes) - np.searchsorted(sizes, limits, "right")
    if seen is None:
        return 100 * float(beyond.mean()) / len(sizes)
    own = (np.abs(seen) > limits[:, None]).sum(axis=-1)
    return 100 * float((beyond - own).mean()) / (len(sizes) - seen.shape[-1])


def _before(ratios_of_floor: Floats) -> Floats:
    sizes = np.abs(ratios_of_floor)
    return np.maximum(3.5 * 1.4826 * np.median(sizes, axis=-1), sizes.max(axis=-1))


def _alternating(scenario: str) -> Floats:
    """The limits of floors whose A/A pairs were timed in alternating rounds, as live pairs are."""
    options = {"rounds": ROUNDS, "samples": SAMPLES}
    a, b = paired(scenario, FLOORS * MIN_FLOOR_PAIRS, change=0.0, seed=3, **options)
    spread = np.log(typical_ns(_flat(b)) / typical_ns(_flat(a))).reshape(FLOORS, -1)
    return np.maximum(exceedance.limits(spread, CHANGED_P), np.log1p(ratios.MARGIN))


def tables() -> list[Line]:
    """M1: comparisons of 1,500 rows on a server GPU, a process a turn, some with changes of 2 to 5 %."""
    rng = np.random.default_rng(5)
    false_tables, false_rows, shown, hits, planted = 0, 0, 0, 0, 0
    for table in range(5 * TABLES):
        quiet = table >= TABLES
        changes = np.where(rng.random(ROWS) < PLANTED, rng.uniform(0.02, 0.05, ROWS), 0.0) * (not quiet)
        options = {"rounds": ROUNDS, "samples": SAMPLES, "processes": 0}
        a, b = paired("server", ROWS, change=0.0, seed=900 + table, **options)
        found = ratios.estimate(ratios.log_ratios(a, b) + np.log1p(changes)[:, None], fresh=True)
        stands = which_stand(np.expm1(found.mean), ratios.p_values(found))
        if quiet:
            false_tables += bool(stands.any())
            continue
        shown += int(stands.sum())
        false_rows += int((stands & (changes == 0)).sum())
        hits += int((stands & (changes > 0)).sum())
        planted += int((changes > 0).sum())
    print(
        f"\nComparisons of {ROWS:,} rows: {4 * TABLES} quiet, "
        f"{TABLES} with {PLANTED:.0%} of the rows 2 to 5 % slower"
    )
    return [
        ("M1", "quiet comparisons with a false row", 100 * false_tables / (4 * TABLES), "<=", 1.0),
        ("M1", "false rows of those shown (FDR)", 100 * false_rows / max(shown, 1), "<=", 2.0),
        ("M1", "power at 2 to 5 %", 100 * hits / planted, ">=", 99.0),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=10_000, help="pairs a cell (default: 10000)")
    arguments = parser.parse_args()
    begun = time.perf_counter()
    found = pairs(arguments.repeats)
    print_pairs(found)
    lines = [
        *pair_targets(found),
        *baselines(),
        *tables(),
        *live_noise(arguments.repeats),
        *stored_noise(),
    ]
    print(f"\nTargets, live pairs in the worse of the two designs ({arguments.repeats:,} repeats a cell)")
    for name, what, figure, sign, target in lines:
        met = figure <= target if sign == "<=" else figure >= target
        print(
            f"  {name}  {what:66}{figure:8.2f} %   target {sign} {target:g} %   {'met' if met else 'MISSED'}"
        )
    print(f"\n{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    main()
