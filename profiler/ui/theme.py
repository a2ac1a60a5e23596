"""The palette and the style sheet: which colour may mean what, in light and dark."""

from __future__ import annotations

from functools import cache
from pathlib import Path

# Role -> (light, dark). Only `better` and `worse` carry a judgement; `accent` marks selection.
PALETTE: dict[str, tuple[str, str]] = {
    "page": ("#FFFFFF", "#12151B"),
    "surface": ("#F5F6F8", "#1A1F27"),
    "line": ("#DFE3E8", "#303743"),
    "grid": ("#ECEFF3", "#252B35"),
    "ink": ("#1B2230", "#E4E8EE"),
    "muted": ("#5A6573", "#9AA5B4"),
    "neutral": ("#8792A2", "#7C8797"),
    "better": ("#0B62A8", "#6CB6FF"),
    "worse": ("#B8400A", "#FF9A57"),
    "accent": ("#6741D9", "#B69CFF"),
}
# Shares of a whole, darkest in light mode first; no judgement.
RAMP: tuple[tuple[str, str], ...] = (
    ("#2F3B4C", "#DCE3EC"),
    ("#5B6B80", "#AEBAC9"),
    ("#718196", "#9AA7B9"),
    ("#8797AB", "#8594A8"),
    ("#AEBAC9", "#627185"),
    ("#CFD7E1", "#465364"),
    ("#E8ECF1", "#2E3845"),
)
HATCH = ("#C3C9D1", "#414A57")  # strokes of the hatch: darker than a rule, or a thin stroke disappears


def light(role: str) -> str:
    """The light colour of a role: figures are drawn with it and the style sheet maps it in dark mode."""
    return PALETTE[role][0]


def _variables() -> str:
    pairs = "".join(f"--k-{role}:light-dark({a},{b});" for role, (a, b) in PALETTE.items())
    return f":root{{{pairs}--k-hatch:light-dark({HATCH[0]},{HATCH[1]})}}"


def _rgb(colour: str) -> str:
    return f"rgb({int(colour[1:3], 16)}, {int(colour[3:5], 16)}, {int(colour[5:7], 16)})"


def _chart_recolouring() -> str:
    """Plotly writes colours as inline styles: map each one, so a figure needs no theme of its own."""
    rules = []
    for a, b in [*PALETTE.values(), *RAMP, HATCH]:
        for attribute in ("fill", "stroke"):
            rules.append(
                f'.js-plotly-plot [style*="{attribute}: {_rgb(a)}"]'
                f"{{{attribute}:light-dark({a},{b})!important}}"
            )
        rules.append(f'.js-plotly-plot tspan[style*="fill:{a}" i]{{fill:light-dark({a},{b})!important}}')
    rules.append(f".js-plotly-plot pattern path{{stroke:light-dark({HATCH[0]},{HATCH[1]})!important}}")
    return "".join(rules)


@cache
def style_sheet() -> str:
    """The one `<style>` element of a page."""
    rules = Path(__file__).with_name("style.css").read_text(encoding="utf-8")
    return f"<style>{_variables()}{rules}{_chart_recolouring()}</style>"
