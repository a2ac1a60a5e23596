"""The palette is declared once: what Streamlit is configured with, and what a reader can tell apart."""

import re
import tomllib
from pathlib import Path

import pytest

from profiler.ui import theme

CONFIG = Path(__file__).resolve().parents[2] / ".streamlit" / "config.toml"
ROLES = {
    "primaryColor": "accent",
    "backgroundColor": "page",
    "secondaryBackgroundColor": "surface",
    "textColor": "ink",
    "linkColor": "ink",
    "borderColor": "line",
    "dataframeHeaderBackgroundColor": "surface",
}


def contrast(a: str, b: str) -> float:
    """WCAG 2 contrast ratio."""
    lights = sorted(luminance(colour) for colour in (a, b))
    return (lights[1] + 0.05) / (lights[0] + 0.05)


def luminance(colour: str) -> float:
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize(("name", "place"), [("light", 0), ("dark", 1)])
def test_streamlit_is_configured_with_the_palette(name: str, place: int) -> None:
    configured = tomllib.loads(CONFIG.read_text())["theme"][name]
    assert configured == {key: theme.PALETTE[role][place] for key, role in ROLES.items()}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("role", ["ink", "muted", "better", "worse", "accent"])
def test_text_can_be_read_on_the_page_in_both_themes(role: str, place: int) -> None:
    assert contrast(theme.PALETTE[role][place], theme.PALETTE["page"][place]) >= 5.5


@pytest.mark.parametrize("place", [0, 1])
def test_marks_can_be_seen_on_the_page_in_both_themes(place: int) -> None:
    assert contrast(theme.PALETTE["neutral"][place], theme.PALETTE["page"][place]) >= 3


def test_every_colour_of_a_chart_is_mapped_for_dark_mode() -> None:
    sheet = theme.style_sheet()
    for a, b in [*theme.PALETTE.values(), theme.HATCH]:
        for attribute in ("fill", "stroke"):
            assert re.search(rf'"{attribute}: rgb\([\d, ]+\)"\]{{{attribute}:light-dark\({a},{b}\)', sheet)


def test_the_style_sheet_uses_no_colour_that_the_palette_does_not_have() -> None:
    rules = Path(theme.__file__).with_name("style.css").read_text()
    assert not re.search(r"#[0-9A-Fa-f]{3,8}\b", rules)
    used = set(re.findall(r"var\(--k-(\w+)\)", rules))
    assert used <= {*theme.PALETTE, "hatch"}


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("share", [0.0, 0.06, 0.09, 0.16])
def test_muted_text_can_be_read_on_every_tint_under_it(share: float, place: int) -> None:
    page, tint, surface, muted = (
        theme.PALETTE[role][place] for role in ("page", "neutral", "surface", "muted")
    )
    parts = [(int(page[at : at + 2], 16), int(tint[at : at + 2], 16)) for at in (1, 3, 5)]
    mixed = "#" + "".join(f"{round(a + (b - a) * share):02X}" for a, b in parts)
    assert min(contrast(muted, mixed), contrast(muted, surface)) >= 4.5


def test_no_text_has_the_colour_of_marks() -> None:
    rules = Path(theme.__file__).with_name("style.css").read_text()
    assert not re.search(r"[{;]color:var\(--k-(neutral|line|grid|hatch)\)", rules)
