"""Notes and pinned baselines where a version or a run is looked at: kept, shown elsewhere, and taken back."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import streamlit
from streamlit.testing.v1 import AppTest

from profiler.bundles import decisions, location
from profiler.history import baselines
from profiler.history.notes import list_notes
from profiler.ui.data import decisions as page_decisions
from tests import lineages, timed_runs
from tests.timed_runs import run
from tests.ui.test_pages import page, text

pytestmark = [pytest.mark.usefixtures("pages_of"), pytest.mark.slow]  # the pages are run whole


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return timed_runs.seal(tmp_path, run({"v1": 170e3, "v2": 160e3}, 0))


def records(data: Path) -> list[decisions.DecisionRecord]:
    return decisions.load_decisions(location.open_root(str(data)))


def press(app: AppTest, label: str) -> str:
    (button,) = [one for one in app.button if one.label == label]
    button.click().run()
    assert not app.exception, app.exception
    return text(app)


def field(app: AppTest, label: str) -> Any:
    (widget,) = [one for one in app.text_input if one.label == label]
    return widget


def test_a_note_on_a_run_stands_on_its_page_and_is_taken_back(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("runs", data, monkeypatch)
    assert "a note needs a text" in press(app, "Keep")
    field(app, "note").set_value("fans <b>at full speed")
    shown = press(app, "Keep")
    assert "fans <b>at full speed" in shown, "escaped, so that it reads as it was written"
    (note,) = list_notes(records(data))
    assert (note.text, note.who) == ("fans <b>at full speed", decisions.process_user())
    assert note.subject == "20260301T120000-flash-v1-v2"
    press(app, "Remove")
    assert list_notes(records(data)) == []
    press(app, "Undo")
    assert [note.text for note in list_notes(records(data))] == ["fans <b>at full speed"]


def test_a_side_of_a_diff_is_pinned_with_one_click_and_unpinned_with_another(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("diff", data, monkeypatch, a="flash/v1", b="flash/v2")
    shown = press(app, "Pin B as baseline")
    assert "pinned: the baseline of flash is flash/v2 (every workload · every GPU), by " in shown
    assert [pin.version for pin in baselines.list_pins(records(data))] == ["v2"]
    press(app, "Pin A as baseline")
    press(app, "Undo")
    assert [pin.version for pin in baselines.list_pins(records(data))] == ["v2"], "the pin before it is back"


def test_a_note_on_a_version_stands_on_lineage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lineages.dissected(tmp_path)
    app = page("lineage", tmp_path, monkeypatch)
    field(app, "note").set_value("the idea of the paper")
    press(app, "Keep")
    (note,) = list_notes(records(tmp_path))
    assert note.subject.startswith(f"{lineages.FAMILY}/")
    assert "the idea of the paper" in text(page("lineage", tmp_path, monkeypatch))


def test_a_dashboard_for_reading_shows_notes_and_no_forms(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = location.open_root(str(data))
    decisions.write_decision(root, decisions.NOTE, "flash/v1", why="beside a noisy job", who="ada")
    monkeypatch.setenv("PROFILER_READ_ONLY", "1")
    app = page("diff", data, monkeypatch, a="flash/v1", b="flash/v2")
    assert "A, v1 beside a noisy job ada" in text(app)
    labels = {one.label for one in app.button}
    assert not {label for label in labels if label.startswith("Pin") or label in ("Keep", "Remove")}


@pytest.mark.parametrize(
    ("header", "sent", "name", "known_by"),
    [
        ("", {"X-Forwarded-User": "eve"}, None, "the user that this server runs as"),
        ("X-Forwarded-User", {"X-Forwarded-User": " ada "}, "ada", "by the header X-Forwarded-User"),
        ("X-Forwarded-User", {}, None, "the request has no header X-Forwarded-User"),
    ],
)
def test_the_author_is_taken_from_a_header_only_where_the_deployment_names_one(
    monkeypatch: pytest.MonkeyPatch, header: str, sent: dict[str, str], name: str | None, known_by: str
) -> None:
    monkeypatch.setenv("PROFILER_USER_HEADER", header)
    monkeypatch.setattr(streamlit, "context", SimpleNamespace(headers=sent))
    author = page_decisions.author()
    assert author.name == (name or decisions.process_user())
    assert known_by in author.words
