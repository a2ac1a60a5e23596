"""What a command, the library and a tool give to an answer: in its types, and nothing that it lacks."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

import profiler
from profiler.agents import toolset
from profiler.documents.asking import ask
from profiler.documents.check import check_names
from profiler.documents.comparison import compare_names
from profiler.documents.explanation import explain_names
from profiler.documents.gate import gate_versions
from profiler.documents.judgement import judge_name
from profiler.documents.launch import launch_of_name
from profiler.documents.launches import launches_of_name
from profiler.documents.prediction import predict_names
from profiler.documents.version_report import report_versions
from profiler.documents.version_table_cells import compare_many
from profiler.errors import UnknownName
from profiler.evidence.metric_table import MetricTable, load_metrics
from profiler.evidence.values import Evidence
from tests.command_lines import commands

# What says how an answer is printed, not what is asked.
SHOWN = {"help", "json", "markdown", "all", "out", "format", "link", "fail", "sections", "steps"}
CALLED = {  # by the answer
    **{"version": "name", "subject": "name", "versions": "names"},
    **{"diff": "diffs", "what_ifs": "with_what_ifs", "concepts": "metrics"},
}
COMMANDS: dict[str, tuple[Callable[..., Any], ...]] = {
    "compare": (compare_names, compare_many),
    "explain": (explain_names,),
    "gate": (gate_versions,),
    "report": (report_versions,),
    "show": (launches_of_name, launch_of_name),
}
LIBRARY: dict[str, Callable[..., Any]] = {
    "check": check_names,
    "compare": compare_names,
    "compare_many": compare_many,
    "explain": explain_names,
    "gate": gate_versions,
    "judge": judge_name,
    "launch": launch_of_name,
    "predict": predict_names,
    "report": report_versions,
}
TOOLS: dict[str, Callable[..., Any]] = {
    "compare": compare_names,
    "explain": explain_names,
    "gate": gate_versions,
    "judge": judge_name,
    "show": launches_of_name,
}


def no_store() -> None:
    pytest.fail("no index is needed")


def not_taken(given: set[str], *answers: Callable[..., Any]) -> set[str]:
    """Those of the arguments that none of the answers has, under the name that it calls them by."""
    taken = {name for answer in answers for name in signature(answer).parameters}
    return {name for name in given if not {name, CALLED.get(name)} & taken}


def options_of(command: str) -> set[str]:
    """Where the options and arguments of a command are kept."""
    return {action.dest for action in commands()[command]._actions}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_one_that_its_answer_takes(command: str) -> None:
    assert not not_taken(options_of(command) - SHOWN, *COMMANDS[command])


@pytest.mark.parametrize("function", LIBRARY)
def test_every_argument_of_the_library_is_one_that_its_answer_takes(function: str) -> None:
    given = set(signature(getattr(profiler, function)).parameters) - {"store", "metrics", "data"}
    assert not not_taken(given, LIBRARY[function])


@pytest.mark.parametrize("tool", TOOLS)
def test_every_argument_of_a_tool_is_one_that_its_answer_takes(tool: str) -> None:
    (asked,) = (one for one in toolset.offered(allow_run=True) if one.name == tool)
    shown = {argument.name for argument in (*toolset.SHARED, toolset.WORDS)}
    assert not not_taken({argument.name for argument in asked.arguments} - shown, TOOLS[tool])


def test_what_is_given_has_the_type_that_the_answer_takes() -> None:
    def one(
        name: str, table: MetricTable, *, evidence: Evidence | None = None, top: int | None = None
    ) -> Any:
        return name, table.path, evidence, top

    def several(names: Sequence[str], *, evidence: Collection[Evidence] = (), data: str | None = None) -> Any:
        return names, evidence, data

    def asked(answer: Callable[..., Any], **given: Any) -> Any:
        return ask(answer, given, no_store, data="there")  # type: ignore[arg-type]

    table = load_metrics()
    assert asked(one, name=Path("a"), evidence="static", kernel="k") == (
        "a",
        table.path,
        Evidence.STATIC,
        None,
    )
    assert asked(one, name="a", table=table.path, top=3, evidence=()) == ("a", table.path, None, 3)
    assert asked(several, names="a", evidence="static", data="here") == (["a"], [Evidence.STATIC], "there")
    assert asked(several, names=[Path("a"), "b"]) == (["a", "b"], (), "there")
    for wrong in ({"evidence": "felt"}, {"top": 0}):
        with pytest.raises(UnknownName, match=f"{next(iter(wrong))}="):
            asked(one, name="a", **wrong)
