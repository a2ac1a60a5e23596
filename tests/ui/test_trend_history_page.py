"""Trends over nights of timed calls: relative by default, one line isolated, a card, a grid."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profiler.ui.theme import light
from tests import lineages, timed_runs
from tests.timed_runs import run
from tests.ui.test_pages import charts, page, text

pytestmark = [pytest.mark.usefixtures("pages_of"), pytest.mark.slow]  # the pages are run whole
NIGHTS = 24
STEP = 14


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions timed every night; the machine code of one changed and it got 7 % slower."""
    runs = []
    for night in range(NIGHTS):
        is_slow = night >= STEP
        levels = {"v1": 170e3, "v2": 150e3 * (1.07 if is_slow else 1.0)}
        told = {"nvcc": "13.1" if is_slow else "13.0", "git_commit": f"{night // 4 + 1:07x}" + "0" * 33}
        sass = {"v1": "one", "v2": "three" if is_slow else "two"}
        runs.append(run(levels, night, sass=sass, told=told))
    return timed_runs.seal(tmp_path_factory.mktemp("nights"), *runs)


def isolated(figure: dict[str, object]) -> list[str]:
    """The lines in the accent."""
    traces = figure["data"]
    assert isinstance(traces, list)
    return [
        trace["name"]
        for trace in traces
        if trace.get("line", {}).get("color") == light("accent") and "name" in trace
    ]


def test_the_page_opens_relative_over_time_with_the_line_that_stepped(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("trends", nights, monkeypatch)
    (figure,) = charts(app)
    assert figure["layout"]["xaxis"]["type"] == "date"
    low, high = figure["layout"]["yaxis"]["range"]
    assert high - low < 25, "per cent, so that 7 of them are seen"
    assert isolated(figure) == ["v2"]
    assert not dict(app.query_params)
    words = " ".join(re.sub(r"<[^>]+>", " ", note["text"]) for note in figure["layout"]["annotations"])
    assert re.search(r"! worse \+[67]\.\d\s%", words), words
    assert "nvcc 13.0 → 13.1; machine code changed" in words
    assert "band: 95 % of each run's own median; dots: samples" in words
    dots = [trace for trace in figure["data"] if trace.get("marker", {}).get("opacity", 1) < 1]
    assert dots
    assert sum(len(trace["x"]) for trace in figure["data"]) < 2500


def test_none_isolated_is_a_choice_that_the_address_keeps(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (figure,) = charts(page("trends", nights, monkeypatch, isolate="none"))
    assert isolated(figure) == []


def test_commits_are_an_axis_and_runs_of_one_stand_together(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (figure,) = charts(page("trends", nights, monkeypatch, over="commits"))
    assert len(figure["layout"]["xaxis"]["ticktext"]) == NIGHTS // 4
    line = next(trace for trace in figure["data"] if trace.get("name") == "v1")
    assert sorted({round(x) for x in line["x"]}) == list(range(NIGHTS // 4))


def test_a_range_and_a_part_of_the_axis_are_taken_from_the_address(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = {"from": "2026-03-10T00:00", "to": "2026-03-12T00:00"}
    app = page("trends", nights, monkeypatch, **part)
    (figure,) = charts(app)
    begin, end = figure["layout"]["xaxis"]["range"]
    assert end - begin == 2 * 86_400_000
    assert figure["layout"]["meta"] == {"zoom": ["from", "to"]}
    assert "the whole range" in text(app)


def test_a_point_in_the_address_has_a_card_with_where_to_go(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (figure,) = charts(page("trends", nights, monkeypatch))
    line = next(trace for trace in figure["data"] if trace.get("name") == "v2")
    label, at = line["customdata"][STEP]
    app = page("trends", nights, monkeypatch, isolate=label, at=at)
    shown = text(app)
    assert re.search(r"95 % 1\d\d µs to 1\d\d µs, 100 calls · \+[67]\.\d % since the first", shown), shown
    assert "since the one before: nvcc 13.0 → 13.1; machine code changed" in shown
    body = " ".join(element.value for element in app.get("html"))
    for words in ("run", "diff with 03-14", "code", "link to this point", "next point ›"):
        assert f">{words}<" in body, words


def test_a_point_that_is_not_there_is_one_line(nights: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = text(page("trends", nights, monkeypatch, isolate="v2", at="v2~gone"))
    assert "v2 has no number at v2 in run gone here" in shown


def test_of_a_baseline_every_line_is_read_against_its_newest_number(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("trends", nights, monkeypatch, scale="of baseline", base="v1", isolate="v2")
    (figure,) = charts(app)
    heights = {
        trace["name"]: [y for y in trace["y"] if y is not None] for trace in figure["data"] if "name" in trace
    }
    assert heights["v1"][-1] == pytest.approx(0.0)
    assert heights["v2"][0] == pytest.approx(-11.8, abs=2.0)


def test_chosen_versions_alone_are_drawn_and_stay_in_the_address(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("trends", nights, monkeypatch, show="v1")
    (figure,) = charts(app)
    names = {trace["name"] for trace in figure["data"] if "name" in trace}
    assert names <= {"v1", "v1, samples", "events; cache warm", "events; cache warm, samples"}
    assert app.query_params["show"] == "v1"


def test_the_grid_has_every_version_with_its_change_and_verdict(
    nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = text(page("trends", nights, monkeypatch))
    assert "Version × workload, latency" in shown
    assert "! worse in 1 of 1" in shown


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (
            {"evidence": "modelled"},
            "evidence modelled: not here; there are measured, static. Shown: measured",
        ),
        ({"over": "commit"}, "over commit: not here; there are versions, commits, time. Shown: time"),
        ({"scale": "bad"}, "scale bad: not here; there are absolute, of first, of baseline. Shown: of first"),
        ({"range": "7"}, "range 7: not here; there are 30 d, 90 d, all. Shown: all"),
        ({"range": "7", "over": "versions"}, "range 7: not here; there are 30 d, 90 d, all"),
        ({"show": "nope"}, "versions nope: not here; there are v1, v2"),
        ({"isolate": "nix"}, "isolate nix: not here; there are v1, v2, none. Shown: v2"),
        ({"base": "nope"}, "baseline nope: not here; there are v1, v2"),
        ({"model_gpu": "NOPE"}, "modelled GPU NOPE: not here; there is none"),
    ],
)
def test_what_the_address_asks_for_and_does_not_get_is_one_line_and_leaves_it(
    asked: dict[str, str], line: str, nights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("trends", nights, monkeypatch, **asked)
    said = [element.value for element in app.html if "The address asks for" in element.value]
    assert [re.sub(r"<[^>]+>", "", one) for one in said] == [f"The address asks for {line}"]
    (name, value), *_ = asked.items()
    assert dict(app.query_params).get(name, "") != value
    assert "asks for" not in text(app.run())


def test_data_without_modelled_times_says_which_evidence_there_is_and_metrics_choose_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineages.dissected(tmp_path)
    app = page("trends", tmp_path, monkeypatch, evidence="measured")
    assert re.search("asks for evidence measured: not here; there (are|is only) .*static", text(app))
    assert app.query_params.get("evidence", ["none of two"]) != "measured"
    app = page("trends", tmp_path, monkeypatch, metrics="registers")
    assert "asks for" not in text(app)
    assert app.query_params["metrics"] == "static_registers"
    assert "registers, compiled" in str(charts(app))


def test_a_workload_where_reports_name_none_is_said_to_be_none(
    made_data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("trends", made_data, monkeypatch, family="ncar", workload="zzz")
    assert "asks for workload zzz: not here; there is none" in text(app)
    assert "workload" not in app.query_params
