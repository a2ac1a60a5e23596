"""What is worse now, since when, how sure and why, as a document."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from profiler.bundles import location
from profiler.compare.kernel_pairs import Pairing
from profiler.compare.noise_model import NoiseModel
from profiler.documents.blocks import Block, Heading, Line, Name, Notes, Table
from profiler.documents.document import Document
from profiler.errors import UnknownName
from profiler.evidence import formatting
from profiler.evidence.metric_table import MetricTable, load_metrics
from profiler.evidence.naming import brief_list, nearest_first
from profiler.evidence.values import Evidence
from profiler.gate.acknowledgement import Acknowledgement
from profiler.history.trend import LATENCY
from profiler.regressions.cause import CauseFinder
from profiler.regressions.groups import RegressionGroup, WorseNow, group_regressions
from profiler.regressions.regression import Regression, RegressionKind, VersionRun
from profiler.regressions.report import RegressionReport
from profiler.regressions.search import Coverage
from profiler.regressions.shared_regressions import SharedRegression, find_shared_regressions, shared_run
from profiler.regressions.stored_search import KnownCauses, load_regressions
from profiler.statistics.changepoint import LevelKind
from profiler.statistics.verdict import Verdict
from profiler.store.readable_index import open_store

if TYPE_CHECKING:
    from profiler.store.index import Store

SCHEMA = 1
ROWS_SHOWN = 40
GROUPS_SHOWN = 12  # of each kind that is not counted
_HEAD = ("version", "metric", "kernel", "verdict", "on", "since", "due to", "acknowledged")


@dataclass(frozen=True, repr=False)
class RegressionsDocument(Document):
    """Regressions with their causes, those that are not acknowledged first."""

    report: RegressionReport
    causes: CauseFinder
    family: str | None = None  # None: all families
    known: KnownCauses | None = None  # those of this state of the index

    title = "What is worse now"
    columns = (
        "family",
        "version",
        "workload",
        "gpu",
        "evidence",
        "mode",
        "kernel",
        "concept",
        "grid",
        "block",
        "found_by",
        "a",
        "b",
        "unit",
        "effect",
        "low",
        "high",
        "since",
        "due_to",
        "cause",
        "acknowledged",
        "level",
        "shared_run",
        "counted",
        "group",
    )
    numbers_are = "counted in the index"  # that of a regression stands beside its numbers

    def keep(self) -> None:
        """Keep the causes that were asked for, so that nobody has to find them again in this index."""
        if self.known is not None:
            self.known.keep()

    @cached_property
    def shared(self) -> tuple[SharedRegression, ...]:
        """The alarms that many series share on one run."""
        return find_shared_regressions(self.report, self.causes)

    @cached_property
    def worse(self) -> WorseNow:
        """What counts as worse now, in groups of one version and cause, and what does not count."""
        return group_regressions(self.report, self.causes, self.shared).of_family(self.family)

    @property
    def regressions(self) -> list[Regression]:
        """All that is listed, counted or not."""
        every = self.report.regressions
        return [one for one in every if self.family in (None, one.series.family)]

    @property
    def sentences(self) -> Sequence[str]:
        """A sentence a group that counts, then one a regression; at the end what was looked at."""
        regressions = [
            f"{regression.subject} {regression.what}: {_level(regression)}{regression.change or 'wrong'} "
            f"since {regression.since}; {regression.how_sure}"
            for regression in self.regressions
        ]
        groups = [group.words for group in self.worse.groups]
        return [self.headline, *groups, *regressions, self.report.coverage.words]

    @property
    def headline(self) -> str:
        """How much is worse, in one line."""
        return self.worse.words if self.worse.count else "nothing is worse now"

    def rows(self) -> list[tuple[object, ...]]:
        """A row a regression; levels are in base units, effect and interval (low, high) shares of the old."""
        return [self._row(regression) for regression in self.regressions]

    def _content(self) -> dict[str, object]:
        """Every regression with its cause; changes are shares of the old level: 0.03 is 3 % more."""
        return {
            "schema": SCHEMA,
            "alarms": self.worse.count,
            "worse_now": worse_now_dict(self.worse),
            "acknowledged": list(map(_group_dict, self.worse.acknowledged)),
            "slower_than_parent": list(map(_group_dict, self.worse.slower_than_parent)),
            "not_open": list(map(_group_dict, self.worse.not_open)),
            "shared": [_shared_dict(alarm) for alarm in self.shared],
            "regressions": [self._regression_dict(regression) for regression in self.regressions],
            "looked_at": _coverage_dict(self.report.coverage),
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A line a group; a row a regression, then for each why and how sure; last what was not judged.

        With `everything` every group and regression, whose causes are then all searched.
        """
        coverage, regressions = self.report.coverage, self.regressions
        yield Heading(
            self.headline if coverage.series else "no run yet that could be compared with another", 1
        )
        yield from self._group_blocks(everything)
        shown = regressions if everything else regressions[:ROWS_SHOWN]
        if shown:
            causes = [self.causes.find(regression) for regression in shown]
            pairs = list(zip(shown, causes, strict=True))
            yield Table(_HEAD, [_cells(regression, cause.due_to) for regression, cause in pairs])
            yield Notes(list(_reasons([(regression, cause.words) for regression, cause in pairs])))
        if left := len(regressions) - len(shown):
            yield Line(f"and {left} more: --family, or --json for all")
        for unclear, count in coverage.unclear.items():
            command = f": `{unclear.command}`" if unclear.command else ""
            yield Line(f"? {count} cannot be judged, {unclear.why}{command}")
        yield Line(coverage.words)
        if self.worse.count and (command := self.worse.groups[0].lead.command):
            yield Line(Name(command), label="to acknowledge the first")

    def _group_blocks(self, everything: bool) -> Iterator[Block]:
        """A line a group: what counts, then apart from it what does not."""
        worse = self.worse
        counted = (group.shared.words if group.shared else group.words for group in worse.groups)
        yield Notes([f"{Verdict.WORSE.traits.sign} {words}" for words in counted])
        for title, groups in (
            ("acknowledged", worse.acknowledged),
            ("slower than its parent, which is no regression", worse.slower_than_parent),
            ("not open", worse.not_open),
        ):
            shown = groups if everything else groups[:GROUPS_SHOWN]
            if shown:
                more = [f"and {len(groups) - len(shown)} more: --json"] if len(groups) > len(shown) else []
                yield Line(f"{title}:")
                yield Notes([*(group.words for group in shown), *more])

    def _row(self, regression: Regression) -> tuple[object, ...]:
        cause, interval = self.causes.find(regression), regression.interval
        family, version, workload, gpu, evidence, *place = regression.series
        return (
            family,
            version,
            workload or None,
            gpu or None,
            evidence.value,
            *(text or None for text in place),
            regression.grid,
            regression.block,
            regression.kind.value,
            regression.a.number,
            regression.b.number,
            regression.b.unit,
            regression.effect,
            interval.low if interval else None,
            interval.high if interval else None,
            regression.since,
            cause.due_to,
            cause.words or None,
            regression.acknowledged is not None,
            regression.level.value,
            shared_run(self.shared, regression),
            id(regression) in self._group_keys,
            self._group_keys.get(id(regression)),
        )

    @cached_property
    def _group_keys(self) -> dict[int, str]:
        """By regression, the key of the group that counts it; none for what is not counted."""
        return {id(one): group.key for group in self.worse.groups for one in group.regressions}

    def _regression_dict(self, regression: Regression) -> dict[str, object]:
        series, cause = regression.series, self.causes.find(regression)
        acknowledged, lapsed = regression.acknowledged, regression.lapsed
        return {
            **{name: text or None for name, text in series._asdict().items()},
            "evidence": series.evidence.value,
            "grid": regression.grid,
            "block": regression.block,
            "found_by": regression.kind,
            "level": regression.level.value,
            "equal_level": regression.equal and _run_dict(regression.equal),
            "is_open": regression.is_open,
            "same_build": regression.same_build,
            "environment_moved": regression.environment_moved,
            "verdict": regression.verdict.value,
            "shared_run": shared_run(self.shared, regression),
            "counted": id(regression) in self._group_keys,
            "group": self._group_keys.get(id(regression)),
            "slower_than_parent": regression.slower_than_parent,
            "before": _run_dict(regression.before),
            "possible": [_run_dict(run) for run in regression.possible],
            "now": _run_dict(regression.now),
            "a": formatting.as_json(regression.a),
            "b": formatting.as_json(regression.b),
            "effect": regression.effect,
            "interval": regression.interval,
            "interval_kind": regression.interval_kind if regression.interval else None,
            "detectable": regression.detectable,
            "how_sure": regression.how_sure,
            "held_against": regression.held_against or None,
            "earlier_steps": regression.earlier_steps,
            "due_to": cause.due_to,
            "cause": cause.words or None,
            "environment": cause.environment or None,
            "acknowledged": acknowledged and _acknowledgement_dict(acknowledged),
            "acknowledgement_ended": lapsed
            and {**_acknowledgement_dict(lapsed.acknowledgement), "ended": lapsed.why},
            "command": regression.command or None,
        }


