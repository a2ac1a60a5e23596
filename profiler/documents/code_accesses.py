"""Accesses to memory of a kernel that nobody launched, by source line and loop depth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

from profiler.model.cubin import KernelImage
from profiler.model.dimensions import Grid
from profiler.model.shared_layout import PadSearch, SwizzleSearch, find_pad, find_swizzle
from profiler.model.unlaunched_accesses import UnlaunchedAccess, unlaunched_accesses
from profiler.sass.listing import SassLine
from profiler.sass.loops import BlockGraph

_LEAST_SHARE = 0.25  # of what an access costs that is too much, to be spoken of
_UNITS = {"shared": "wavefronts", "global": "sectors"}


@dataclass(frozen=True)
class PlacedAccess:
    """One access, and where it stands."""

    offset: int  # bytes from where its function starts
    opcode: str
    file: str | None
    line: int | None
    loop_depth: int
    access: UnlaunchedAccess

    @property
    def is_wasteful(self) -> bool:
        """Whether a quarter or more of what it costs, at least, would not be needed."""
        excess, least = self.access.excess, self.access.least
        return bool(excess and least and excess >= _LEAST_SHARE * least)

    @property
    def place(self) -> str:
        """`v2d.cu:142`, else the offset in the code."""
        return f"{self.offset:#x}" if self.file is None else f"{PurePath(self.file).name}:{self.line}"

    def as_json(self) -> dict[str, object]:
        """Null for what is not known."""
        access = self.access
        return {
            "offset": self.offset,
            "opcode": self.opcode,
            "file": self.file,
            "line": self.line,
            "loop_depth": self.loop_depth,
            "space": access.space,
            "kind": access.kind,
            "width_bytes": access.width,
            "unit": _UNITS.get(access.space),
            "per_request_least": access.least,
            "per_request_most": access.most,
            "excess_per_request": access.excess,
            "not_known": access.why or None,
        }


@dataclass(frozen=True)
class WastefulLine:
    """The accesses of one line, space and kind that cost too much."""

    place: str
    file: str | None
    line: int | None
    space: str
    kind: str
    loop_depth: int  # the deepest
    count: int  # instructions
    least: float  # of a request of the worst: sectors or wavefronts
    ideal: float

    @property
    def words(self) -> str:
        """`12 loads of shared memory in 1 loop: 32 wavefronts each where 1 would do`."""
        kind = {"copy": "copies"}.get(self.kind, f"{self.kind}s") if self.count > 1 else self.kind
        to = {"load": "of", "store": "to"}.get(self.kind, "to" if self.space == "shared" else "from")
        loops = f" in {self.loop_depth} loop{'s' if self.loop_depth > 1 else ''}" if self.loop_depth else ""
        unit = _UNITS[self.space] if self.least != 1 else _UNITS[self.space].rstrip("s")
        each = " each" if self.count > 1 else ""
        return (
            f"{self.count} {kind} {to} {self.space} memory{loops}: {self.least:.3g} {unit}{each} "
            f"where {self.ideal:.3g} would do"
        )


@dataclass(frozen=True)
class CodeAccesses:
    """The accesses of one kernel for a block of some size."""

    block: Grid
    accesses: tuple[PlacedAccess, ...]
    swizzle: SwizzleSearch | None = None
    pad: PadSearch | None = None

    @property
    def unknown(self) -> dict[str, int]:
        """How many accesses are not known, by reason."""
        reasons: dict[str, int] = {}
        for one in self.accesses:
            if one.access.why:
                reasons[one.access.why] = reasons.get(one.access.why, 0) + 1
        return reasons

    @property
    def unknown_words(self) -> list[str]:
        """`what 2 accesses cost: they depend on values out of memory`."""
        return [
            f"what {count} accesses cost: {why}" if count > 1 else f"what 1 access costs: {why}"
            for why, count in self.unknown.items()
        ]

    @property
    def wasteful(self) -> list[WastefulLine]:
        """Those that cost too much, the most expensive of the deepest loops first."""
        groups: dict[tuple[str, str, str], list[PlacedAccess]] = {}
        for one in self.accesses:
            if one.is_wasteful:
                groups.setdefault((one.place, one.access.space, one.access.kind), []).append(one)
        lines = [_wasteful_line(some) for some in groups.values()]
        return sorted(lines, key=lambda line: (-line.loop_depth, -line.least / line.ideal, line.place))


def _wasteful_line(some: Sequence[PlacedAccess]) -> WastefulLine:
    worst = max(some, key=lambda one: (one.access.excess or 0) / (one.access.least or 1))
    least, excess = worst.access.least or 0, worst.access.excess or 0
    return WastefulLine(
        worst.place,
        worst.file,
        worst.line,
        worst.access.space,
        worst.access.kind,
        max(one.loop_depth for one in some),
        len(some),
        least,
        least - excess,
    )


def code_accesses(
    kernel: KernelImage,
    rows: Sequence[SassLine],
    graph: BlockGraph,
    block: Grid,
    shared_bytes: tuple[int, int] | None,
) -> CodeAccesses:
    """The accesses of a kernel for a block of so many threads along x, y and z.

    rows: its instructions, with their text. shared_bytes: of a block as far as it is known, with what the
    system takes, and at most; with them a swizzle and a pad are sought. Raises NoModel as unlaunched_accesses
    does.
    """
    code = [(row.offset, row.text or "") for row in rows]
    run = unlaunched_accesses(kernel, code, graph, block, with_patterns=shared_bytes is not None)
    placed = []
    for access in run.accesses:
        row = rows[access.position]
        file, line = row.source or (None, None)
        depth = graph.depths[access.position]
        placed.append(PlacedAccess(row.offset, row.opcode, file, line, depth, access))
    swizzle = pad = None
    if shared_bytes is not None and run.patterns:
        last = max(int(pattern.addresses.max()) + pattern.width for pattern in run.patterns)
        size = next((size for size in shared_bytes if size >= last), last)
        swizzle, pad = find_swizzle(run.patterns, size), find_pad(run.patterns)
    return CodeAccesses(block, tuple(placed), swizzle, pad)


def swizzle_dict(search: SwizzleSearch) -> dict[str, object]:
    """The search for a swizzle: wavefronts before and with it, what it is, what is left."""
    swizzle = search.swizzle
    return {
        "wavefronts": search.before,
        "ideal_wavefronts": search.ideal,
        "wavefronts_with_it": search.after,
        "tried": search.tried,
        "bits": swizzle.bits if swizzle else None,
        "base": swizzle.base if swizzle else None,
        "shift": swizzle.shift if swizzle else None,
        "of_2_byte_elements": swizzle.of_elements(2) if swizzle else None,
        "words": swizzle.words if swizzle else None,
        "left": [{"instruction": pattern.position, "conflicts": excess} for pattern, excess in search.left()],
    }


def swizzle_words(search: SwizzleSearch) -> str:
    """What a search for a swizzle found, as a sentence."""
    if search.before == search.ideal:
        return f"no conflicts in {search.before} wavefronts: no swizzle needed"
    if search.swizzle is None:
        return f"no XOR swizzle saves any of {search.before - search.ideal} conflicts ({search.tried} tried)"
    left = search.after - search.ideal
    rest = "all conflicts gone" if not left else f"{left} conflicts left"
    name = f"{search.swizzle.of_elements(2)} of 2-byte elements, {search.swizzle.words}"
    return f"{name}: {search.after} wavefronts instead of {search.before}, {rest}"


def pad_dict(search: PadSearch) -> dict[str, object]:
    """The pad, the wavefronts with it, and the memory that it takes."""
    return {
        "row_bytes": search.pad.row_bytes,
        "pad_bytes": search.pad.bytes,
        "wavefronts_with_it": search.after,
        "extra_shared_bytes": search.extra_bytes,
        "words": search.pad.words,
    }


def pad_words(search: PadSearch, swizzle: SwizzleSearch) -> str:
    """What a pad would do, as a sentence."""
    left = search.after - swizzle.ideal
    rest = "all conflicts gone" if not left else f"{left} conflicts left"
    counts = f"{search.after} wavefronts instead of {swizzle.before}"
    return f"{search.pad.words}: {counts}, {rest}, for {search.extra_bytes} bytes more of shared memory"
