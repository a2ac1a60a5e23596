"""A search as a document: progress, targets, elites, what was refused, what insights brought, its cost."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from profiler.bundles.location import Root
from profiler.documents.blocks import Block, Heading, Line, Name, Notes
from profiler.documents.document import Document
from profiler.documents.prediction import time_words
from profiler.documents.search_blocks import RefusedStage, effect_table, elite_table, refused_table
from profiler.search.archive import Archive, best_so_far, mean_time_ns
from profiler.search.effects import InsightEffect, insight_effects
from profiler.search.journal import Journal, Working, find_journal
from profiler.search.record import SearchRecord, Status, candidate_name
from profiler.statistics.verdict import Verdict

TENSOR_SHARE = 0.5  # of the tensor cores' time: the owner's target
PARTS = ("generator", "screening", "judge")


@dataclass(frozen=True)
class Target:
    """What a search is to reach, and whether its best candidate does."""

    name: str
    reached: bool | None  # None: not known
    now: str


@dataclass(frozen=True, repr=False)
class SearchDocument(Document):
    """Where a search stands."""

    journal: Journal
    archive: Archive
    working: tuple[Working, ...] = ()
    is_stopping: bool = False

    columns = (
        "candidate",
        "status",
        "parent",
        "levers",
        "time_ns",
        "evidence",
        "registers",
        "bank_conflicts",
        "verdict_against_parent",
        "reason",
    )

    @property
    def title(self) -> str:
        """What is searched, from where."""
        settings = self.journal.settings
        return f"Search of {settings.family} from {settings.version} on {settings.gpu}"

    @property
    def workload(self) -> str:
        """The workload that times are shown of."""
        return self.journal.settings.workloads[0]

    @cached_property
    def best(self) -> SearchRecord | None:
        """The candidate with the shortest time of those that are right; modelled times may not part it."""
        steps = best_so_far(self.archive.records, self.workload)
        return self.archive.by_number[steps[-1][0]] if steps else None

    @cached_property
    def effects(self) -> tuple[InsightEffect, ...]:
        """What insights brought, by kind."""
        return insight_effects(self.archive)

    @property
    def children(self) -> list[SearchRecord]:
        """All candidates but the seed."""
        return [record for record in self.archive.records if record.number != 0]

    def counted(self, *statuses: Status) -> int:
        """How many candidates, the seed left out, came to one of these."""
        return sum(record.status in statuses for record in self.children)

    @cached_property
    def targets(self) -> tuple[Target, ...]:
        """Every shape right, no conflicts, busy tensor cores, and the time that was asked for."""
        best = self.best
        if best is None:
            return ()
        conflicts = best.facts.get("bank_conflicts")
        tensor = best.facts.get("utilisation", {}).get("tensor cores")
        settings = self.journal.settings
        targets = [
            Target("every shape right", best.is_valid, "yes"),
            Target(
                "no bank conflicts",
                None if conflicts is None else conflicts == 0,
                "not known" if conflicts is None else f"{conflicts:,.0f}",
            ),
            Target(
                f"tensor cores over {TENSOR_SHARE:.0%} busy".replace("%", " %"),
                None if tensor is None else tensor > TENSOR_SHARE,
                "not known" if tensor is None else f"{100 * tensor:.0f} %",
            ),
        ]
        if settings.target_ns is not None:
            now = best.time_ns(self.workload)
            reached = None if now is None else now <= settings.target_ns
            targets.append(Target(f"≤ {time_words(settings.target_ns)}", reached, time_words(now)))
        return tuple(targets)

    @cached_property
    def refused(self) -> tuple[RefusedStage, ...]:
        """What was refused, or not known to be right, by the stage that said so; most first."""
        rows: dict[str, list[SearchRecord]] = {}
        for record in self.archive.records:
            if record.status in (Status.REFUSED, Status.UNKNOWN, Status.NO_CANDIDATE):
                rows.setdefault(record.stage or str(record.status), []).append(record)
        found = []
        for stage, records in rows.items():
            counts: dict[str, int] = {}
            for record in records:
                reason = record.reason.removeprefix(f"{stage}: ") or "no reason is given"
                counts[reason] = counts.get(reason, 0) + 1
            most_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
            found.append(RefusedStage(stage, len(records), tuple(most_first), records[-1].name))
        return tuple(sorted(found, key=lambda row: (-row.count, row.stage)))

    @property
    def seconds(self) -> dict[str, float]:
        """What it cost: seconds of all workers together, by part."""
        return {
            part: sum(float(record.seconds.get(part, 0.0)) for record in self.archive.records)
            for part in PARTS
        }

    @property
    def sentences(self) -> Sequence[str]:
        """How it goes, the best, the elites, the targets, what insights brought, the cost."""
        seed, best = self.archive.seed, self.best
        if seed is None or best is None:
            return [f"{self.journal.settings.version} is judged first; nothing else yet."]
        sentences = [
            f"{len(self.children)} candidates: {self.counted(Status.VALID)} right, "
            f"{self.counted(Status.REFUSED, Status.UNKNOWN, Status.NO_CANDIDATE)} refused, "
            f"{self.counted(Status.SLOWER)} slower, "
            f"{self.counted(Status.SAME_CODE, Status.SAME_SOURCE)} the same as another."
        ]
        time_now, time_then = best.time_ns(self.workload), seed.time_ns(self.workload)
        ratio = (
            f", × {time_now / time_then:.2f} of {self.journal.settings.version}"
            if time_now and time_then
            else ""
        )
        span = best.times[self.workload]
        sentences.append(
            f"Best: {best.name}, {time_words(time_now)} ({time_words(span.get('low_ns'))} to "
            f"{time_words(span.get('high_ns'))}) on {self.workload}{ratio}, {best.evidence}."
        )
        for target in self.targets:
            word = {True: "reached", False: "not yet", None: "not known"}[target.reached]
            sentences.append(f"Target {target.name}: {word} ({target.now}).")
        sentences += map(_effect_words, self.effects)
        minutes = sum(self.seconds.values()) / 60
        sentences.append(f"Cost: {minutes:.1f} minutes of workers; no GPU was used.")
        return sentences

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """What is worked on, the elites, the answer in words, what insights brought and what was refused."""
        yield Heading((self.title, " (", Name(self.journal.settings.id), ")"), 1)
        working = [f"c{one.number}: {one.doing or 'starting'}" for one in self.working]
        yield Notes([*working, *self.is_stopping * ["stopping: workers end after their candidate"]])
        if self.archive.elites:
            yield elite_table(self.journal, self.archive)
        of_effects = set(map(_effect_words, self.effects))
        yield from (Line(sentence) for sentence in self.sentences if sentence not in of_effects)
        if self.effects:
            yield Heading("what insights brought")
            yield effect_table(self.effects)
        if self.refused:
            yield Heading("refused")
            yield refused_table(self.refused)

    def rows(self) -> list[tuple[object, ...]]:
        """A row a candidate, in their order."""
        return [
            (
                record.name,
                str(record.status),
                None if record.parent is None else candidate_name(record.parent),
                ", ".join(record.levers),
                record.time_ns(self.workload),
                str(record.evidence) if record.times else None,
                record.facts.get("registers"),
                record.facts.get("bank_conflicts"),
                self.against_parent(record),
                record.reason,
            )
            for record in self.archive.records
        ]

    def against_parent(self, record: SearchRecord) -> Verdict | None:
        """The verdict against its parent; None where there is none."""
        parent = self.archive.by_number.get(record.parent) if record.parent is not None else None
        verdict = record.verdicts.get(parent.content_id) if parent is not None else None
        return None if verdict is None else verdict.verdict

    def _content(self) -> dict[str, object]:
        settings = self.journal.settings
        now = time.time()
        return {
            "search": settings.id,
            "family": settings.family,
            "version": settings.version,
            "gpu": settings.gpu,
            "workloads": list(settings.workloads),
            "generator": settings.generator,
            "evidence": str(self.best.evidence) if self.best else None,
            "folder": str(self.journal.folder),
            "running": [
                {"candidate": candidate_name(w.number), "seconds": round(now - w.since), "doing": w.doing}
                for w in self.working
            ],
            "stopping": self.is_stopping,
            "best": self.best.name if self.best else None,
            "elites": [self._elite(record) for record in self.archive.elites],
            "targets": [
                {"target": target.name, "reached": target.reached, "now": target.now}
                for target in self.targets
            ],
            "candidates": [self._candidate(record) for record in self.archive.records],
            "refused": [
                {
                    "stage": row.stage,
                    "count": row.count,
                    "reasons": [{"reason": reason, "count": count} for reason, count in row.reasons],
                    "newest": row.newest,
                }
                for row in self.refused
            ],
            "insights": [effect.to_dict() for effect in self.effects],
            "seconds": {part: round(value, 1) for part, value in self.seconds.items()},
        }

    def _elite(self, record: SearchRecord) -> dict[str, object]:
        return {
            "candidate": record.name,
            "content_id": record.content_id,
            "mean_time_ns": mean_time_ns(record),
            "evidence": str(record.evidence),
            "registers": record.facts.get("registers"),
            "bank_conflicts": record.facts.get("bank_conflicts"),
            "levers": list(record.levers),
            "macros": dict(record.macros),
        }

    def _candidate(self, record: SearchRecord) -> dict[str, object]:
        return {
            "candidate": record.name,
            "status": str(record.status),
            "content_id": record.content_id or None,
            "code_id": record.code_id or None,
            "parent": None if record.parent is None else candidate_name(record.parent),
            "same_as": None if record.same_as is None else candidate_name(record.same_as),
            "generator": record.generator,
            "levers": list(record.levers),
            "why": record.why,
            "macros": dict(record.macros),
            "arm": record.arm or None,
            "insights_shown": list(record.shown),
            "prompt_sha256": record.prompt_sha256 or None,
            "stage": record.stage or None,
            "reason": record.reason,
            "score": record.score,
            "times": {name: dict(row) for name, row in record.times.items()},
            "registers": record.facts.get("registers"),
            "bank_conflicts": record.facts.get("bank_conflicts"),
            "verdicts": {
                self.archive.by_content[content_id].name: verdict.to_dict()
                for content_id, verdict in record.verdicts.items()
                if content_id in self.archive.by_content
            },
            "seconds": dict(record.seconds),
        }


def _effect_words(effect: InsightEffect) -> str:
    difference = effect.difference
    counts = (
        f"{effect.better_with} of {effect.shown} with, {effect.better_without} of {effect.withheld} without"
    )
    said = "unknown"
    if difference is not None:
        points = (100 * difference.difference, 100 * difference.low, 100 * difference.high)
        said = f"{effect.word} by " + "{:+.0f} points ({:+.0f} to {:+.0f})".format(*points)
    return f"Insight {effect.kind}: {said}; children better than their parent: {counts}."


def search_document(journal: Journal) -> SearchDocument:
    """Where a search stands now."""
    return SearchDocument(journal, journal.archive(), tuple(journal.working()), journal.is_stopping)


def search_status(root: Root, family: str, search_id: str | None = None) -> SearchDocument:
    """Where the newest search of a family stands, or one by its id. Raises UnknownName."""
    return search_document(find_journal(root, family, search_id))
