"""`search status`, as a document and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiler.bundles.location import LocalRoot
from profiler.cli import main
from profiler.cli.output import text_of
from profiler.documents.search import search_document, search_status
from profiler.errors import UnknownName
from tests.search.simulated import make_search, run_search


@pytest.mark.slow
def test_a_status_says_what_the_journal_says(tmp_path: Path) -> None:
    journal = make_search(tmp_path, target_ns=1e5)
    document = search_document(journal)
    assert document.sentences == ["v2d_a is judged first; nothing else yet."]
    run_search(journal, 25)
    document = search_document(journal)
    body = document.to_dict()
    assert json.loads(json.dumps(body)) == body
    candidates = body["candidates"]
    assert isinstance(candidates, list)
    assert [row["candidate"] for row in candidates] == [f"c{number}" for number in range(26)]
    times = [r.time_ns(document.workload) for r in document.archive.valid]
    assert document.best is not None
    assert document.best.time_ns(document.workload) == min(times)  # type: ignore[type-var]
    assert body["best"] == document.best.name
    assert body["evidence"] == "modelled"
    assert body["running"] == []
    elites = body["elites"]
    assert isinstance(elites, list)
    assert len(elites) == 3
    assert [target.reached for target in document.targets[:2]] == [True, True]
    assert "modelled" in document.sentences[1]
    counted = [document.counted(status) for status in {r.status for r in document.children}]
    assert sum(counted) == 25
    assert len(document.to_frame()) == 26
    assert sum(row.count for row in document.refused) == sum(
        record.status in ("refused", "unknown", "no candidate") for record in document.children
    )


@pytest.mark.slow
def test_the_command_prints_the_status_and_stops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    assert main(["search", "status", "attention"]) == 2
    assert "profiler search start attention --generator flags" in capsys.readouterr().err
    journal = make_search(tmp_path)
    run_search(journal, 8)
    assert main(["search", "status", "attention", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["search"] == journal.settings.id
    assert main(["search", "status", "attention"]) == 0
    said = capsys.readouterr().out
    document = search_document(journal)
    assert said == text_of(document.blocks())
    in_words = [sentence for sentence in document.sentences if not sentence.startswith("Insight ")]
    assert set(in_words) <= set(said.splitlines())
    assert len(in_words) + len(document.effects) == len(document.sentences), "effects are a table"
    assert all(effect.kind in said for effect in document.effects)
    assert all(f"| `{elite.name}` |" in document.to_markdown() for elite in document.archive.elites)
    assert main(["search", "stop", "attention"]) == 0
    assert journal.is_stopping
    assert main(["search", "promote", "attention", "c1", "--as", "mine"]) == 0
    assert '+id = "mine"' in capsys.readouterr().out
    assert main(["search", "promote", "attention", "c1", "--out", str(tmp_path / "p.patch")]) == 0
    assert (tmp_path / "p.patch").read_text().startswith("diff --git a/kernels/catalog.toml")


def test_what_cannot_begin_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFILER_DATA", str(tmp_path))
    for words, reason in (
        (["gemm"], "is of family attention"),
        (["attention", "--from", "v1"], "no [[search]] of v1"),
        (["attention", "--from", "v9"], "no version v9"),
        (["attention", "--workload", "1x1"], "no workload '1x1'"),
        (["attention", "--generator", "no_such_program"], "no program"),
        (["attention", "--templates", str(tmp_path)], "no template"),
    ):
        assert main(["search", "start", *words]) == 2, words
        assert reason in capsys.readouterr().err
    assert main(["search", "start", "attention", "--gpu", "H1000"]) == 2
    assert not (tmp_path / "searches").exists()
    with pytest.raises(UnknownName):
        search_status(LocalRoot(tmp_path), "attention", "nothing")
