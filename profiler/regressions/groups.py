"""What counts as worse now, for everybody who says how much it is: one group a version and cause.

The page Overview, the page Regressions, `profiler regressions` and `profiler gate` all count these groups.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import quote, urlencode

from profiler.compare.clock_drift import HEADLINE
from profiler.evidence.values import Evidence
from profiler.history.trend import LATENCY
from profiler.regressions.cause import CauseFinder
from profiler.regressions.regression import CORRECTNESS, Regression, VersionRun
from profiler.regressions.report import RegressionReport
from profiler.regressions.shared_regressions import SharedRegression, find_shared_regressions
from profiler.statistics.decision import change_text

_FIRST = (CORRECTNESS, LATENCY, HEADLINE)  # concepts by which a group is named, before all others
_NAMED = 3  # other metrics that a line names


class _Bucket(NamedTuple):
    """What regressions must have in common to have one cause."""

    family: str
    version: str
    became_wrong: bool
    held_against: str
    acknowledgement: str  # who let it pass, until when and why; "" for nobody


@dataclass(frozen=True)
class RegressionGroup:
    """Regressions of one version that began with one run and have one cause, the largest first.

    Those of several versions where the environment moved them together.
    """

    regressions: tuple[Regression, ...]  # never empty
    due_to: str  # code, compiler, environment, code or environment, unknown; "" where nobody asked
    shared: SharedRegression | None = None  # the alarm that several versions share

    @property
    def lead(self) -> Regression:
        """The regression that names the group: of latency where there is one, with the largest effect."""
        return self.leading[0]

    @cached_property
    def leading(self) -> tuple[Regression, ...]:
        """The regressions of the metric by which the group is named, the largest effect first."""
        first = min(self.regressions, key=_importance)
        alike = (one for one in self.regressions if one.series.concept == first.series.concept)
        return tuple(sorted(alike, key=lambda one: -one.size))

    @property
    def family(self) -> str:
        """The family of all of them."""
        return self.lead.series.family

    @property
    def versions(self) -> tuple[str, ...]:
        """The versions: one, unless the environment moved several."""
        return tuple(dict.fromkeys(one.series.version for one in self.regressions))

    @property
    def since(self) -> VersionRun:
        """The first run in which it may have begun."""
        return self.shared.run if self.shared else min(self.lead.possible, key=lambda run: run.created)

    @property
    def key(self) -> str:
        """Its name in an address, as long as its regressions stay the same."""
        series = sorted(repr(tuple(map(str, one.series))) for one in self.regressions)
        return sha256("\n".join(series).encode()).hexdigest()[:10]

    @property
    def cells(self) -> int:
        """The number of workloads and GPUs on which the metric that names the group shows it."""
        return len({(one.series.version, one.series.workload, one.series.gpu) for one in self.leading})

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The kinds of evidence that show it, that of the metric by which the group is named first."""
        return tuple(dict.fromkeys(one.series.evidence for one in (*self.leading, *self.regressions)))

    @property
    def metrics(self) -> tuple[str, ...]:
        """The labels of the metrics that are worse, that by which the group is named first."""
        labels = (one.label for one in (*self.leading, *self.regressions))
        return tuple(dict.fromkeys(labels))

    @property
    def subject(self) -> str:
        """What got worse: `flash/v2`, or of several versions the family and how many they are."""
        count = len(self.versions)
        return self.lead.subject if count == 1 else f"{count} versions of {self.family}"

    @property
    def size_words(self) -> str:
        """How much: `+4.2 to +6.1 %`; "" where results became wrong."""
        if self.lead.became_wrong:
            return ""
        effects = [one.effect for one in self.leading if one.effect is not None]
        changes = list(dict.fromkeys(one.change for one in self.leading))
        if len(changes) == 1:
            return changes[0]
        if len(effects) < len(self.leading) or min(effects) < 0 < max(effects):
            return f"{changes[-1]} to {changes[0]}"
        low, high = sorted(effects, key=abs)[:: len(effects) - 1]
        return f"{change_text(low).removesuffix(' %')} to {change_text(high).removeprefix('+')}"

    @property
    def where_words(self) -> str:
        """On how many cells it shows, or in how many kernels of one: `on 9 cells`."""
        kernels = {one.kernel for one in self.leading}
        if self.cells > 1:
            return f"on {self.cells} cells"
        if len(kernels) > 1:
            return f"in {len(kernels)} kernels"
        place = ", ".join(filter(None, (self.lead.series.workload, self.lead.series.gpu)))
        return f"on {place}" if place else ""

    @property
    def words(self) -> str:
        """One line: `flash/v2 latency +4.2 to 6.1 % on 9 cells since 2026-11-13, due to code`."""
        lead = self.lead
        what = "wrong" if lead.became_wrong else " ".join((self.metrics[0], self.size_words))
        against = f" than {lead.held_against}" if lead.held_against else ""
        since = "" if lead.slower_than_parent else f"since {self.since.created:%Y-%m-%d}"
        line = " ".join(filter(None, (self.subject, f"{what}{against}", self.where_words, since)))
        parts = [line, f"due to {self.due_to}" if self.due_to else ""]
        if others := self.metrics[1:]:
            more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
            parts.append(f"with it {', '.join(others[:_NAMED])}{more}")
        return "; ".join(filter(None, parts))


