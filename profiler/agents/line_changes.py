"""Where two sides spend their samples, or their modelled time, by source line: B beside A."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from profiler.agents.modelled_change import modelled_lines
from profiler.compare.resolve_code import CodeChoice, SideCode, resolve_code, sample_scale
from profiler.evidence.values import Evidence
from profiler.sass.hotspots import HotSpot, spots_by_line

if TYPE_CHECKING:
    from profiler.store.index import Store

Json = dict[str, Any]


@dataclass(frozen=True)
class LineChanges:
    """The lines of both sides, the largest change first, and what the numbers are."""

    document: Json
    sentences: list[str]
    labels: Mapping[str, str]  # of the sides, A and B


def line_changes(a: str, b: str, choice: CodeChoice, opener: Callable[[], Store]) -> LineChanges | None:
    """B's samples by source line beside A's, in samples of A; of code that nobody ran the modelled time.

    None where a side names no source line, or nothing is counted on one: instructions are all there is then.
    Raises as `resolve_code`.
    """
    codes = resolve_code([a, b], choice, opener)
    if not all(code.listing.has_sources for code in codes):
        return None
    sides = [spots_by_line(code.listing) for code in codes]
    labels = {code.listing.label: letter for code, letter in zip(codes, "AB", strict=True)}
    head = {"a": codes[0].listing.label, "b": codes[1].listing.label}
    if all(any(spot.samples for spot in spots) for spots in sides):
        places = _sampled(sides[0], sides[1], sample_scale(codes))
        totals = {key: sum(place.get(key) or 0 for place in places) for key in ("a_samples", "b_samples")}
        words = (
            "Samples of warps by source line; those of B in samples of A, so that they compare as times do."
        )
        document = {**head, "state": Evidence.MEASURED.value, **totals, "places": places}
        return LineChanges(document, [words, *_largest(places, "b_samples", totals["b_samples"])], labels)
    places, sentences = _modelled(codes, (a, b), opener)
    if not places:
        return None
    document = {**head, "state": Evidence.MODELLED.value, "places": places}
    return LineChanges(document, [*sentences, *_largest(places, "b_us", None)], labels)


def _sampled(a: Iterable[HotSpot], b: Iterable[HotSpot], scale: float) -> list[Json]:
    of_a: dict[tuple[str, str], deque[HotSpot]] = defaultdict(deque)
    for spot in a:
        of_a[_key(spot)].append(spot)
    rows: list[tuple[HotSpot | None, HotSpot | None]] = []
    for spot in b:
        partners = of_a.get(_key(spot))
        rows.append((partners.popleft() if partners else None, spot))
    edited = {spot.location.words: spot for left in of_a.values() for spot in left}
    rows = [(before or (after and edited.pop(after.location.words, None)), after) for before, after in rows]
    rows += [(spot, None) for spot in edited.values()]
    places = []
    for before, after in rows:
        a_samples = before.samples if before else None
        b_samples = after.samples * scale if after and after.samples is not None else None
        if not (a_samples or b_samples):
            continue
        shown = after or before
        assert shown is not None
        places.append(
            {
                "place": shown.location.words,
                "place_a": before.location.words if before and before.location != shown.location else None,
                "text": shown.text,
                "text_a": before.text if before and before.text != shown.text else None,
                "a_samples": a_samples,
                "b_samples": b_samples,
                "moved": (b_samples or 0.0) - (a_samples or 0.0),
                "waiting": _two_commonest(shown.reasons),
            }
        )
    return sorted(places, key=lambda place: -abs(place["moved"]))


def _modelled(
    codes: Iterable[SideCode], names: tuple[str, str], opener: Callable[[], Store]
) -> tuple[list[Json], list[str]]:
    """Microseconds of the modelled time by line, of the workload that the shares are of."""
    sides = [
        modelled_lines(name, code.origin.arch, opener, by_line=True)
        for code, name in zip(codes, names, strict=True)
    ]
    if not all(side.shares and side.time_us for side in sides) or sides[0].where != sides[1].where:
        return [], []
    before, after = sides
    texts = {spot.location.words: spot.text for code in codes for spot in spots_by_line(code.listing)}
    places = []
    for place in {**after.shares, **before.shares}:
        times = [
            None if (share := side.shares.get(place)) is None else share * side.time_us
            for side in (before, after)
        ]
        moved = (times[1] or 0.0) - (times[0] or 0.0)
        row = {"place": place, "text": texts.get(place), "a_us": times[0], "b_us": times[1], "moved": moved}
        places.append(row)
    sentence = (
        f"No GPU sampled this code: modelled time by source line, on {after.where}. A side without a time "
        "for a line spends next to none there, or has no such line."
    )
    return sorted(places, key=lambda place: -abs(place["moved"])), [sentence]


def _key(spot: HotSpot) -> tuple[str, str]:
    """What a line is known by in both sides: its file and text, as line numbers move; else where it is."""
    text = "".join((spot.text or "").split())
    if spot.location.file is None or not text:
        return "", spot.location.words
    return spot.location.file, text


def _two_commonest(reasons: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(reasons.items(), key=lambda item: -item[1])[:2])


def _largest(places: list[Json], key: str, total: float | None) -> list[str]:
    worse = next((place for place in places if place["moved"] > 0), None)
    better = next((place for place in places if place["moved"] < 0), None)
    sentences = []
    for place, word in ((worse, "more"), (better, "less")):
        if place is not None:
            moved = place["moved"]
            words = (
                f"{moved:+.3g} us" if total is None else f"{moved:+,.0f} samples, {abs(moved) / total:.0%}"
            )
            sentences.append(f"Most {word} in B: {place['place']}, {words}{' of those of B' * bool(total)}.")
    return sentences
