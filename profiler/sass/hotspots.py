"""Where in the code the counts fall: hot lines of one launch, and the lines that moved between two."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from pathlib import PurePath

from profiler.evidence import Values
from profiler.reports import source_lines
from profiler.sass import alignment
from profiler.sass.listing import FileLine, Listing

SAMPLES = "smsp__pcsamp_sample_count"
EXECUTED = "inst_executed"
WAVEFRONTS = "memory_l1_wavefronts_shared"
IDEAL = "memory_l1_wavefronts_shared_ideal"
EXCESS = "derived__memory_l1_wavefronts_shared_excessive"
STALL = "smsp__pcsamp_warps_issue_stalled_"
NOT_ISSUED = "_not_issued"
SELECTED = "selected"  # no waiting: the warp was issuing
INTERVAL = "smsp__pcsamp_interval_cycles"
PASSES = "smsp__pcsamp_aggregated_passes"
DROPPED = "smsp__pcsamp_dropped_bytes"
_SIGMAS = 3.0
# What sampling calls otherwise than the counters do, and so the time identity.
_COUNTED_AS = {"no_instructions": "no_instruction", "warpgroup_arrive": "gmma"}


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
    """The counts of one place; None where the report has none there, which is not 0."""

    location: CodeLocation
    text: str | None  # the source line, or the instruction; None where the report holds no text
    lines: tuple[int, ...]  # its instructions, as positions in Listing.lines
    samples: float | None = None  # waiting and issuing
    reasons: Mapping[str, float] = field(
        default_factory=dict
    )  # of the waiting ones, as the counters name them
    executed: float | None = None  # warp instructions
    wavefronts: float | None = None  # shared memory
    ideal: float | None = None
    excess: float | None = None  # wavefronts over the ideal

    @property
    def waiting(self) -> float | None:
        """Samples of warps that waited for something."""
        return sum(self.reasons.values()) if self.samples is not None else None


@dataclass(frozen=True)
class HotSpotChange:
    """One place in both launches; None where a side has no such place."""

    location_a: CodeLocation | None
    location_b: CodeLocation | None
    text: str | None  # of B, else of A
    a: float | None
    b: float | None
    by_reason: Mapping[str, float]  # B minus A, largest move first, nothing that did not move

    @property
    def moved(self) -> float:
        """B minus A; a place that only one side has moves by all it has."""
        return (self.b or 0.0) - (self.a or 0.0)

    @property
    def noise(self) -> bool:
        """Whether no reason moved by more than counting alone lets it: three roots of all samples here.

        Samples of one warp hang together, so this is the least noise there can be.
        """
        limit = _SIGMAS * math.sqrt((self.a or 0.0) + (self.b or 0.0))
        return max(map(abs, self.by_reason.values()), default=0.0) <= limit


def spots_by_instruction(listing: Listing) -> tuple[HotSpot, ...]:
    """The counts of every instruction."""
    reasons = _reasons(listing)
    return tuple(
        _hot(listing, CodeLocation(None, 0, line.function, line.offset), line.text, (at,), reasons)
        for at, line in enumerate(listing.lines)
    )


def spots_by_line(listing: Listing) -> tuple[HotSpot, ...]:
    """The counts of every source line, files and lines in order; last the instructions without one."""
    if not listing.has_sources:
        return spots_by_instruction(listing)
    groups: dict[FileLine, list[int]] = {}
    alone: list[int] = []
    for at, line in enumerate(listing.lines):
        if line.source:
            groups.setdefault(line.source, []).append(at)
        else:
            alone.append(at)
    reasons = _reasons(listing)
    found = [
        _hot(listing, CodeLocation(*source), listing.source_text(source), tuple(lines), reasons)
        for source, lines in sorted(groups.items())
    ]
    for at in alone:
        line = listing.lines[at]
        found.append(
            _hot(listing, CodeLocation(None, 0, line.function, line.offset), line.text, (at,), reasons)
        )
    return tuple(found)


def hottest(found: Iterable[HotSpot], limit: int) -> list[HotSpot]:
    """The places with most samples, else with most instructions executed."""
    return sorted(found, key=lambda hot: (-(hot.samples or 0), -(hot.executed or 0)))[:limit]


def sample_scale(a: Values, b: Values) -> float | None:
    """What a sample of B is worth in samples of A: sampling intervals and passes differ between collections.

    None where a report does not say; counts can then be compared only where both ran under one setting.
    """
    worth = []
    for values in (a, b):
        interval, passes = values.number(INTERVAL), values.number(PASSES)
        if not interval:
            return None
        worth.append(interval / (passes or 1.0))
    return worth[1] / worth[0]


def hot_spot_changes(a: Listing, b: Listing, scale: float = 1.0) -> tuple[HotSpotChange, ...]:
    """The places whose waiting samples moved, most first; of B each counts `scale` (see sample_scale).

    Source lines belong together where their texts are equal or stand in a changed stretch of equal length;
    where no text is embedded, by file name and number. Without line info instructions pair as aligned.
    """
    with_lines = a.has_sources and b.has_sources
    left, right = ((spots_by_line if with_lines else spots_by_instruction)(listing) for listing in (a, b))
    partners = _partners(a, b, left, right) if with_lines else _aligned(a, b)
    free = dict(enumerate(right))
    found = []
    for at, hot in enumerate(left):
        other = free.pop(partners[at], None) if at in partners else None
        found.append(_mover(hot, other, scale))
    found += [_mover(None, hot, scale) for hot in free.values()]
    return tuple(sorted((one for one in found if one.by_reason), key=_most_first))


def stall_totals(found: Iterable[HotSpot]) -> dict[str, float]:
    """Waiting samples of all places by reason, most first."""
    total: dict[str, float] = {}
    for hot in found:
        for reason, count in hot.reasons.items():
            total[reason] = total.get(reason, 0.0) + count
    return dict(sorted(total.items(), key=lambda item: -item[1]))


def _most_first(mover: HotSpotChange) -> tuple[float, float]:
    return -abs(mover.moved), -max(map(abs, mover.by_reason.values()))


def _mover(a: HotSpot | None, b: HotSpot | None, scale: float) -> HotSpotChange:
    reasons: dict[str, float] = {}
    for hot, worth in ((a, -1.0), (b, scale)):
        for reason, count in hot.reasons.items() if hot else ():
            reasons[reason] = reasons.get(reason, 0.0) + worth * count
    moved = sorted(((name, n) for name, n in reasons.items() if n), key=lambda item: -abs(item[1]))
    # That the sampler saw nobody wait at a place that is there is a count of 0.
    waiting_a, waiting_b = (sum(hot.reasons.values()) if hot else None for hot in (a, b))
    return HotSpotChange(
        a.location if a else None,
        b.location if b else None,
        b.text if b and b.text is not None else a.text if a else None,
        waiting_a,
        None if waiting_b is None else waiting_b * scale,
        dict(moved),
    )


def _reasons(listing: Listing) -> dict[str, Sequence[float]]:
    """The columns of waiting samples, as the counters name the reasons."""
    found = {}
    for name, column in listing.counts.items():
        reason = name.removeprefix(STALL)
        if reason != name and not reason.endswith(NOT_ISSUED) and reason != SELECTED:
            found[_COUNTED_AS.get(reason, reason)] = column.values.tolist()
    return found


def _hot(
    listing: Listing,
    place: CodeLocation,
    text: str | None,
    lines: tuple[int, ...],
    reasons: Mapping[str, Sequence[float]],
) -> HotSpot:
    waited = {name: _sum(values[at] for at in lines) or 0.0 for name, values in reasons.items()}
    named = (SAMPLES, EXECUTED, WAVEFRONTS, IDEAL, EXCESS)
    samples, executed, wavefronts, ideal, excess = (_column(listing, name, lines) for name in named)
    kept = {name: count for name, count in waited.items() if count}
    return HotSpot(place, text, lines, samples, kept, executed, wavefronts, ideal, excess)


def _column(listing: Listing, name: str, lines: Sequence[int]) -> float | None:
    column = listing.counts.get(name)
    return None if column is None else _sum(float(column.values[at]) for at in lines)


def _sum(values: Iterable[float]) -> float | None:
    """The sum of those that are there; None where none is."""
    there = [value for value in values if not math.isnan(value)]
    return sum(there) if there else None


def _aligned(a: Listing, b: Listing) -> dict[int, int]:
    rows = (row for one in alignment.align(a, b).functions for row in one.rows)
    return {row.a: row.b for row in rows if row.a is not None and row.b is not None}


def _partners(a: Listing, b: Listing, left: Sequence[HotSpot], right: Sequence[HotSpot]) -> dict[int, int]:
    """Positions in `right` by those in `left`: lines by their source, instructions without one as aligned."""
    files = {
        PurePath(hot.location.file).name: hot.location.file for hot in right if hot.location.file is not None
    }
    lines: dict[FileLine, FileLine] = {}
    for name in dict.fromkeys(hot.location.file for hot in left if hot.location.file is not None):
        other = name if name in files.values() else files.get(PurePath(name).name)
        if other is not None:
            lines |= _same_lines(
                a, name, b, other, [hot.location.line for hot in left if hot.location.file == name]
            )
    place_b = {
        (hot.location.file, hot.location.line): at for at, hot in enumerate(right) if hot.location.file
    }
    bare = {hot.lines[0]: at for at, hot in enumerate(right) if hot.location.file is None}
    aligned = _aligned(a, b) if bare else {}
    found = {}
    for at, hot in enumerate(left):
        if hot.location.file is not None:
            partner = place_b.get(lines.get((hot.location.file, hot.location.line), ("", 0)))
        else:
            partner = bare.get(aligned.get(hot.lines[0], -1))
        if partner is not None:
            found[at] = partner
    return found


def _same_lines(
    a: Listing, file_a: str, b: Listing, file_b: str, numbers: Sequence[int]
) -> dict[FileLine, FileLine]:
    texts = a.texts.get(file_a), b.texts.get(file_b)
    if texts[0] is None or texts[1] is None or texts[0] == texts[1]:
        return {(file_a, number): (file_b, number) for number in numbers}
    found: dict[FileLine, FileLine] = {}
    matcher = SequenceMatcher(None, source_lines(texts[0]), source_lines(texts[1]), autojunk=False)
    for tag, i, j, k, m in matcher.get_opcodes():
        if tag == "equal" or j - i == m - k:
            found |= {(file_a, i + n + 1): (file_b, k + n + 1) for n in range(j - i)}
    return found
