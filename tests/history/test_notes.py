"""Notes on runs and versions: kept with who and when, listed by what they are about, and taken back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiler import cli
from profiler.bundles import decisions, location
from profiler.errors import ProfilerError, UnknownName
from profiler.history.notes import list_notes, withdraw_note, write_note
from profiler.store.readable_index import open_store
from tests import timed_runs
from tests.timed_runs import run


@pytest.fixture(autouse=True)
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    monkeypatch.delenv("PROFILER_DB", raising=False)
    return timed_runs.seal(tmp_path, run({"v1": 170e3}, 0))


def test_a_note_is_about_a_version_or_a_run_and_can_be_taken_back(data: Path) -> None:
    root, store = location.open_root(), open_store()
    run_id = store.runs()[0].run_id
    of_version = write_note(root, store, "v1", "  measured beside a noisy job ", who="ada")
    of_run = write_note(root, store, run_id, "fans at full speed")
    records = decisions.load_decisions(root)
    assert list_notes(records) == [of_version, of_run]
    assert list_notes(records, "flash/v1") == [of_version]
    assert (of_version.subject, of_version.text, of_version.who) == (
        "flash/v1",
        "measured beside a noisy job",
        "ada",
    )
    assert of_run.subject == run_id
    assert withdraw_note(root, of_run.id) == of_run
    assert list_notes(decisions.load_decisions(root)) == [of_version]
    store.close()


def test_nothing_is_kept_about_what_is_not_there_or_without_words(data: Path) -> None:
    root, store = location.open_root(), open_store()
    with pytest.raises(UnknownName):
        write_note(root, store, "flash/v9", "text")
    with pytest.raises(ProfilerError, match="a note needs a text"):
        write_note(root, store, "v1", " ")
    with pytest.raises(UnknownName, match="no note is called 2026"):
        withdraw_note(root, "2026")
    assert decisions.load_decisions(root) == []
    store.close()


def test_the_command_keeps_lists_and_takes_back(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["decide", "note", "v1", "fans", "at", "full", "speed"]) == 0
    assert "flash/v1: noted; `profiler decide note --undo " in capsys.readouterr().out
    assert cli.main(["decide", "note", "--list", "v1", "--json"]) == 0
    (note,) = json.loads(capsys.readouterr().out)["notes"]
    assert (note["subject"], note["text"]) == ("flash/v1", "fans at full speed")
    assert cli.main(["decide", "note", "--undo", note["id"]]) == 0
    capsys.readouterr()
    assert cli.main(["decide", "note", "--list"]) == 0
    assert "no note: `profiler decide note NAME TEXT` keeps one" in capsys.readouterr().out
    assert cli.main(["decide", "note", "v1"]) == 2


@pytest.mark.slow
def test_where_data_is_for_reading_only_nothing_is_recorded(
    data: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PROFILER_READ_ONLY", "1")
    for words in (
        ["decide", "note", "v1", "text"],
        ["decide", "acknowledge", "v1", "--why", "known"],
        ["decide", "baseline", "set", "flash", "v1"],
        ["data", "forget", open_store().runs()[0].run_id],
    ):
        assert cli.main(words) == 2
        assert "is for reading only here: PROFILER_READ_ONLY is set" in capsys.readouterr().err
    assert decisions.decision_ids(location.open_root()) == []
