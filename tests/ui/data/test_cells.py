"""Where results exist, and why two may have none in common."""

from profiler.evidence import Evidence
from profiler.ui.data import cells


def test_two_that_share_no_kind_of_evidence_are_told_so() -> None:
    some_cells = [
        cells.Cell("f/v1", "w", "", Evidence.MODELLED),
        cells.Cell("f/v1", "w", "sm_90a", Evidence.STATIC),
        cells.Cell("f/v2", "w", "sm_90a", Evidence.STATIC),
        cells.Cell("g/x", "w", "L4", Evidence.MEASURED),
    ]
    why = cells.why_nothing_shared(some_cells, ("f/v1", "g/x"))
    assert why.startswith("f/v1 is static and modelled, g/x is measured")
    assert not cells.why_nothing_shared(some_cells, ("f/v1", "f/v2"))
    assert not cells.why_nothing_shared(some_cells, ("f/v1", "nobody/knows"))
