"""Answers a call: the document of the library, what of it is worth showing, and what to ask next."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profiler.agents import next_calls, toolset, views
from profiler.agents.search import find_names
from profiler.agents.size_budget import DEFAULT_BUDGET, Selected, compact, cut, holds_words, select
from profiler.agents.tool import RefusedArgument
from profiler.agents.untrusted import LEAVES, MAPPINGS, clean, names_in, printable, quote_names
from profiler.documents.declared import load_answer
from profiler.errors import ProfilerError

if TYPE_CHECKING:
    from profiler.agents.roots import Roots
    from profiler.store.index import Store

Arguments = Mapping[str, Any]
_MOST_HASHED = 64 << 20  # bytes of a report whose content is named
_MOST_SENTENCES = 12
_LONGEST_ERROR = 500


@dataclass(frozen=True)
class Draft:
    """An answer before it is cut: sentences, the whole document, and what of it is shown unasked."""

    sentences: Sequence[str]
    whole: Mapping[str, Any]
    shown: Mapping[str, Any]
    next: Sequence[Mapping[str, Any]] = ()
    aliases: Mapping[str, str] = field(default_factory=dict)
    names: Collection[str] = ()  # that sentences may hold besides those of the document
    sha256: Mapping[str, str | None] = field(default_factory=dict)  # of files that were read, by argument


def answer(tool: str, arguments: Arguments, roots: Roots, budget: int = DEFAULT_BUDGET) -> dict[str, Any]:
    """The answer to one call whose arguments were checked, in at most as many characters as were asked for.

    Raises ProfilerError, whose message is one line, for what the caller can mend.
    """
    draft = _DRAFTS[tool](arguments, roots) if tool in _DRAFTS else _declared(tool, arguments)
    most = arguments.get("budget") or budget
    head: dict[str, Any] = {"tool": tool}
    if part := arguments.get("part"):
        return _part_of(clean(compact(draft.whole)), part, arguments, {**head, "part": part}, most)
    sentences = list(dict.fromkeys(printable(text) for text in draft.sentences))
    aliases = {printable(name): word for name, word in draft.aliases.items() if name}
    known = {printable(name) for name in (*names_in(draft.whole), *draft.names)}
    sentences, names = quote_names(sentences, known, aliases)
    shown = [text if len(text) <= 600 else f"{text[:600]}…" for text in sentences[:_MOST_SENTENCES]]
    envelope = {
        **head,
        "answer": shown,
        "sentences_left_out": len(sentences) - len(shown) or None,
        "names": names,
        "ids": _ids(arguments, draft.sha256),
        "document": clean_selected(compact(draft.shown)),
        "next": clean(list(draft.next)),
    }
    return cut({key: value for key, value in envelope.items() if value}, "document", most)


def clean_selected(value: Any) -> Any:
    """`clean`, which keeps how long a list is of which only a selection is shown."""
    if type(value) in LEAVES:
        return clean(value) if type(value) is str else value
    if isinstance(value, Selected):
        return Selected([clean_selected(item) for item in value], value.total)
    if isinstance(value, MAPPINGS):
        return {clean(str(key)): clean_selected(item) for key, item in value.items()}
    if isinstance(value, list):
        return [clean_selected(item) for item in value]
    return clean(value)


def error_line(error: ProfilerError) -> str:
    """The message of a refusal as one printable line of bounded length."""
    error.name_argument()
    text = printable(" ".join(str(error).split()))
    return text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…"


def _part_of(
    whole: Any, part: str, arguments: Arguments, head: dict[str, Any], budget: int
) -> dict[str, Any]:
    """A part of the whole document, paged where it is a list."""
    value = select(whole, part)
    words = (arguments.get("words") or "").split()
    offset = arguments["offset"]
    if not isinstance(value, list):
        if words or offset:
            raise RefusedArgument(f"part {part} is no list: offset and words choose among items of one")
        state = _state_around(whole, part)
        return cut({**head, "state": state, "document": {part.rpartition(".")[2]: value}}, "document", budget)
    total = len(value)
    kept = [item for item in value if holds_words(item, words)] if words else value
    envelope = {**head, "state": _state_around(whole, part), "of": total}
    if words:
        envelope["matching"] = len(kept)
    if offset:
        envelope["offset"] = offset
    return cut({**envelope, "items": kept[offset:]}, "items", budget)


def _state_around(whole: Any, part: str) -> str | None:
    """The state of the numbers in a part: that of the nearest object around it."""
    state, path = None, ""
    for step in [None, *part.split(".")]:
        path = f"{path}.{step}".lstrip(".") if step else path
        value = select(whole, path) if path else whole
        if isinstance(value, Mapping):
            state = value.get("state") or value.get("evidence") or state
    return state if isinstance(state, str) else None


def _ids(arguments: Arguments, known: Mapping[str, str | None]) -> dict[str, str]:
    """What the named files hold, as the first half of their sha256: the same content has the same id."""
    ids = {}
    for name in ("a", "b", "name", "against", "baseline"):
        path = arguments.get(name)
        if isinstance(path, str) and (file := Path(path)).is_file() and file.stat().st_size <= _MOST_HASHED:
            sha256 = known.get(name) or hashlib.sha256(file.read_bytes()).hexdigest()
            ids[name] = f"sha256:{sha256[:32]}"
    return ids


class _Index:
    """Opens the index when it is first asked for."""

    def __init__(self) -> None:
        self.opened: Store | None = None

    def __call__(self) -> Store:
        from profiler.store.readable_index import open_store

        if self.opened is None:
            self.opened = open_store()
        return self.opened

    def names(self) -> set[str]:
        """The labels of the index, which others may have chosen; none where it was not opened."""
        if self.opened is None:
            return set()
        named = {name for info in self.opened.versions() for name in (info.family, info.version, *info.gpus)}
        named |= {f"{info.family}/{info.version}" for info in self.opened.versions()}
        named |= {info.workload for info in self.opened.workloads() if info.workload}
        named |= {kernel for _, kernel in self.opened.kernels()}
        return {name for name in named if name}


@contextmanager
def _store() -> Iterator[_Index]:
    """The index for one answer, closed after it."""
    index = _Index()
    try:
        yield index
    finally:
        if index.opened is not None:
            index.opened.close()


def _given(arguments: Arguments, *names: str) -> dict[str, Any]:
    return {name: arguments[name] for name in names if arguments.get(name) is not None}


def _declared(tool: str, arguments: Arguments) -> Draft:
    """A declared answer as it is: its sentences, and its document cut to what there is room for."""
    from profiler.documents.asking import ask

    with _store() as opener:
        document = ask(load_answer(toolset.DECLARED[tool]), arguments, opener)
        labels = opener.names()
        whole = {"state": document.numbers_are or None, **document.to_dict()}
    return Draft(document.sentences or [document.title], whole, whole, names=labels)


def _find(arguments: Arguments, roots: Roots) -> Draft:
    with _store() as opener:
        found = find_names(
            arguments["words"] or "", arguments.get("kind"), arguments.get("family"), opener(), roots
        )
    document = {"state": "counted in the index", "found": found.items}
    following = next_calls.after_find(found.items)
    return Draft(found.sentences, document, document, following)


def _show(arguments: Arguments, roots: Roots) -> Draft:
    from profiler.compare.resolve_names import is_file_name
    from profiler.documents.asking import ask
    from profiler.documents.launches import launches_of_name

    with _store() as opener:
        options = _given(arguments, "name", "workload", "gpu", "kernel")
        chosen = None
        if not {"workload", "gpu"} & options.keys() and not is_file_name(arguments["name"]):
            from profiler.agents.default_place import choose_place

            chosen = choose_place(opener(), arguments["name"])
        if chosen is not None:
            place = {"workload": chosen.place.workload, "gpu": chosen.place.gpu}
            options |= {name: value for name, value in place.items() if value}
        is_overview = not arguments.get("words") and not arguments.get("part")
        concepts = frozenset((*views.OVERVIEW, *views.OVERVIEW_OF_FACTS)) if is_overview else None
        document = ask(launches_of_name, {**options, "whole": False, "concepts": concepts}, opener)
    whole = views.launches_whole(document.to_dict(), document.side.evidence.value)
    shown = views.launches(whole, (arguments.get("words") or "").split())
    sentences = [*document.sentences, *views.launch_sentences(whole)]
    if chosen is not None:
        sentences.insert(0, chosen.sentence)
    ids = {"name": document.side.report_sha256} if document.side.report_path else {}
    return Draft(sentences, whole, shown, next_calls.after_show(arguments, whole), sha256=ids)


def _compare(arguments: Arguments, roots: Roots) -> Draft:
    from profiler.documents.asking import ask
    from profiler.documents.comparison import compare_names

    with _store() as opener:
        document = ask(compare_names, arguments, opener)
        shared = opener.names()
    whole = views.comparison_whole(document.to_dict())
    sentences = [*document.sentences, *views.comparison_sentences(document)]
    labels = {document.comparison.a.label: "A", document.comparison.b.label: "B"}
    following = next_calls.after_compare(arguments, document, whole)
    return Draft(sentences, whole, views.comparison(whole), following, labels, shared)


def _explain(arguments: Arguments, roots: Roots) -> Draft:
    from profiler.agents.modelled_change import modelled_change
    from profiler.documents.asking import ask
    from profiler.documents.comparison_text import undecided_reasons
    from profiler.documents.explanation import UnmeasuredDocument, explain_names

    a, b = arguments["a"], arguments["b"]
    with _store() as opener:
        document = ask(explain_names, arguments, opener)
        if isinstance(document, UnmeasuredDocument):
            change = modelled_change(a, b, opener(), **_given(arguments, "workload", "gpu"))
            whole = {**document.to_dict(), **change.document}
            sentences = [f"No GPU measured these: {document.reason}", *change.sentences]
            following = next_calls.after_unmeasured(arguments, change)
            return Draft(sentences, whole, views.modelled(whole), following, {a: "A", b: "B"})
    explanations = document.explanations
    whole = views.explanation_whole(document.to_dict())
    moved = [e for e in explanations if e.verdict.traits.moved]
    sentences = [f"{e.kernel} ({e.verdict.value}): {e.sentence}" for e in moved]
    sentences += views.unmoved_sentence(e.verdict for e in explanations)
    if not moved:
        sentences += undecided_reasons(document.comparison)
    if not explanations:
        sentences += document.sentences
    comparison = document.comparison
    following = next_calls.after_explain(arguments, document)
    return Draft(
        sentences,
        whole,
        views.explanation(whole),
        following,
        {comparison.a.label: "A", comparison.b.label: "B"},
    )


def _insights(arguments: Arguments, roots: Roots) -> Draft:
    from profiler.documents.asking import ask
    from profiler.documents.insights import insights_of_name

    with _store() as opener:
        document = ask(insights_of_name, arguments, opener)
        labels = opener.names()
    if measured := document.insights.subject.measured:
        compared = measured.comparison
        sides = (measured.side, compared.a, compared.b) if compared else (measured.side,)
        labels |= {launch.base_name for side in sides for launch in side.launches}
    whole = document.to_dict()
    sentences = [
        f"{number}. {statement.text}{f' Lever: {statement.lever}.' if statement.lever else ''}"
        for number, statement in enumerate(document.statements, 1)
    ]
    following = next_calls.after_insights(arguments, whole)
    return Draft(sentences, whole, views.insights(whole), following, names=labels)


def _source_lines(arguments: Arguments, roots: Roots) -> Draft:
    from profiler.agents.line_changes import line_changes
    from profiler.agents.modelled_change import modelled_lines
    from profiler.compare.resolve_code import CodeChoice
    from profiler.documents.sass import compare_code, show_code

    choice = CodeChoice(**_given(arguments, "kernel", "arch", "workload", "gpu"))
    by_line = arguments["by"] == "line"
    a, b = arguments["a"], arguments.get("b")
    with _store() as opener:
        if b is not None:
            changes = line_changes(a, b, choice, opener) if by_line else None
            if changes is not None:
                whole = changes.document
                following = next_calls.after_line_changes(arguments, whole)
                shown = views.line_changes(whole)
                return Draft(changes.sentences, whole, shown, following, changes.labels)
            compared = compare_code(a, b, choice, opener)
            whole = views.code_change_whole(compared.to_dict())
            labels = {compared.a.listing.label: "A", compared.b.listing.label: "B"}
            following = next_calls.after_code_change(arguments, whole)
            return Draft(compared.sentences, whole, views.code_change(whole), following, labels)
        document = show_code(a, choice, opener, by_line=by_line, limit=_MOST_PLACES)
        whole = views.code_whole(document.to_dict(), document.hidden)
        sentences = list(document.sentences)
        if whole["evidence"] == "static":
            lines = modelled_lines(a, whole.get("arch"), opener, by_line=by_line)
            sentences += lines.sentences
            whole = views.with_modelled_shares(whole, lines)
    following = next_calls.after_code(arguments, whole)
    return Draft([*sentences, *views.hottest_sentences(whole)], whole, views.code(whole), following)


def _gate(arguments: Arguments, roots: Roots) -> Draft:
    from profiler.build.code_images import is_code
    from profiler.compare.resolve_names import is_file_name
    from profiler.documents.asking import ask
    from profiler.documents.gate import gate_versions
    from profiler.reports.read import read_report

    names, baseline = arguments["names"], arguments.get("baseline")
    with _store() as opener:
        document = ask(gate_versions, arguments, opener)
        labels = opener.names()
    labels |= document.report.functions
    files = [
        name
        for name in (*names, baseline or "")
        if is_file_name(name) and Path(name).is_file() and not is_code(name)
    ]
    labels |= {launch.base_name for name in files for launch in read_report(Path(name)).launches}
    whole = views.gate_whole(document.to_dict())
    sentences = [document.report.headline, *document.sentences]
    return Draft(sentences, whole, views.gate(whole), next_calls.after_gate(whole), names=labels)


def _predict(arguments: Arguments, roots: Roots) -> Draft:
    from profiler.documents.prediction import predict_names

    names = [name if Path(name).is_file() else name.rpartition("/")[2] for name in arguments["names"]]
    against = arguments.get("against")
    workloads = [arguments["workload"]] if arguments.get("workload") else []
    is_file = any(Path(name).is_file() for name in names)
    if not workloads and not is_file:
        workloads = views.first_workload(names[0])
    document = predict_names(
        names,
        against=against.rpartition("/")[2] if against else None,
        workloads=workloads,
        gpus=[arguments["gpu"]] if arguments.get("gpu") else [],
    )
    whole = views.prediction_whole(document.to_dict())
    following = next_calls.after_predict(arguments, whole)
    return Draft(document.sentences, whole, views.prediction(whole), following)


def _judge(arguments: Arguments, roots: Roots) -> Draft:
    from profiler.documents.judgement import judge_name

    options: dict[str, Any] = _given(arguments, "workloads", "gpu")
    document = judge_name(arguments["candidate"], arguments.get("against"), **options)
    whole: Mapping[str, Any] = document.to_dict()
    following = next_calls.after_judge(arguments, whole)
    # A compiler quotes what it compiles: its words are data, and no sentence of this server's.
    reasons = [document.judgement.reason, *(item.reason for item in document.judgement.against)]
    aliases = {reason: "see its `reason`" for reason in reasons if len(reason) > _LEAST_REASON}
    return Draft(document.sentences, whole, views.judgement(dict(whole)), following, aliases)


_LEAST_REASON = 8  # characters of what a stage says, from which on it stands apart
_MOST_PLACES = 200  # the hottest: of more nobody asks
_DRAFTS: dict[str, Callable[[Arguments, Roots], Draft]] = {
    toolset.FIND.name: _find,
    toolset.SHOW.name: _show,
    toolset.COMPARE.name: _compare,
    toolset.EXPLAIN.name: _explain,
    "insights": _insights,
    toolset.SOURCE_LINES.name: _source_lines,
    toolset.GATE.name: _gate,
    toolset.PREDICT.name: _predict,
    toolset.JUDGE.name: _judge,
}
