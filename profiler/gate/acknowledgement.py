"""Acknowledgements: regressions that somebody lets pass, with reason, limit and end."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING

from profiler.bundles import decisions
from profiler.bundles.decisions import ACKNOWLEDGE, WITHDRAW, DecisionRecord
from profiler.bundles.location import Root
from profiler.errors import BadBundle, ProfilerError, UnknownName
from profiler.evidence.naming import brief_list, nearest_first
from profiler.statistics.decision import change_text, share_text

if TYPE_CHECKING:
    from profiler.evidence.metric_table import MetricTable
    from profiler.store.index import Store

LATENCY = "latency"  # a concept that is judged, too, though metrics.txt does not declare it
_MAX_LIMIT = 1000  # a share: larger ones are typing errors
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True)
class Acknowledgement:
    """A regression that somebody let pass.

    It holds for one version; a workload, GPU or concept that is None means every one.
    """

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
        """Its end and its limit in words."""
        limit = f", up to {share_text(self.up_to)}" if self.up_to is not None else ""
        return self._end + limit

    @property
    def _end(self) -> str:
        if self.until_day is not None:
            return f"until {self.until_day:%Y-%m-%d}"
        return f"until run {self.until_run}" if self.until_run else "without an end"

    @property
    def words(self) -> str:
        """Who acknowledged it, until when, and why."""
        return f"{self.who or 'somebody'}, {self.until}: {self.why}"

    @property
    def scope(self) -> str:
        """The workload, GPU and concept that it is about, in words."""
        parts = (f"{self.family}/{self.version}", self.concept or "everything", self.workload, self.gpu)
        return " · ".join(filter(None, parts))

    def is_over(self, now: datetime) -> bool:
        """Whether its last day is over. One that ends with a run depends on the results it is asked about."""
        return self.until_day is not None and now.astimezone(UTC).date() > self.until_day

    def lapse(
        self, now: datetime, created: datetime | None = None, effect: float | None = None
    ) -> LapsedAcknowledgement | None:
        """Why it does not count now for results of this time and change; None where it counts.

        None means unknown in both arguments: an unknown size exceeds every limit.
        """
        # Several ends may apply: the short form names the first, the long one all of them.
        brief, reasons = [], []
        if self.until_day is not None and self.is_over(now):
            brief.append(f"ended {self.until_day:%Y-%m-%d}")
            reasons.append(f"its last day, {self.until_day:%Y-%m-%d}, is over")
        if self.until_made is not None and (created is None or created > self.until_made):
            age = "of unknown age"
            if created is not None:
                age = f"newer, of {created.astimezone(UTC):%Y-%m-%d %H:%M}"
            brief.append("ended by a newer run")
            reasons.append(f"it was for results up to run {self.until_run}, and these are {age}")
        if self.up_to is not None and (effect is None or abs(effect) > self.up_to):
            size = "the size of this one is unknown"
            if effect is not None:
                size = f"this one is {change_text(effect)}"
            brief.append(f"ended: over {share_text(self.up_to)}")
            reasons.append(f"it allows changes up to {share_text(self.up_to)}, and {size}")
        return LapsedAcknowledgement(self, "; ".join(reasons), brief[0]) if reasons else None

    def covers(self, family: str, version: str, workload: str, gpu: str, concept: str) -> bool:
        """Whether it is about these results; "" means that nobody named a workload or GPU."""
        return (
            (self.family, self.version) == (family, version)
            and self.workload in (None, workload)
            and self.gpu in (None, gpu)
            and self.concept in (None, concept)
        )


@dataclass(frozen=True)
class LapsedAcknowledgement:
    """An acknowledgement that no longer lets a regression pass."""

    acknowledgement: Acknowledgement
    why: str  # it ended
    brief: str  # the same for narrow places

    @property
    def words(self) -> str:
        """When and why it ended, and what it said."""
        return f"not covered: {self.why} ({self.acknowledgement.words})"


def list_acknowledgements(records: Iterable[DecisionRecord]) -> list[Acknowledgement]:
    """The acknowledgements that nobody withdrew, oldest first, including those that have ended."""
    acknowledgements: dict[str, Acknowledgement] = {}
    for record in records:
        if record.kind == ACKNOWLEDGE:
            acknowledgements[record.id] = _from_record(record)
        elif record.kind == WITHDRAW:
            acknowledgements.pop(record.subject, None)
    return list(acknowledgements.values())


def find_acknowledgement(
    acknowledgements: Iterable[Acknowledgement],
    *,
    family: str,
    version: str,
    workload: str = "",
    gpu: str = "",
    concept: str = "",
    created: datetime | None = None,
    effect: float | None = None,
    now: datetime | None = None,
) -> Acknowledgement | LapsedAcknowledgement | None:
    """The newest acknowledgement that lets a regression pass now, else the newest that once did, as lapsed.

    `acknowledgements` are in the order of list_acknowledgements, the newest last.
    `created` is when the run of the results was made; `effect` is the size of the change, as a share, None if
    unknown. "" means that nobody named a workload or GPU. None where there is neither.
    """
    moment = now or datetime.now(UTC)
    about_this = [
        acknowledgement
        for acknowledgement in acknowledgements
        if acknowledgement.covers(family, version, workload, gpu, concept)
    ]
    # An older one still counts where a newer one has ended.
    newest_lapse = None
    for acknowledgement in reversed(about_this):
        lapse = acknowledgement.lapse(moment, created, effect)
        if lapse is None:
            return acknowledgement
        newest_lapse = newest_lapse or lapse
    return newest_lapse


def parse_limit(text: str) -> float:
    """A share from a text such as 8 %, 8% or 8. Raises ProfilerError for what is no percentage above 0."""
    try:
        number = float(text.strip().removesuffix("%")) / 100
    except ValueError:
        number = 0.0
    if not 0 < number < _MAX_LIMIT:
        raise ProfilerError(f"{text} is no percentage above 0, such as 8%")
    return number


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
    """Let a regression pass, until a day (2026-12-31) or a run id, up to a share of the baseline.

    Raises ProfilerError for an end that is over, and for a workload, GPU or concept that no result has: after
    a typing error the acknowledgement would silently match nothing.
    """
    if not why.strip():
        raise ProfilerError("a regression is acknowledged for a reason: --why TEXT")
    cells = [cell for cell in store.cells(family) if cell.version == version]
    for kind, name, names_present in (
        ("workload", workload, {cell.workload for cell in cells}),
        ("GPU", gpu, {cell.gpu for cell in cells}),
        ("concept", concept, {LATENCY, *table.by_concept}),
    ):
        if name is not None and name not in names_present:
            near = brief_list(nearest_first(name, sorted(names_present - {""}))) or "none"
            raise UnknownName(f"{family}/{version} has no {kind} {name!r}; there are {near}")
    scope = {"family": family, "version": version, "workload": workload, "gpu": gpu, "concept": concept}
    limit = {} if up_to is None else {"up_to": repr(up_to)}  # records hold texts; repr keeps every digit
    record = decisions.write_decision(
        root,
        ACKNOWLEDGE,
        f"{family}/{version}",
        {**scope, **_end_values(store, until, now or datetime.now(UTC)), **limit},
        why=why.strip(),
        who=who,
    )
    return _from_record(record)


def others_of(root: Root, own: Acknowledgement) -> list[Acknowledgement]:
    """The other acknowledgements of the very same results that still count, oldest first.

    Two people may decide at once: whoever is second learns of the first, whose reason and end hold too.
    """
    now = datetime.now(UTC)
    place = (own.family, own.version, own.workload, own.gpu, own.concept)
    return [
        other
        for other in list_acknowledgements(decisions.load_decisions(root))
        if other.id != own.id
        and (other.family, other.version, other.workload, other.gpu, other.concept) == place
        and not other.is_over(now)
    ]


def withdraw(root: Root, name: str, *, why: str = "", who: str | None = None) -> Acknowledgement:
    """Undo an acknowledgement by its id or the start of it. UnknownName where none or several match."""
    acknowledgements = list_acknowledgements(decisions.load_decisions(root))
    matches = (
        [acknowledgement for acknowledgement in acknowledgements if acknowledgement.id.startswith(name)]
        if name
        else []
    )
    if len(matches) != 1:
        what = "several acknowledgements are" if matches else "no acknowledgement is"
        ids = brief_list([acknowledgement.id for acknowledgement in matches or acknowledgements]) or "none"
        raise UnknownName(f"{what} called {name}; there are {ids}")
    decisions.write_decision(root, WITHDRAW, matches[0].id, {}, why=why, who=who)
    return matches[0]


def _end_values(store: Store, until: str | None, now: datetime) -> dict[str, str]:
    """The end as a record stores it: a day, or a run and its time, as the run may be gone one day."""
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
            f"--until {until} is neither a day (2026-12-31) nor a run: `profiler list runs` lists them"
        )
    return {"until_run": run.run_id, "until_made": run.created.isoformat()}


def _from_record(record: DecisionRecord) -> Acknowledgement:
    try:
        return _parse(record)
    except ValueError as error:
        raise BadBundle(f"the decision {record.id} has no end that can be read: {error}") from error


def _parse(record: DecisionRecord) -> Acknowledgement:
    texts = {key: content for key, content in record.values.items() if isinstance(content, str)}
    family, _, version = record.subject.partition("/")  # in records without the two as values
    day, until_made = texts.get("until_day"), texts.get("until_made")
    return Acknowledgement(
        id=record.id,
        family=texts.get("family", family),
        version=texts.get("version", version),
        workload=texts.get("workload"),
        gpu=texts.get("gpu"),
        concept=texts.get("concept"),
        why=record.why,
        who=record.who,
        created=record.created,
        until_day=date.fromisoformat(day) if day else None,
        until_run=texts.get("until_run"),
        until_made=datetime.fromisoformat(until_made) if until_made else None,
        up_to=_recorded_limit(texts["up_to"]) if "up_to" in texts else None,
    )


def _recorded_limit(text: str) -> float:
    number = float(text)
    if not 0 < number < math.inf:
        raise ValueError(f"up_to is {text}")
    return number
