"""What a GEMM is: C = A B in fp32."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from profiler.catalog.problem import ALL_STAGES, Case, Tolerance


@dataclass(frozen=True)
class Size:
    m: int
    n: int
    k: int

    @property
    def label(self) -> str:
        return f"{self.m}x{self.n}x{self.k}"

    def sizes(self) -> dict[str, int | str | bool]:
        return asdict(self)


class Gemm:
    name = "gemm"
    symbol = "gemm"
    stages: tuple[str, ...] = ()

    def workload(self, **sizes: Any) -> Size:
        return Size(**sizes)

    def check_workloads(self, dtype: str, sizes: Sequence[int]) -> list[Size]:
        return [Size(32, 48, 64), Size(20, 33, 17)]

    def case(self, workload: Size, seed: int, stage: str = ALL_STAGES) -> Case:
        draw = np.random.default_rng(seed).standard_normal
        a = draw((workload.m, workload.k), np.float32)
        b = draw((workload.k, workload.n), np.float32)
        c = np.full((workload.m, workload.n), np.nan, np.float32)
        return Case(
            arguments=(a, b, c, workload.m, workload.n, workload.k),
            operands=(a, b),
            output=c,
            reference=a.astype(np.float64) @ b.astype(np.float64),
            tolerance=Tolerance(1e-5, 1e-5),
        )

    def stage_flags(self, stage: str) -> tuple[str, ...]:
        return ()

    def flops(self, workload: Size) -> int:
        return 2 * workload.m * workload.n * workload.k

    def minimal_bytes(self, workload: Size) -> int:
        return 4 * (workload.m * workload.k + workload.k * workload.n + workload.m * workload.n)


GEMM = Gemm()
