"""What a journal amounts to: who holds the seats, which code is known. A pure function of the records."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from profiler.evidence.values import Evidence
from profiler.search.record import PairVerdict, SearchRecord, Status
from profiler.statistics.verdict import Verdict

SEATS = 3  # the owner's K


@dataclass(frozen=True)
class SeatChange:
    """A candidate that took a seat, and whose."""

    number: int
    replaced: int | None  # None: the seat was empty


@dataclass(frozen=True)
class Archive:
    """All that a search knows."""

    records: tuple[SearchRecord, ...] = ()  # in their order
    elites: tuple[SearchRecord, ...] = ()  # best first
    changes: tuple[SeatChange, ...] = ()
    by_number: Mapping[int, SearchRecord] = field(default_factory=dict)
    by_content: Mapping[str, SearchRecord] = field(default_factory=dict)  # the first of each
    by_code: Mapping[str, SearchRecord] = field(default_factory=dict)

    @property
    def valid(self) -> tuple[SearchRecord, ...]:
        """The candidates that are right, in their order."""
        return tuple(record for record in self.records if record.is_valid)

    @property
    def seed(self) -> SearchRecord | None:
        """What the search began with; None while it is judged."""
        return self.by_number.get(0)


def replay(records: Iterable[SearchRecord], seats: int = SEATS) -> Archive:
    """The archive that follows from records. Equal records give an equal archive, in any order.

    A candidate that is right takes an empty seat. Where all are taken, it takes the seat of the slowest elite
    that it is better than, by `beats`; else nothing changes: ties stay.
    """
    ordered = sorted(records, key=lambda record: (record.order, record.number))
    by_number: dict[int, SearchRecord] = {}
    by_content: dict[str, SearchRecord] = {}
    by_code: dict[str, SearchRecord] = {}
    elites: list[SearchRecord] = []
    changes = []
    counted = []
    for record in ordered:
        if record.number in by_number:  # a copy of a file: the first one counts
            continue
        by_number[record.number] = record
        counted.append(record)
        is_known = record.content_id in by_content or (bool(record.code_id) and record.code_id in by_code)
        if record.content_id and record.status is not Status.NO_CANDIDATE:
            by_content.setdefault(record.content_id, record)
        if record.code_id:
            by_code.setdefault(record.code_id, record)
        if not record.is_valid or is_known:
            continue
        if len(elites) < seats:
            elites.append(record)
            changes.append(SeatChange(record.number, None))
            continue
        beaten = [elite for elite in elites if beats(record, elite)]
        if beaten:
            falling = max(beaten, key=lambda elite: (mean_time_ns(elite) or math.inf, elite.number))
            elites[elites.index(falling)] = record
            changes.append(SeatChange(record.number, falling.number))
    elites.sort(key=lambda elite: (mean_time_ns(elite) or math.inf, elite.number))
    return Archive(tuple(counted), tuple(elites), tuple(changes), by_number, by_content, by_code)


def beats(record: SearchRecord, elite: SearchRecord) -> bool:
    """Whether a candidate takes an elite's seat: better on an agreed workload, worse on none.

    A modelled verdict says nothing against an elite that was measured; a measured one has to be confirmed.
    """
    verdict = record.verdicts.get(elite.content_id)
    if verdict is None or verdict.verdict is not Verdict.BETTER:
        return False
    if verdict.evidence is Evidence.MEASURED:
        return verdict.confirmed
    return elite.evidence is not Evidence.MEASURED


def confirmed(first: PairVerdict, second: PairVerdict | None) -> PairVerdict:
    """A measured verdict with a second measurement that knows nothing of the first.

    Among hundreds of candidates some look better by chance; hardly one does twice.
    """
    if second is None or second.verdict is not first.verdict:
        ratio = first.ratio if second is None else second.ratio
        return PairVerdict(Verdict.UNCLEAR, first.evidence, ratio, first.by_workload)
    return PairVerdict(first.verdict, first.evidence, second.ratio, second.by_workload, True)


def mean_time_ns(record: SearchRecord) -> float | None:
    """The geometric mean of the times over the workloads; None where one is not known."""
    times = [record.time_ns(workload) for workload in record.times]
    if not times or any(time is None or time <= 0 for time in times):
        return None
    return math.exp(sum(math.log(time) for time in times if time) / len(times))


def best_so_far(records: Sequence[SearchRecord], workload: str) -> list[tuple[int, float]]:
    """The shortest time of candidates that are right, each time it falls: number and ns."""
    steps: list[tuple[int, float]] = []
    for record in records:
        time = record.time_ns(workload)
        if record.is_valid and time is not None and (not steps or time < steps[-1][1]):
            steps.append((record.number, time))
    return steps


def path_to(archive: Archive, record: SearchRecord) -> list[SearchRecord]:
    """A candidate's ancestors from the seed on, and itself."""
    path = [record]
    while path[-1].parent is not None and path[-1].parent in archive.by_number and len(path) < 10_000:
        path.append(archive.by_number[path[-1].parent])
    return path[::-1]
