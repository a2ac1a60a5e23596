"""How long each process of a collection may take: a hang costs its job, and never the time budget."""

from __future__ import annotations

import time

BUILD_LIMIT_S = 600.0
LIMIT_S = {"check": 180.0, "time": 300.0, "lean": 400.0, "full": 400.0, "sanitize": 300.0}
# Of a budget that one process may take at most, never less than LEAST_S.
SHARE = {"check": 0.15, "time": 0.3, "sanitize": 0.25, "build": 0.2}
LEAST_S = 60.0
SAMPLING_SHARE = 0.6  # of a process's time limit: whole rounds then outlive a slow group
START_S = 12.0  # before a process samples or launches: torch, arrays, warm-up
GRACE_S = 10.0  # that a process may take beyond a time budget before it is ended


class TimeLimits:
    """The time budget of one session, and what is left of it."""

    def __init__(self) -> None:
        self._budget_s: float | None = None  # None: there is no limit
        self._until: float | None = None  # monotonic

    def start(self, budget_s: float | None, spent_s: float = 0.0) -> None:
        """The budget begins now; spent_s of it are already gone."""
        self._budget_s = budget_s
        self._until = None if budget_s is None else time.monotonic() - spent_s + budget_s

    @property
    def used_up(self) -> bool:
        """Whether nothing more may begin."""
        return self._until is not None and time.monotonic() > self._until

    @property
    def used_up_reason(self) -> str:
        """Why a job was left out for want of time."""
        return f"the time budget of {self._budget_s or 0:g} s was used up"

    def of_process(self, stage: str) -> float:
        """Seconds after which a process of the stage is ended from outside."""
        limit = self._hang_limit(stage, LIMIT_S[stage])
        return limit if self._until is None else min(limit, self._left_s() + GRACE_S)

    def of_work_within(self, stage: str) -> float:
        """Seconds in which a process of the stage should end its work by itself, with what it has by then.

        One that is ended from outside brings nothing.
        """
        limit = self._hang_limit(stage, LIMIT_S[stage])
        return max(5.0, min(SAMPLING_SHARE * limit, self._left_s() - START_S))

    def of_build(self) -> float:
        """Seconds that a compiler may take for one version."""
        return self._hang_limit("build", BUILD_LIMIT_S)

    def _hang_limit(self, what: str, most: float) -> float:
        """What a hang may cost."""
        if self._budget_s is None or what not in SHARE:
            return most
        return min(most, max(LEAST_S, SHARE[what] * self._budget_s))

    def _left_s(self) -> float:
        return float("inf") if self._until is None else max(0.0, self._until - time.monotonic())
