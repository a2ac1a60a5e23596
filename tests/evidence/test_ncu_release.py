"""How versions of ncu read, and that one module alone compares them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from profiler.evidence import ncu_release
from profiler.evidence.ncu_release import NcuRelease

PACKAGE = Path(ncu_release.__file__).parents[1]


@pytest.mark.parametrize(
    ("version", "release"),
    [
        ("2024.1.1.0 (build 33998838) (public-release)", NcuRelease(2024, 1, 1)),
        ("2025.3.1.0", NcuRelease(2025, 3, 1)),
        ("2024.1", NcuRelease(2024, 1)),
        ("unknown", None),
        ("", None),
        (None, None),
    ],
)
def test_the_release_is_read_from_a_version(version: str | None, release: NcuRelease | None) -> None:
    assert NcuRelease.parse(version) == release


def test_releases_compare_as_they_came_out() -> None:
    versions = ["2022.4.1.0", "2024.3.0.0", "2024.3.2", "2024.10", "2025.1"]
    releases = [NcuRelease.parse(version) for version in versions]
    assert releases == sorted(releases, key=lambda release: release or NcuRelease(0, 0))
    assert [release.short for release in releases if release] == [
        "2022.4.1",
        "2024.3",
        "2024.3.2",
        "2024.10",
        "2025.1",
    ]


def test_tensor_peaks_are_wrong_on_ada_before_they_were_mended() -> None:
    note = "ncu before 2024.3.2 has wrong tensor peaks for CC 8.9"
    assert ncu_release.wrong_tensor_peaks(NcuRelease(2024, 3, 1), "sm_89") == note
    for release, chip in (
        (NcuRelease(2024, 3, 2), "sm_89"),
        (NcuRelease(2024, 3, 1), "sm_90"),
        (NcuRelease(2024, 3, 1), None),
        (None, "sm_89"),
    ):
        assert ncu_release.wrong_tensor_peaks(release, chip) == ""


@pytest.mark.slow
def test_no_other_module_compares_releases_of_its_own() -> None:
    """A release is written down in ncu_release alone; elsewhere one stands in comments, as a source."""
    written = re.compile(r"\(20[12]\d, *\d|[\"']20[12]\d\.\d")
    found = [
        f"{path.relative_to(PACKAGE)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.name != "ncu_release.py"
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if written.search(line.partition("#")[0])
    ]
    assert found == []
