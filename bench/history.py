"""How well change points are found, and how fast: targets H3, H4 and H5, beside ruptures and Otava.

    python bench/history.py                              our method and ruptures (pip install -e '.[bench]')
    python bench/history.py --otava-python OTAVA/bin/python

Otava 0.8.0 pins a numpy of its own, so it lives in a venv of its own and answers over a pipe, a line of JSON
a series:  python -m venv OTAVA && OTAVA/bin/pip install apache-otava==0.8.0

Histories are made, not real: levels that step by 1 to 10 %, noise of 0.3 to 2 % that remembers (lag-1
autocorrelation 0 to 0.5), and up to 3 % of the points 5 to 30 % too slow. Every method sees the same series.
A step counts as found when a change point lies within two points of it. Peers, which take longer, see fewer.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from profiler.statistics.changepoint import (
    CONFIDENCE,
    ChangePoint,
    LevelKind,
    change_points,
    change_points_of,
)

Series = NDArray[np.float64]
Finder = Callable[[Series], list[int]]

NEAR = 2  # points between a step and the change point that found it
CLEAR, ROOM = 3.0, 6  # H3: steps of so many sigma with so many points on each side
DWELLS = (2, 5, 10, 20, 40, 80)  # runs in one state of a host with two
AFTER = (2, 3, 5)  # H4: points since the step

_OTAVA = """
import json, sys, time
from otava.analysis import compute_change_points
for line in sys.stdin:
    series = json.loads(line)
    began = time.perf_counter()
    found, _ = compute_change_points(series)
    print(json.dumps({"at": [int(one.index) for one in found], "s": time.perf_counter() - began}), flush=True)
"""


class Noise(NamedTuple):
    """What a history's points scatter by."""

    sigma: float  # of the logarithm
    memory: float  # lag-1 autocorrelation
    outliers: float  # share of points


@dataclass(frozen=True)
class Made:
    """A history, where it steps and by how much (of the logarithm)."""

    values: Series
    noise: Noise
    steps: tuple[int, ...] = ()
    sizes: tuple[float, ...] = ()


@dataclass
class Tally:
    """What one method did."""

    found: int = 0
    right: int = 0
    clear: int = 0
    clear_found: int = 0
    quiet_points: int = 0
    quiet_series: int = 0
    alarms: int = 0
    alarmed: int = 0
    after: dict[int, list[bool]] = field(default_factory=lambda: {n: [] for n in AFTER})


def chance_of(rng: np.random.Generator) -> Noise:
    """One kind of noise out of the range that the docstring names."""
    sigma = math.exp(rng.uniform(math.log(0.003), math.log(0.02)))
    return Noise(sigma, rng.uniform(0.0, 0.5), rng.uniform(0.0, 0.03))


def scatter(rng: np.random.Generator, points: int, noise: Noise) -> Series:
    """The noise of the logarithm: an AR(1) of standard deviation sigma, and slow outliers."""
    fresh = rng.normal(0.0, noise.sigma, points)
    out = np.empty(points)
    out[0] = fresh[0]
    for i in range(1, points):
        out[i] = noise.memory * out[i - 1] + math.sqrt(1 - noise.memory**2) * fresh[i]
    slow = rng.random(points) < noise.outliers
    out[slow] += np.log1p(rng.uniform(0.05, 0.3, int(slow.sum())))
    return out


def history(rng: np.random.Generator, noise: Noise | None = None) -> Made:
    """A history of 60 to 500 points with a step about every 40."""
    noise, points = noise or chance_of(rng), int(rng.integers(60, 500))
    level, steps, sizes = np.zeros(points), [], []
    at = 0
    while (at := at + max(ROOM, int(rng.exponential(40)))) <= points - 3:
        size = math.log1p(math.exp(rng.uniform(math.log(0.01), math.log(0.10))))
        size *= 1 if rng.random() < 0.6 else -1
        level[at:] += size
        steps.append(at)
        sizes.append(size)
    return Made(np.exp(level + scatter(rng, points, noise)), noise, tuple(steps), tuple(sizes))


