"""Which versions a page offers, and the pair that it opens with."""

from datetime import UTC, datetime

from profiler.store import VersionInfo
from profiler.ui.data import version_choice


def version(name: str, day: int, family: str = "f") -> VersionInfo:
    created = datetime(2026, 1, day, tzinfo=UTC)
    return VersionInfo(family, name, created, created, 1, ("H100",), ())


VERSIONS = [version("v1", 1), version("v2", 2), version("v3", 3), version("x", 9, "g")]


def test_an_empty_address_opens_the_newest_pair_of_a_family_that_has_one() -> None:
    assert version_choice.newest_pair(VERSIONS) == ("f/v2", "f/v3")


def test_a_name_that_the_address_asks_for_is_offered_though_unknown() -> None:
    assert version_choice.versions_to_offer(VERSIONS, "nobody/knows")[0] == "nobody/knows"
    assert version_choice.versions_to_offer(VERSIONS, "f/v1") == ["g/x", "f/v1", "f/v2", "f/v3"]
