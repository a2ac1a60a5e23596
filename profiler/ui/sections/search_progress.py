"""The parts of the page Search, drawn anew every few seconds while a worker has a candidate in hand."""

from __future__ import annotations

from typing import Any

import streamlit as st

from profiler.documents import search_blocks
from profiler.documents.search import SearchDocument
from profiler.errors import ProfilerError
from profiler.search.record import SearchRecord
from profiler.ui import controls, markup
from profiler.ui.charts import search_progress, search_tree
from profiler.ui.data import index, predictions, searches
from profiler.ui.sections import draw
from profiler.ui.views import answer, search_summary

ALL, ELITES, REFUSED = "all", "elites", "refused"
_EVERY_S, _IDLE_S = 4.0, 20.0
_CLICKED = "search_clicked"
_CHART = "search_chart"


def show(head_box: Any, search_id: str, view: str, selected: str, filters: controls.Filters) -> None:
    """Tiles, chart, tree, elites, insights, refused; again and again while the search runs."""
    document = searches.load(search_id)
    head_box.html(markup.page_head("Search", search_summary.head(document)))
    every = _EVERY_S if document.working else _IDLE_S  # another process may begin to work on it
    st.fragment(_draw_progress, run_every=every)(search_id, view, filters)
    record = next((record for record in document.archive.records if record.name == selected), None)
    if record is not None:
        _show_candidate(document, record)
    st.fragment(_draw_descent, run_every=every)(search_id, view, selected, filters)


def _draw_progress(search_id: str, view: str, filters: controls.Filters) -> None:
    if st.session_state.pop(_CLICKED, False):
        st.rerun()  # what was clicked stands outside of this part of the page
    document = searches.load(search_id)
    st.html(search_summary.tiles(document))
    settings = document.journal.settings
    if document.archive.seed is None:
        st.html(markup.note(f"{settings.version} is judged first: about a minute."))
    elif view in (ALL, ELITES):
        _show_chart(document)


def _draw_descent(search_id: str, view: str, selected: str, filters: controls.Filters) -> None:
    document = searches.load(search_id)
    if document.archive.seed is None:  # it may come while the page is open
        return
    href = {record.name: filters.address(at=record.name) for record in document.archive.records}
    if view == ALL:
        left, right = st.columns([86, 50], gap="large")
        with left:
            _show_tree(document, selected, href)
        with right:
            _show_elites(document, selected, href)
    elif view == ELITES:
        _show_elites(document, selected, href)
    if view in (ALL, REFUSED):
        count = document.counted(*search_summary.REFUSED)
        caption = f"{count} of {len(document.children)}, by the stage that caught them"
        st.html(markup.section_head("Refused", caption))
        if document.refused:
            stages = {row.newest: href[row.newest] for row in document.refused}
            st.html(answer.table(search_blocks.refused_table(document.refused), "refused", stages))
        else:
            st.html(markup.note("Nothing was refused yet."))


def _show_chart(document: SearchDocument) -> None:
    best = document.best
    evidence = str(best.evidence) if best else "modelled"
    st.html(
        markup.section_head(
            "Progress against the targets",
            markup.join(
                (markup.evidence_badge(evidence), "a click on a mark shows its diff with the parent")
            ),
        )
    )
    settings = document.journal.settings
    st.html(
        markup.note(
            f"{evidence} time, µs: {settings.gpu}, {document.workload}, log; a difference within "
            "the model's error is not judged and replaces no elite"
        )
    )
    figure = search_progress.figure(
        search_summary.marks(document),
        search_summary.steps(document),
        search_summary.levels(document, _lineage_times(document)),
    )
    draw.chart(figure, key=_CHART, on_click=_take_click, alt=" ".join(document.sentences[:2]))


def _lineage_times(document: SearchDocument) -> dict[str, float]:
    """The modelled times of versions of the lineage on the same workload and GPU: the two fastest."""
    settings = document.journal.settings
    try:
        stored = predictions.predictions(index.current_version(), settings.family)
    except ProfilerError:  # the page works without an index
        return {}
    if stored is None:
        return {}
    found = stored.on(document.workload, settings.gpu)
    times = {
        name: p.time_ns for name, p in found.items() if p.time_ns is not None and name != settings.version
    }
    best = sorted(times.items(), key=lambda item: item[1])[:2]
    return dict(best)


def _take_click() -> None:
    """Choose the candidate whose mark was clicked."""
    points = st.session_state[_CHART].selection.points
    if points and points[0].get("customdata"):
        name = points[0]["customdata"]
        st.query_params["at"] = name[0] if isinstance(name, list) else str(name)
        st.session_state[_CLICKED] = True


def _show_tree(document: SearchDocument, selected: str, href: dict[str, str]) -> None:
    nodes, folded = search_summary.tree(document, selected, href)
    caption = "levers on the edges; thick: path to the best; ▨ refused"
    if folded:
        caption += f"; {folded} without children folded"
    st.html(markup.section_head("Who came from whom", caption))
    st.markdown(search_tree.picture(nodes), unsafe_allow_html=True)  # SVG, which only st.markdown keeps
    if document.best is not None:  # what stands for the tree on a phone
        way = search_blocks.path_table(document.journal, document.archive, document.best, document.workload)
        st.html(answer.table(way, "the way to the best", css="k-path"))


def _show_elites(document: SearchDocument, selected: str, href: dict[str, str]) -> None:
    settings = document.journal.settings
    st.html(markup.section_head("Elites", f"top {settings.seats}"))
    seats = search_blocks.elite_table(document.journal, document.archive)
    draw.html(
        answer.table(seats, "elites", href, selected),
        markup.note("An elite is replaced only by a better one, not on a tie."),
    )
    st.html(markup.section_head("What insights brought"))
    if document.effects:
        draw.html(
            answer.table(search_blocks.effect_table(document.effects), "what insights brought"),
            markup.note(search_summary.INSIGHT_NOTE),
        )
    else:
        st.html(markup.note("No child of a candidate with insights yet."))


def _show_candidate(document: SearchDocument, record: SearchRecord) -> None:
    """One candidate against its parent: what became of it, facts, and the source."""
    parent = document.archive.by_number.get(record.parent) if record.parent is not None else None
    title = f"{record.name} against {parent.name}" if parent else record.name
    draw.section(
        title, ", ".join(record.levers), markup.paragraph(search_summary.candidate_words(document, record))
    )
    left, right = st.columns([1, 2], gap="large")
    known = search_blocks.facts_table(record, parent, document.journal.settings.workloads)
    left.html(answer.table(known, "facts"))
    if record.is_valid and record.number:
        left.code(
            f"profiler search promote {document.journal.settings.family} {record.name} "
            f"--search {document.journal.settings.id}",
            language=None,
            wrap_lines=True,
        )
    if parent is not None and record.content_id:
        lines = searches.source_diff(document, record, parent)
        right.code("\n".join(lines) or "the same files", language="diff")
    elif not record.content_id:
        right.html(markup.note("The generator left no usable candidate."))