def quiet(rng: np.random.Generator, noise: Noise | None = None) -> Made:
    """A history in which nothing ever happens."""
    noise = noise or chance_of(rng)
    return Made(np.exp(scatter(rng, int(rng.integers(60, 500)), noise)), noise)


def fresh_step(rng: np.random.Generator, after: int) -> Made:
    """A step of five sigma, which has just happened: `after` points ago."""
    noise = chance_of(rng)
    before = int(rng.integers(30, 120))
    size = 5 * noise.sigma * (1 if rng.random() < 0.6 else -1)
    level = np.zeros(before + after)
    level[before:] = size
    return Made(np.exp(level + scatter(rng, before + after, noise)), noise, (before,), (size,))


def pair_up(steps: Sequence[int], found: Sequence[int]) -> dict[int, int]:
    """The change point of each step that has one within NEAR points; none belongs to two."""
    pairs: dict[int, int] = {}
    for step in steps:
        free = [at for at in found if abs(at - step) <= NEAR and at not in pairs.values()]
        if free:
            pairs[step] = min(free, key=lambda at: abs(at - step))
    return pairs


def clear_steps(one: Made) -> list[int]:
    """The steps that H3 asks for."""
    edges = (0, *one.steps, len(one.values))
    return [
        step
        for step, size, left, right in zip(one.steps, one.sizes, edges, edges[2:], strict=False)
        if abs(size) >= CLEAR * one.noise.sigma and min(step - left, right - step) >= ROOM
    ]


def tally(find: Finder, histories: Sequence[Made], still: Sequence[Made], fresh: Sequence[Made]) -> Tally:
    """Ask one method about all of them."""
    told = Tally()
    for one in histories:
        found = find(one.values)
        pairs, clear = pair_up(one.steps, found), clear_steps(one)
        told.found += len(found)
        told.right += len(pairs)
        told.clear += len(clear)
        told.clear_found += sum(step in pairs for step in clear)
    for one in still:
        found = find(one.values)
        told.quiet_points += len(one.values)
        told.quiet_series += 1
        told.alarms += len(found)
        told.alarmed += bool(found)
    for one in fresh:
        hit = bool(pair_up(one.steps, find(one.values)))
        told.after[len(one.values) - one.steps[0]].append(hit)
    return told


def ours(values: Series) -> list[int]:
    """`profiler.statistics.changepoint`, as the product calls it."""
    return [point.index for point in change_points(values)]


def ruptures_methods() -> dict[str, Finder]:
    """PELT with the package's own defaults and a BIC penalty, and as its front page has it."""
    try:
        import ruptures
    except ImportError:
        return {}

    def scaled(values: Series) -> Series:
        logs = np.log(values)
        jumps = np.diff(logs)
        noise: float = 1.4826 * np.median(np.abs(jumps - np.median(jumps))) / math.sqrt(2)
        return logs / noise

    def bic(values: Series) -> list[int]:
        found = ruptures.Pelt().fit(scaled(values)).predict(pen=2 * math.log(len(values)))
        return [at for at in found if at < len(values)]

    def front_page(values: Series) -> list[int]:
        found = ruptures.Pelt(model="rbf").fit(scaled(values)).predict(pen=10)
        return [at for at in found if at < len(values)]

    return {"ruptures PELT l2, pen 2 ln n": bic, "ruptures PELT rbf, pen 10": front_page}


