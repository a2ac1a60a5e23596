"""The tensor-core counters by type of operand: which of them a report carries, which opcodes they count."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from profiler.evidence.gpu_arch import find_architecture
from profiler.evidence.metric_table import MetricTable
from profiler.evidence.opcodes import TENSOR_OPCODES

# What the operands are, by the type in a counter's name; every other type is float.
_KINDS = {
    "fp4": "fp4",
    "fp4_fp6_fp8": "fp8",
    "fp8": "fp8",
    "int8": "int",
    "int4": "int",
    "int1": "bit",
    "fp64": "fp64",
}
_ALWAYS_DENSE = ("fp64", "int1")
_NAME = re.compile(
    r"(?:sm|smsp)__ops_path_tensor_(?:op_(?P<op>[a-z]+)_)?src_(?P<src>\w+?)(?:_dst_(?P<dst>\w+?))?"
    r"(?:_sparsity_(?:on|off))?(?:\.|$)"
)


@dataclass(frozen=True)
class TensorPath:
    """A way through the tensor cores, as ncu tells them apart: one type of operands, maybe of one opcode."""

    op: str  # hgmma; "" for every opcode
    src: str  # type of the operands: fp16
    dst: str  # type of the result: fp32; "" where the counter does not say

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
        """As it is shown: `tensor fp16 → fp32 (HGMMA)`."""
        types = self.src.replace("_", "/") + (f" → {self.dst}" if self.dst else "")
        return f"tensor {types}" + (f" ({self.op.upper()})" if self.op else "")

    @property
    def kind(self) -> str:
        """What its opcodes multiply, in the words of TENSOR_OPCODES."""
        return _KINDS.get(self.src, "float")

    @property
    def unit(self) -> str:
        """The unit of its rate: operations on integers are no FLOP."""
        return "op/s" if self.kind in ("int", "bit") else "FLOP/s"

    def has_sparsity(self, chip: str | None) -> bool:
        """Whether its plain peak is that of sparse operands; an unknown chip is taken to be a new one."""
        architecture = find_architecture(chip)
        sparse = architecture is None or architecture.sparse_tensors
        return sparse and self.src not in _ALWAYS_DENSE

    def covers(self, opcode: str) -> bool:
        """Whether it may count this opcode, which has no modifiers."""
        return TENSOR_OPCODES.get(opcode) == self.kind and self.op in ("", opcode.lower())

    def sums(self, other: TensorPath) -> bool:
        """Whether it counts what the other counts, and more."""
        contains = self.src == other.src and self.op in ("", other.op) and self.dst in ("", other.dst)
        return contains and self != other


def tensor_paths(names: Iterable[str]) -> list[TensorPath]:
    """The paths that a report's metrics count, each as finely told apart as the metrics do."""
    paths = list(dict.fromkeys(path for name in names if (path := _parse_path(name))))
    return [path for path in paths if not any(path.sums(other) for other in paths)]


def declared_tensor_metrics(table: MetricTable, chip: str | None, opcode: str) -> list[str]:
    """The metrics a metrics file declares on the chip for the roofs of this opcode; "": of any opcode."""
    roofline = [metric for metric in table.metrics if metric.group == "roofline"]
    names = [name for metric in roofline for name in metric.names_for(chip)]
    paths = [(name, path) for name in names if (path := _parse_path(name))]
    return [name for name, path in paths if not opcode or path.covers(opcode)]


def _parse_path(name: str) -> TensorPath | None:
    match = _NAME.match(name)
    return TensorPath(match["op"] or "", match["src"], match["dst"] or "") if match else None
