"""The lineage as a git-style graph: a lane for each chain of versions, one small SVG for each table row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from profiler.ui.markup import Html

ROW_PX = 46  # every row of the table, its rule included
LANE_PX = 22  # from lane to lane
_DOT_PX = 31  # from a row's top to its dot: level with the version's name, below the idea
_RADIUS_PX = 5


@dataclass(frozen=True)
class VersionNode:
    """One version: its parent's index in the list, and how it is drawn."""

    parent: int | None
    look: str  # best, good, wrong or planned
    on_path: bool = False  # to the best version


@dataclass(frozen=True)
class _Stroke:
    """A piece of an edge within one row."""

    path: str  # SVG path data
    look: str  # of its edge: t(hick), d(ashed) or l(ine), as the style sheet has it


@dataclass
class _Row:
    lane: int
    strokes: list[_Stroke] = field(default_factory=list)


def assign_lanes(nodes: Sequence[VersionNode]) -> list[int]:
    """The lane of each node: a chain of heirs keeps its lane; the path to the best one has lane 0."""
    heirs = _heirs(nodes)
    lane_of = [-1] * len(nodes)
    occupied: list[tuple[int, int, int]] = []  # lane, from row, to row
    chains = [
        _chain(start, heirs)
        for start, node in enumerate(nodes)
        if node.parent is None or heirs.get(node.parent) != start
    ]
    for chain in sorted(chains, key=lambda chain: (not nodes[chain[0]].on_path, chain[0])):
        parent = nodes[chain[0]].parent
        # The edge from the parent runs in the chain's lane too.
        first, last = (chain[0] if parent is None else parent), chain[-1]
        lane = 0
        while any(other == lane and start <= last and first <= end for other, start, end in occupied):
            lane += 1
        occupied.append((lane, first, last))
        for index in chain:
            lane_of[index] = lane
    return lane_of


def row_pictures(nodes: Sequence[VersionNode]) -> list[Html]:
    """The picture of each row; `nodes` are in the table's order, parents first."""
    rows = [_Row(lane) for lane in assign_lanes(nodes)]
    for index, node in enumerate(nodes):
        if node.parent is not None:
            look = "t" if node.on_path else "d" if node.look == "planned" else "l"
            _add_edge(rows, node.parent, index, look)
    width = LANE_PX * (max((row.lane for row in rows), default=0) + 1) + 4
    return [_svg(row, node, width) for row, node in zip(rows, nodes, strict=True)]


def _add_edge(rows: Sequence[_Row], parent: int, child: int, look: str) -> None:
    """Down the child's lane, into which it bends below the parent."""
    start, end = _x(rows[parent].lane), _x(rows[child].lane)
    if start == end:
        below_parent = _vertical(end, _DOT_PX, ROW_PX)
    else:
        below_parent = f"M{start} {_DOT_PX}C{start} {ROW_PX} {end} {_DOT_PX} {end} {ROW_PX}"
    rows[parent].strokes.append(_Stroke(below_parent, look))
    for between in rows[parent + 1 : child]:
        between.strokes.append(_Stroke(_vertical(end, 0, ROW_PX), look))
    rows[child].strokes.append(_Stroke(_vertical(end, 0, _DOT_PX), look))


def _svg(row: _Row, node: VersionNode, width: int) -> Html:
    x, y, r = _x(row.lane), _DOT_PX, _RADIUS_PX
    dot = f'<circle class="{node.look}" cx="{x}" cy="{y}" r="{r}"/>'
    if node.look == "wrong":
        half = r * 0.5
        cross = f"M{x - half} {y - half}L{x + half} {y + half}M{x - half} {y + half}L{x + half} {y - half}"
        dot += f'<path class="x" d="{cross}"/>'
    # Thick strokes last, so that they lie on top.
    strokes = sorted(row.strokes, key=lambda stroke: stroke.look == "t")
    paths = "".join(f'<path class="{stroke.look}" d="{stroke.path}"/>' for stroke in strokes)
    return Html(
        f'<svg class="lanes" width="{width}" height="{ROW_PX}" viewBox="0 0 {width} {ROW_PX}" '
        f'aria-hidden="true">{paths}{dot}</svg>'
    )


def _vertical(x: int, top: int, bottom: int) -> str:
    return f"M{x} {top}V{bottom}"


def _x(lane: int) -> int:
    return LANE_PX // 2 + LANE_PX * lane


def _heirs(nodes: Sequence[VersionNode]) -> Mapping[int, int]:
    """The child that continues its parent's lane: on the path, else the one with most descendants."""
    sizes = [1] * len(nodes)  # of each node's subtree
    children: dict[int, list[int]] = {}
    for index in range(len(nodes) - 1, -1, -1):
        parent = nodes[index].parent
        if parent is not None:
            sizes[parent] += sizes[index]
            children.setdefault(parent, []).insert(0, index)
    return {
        parent: max(siblings, key=lambda child: (nodes[child].on_path, sizes[child], -child))
        for parent, siblings in children.items()
    }


def _chain(start: int, heirs: Mapping[int, int]) -> list[int]:
    """A node, its heir, the heir's heir and so on."""
    chain = [start]
    while chain[-1] in heirs:
        chain.append(heirs[chain[-1]])
    return chain
