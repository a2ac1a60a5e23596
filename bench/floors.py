"""Rules for a limit from 20 A/A pairs, side by side: what each calls false, and what it finds.

    python bench/floors.py                      simulated noise, about a minute
    python bench/floors.py HUB                  also real timings of two workstation GPUs
    python bench/floors.py HUB --floors 2000

HUB is a folder with `cachefiles/convolution_milo/A4000.json.gz` and the like, of Kernel Tuner's public
benchmark hub: 32 timings of each of thousands of configurations of a kernel. A pair is the medians of the
two halves of such a series without its first 4, so both are of one process: closer than two sessions.
Each floor is of 20 pairs that are dealt out at random ("dealt"), or follow one another and judge the
pairs that follow them ("in order"). The other GPUs there are kept for a last look and not read.

A rule with `fresh` pairs calls a cell changed where that many pairs, the first included, all lie beyond its
limit with one sign, and stops at the first that does not. Today's rule decides by one pair and calls unclear
what lies between two limits. `suspected` are the equal cells that a rule asks again about, or calls unclear,
`asks` the quiet gates of 20 with one; `extra` is how many more pairs such a gate takes. `reached` is the
share of changes that are called so or suspected: what a confirmation that misses nothing would find.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiler.statistics import exceedance
from profiler.statistics.multiple_testing import discoveries
from profiler.statistics.noise_floor import CHANGED_P, MIN_FLOOR_PAIRS, typical_pair_ns
from profiler.statistics.ratios import MAD_TO_SD, MARGIN

Floats = NDArray[np.float64]

SD = 0.006  # of the log-ratio of a simulated A/A pair
CELLS, GATE, FRESH = 200, 20, 4  # cells that a floor judges, those of a gate, the most pairs a cell
CHANGES = (0.01, 0.02, 0.05)
KERNELS, GPUS = ("convolution", "dedispersion"), ("A4000", "W6600")
SAMPLES, WARM_UP = 32, 4  # of a configuration; of these the first are left out
LEAST = float(np.log1p(MARGIN))
GROUP = 20  # floors of one GPU and length of call, which may be pooled
# What a rule has to meet: at most one cell of a quiet gate is asked again about.
FALSE_PAIR, FALSE_GATE, SUSPECTED, SHARE_OF_ORACLE = 1.0, 2.0, 5.0, 0.8
LEAST_POWER = 0.2  # of the oracle: where it finds less, what a rule finds is its false rate


@dataclass(frozen=True)
class World:
    """Log-ratios of equal builds: those that floors are made of, and fresh ones to be judged."""

    seen: Floats  # [floors, pairs]
    new: Floats  # [floors, CELLS, FRESH]

    @property
    def oracle(self) -> float:
        """The limit of one who knew all pairs."""
        return max(float(np.quantile(np.abs(self.new), 1 - CHANGED_P)), LEAST)


@dataclass(frozen=True)
class Rule:
    """A limit from the pairs of floors, and how many fresh pairs must lie beyond it."""

    name: str
    limits: Callable[[Floats], Floats]  # sizes [floors, pairs], GROUP of them of one kind, to [floors]
    fresh: int = 1
    same: Callable[[Floats], Floats] | None = None  # up to which all is the same, where one pair decides by p


@dataclass(frozen=True)
class Figures:
    """What a rule does in one world, in %; `extra` is pairs a quiet gate."""

    pair: float
    gate: float
    large_gate: float
    power: tuple[float, ...]  # at CHANGES
    reached: float  # at 2 %
    limit: float
    suspected: float
    asks: float
    extra: float


# ---------------------------------------------------------------- the rules


def _largest(place: int) -> Callable[[Floats], Floats]:
    """The limit that is the largest pair (1), the second largest (2), and so on."""
    return lambda seen: np.sort(seen, axis=-1)[..., -place]


def _shrunk(seen: Floats) -> Floats:
    """The largest pair, half way on the log scale to the mean of its group's."""
    own = np.log(np.maximum(_largest(1)(seen), LEAST))
    groups = own.reshape(-1, min(GROUP, len(own)))
    middle: Floats = np.exp((groups + groups.mean(axis=-1, keepdims=True)) / 2).ravel()
    return middle


