"""Who came from whom: candidates by generation, levers on the edges, the path to the best thick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profiler.ui.markup import Html, escaped

COLUMN_PX, ROW_PX = 176, 44
_LEFT_PX, _TOP_PX = 16, 28
_RADIUS_PX = 5
_LEVER_LETTERS = 23


@dataclass(frozen=True)
class CandidateNode:
    """One candidate. Parents come before their children."""

    name: str
    parent: str | None
    levers: str
    below: str  # the words under its name: a time, or why it has none
    look: str  # plain, elite, refused or same
    on_path: bool = False  # to the best
    href: str = ""
    selected: bool = False
    title: str = ""


def place(nodes: Sequence[CandidateNode]) -> dict[str, tuple[int, float]]:
    """The column (generation) and row of each node: a parent stands at the height of its first child."""
    children: dict[str | None, list[CandidateNode]] = {}
    for node in nodes:
        children.setdefault(node.parent, []).append(node)
    names = {node.name for node in nodes}
    roots = [node for node in nodes if node.parent not in names]
    places: dict[str, tuple[int, float]] = {}
    row = 0
    # Depth first, each subtree below the one before; the child towards the best first, so that its path is
    # straight and at the top.
    waiting = [(node, 0, node is not roots[0]) for node in reversed(roots)]
    while waiting:
        node, column, is_new_row = waiting.pop()
        row += is_new_row
        places[node.name] = (column, row)
        own = sorted(children.get(node.name, []), key=lambda child: not child.on_path)
        waiting += [(child, column + 1, child is not own[0]) for child in reversed(own)]
    return places


def picture(nodes: Sequence[CandidateNode]) -> Html:
    """The tree as SVG; "" of no nodes."""
    places = place(nodes)
    shown = [node for node in nodes if node.name in places]
    if not shown:
        return Html("")
    width = _LEFT_PX + COLUMN_PX * (max(column for column, _ in places.values()) + 1)
    height = _TOP_PX + ROW_PX * (max(row for _, row in places.values()) + 1)
    edges = [_edge(node, places) for node in sorted(shown, key=lambda n: n.on_path) if node.parent in places]
    dots = [_dot(node, *_point(places[node.name])) for node in shown]
    names = [_name(node, *_point(places[node.name])) for node in shown]
    # Names are links beside the drawing: those within an SVG would leave the session.
    return Html(
        f'<div class="k k-tree"><div style="width:{width:.0f}px;height:{height:.0f}px">'
        f'<svg width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'aria-hidden="true">{"".join(edges)}{"".join(dots)}</svg>{"".join(names)}</div></div>'
    )


def _point(at: tuple[int, float]) -> tuple[float, float]:
    return _LEFT_PX + at[0] * COLUMN_PX, _TOP_PX + at[1] * ROW_PX


def _edge(node: CandidateNode, places: Mapping[str, tuple[int, float]]) -> str:
    assert node.parent is not None
    (x0, y0), (x1, y1) = _point(places[node.parent]), _point(places[node.name])
    bend = x0 + COLUMN_PX * 0.28
    path = f"M{x0:.0f} {y0:.0f}C{bend:.0f} {y0:.0f} {x0:.0f} {y1:.0f} {bend:.0f} {y1:.0f}H{x1:.0f}"
    look = "p" if node.on_path else "s" if node.look == "same" else ""
    words = node.levers if len(node.levers) <= _LEVER_LETTERS else f"{node.levers[: _LEVER_LETTERS - 1]}…"
    return (
        f'<path class="{look}" d="{path}"/>'
        f'<text class="e" x="{x1 - 9:.0f}" y="{y1 - 6:.0f}" text-anchor="end">{escaped(words)}'
        f"<title>{escaped(node.levers)}</title></text>"
    )


def _dot(node: CandidateNode, x: float, y: float) -> str:
    if node.look == "refused":
        mark = f'<rect class="refused" x="{x - 6:.0f}" y="{y - 6:.0f}" width="12" height="12"/>'
        mark += f'<path class="x" d="M{x - 6:.0f} {y + 6:.0f}L{x + 6:.0f} {y - 6:.0f}"/>'
    else:
        css = node.look + (" onpath" if node.on_path and node.look == "plain" else "")
        mark = f'<circle class="{css}" cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS_PX}"/>'
        if node.look == "elite":
            mark += f'<circle class="ring" cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS_PX + 3}"/>'
    if node.selected:
        mark += f'<circle class="chosen" cx="{x:.0f}" cy="{y:.0f}" r="{_RADIUS_PX + 6}"/>'
    return mark


def _name(node: CandidateNode, x: float, y: float) -> str:
    """The name with the words below, over the mark: all of it is clicked."""
    content = f"<b>{escaped(node.name)}</b><small>{escaped(node.below)}</small>"
    where = f'style="left:{x - 8:.0f}px;top:{y - 9:.0f}px"'
    title = f' title="{escaped(node.title)}"' if node.title else ""
    if not node.href:
        return f"<span {where}{title}>{content}</span>"
    return f'<a {where} href="{escaped(node.href)}" target="_self"{title}>{content}</a>'
