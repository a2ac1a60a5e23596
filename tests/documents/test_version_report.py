"""Versions as one HTML file: what it holds, that it needs nothing else, and that every text is escaped."""

from __future__ import annotations

import dataclasses
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.documents.version_report import VersionReportDocument, report_versions
from profiler.errors import UnknownName
from profiler.evidence.metric_table import load_metrics
from profiler.store.readable_index import open_store
from tests import lineages, timed_runs

TABLE = load_metrics()
ROOT = Path(__file__).resolve().parents[2]
MOST_BYTES = 5_000_000


class _Elements(HTMLParser):
    """Every element with its attributes, and that each is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def elements(html: str) -> list[tuple[str, dict[str, str | None]]]:
    parser = _Elements()
    parser.feed(html)
    assert not parser.open
    return parser.found


def report_of(data: Path, *names: str, **options: object) -> VersionReportDocument:
    with open_store(str(data)) as store:
        return report_versions(names, TABLE, lambda: store, data=str(data), **options)


def assert_stands_alone(html: str) -> None:
    found = elements(html)
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in found}
    for _, attributes in found:
        assert not {"src", "href"} & set(attributes)
        assert not any(name.startswith("on") for name in attributes)
    assert not re.search(r"url\(|@import|https?:", html)
    assert len(html.encode()) < MOST_BYTES


@pytest.mark.slow
def test_a_measured_report_has_table_histories_and_the_diffs_that_moved(
    sealed_runs: Path, tmp_path: Path
) -> None:
    levels = {"v1": 200e3, "v2": 180e3, "v3": 200.2e3}
    data = timed_runs.seal(tmp_path / "data", *(timed_runs.run(levels, day) for day in range(3)))
    report = report_of(data, "v1", "v2", "v3", "flash/v1")
    assert [(history.name, len(history.points)) for history in report.histories] == [
        (f"flash/{name}", 3) for name in levels
    ]
    assert [diff.name for diff in report.diffs] == ["flash/v2"]
    html = report.to_html()
    assert_stands_alone(html)
    assert html.count("<svg") == 1
    assert html.count("<polyline") == 3
    assert '<td align="left" class="better">✓ better −10 %</td>' in html
    assert "| v2 | 3 | 180" in report.to_markdown()  # in place of the chart
    assert report.to_dict()["headline"] == "v2 against v1: of 1 workload 1 ✓ better"
    named = report_of(data, "v1", "v2", "v3", diffs=["v3"])
    assert [diff.name for diff in named.diffs] == ["flash/v3"]
    with pytest.raises(UnknownName, match="no version of this report"):
        report_of(data, "v1", "v2", diffs=["v3"])


def test_a_lineage_without_gpu_is_reported_by_its_facts_and_says_that_nothing_is_measured(
    tmp_path: Path,
) -> None:
    lineages.dissected(tmp_path)
    html = report_of(tmp_path, "zero", "bad", "alpha", "later").to_html()
    assert_stands_alone(html)
    assert "Nothing is measured" in html
    assert "Not measured: no calls were timed" in html
    assert "is planned: needs a GPU" in html
    assert "is wrong: race at k.cu:6 in bad" in html
    assert "<h4>static: " in html
    assert "<h4>modelled: " in html
    assert "<h4>measured: " not in html


@pytest.mark.slow
def test_facts_are_compared_where_there_are_facts_and_not_where_a_time_is_modelled() -> None:
    with open_store(str(ROOT / "data")) as store:
        report = report_versions(["v2d_a", "v2d_b"], TABLE, lambda: store, data=str(ROOT / "data"))
    assert any(column.place.is_modelled_time for column in report.table.table_columns)
    (diff,) = report.diffs
    assert diff.comparison is not None, diff.refusal
    assert {one.a.evidence.value for one in diff.comparison.comparisons} == {"static", "modelled"}


@pytest.mark.slow
def test_reports_are_explained_by_their_causes(ncar: tuple[str, str]) -> None:
    report = report_versions(list(ncar), TABLE, lambda: open_store())
    html = report.to_html()
    assert_stands_alone(html)
    (diff,) = report.diffs
    assert diff.explanation is not None
    assert diff.explanation.explanations[0].split is not None
    assert re.search(r"<summary>\d+ causes</summary><table>", html)


def test_every_text_is_escaped(tmp_path: Path) -> None:
    evil = "a<img src=x onerror=alert(1)>"
    workload = '"><script>alert(2)</script>'
    runs = [timed_runs.run({"zero": 1e5, evil: 2e5}, day, workload=workload) for day in range(2)]
    runs = [dataclasses.replace(run, run_id=f"2026030{day}T120000-evil") for day, run in enumerate(runs, 1)]
    data = timed_runs.seal(tmp_path / "data", *runs)
    html = report_of(data, "flash/zero", f"flash/{evil}").to_html()
    assert_stands_alone(html)
    assert "&lt;script&gt;" in html


@pytest.mark.slow
def test_the_command_writes_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    data = timed_runs.seal(tmp_path / "data", timed_runs.run({"v1": 2e5, "v2": 1.8e5}, 0))
    monkeypatch.setenv("PROFILER_DATA", str(data))
    out = tmp_path / "report.html"
    assert main(["report", "v1", "v2", "--out", str(out)]) == 0
    assert "v2 against v1: of 1 workload 1 ✓ better" in capsys.readouterr().out
    assert_stands_alone(out.read_text("utf-8"))
    assert main(["report", "v1", "v2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["table"]["baseline"] == "flash/v1"
    for arguments in (["v1", "v2", "--out", "report.pdf"], ["v1", "nonsense"], ["v1", "v2", "--diff", "v1"]):
        assert main(["report", *arguments]) == 2
        assert capsys.readouterr().err.count("\n") == 1
