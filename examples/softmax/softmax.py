"""Softmax over rows, a family of Python callables: what the problem is, and two ways to solve it with torch.

profiler collect --catalog examples/softmax --dry-run
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from profiler.catalog import Case, Tolerance
from profiler.catalog.problem import ALL_STAGES

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Size:
    """A matrix: every row of it is normalised by itself."""

    rows: int
    columns: int

    @property
    def label(self) -> str:
        """Its name in every output."""
        return f"{self.rows}x{self.columns}"

    def sizes(self) -> dict[str, int | str | bool]:
        """Every size by name."""
        return asdict(self)


class Softmax:
    """The problem: what profiler.catalog.problem.Problem asks of one."""

    name = "softmax"
    symbol = "softmax"  # of the C function, which a callable has not
    stages: tuple[str, ...] = ()

    def workload(self, **sizes: Any) -> Size:
        """A workload from its sizes."""
        return Size(**sizes)

    def check_workloads(self, dtype: str, sizes: Sequence[int]) -> list[Size]:
        """What a version is checked and measured on: a power of two, and a width that no tile divides."""
        return [Size(1024, 1024), Size(100, 777)]

    def case(self, workload: Size, seed: int, stage: str = ALL_STAGES) -> Case:
        """Random inputs, and the answer in float64."""
        x = np.random.default_rng(seed).standard_normal((workload.rows, workload.columns), np.float32)
        powers = np.exp(x.astype(np.float64))
        output = np.full_like(x, np.nan)
        return Case(
            arguments=(x, output, workload.rows, workload.columns),
            operands=(x,),  # what the callables below are called with, as tensors on the GPU
            output=output,
            reference=powers / powers.sum(1, keepdims=True),
            tolerance=Tolerance(1e-5, 1.3e-6),  # of torch.testing, for fp32
        )

    def stage_flags(self, stage: str) -> tuple[str, ...]:
        """No stages: nothing is compiled."""
        return ()

    def flops(self, workload: Size) -> int:
        """A subtraction, an exponential, an addition and a division an element."""
        return 4 * workload.rows * workload.columns

    def minimal_bytes(self, workload: Size) -> int:
        """Read once, written once, in fp32."""
        return 2 * 4 * workload.rows * workload.columns


SOFTMAX = Softmax()


def unfused(x: Tensor) -> Tensor:
    """Step by step: every step goes through memory."""
    powers = (x - x.amax(1, keepdim=True)).exp()
    return powers / powers.sum(1, keepdim=True)


def fused(x: Tensor) -> Tensor:
    """torch's own kernel."""
    return x.softmax(1)
