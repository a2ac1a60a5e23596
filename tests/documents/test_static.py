"""Static facts and builds as JSON, rows and HTML; that they are what commands print is tested with these."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from profiler.build.library import BuiltLibrary, FailedBuild, ResourceUsage
from profiler.build.resources import FunctionResources, VersionResources
from profiler.catalog.catalog import load_catalog
from profiler.cli.output import text_of
from profiler.documents.blocks import Heading, Notes, Table
from profiler.documents.build import BuildDocument, build_versions
from profiler.documents.static import StaticDocument, examine_versions
from profiler.errors import Exit, UnknownName
from tests.documents.printed import assert_html_escapes, assert_same_as_printed

V1 = load_catalog().by_id["v1"]
USAGE = ResourceUsage("_Z3fwdILi64EEvv", "sm_80", 40, 0, 0, 0, 16, 1, "ptxas info")
LIBRARY = BuiltLibrary(
    version="v1",
    library=Path("/b/kernel.so"),
    arches=("sm_80",),
    key="k",
    source_sha256="ab",
    compiler="nvcc 13.0.88",
    command=("nvcc",),
    resources=(USAGE,),
    warnings="",
    seconds=2.5,
    cached=False,
)
FUNCTION = FunctionResources(V1, "fwd", "main", 64, USAGE, None, None, {64: None}, None)
FAILED = FailedBuild("v2", "v2 does not compile: <error>", "nvcc: <error>")


def static(*examined: VersionResources | FailedBuild) -> StaticDocument:
    return StaticDocument(examined, {})


def test_a_row_is_a_function_and_what_no_tool_says_is_a_gap() -> None:
    document = static(VersionResources(V1, LIBRARY, (FUNCTION,), ("v1: machine code unknown",)))
    (row,) = document.to_frame().to_dict("records")
    assert (row["version"], row["function"], row["head_dim"], row["registers"]) == ("v1", "fwd", 64, 40)
    assert row["shared_bytes"] is None
    assert row["occupancy_pct"] is None
    assert document.exit_code == Exit.UNJUDGED
    assert "v1: machine code unknown" in document.sentences
    (heading, table, notes) = document.blocks()
    assert isinstance(table, Table)
    assert heading == Heading("Static facts", 1)
    assert table.rows[0][:5] == ("v1", "sm_80", "64", "40", "0")
    assert set(table.rows[0][6:8]) == {"unknown"}
    assert set(table.rows[0][9:-1]) == {"?"}
    assert notes == Notes(["v1: machine code unknown"])
    (printed,) = json.loads(json.dumps(document.to_dict()))["versions"]
    assert (printed["opcodes"], printed["occupancy_pct"]) == (None, None)


def test_what_does_not_compile_is_the_exit_code_and_stands_escaped_in_html() -> None:
    document = static(FAILED)
    assert document.exit_code == Exit.UNUSABLE_INPUT
    assert document.to_dict()["failed"] == [{"version": "v2", "error": FAILED.error}]
    assert_html_escapes(document, "<error>", "v2 does not compile: &lt;error&gt;")


def test_nothing_to_build_cannot_be_judged_and_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    for document, command in ((build_versions(["v2h"]), "build"), (examine_versions(["v2h"]), "static")):
        assert_same_as_printed(document, capsys, command, "v2h", code=3)
        assert document.rows() == []
        assert document.sentences[0].startswith("v2h is not built: ")


def test_a_build_has_a_row_a_version() -> None:
    document = BuildDocument((LIBRARY, FAILED), {"v3": "only for sm_90a"})
    built, failed = document.to_frame().to_dict("records")
    assert (built["library"], built["arches"], built["built"]) == ("/b/kernel.so", "sm_80", True)
    assert (failed["built"], failed["error"]) == (False, FAILED.error)
    assert document.exit_code == Exit.UNUSABLE_INPUT
    assert document.sentences == [FAILED.error, "v3 is not built: only for sm_90a"]
    assert text_of(document.blocks()).splitlines()[2:5] == [
        "v1       2.5 s             sm_80            /b/kernel.so",
        "v2       does not compile",
        "v3       not built         only for sm_90a",
    ]
    assert f"- {FAILED.error.replace('<', '&lt;')}" in document.to_markdown().splitlines()
    assert replace(document, outcomes=(LIBRARY,)).exit_code == Exit.PASS


def test_a_stage_that_the_problem_does_not_have_is_refused() -> None:
    with pytest.raises(UnknownName, match="has no stage NOPE"):
        build_versions(["v1"], stage="NOPE")
