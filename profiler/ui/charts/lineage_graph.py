"""Where versions and the edges between them lie: a lane for each chain, one small SVG for each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from profiler.ui.markup import Html

ROW_PX = 46  # every row of the table, its rule included
STEP_PX = 22  # from lane to lane
_MIDDLE_PX = 31  # of a dot: level with the version's name, below the idea
_RADIUS_PX = 5


@dataclass(frozen=True)
class Node:
    """One version: its parent's place in the list, and how it is drawn."""

    parent: int | None
    look: str  # best, good, wrong or planned
    on_path: bool = False


@dataclass
class _Row:
    lane: int
    strokes: list[str] = field(default_factory=list)


def assign_lanes(nodes: Sequence[Node]) -> list[int]:
    """The lane of each node: a chain of heirs keeps its lane; the path to the best one has lane 0."""
    heirs = _heirs(nodes)
    found = [-1] * len(nodes)
    taken: list[tuple[int, int, int]] = []  # lane, from row, to row
    chains = [
        _chain(start, heirs)
        for start, node in enumerate(nodes)
        if node.parent is None or heirs.get(node.parent) != start
    ]
    for chain in sorted(chains, key=lambda chain: (not nodes[chain[0]].on_path, chain[0])):
        parent = nodes[chain[0]].parent
        first, last = (chain[0] if parent is None else parent), chain[-1]
        lane = 0
        while any(other == lane and start <= last and first <= end for other, start, end in taken):
            lane += 1
        taken.append((lane, first, last))
        for index in chain:
            found[index] = lane
    return found


def row_pictures(nodes: Sequence[Node]) -> list[Html]:
    """The picture of each row; `nodes` are in the table's order, parents first."""
    rows = [_Row(lane) for lane in assign_lanes(nodes)]
    for index, node in enumerate(nodes):
        if node.parent is None:
            continue
        css = "t" if node.on_path else "d" if node.look == "planned" else "l"
        _edge(rows, node.parent, index, css)
    width = STEP_PX * (max((row.lane for row in rows), default=0) + 1) + 4
    return [_svg(row, node, width) for row, node in zip(rows, nodes, strict=True)]


def _edge(rows: Sequence[_Row], parent: int, child: int, css: str) -> None:
    """Down the child's lane, into which it bends below the parent."""
    start, end = _x(rows[parent].lane), _x(rows[child].lane)
    if start == end:
        rows[parent].strokes.append(_line(end, _MIDDLE_PX, ROW_PX, css))
    else:
        bend = f"M{start} {_MIDDLE_PX}C{start} {ROW_PX} {end} {_MIDDLE_PX} {end} {ROW_PX}"
        rows[parent].strokes.append(f'<path class="{css}" d="{bend}"/>')
    for between in rows[parent + 1 : child]:
        between.strokes.append(_line(end, 0, ROW_PX, css))
    rows[child].strokes.append(_line(end, 0, _MIDDLE_PX, css))


def _svg(row: _Row, node: Node, width: int) -> Html:
    x, y, r = _x(row.lane), _MIDDLE_PX, _RADIUS_PX
    dot = f'<circle class="{node.look}" cx="{x}" cy="{y}" r="{r}"/>'
    if node.look == "wrong":
        a, b = r * 0.5, r * 0.5
        dot += f'<path class="x" d="M{x - a} {y - b}L{x + a} {y + b}M{x - a} {y + b}L{x + a} {y - b}"/>'
    strokes = "".join(sorted(row.strokes, key=lambda stroke: 'class="t"' in stroke))
    return Html(
        f'<svg class="lanes" width="{width}" height="{ROW_PX}" viewBox="0 0 {width} {ROW_PX}" '
        f'aria-hidden="true">{strokes}{dot}</svg>'
    )


def _line(x: int, top: int, bottom: int, css: str) -> str:
    return f'<path class="{css}" d="M{x} {top}V{bottom}"/>'


def _x(lane: int) -> int:
    return STEP_PX // 2 + STEP_PX * lane


def _heirs(nodes: Sequence[Node]) -> Mapping[int, int]:
    """The child that continues its parent's lane: on the path, else the one with most descendants."""
    sizes = [1] * len(nodes)
    children: dict[int, list[int]] = {}
    for index in range(len(nodes) - 1, -1, -1):
        parent = nodes[index].parent
        if parent is not None:
            sizes[parent] += sizes[index]
            children.setdefault(parent, []).insert(0, index)
    return {
        parent: max(several, key=lambda child: (nodes[child].on_path, sizes[child], -child))
        for parent, several in children.items()
    }


def _chain(start: int, heirs: Mapping[int, int]) -> list[int]:
    chain = [start]
    while chain[-1] in heirs:
        chain.append(heirs[chain[-1]])
    return chain
