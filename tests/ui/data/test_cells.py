"""Where results exist, and why two may have none in common."""

from profiler.evidence.cell import Cell
from profiler.evidence.values import Evidence
from profiler.ui.data import cells


def test_two_that_share_no_kind_of_evidence_are_told_so() -> None:
    some_cells = [
        cells.NamedCell("f/v1", Cell(workload="w", gpu="", evidence=Evidence.MODELLED)),
        cells.NamedCell("f/v1", Cell(workload="w", gpu="sm_90a", evidence=Evidence.STATIC)),
        cells.NamedCell("f/v2", Cell(workload="w", gpu="sm_90a", evidence=Evidence.STATIC)),
        cells.NamedCell("g/x", Cell(workload="w", gpu="L4", evidence=Evidence.MEASURED)),
    ]
    why = cells.why_nothing_shared(some_cells, ("f/v1", "g/x"))
    assert why.startswith("f/v1 is static and modelled, g/x is measured")
    assert not cells.why_nothing_shared(some_cells, ("f/v1", "f/v2"))
    assert not cells.why_nothing_shared(some_cells, ("f/v1", "nobody/knows"))