def _pooled(seen: Floats) -> Floats:
    """The size that 1 pair in 21 of the whole group reaches."""
    group = min(GROUP, len(seen))
    pairs = np.sort(seen.reshape(-1, group * seen.shape[-1]), axis=-1)
    return np.repeat(pairs[:, -group], group)


def _least_spread(seen: Floats) -> Floats:
    """The largest pair, at least 3 standard deviations by the median and half of the group's shrunk limit."""
    spread = 3 * MAD_TO_SD * np.median(seen, axis=-1)
    return np.maximum(np.maximum(_largest(1)(seen), spread), _shrunk(seen) / 2)


def _before(seen: Floats) -> Floats:
    return np.maximum(3.5 * MAD_TO_SD * np.median(seen, axis=-1), _largest(1)(seen))


def _today(seen: Floats) -> Floats:
    return exceedance.limits(seen, CHANGED_P)


def _likely(seen: Floats) -> Floats:
    """Up to where today's rule says that nothing changed."""
    return exceedance.limits(seen, CHANGED_P, tail=exceedance.likely_tail(seen))


def _twice_where_it_stands_out(seen: Floats) -> Floats:
    """The same, but at most twice the largest pair where that is beyond HEAVY_SHAPE medians."""
    largest, median = _largest(1)(seen), np.median(seen, axis=-1)
    at_most = np.where(largest > exceedance.HEAVY_SHAPE * median, 2 * largest, np.inf)
    return np.minimum(_likely(seen), at_most)


def _capped(seen: Floats) -> Floats:
    """Today's limit as if no tail were heavier than that of Student's t with 2 degrees of freedom."""
    return exceedance.limits(seen, CHANGED_P, tail=np.full(len(seen), exceedance.HEAVY_TAIL))


RULES = (
    Rule("today: power law beyond all pairs", _today, same=_likely),
    Rule("today, unclear from twice an outlier", _today, same=_twice_where_it_stands_out),
    Rule("today, unclear from the largest", _today, same=_largest(1)),
    Rule("before: largest or 3.5 MAD", _before),
    Rule("power of 1.5 at least", _capped),
    Rule("largest, once", _largest(1)),
    Rule("largest, 2 fresh", _largest(1), 2),
    Rule("largest, 3 fresh", _largest(1), 3),
    Rule("2nd largest, 3 fresh", _largest(2), 3),
    Rule("2nd largest, 4 fresh", _largest(2), 4),
    Rule("largest, half shrunk, 3 fresh", _shrunk, 3),
    Rule("largest or 3 MAD or half of group, 3", _least_spread, 3),
    Rule("pooled over the group, 3 fresh", _pooled, 3),
    Rule("pooled over the group, 2 fresh", _pooled, 2),
)


def judge(rule: Rule, world: World) -> Figures:
    """The figures of one rule in one world."""
    seen, first = np.abs(world.seen), world.new[..., 0]
    limits = np.maximum(rule.limits(seen), LEAST)
    asks_from = limits if rule.same is None else np.clip(rule.same(seen), LEAST, limits)
    called, extra = _called(rule, world.new, limits)
    suspected = np.abs(first) > asks_from[:, None]
    gates = called.reshape(len(seen), -1, GATE)
    large = called
    if rule.same is not None:  # rows of a gate are judged together, and an unclear one is not called
        suspected &= ~called
        p = exceedance.p_values(first, seen)
        gates = gates & discoveries(p.reshape(gates.shape))
        large = called & discoveries(p)
    elif rule.fresh == 1:
        suspected[:] = False
    power = [_called(rule, world.new[:, :GATE] + np.log1p(change), limits)[0] for change in CHANGES]
    reached = np.abs(first[:, :GATE] + np.log1p(CHANGES[1])) > asks_from[:, None]
    return Figures(
        pair=_share(called),
        gate=_share(gates.any(axis=-1)),
        large_gate=_share(large.any(axis=-1)),
        power=tuple(_share(found) for found in power),
        reached=_share(reached),
        limit=100 * float(np.expm1(np.median(limits))),
        suspected=_share(suspected),
        asks=_share(suspected.reshape(gates.shape).any(axis=-1)),
        extra=GATE * extra,
    )


