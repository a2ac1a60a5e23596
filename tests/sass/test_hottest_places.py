"""The hottest lines and instructions in one table: nothing counted twice, nothing hot left out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from profiler.reports import read
from profiler.sass import hotspots
from profiler.sass.hottest_places import (
    AMOUNTS,
    INSTRUCTIONS,
    LINES,
    LINES_AND_INSTRUCTIONS,
    hot_places,
    present_amounts,
    static_lines,
)
from profiler.sass.listing import FunctionCode, Listing, listing_of_launch, make_listing
from profiler.sass.source_diff import TrafficRow


@pytest.fixture(scope="module")
def sampled(made_reports: Path) -> Listing:
    """A launch with line info and samples of several files."""
    path = made_reports / "cutlass" / "report80.ncu-rep"
    return listing_of_launch(read.launch_detail(path, 0))


@pytest.fixture(scope="module")
def spots(sampled: Listing) -> tuple[hotspots.HotSpot, ...]:
    return hotspots.spots_by_instruction(sampled)


@pytest.mark.parametrize("kind", [LINES, INSTRUCTIONS])
def test_the_shares_of_all_places_add_up_to_one(sampled: Listing, kind: str) -> None:
    places = hot_places(sampled, kind)
    assert sum(place.share or 0.0 for place in places) == pytest.approx(1.0)
    samples = [place.spot.samples or 0.0 for place in places]
    assert samples == sorted(samples, reverse=True)
    assert min(samples) > 0


def test_a_line_is_followed_by_its_own_hottest_instructions(sampled: Listing) -> None:
    places = hot_places(sampled, LINES_AND_INSTRUCTIONS)
    lines = [place for place in places if not place.is_part]
    assert lines == list(hot_places(sampled, LINES))
    line = places[0]
    assert any(place.is_part for place in places)
    for place in places:
        if place.is_part:
            assert set(place.spot.lines) < set(line.spot.lines) or place.spot.lines == line.spot.lines
            assert (place.spot.samples or 0.0) <= (line.spot.samples or 0.0)
        else:
            line = place


def test_every_amount_orders_by_itself(sampled: Listing, spots: tuple[hotspots.HotSpot, ...]) -> None:
    present = present_amounts(spots)
    assert {"samples", "executed"} <= set(present)
    for name in present:
        amounts = [
            AMOUNTS[name](place.spot) or 0.0 for place in hot_places(sampled, INSTRUCTIONS, name, "", spots)
        ]
        assert amounts == sorted(amounts, reverse=True)
        assert sum(amounts) == pytest.approx(sum(AMOUNTS[name](spot) or 0.0 for spot in spots))


def test_words_find_a_line_by_its_instructions(sampled: Listing) -> None:
    found = hot_places(sampled, LINES, "executed", "ffma")
    assert found
    for place in found:
        texts = [sampled.lines[position].text or "" for position in place.spot.lines]
        assert any("FFMA" in text.upper() for text in texts)
    assert hot_places(sampled, LINES, "samples", "no_such_word") == ()


def test_without_line_info_instructions_stand_by_themselves(sampled: Listing) -> None:
    bare = replace(sampled, lines=tuple(replace(line, source=None) for line in sampled.lines))
    assert hot_places(bare, LINES_AND_INSTRUCTIONS) == hot_places(bare, INSTRUCTIONS)


def test_of_code_that_nobody_ran_conflicts_stand_first_and_lines_without_instructions_stay() -> None:
    code = FunctionCode(
        "k", ((0, "LDS R1, [R2] ;"), (16, "EXIT ;")), (("/there/k.cu", 2), ("/there/k.cu", 3))
    )
    compiled = replace(make_listing((code,), "k"), texts={"/there/k.cu": "one\ntwo\nthree\nfour\n"})
    traffic = [
        TrafficRow("k.cu", 2, "load", 1, 8, 8),
        TrafficRow("k.cu", 4, "store", 1, 40, 10),
        TrafficRow("k.cu", 4, "load", 1, 10, 10),
    ]
    first, second, third = static_lines(compiled, traffic)
    assert (first.location.words, first.conflicts, first.kinds, first.instructions) == (
        "k.cu:4",
        30,
        ("store", "load"),
        0,
    )
    assert first.text == "four"
    assert (second.location.words, second.wavefronts, second.instructions) == ("k.cu:2", 8, 1)
    assert (third.location.words, third.wavefronts, third.conflicts) == ("k.cu:3", None, None)
    assert [line.location.words for line in static_lines(compiled, traffic, "store four")] == ["k.cu:4"]
