"""The machine code of a function that changed: both sides aligned, loops marked, cost of the hot loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from profiler.build.kernel_names import instance_name
from profiler.documents.blocks import Block, Heading, Line, Name, Preformatted
from profiler.documents.code_blocks import diff_blocks
from profiler.model.loop_cost import LoopCost, hot_loop
from profiler.sass.alignment import UNCHANGED, Alignment, align
from profiler.sass.code_changes import FunctionChange, FunctionRows
from profiler.sass.code_words import CodeReader
from profiler.sass.listing import Listing

_LINES_SHOWN = 120  # of one function, unless everything is asked for
_IN_LOOP = "│"  # stands before an instruction for each loop around it


@dataclass(frozen=True)
class ChangedCode:
    """Both sides of a function that changed. Its instructions are static evidence, its cycles modelled."""

    change: FunctionChange
    a: FunctionRows
    b: FunctionRows

    @cached_property
    def loops(self) -> tuple[LoopCost | None, LoopCost | None]:
        """The hot loop of either side."""
        return hot_loop(self.a), hot_loop(self.b)

    @cached_property
    def aligned(self) -> Alignment:
        """Which instructions belong together."""
        return align(_listing(self.a), _listing(self.b))

    @property
    def loop_words(self) -> str:
        """What a pass of the hot loop takes, old → new; "" where neither side has a loop."""
        old, new = self.loops
        if old is None and new is None:
            return ""
        sizes = [f"{loop.instructions:,} instructions" if loop else "no loop" for loop in self.loops]
        words = " → ".join(dict.fromkeys(sizes))
        if old and new and old.cycles is not None and new.cycles is not None:
            cycles = " → ".join(dict.fromkeys(f"{loop.cycles:,.0f}" for loop in (old, new)))
            words += f"; modelled {cycles} cycles per pass of a warp, set by {new.unit}"
        elif unknown := sorted({name for loop in (old, new) if loop for name in loop.without_model}):
            words += f"; cycles are not modelled for {', '.join(unknown)}"
        return words

    def blocks(self, *, everything: bool) -> Iterator[Block]:
        """What differs with the instructions around it."""
        either = self.change.pair.either
        yield Heading((Name(instance_name(either.name)), f", {either.arch}: {self.change.kind.value}"))
        if self.loop_words:
            yield Line(self.loop_words, "hot loop")
        a, b = _marked(self.a), _marked(self.b)
        for block in diff_blocks(a, b, self.aligned, None, everything=everything):
            if not isinstance(block, Preformatted):
                continue
            lines = block.lines
            if not everything and len(lines) > _LINES_SHOWN:
                rest = f"  ⋯ {len(lines) - _LINES_SHOWN:,} more lines: --all"
                lines = [*lines[:_LINES_SHOWN], rest]
            yield Preformatted(lines)

    def as_json(self) -> dict[str, object]:
        """The rows that differ, and the hot loops."""
        (function,) = self.aligned.functions
        return {
            "function": self.change.pair.either.name,
            "arch": self.change.pair.either.arch,
            "hot_loop": {
                side: loop and loop.as_json() for side, loop in zip(("old", "new"), self.loops, strict=True)
            },
            "differing": [
                {
                    "kind": row.kind,
                    "old": None if row.a is None else _line_dict(self.a, row.a),
                    "new": None if row.b is None else _line_dict(self.b, row.b),
                }
                for row in function.rows
                if row.kind not in UNCHANGED
            ],
        }


def read_changed_code(changes: Sequence[FunctionChange], most: int) -> tuple[ChangedCode, ...]:
    """The code of the first `most` functions that both sides have and nvdisasm can read."""
    found: list[ChangedCode] = []
    for change in changes:
        if len(found) >= most:
            break
        a, b = change.pair.a, change.pair.b
        if a is None or b is None or not (a.code.code and b.code.code):
            continue
        rows_a, rows_b = CodeReader(a.arch).rows([a, b])
        if rows_a is not None and rows_b is not None:
            found.append(ChangedCode(change, FunctionRows(a, rows_a), FunctionRows(b, rows_b)))
    return tuple(found)


def _listing(side: FunctionRows) -> Listing:
    rows = tuple(replace(row, function=0, target=row.target and (0, row.target[1])) for row in side.rows)
    return Listing(side.function.short_name, (side.function.name,), rows)


def _marked(side: FunctionRows) -> Listing:
    listing = _listing(side)
    deepest = max(side.graph.depths, default=0)
    lines = [
        replace(line, text=f"{_IN_LOOP * depth:<{deepest}} {line.text}")
        for line, depth in zip(listing.lines, side.graph.depths, strict=True)
    ]
    return replace(listing, lines=tuple(lines))


def _line_dict(side: FunctionRows, position: int) -> dict[str, object]:
    row = side.rows[position]
    return {"offset": row.offset, "text": row.text, "depth": side.graph.depths[position]}