def _share(found: NDArray[np.bool_] | np.bool_) -> float:
    return 100 * float(np.mean(found))


def _called(rule: Rule, new: Floats, limits: Floats) -> tuple[NDArray[np.bool_], float]:
    """Which cells [floors, cells] are called changed, and how many more pairs one takes on average."""
    stands = np.abs(new[..., 0]) > limits[:, None]
    extra = 0.0
    for place in range(1, rule.fresh):
        extra += float(stands.mean())
        alike = np.sign(new[..., place]) == np.sign(new[..., 0])
        stands &= (np.abs(new[..., place]) > limits[:, None]) & alike
    return stands, extra


# ---------------------------------------------------------------- the worlds


def _noise(kind: str, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    scales, chances = {
        "mixture": ((0.5, 3.0), (0.9, 0.1)),
        "ties": ((0.05, 0.5, 5.0), (0.8, 0.15, 0.05)),
        "unseen": ((0.05, 5.0), (0.9, 0.1)),
    }.get(kind, ((1.0,), (1.0,)))
    made: Floats = rng.standard_t(2, shape) if kind == "t2" else rng.normal(size=shape)
    made = SD * made * rng.choice(scales, shape, p=chances)
    return made


def _following(rng: np.random.Generator, shape: tuple[int, ...], memory: float) -> Floats:
    """Normal noise [..., pairs] whose neighbours are correlated by `memory`."""
    made: Floats = SD * rng.normal(size=shape)
    for place in range(1, shape[-1]):
        made[..., place] = memory * made[..., place - 1] + np.sqrt(1 - memory**2) * made[..., place]
    return made


def simulated(floors: int, rng: np.random.Generator) -> Iterator[tuple[str, World]]:
    """The simulated worlds, from what a rule assumes to what it cannot know."""
    seen, new = (floors, MIN_FLOOR_PAIRS), (floors, CELLS, FRESH)
    for kind in ("normal", "t2", "mixture", "ties", "unseen"):
        yield kind, World(_noise(kind, rng, seen), _noise(kind, rng, new))
    scale = np.exp(rng.normal(0, 0.5, (floors, 1)))
    yield "scales", World(scale * _noise("normal", rng, seen), scale[..., None] * _noise("normal", rng, new))
    yield "lag 1 of .5", World(_following(rng, seen, 0.5), _following(rng, new, 0.5))
    yield "doubled since", World(_noise("normal", rng, seen), 2 * _noise("normal", rng, new))
    own = _noise("normal", rng, (floors, CELLS, 1))
    reused = (own + _noise("normal", rng, new)) / np.sqrt(2)
    yield "one baseline", World(_noise("normal", rng, seen), reused)
    night = SD / 2 * rng.normal(size=(floors, 1, 1))
    yield "shifted night", World(_noise("normal", rng, seen), _noise("normal", rng, new) + night)


def real(hub: Path, floors: int, rng: np.random.Generator) -> Iterator[tuple[str, World]]:
    """Floors of real pairs, dealt out and in the order in which they were timed."""
    for kernel in KERNELS:
        for gpu in GPUS:
            pairs = _pairs(hub / "cachefiles" / f"{kernel}_milo" / f"{gpu}.json.gz")
            dealt = rng.permuted(np.tile(pairs, (floors, 1)), axis=1)
            wanted = MIN_FLOOR_PAIRS + CELLS * FRESH
            yield f"{gpu} {kernel}", _world(dealt[:, :wanted])
            starts = rng.integers(0, len(pairs) - wanted, floors)
            yield f"{gpu} {kernel}, in order", _world(pairs[starts[:, None] + np.arange(wanted)])


def _world(pairs: Floats) -> World:
    new = pairs[:, MIN_FLOOR_PAIRS:].reshape(len(pairs), FRESH, CELLS)
    return World(pairs[:, :MIN_FLOOR_PAIRS], np.swapaxes(new, 1, 2))


def _pairs(path: Path) -> Floats:
    """The log-ratios of the two halves of each configuration's timings, in the file's order."""
    with gzip.open(path, "rt") as file:
        found = json.load(file)["cache"].values()
    times = [one["times"] for one in found if isinstance(one.get("times"), list)]
    ns = 1e6 * np.array([row for row in times if len(row) == SAMPLES])
    half = (WARM_UP + SAMPLES) // 2
    a, b = typical_pair_ns(ns[:, WARM_UP:half], ns[:, half:])
    ratios: Floats = np.log(b / a)
    return ratios


# ---------------------------------------------------------------- the tables


def print_world(name: str, world: World) -> tuple[dict[str, Figures], float]:
    """A table of all rules in one world; their figures by name, and the oracle's power at 2 %."""
    found = [_share(np.abs(world.new[:, :GATE, 0] + np.log1p(change)) > world.oracle) for change in CHANGES]
    print(
        f"\n{name}, in %: the oracle's limit is {100 * np.expm1(world.oracle):.2f}, its power {_each(found)}"
    )
    sizes = _each([100 * change for change in CHANGES])
    print(
        f"  {'rule':38}   pair gate of 20  of 200 {'power at ' + sizes:>16} reached"
        "   limit suspected asks extra"
    )
    figures = {rule.name: judge(rule, world) for rule in RULES}
    for rule, of in figures.items():
        print(
            f"  {rule:38}{of.pair:7.3f}{of.gate:11.2f}{of.large_gate:8.1f}{_each(of.power):>17}"
            f"{of.reached:8.0f}{of.limit:8.2f}{of.suspected:10.2f}{of.asks:5.0f}{of.extra:6.2f}"
        )
    return figures, found[1]


def _each(numbers: Sequence[float]) -> str:
    return "/".join(f"{number:.0f}" for number in numbers)


def print_summary(found: dict[str, tuple[dict[str, Figures], float]]) -> None:
    """For each rule the worst over the worlds, and in how many it meets all that is asked."""
    print(f"\nWorst of {len(found)} worlds, in %, and in how many a rule meets all that is asked")
    print(f"  {'rule':38}   pair gate of 20  suspected   power at 2 and reached beside the oracle's    met")
    for rule in RULES:
        rows = [figures[rule.name] for figures, _ in found.values()]
        # Beside an oracle that finds nothing no power is lost.
        oracle = [max(power, 1e-9) if power >= 100 * LEAST_POWER else np.inf for _, power in found.values()]
        lost = [1.0 if np.isinf(of) else row.power[1] / of for row, of in zip(rows, oracle, strict=True)]
        reached = [1.0 if np.isinf(of) else row.reached / of for row, of in zip(rows, oracle, strict=True)]
        met = sum(
            row.pair <= FALSE_PAIR
            and row.gate <= FALSE_GATE
            and row.suspected <= SUSPECTED
            and share >= SHARE_OF_ORACLE
            for row, share in zip(rows, lost, strict=True)
        )
        pair, gate = max(row.pair for row in rows), max(row.gate for row in rows)
        suspected = max(row.suspected for row in rows)
        print(
            f"  {rule.name:38}{pair:7.2f}{gate:11.2f}{suspected:11.2f}{min(lost):15.2f}{min(reached):12.2f}"
            f"{met:25} of {len(rows)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hub", nargs="?", type=Path, help="a folder with the hub's cachefiles/")
    parser.add_argument("--floors", type=int, default=1000, help="a world, a multiple of 20 (default: 1000)")
    arguments = parser.parse_args()
    if arguments.floors < GROUP or arguments.floors % GROUP:
        parser.error(f"--floors {arguments.floors}: a multiple of {GROUP} is needed")
    rng = np.random.default_rng(41)
    found = {name: print_world(name, world) for name, world in simulated(arguments.floors, rng)}
    if arguments.hub is not None:
        for name, world in real(arguments.hub, arguments.floors, rng):
            found[name] = print_world(name, world)
    print_summary(found)


if __name__ == "__main__":
    main()
