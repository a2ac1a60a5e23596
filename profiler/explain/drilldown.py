"""Details behind a cause: opcodes, excess wavefronts in shared memory, matrix instructions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profiler.evidence.launch import Launch
from profiler.evidence.opcodes import CLASS_NAMES, is_matrix_multiply, opcode_class
from profiler.evidence.values import State, Value, Values

# The hardware counter counts every wavefront that had to wait its turn, lost arbitration too; the excess,
# from the addresses of each instruction, counts what the access pattern costs (ncu, "Source Counters").
CONFLICTS = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"
EXCESS = "derived__memory_l1_wavefronts_shared_excessive"
IDEAL = "memory_l1_wavefronts_shared_ideal"

# The tensor pipe, as metrics.txt spells it: sm_90 alone has a counter of nothing but matrix work.
_PEAK = ".avg.pct_of_peak_sustained_"
_MATRIX_ONLY = f"sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active{_PEAK}"
_PIPE = (f"sm__pipe_tensor_cycles_active_v2{_PEAK}", f"sm__pipe_tensor_cycles_active{_PEAK}")
_CYCLES = ("active", "elapsed")  # what the share is of, the better one first
HALF = "HFMA2"  # its .MMA form runs on the tensor pipe of sm_80 and sm_90 and multiplies no matrix


@dataclass(frozen=True)
class OpcodeClassChange:
    """Warp instructions of one opcode class on both sides, with the opcodes that only one side executes."""

    name: str
    a: float
    b: float
    added: Mapping[str, float]  # in B only, most first
    vanished: Mapping[str, float]  # in A only, most first

    @property
    def matrix(self) -> bool:
        """Whether it is tensor-core work; all other classes are scalar work or data movement."""
        return self.name == CLASS_NAMES[0]


@dataclass(frozen=True)
class BankConflicts:
    """Shared memory of one launch: counted conflicts, and those that the access pattern explains."""

    counted: Value  # bank conflicts by the hardware counter
    excess: Value  # wavefronts over the ideal, by instruction
    ideal: Value

    @property
    def residue(self) -> float | None:
        """Counted conflicts that no access pattern explains: arbitration. None if a number is missing.

        Negative where the excess includes what the counter does not see (cp.async on some chips, other replay
        passes).
        """
        if self.counted.number is None or self.excess.number is None:
            return None
        return float(self.counted.number) - float(self.excess.number)


@dataclass(frozen=True)
class TensorPipe:
    """The tensor pipe of one launch, and the opcodes that it executed."""

    pipe: Value  # busy, HFMA2.MMA included
    pipe_name: str
    matrix: Value  # busy with matrix work only; not available on chips that cannot tell
    matrix_name: str
    instructions: float | None  # matrix instructions executed; None where the report has no opcodes
    half: float | None  # HFMA2 executed

    @property
    def words(self) -> str:
        """What the pipe and the opcodes say together."""
        if self.instructions is None:
            return "no opcodes in the report: what kept the tensor pipe busy is unknown"
        if self.instructions:
            return "matrix instructions executed"
        if self.pipe.number:
            cause = "HFMA2.MMA" if self.half else "something else"
            return f"no matrix instruction: the tensor pipe counts {cause}, which is no matrix work"
        return "no matrix instruction"


def opcode_class_changes(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[OpcodeClassChange, ...]:
    """The opcode mix by class, largest change first; empty where a side has no opcodes."""
    if not a or not b:
        return ()
    changes = []
    for name in CLASS_NAMES:
        of_a, of_b = _of_class(a, name), _of_class(b, name)
        if of_a or of_b:
            added, vanished = _missing_in(of_a, of_b), _missing_in(of_b, of_a)
            changes.append(OpcodeClassChange(name, sum(of_a.values()), sum(of_b.values()), added, vanished))
    return tuple(sorted(changes, key=lambda change: -abs(change.b - change.a)))


def bank_conflicts(launch: Launch) -> BankConflicts:
    """The shared-memory conflicts of a launch."""
    return BankConflicts(*(launch.values.value(name) for name in (CONFLICTS, EXCESS, IDEAL)))


def tensor_pipe(launch: Launch) -> TensorPipe:
    """The tensor pipe of a launch: a share of active cycles if the report has it, else of elapsed ones."""
    values = launch.values
    pipe_names = [base + cycles for cycles in _CYCLES for base in _PIPE]
    pipe_name = next((name for name in pipe_names if name in values), _PIPE[1] + _CYCLES[0])
    matrix_names = [_MATRIX_ONLY + cycles for cycles in _CYCLES]
    matrix_name = next((name for name in matrix_names if name in values), "")
    opcodes = launch.opcodes
    return TensorPipe(
        values.value(pipe_name),
        pipe_name,
        values.value(matrix_name) if matrix_name else _no_matrix_counter(values),
        matrix_name,
        sum(count for opcode, count in opcodes.items() if is_matrix_multiply(opcode)) if opcodes else None,
        sum(count for opcode, count in opcodes.items() if opcode.partition(".")[0] == HALF)
        if opcodes
        else None,
    )


def _no_matrix_counter(values: Values) -> Value:
    """The state of the missing counter: only compute capability 9.0 has it.

    Source: NVIDIA's libnvperf_host, asked for 32 chips.
    """
    capability = [
        values.number(f"device__attribute_compute_capability_{part}") for part in ("major", "minor")
    ]
    chip_lacks_it = None not in capability and capability != [9, 0]
    return Value(None, state=State.NOT_AVAILABLE if chip_lacks_it else State.NOT_COLLECTED)


def _of_class(opcodes: Mapping[str, float], name: str) -> dict[str, float]:
    return {opcode: count for opcode, count in opcodes.items() if count and opcode_class(opcode) == name}


def _missing_in(side: Mapping[str, float], other: Mapping[str, float]) -> dict[str, float]:
    """The opcodes that the other side has and this one lacks, most frequent first."""
    missing = [(opcode, count) for opcode, count in other.items() if opcode not in side]
    return dict(sorted(missing, key=lambda item: -item[1]))