def _cells(regression: Regression, due_to: str) -> tuple[str, ...]:
    series = regression.series
    mode = series.mode if series.concept == LATENCY else ""
    place = ", ".join(filter(None, (series.workload, series.gpu, mode, series.evidence.value)))
    return (
        Name(regression.subject),
        regression.label,
        regression.launch,
        f"{regression.verdict_label} {regression.change}".strip(),
        place,
        regression.since,
        due_to,
        regression.passed,
    )


def _reasons(causes: Sequence[tuple[Regression, str]]) -> Iterator[str]:
    """How sure each regression is and why; exact counts of a launch, worse in the same runs, once."""
    alike: dict[tuple[object, ...], list[tuple[Regression, str]]] = {}
    for regression, cause in causes:
        has_acknowledgement = regression.acknowledged or regression.lapsed
        acknowledged = f"acknowledged: {regression.passed_words}" if has_acknowledgement else ""
        words = "; ".join(filter(None, (regression.how_sure, cause, acknowledged)))
        series = regression.series._replace(concept="")
        runs = (regression.before, regression.possible, regression.how_sure, acknowledged)
        is_exact = regression.kind is RegressionKind.EXACT
        alike.setdefault((series, *runs) if is_exact else (id(regression),), []).append((regression, words))
    for (regression, words), *others in alike.values():
        labels = [regression.label, *(other.label for other, _ in others)]
        launch = f" of {regression.launch}" if regression.launch else ""
        yield f"{regression.subject} {', '.join(labels)}{launch}: {words}"


