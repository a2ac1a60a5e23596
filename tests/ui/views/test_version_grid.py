"""The grid as a table: numbers in every cell, colour only by a verdict, hatches where there is none."""

import re

from profiler.evidence.cell import Cell
from profiler.evidence.values import Value
from profiler.history.version_grid import GridCell, build_grid
from profiler.ui.views import version_grid
from tests.history.test_version_grid import HERE, one_version


def at(version: str, workload: str, gpu: str) -> Cell:
    return Cell(version=version, workload=workload, gpu=gpu)


def address(place: Cell) -> str:
    return f"./trends?isolate={place.version}&workload={place.workload}"


def test_a_verdict_tints_its_cell_and_no_other() -> None:
    found = one_version((5e6, 6e6))
    cells = build_grid([found.series], [found])
    cells[at("c3", "big", "H100")] = GridCell(Value(1.0, "ns"), Value(1.02, "ns"), 40, None, "")
    table = str(version_grid.table(cells, ["c3"], HERE, address))
    assert table.count("color-mix") == 1
    assert re.search(r"! \+(19|20)\.\d", table)
    assert ">+2.0<" in table
    assert "! worse in 1 of 2" in table
    assert "isolate=c3&amp;workload=big" in table


def test_what_is_missing_is_hatched_with_its_reason_and_no_number() -> None:
    cells = {
        at("a", "w", "g"): GridCell(Value(1.0, "ns"), Value(1.0, "ns"), 9, None, ""),
        at("b", "w", "g"): GridCell(Value(None, "ns"), Value(None, "ns"), 0, None, "", "wrong"),
        at("a", "x", "g"): GridCell(Value(1.0, "ns"), Value(1.0, "ns"), 9, None, ""),
    }
    table = str(version_grid.table(cells, ["a", "b", "c"], HERE, address))
    assert table.count('class="miss"') == 2
    assert 'title="wrong"' in table
    assert f'title="{version_grid.NOT_MEASURED}"' in table
    assert ">±0<" in table
    assert ">c<" not in table, "a version that nothing was measured of has no row"


def test_one_run_shows_its_number_and_few_are_unclear() -> None:
    cells = {
        at("a", "w", "g"): GridCell(Value(5e3, "ns"), Value(5e3, "ns"), 1, None, "1 of 8"),
        at("a", "x", "g"): GridCell(Value(5e3, "ns"), Value(6e3, "ns"), 2, None, "2 of 8"),
    }
    table = str(version_grid.table(cells, ["a"], HERE, address))
    assert "5.00" in table
    assert "? +20.0" in table
    assert "color-mix" not in table
    assert "too few runs to judge" in table
