"""A case's arrays on the GPU: the output is poisoned and lies between guards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from profiler.catalog.problem import Array, Case

GUARD_BYTES = 4096  # before and after an output: a write there is a write outside
_GUARD = 0xA5  # every byte of a guard


@dataclass(frozen=True)
class Buffers:
    """One case's arrays on the GPU; numbers and None as they were."""

    arguments: tuple[Any, ...]  # of the C function
    operands: tuple[Any, ...]  # of a Python callable
    output: Any  # a view of `guarded`
    guarded: Any  # bytes: GUARD_BYTES before and after the output
    poison: Any  # what the output holds before a launch

    @property
    def nbytes(self) -> int:
        """Bytes that one launch reads or writes at least once, if it uses all of its arguments."""
        return sum(value.nbytes for value in self.arguments if hasattr(value, "data_ptr"))

    def reset(self) -> None:
        """Poison the output and renew its guards."""
        self.guarded.fill_(_GUARD)
        self.output.copy_(self.poison)

    def give_inputs(self, torch: Any, case: Case) -> None:
        """Put another case's inputs in the place of this one's, in the same memory. Sizes have to agree."""
        for value, tensor in zip(case.arguments, self.arguments, strict=True):
            if isinstance(value, np.ndarray) and value is not case.output:
                tensor.copy_(torch.from_numpy(np.ascontiguousarray(value)))

    def written_outside(self) -> bool:
        """Whether something wrote beside the output."""
        guards = (self.guarded[:GUARD_BYTES], self.guarded[-GUARD_BYTES:])
        return any(bool((guard != _GUARD).any().item()) for guard in guards)


def upload(torch: Any, case: Case, shift: int = 0) -> Buffers:
    """Copy the case to the GPU. shift rolls every input by so many elements: other data of the same kind.

    An array that is both an argument and an operand is one tensor.
    """
    tensors: dict[int, Any] = {}  # by the array's id
    arrays: list[Array] = []  # kept alive: ids are unique only among what lives

    def on_gpu(value: Any) -> Any:
        if not isinstance(value, np.ndarray):
            return value
        if id(value) not in tensors:
            array = np.ascontiguousarray(value)
            if shift:
                array = np.roll(array.reshape(-1), shift).reshape(array.shape)
            arrays.append(value)
            tensors[id(value)] = torch.from_numpy(array).cuda()
        return tensors[id(value)]

    poison = torch.from_numpy(np.ascontiguousarray(case.output)).cuda()
    guarded = torch.full((case.output.nbytes + 2 * GUARD_BYTES,), _GUARD, dtype=torch.uint8, device="cuda")
    inside = guarded[GUARD_BYTES : GUARD_BYTES + case.output.nbytes]
    output = inside.view(poison.dtype).view(poison.shape)
    output.copy_(poison)
    tensors[id(case.output)] = output
    arrays.append(case.output)
    arguments = tuple(on_gpu(value) for value in case.arguments)
    return Buffers(arguments, tuple(on_gpu(value) for value in case.operands), output, guarded, poison)
