"""A check that cannot fail is refused: nothing that computes nothing passes under a problem's tolerance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profiler.catalog.attention import ATTENTION
from profiler.catalog.cases import make_case, refuse_weak_checks
from profiler.catalog.catalog import load_catalog
from profiler.catalog.problem import ALL_STAGES, Array, Case, Tolerance
from profiler.catalog.sources import load_problem
from profiler.catalog.weak_check import find_confused, find_trivial_output
from profiler.cli import main
from profiler.errors import BadCatalog

ROOT = Path(__file__).parents[2]
STRANGERS = ROOT.parent / "shared" / "strangers"


def case(reference: Array, absolute: float, relative: float = 0.0, x: Array | None = None) -> Case:
    output = np.full(reference.shape, np.nan, np.float32)
    x = np.zeros(3, np.float32) if x is None else x
    tolerance = Tolerance(absolute, relative)
    return Case((x, output), (x,), output, np.asarray(reference, np.float64), tolerance)


def normal(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(columns: int, seed: int = 0) -> Array:
    powers = np.exp(normal(2, columns, seed=seed).astype(np.float64))
    return np.asarray(powers / powers.sum(1, keepdims=True))


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (case(softmax(16_384), 1e-2, 1e-2), "zeros"),
        (case(1e-4 * normal(50), 1e-3), "zeros"),
        (case(5 + 1e-4 * normal(50), 1e-2), "the constant 5"),
        (case(5 + normal(50), 0.0, 2.0), "zeros"),
        (case(1 + 0.1 * normal(50), 0.0, 0.6), "the constant 0."),
        (case(normal(40) + 1e-4, 1e-3, x=normal(40)), "argument 1 unchanged"),
        (case(normal(4, 10) + 1e-4, 1e-3, x=normal(40)), "argument 1 unchanged"),
        (case(np.where(np.arange(5000) % 500, 0.0, 1e-3), 2e-3), "zeros"),  # nearly all of it is masked
        (case(-7 + 1e-4 * normal(3, 50), 0.0, 1e-3), "the constant -7"),
    ],
)
def test_a_tolerance_that_an_output_without_computing_passes_is_named(made: Case, words: str) -> None:
    found = find_trivial_output(made)
    assert found is not None
    assert found.words.startswith(words)
    assert made.check(found.output).wrong == 0


@pytest.mark.parametrize(
    "made",
    [
        case(softmax(16_384), 1e-6, 1e-3),
        case(normal(50), 1e-5, 1e-5),
        case(5 + 1e-4 * normal(50), 1e-6),
        case(np.zeros(8), 1e-3),  # of rows that see no key zeros are the answer
        case(np.ones((7, 1)), 1e-2),  # a softmax over one column
        case(normal(40), 1e-3, x=normal(40)),  # attention over one key returns `v`
        case(np.where(normal(50) > 0, -np.inf, 0.0), 1e-3),  # masked scores
        case(np.array([np.nan, 1.0]), 1e-3),  # nothing passes
    ],
)
def test_a_tolerance_that_only_the_answer_passes_is_taken(made: Case) -> None:
    assert find_trivial_output(made) is None


def test_the_sample_that_is_looked_at_first_does_not_hide_the_rest() -> None:
    reference = np.zeros(1_000_000)
    reference[123_457] = 1.0
    assert find_trivial_output(case(reference, 1e-3)) is None
    assert find_trivial_output(case(reference * 1e-4, 1e-3)) is not None


def test_the_result_of_another_workload_that_would_pass_is_found() -> None:
    first, second = (case(softmax(64, seed) + 1, 1.0) for seed in (0, 1))
    assert find_confused([first, second]) == (0, 1)
    tight = [replace(made, tolerance=Tolerance(1e-6, 1e-6)) for made in (first, second)]
    assert find_confused(tight) is None
    assert find_confused([tight[0], tight[0]]) is None, "the same answer"
    assert find_confused([first, case(softmax(65), 1.0)]) is None, "another shape"


@dataclass(frozen=True)
class Size:
    columns: int

    @property
    def label(self) -> str:
        return f"2x{self.columns}"

    def sizes(self) -> dict[str, int | str | bool]:
        return {"columns": self.columns}


@dataclass(frozen=True)
class Rows:
    """Softmax over two rows with whatever tolerance, each column above the one before by `slope`."""

    absolute: float
    slope: float = 0.0
    columns: tuple[int, ...] = (4096,)
    name: str = "rows"
    symbol: str = "rows"
    stages: tuple[str, ...] = ()

    def workload(self, **sizes: Any) -> Size:
        return Size(**sizes)

    def check_workloads(self, dtype: str, sizes: Sequence[int]) -> list[Size]:
        return [Size(columns) for columns in self.columns]

    def case(self, workload: Size, seed: int, stage: str = ALL_STAGES) -> Case:
        return case(softmax(workload.columns, seed) + self.slope * np.arange(workload.columns), self.absolute)


def test_a_case_whose_check_cannot_fail_is_refused_and_names_what_passes() -> None:
    assert make_case(Rows(1e-7), Size(4096), 0).output.shape == (2, 4096)  # type: ignore[arg-type]
    with pytest.raises(BadCatalog, match=r"2x4096.*zeros.*0\.01"):
        make_case(Rows(1e-2), Size(4096), 0)  # type: ignore[arg-type]
    with pytest.raises(BadCatalog, match="no element"):
        make_case(Rows(1e-2), Size(0), 0)  # type: ignore[arg-type]


def test_the_result_of_other_inputs_or_of_another_workload_must_not_pass() -> None:
    versions = load_catalog().versions[:1]
    refuse_weak_checks(Rows(1e-7), versions)  # type: ignore[arg-type]
    with pytest.raises(BadCatalog, match="with other inputs"):
        refuse_weak_checks(Rows(2.0, 10.0, (8,)), versions)  # type: ignore[arg-type]


@pytest.mark.parametrize("folder", ["kernels", "examples/softmax", "tests/gemm"])
def test_the_families_of_this_project_are_taken(folder: str) -> None:
    catalog = load_catalog(ROOT / folder)
    refuse_weak_checks(load_problem(catalog), catalog.versions)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["fp16", "fp8"])
def test_no_random_workload_of_attention_is_refused(dtype: str) -> None:
    rng = np.random.default_rng(0)
    for seed in range(40):
        make_case(ATTENTION, ATTENTION.random_workload(rng, dtype, (64, 128)), seed)


@pytest.mark.skipif(not STRANGERS.is_dir(), reason="the inputs of strangers are not beside the checkout")
@pytest.mark.parametrize("command", [["check"], ["judge", str(STRANGERS / "19" / "cand"), "--trust"]])
def test_a_strangers_softmax_that_zeros_would_pass_is_refused(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--catalog", str(STRANGERS / "19")]) == 2
    assert "zeros" in capsys.readouterr().err
