"""Time limits of the processes of a collection: a hang costs its job, never the whole time budget."""

from __future__ import annotations

import time

BUILD_LIMIT_S = 600.0
LIMIT_S = {"check": 180.0, "time": 300.0, "lean": 400.0, "full": 400.0, "sanitize": 300.0}
# The share of a budget that one process may take, but at least LEAST_S.
SHARE = {"check": 0.15, "time": 0.3, "sanitize": 0.25, "build": 0.2}
LEAST_S = 60.0
SAMPLING_SHARE = 0.6  # of a process's time limit: a slow group then still returns whole rounds
START_S = 12.0  # before a process samples or launches: torch, arrays, warm-up
GRACE_S = 10.0  # that a process may take beyond a time budget before it is ended


class TimeLimits:
    """The time budget of one session, and what is left of it."""

    def __init__(self) -> None:
        self._budget_s: float | None = None  # None: there is no limit
        self._until: float | None = None  # monotonic

    def start(self, budget_s: float | None, spent_s: float = 0.0) -> None:
        """Start the budget, of which spent_s are already used."""
        self._budget_s = budget_s
        self._until = None if budget_s is None else time.monotonic() - spent_s + budget_s

    @property
    def used_up(self) -> bool:
        """Whether the budget is used up: nothing more may begin."""
        return self._until is not None and time.monotonic() > self._until

    @property
    def used_up_reason(self) -> str:
        """The reason of a job that was left out for lack of time."""
        return f"the time budget of {self._budget_s or 0:g} s was used up"

    def of_process(self, stage: str) -> float:
        """Seconds after which a process of the stage is ended from outside."""
        limit = self._hang_limit(stage, LIMIT_S[stage])
        return limit if self._until is None else min(limit, self._left_s() + GRACE_S)

    def of_work_within(self, stage: str) -> float:
        """Seconds after which a process of the stage should stop by itself and return what it has.

        One that is ended from outside brings nothing.
        """
        limit = self._hang_limit(stage, LIMIT_S[stage])
        return max(5.0, min(SAMPLING_SHARE * limit, self._left_s() - START_S))

    def of_build(self) -> float:
        """Seconds that a compiler may take for one version."""
        return self._hang_limit("build", BUILD_LIMIT_S)

    def _hang_limit(self, what: str, most: float) -> float:
        """Seconds that a hang may cost."""
        if self._budget_s is None or what not in SHARE:
            return most
        return min(most, max(LEAST_S, SHARE[what] * self._budget_s))

    def _left_s(self) -> float:
        return float("inf") if self._until is None else max(0.0, self._until - time.monotonic())
