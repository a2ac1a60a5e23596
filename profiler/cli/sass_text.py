"""How machine code is printed and written as JSON: a listing, two aligned, hot places, what moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from profiler.cli.output import print_table, say
from profiler.compare.resolve_code import SideCode
from profiler.evidence import formatting
from profiler.sass import AlignedRow, Alignment, HotSpot, HotSpotChange, Listing, alignment

CONTEXT = 3  # equal rows printed around each difference
MOVED = 10  # places printed that moved
_SIGNS = {
    alignment.EQUAL: " ",
    alignment.CHANGED: "~",
    alignment.ONLY_A: "-",
    alignment.ONLY_B: "+",
    alignment.UNREAD: "?",
}
UNREAD = "the report holds no SASS text (???): counts per place only"

Json = dict[str, object]


def hot_document(code: SideCode, found: Sequence[HotSpot]) -> Json:
    """One listing's places."""
    listing = code.listing
    return {
        "label": listing.label,
        **_origin(code),
        "has_text": listing.has_text,
        "has_sources": listing.has_sources,
        "functions": list(listing.functions),
        "instructions": len(listing.lines),
        "places": [_place(listing, hot) for hot in found],
    }


def diff_document(codes: Sequence[SideCode], aligned: Alignment, moved: Sequence[HotSpotChange]) -> Json:
    """Two listings aligned, every row, and the places whose waiting samples moved."""
    a, b = (code.listing for code in codes)
    functions = []
    for one in aligned.functions:
        rows = [{"kind": row.kind, "a": _line(a, row.a), "b": _line(b, row.b)} for row in one.rows]
        names = (None if at is None else listing.functions[at] for at, listing in ((one.a, a), (one.b, b)))
        functions.append({**dict(zip("ab", names, strict=True)), "paired_by": one.by, "rows": rows})
    return {
        "a": a.label,
        "b": b.label,
        "origins": {side: _origin(code) for side, code in zip("ab", codes, strict=True)},
        "has_text": {"a": a.has_text, "b": b.has_text},
        "counts": aligned.counts,
        "different": aligned.different,
        "functions": functions,
        "moved": [_mover(one) for one in moved],
    }


def _origin(code: SideCode) -> Json:
    origin = code.origin
    told = {"run": origin.run_id, "arch": origin.arch, "compiler": origin.compiler}
    return {"evidence": str(origin.evidence), **told, "note": origin.note or None}


def print_hot(code: SideCode, found: Sequence[HotSpot], hidden: int) -> None:
    """A row a place, with the counts that the report has."""
    listing = code.listing
    say(f"{listing.label}: {len(listing.lines)} instructions in {len(listing.functions)} function(s)")
    if len(listing.functions) > 1:
        for number, name in enumerate(listing.functions, 1):
            say(f"  {f'[{number}]' if number > 1 else '   '} {name}")
    if code.origin.words:
        say(code.origin.words)
    if not listing.has_text:
        say(UNREAD)
    heads = ["at", "samples", "waiting for", "executed", "excess wavefronts"]
    cells = [
        [hot.location.words, _count(hot.samples), _mostly(hot), _count(hot.executed), _count(hot.excess)]
        for hot in found
    ]
    kept = [at for at in range(len(heads)) if at == 0 or any(row[at] for row in cells)]
    texts = [(hot.text or "???").strip() for hot in found]
    rows = [[row[at] for at in kept] + [text] for row, text in zip(cells, texts, strict=True)]
    print_table(
        [*(heads[at] for at in kept), "code"], rows, right=[n for n, at in enumerate(kept) if at in (1, 3, 4)]
    )
    if hidden:
        say(f"and {hidden} more places: all without --hot")


def print_diff(
    codes: Sequence[SideCode], aligned: Alignment, moved: Sequence[HotSpotChange], *, everything: bool
) -> None:
    """The rows that differ with some around them, as a unified diff; then what moved."""
    a, b = (code.listing for code in codes)
    for side, code in zip("AB", codes, strict=True):
        say(": ".join(filter(None, (f"{side} {code.listing.label}", code.origin.words))))
    if words := compilers_differ(codes):
        say(words)
    if not (a.has_text and b.has_text):
        say(UNREAD)
    say(summary(aligned))
    for one in aligned.functions:
        rows = one.rows if everything else tuple(_near(one.rows))
        if rows:
            names = [
                None if at is None else listing.functions[at] for at, listing in ((one.a, a), (one.b, b))
            ]
            say(
                "\n" + " → ".join(dict.fromkeys(name or "none" for name in names)) + f"  (paired by {one.by})"
            )
        for row in rows:
            say("  ⋯" if row is None else "\n".join(_unified(row, a, b)))
    if moved:
        say("\nwaiting samples that moved")
        rows_moved = [
            (
                (one.location_a.words if one.location_a else "–"),
                (one.location_b.words if one.location_b else "–"),
                _count(one.a),
                _count(one.b),
                _reasons(one) + (" (counting noise)" if one.is_counting_noise else ""),
                (one.text or "???").strip(),
            )
            for one in moved[:MOVED]
        ]
        print_table(("A at", "B at", "A", "B", "by reason", "code"), rows_moved, right=(2, 3))
        if len(moved) > MOVED:
            say(f"and {len(moved) - MOVED} more places: --json has all")