@dataclass(frozen=True)
class WorseNow:
    """What is worse now, in groups; what nobody has to look at stands apart and is not counted."""

    groups: tuple[RegressionGroup, ...]  # worse: than before, or than what somebody pinned
    acknowledged: tuple[RegressionGroup, ...] = ()
    slower_than_parent: tuple[RegressionGroup, ...] = ()  # an idea that did not help is no regression
    not_open: tuple[RegressionGroup, ...] = ()  # known states, drifts, one build that the environment moved
    family: str | None = None  # None: of all families

    @property
    def count(self) -> int:
        """How much is worse: one a version and cause."""
        return len(self.groups)

    @property
    def rows(self) -> tuple[Regression, ...]:
        """The regressions behind the count, group by group."""
        return tuple(one for group in self.groups for one in group.regressions)

    @property
    def address(self) -> str:
        """The page that lists them, within the dashboard."""
        if self.family is None:
            return "regressions"
        return f"regressions?{urlencode({'family': self.family}, quote_via=quote, safe='')}"

    @property
    def words(self) -> str:
        """The count in words: `worse now: 3 on 19 rows`."""
        rows = len(self.rows)
        return f"worse now: {self.count}" + (f" on {rows} row{'s' * (rows > 1)}" if self.count else "")

    def of_family(self, family: str | None) -> WorseNow:
        """What is worse of one family; None: of all."""
        if family is None:
            return self

        def of(groups: Iterable[RegressionGroup]) -> tuple[RegressionGroup, ...]:
            return tuple(group for group in groups if group.family == family)

        return WorseNow(
            of(self.groups), of(self.acknowledged), of(self.slower_than_parent), of(self.not_open), family
        )


def group_regressions(
    report: RegressionReport, causes: CauseFinder, shared: Sequence[SharedRegression] | None = None
) -> WorseNow:
    """What counts as worse now, grouped by version and cause, the most important group first.

    `shared` are the alarms of `find_shared_regressions` where a caller has them already.
    """
    shared = find_shared_regressions(report, causes) if shared is None else shared
    in_alarm = {id(one) for alarm in shared for one in alarm.regressions}
    alarms = [group for alarm in shared for group in _groups_of_alarm(alarm)]
    alone = [one for one in report.regressions if id(one) not in in_alarm]
    acknowledged = [one for one in alone if one.acknowledged is not None]
    others = [one for one in alone if one.acknowledged is None]
    slower = [one for one in others if one.slower_than_parent]
    not_open = [one for one in others if not one.is_open and not one.slower_than_parent]
    return WorseNow(
        _sorted([*alarms, *_grouped([one for one in others if one.is_open], causes.due_to)]),
        _sorted(_grouped(acknowledged, causes.due_to)),
        _sorted(_grouped(slower, lambda _: "")),
        _sorted(_grouped(not_open, _why_not_open)),
    )


def _groups_of_alarm(alarm: SharedRegression) -> list[RegressionGroup]:
    """The alarm as a group of each family: a count of one family is that of its own page."""
    by_family: dict[str, list[Regression]] = defaultdict(list)
    for one in alarm.regressions:
        by_family[one.series.family].append(one)
    return [
        RegressionGroup(tuple(members), "environment", replace(alarm, regressions=tuple(members)))
        for members in by_family.values()
    ]


def _grouped(regressions: Iterable[Regression], due_to: Callable[[Regression], str]) -> list[RegressionGroup]:
    buckets: dict[tuple[_Bucket, str], list[Regression]] = defaultdict(list)
    for one in regressions:
        family, version, *_ = one.series
        bucket = _Bucket(
            family,
            version,
            one.became_wrong,
            one.held_against,
            one.acknowledged.words if one.acknowledged else "",
        )
        buckets[bucket, due_to(one)].append(one)
    return [
        RegressionGroup(tuple(members), cause)
        for (bucket, cause), of_bucket in buckets.items()
        for members in ([of_bucket] if bucket.held_against else _by_start(of_bucket))
    ]


def _by_start(regressions: Sequence[Regression]) -> list[list[Regression]]:
    """The regressions by the time at which most of them can have begun.

    Cells may be measured by runs of their own, one after the other: what can have begun with one change lies
    between the last run that was as before and the first that surely is not.
    """
    left, groups = [(one, *_span(one)) for one in regressions], []
    while left:
        counts = Counter(end for *_, end in left for _, first, last in left if _lies_in(end, first, last))
        start = max(counts, key=lambda end: (counts[end], end))
        groups.append([one for one, *span in left if _lies_in(start, *span)])
        left = [entry for entry in left if not _lies_in(start, *entry[1:])]
    return groups


def _lies_in(moment: datetime, first: datetime, last: datetime) -> bool:
    """Whether a moment lies after the first and not after the last, which may be equal."""
    return first < moment < last or moment == last


def _span(regression: Regression) -> tuple[datetime, datetime]:
    """The times after and until which it can have begun; noise may move the place of a step by one run."""
    runs = (*regression.possible, *regression.beside)
    return regression.before.created, max(run.created for run in runs)


def _why_not_open(regression: Regression) -> str:
    return "environment" if regression.environment_moved else regression.level.value


def _importance(regression: Regression) -> tuple[object, ...]:
    concept = regression.series.concept
    rank = _FIRST.index(concept) if concept in _FIRST else len(_FIRST)
    return rank, -regression.size, regression.series


def _sorted(groups: Iterable[RegressionGroup]) -> tuple[RegressionGroup, ...]:
    """Wrong results first, then latencies and durations, then the rest; large effects first."""
    return tuple(sorted(groups, key=lambda group: _importance(group.lead)))
