"""Which versions a page offers, and the pairs that the Diff page may open with."""

from datetime import UTC, datetime

from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence
from profiler.store.rows import VersionInfo
from profiler.ui.data import version_choice
from profiler.ui.data.cells import NamedCell


def version(name: str, day: int, family: str = "f") -> VersionInfo:
    created = datetime(2026, 1, day, tzinfo=UTC)
    return VersionInfo(family, name, created, created, 1, ("H100",), ())


VERSIONS = [version("x", 9, "g"), version("v1", 1), version("v2", 2), version("v3", 3)]


def measured(name: str, workload: str = "big") -> NamedCell:
    return NamedCell(f"f/{name}", Cell(workload=workload, gpu="H100", evidence=Evidence.MEASURED))


def test_the_last_pair_is_of_the_first_family_that_has_two_versions() -> None:
    assert version_choice.last_pair(VERSIONS) == ("f/v2", "f/v3")
    assert version_choice.last_pair(VERSIONS[:1]) == ("g/x", "g/x")


def test_a_pair_shares_measured_results_and_the_last_versions_come_first() -> None:
    cells = [measured("v1"), measured("v2"), measured("v3", "small"), measured("v3")]
    pairs = [pair for pair, _ in version_choice.measured_pairs(VERSIONS, "f", cells)]
    assert pairs == [("f/v2", "f/v3"), ("f/v1", "f/v3"), ("f/v1", "f/v2")]


def test_versions_without_a_workload_in_common_are_no_pair() -> None:
    cells = [measured("v1"), measured("v2"), measured("v3", "small")]
    assert version_choice.measured_pairs(VERSIONS, "f", cells) == [(("f/v1", "f/v2"), ("big", "H100"))]


def test_a_name_that_the_address_asks_for_is_offered_though_unknown() -> None:
    assert version_choice.versions_to_offer(VERSIONS, "nobody/knows")[0] == "nobody/knows"
    assert version_choice.versions_to_offer(VERSIONS, "f/v1") == ["g/x", "f/v1", "f/v2", "f/v3"]
