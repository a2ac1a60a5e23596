"""The noise floors of an index and of a run of A/A pairs, as documents."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.bundles.run import Result, Run
from profiler.collect.summary import RunSummary
from profiler.compare.floor_coverage import MissingFloor, missing_floors
from profiler.compare.noise_floor import StoredFloor, floors_of_runs, stored_floors, timed_keys
from profiler.documents.blocks import Block, Line, Table
from profiler.documents.collection import end_blocks
from profiler.documents.document import Document
from profiler.errors import Exit
from profiler.statistics.decision import share_text
from profiler.statistics.noise_floor import MIN_FLOOR_PAIRS

if TYPE_CHECKING:
    from profiler.store.index import Store

_COLUMNS = (
    *("gpu", "driver", "mode", "class", "family", "pairs", "needed"),
    *("limit", "detectable", "process_sd", "growth", "until"),
)
_HEAD = (
    *("GPU", "driver", "mode", "calls", "family", "A/A pairs", "floor", "detectable", "process sd"),
    "versions and workloads",
)


@dataclass(frozen=True, repr=False)
class NoiseFloorsDocument(Document):
    """The floors there are, and the calls that lack one."""

    floors: tuple[StoredFloor, ...]
    missing: tuple[MissingFloor, ...]
    has_timed_calls: bool

    title = "Noise floors"
    columns = _COLUMNS

    @property
    def sentences(self) -> Sequence[str]:
        """Which calls lack a floor, with the command that makes one; that there are no pairs at all."""
        missing = [_missing_words(calls) for calls in self.missing]
        if self.floors:
            return missing
        no_calls = "" if self.has_timed_calls else " and no timed calls (`profiler collect`)"
        return [f"no A/A pairs (`profiler collect --noise`){no_calls}", *missing]

    def rows(self) -> list[tuple[object, ...]]:
        """A row a floor; limit, detectable and process_sd are shares of a latency, None of too few pairs.

        `process_sd` is the standard deviation of a session's own offset, `growth` by what factor the newest
        pairs may vary more than those before them, by which the limit is raised.
        """
        return _floor_rows(self.floors)

    def _content(self) -> dict[str, object]:
        """The floors with the versions, workloads and runs behind them; and what is missing."""
        return {
            "floors": [_floor_dict(stored) for stored in self.floors],
            "missing": [
                {
                    "gpu": calls.gpu or None,
                    "class": calls.workload_class,
                    "modes": list(calls.modes),
                    "pairs": calls.pairs,
                    "command": calls.command,
                }
                for calls in self.missing
            ],
        }

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a floor; below, what lacks one."""
        yield from _floor_table(self.floors)
        yield from map(Line, self.sentences)


@dataclass(frozen=True, repr=False)
class NoiseRunDocument(Document):
    """A sealed run of A/A pairs, and the floors that follow from it alone."""

    run: Run
    floors: tuple[StoredFloor, ...]

    columns = _COLUMNS

    @property
    def title(self) -> str:
        """The run."""
        return f"Noise run {self.run.run_id}"

    @property
    def left_out(self) -> Sequence[str]:
        """The jobs that were left out, each with its reason."""
        left_out: Sequence[str] = self.run.provenance.get("left_out", ())
        return left_out

    @property
    def unwell(self) -> list[Result]:
        """The results that are not as they should be, each with a reason."""
        return [result for result in self.run.results if result.reason]

    @property
    def sentences(self) -> Sequence[str]:
        """What was wrong, failed or was left out."""
        results = (f"{result.version}: {result.status}: {result.reason}" for result in self.unwell)
        return [*results, *(f"left out: {words}" for words in self.left_out)]

    @property
    def exit_code(self) -> Exit:
        """1 for a version that is wrong or failed, 3 where no pair was collected."""
        return RunSummary(self.run).noise_exit_code(has_floor=bool(self.floors))

    def rows(self) -> list[tuple[object, ...]]:
        """A row a floor, as in `NoiseFloorsDocument`."""
        return _floor_rows(self.floors)

    def _content(self) -> dict[str, object]:
        """The floors, and what was left out."""
        floors = [_floor_dict(stored) for stored in self.floors]
        return {"run": self.run.run_id, "floors": floors, "left_out": self.left_out}

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """The floors, what was wrong or left out, and where the time went."""
        yield from _floor_table(self.floors)
        if unwell := self.unwell:
            rows = [(one.version, one.workload or "", one.status, one.reason or "") for one in unwell]
            yield Table(("version", "workload", "", "why"), rows)
        yield from end_blocks(self.run)


