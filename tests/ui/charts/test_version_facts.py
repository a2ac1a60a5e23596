"""What is known without a GPU, over the versions: numbers, hatches with the reason, claims apart."""

from profiler.ui.charts.version_facts import FactPanel, FactPoint, VersionColumn, figure

COLUMNS = (
    VersionColumn("v1", "plain"),
    VersionColumn("v2", "streaming", gap="wrong: a race on the row <m>"),
    VersionColumn("v3_long_name", "tiles"),
    VersionColumn("v4", "more tiles"),
    VersionColumn("v5", "later", is_planned=True),
)
REGISTERS = FactPanel(
    "registers",
    "static, sm_90a",
    {"v1": FactPoint(34, "34"), "v3_long_name": FactPoint(64, "64"), "v4": FactPoint(40, "40")},
)
CLAIMS = FactPanel(
    "latency",
    "claimed",
    {"v1": FactPoint(1.4e6, "1.4 ms")},
    is_claim=True,
    extra={"v4": FactPoint(4e5, "0.4–0.8 ms goal", 8e5, is_goal=True)},
)


def traces(kind: str) -> list[dict[str, object]]:
    return [trace for trace in figure(COLUMNS, [REGISTERS, CLAIMS])["data"] if trace["type"] == kind]


def test_a_wrong_version_is_a_hatch_through_all_panels_with_its_reason() -> None:
    (hatch,) = traces("bar")
    assert hatch["yaxis"] == "y3"
    assert hatch["x"] == [1.17], "between v1 and v3, and narrower"
    notes = [note["text"] for note in figure(COLUMNS, [REGISTERS])["layout"]["annotations"]]
    assert "v2: wrong: a race on the row &lt;m&gt;" in notes


def test_the_line_joins_neighbours_and_stops_at_a_hatch() -> None:
    lines = [trace for trace in traces("scatter") if trace["mode"] == "lines"]
    assert [line["y"] for line in lines] == [[64, 40]]


def test_claims_stand_in_a_panel_of_their_own_and_nothing_joins_them() -> None:
    claim = next(trace for trace in traces("scatter") if trace.get("name") == "latency")
    assert claim["yaxis"] == "y2"
    assert claim["text"] == ["1.4 ms"]
    goal = traces("scatter")[-1]
    assert (goal["y"], goal["yaxis"]) == ([4e5, 8e5], "y2")


def test_every_version_has_a_name_below_and_every_panel_its_evidence() -> None:
    notes = [note["text"] for note in figure(COLUMNS, [REGISTERS, CLAIMS])["layout"]["annotations"]]
    assert [text for text in notes if text in ("v1", "⊘", "v3_long_name", "v4", "v5")] == [
        "v1",
        "⊘",
        "v3_long_name",
        "v4",
        "v5",
    ]
    assert any("<b>registers</b>" in text and "static, sm_90a" in text for text in notes)


def test_a_panel_of_zeros_has_an_axis() -> None:
    panel = FactPanel("tensor sites", "static", {"v1": FactPoint(0, "0")})
    low, high = figure(COLUMNS, [panel])["layout"]["yaxis"]["range"]
    assert low < 0 < high
