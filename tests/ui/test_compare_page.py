"""The page Compare as Streamlit runs it: a lineage with and without a GPU, sorting, addresses, files."""

from __future__ import annotations

import dataclasses
import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest

from tests import lineages, timed_runs
from tests.ui.test_pages import charts, page, text

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("pages_of")]
LEVELS = {"zero": 200e3, "alpha": 150e3, "theirs": 100e3}


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small lineage with facts, and three of its versions timed on two workloads."""
    folder = tmp_path_factory.mktemp("compare")
    lineages.dissected(folder)
    for day, workload in enumerate(("1x8x512x64", "2x8x2048x64")):
        run = timed_runs.run(LEVELS, 1 + day, family=lineages.FAMILY, workload=workload)
        results = tuple(dataclasses.replace(result, facts=()) for result in run.results)
        timed_runs.seal(folder, dataclasses.replace(run, results=results))
    return folder


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The small lineage with static and modelled facts alone."""
    folder = tmp_path_factory.mktemp("fresh")
    lineages.dissected(folder)
    return folder


def table_rows(app: object) -> dict[str, str]:
    """The text of each row of the table by its version."""
    (html,) = [element.value for element in app.html if "k-box many" in element.value]  # type: ignore[attr-defined]
    body = html.partition("<tbody>")[2]
    rows = [unescape(" ".join(re.sub(r"<[^>]+>", " ", row).split())) for row in body.split("</tr>") if row]
    return {row.split()[0]: row for row in rows if row.strip()}


def test_times_are_judged_and_kernels_of_others_stand_below(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("compare", measured, monkeypatch)
    rows = table_rows(app)
    assert list(rows) == ["alpha", "zero", "outside", "theirs"]
    assert rows["alpha"].count("better") == 2
    assert "baseline" in rows["zero"]
    assert "better" not in rows["theirs"]
    assert "−50" in rows["theirs"]
    assert "alpha against zero: of 2 workloads 2 ✓ better ; it lies behind theirs at" in text(app)
    (chart,) = charts(app)
    assert {trace["type"] for trace in chart["data"]} == {"scatter"}


def test_wrong_and_unmeasured_versions_are_last_with_the_reason_and_no_speed(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for sort in ("latency 1x8x512x64", "-latency 1x8x512x64", "-change 2x8x2048x64"):
        app = page("compare", measured, monkeypatch, versions="bad,zero,later,alpha", sort=sort)
        rows = table_rows(app)
        assert list(rows)[-2:] in (["bad", "later"], ["later", "bad"])
        assert "a race on the row" in rows["bad"]
        assert "µs" not in rows["bad"]
        assert "planned: needs a GPU" in rows["later"]


def test_without_a_gpu_facts_are_compared(fresh: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("compare", fresh, monkeypatch)
    rows = table_rows(app)
    assert "65" in rows["alpha"]  # registers on sm_90a
    assert "! from 0" in rows["alpha"]  # conflicts, modelled
    assert "nothing measured" in text(app)
    assert charts(app)
    bars = page("compare", fresh, monkeypatch, chart="bars", versions="zero,alpha,bad")
    assert {trace["type"] for trace in charts(bars)[0]["data"]} == {"bar"}


def test_what_an_address_names_and_is_not_there_is_said_once(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("compare", measured, monkeypatch, versions="zero,alpha,nonsense", against="alpha")
    assert text(app).count("nonsense: neither a file nor a run or version") == 1
    assert list(table_rows(app)) == ["alpha", "zero"]
    one = page("compare", measured, monkeypatch, versions="zero")
    assert "Choose two or more versions" in text(one)
    file = page("compare", measured, monkeypatch, versions="zero,/etc/passwd.ncu-rep")
    assert "no version or run in the index" in text(file)


def test_a_run_stands_for_its_versions(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = next(path.name for path in (measured / "runs").iterdir() if "zero" in path.name)
    app = page("compare", measured, monkeypatch, versions=run)
    assert {"zero", "alpha"} <= set(table_rows(app))


def test_heads_sort_names_select_and_verdicts_lead_to_the_diff(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("compare", measured, monkeypatch, versions="mine/zero,mine/alpha", row="mine/alpha")
    (html,) = [element.value for element in app.html if "k-box many" in element.value]
    links = [urlparse(unescape(href)) for href in re.findall(r'href="([^"]+)"', html)]
    sorts = [parse_qs(link.query)["sort"][0] for link in links if "sort=" in link.query]
    assert "change 1x8x512x64" in sorts
    assert "-latency 1x8x512x64" in sorts  # the second click on the head that sorts
    (diff, _) = [link for link in links if link.path == "./diff"]
    assert parse_qs(diff.query)["b"] == ["mine/alpha"]
    assert '<tr class="sel">' in html
    accent = [trace for trace in charts(app)[0]["data"] if trace["line"]["color"] == "#6741D9"]
    assert len(accent) == 1


def test_the_table_is_four_files_at_one_click(measured: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = page("compare", measured, monkeypatch)
    labels = [element.proto.label for element in app.get("download_button")]
    assert labels[:4] == ["CSV", "Parquet", "Markdown", "report.html"]


def test_names_are_escaped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    evil = "a<img src=x onerror=alert(1)>"
    run = timed_runs.run({"zero": 1e5, evil: 2e5}, 0, workload="<b>big</b>")
    timed_runs.seal(tmp_path, dataclasses.replace(run, run_id="20260301T120000-flash-evil"))
    app = page("compare", tmp_path, monkeypatch)
    (html,) = [element.value for element in app.html if "k-box many" in element.value]
    assert "<img" not in html
    assert "<b>big" not in html.replace("<b>&lt;b&gt;big", "")
    assert "&lt;img src=x" in html


def test_lineage_and_runs_have_a_box_a_row_that_leads_here(
    measured: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lineage = page("lineage", measured, monkeypatch)
    (drawn,) = [element.value for element in lineage.markdown if "<form" in element.value]
    assert re.findall(r'name="versions" value="([^"]+)"', drawn) == [
        f"mine/{name}" for name in ("zero", "bad", "alpha", "later", "theirs")
    ]
    runs = page("runs", measured, monkeypatch)
    (listed,) = [element.value for element in runs.html if "<form" in element.value]
    ids = {path.name for path in (measured / "runs").iterdir()}
    assert set(re.findall(r'name="versions" value="([^"]+)"', listed)) == ids
    assert 'action="./compare"' in drawn
    assert 'action="./compare"' in listed
