"""Machine code with its counts, or two sides aligned: names to code, and the answer as a document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from profiler.compare.resolve_code import CodeChoice, SideCode, resolve_code, sample_scale
from profiler.documents.blocks import Block, Heading, Line, Name, Notes
from profiler.documents.code_blocks import diff_blocks, moved_blocks, place_table
from profiler.documents.document import Document
from profiler.evidence.values import Evidence
from profiler.sass import alignment
from profiler.sass.alignment import AlignedFunction, AlignedRow, Alignment, align
from profiler.sass.hotspots import (
    HotRow,
    HotSpot,
    HotSpotChange,
    hot_spot_changes,
    hottest,
    hottest_rows,
    spots_by_instruction,
    spots_by_line,
)
from profiler.sass.listing import Listing

if TYPE_CHECKING:
    from profiler.compare.resolve_names import StoreOpener

NO_TEXT = "the report holds no SASS text (???): counts per place only"
NO_COUNTS = (
    "the report holds the code and counts nothing per instruction: collect with `--set full` or "
    "`--section SourceCounters`"
)
_LEFT_OUT_NAMED = 3  # metrics that a sentence names; all are in the JSON


@dataclass(frozen=True, repr=False)
class CodeDocument(Document):
    """One side's machine code: its places, by instruction or by source line."""

    code: SideCode
    places: tuple[HotSpot, ...]
    hidden: int  # colder places that are left out

    columns = (
        "place",
        "function",
        "text",
        "samples",
        "waiting_for",
        "executed",
        "shared_wavefronts",
        "shared_ideal",
        "shared_excess",
        "global_excess_sectors",
    )

    @property
    def listing(self) -> Listing:
        """All its instructions."""
        return self.code.listing

    @property
    def title(self) -> str:
        """What it is the code of."""
        return self.listing.label

    @property
    def sentences(self) -> Sequence[str]:
        """How much there is, where it comes from, and whether it has text."""
        listing = self.listing
        size = f"{len(listing.lines)} instructions in {len(listing.functions)} function(s)"
        no_text = "" if listing.has_text else NO_TEXT
        return tuple(filter(None, (size, self.code.origin.words, no_text, *_what_lacks(self.code))))

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """A row a place, with the counts that the report has."""
        first, *others = self.sentences
        yield Heading((Name(self.title), f": {first}"), 1)
        functions = self.listing.functions
        if len(functions) > 1:
            yield Notes([f"{f'[{n}]' if n > 1 else '   '} {name}" for n, name in enumerate(functions, 1)])
        yield from map(Line, others)
        yield place_table(self.places)
        if self.hidden:
            yield Line(f"and {self.hidden} more places; drop --hot to see all")

    def rows(self) -> list[tuple[object, ...]]:
        """A row a place; None where the report does not count something."""
        return [
            (
                spot.location.words,
                self.listing.functions[self.listing.lines[spot.lines[0]].function],
                spot.text,
                spot.samples,
                spot.reason or None,
                spot.executed,
                spot.wavefronts,
                spot.ideal,
                spot.excess,
                spot.excess_sectors,
            )
            for spot in self.places
        ]

    def _content(self) -> dict[str, object]:
        """The places with all their counts."""
        listing = self.listing
        return {
            "label": listing.label,
            **_origin_dict(self.code),
            "has_text": listing.has_text,
            "has_sources": listing.has_sources,
            "functions": list(listing.functions),
            "instructions": len(listing.lines),
            "left_out": dict(listing.left_out),
            "derived": dict(listing.derived),
            "places": [_spot_dict(listing, spot) for spot in self.places],
        }


