"""Which regressions somebody let pass: of what, why, and until when."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from profiler.bundles import DecisionRecord, Root, decisions
from profiler.bundles.decisions import ACKNOWLEDGE, WITHDRAW
from profiler.errors import BadBundle, ProfilerError, UnknownName
from profiler.evidence import brief_list, nearest_first
from profiler.statistics import change_text, share_text

if TYPE_CHECKING:
    from profiler.evidence import MetricTable
    from profiler.store import Store

LATENCY = "latency"  # judged too, and no concept of metrics.txt
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Acknowledgement:
    """A regression that is let pass. No workload, GPU or concept: whichever it is."""

    id: str  # of the decision record
    family: str
    version: str
    workload: str | None
    gpu: str | None
    concept: str | None
    why: str
    who: str
    created: datetime
    until_day: date | None = None  # the last day, UTC
    until_run: str | None = None  # the last run whose results it lets pass
    until_made: datetime | None = None  # when that run was made
    up_to: float | None = None  # the largest change that it lets pass, as a share; None: any

    @property
    def until(self) -> str:
        """Its end in words."""
        limit = f", up to {share_text(self.up_to)}" if self.up_to is not None else ""
        return self._end + limit

    @property
    def _end(self) -> str:
        if self.until_day is not None:
            return f"until {self.until_day:%Y-%m-%d}"
        return f"until run {self.until_run}" if self.until_run else "without an end"

    @property
    def words(self) -> str:
        """Who, until when and why."""
        return f"{self.who or 'somebody'}, {self.until}: {self.why}"

    @property
    def place(self) -> str:
        """What it is about."""
        about = (f"{self.family}/{self.version}", self.concept or "everything", self.workload, self.gpu)
        return " · ".join(filter(None, about))

    def ended(
        self, now: datetime, made: datetime | None = None, effect: float | None = None
    ) -> LapsedAcknowledgement | None:
        """Why it does not count for such results now; None where it does.

        What nobody knows is None: where it has a limit, an unknown size is over it.
        """
        brief, told = [], []
        if self.until_day is not None and now.astimezone(UTC).date() > self.until_day:
            brief.append(f"ended {self.until_day:%Y-%m-%d}")
            told.append(f"its last day, {self.until_day:%Y-%m-%d}, is over")
        if self.until_made is not None and (made is None or made > self.until_made):
            when = "of unknown age" if made is None else f"newer, of {made.astimezone(UTC):%Y-%m-%d %H:%M}"
            brief.append("ended by a newer run")
            told.append(f"it was for results up to run {self.until_run}, and these are {when}")
        if self.up_to is not None and (effect is None or abs(effect) > self.up_to):
            size = (
                "nobody knows how large this one is"
                if effect is None
                else f"this one is {change_text(effect)}"
            )
            brief.append(f"ended: over {share_text(self.up_to)}")
            told.append(f"it was for changes up to {share_text(self.up_to)}, and {size}")
        return LapsedAcknowledgement(self, "; ".join(told), brief[0]) if told else None

    def covers(self, family: str, version: str, workload: str, gpu: str, concept: str) -> bool:
        """Whether it is about this."""
        return (self.family, self.version) == (family, version) and all(
            said in (None, asked)
            for said, asked in ((self.workload, workload), (self.gpu, gpu), (self.concept, concept))
        )


@dataclass(frozen=True)
class LapsedAcknowledgement:
    """An acknowledgement that does not let a regression pass any more."""

    of: Acknowledgement
    why: str  # it ended
    brief: str  # the same where there is little room

    @property
    def words(self) -> str:
        """When and why it ended, and what it was."""
        return f"not any more: {self.why} ({self.of.words})"


def list_acknowledgements(records: Iterable[DecisionRecord]) -> list[Acknowledgement]:
    """Those that nobody withdrew, oldest first; also those that have ended."""
    found: dict[str, Acknowledgement] = {}
    for one in records:
        if one.kind == ACKNOWLEDGE:
            found[one.id] = _of(one)
        elif one.kind == WITHDRAW:
            found.pop(one.subject, None)
    return list(found.values())


def find_acknowledgement(
    found: Iterable[Acknowledgement],
    *,
    family: str,
    version: str,
    workload: str = "",
    gpu: str = "",
    concept: str = "",
    made: datetime | None = None,
    effect: float | None = None,
    now: datetime | None = None,
) -> Acknowledgement | LapsedAcknowledgement | None:
    """The newest that lets this regression pass now, else the newest that did, with its end.

    `made`: when the results were, "" what nobody named. `effect` is how far it moved, as a share.
    """
    moment = now or datetime.now(UTC)
    fits = [one for one in found if one.covers(family, version, workload, gpu, concept)]
    told = [(one, one.ended(moment, made, effect)) for one in sorted(fits, key=lambda one: one.created)]
    holding = [one for one, end in told if end is None]
    return holding[-1] if holding else next((end for _, end in reversed(told)), None)


def acknowledge(
    root: Root,
    store: Store,
    table: MetricTable,
    family: str,
    version: str,
    *,
    why: str,
    workload: str | None = None,
    gpu: str | None = None,
    concept: str | None = None,
    until: str | None = None,
    up_to: float | None = None,
    who: str | None = None,
    now: datetime | None = None,
) -> Acknowledgement:
    """Let a regression pass; `until` is a day (2026-12-31) or a run id, `up_to` a share of the baseline.

    Raises ProfilerError. A day that is over and a workload, GPU or concept that nothing has are refused: a
    typing error would let nothing pass, silently.
    """
    if not why.strip():
        raise ProfilerError("a regression is acknowledged for a reason: --why TEXT")
    cells = [cell for cell in store.cells(family) if cell.version == version]
    concepts = {LATENCY, *table.by_concept}
    for kind, name, there in (
        ("workload", workload, {cell.workload for cell in cells}),
        ("GPU", gpu, {cell.gpu for cell in cells}),
        ("concept", concept, concepts),
    ):
        if name is not None and name not in there:
            near = brief_list(nearest_first(name, sorted(there - {""}))) or "none"
            raise UnknownName(f"{family}/{version} has no {kind} {name!r}; there are {near}")
    values = {"family": family, "version": version, "workload": workload, "gpu": gpu, "concept": concept}
    limit = {} if up_to is None else {"up_to": repr(up_to)}
    return _of(
        decisions.write_decision(
            root,
            ACKNOWLEDGE,
            f"{family}/{version}",
            {**values, **_end(store, until, now or datetime.now(UTC)), **limit},
            why=why.strip(),
            who=who,
        )
    )


def withdraw(root: Root, name: str, *, why: str = "", who: str | None = None) -> Acknowledgement:
    """Undo an acknowledgement by its id, or by the start of it. UnknownName where it is none, or several."""
    there = list_acknowledgements(decisions.load_decisions(root))
    found = [one for one in there if one.id.startswith(name)] if name else []
    if len(found) != 1:
        what = "several acknowledgements are" if found else "no acknowledgement is"
        ids = brief_list([one.id for one in found or there]) or "none"
        raise UnknownName(f"{what} called {name}; there are {ids}")
    decisions.write_decision(root, WITHDRAW, found[0].id, {}, why=why, who=who)
    return found[0]


def _end(store: Store, until: str | None, now: datetime) -> dict[str, str]:
    if until is None:
        return {}
    if _DAY.fullmatch(until):
        try:
            day = date.fromisoformat(until)
        except ValueError:
            raise ProfilerError(f"--until {until} is no day of the calendar") from None
        if day < (today := now.astimezone(UTC).date()):
            raise ProfilerError(f"--until {until} is over and would let nothing pass: today is {today} (UTC)")
        return {"until_day": day.isoformat()}
    run = store.run(until)
    if run is None:
        raise UnknownName(
            f"--until {until} is neither a day (2026-12-31) nor a run: `profiler runs` lists them"
        )
    return {"until_run": run.run_id, "until_made": run.created.isoformat()}


def _of(one: DecisionRecord) -> Acknowledgement:
    try:
        return _parsed(one)
    except ValueError as error:
        raise BadBundle(f"the decision {one.id} has no end that can be read: {error}") from error


def _parsed(one: DecisionRecord) -> Acknowledgement:
    given = {key: content for key, content in one.values.items() if isinstance(content, str)}
    family, _, version = one.subject.partition("/")
    day, made = given.get("until_day"), given.get("until_made")
    return Acknowledgement(
        id=one.id,
        family=given.get("family", family),
        version=given.get("version", version),
        workload=given.get("workload"),
        gpu=given.get("gpu"),
        concept=given.get("concept"),
        why=one.why,
        who=one.who,
        created=one.created,
        until_day=date.fromisoformat(day) if day else None,
        until_run=given.get("until_run"),
        until_made=datetime.fromisoformat(made) if made else None,
        up_to=_share(given["up_to"]) if "up_to" in given else None,
    )


def _share(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(f"up_to is {text}")
    return number
