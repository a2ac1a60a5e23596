"""Where in an ordered row of builds a time stepped, found by as few timed runs as the noise allows.

The place of the step has a probability, updated after each run; the next run is where it splits in half: a
bisection that no single run can lead astray, as no half is ever excluded for good. Source: Waeber, Frazier,
Henderson, Bisection search with noisy responses (2013), for that rule. The likelihood of a run is normal
about the level of its side, with a share of runs that are far off; the levels and the spread are estimated
anew after each run.

Assumed: one step between the first and the last build, and runs that are independent of each other.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from profiler.statistics.ratios import MAD_TO_SD

SURE = 0.9998  # the probability of one place at which the search ends
FIRST_RUNS = 6  # of the first and of the last build, before anything else is run
MOST_END_RUNS = 50  # of each, to see that they differ at all
_END_Z, _STILL_Z = 3.5, 2.5  # standard errors that they have to lie apart, to begin and to go on
BESIDE_RUNS = 5  # of the last build before the step and of the first with it, before it is believed
MOST_BESIDE_RUNS = 30  # of each, where those leave a doubt
_BESIDE_SHARE, _BESIDE_Z = 0.5, 4.0  # of the whole step, and standard errors, that these two lie apart
_OUTLIERS, _OUTLIER_SPREAD = 0.1, 10.0  # the share of runs that are far off, and how far: in spreads
_LEAST_SPREAD = 1e-4  # as a log-ratio: no timer repeats better
_NEARLY = 0.85  # of the best information: a build that is there already is as good
_ROUNDS = 4  # in which a level is estimated without what lies far from it

Floats = NDArray[np.float64]


@dataclass
class StepSearch:
    """The runs so far, and what follows from them. Build 0 is the first, and has no step."""

    builds: int  # at least 2
    logs: dict[int, list[float]] = field(default_factory=dict)  # logarithms of times, by build
    unusable: set[int] = field(default_factory=set)  # builds that cannot be made or run
    excluded: set[int] = field(default_factory=set)  # builds whose machine code is that of the one before

    def add(self, build: int, time: float) -> None:
        """Note a run's time, in any unit. Raises ValueError for one that is not above 0 and finite."""
        if not 0 < time < np.inf:
            raise ValueError(f"{time} is no time")
        self.logs.setdefault(build, []).append(float(np.log(time)))

    def note_equal(self, a: int, b: int) -> None:
        """Note that two builds have equal machine code, so that there is no step between them."""
        self.excluded |= set(range(min(a, b) + 1, max(a, b) + 1))

    @property
    def runs(self) -> int:
        """How many runs there were."""
        return sum(map(len, self.logs.values()))

    @property
    def step(self) -> float:
        """By how much the last build takes longer than the first, as a log-ratio; NaN before both ran."""
        return self._level(self.builds - 1) - self._level(0)

    @property
    def ends_differ(self) -> bool:
        """Whether the first and the last build differ by more than their runs."""
        ends = (0, self.builds - 1)
        if min(len(self.logs.get(end, ())) for end in ends) < FIRST_RUNS:
            return False
        has_begun = bool(self.logs.keys() - set(ends))
        return abs(self.step) > (_STILL_Z if has_begun else _END_Z) * self._error(*ends)

    @property
    def spread(self) -> float:
        """How far runs of one build lie from each other, as a standard deviation of log-ratios."""
        residuals = [
            (values - np.median(values)) * np.sqrt(len(values) / (len(values) - 1))
            for values in map(np.array, self.logs.values())
            if len(values) > 1
        ]
        if not residuals:
            return _LEAST_SPREAD
        return max(_LEAST_SPREAD, MAD_TO_SD * float(np.median(np.abs(np.concatenate(residuals)))))

    @property
    def probabilities(self) -> Floats:
        """The chance of each build [builds] to be the first with the step."""
        first = self._probabilities(self.spread)
        about = self._spread_about(int(np.argmax(first)))
        return first if about <= self.spread else self._probabilities(about)

    def _spread_about(self, place: int) -> float:
        """As `spread`, also from builds that ran once: by how far runs lie from the level of their side."""
        residuals = []
        for builds in (range(place), range(place, self.builds)):
            logs = self._logs(builds)
            residuals.append(np.abs(logs - _level(logs, self.spread)))
        return max(self.spread, MAD_TO_SD * float(np.median(np.concatenate(residuals))))

    def _probabilities(self, spread: float) -> Floats:
        builds = sorted(self.logs)
        places = np.array([build not in self.unusable | self.excluded for build in range(self.builds)])
        places[0] = False
        counts = [len(self.logs[build]) for build in builds]
        of_run = np.repeat(builds, counts)
        logs = np.concatenate([self.logs[build] for build in builds])
        likelihood = np.full(self.builds, -np.inf)
        # Places between the same two builds that were run are equally likely.
        for low, high in pairwise(builds):
            before, after = logs[of_run <= low], logs[of_run >= high]
            between = slice(low + 1, high + 1)
            likelihood[between] = _log_likelihood(before, spread) + _log_likelihood(after, spread)
        likelihood[~places] = -np.inf
        if not np.isfinite(likelihood).any():
            return np.zeros(self.builds)
        weights = np.exp(likelihood - likelihood.max())
        return np.asarray(weights / weights.sum(), np.float64)

    def next_build(self, at_hand: Collection[int] = ()) -> int | None:
        """The build to run next; None where the search has ended: see `found`.

        at_hand: builds that were made already, which are taken where they tell nearly as much as the best.
        """
        ends = (0, self.builds - 1)
        fewest = min(ends, key=lambda build: len(self.logs.get(build, ())))
        runs_of_fewest = len(self.logs.get(fewest, ()))
        if not self.ends_differ:
            return fewest if runs_of_fewest < MOST_END_RUNS else None
        places = self.probabilities
        if (best := int(np.argmax(places))) and places[best] >= SURE:
            return self._unproven_beside(best)
        # The chance that each build has the step: a run of it tells most where that is a half.
        chances = np.minimum(1.0, np.cumsum(places))
        tells = np.minimum(chances, 1 - chances)
        tells[[0, -1, *self.unusable]] = 0
        most = int(np.argmax(tells))
        if tells[most] <= 0:
            return None
        # Of a side with few runs the level is not known, and more runs of a build beside it tell little.
        before, after = (
            sum(len(self.logs.get(build, ())) for build in of)
            for of in (range(best), range(best, self.builds))
        )
        if len(self.logs.get(most, ())) > 2 * min(before, after):
            return 0 if before < after else self.builds - 1
        near = [build for build in at_hand if tells[build] >= _NEARLY * tells[most]]
        return max(near, key=lambda build: tells[build], default=most)

    def step_at(self, place: int) -> float:
        """By how much builds from this one on take longer than those before, as a log-ratio."""
        levels = [_level(self._logs(of), self.spread) for of in (range(place), range(place, self.builds))]
        return levels[1] - levels[0]

    @property
    def found(self) -> int | None:
        """The first build with the step; None where the runs do not tell."""
        if not self.ends_differ:
            return None
        places = self.probabilities
        best = int(np.argmax(places))
        if places[best] < SURE or self._unproven_beside(best) is not None:
            return None
        return best if self._differs_beside(best) else None

    def _before(self, build: int) -> int:
        """The last build before this one that can be run and has other machine code."""
        code = build
        while code in self.excluded:
            code -= 1
        return max(place for place in range(code) if place not in self.unusable)

    def _unproven_beside(self, place: int) -> int | None:
        """Of the two builds beside a step the one to run again; None where both were run often enough."""
        beside = self._before(place), place
        fewest = min(beside, key=lambda build: len(self.logs.get(build, ())))
        runs = len(self.logs.get(fewest, ()))
        if runs < BESIDE_RUNS:
            return fewest
        return fewest if not self._differs_beside(place) and runs < MOST_BESIDE_RUNS else None

    def _differs_beside(self, place: int) -> bool:
        """Whether the builds beside a step lie apart by most of it."""
        other = self._before(place)
        step = self._level(place) - self._level(other)
        return step / self.step_at(place) > _BESIDE_SHARE and abs(step) > _BESIDE_Z * self._error(
            other, place
        )

    def _error(self, a: int, b: int) -> float:
        """The standard error of the difference of two builds."""
        return self.spread * float(np.sqrt(1 / len(self.logs[a]) + 1 / len(self.logs[b])))

    def _logs(self, builds: range) -> Floats:
        return np.array([log for build in builds for log in self.logs.get(build, ())])

    def _level(self, build: int) -> float:
        return _level(self._logs(range(build, build + 1)), self.spread)


def _level(logs: Floats, spread: float) -> float:
    """Where runs lie, without those far off; NaN for none."""
    if not len(logs):
        return float("nan")
    level = float(np.median(logs))
    for _ in range(_ROUNDS):
        near = _shares(logs - level, spread)[0]
        level = float(np.sum(near * logs) / np.sum(near))
    return level


def _log_likelihood(logs: Floats, spread: float) -> float:
    """Of runs about their own level."""
    return float(np.sum(_shares(logs - _level(logs, spread), spread)[1]))


def _shares(residuals: Floats, spread: float) -> tuple[Floats, Floats]:
    """The chance of each run to be no outlier, and the logarithm of its likelihood."""
    z = residuals / spread
    near = (1 - _OUTLIERS) * np.exp(-0.5 * z**2)
    far = _OUTLIERS / _OUTLIER_SPREAD * np.exp(-0.5 * (z / _OUTLIER_SPREAD) ** 2)
    total = near + far + 1e-300
    return near / total, np.log(total)
