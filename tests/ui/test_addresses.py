"""The links of an address to the views beside it."""

from html import unescape

from profiler.ui import addresses
from tests.ui.data.test_version_choice import VERSIONS


def test_previous_and_next_step_through_the_family() -> None:
    output = unescape(addresses.Diff("f/v2", "f/v3", launch="k").links(VERSIONS))
    assert "?a=f%2Fv1&b=f%2Fv2" in output
    assert "next" not in output
    assert "?a=f%2Fv3&b=f%2Fv2&launch=k" in output  # swap keeps the launch


def test_versions_of_two_families_have_no_previous_or_next() -> None:
    output = addresses.Diff("f/v2", "g/x").links(VERSIONS)
    assert "previous" not in output
    assert "swap" in output
