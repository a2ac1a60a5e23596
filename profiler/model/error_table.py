"""How far the model of time was off on public reports: the ranges that stand beside every prediction."""

from __future__ import annotations

import ast
import hashlib
import io
import json
import tokenize
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from profiler.evidence.gpu_arch import ARCHITECTURES

TABLE_FILE = Path(__file__).with_name("errors.json")
WRITE_COMMAND = "python bench/predict.py FOLDER … --write"
# What decides about a predicted time: these files, and these fields of the architectures.
MODEL_FILES = (
    "control_words.py",
    "cycle_simulation.py",
    "launch_model.py",
    "pipes.py",
    "report_inputs.py",
    "warp_trace.py",
)
_ARCHITECTURE_FIELDS = (
    "partitions",
    "tensor_flops",
    "exponentials",
    "fp64_operations",
    "fp32_lanes",
    "half2_lanes",
    "integer_lanes",
    "address_lanes",
    "mma_sync_share",
    "l1_bytes",
    "l2_bytes_per_clock",
    "l2_slice_bytes",
    "l2_slice_bytes_per_clock",
    "wavefront_cycles",
    "shared_latency",
    "l1_latency",
    "l2_latency",
    "dram_latency",
    "launch_cycles",
)


class Known(NamedTuple):
    """Which inputs of a prediction are known; what is not is bracketed or taken as the least."""

    traffic: bool
    controls: bool
    addresses: bool


@dataclass(frozen=True)
class TimeError:
    """Quantiles of predicted over measured cycles, of launches whose inputs were known like this."""

    known: Known
    p10: float
    p50: float
    p90: float
    launches: int = 0  # that these are the quantiles of


@dataclass(frozen=True)
class RatioError:
    """How predicted ratios of two launches meet the measured ones, of changes up to a size."""

    below: float  # the predicted change, as a factor above 1; this row ends here
    p50: float  # of the factors, at least 1, between predicted and measured ratio
    p80: float
    direction: float  # share of pairs whose change went the predicted way
    pairs: int


@dataclass(frozen=True)
class ErrorTable:
    """Errors of the simulation on launches that the model was not tuned on.

    Source: profiler/model/errors.json, which bench/predict.py writes; docs/predictions.md names the reports.
    """

    times: Mapping[Known, TimeError]
    ratios: Sequence[RatioError]  # ascending
    launches: int
    repositories: int
    digest: str  # of the model that made the errors
    architectures: tuple[str, ...] = ()  # that the model knew then: one that is added later changes no error

    def cycles_range(
        self, cycles: float, *, has_traffic: bool, has_controls: bool, has_addresses: bool
    ) -> tuple[float, float]:
        """Cycles between which four of five launches were measured where the model said this number.

        Without traffic `cycles` is the geometric mean of everything in L2 and everything from DRAM. Never
        narrower than with more inputs.
        """
        known = Known(has_traffic, has_controls, has_addresses)
        rows = [
            row
            for more, row in self.times.items()
            if all(a or not b for a, b in zip(more, known, strict=True))
        ]
        return cycles / max(row.p90 for row in rows), cycles / min(row.p10 for row in rows)

    def launches_behind(self, *, has_traffic: bool) -> int:
        """How many launches the range of a prediction rests on, with all else known."""
        return self.times[Known(has_traffic, controls=True, addresses=True)].launches

    def ratio_range(self, ratio: float) -> tuple[float, float]:
        """Ratios between which four of five pairs were measured where the model said this ratio."""
        factor = self._ratio_error(ratio).p80
        return ratio / factor, ratio * factor

    def _ratio_error(self, ratio: float) -> RatioError:
        size = max(ratio, 1 / ratio)
        return next((row for row in self.ratios if size < row.below), self.ratios[-1])


@cache
def load_errors(path: Path = TABLE_FILE) -> ErrorTable:
    """The table of the package, or of a file like it."""
    document = json.loads(path.read_text(encoding="utf-8"))
    times = [
        TimeError(
            Known(row["traffic"], row["controls"], row["addresses"]),
            row["p10"],
            row["p50"],
            row["p90"],
            row["launches"],
        )
        for row in document["times"]
    ]
    ratios = [
        RatioError(row["below"] or float("inf"), row["p50"], row["p80"], row["direction"], row["pairs"])
        for row in document["ratios"]
    ]
    return ErrorTable(
        {row.known: row for row in times},
        ratios,
        document["launches"],
        len(document["repositories"]["unseen"]),
        document["model"],
        tuple(document["architectures"]),
    )


def model_digest(architectures: Collection[str]) -> str:
    """A hash of what decides about a predicted time on these; imports, comments and docstrings do not."""
    parts: list[Any] = [_code_of(Path(__file__).with_name(name).read_text("utf-8")) for name in MODEL_FILES]
    parts += [
        [name, *(getattr(row, field) for field in _ARCHITECTURE_FIELDS)]
        for name, row in ARCHITECTURES.items()
        if name in architectures
    ]
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _code_of(source: str) -> str:
    """A source without imports, comments, docstrings and empty lines."""
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Import() | ast.ImportFrom():
                for row in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                    lines[row - 1] = ""
    return "\n".join(line.rstrip() for line in lines if line.strip())
