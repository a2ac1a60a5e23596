"""The labels right of a panel, of lines and reference levels: none over another, with strokes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from profiler.ui.charts.labels import plotly_text, shorten, spread_apart
from profiler.ui.charts.panel_overlays import gutter_text
from profiler.ui.charts.style import Figure
from profiler.ui.theme import light

LABEL_PX = 15  # height of a label
LEADER_PX = 14  # from the plot to a label
_LETTER_PX, _MAX_PX = 6.3, 176
_NAME_LETTERS = 21
_LEAST_OTHERS = 3  # labels that lie on one another, from which on they are one


@dataclass(frozen=True)
class GutterLabel:
    """What stands at the right end of a line or level."""

    name: str
    end: str  # its last number; "" where that says nothing
    share: float  # height of its end, as a share of the panel; outside 0 to 1 it lies beyond the edge
    href: str = ""
    strong: bool = False
    isolated: bool = False
    is_level: bool = False  # a reference and no line
    others: tuple[str, ...] = ()  # the lines that a joint label stands for

    @property
    def words(self) -> str:
        """The label as it stands, with a word where its line lies beyond the edge."""
        mark = ", below" * (self.share < 0) + ", above" * (self.share > 1)
        name = self.name if self.is_level else shorten(self.name, _NAME_LETTERS - (4 if self.end else 0))
        return " ".join(filter(None, (name, self.end))) + mark


def width_px(labels: Sequence[str]) -> int:
    """How much room labels of these words need."""
    return min(_MAX_PX, LEADER_PX + 8 + round(_LETTER_PX * max(map(len, labels), default=0)))


def joined_labels(labels: Sequence[GutterLabel], panel_px: float) -> list[GutterLabel]:
    """The labels, those of several lines that end on one another joined to `9 others`, which names them."""
    plain = sorted(
        (label for label in labels if not (label.isolated or label.is_level or label.strong)),
        key=lambda label: label.share,
    )
    groups: list[list[GutterLabel]] = []
    for label in plain:
        if groups and (label.share - groups[-1][-1].share) * panel_px < LABEL_PX / 2:
            groups[-1].append(label)
        else:
            groups.append([label])
    kept = [label for label in labels if label not in plain]
    for group in groups:
        if len(group) < _LEAST_OTHERS:
            kept += group
            continue
        middle = sum(label.share for label in group) / len(group)
        names = tuple(label.name for label in group)
        words = "lines" if len(group) == len(labels) else "others"
        kept.append(GutterLabel(f"{len(group)} {words}", "", middle, others=names))
    return sorted(kept, key=lambda label: label.share)


def draw(
    labels: Sequence[GutterLabel], domain: tuple[float, float], figure_px: float
) -> tuple[list[Figure], list[Figure]]:
    """The labels as annotations, and the strokes that lead there as shapes; `domain` is the panel's share."""
    low, high = domain
    ends = [low + min(max(label.share, 0.0), 1.0) * (high - low) for label in labels]
    heights = spread_apart(ends, LABEL_PX / figure_px, low, high)
    annotations = [
        {
            **gutter_text(
                label.words,
                height,
                strong=label.strong,
                accent=label.isolated,
                shift=LEADER_PX + 2,
                href=label.href,
            ),
            "hovertext": plotly_text(", ".join(label.others) or label.name),
        }
        for label, height in zip(labels, heights, strict=True)
    ]
    stroke = {
        "type": "line",
        "xref": "paper",
        "yref": "paper",
        "xsizemode": "pixel",
        "xanchor": 1,
        "line": {"color": light("neutral"), "width": 1},
        "layer": "above",
    }
    leaders = [
        {**stroke, "x0": 1, "x1": LEADER_PX, "y0": end, "y1": height}
        for label, end, height in zip(labels, ends, heights, strict=True)
        if 0 <= label.share <= 1
    ]
    return annotations, leaders
