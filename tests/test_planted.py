"""Mistakes planted in code for Hopper: each is caught by its kind, at its line, in every schedule."""

from __future__ import annotations

import pytest

from profiler.catalog import catalog, sources
from profiler.catalog.version import Version
from profiler.emulator import cpu_check
from tests.conftest import ROOT
from tests.toolchain import needs_gxx

# A bug a source whose numbers are right in every schedule, and one whose are not.
SAMPLE = ("v2e_no_proxy_fence", "v2f_wait_two", "v2g_no_start_barrier")
WITHOUT_LINE = {"numbers", "over-budget"}
TABLE = ROOT / "docs" / "hopper.md"


@pytest.fixture(scope="module")
def planted() -> catalog.Catalog:
    return catalog.load_catalog(ROOT / "kernels" / "planted.toml")


@pytest.mark.slow
def test_every_bug_that_the_sources_define_has_an_entry_and_every_entry_its_line(
    planted: catalog.Catalog,
) -> None:
    assert sources.inconsistencies(planted) == []
    assert len(planted.versions) > 30
    for version in planted.versions:
        assert version.state == "rejected", version.id
        words = {word for mark in cpu_check.expected_defects(version) for word in mark.words}
        assert words == set(version.caught_by) - WITHOUT_LINE, version.id


def documented(version: Version) -> str:
    """What the row of a version in docs/hopper.md begins with: all but the runs with right numbers."""
    marks = {
        word: f"`{word}` {mark.file}:{mark.line}"
        for mark in cpu_check.expected_defects(version)
        for word in mark.words
    }
    caught_by = ", ".join(marks.get(word, word) for word in version.caught_by)
    return f"| `{version.id}` | {version.technique} | {caught_by} | "


def documented_right(version: Version) -> int:
    """Under how many of ten schedules its numbers are right, by its row; KeyError where it has none."""
    begin = documented(version)
    rows = [row for row in TABLE.read_text(encoding="utf-8").splitlines() if row.startswith(begin)]
    if not rows:
        raise KeyError(f"{TABLE.name} has no row that begins: {begin}")
    return int(rows[0].removeprefix(begin).strip("* |"))


def test_the_document_has_a_row_of_each_with_its_kinds_and_lines(planted: catalog.Catalog) -> None:
    always_right = [version.id for version in planted.versions if documented_right(version) == 10]
    text = " ".join(TABLE.read_text(encoding="utf-8").split())
    assert f"All {len(planted.versions)} are caught" in text
    assert f"{len(always_right)} of them compute the right numbers in every run" in text


def test_it_has_the_problem_and_the_flags_of_the_lineage(planted: catalog.Catalog) -> None:
    lineage = catalog.load_catalog(ROOT / "kernels")
    assert (planted.problem, planted.compile_flags) == (lineage.problem, lineage.compile_flags)
    assert planted.family != lineage.family, "nobody came by these on the way"


@needs_gxx
@pytest.mark.parametrize(
    "names",
    [pytest.param(SAMPLE, id="sample"), pytest.param((), id="all", marks=pytest.mark.long)],
)
def test_each_is_caught_in_every_schedule(planted: catalog.Catalog, names: tuple[str, ...]) -> None:
    problem = sources.load_problem(planted)
    seeds = range(3) if names else None
    for check in cpu_check.check_versions(planted.pick(names), problem, seeds=seeds, jobs=2):
        assert check.error is None, check.version
        missed = [
            (run.seed, [str(defect.kind) for defect in run.defects])
            for run in check.runs
            if not run.as_expected
        ]
        assert not missed, (check.version, missed)
        wrong = [
            run.seed
            for run in check.runs
            if run.result.output_check is None or run.result.output_check.wrong or run.result.returned
        ]
        right = documented_right(planted.by_id[check.version])
        if right in (0, 10):  # of the others the count is the compiler's, too
            assert len(wrong) == (0 if right else len(check.runs)), (check.version, wrong)
