"""Which family a page opens with: one with a lineage, never the file that was copied last."""

from datetime import UTC, datetime

import pytest

from profiler.bundles.run import EXAMPLE
from profiler.history.family_order import example_families, order_families, own_family
from profiler.store.rows import RunInfo


def run(family: str, day: int, **provenance: str) -> RunInfo:
    created = datetime(2026, 1, day, tzinfo=UTC)
    return RunInfo(
        *(f"{family}-{day}", family, "v", None, "import", created),
        *(None, None, None, None, None, None, None, None, None),
        *(1, (), frozenset(), False, (family,), ("v",), (), provenance),
    )


RUNS = [
    run("mine", 1),
    run("other", 2),
    run("old", 3, created_from="session"),
    run("new", 5, created_from="session"),
    run("copied", 9, created_from="file time"),
    run("again", 8, created_from="file time"),
    run("tour", 9, **{EXAMPLE: "numbers of a public project"}),
]


def test_lineages_come_first_then_what_says_when_it_was_made_and_examples_last() -> None:
    ordered = order_families(RUNS, ("mine", "other"), "mine")
    assert ordered == ["mine", "other", "new", "old", "again", "copied", "tour"]


def test_the_working_trees_family_leads_the_other_lineages() -> None:
    assert order_families(RUNS, ("mine", "other"), "other")[:2] == ["other", "mine"]
    assert order_families(RUNS, ("mine", "other"))[:2] == ["other", "mine"], "the newest run decides"


def test_a_family_is_an_example_where_all_its_runs_are() -> None:
    assert example_families(RUNS) == {"tour"}
    assert example_families([*RUNS, run("tour", 1)]) == frozenset()


def test_the_own_family_is_that_of_the_catalogue_here(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert own_family() == "attention"
    folder = tmp_path_factory.mktemp("broken")
    (folder / "kernels").mkdir()
    (folder / "kernels" / "catalog.toml").write_text("family = [")
    monkeypatch.chdir(folder)
    assert own_family() == ""
