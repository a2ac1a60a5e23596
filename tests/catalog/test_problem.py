"""How an output is held against its reference, and that another family needs nothing of attention."""

from pathlib import Path

import numpy as np

from profiler.catalog import catalog, sources
from profiler.catalog.problem import Problem, Tolerance, acceptance_workloads, check_output


def test_an_infinity_is_right_only_where_the_reference_has_the_same():
    reference = np.array([-np.inf, -np.inf, 1.0, np.inf])
    check = check_output(np.array([-np.inf, 0.0, -np.inf, -np.inf]), reference, Tolerance(1e-3, 1e-3))
    assert (check.wrong, check.not_finite, check.max_abs_error) == (3, 1, None)


def test_another_family_needs_nothing_but_its_own_file():
    lineage = catalog.load_catalog(Path(__file__).resolve().parents[1] / "gemm")
    gemm: Problem = sources.load_object(lineage, lineage.problem)
    size = gemm.workload(m=4, n=5, k=6)
    case = gemm.case(size, 1)
    assert check_output(case.reference.astype(np.float32), case.reference, case.tolerance).wrong == 0
    assert (gemm.flops(size), gemm.minimal_bytes(size)) == (240, 4 * (24 + 30 + 20))


def test_a_problem_that_names_no_acceptance_workloads_is_measured_on_those_it_is_checked_on():
    lineage = catalog.load_catalog(Path(__file__).resolve().parents[1] / "gemm")
    gemm: Problem = sources.load_object(lineage, lineage.problem)
    assert acceptance_workloads(gemm, ["fp32"], (16,)) == gemm.check_workloads("fp32", (16,))