@dataclass(frozen=True, repr=False)
class CodeComparisonDocument(Document):
    """Two sides' machine code aligned, and the places whose waiting samples moved."""

    a: SideCode
    b: SideCode
    aligned: Alignment
    moved: tuple[HotSpotChange, ...]
    hot: tuple[HotRow, ...] | None = None  # the hottest rows, the hottest first; None: not asked for

    columns = ("function_a", "function_b", "kind", "offset_a", "offset_b", "text_a", "text_b")

    @property
    def title(self) -> str:
        """Both sides."""
        return f"{self.a.listing.label} → {self.b.listing.label}"

    @property
    def compilers_differ(self) -> str:
        """What is said where two compilers made the sides: not all that differs is the versions' own."""
        compilers = [code.origin.compiler for code in (self.a, self.b) if code.origin.compiler]
        return f"compilers differ: {compilers[0]} and {compilers[1]}" if len(set(compilers)) > 1 else ""

    @property
    def has_text(self) -> bool:
        """Whether both sides have their instructions as text."""
        return self.a.listing.has_text and self.b.listing.has_text

    @property
    def summary(self) -> str:
        """How many rows there are of each kind."""
        counts = {kind: count for kind, count in self.aligned.counts.items() if count}
        words = ", ".join(f"{count} {alignment.KIND_WORDS[kind]}" for kind, count in counts.items())
        words = words or "no instructions"
        is_open = self.aligned.different or alignment.UNREAD in counts
        return words if is_open else f"{words}: no difference"

    @property
    def about_renamed(self) -> str:
        """What renamed rows have in common, and what nobody checked of them; "" where there are none."""
        counts, reassigned = self.aligned.counts, self.aligned.reassigned
        renamed = counts[alignment.RENAMED]
        if not renamed:
            return ""
        words = "renamed: only register numbers differ"
        if reassigned:
            otherwise = f"{reassigned} of {renamed} do not fit one consistent register mapping"
            return f"{words}; {otherwise}, so they may read other values"
        is_all = sum(counts.values()) == renamed + counts[alignment.EQUAL]
        return f"{words}, one to one" + (": otherwise the same code" if is_all else "")

    @property
    def sentences(self) -> Sequence[str]:
        """How many rows differ, and what to know before believing it."""
        no_text = "" if self.has_text else NO_TEXT
        lacking = [
            f"{side}: {words}" for side, code in (("A", self.a), ("B", self.b)) for words in _what_lacks(code)
        ]
        return tuple(
            filter(None, (self.summary, self.about_renamed, self.compilers_differ, no_text, *lacking))
        )

    def blocks(self, *, everything: bool = False) -> Iterator[Block]:
        """What differs as a unified diff, or the hottest rows, then what moved; `everything`: all rows."""
        yield Heading((Name(self.a.listing.label), " → ", Name(self.b.listing.label)), 1)
        sides = (("A", self.a), ("B", self.b))
        yield Notes([f"{side}: {code.origin.words}" for side, code in sides if code.origin.words])
        yield from map(Line, self.sentences)
        listings = self.a.listing, self.b.listing
        yield from diff_blocks(*listings, self.aligned, self.hot, everything=everything)
        yield from moved_blocks(self.moved)

    def rows(self) -> list[tuple[object, ...]]:
        """A row a pair of instructions; None on the side that has none."""
        a, b = self.a.listing, self.b.listing
        return [
            (
                None if pair.a is None else a.functions[pair.a],
                None if pair.b is None else b.functions[pair.b],
                row.kind,
                None if row.a is None else a.lines[row.a].offset,
                None if row.b is None else b.lines[row.b].offset,
                None if row.a is None else a.lines[row.a].text,
                None if row.b is None else b.lines[row.b].text,
            )
            for pair in self.aligned.functions
            for row in pair.rows
        ]

    def _content(self) -> dict[str, object]:
        """Every row, function by function, and what moved."""
        a, b = self.a.listing, self.b.listing
        return {
            "a": a.label,
            "b": b.label,
            "origins": {"a": _origin_dict(self.a), "b": _origin_dict(self.b)},
            "has_text": {"a": a.has_text, "b": b.has_text},
            "left_out": {"a": dict(a.left_out), "b": dict(b.left_out)},
            "derived": {"a": dict(a.derived), "b": dict(b.derived)},
            "counts": self.aligned.counts,
            "different": self.aligned.different,
            "functions": [
                {
                    "a": None if pair.a is None else a.functions[pair.a],
                    "b": None if pair.b is None else b.functions[pair.b],
                    "paired_by": pair.by,
                    "renaming": _renaming_dict(pair),
                    "rows": [_row_dict(row, a, b) for row in pair.rows],
                }
                for pair in self.aligned.functions
            ],
            "moved": [_change_dict(change) for change in self.moved],
            "hot": None if self.hot is None else [self._hot_dict(row) for row in self.hot],
        }

    def _hot_dict(self, hot: HotRow) -> dict[str, object]:
        row = self.aligned.functions[hot.function].rows[hot.row]
        return {
            "function": hot.function,  # into `functions`
            "row": hot.row,  # into its rows
            "kind": row.kind,
            "samples": {"a": hot.samples_a, "b": hot.samples_b},
            "executed": {"a": hot.executed_a, "b": hot.executed_b},
        }


