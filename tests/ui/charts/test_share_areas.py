"""Stacked areas: they fill the whole, stop at a gap with its reason, and are labelled at their last share."""

from typing import Any

from profiler.ui.charts import share_areas
from profiler.ui.charts.share_areas import Mix
from profiler.ui.charts.small_multiples import Axis

SHARES = {"wait": 60.0, "barrier": 40.0}


def areas(figure: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    return [trace for trace in figure["data"] if trace.get("fill") == "toself"]


def test_areas_stand_on_one_another_up_to_all() -> None:
    mixes = [Mix(0.0, SHARES, ""), Mix(1.0, {"wait": 50.0, "barrier": 50.0}, "")]
    wait, barrier = areas(share_areas.figure("t", "c", mixes, Axis(("a", "b"), span=(0, 1)), 100))
    assert (wait["x"], wait["y"]) == ([0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 50.0, 60.0])
    assert barrier["y"] == [60.0, 50.0, 100.0, 100.0]


def test_a_gap_breaks_them_and_is_hatched_with_its_reason() -> None:
    mixes = [Mix(0.0, SHARES, ""), Mix(1.0, {}, "", "not collected"), Mix(2.0, SHARES, "")]
    figure = share_areas.figure("t", "c", mixes, Axis(("a", "b", "c"), span=(0, 2)), 100)
    wait, _ = areas(figure)
    assert [round(x or 0, 2) for x in wait["x"][:4]] == [-0.47, 0.47, 0.47, -0.47]
    assert wait["x"][4] is None
    assert [round(x, 2) for x in wait["x"][5:]] == [1.53, 2.47, 2.47, 1.53], "on the other side of the gap"
    (hatch,) = [trace for trace in figure["data"] if trace["type"] == "bar"]
    assert (hatch["x"], hatch["hovertext"]) == ([1.0], ["not collected"])


def test_labels_name_the_last_shares_escaped() -> None:
    mixes = [Mix(0.0, {"a<b": 60.0, "c": 40.0}, "")]
    figure = share_areas.figure("t", "c", mixes, Axis(("v",), span=(0, 0)), 100)
    texts = [note["text"] for note in figure["layout"]["annotations"]]
    assert any("a&lt;b 60" in text for text in texts)


def test_many_places_are_thinned() -> None:
    mixes = [Mix(float(x), SHARES, "") for x in range(2000)]
    figure = share_areas.figure("t", "c", mixes, Axis(time=True, span=(0, 2000)), 100)
    assert sum(len(trace["x"]) for trace in areas(figure)) < 700