@contextmanager
def otava(python: str) -> Iterator[Finder]:
    """Otava with its defaults, in an interpreter of its own; `seconds` is its own time of the last call."""
    process = subprocess.Popen(
        [python, "-c", _OTAVA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    to, back = process.stdin, process.stdout
    assert to is not None
    assert back is not None

    class Asked:
        seconds = 0.0

        def __call__(self, values: Series) -> list[int]:
            print(json.dumps(values.tolist()), file=to, flush=True)
            line = back.readline()
            if not line:
                raise SystemExit(f"{python}: otava gave no answer; is apache-otava==0.8.0 installed there?")
            answer = json.loads(line)
            self.seconds = answer["s"]
            return list(answer["at"])

    try:
        yield Asked()
    finally:
        to.close()
        process.wait(timeout=30)


def milliseconds(find: Any, rng: np.random.Generator, repeats: int) -> float:
    """Median time of a 500-point series, steps and quiet ones in turn."""
    taken = []
    for number in range(repeats + 1):
        level = np.zeros(500) if number % 2 else np.repeat(rng.uniform(0, 0.1, 10), 50)
        values = np.exp(level + scatter(rng, 500, Noise(0.01, 0.2, 0.01)))
        began = time.perf_counter()
        find(values)
        taken.append(getattr(find, "seconds", 0.0) or time.perf_counter() - began)
    return 1e3 * median(taken[1:])  # the first one compiles


def lone_steps(rng: np.random.Generator, count: int) -> list[Made]:
    """Histories with one step of 5 % in their middle."""
    made = []
    for _ in range(count):
        noise, size = chance_of(rng), math.log1p(0.05)
        level = np.repeat([0.0, size], 40)
        made.append(Made(np.exp(level + scatter(rng, 80, noise)), noise, (40,), (size,)))
    return made


def many(series: int, points: int = 400) -> float:
    """Seconds for so many series at once."""
    rng = np.random.default_rng(5)
    made = [np.exp(scatter(rng, points, Noise(0.01, 0.2, 0.01))) for _ in range(60)]
    for one in made[::3]:
        one[points // 2 :] *= 1.05
    change_points(made[0])
    began = time.perf_counter()
    change_points_of([made[number % len(made)] for number in range(series)])
    return time.perf_counter() - began


def two_states(rng: np.random.Generator, dwell: float) -> Made:
    """A quiet history on a host with two states 3 to 15 % apart, each kept for `dwell` runs in the mean."""
    noise, points = chance_of(rng), int(rng.integers(60, 500))
    changes = rng.random(points) < 1.0 / dwell
    gap = math.log1p(math.exp(rng.uniform(math.log(0.03), math.log(0.15))))
    state = (np.cumsum(changes) + rng.integers(0, 2)) % 2
    return Made(np.exp(gap * state + scatter(rng, points, noise)), noise)


def drifting(rng: np.random.Generator, size: float, waves: float) -> Made:
    """A history that moves by `size` in all, without a step: as a line, or a sine of so many waves."""
    noise, points = chance_of(rng), int(rng.integers(60, 500))
    place = np.linspace(0.0, 1.0, points)
    path = np.sin(2 * math.pi * waves * place) / 2 if waves else place
    sign = 1 if rng.random() < 0.6 else -1
    return Made(np.exp(sign * math.log1p(size) * path + scatter(rng, points, noise)), noise)


def alarmed(histories: Sequence[Made]) -> float:
    """The percentage of histories with an alarm: a step to a level that was never there."""
    return 100 * float(np.mean([any(p.is_alarm for p in change_points(one.values)) for one in histories]))


def looks(histories: Sequence[Made]) -> tuple[float, float, float]:
    """Percentages when looking after each run: histories ever alarmed, alarmed at the end, alarmed anew.

    Anew: an alarm that was raised, withdrawn and raised again at the same place.
    """
    ever, at_end, again = 0, 0, 0
    for one in histories:
        raised: set[int] = set()
        withdrawn: set[int] = set()
        came_again = False
        alarms: list[int] = []
        for end in range(8, len(one.values) + 1):
            alarms = [p.index for p in change_points(one.values[:end]) if p.is_alarm]
            gone = {at for at in raised if not _near(at, alarms)}
            came_again |= any(_near(at, sorted(withdrawn)) for at in alarms)
            withdrawn = {at for at in withdrawn | gone if not _near(at, alarms)}
            raised = (raised - gone) | set(alarms)
        ever += bool(raised or withdrawn)
        at_end += bool(alarms)
        again += came_again
    return 100 * ever / len(histories), 100 * at_end / len(histories), 100 * again / len(histories)


def _near(at: int, places: Sequence[int]) -> bool:
    return any(abs(at - place) <= NEAR for place in places)


def kinds_of_steps(histories: Sequence[Made]) -> dict[LevelKind, float]:
    """The percentage of each kind among the clear steps that were found."""
    kinds: list[LevelKind] = []
    for one in histories:
        by_place = {point.index: point for point in change_points(one.values)}
        pairs = pair_up(one.steps, list(by_place))
        kinds += [by_place[pairs[step]].kind for step in clear_steps(one) if step in pairs]
    return {kind: 100 * kinds.count(kind) / max(1, len(kinds)) for kind in LevelKind}


def print_alarms(rng: np.random.Generator, count: int) -> None:
    """The rows on states, drift, noise with memory, and looking after each run."""
    print("\nalarms: steps to a level that was never there, % of quiet histories; targets 13 on two states,")
    print("10 looking after each run")
    everything = []
    for dwell in DWELLS:
        histories = [two_states(rng, dwell) for _ in range(count)]
        everything += histories
        print(f"  two states, {dwell:2} runs in each{alarmed(histories):24.1f}")
    print(f"  two states, all of these{alarmed(everything):27.1f}")
    for waves, name in ((0.0, "a line"), (1.0, "a wave")):
        for size in (0.05, 0.1, 0.2):
            histories = [drifting(rng, size, waves) for _ in range(count)]
            print(f"  drift by {100 * size:2.0f} % along {name}{alarmed(histories):25.1f}")
    for memory in (0.0, 0.3, 0.5, 0.7):
        histories = [quiet(rng, chance_of(rng)._replace(memory=memory)) for _ in range(count)]
        print(f"  noise of lag-1 autocorrelation {memory}{alarmed(histories):17.1f}")
    few = max(1, count // 4)
    print("looking after each run, % of histories: ever an alarm, one at the end, one that came again")
    for name, histories in (
        ("quiet", [quiet(rng) for _ in range(few)]),
        ("two states, 20 runs in each", [two_states(rng, 20) for _ in range(few)]),
    ):
        ever, at_end, again = looks(histories)
        print(f"  {name:30}{ever:10.1f}{at_end:10.1f}{again:10.1f}")
    kinds = kinds_of_steps([history(rng) for _ in range(count)])
    shares = ", ".join(f"{kind.value} {share:.1f}" for kind, share in kinds.items())
    print(f"kinds of the clear steps of H3, %, whose levels lie by chance: {shares}")


def coverage(histories: Sequence[Made]) -> tuple[int, float, float, float]:
    """Of the steps found: how many, in what share the intervals hold the truth, and their median width."""
    place, size, widths = [], [], []
    for one in histories:
        by_place = {point.index: point for point in change_points(one.values)}
        for step, at in pair_up(one.steps, list(by_place)).items():
            point: ChangePoint = by_place[at]
            place.append(point.earliest <= step <= point.latest)
            truth = math.expm1(one.sizes[one.steps.index(step)])
            if not math.isnan(point.size_low):  # in a drift there is no interval
                size.append(point.size_low <= truth <= point.size_high)
            widths.append(point.latest - point.earliest + 1)
    return len(place), float(np.mean(place)), float(np.mean(size)), float(np.median(widths))


def share(part: int, whole: int) -> str:
    return f"{part / whole:.3f}" if whole else "–"


def row(name: str, told: Tally, ms: float) -> str:
    """One method of the table."""
    per_1000 = 1000 * told.alarms / told.quiet_points
    after = "".join(f"{100 * float(np.mean(told.after[n])):7.1f}" for n in AFTER)
    return (
        f"{name:32}{share(told.right, told.found):>10}{share(told.clear_found, told.clear):>8}"
        f"{per_1000:>9.3f}{100 * told.alarmed / told.quiet_series:>9.1f}{after}{ms:>10.2f}"
        f"   {told.quiet_series:,} quiet, {told.clear:,} clear steps"
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=2000, help="series of each kind for our method")
    parser.add_argument("--peer-repeats", type=int, default=200, help="series of each kind for the others")
    parser.add_argument("--otava-python", help="an interpreter that has apache-otava 0.8.0")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args(argv)
    rng = np.random.default_rng(arguments.seed)
    count, peers = arguments.repeats, arguments.peer_repeats
    histories = [history(rng) for _ in range(count)]
    still = [quiet(rng) for _ in range(count)]
    # turns of 2, 3 and 5, so that the first few hold all
    fresh = [fresh_step(rng, after) for _ in range(count) for after in AFTER]
    print(f"{'':50}  false alarms on quiet    5 sigma step flagged, %  ms for 500")
    print(
        f"{'':32}{'precision':>10}{'recall':>8}{'per 1000':>9}{'% series':>9}"
        + "".join(f"{f'{n} pts':>7}" for n in AFTER)
        + f"{'points':>10}"
    )
    print(
        f"{'target H3, H4, H5':32}{'0.970':>10}{'0.900':>8}{'0.100':>9}{'':>9}"
        f"{45:>7}{70:>7}{95:>7}{'0.50':>10}"
    )
    timed = min(200, 10 * count)
    print(row("ours", tally(ours, histories, still, fresh), milliseconds(ours, rng, timed)), flush=True)
    few = (histories[:peers], still[:peers], fresh[: peers * len(AFTER)])
    print(row("ours, the peers' series", tally(ours, *few), milliseconds(ours, rng, timed)), flush=True)
    for name, find in ruptures_methods().items() or {"ruptures": None}.items():
        if find is None:
            print(f"{name:32}not measured: not installed")
        else:
            print(row(name, tally(find, *few), milliseconds(find, rng, 6)), flush=True)
    with ExitStack() as stack:
        if arguments.otava_python:
            find = stack.enter_context(otava(arguments.otava_python))
            print(row("Otava 0.8.0, its defaults", tally(find, *few), milliseconds(find, rng, 20)))
        else:
            print(f"{'Otava 0.8.0':32}not measured: not installed (--otava-python)")
    series = min(6000, 50 * count)  # as a large store has, where the others are not a few either
    print(f"\nH5 {series:,} series of 400 points: {many(series):.2f} s, target 3 for 6,000")
    print(f"intervals, which claim {100 * CONFIDENCE:.0f} %, of the steps that were found:")
    for what, some in (("a step alone", lone_steps(rng, count)), ("a step about every 40 points", histories)):
        found, place, size, width = coverage(some)
        print(
            f"  {what:30}{found:>6,} steps: the place is inside {100 * place:.1f} %, "
            f"the size {100 * size:.1f} %; a place is {width:.0f} points wide in the median"
        )
    for noise in (Noise(s, m, o) for s in (0.003, 0.02) for m in (0.0, 0.3, 0.5) for o in (0.0, 0.03)):
        found, _, size, _ = coverage([history(rng, noise) for _ in range(count // 4)])
        print(
            f"  sigma {100 * noise.sigma:.1f} %, memory {noise.memory:.1f}, "
            f"{100 * noise.outliers:.0f} % outliers{found:>10,} steps: the size {100 * size:.1f} %"
        )
    print_alarms(rng, count // 4)
    print("\nours by noise, 300 series of each kind: precision, recall, false alarms per 1000 quiet points")
    for noise in (Noise(s, m, o) for s in (0.003, 0.02) for m in (0.0, 0.5) for o in (0.0, 0.03)):
        told = tally(
            ours, [history(rng, noise) for _ in range(300)], [quiet(rng, noise) for _ in range(300)], []
        )
        print(
            f"  sigma {100 * noise.sigma:.1f} %, memory {noise.memory:.1f}, "
            f"{100 * noise.outliers:.0f} % outliers"
            f"{share(told.right, told.found):>10}{share(told.clear_found, told.clear):>8}"
            f"{1000 * told.alarms / told.quiet_points:>9.3f}"
        )


if __name__ == "__main__":
    main()
