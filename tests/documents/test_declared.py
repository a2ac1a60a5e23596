"""An answer is declared once: its command, the library and its tool have what its function says."""

from __future__ import annotations

import argparse
import inspect
import re

import pytest

import profiler
from profiler.agents import toolset
from profiler.cli.declared import add
from profiler.documents.declared import (
    ANSWERS,
    SHARED,
    SOURCES,
    STARTS_PROGRAM,
    declaration,
    load_answer,
    shared_help,
)
from profiler.errors import UnknownName
from tests.command_lines import choices


def parsed(command: str, *words: str) -> argparse.Namespace:
    top = argparse.ArgumentParser()
    add(top.add_subparsers(), command)
    return top.parse_args([command.split()[-1], *words])


@pytest.mark.parametrize("command", ANSWERS)
def test_what_is_read_from_the_source_is_what_python_says(command: str) -> None:
    signature, declared = inspect.signature(load_answer(command)), declaration(command)
    asked = {name: one for name, one in signature.parameters.items() if name not in SOURCES}
    assert [one.name for one in declared.parameters] == list(asked)
    for one in declared.parameters:
        assert one.required == (asked[one.name].default is inspect.Parameter.empty)
        assert one.required or one.kind == "texts" or one.default == asked[one.name].default
        assert one.help
    assert declared.text == inspect.getdoc(load_answer(command))
    assert re.search(r"^Raises .*", declared.text, re.MULTILINE)
    assert f"profiler.{ANSWERS[command].library}(" in declared.text


@pytest.mark.parametrize("command", ANSWERS)
def test_every_face_of_an_answer_takes_what_its_function_does(command: str) -> None:
    names = {one.name for one in declaration(command).parameters}
    required = ["x" for one in declaration(command).parameters if one.required]
    assert names < vars(parsed(command, *required)).keys()
    function = inspect.signature(getattr(profiler, ANSWERS[command].library))
    taken = inspect.signature(load_answer(command)).parameters.keys()
    assert ("data" in function.parameters) == bool(declaration(command).sources)
    assert ("metrics" in function.parameters) == ("table" in taken)
    assert ("store" in function.parameters) == bool({"store", "store_opener"} & taken)
    assert {"name" if one == "subject" else one for one in function.parameters} >= names
    if ANSWERS[command].tool:
        (tool,) = (one for one in toolset.READING if one.name == ANSWERS[command].tool)
        offered = {argument.name for argument in tool.arguments}
        assert names - STARTS_PROGRAM <= offered <= offered - STARTS_PROGRAM


def test_an_option_has_the_form_that_its_parameter_has() -> None:
    asked = parsed("trend", "duration", "--steps", "--across", "ncu", "--across", "driver", "--last", "3")
    assert (asked.concept, asked.steps, asked.across, asked.last) == ("duration", True, ["ncu", "driver"], 3)
    assert (asked.over, asked.version, asked.all, asked.markdown) == (None, None, False, False)
    for wrong in (["--over", "days"], ["--last", "0"], ["--json", "--markdown"], []):
        with pytest.raises(SystemExit):
            parsed("trend", *(["duration", *wrong] if wrong else []))


def test_help_says_what_the_docstring_says_to_whoever_asks() -> None:
    top = argparse.ArgumentParser()
    add(top.add_subparsers(), "insights")
    words = " ".join(choices(top)["insights"].format_help().split())
    assert "a missing counter never becomes advice" in words
    assert "Raises" not in words
    assert "profiler.insights(" not in words
    assert all(help_ in words for help_ in (SHARED["workload"], "the baseline"))


def test_help_names_files_only_where_an_answer_takes_them() -> None:
    helps = {
        command: {one.name: one.help for one in declaration(command).parameters}
        for command in ("roofline", "trend")
    }
    for name in ("workload", "gpu"):
        assert helps["roofline"][name] == shared_help(name, files=True)
        assert helps["trend"][name] == SHARED[name]
        assert "file" in helps["roofline"][name]
        assert "file" not in SHARED[name]


def test_latency_has_no_trend_but_steps() -> None:
    with pytest.raises(UnknownName, match=r"^latency is shown only as a list of steps: add --steps"):
        profiler.trend("latency")


def test_an_option_of_another_form_of_the_answer_is_refused_by_name() -> None:
    with pytest.raises(UnknownName, match=r"^version="):
        profiler.trend("duration", version="v1")
