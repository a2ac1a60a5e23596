"""The page Search: what it says of a search, of one candidate, and of none."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.cli import parser
from profiler.documents.search import search_document
from profiler.search.generator import CallableGenerator
from profiler.search.journal import Journal
from profiler.search.record import Status
from profiler.ui.charts import search_progress, search_tree
from profiler.ui.views import search_summary
from tests.search.simulated import make_search, run_search
from tests.ui.test_pages import charts, page, text

pytestmark = pytest.mark.usefixtures("pages_of")


def searched(folder: Path, total: int = 25) -> Journal:
    def broken(prompt: str, parent: Path, candidate: Path) -> None:
        raise ValueError("<b>out of tokens</b>")

    journal = make_search(folder, seed=3, target_ns=5e4)
    run_search(journal, total - 1)
    run_search(journal, total, generator=CallableGenerator(broken))
    return journal


@pytest.mark.slow
def test_the_page_shows_a_search_and_a_candidate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = searched(tmp_path)
    document = search_document(journal)
    assert document.best is not None
    app = page("search", tmp_path, monkeypatch, at=document.best.name)
    shown = text(app)
    assert "25 24" not in shown
    assert f"Best so far modelled {document.best.name}" in shown
    for words in ("Who came from whom", "Elites", "What insights brought", "Refused", "out of tokens"):
        assert words in shown
    assert "<b>out" not in " ".join(element.value for element in app.html)
    parent = document.archive.by_number[document.best.parent or 0]
    assert f"{document.best.name} against {parent.name}" in shown
    assert any(f"profiler search promote attention {document.best.name}" in c.value for c in app.code)
    assert any("-DSWIZZLE" in c.value for c in app.code)
    (figure,) = charts(app)
    drawn = sum(len(trace["x"]) for trace in figure["data"] if trace["name"] != "best so far")
    judged = [r for r in document.archive.records if r.status not in (Status.SAME_CODE, Status.SAME_SOURCE)]
    assert drawn == len(judged) == 26


@pytest.mark.slow
def test_a_search_without_its_seed_says_what_it_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_search(tmp_path)
    shown = text(page("search", tmp_path, monkeypatch))
    assert "v2d_a is judged first" in shown


@pytest.mark.slow
def test_without_a_search_the_page_says_how_to_begin_one_and_turns_into_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = page("search", tmp_path, monkeypatch)
    shown = text(app)
    assert "no search yet" in shown
    command = "profiler search start attention --generator flags --minutes 30"
    assert [block.value for block in app.code] == [command]
    assert parser().parse_args(command.split()[1:]).minutes == 30
    for words in ("progress", "who came from whom", "elites", "refused", "insights"):
        assert words in shown
    make_search(tmp_path)
    assert "is judged first" in text(app.run())


@pytest.mark.slow
def test_the_best_line_falls_and_every_candidate_is_a_mark(tmp_path: Path) -> None:
    document = search_document(searched(tmp_path))
    marks, steps = search_summary.marks(document), search_summary.steps(document)
    assert [step.us for step in steps] == sorted((step.us for step in steps), reverse=True)
    assert {mark.look for mark in marks} == {"candidate", "elite", "refused"}
    assert sum(mark.look == "elite" for mark in marks) == 3
    figure = search_progress.figure(marks, steps, search_summary.levels(document, {"v2d_b": 72e3}))
    line = next(trace for trace in figure["data"] if trace["name"] == "best so far")
    assert line["y"] == sorted(line["y"], reverse=True)
    words = [note["text"] for note in figure["layout"]["annotations"]]
    assert "v2d_b 72" in words
    assert "target 50" in words
    refused = next(trace for trace in figure["data"] if trace["name"] == "refused")
    assert len(refused["x"]) == sum(mark.look == "refused" for mark in marks)


def test_a_tree_has_a_place_for_everyone_and_the_path_is_straight() -> None:
    nodes = [
        search_tree.CandidateNode("c0", None, "", "300", "plain", True),
        search_tree.CandidateNode("c1", "c0", "a", "310", "plain"),
        search_tree.CandidateNode("c2", "c0", "b", "200", "elite", True),
        search_tree.CandidateNode("c3", "c2", "<i>", "⊘", "refused"),
        search_tree.CandidateNode("c4", "c2", "d", "100", "elite", True, "./search?at=c4", True),
    ]
    places = search_tree.place(nodes)
    assert places["c0"][1] == places["c2"][1] == places["c4"][1] == 0
    assert [places[name][0] for name in ("c0", "c1", "c2", "c3", "c4")] == [0, 1, 1, 2, 2]
    assert len(set(places.values())) == len(nodes)
    drawn = search_tree.picture(nodes)
    assert "<i>" not in drawn
    assert 'href="./search?at=c4"' in drawn
    assert search_tree.picture([]) == ""


@pytest.mark.slow
def test_of_many_candidates_the_tree_keeps_those_that_lead_somewhere(tmp_path: Path) -> None:
    document = search_document(searched(tmp_path, 50))
    nodes, folded = search_summary.tree(document, "c40", {})
    names = {node.name for node in nodes}
    assert len(nodes) + folded == 51
    assert folded > 0
    assert "c40" in names
    assert {elite.name for elite in document.archive.elites} <= names
    assert all(node.parent in names for node in nodes if node.parent)