def show_code(
    name: str,
    choice: CodeChoice,
    store_opener: StoreOpener,
    *,
    by_line: bool = False,
    limit: int | None = None,
) -> CodeDocument:
    """The machine code that a name stands for, by instruction or by source line.

    `limit` leaves the hottest places, the hottest first. Raises UnknownName, and CannotJudge where
    there is no machine code.
    """
    (code,) = resolve_code([name], choice, store_opener)
    spots = (spots_by_line if by_line else spots_by_instruction)(code.listing)
    places = hottest(spots, limit) if limit else spots
    return CodeDocument(code, tuple(places), len(spots) - len(places))


def compare_code(
    a: str, b: str, choice: CodeChoice, store_opener: StoreOpener, *, limit: int | None = None
) -> CodeComparisonDocument:
    """The machine code of two names aligned function by function.

    `limit` ranks so many rows, the hottest first; all rows are there either way. Raises as `show_code` does.
    """
    codes = resolve_code([a, b], choice, store_opener)
    code_a, code_b = codes
    scale = sample_scale(codes)
    aligned = align(code_a.listing, code_b.listing)
    changes = hot_spot_changes(code_a.listing, code_b.listing, scale, aligned)
    hot = hottest_rows(aligned, code_a.listing, code_b.listing, limit, scale) if limit else None
    return CodeComparisonDocument(code_a, code_b, aligned, tuple(changes), hot)


def _what_lacks(code: SideCode) -> list[str]:
    """That a report counts nothing per instruction, and the metrics of it that cannot be shown."""
    listing = code.listing
    is_measured = code.origin.evidence is Evidence.MEASURED
    words = [NO_COUNTS] if is_measured and listing.lines and not listing.counts else []
    words += [f"derived: {name}: {source}" for name, source in listing.derived.items()]
    names = list(listing.left_out)
    words += [f"left out: {name}: {listing.left_out[name]}" for name in names[:_LEFT_OUT_NAMED]]
    if len(names) > _LEFT_OUT_NAMED:
        words.append(f"left out: {len(names) - _LEFT_OUT_NAMED} more metrics, named by --json")
    return words


def _renaming_dict(function: AlignedFunction) -> dict[str, object]:
    return {
        "registers": function.renaming.changed,
        "one_to_one": not function.reassigned,
        "rows_otherwise": function.reassigned,
    }


def _origin_dict(code: SideCode) -> dict[str, object]:
    origin = code.origin
    return {
        "evidence": str(origin.evidence),
        "run": origin.run_id,
        "arch": origin.arch,
        "compiler": origin.compiler,
        "note": origin.note or None,
    }


def _spot_dict(listing: Listing, spot: HotSpot) -> dict[str, object]:
    first, is_instruction = listing.lines[spot.lines[0]], spot.location.file is None
    return {
        "place": spot.location.words,
        "file": spot.location.file,
        "line": spot.location.line or None,
        "function": listing.functions[first.function],
        "offset": spot.location.offset if is_instruction else None,
        "text": spot.text,
        "class": first.opcode_class or None if is_instruction else None,
        "instructions": len(spot.lines),
        "samples": spot.samples,
        "waiting": dict(spot.reasons),
        "executed": spot.executed,
        "shared_wavefronts": spot.wavefronts,
        "shared_ideal": spot.ideal,
        "shared_excess": spot.excess,
        "global_excess_sectors": spot.excess_sectors,
    }


def _row_dict(row: AlignedRow, a: Listing, b: Listing) -> dict[str, object]:
    return {"kind": row.kind, "a": _line_dict(a, row.a), "b": _line_dict(b, row.b)}


def _line_dict(listing: Listing, index: int | None) -> dict[str, object] | None:
    if index is None:
        return None
    line = listing.lines[index]
    source = f"{line.source[0]}:{line.source[1]}" if line.source else None
    return {"offset": line.offset, "text": line.text, "masked": line.masked, "source": source}


def _change_dict(change: HotSpotChange) -> dict[str, object]:
    return {
        "place_a": change.location_a.words if change.location_a else None,
        "place_b": change.location_b.words if change.location_b else None,
        "text": change.text,
        "a": change.a,
        "b": change.b,
        "moved": change.change,
        "by_reason": dict(change.by_reason),
        "noise": change.is_counting_noise,
    }
