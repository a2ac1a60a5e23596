"""Where in the code the counts are: hot spots of one launch, and what changed at them between two."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from pathlib import PurePath

from profiler.evidence.values import Values
from profiler.reports.source_text import source_lines
from profiler.sass.alignment import UNCHANGED, Alignment, align
from profiler.sass.listing import NOT_ISSUED as NOT_ISSUED
from profiler.sass.listing import SAMPLES as SAMPLES
from profiler.sass.listing import STALL as STALL
from profiler.sass.listing import FileLine, Listing

# ncu's names of what it counts for each instruction.
EXECUTED = "inst_executed"
WAVEFRONTS = "memory_l1_wavefronts_shared"
IDEAL = "memory_l1_wavefronts_shared_ideal"
EXCESS = "derived__memory_l1_wavefronts_shared_excessive"
EXCESS_SECTORS = "derived__memory_l2_theoretical_sectors_global_excessive"
SELECTED = "selected"  # no waiting: the warp was issuing
# Its names of how the launch was sampled.
INTERVAL = "smsp__pcsamp_interval_cycles"
PASSES = "smsp__pcsamp_aggregated_passes"
DROPPED = "smsp__pcsamp_dropped_bytes"
_SIGMAS = 3.0
# Reasons that the sampler names in another way than the counters, and so than the time identity.
_COUNTER_REASONS = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}


@dataclass(frozen=True)
class CodeLocation:
    """A source line, or an instruction where the report has no line info for it."""

    file: str | None = None
    line: int = 0
    function: int = 0  # into Listing.functions
    offset: int = 0  # bytes in the function

    @property
    def words(self) -> str:
        """`file.cu:12`, or the offset in the function: `+0x01a0`, `[2]+0x01a0` in the second."""
        if self.file is not None:
            return f"{PurePath(self.file).name}:{self.line}"
        return (f"[{self.function + 1}]" if self.function else "") + f"+{self.offset:#06x}"


@dataclass(frozen=True)
class HotSpot:
    """The counts at one location; None where the report has none there, which is not 0."""

    location: CodeLocation
    text: str | None  # the source line, or the instruction; None where the report holds no text
    lines: tuple[int, ...]  # its instructions, as positions in Listing.lines
    samples: float | None = None  # of warps that waited or issued
    # Samples of warps that waited, by reason as the counters name it.
    reasons: Mapping[str, float] = field(default_factory=dict)
    executed: float | None = None  # warp instructions
    wavefronts: float | None = None  # of shared memory
    ideal: float | None = None  # wavefronts without bank conflicts
    excess: float | None = None  # wavefronts over the ideal
    excess_sectors: float | None = None  # of global memory, over what the addresses need

    @property
    def reason(self) -> str:
        """The stall reason with most samples; "" where no warp waited."""
        return max(self.reasons, key=lambda name: self.reasons[name], default="")

    @property
    def waiting(self) -> float | None:
        """Samples of warps that waited for something."""
        return sum(self.reasons.values()) if self.samples is not None else None


@dataclass(frozen=True)
class HotSpotChange:
    """One location in two launches; None where a side has no such location."""

    location_a: CodeLocation | None
    location_b: CodeLocation | None
    text: str | None  # of B, else of A
    a: float | None  # waiting samples
    b: float | None
    by_reason: Mapping[str, float]  # B minus A, the largest change first, reasons without a change left out
    reasons_a: Mapping[str, float] = field(default_factory=dict)  # waiting samples by reason
    reasons_b: Mapping[str, float] = field(default_factory=dict)

    @property
    def reason(self) -> str:
        """What most warps of B waited for, of A where none of B did; "" where none waited."""
        reasons = self.reasons_b or self.reasons_a
        return max(reasons, key=lambda name: reasons[name], default="")

    @property
    def change(self) -> float:
        """B minus A; a location that only one side has changes by all it has."""
        return (self.b or 0.0) - (self.a or 0.0)

    @property
    def is_counting_noise(self) -> bool:
        """Whether no reason changed by more than three roots of all samples here: counting alone does that.

        The samples of one warp depend on each other, so that this is the least noise there can be.
        """
        limit = _SIGMAS * math.sqrt((self.a or 0.0) + (self.b or 0.0))
        return max(map(abs, self.by_reason.values()), default=0.0) <= limit


@dataclass(frozen=True)
class HotRow:
    """A row of two aligned listings with its counts; None where a side has none."""

    function: int  # into Alignment.functions
    row: int  # into its rows
    samples_a: float | None
    samples_b: float | None  # of B's own sampling, not scaled
    executed_a: float | None
    executed_b: float | None


def spots_by_instruction(listing: Listing) -> tuple[HotSpot, ...]:
    """The counts at every instruction."""
    reasons = _reasons(listing)
    return tuple(_instruction_spot(listing, position, reasons) for position in range(len(listing.lines)))


def spots_by_line(listing: Listing) -> tuple[HotSpot, ...]:
    """The counts at every source line, files and lines in order; last the instructions without one."""
    if not listing.has_sources:
        return spots_by_instruction(listing)
    by_source: dict[FileLine, list[int]] = {}
    without_source: list[int] = []
    for position, line in enumerate(listing.lines):
        if line.source:
            by_source.setdefault(line.source, []).append(position)
        else:
            without_source.append(position)
    reasons = _reasons(listing)
    return (
        *(
            _hot_spot(listing, CodeLocation(*source), listing.source_text(source), tuple(positions), reasons)
            for source, positions in sorted(by_source.items())
        ),
        *(_instruction_spot(listing, position, reasons) for position in without_source),
    )


def hottest(spots: Iterable[HotSpot], limit: int) -> list[HotSpot]:
    """The locations with most samples, else with most instructions executed."""
    return sorted(spots, key=lambda spot: (-(spot.samples or 0), -(spot.executed or 0)))[:limit]


def sample_scale(a: Values, b: Values) -> float | None:
    """What a sample of B is worth in samples of A: sampling intervals and passes differ between collections.

    None where a report does not say; counts can then be compared only if both ran under the same settings.
    """
    cycles_per_sample = []
    for values in (a, b):
        interval, passes = values.number(INTERVAL), values.number(PASSES)
        if not interval:
            return None
        cycles_per_sample.append(interval / (passes or 1.0))
    return cycles_per_sample[1] / cycles_per_sample[0]


def hot_spot_changes(
    a: Listing, b: Listing, scale: float = 1.0, alignment: Alignment | None = None
) -> tuple[HotSpotChange, ...]:
    """The locations whose waiting samples changed, most first; samples of B count `scale` (see sample_scale).

    Source lines belong together where their texts are equal or stand in a changed stretch of equal length;
    where no text is embedded, by file name and number. Without line info instructions pair as aligned: by
    `alignment`, where the caller has it already. Nothing where a side has no samples: they are not 0.
    """
    return moved_first(hot_spot_pairs(a, b, scale, alignment))


def moved_first(pairs: Iterable[HotSpotChange]) -> tuple[HotSpotChange, ...]:
    """Of pairs of locations those whose waiting samples changed, most first."""
    return tuple(sorted((pair for pair in pairs if pair.by_reason), key=_largest_first))


def hot_spot_pairs(
    a: Listing, b: Listing, scale: float = 1.0, alignment: Alignment | None = None
) -> tuple[HotSpotChange, ...]:
    """Every location of both launches, changed or not, paired as for `hot_spot_changes`."""
    if not (_reasons(a) and _reasons(b)):
        return ()
    with_lines = a.has_sources and b.has_sources
    spots_a, spots_b = ((spots_by_line if with_lines else spots_by_instruction)(side) for side in (a, b))
    if with_lines:
        partners = _partners(a, b, spots_a, spots_b, alignment)
    else:
        partners = _aligned_positions(alignment or align(a, b))
    unpaired_b = dict(enumerate(spots_b))
    pairs = []
    for position, spot in enumerate(spots_a):
        partner = unpaired_b.pop(partners[position], None) if position in partners else None
        pairs.append(_change(spot, partner, scale))
    pairs += [_change(None, spot, scale) for spot in unpaired_b.values()]
    return tuple(pairs)


def hottest_pairs(pairs: Iterable[HotSpotChange], limit: int) -> list[HotSpotChange]:
    """The places where most warps waited in B, else in A; none where nobody waited."""
    waited = [pair for pair in pairs if pair.a or pair.b]
    return sorted(waited, key=lambda pair: (-(pair.b or 0.0), -(pair.a or 0.0)))[:limit]


def changes_of_reason(changes: Iterable[HotSpotChange], reason: str) -> tuple[HotSpotChange, ...]:
    """The changes of samples that waited for one reason alone, most first."""
    of_reason = [
        replace(
            change,
            a=None if change.a is None else change.reasons_a.get(reason, 0.0),
            b=None if change.b is None else change.reasons_b.get(reason, 0.0),
            by_reason={reason: change.by_reason[reason]},
        )
        for change in changes
        if reason in change.by_reason
    ]
    return tuple(sorted(of_reason, key=_largest_first))


def hottest_rows(
    alignment: Alignment, a: Listing, b: Listing, limit: int, scale: float = 1.0
) -> tuple[HotRow, ...]:
    """The rows with most samples on both sides together, else with most instructions executed.

    Samples of B count `scale` (see sample_scale). Behind these, or where nothing is counted, the first rows
    that differ; never one that neither ran nor differs.
    """
    columns = [
        [_counts_of(listing, name) for listing in (a, b)] for name in (SAMPLES, EXECUTED)
    ]  # of samples and of executions, A's and B's
    ranked = []
    for function, pair in enumerate(alignment.functions):
        for position, row in enumerate(pair.rows):
            counts = [
                (None if row.a is None else of_a(row.a), None if row.b is None else of_b(row.b))
                for of_a, of_b in columns
            ]
            (samples_a, samples_b), (executed_a, executed_b) = counts
            rank = (
                -(samples_a or 0.0) - scale * (samples_b or 0.0),
                -(executed_a or 0.0) - (executed_b or 0.0),
                row.kind in UNCHANGED,
            )
            if rank < (0.0, 0.0, True):
                ranked.append((rank, HotRow(function, position, *counts[0], *counts[1])))
    ranked.sort(key=lambda item: item[0])
    return tuple(row for _, row in ranked[:limit])


def _counts_of(listing: Listing, name: str) -> Callable[[int], float | None]:
    """What a column has at a position; None for no value and where there is no such column."""
    column = listing.counts.get(name)
    values = [] if column is None else column.values.tolist()
    return lambda position: None if not values or math.isnan(values[position]) else values[position]


def stall_totals(spots: Iterable[HotSpot]) -> dict[str, float]:
    """Waiting samples of all locations by reason, most first."""
    totals: dict[str, float] = {}
    for spot in spots:
        for reason, count in spot.reasons.items():
            totals[reason] = totals.get(reason, 0.0) + count
    return dict(sorted(totals.items(), key=lambda item: -item[1]))


# ---- the counts at one location


def _reasons(listing: Listing) -> dict[str, Sequence[float]]:
    """The columns of waiting samples, by reason as the counters name it."""
    columns = {}
    for name, column in listing.counts.items():
        reason = name.removeprefix(STALL)
        if reason != name and not reason.endswith(NOT_ISSUED) and reason != SELECTED:
            columns[_COUNTER_REASONS.get(reason, reason)] = column.values.tolist()
    return columns


def _instruction_spot(listing: Listing, position: int, reasons: Mapping[str, Sequence[float]]) -> HotSpot:
    line = listing.lines[position]
    return _hot_spot(
        listing, CodeLocation(None, 0, line.function, line.offset), line.text, (position,), reasons
    )


def _hot_spot(
    listing: Listing,
    location: CodeLocation,
    text: str | None,
    positions: tuple[int, ...],
    reasons: Mapping[str, Sequence[float]],
) -> HotSpot:
    if len(positions) == 1:  # of thousands of instructions: no sum to form
        waiting = {name: values[positions[0]] for name, values in reasons.items()}
        nonzero = {name: count for name, count in waiting.items() if count and not math.isnan(count)}
    else:
        sums = {name: _sum(values[position] for position in positions) for name, values in reasons.items()}
        nonzero = {name: count for name, count in sums.items() if count}
    columns = (SAMPLES, EXECUTED, WAVEFRONTS, IDEAL, EXCESS, EXCESS_SECTORS)
    samples, *others = (_column_sum(listing, name, positions) for name in columns)
    return HotSpot(location, text, positions, samples, nonzero, *others)


def _column_sum(listing: Listing, name: str, positions: Sequence[int]) -> float | None:
    column = listing.counts.get(name)
    return None if column is None else _sum(float(column.values[position]) for position in positions)


def _sum(values: Iterable[float]) -> float | None:
    """The sum of the values that are not NaN; None where all are."""
    numbers = [value for value in values if not math.isnan(value)]
    return sum(numbers) if numbers else None


# ---- two launches


def _largest_first(change: HotSpotChange) -> tuple[float, float]:
    return -abs(change.change), -max(map(abs, change.by_reason.values()))


def _change(a: HotSpot | None, b: HotSpot | None, scale: float) -> HotSpotChange:
    by_reason: dict[str, float] = {}
    for spot, worth in ((a, -1.0), (b, scale)):
        for reason, count in spot.reasons.items() if spot else ():
            by_reason[reason] = by_reason.get(reason, 0.0) + worth * count
    changed = [(reason, count) for reason, count in by_reason.items() if count]
    # Where a location exists and the sampler saw no warp wait there, its count is 0 and not None.
    waiting_a, waiting_b = (sum(spot.reasons.values()) if spot else None for spot in (a, b))
    return HotSpotChange(
        a.location if a else None,
        b.location if b else None,
        b.text if b and b.text is not None else a.text if a else None,
        waiting_a,
        None if waiting_b is None else waiting_b * scale,
        dict(sorted(changed, key=lambda item: -abs(item[1]))),
        a.reasons if a else {},
        {reason: count * scale for reason, count in b.reasons.items()} if b else {},
    )


def _aligned_positions(alignment: Alignment) -> dict[int, int]:
    """Positions in B's lines by those in A's, of the instructions that belong together."""
    rows = (row for function in alignment.functions for row in function.rows)
    return {row.a: row.b for row in rows if row.a is not None and row.b is not None}


def _partners(
    a: Listing,
    b: Listing,
    spots_a: Sequence[HotSpot],
    spots_b: Sequence[HotSpot],
    alignment: Alignment | None,
) -> dict[int, int]:
    """Positions in spots_b by those in spots_a: lines pair by source, instructions without one as aligned."""
    files_b = {PurePath(file).name: file for spot in spots_b if (file := spot.location.file) is not None}
    same_line: dict[FileLine, FileLine] = {}  # the line of B by the line of A
    for file_a in dict.fromkeys(file for spot in spots_a if (file := spot.location.file) is not None):
        file_b = file_a if file_a in files_b.values() else files_b.get(PurePath(file_a).name)
        if file_b is not None:
            numbers = [spot.location.line for spot in spots_a if spot.location.file == file_a]
            same_line |= _same_lines(a, file_a, b, file_b, numbers)
    position_of_line = {
        (file, spot.location.line): position
        for position, spot in enumerate(spots_b)
        if (file := spot.location.file)
    }
    position_of_instruction = {
        spot.lines[0]: position for position, spot in enumerate(spots_b) if spot.location.file is None
    }
    aligned = _aligned_positions(alignment or align(a, b)) if position_of_instruction else {}
    partners = {}
    for position, spot in enumerate(spots_a):
        file = spot.location.file
        if file is not None:
            partner = position_of_line.get(same_line.get((file, spot.location.line), ("", 0)))
        else:
            partner = position_of_instruction.get(aligned.get(spot.lines[0], -1))
        if partner is not None:
            partners[position] = partner
    return partners


def _same_lines(
    a: Listing, file_a: str, b: Listing, file_b: str, numbers: Sequence[int]
) -> dict[FileLine, FileLine]:
    """The line of B for lines of A: by text, or where a text is missing or both are equal, by number."""
    text_a, text_b = a.texts.get(file_a), b.texts.get(file_b)
    if text_a is None or text_b is None or text_a == text_b:
        return {(file_a, number): (file_b, number) for number in numbers}
    same: dict[FileLine, FileLine] = {}
    matcher = SequenceMatcher(None, source_lines(text_a), source_lines(text_b), autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal" or j - i == m - k:
            same |= {(file_a, i + n + 1): (file_b, k + n + 1) for n in range(j - i)}
    return same
