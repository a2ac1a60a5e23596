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


def test_a_version_is_called_first_by_what_tells_it_from_its_neighbours() -> None:
    assert addresses.version_label("silu/v7") == "v7 · silu"
    assert addresses.version_label("silu/v7~20260301T120000-silu-v7-1a2b") == "v7 · 20260301T120000 · silu"
    assert addresses.version_label("20260301T120000-silu-v7-1a2b") == "20260301T120000-silu-v7-1a2b"