def list_regressions(
    table: MetricTable, store: Store, *, family: str | None = None, data: str | None = None
) -> RegressionsDocument:
    """What is worse now, since when, how sure, and why.

    Grouped by version and cause, and counted as the dashboard and the gate do.
    Latency of calls and ncu durations are judged by the steps of their history, by the newest run against the
    one before, and by the newest against the pinned baseline; compiler facts, modelled conflicts and counts
    that repeat exactly, from one run of a version to the next. A version that is slower than its parent
    (without a catalogue, than the version before) did not get worse: it is listed separately and not counted.

    Results that were right and are wrong now come first, acknowledged ones last. A level that was there
    before with the same machine code is a known state of the machine, and a slow drift is not a step: both
    are listed last, with nothing to acknowledge. What changed between runs of one build, with equal machine
    code and source, is "changed", due to the environment. A step that many series share on one run is one
    alarm, due to the environment.

    Launches are paired as by `profiler compare`. Another grid is another workload, unless a workload is
    declared (`import --workload`), and is compared with the last run of its own size. All families are
    looked at either way, since the timings of one run are judged together.

    This command lists; `profiler gate` judges one change and makes it the exit code.

    Raises UnknownName.

        profiler.list_regressions(family="attention").to_frame()[["subject", "concept", "change_pct"]]
    """
    root, noise = location.open_root(data), NoiseModel.of_store(lambda: store, data)
    if family is not None and family not in (families := store.families()):
        names = brief_list(nearest_first(family, families)) or "none"
        raise UnknownName(f"no family {family!r} in the index; there are {names}")
    report = load_regressions(root, store, table, noise)
    causes = CauseFinder(store, root, table, noise, Pairing.of_data(data))
    return RegressionsDocument(report, causes, family, KnownCauses(causes))


