"""What an index holds as JSON, rows and HTML."""

from __future__ import annotations

from dataclasses import replace

import pytest

from profiler.documents.listing import (
    RunsDocument,
    VersionsDocument,
    list_runs,
    list_versions,
    list_workloads,
)
from profiler.errors import UnknownName
from profiler.store.index import Store
from tests.documents.printed import assert_html_escapes, assert_same_as_printed
from tests.timed_runs import FAMILY, WORKLOAD


def test_runs_are_listed_as_the_command_lists_them(store: Store, capsys: pytest.CaptureFixture[str]) -> None:
    document = list_runs(store)
    assert_same_as_printed(document, capsys, "runs")
    frame = document.to_frame()
    assert len(frame) == 13
    assert set(frame["family"]) == {FAMILY}
    assert set(frame["kind"]) == {"collect"}


def test_versions_and_workloads_are_listed_as_the_commands_list_them(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    versions, workloads = list_versions(store), list_workloads(store)
    assert_same_as_printed(versions, capsys, "versions")
    assert_same_as_printed(workloads, capsys, "workloads")
    assert [(row[0], row[1], row[4], row[5]) for row in versions.rows()] == [(FAMILY, "v1", 13, WORKLOAD)]
    assert [row[:3] for row in workloads.rows()] == [(FAMILY, WORKLOAD, 1)]


@pytest.mark.parametrize("listed", [list_runs, list_versions, list_workloads])
def test_a_family_that_is_not_there_is_refused(store: Store, listed: object) -> None:
    with pytest.raises(UnknownName, match=f"no family 'nix' in the index; there are {FAMILY}"):
        listed(store, family="nix")  # type: ignore[operator]


def test_a_run_with_a_tag_in_its_version_stands_escaped_in_html(store: Store) -> None:
    (first, *_) = list_runs(store).runs
    assert_html_escapes(RunsDocument([first._replace(version="<b>v")]), "<b>v", "&lt;b&gt;v")


def test_a_run_of_several_versions_is_counted_and_what_never_ran_has_no_gpu(store: Store) -> None:
    (first, *_) = list_runs(store).runs
    many = first._replace(version=None, versions=["v1", "v2"], gpus=(), ncu_version=None)
    printed = RunsDocument([many]).to_markdown()
    assert f"{FAMILY} (2 versions)" in printed
    assert "unknown" not in printed
    (version,) = list_versions(store).versions
    assert WORKLOAD in VersionsDocument([version]).to_markdown()
    several = VersionsDocument([replace(version, workloads=["w1", "w2"], gpus=[])])
    assert "w1" not in several.to_markdown()
    assert "| 2 | – |" in several.to_markdown()


def test_an_empty_list_names_the_way_out() -> None:
    assert RunsDocument([]).sentences == (
        "nothing yet: `profiler import PATH` takes reports, folders and bundles",
    )
