"""The tensor-core counters by operand type: which of them a report carries, which opcodes they count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.metric_table import MetricTable

# What each tensor opcode multiplies. Source: CUDA Binary Utilities, "Instruction Set Reference".
TENSOR_OPCODES = {
    **dict.fromkeys(("HMMA", "HGMMA", "UTCHMMA"), "float"),
    **dict.fromkeys(("QMMA", "QGMMA", "UTCQMMA"), "fp8"),
    **dict.fromkeys(("OMMA", "UTCOMMA"), "fp4"),
    **dict.fromkeys(("IMMA", "IGMMA", "UTCIMMA"), "int"),
    **dict.fromkeys(("BMMA", "BGMMA"), "bit"),
    "DMMA": "fp64",
}
_KINDS = {"fp4": "fp4", "fp4_fp6_fp8": "fp8", "fp8": "fp8", "int8": "int", "int4": "int", "int1": "bit"}
_KINDS |= {"fp64": "fp64"}
_ALWAYS_DENSE = ("fp64", "int1")
_NAME = re.compile(
    r"(?:sm|smsp)__ops_path_tensor_(?:op_(?P<op>[a-z]+)_)?src_(?P<src>\w+?)(?:_dst_(?P<dst>\w+?))?"
    r"(?:_sparsity_(?:on|off))?(?:\.|$)"
)


@dataclass(frozen=True)
class TensorPath:
    """Operations of the tensor cores on one type of operands, of one opcode family where the chip says."""

    op: str  # hgmma; "" for all
    src: str  # fp16
    dst: str  # fp32; "" where the counter does not say

    @property
    def base(self) -> str:
        """The counter of all its work, dense or sparse."""
        op, dst = self.op and f"op_{self.op}_", self.dst and f"_dst_{self.dst}"
        return f"sm__ops_path_tensor_{op}src_{self.src}{dst}"

    @property
    def dense(self) -> str:
        """The counter of work without structured sparsity."""
        return f"{self.base}_sparsity_off"

    @property
    def sparse(self) -> str:
        """The counter of work with structured sparsity."""
        return f"{self.base}_sparsity_on"

    @property
    def label(self) -> str:
        """What it is called."""
        types = self.src.replace("_", "/") + (f" → {self.dst}" if self.dst else "")
        return f"tensor {types}" + (f" ({self.op.upper()})" if self.op else "")

    @property
    def kind(self) -> str:
        """What its opcodes multiply, as in OPCODES."""
        return _KINDS.get(self.src, "float")

    @property
    def unit(self) -> str:
        """Operations on integers are no FLOP."""
        return "op/s" if self.kind in ("int", "bit") else "FLOP/s"

    def has_sparsity(self, chip: str | None) -> bool:
        """Whether its plain peak would be that of sparse operands."""
        architecture = find_architecture(chip)
        sparse = architecture is None or architecture.sparse_tensors
        return sparse and self.src not in _ALWAYS_DENSE

    def covers(self, opcode: str) -> bool:
        """Whether it may count this opcode."""
        return TENSOR_OPCODES.get(opcode) == self.kind and self.op in ("", opcode.lower())

    def sums(self, other: TensorPath) -> bool:
        """Whether it counts what the other counts, and more."""
        same = self.src == other.src and self.op in ("", other.op) and self.dst in ("", other.dst)
        return same and self != other


def tensor_paths(names: Iterable[str]) -> list[TensorPath]:
    """The paths of a report, each as finely told apart as it tells them."""
    found = list(dict.fromkeys(path for name in names if (path := _path(name))))
    return [path for path in found if not any(path.sums(other) for other in found)]


@dataclass(frozen=True)
class DeclaredTensorMetrics:
    """What a metrics file collects of tensor work on one chip."""

    table: MetricTable
    chip: str | None

    def names(self, opcode: str) -> list[str]:
        """The metrics for the roofs of this opcode; of every one for ""."""
        declared = [metric for metric in self.table.metrics if metric.group == "roofline"]
        names = [name for metric in declared for name in metric.names_for(self.chip)]
        paths = [(name, path) for name in names if (path := _path(name))]
        return [name for name, path in paths if not opcode or path.covers(opcode)]


def _path(name: str) -> TensorPath | None:
    match = _NAME.match(name)
    return TensorPath(match["op"] or "", match["src"], match["dst"] or "") if match else None