def compilers_differ(codes: Sequence[SideCode]) -> str:
    """What is said where two compilers made the two sides: not all that differs is the versions' own."""
    made = [code.origin.compiler for code in codes if code.origin.compiler]
    return f"compilers differ: {made[0]} and {made[1]}" if len(set(made)) > 1 else ""


def summary(aligned: Alignment) -> str:
    """How many rows there are of each kind, in words."""
    told = {kind: count for kind, count in aligned.counts.items() if count}
    words = ", ".join(f"{count} {kind}" for kind, count in told.items()) or "no instructions"
    return f"{words}" + ("" if aligned.different or alignment.UNREAD in told else ": no difference")


def _near(rows: Sequence[AlignedRow]) -> Iterator[AlignedRow | None]:
    """The rows near a difference; None for each stretch left out."""
    quiet = (alignment.EQUAL, alignment.UNREAD)
    kept = {
        near
        for at, row in enumerate(rows)
        if row.kind not in quiet
        for near in range(at - CONTEXT, at + CONTEXT + 1)
    }
    last = -1
    for at in sorted(index for index in kept if 0 <= index < len(rows)):
        if at > last + 1:
            yield None
        yield rows[at]
        last = at


def _unified(row: AlignedRow, a: Listing, b: Listing) -> Iterator[str]:
    texts = [None if at is None else _text(listing, at) for at, listing in ((row.a, a), (row.b, b))]
    if row.kind == alignment.CHANGED:
        yield f"- {texts[0]}"
        yield f"+ {texts[1]}"
    else:
        yield f"{_SIGNS[row.kind]} {texts[0] or texts[1]}"


def _text(listing: Listing, at: int) -> str:
    line = listing.lines[at]
    where = f"{PurePath(line.source[0]).name}:{line.source[1]}" if line.source else ""
    return f"{line.offset:#06x}  {line.text or f'??? {where}'.rstrip()}"


def _line(listing: Listing, at: int | None) -> Json | None:
    if at is None:
        return None
    line = listing.lines[at]
    source = f"{line.source[0]}:{line.source[1]}" if line.source else None
    return {"offset": line.offset, "text": line.text, "masked": line.masked, "source": source}


def _place(listing: Listing, hot: HotSpot) -> Json:
    first = listing.lines[hot.lines[0]]
    return {
        "place": hot.location.words,
        "file": hot.location.file,
        "line": hot.location.line or None,
        "function": listing.functions[first.function],
        "offset": hot.location.offset if hot.location.file is None else None,
        "text": hot.text,
        "class": first.opcode_class or None if hot.location.file is None else None,
        "instructions": len(hot.lines),
        "samples": hot.samples,
        "waiting": dict(hot.reasons),
        "executed": hot.executed,
        "shared_wavefronts": hot.wavefronts,
        "shared_ideal": hot.ideal,
        "shared_excess": hot.excess,
    }


def _mover(one: HotSpotChange) -> Json:
    return {
        "place_a": one.location_a.words if one.location_a else None,
        "place_b": one.location_b.words if one.location_b else None,
        "text": one.text,
        "a": one.a,
        "b": one.b,
        "moved": one.change,
        "by_reason": dict(one.by_reason),
        "noise": one.is_counting_noise,
    }


def _mostly(hot: HotSpot) -> str:
    if not hot.reasons:
        return ""
    reason = max(hot.reasons, key=lambda name: hot.reasons[name])
    return f"{reason} {100 * hot.reasons[reason] / (hot.samples or 1):.0f} %"


def _reasons(one: HotSpotChange) -> str:
    first = list(one.by_reason.items())[:2]
    return ", ".join(f"{name} {'+' if n > 0 else formatting.MINUS}{_count(abs(n))}" for name, n in first)


def _count(number: float | None) -> str:
    return "" if number is None else formatting.digits(round(number))