def prepare_regressions(data: str | None = None) -> None:
    """Search what is worse before anybody asks, and keep it with all causes beside the index.

    For whoever has just added runs, so that neither the next question nor a page has to wait for it. `data`
    is as for `list_regressions`. Raises ProfilerError where that would.
    """
    with contextlib.closing(open_store(data)) as store:
        document = list_regressions(load_metrics(), store, data=data)
        document.to_dict()  # asks for every cause
        document.keep()


def load_worse_now(
    table: MetricTable, store: Store, *, family: str | None = None, data: str | None = None
) -> WorseNow:
    """What counts as worse now in an index, or in one family of it: as `list_regressions` says."""
    return list_regressions(table, store, family=family, data=data).worse


def worse_now_dict(worse: WorseNow) -> dict[str, object]:
    """The count, the groups behind it, and the page that lists them, for JSON."""
    return {
        "count": worse.count,
        "rows": len(worse.rows),
        "family": worse.family,
        "address": worse.address,
        "groups": list(map(_group_dict, worse.groups)),
    }


def _group_dict(group: RegressionGroup) -> dict[str, object]:
    lead = group.lead
    return {
        "key": group.key,
        "family": group.family,
        "versions": group.versions,
        "evidence": group.evidence,
        "metrics": group.metrics,
        "cells": group.cells,
        "rows": [_row_dict(one) for one in group.regressions],
        "since": _run_dict(group.since),
        "due_to": group.due_to or None,
        "held_against": lead.held_against or None,
        "acknowledged": lead.acknowledged and _acknowledgement_dict(lead.acknowledged),
        "sentence": group.words,
    }


def _row_dict(regression: Regression) -> dict[str, object]:
    """The series of a regression and its size."""
    texts = {name: text or None for name, text in regression.series._asdict().items()}
    return {**texts, "evidence": regression.series.evidence.value, "effect": regression.effect}


def _acknowledgement_dict(acknowledgement: Acknowledgement) -> dict[str, str]:
    return {
        "id": acknowledgement.id,
        "until": acknowledgement.until,
        "who": acknowledgement.who,
        "why": acknowledgement.why,
    }


def _level(regression: Regression) -> str:
    """What is no regression, to stand before the size of the change: a level that is not new, one build."""
    if regression.level is not LevelKind.NEW:
        return f"{regression.level}, "
    return "the environment, " if regression.environment_moved else ""


def _shared_dict(alarm: SharedRegression) -> dict[str, object]:
    return {
        "run": _run_dict(alarm.run),
        "gpu": alarm.gpu or None,
        "regressions": len(alarm.regressions),
        "series": alarm.series,
        "environment": alarm.environment or None,
        "sentence": alarm.words,
    }


def _run_dict(run: VersionRun) -> dict[str, str]:
    return {"run_id": run.run_id, "version": run.version, "created": run.created.isoformat()}


def _coverage_dict(coverage: Coverage) -> dict[str, object]:
    return {
        "families": coverage.families,
        "series": {kind.value: coverage.series[kind] for kind in Evidence},
        "pairs": coverage.pairs,
        "cannot_be_judged": [
            {"why": unclear.why, "count": count, "command": unclear.command or None}
            for unclear, count in coverage.unclear.items()
        ],
    }