def list_noise_floors(store: Store) -> NoiseFloorsDocument:
    """List the noise floors, and those that are missing.

    A floor says how far two runs of one build lie apart, and runs of different days are judged by it. There
    is one for each GPU, driver, mode, kernel family and length of call; timed calls without one are listed.
    `profiler collect --noise` collects them.

    Raises ProfilerError where the index cannot be read.

        profiler.list_noise().sentences
    """
    floors, timed = stored_floors(store), timed_keys(store)
    return NoiseFloorsDocument(tuple(floors), tuple(missing_floors(floors, timed)), bool(timed))


def floors_of_run(run: Run) -> NoiseRunDocument:
    """The floors that follow from one run, without an index."""
    return NoiseRunDocument(run, tuple(floors_of_runs([run])))


def _missing_words(calls: MissingFloor) -> str:
    modes, gpu = " and ".join(calls.modes), calls.gpu or "unknown GPU"
    return f"missing: {calls.workload_class} calls on {gpu} ({modes}): {calls.command}"


def _floor_table(floors: Sequence[StoredFloor]) -> Iterator[Block]:
    """A row a floor; one with too few pairs says how many it needs."""
    if floors:
        yield Table(_HEAD, list(map(_floor_cells, floors)), right=(5, 6, 7, 8))


def _floor_cells(stored: StoredFloor) -> tuple[str, ...]:
    pairs = str(stored.floor.pairs) if stored.judges else f"{stored.floor.pairs} of {MIN_FLOOR_PAIRS}"
    sizes = ("–", "–", "–")
    if stored.judges:
        floor = stored.floor
        sizes = (
            f"±{share_text(math.expm1(floor.limit))}",
            share_text(floor.detectable()),
            share_text(math.expm1(floor.process_sd)),
        )
    measured = f"{', '.join(stored.versions)} on {', '.join(stored.workloads) or 'no workload named'}"
    place = stored.gpu or "unknown GPU", stored.driver or "unknown", stored.mode, stored.workload_class
    return (*place, stored.family, pairs, *sizes, measured)


def _floor_rows(floors: Sequence[StoredFloor]) -> list[tuple[object, ...]]:
    return [
        (
            stored.gpu or None,
            stored.driver or None,
            stored.mode,
            stored.workload_class,
            stored.family,
            stored.floor.pairs,
            MIN_FLOOR_PAIRS,
            *_sizes(stored).values(),
            stored.until,
        )
        for stored in floors
    ]


def _floor_dict(stored: StoredFloor) -> dict[str, object]:
    return {
        "gpu": stored.gpu or None,
        "mode": stored.mode,
        "class": stored.workload_class,
        "family": stored.family,
        "driver": stored.driver or None,
        "pairs": stored.floor.pairs,
        "needed": MIN_FLOOR_PAIRS,
        **_sizes(stored),
        "versions": stored.versions,
        "workloads": stored.workloads,
        "runs": stored.runs,
        "until": stored.until.isoformat(),
    }


def _sizes(stored: StoredFloor) -> dict[str, float | None]:
    """The numbers that follow from the pairs, as in `_COLUMNS`; None where there are too few."""
    floor = stored.floor
    if not stored.judges:
        return dict.fromkeys(("limit", "detectable", "process_sd", "growth"))
    return {
        "limit": math.expm1(floor.limit),
        "detectable": floor.detectable(),
        "process_sd": math.expm1(floor.process_sd),
        "growth": floor.growth,
    }
