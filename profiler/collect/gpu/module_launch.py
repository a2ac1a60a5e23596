"""A cubin's kernels launched through the CUDA driver, as a plan says: a host program is not needed."""

from __future__ import annotations

import ctypes
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from profiler.collect.gpu.buffers import GUARD_BYTES, Buffers

_GUARD, _POISON = 0xA5, 0xFF  # every byte of a guard, and of a scratch buffer before the first call
# Source: cuda.h, CUfunction_attribute and CUlaunchAttributeID.
_MOST_DYNAMIC_SHARED, _CLUSTER = 8, 4
_PLAIN_SHARED_BYTES = 48 << 10  # more has to be asked for


class _LaunchAttribute(ctypes.Structure):
    """CUlaunchAttribute: a union of 64 bytes, of which a cluster has three sizes."""

    _fields_ = (("id", ctypes.c_int), ("pad", ctypes.c_int), ("value", ctypes.c_uint * 16))


class _LaunchConfig(ctypes.Structure):
    """CUlaunchConfig."""

    _fields_ = (
        ("grid", ctypes.c_uint * 3),
        ("block", ctypes.c_uint * 3),
        ("shared_bytes", ctypes.c_uint),
        ("stream", ctypes.c_void_p),
        ("attributes", ctypes.POINTER(_LaunchAttribute)),
        ("count", ctypes.c_uint),
    )


class DriverError(RuntimeError):
    """A call of the CUDA driver that failed; `code` is its CUresult."""

    def __init__(self, what: str, code: int) -> None:
        super().__init__(f"CUDA driver: {what} failed ({code})")
        self.code = code


def load_driver() -> Any:
    """libcuda. Raises OSError where there is no driver."""
    return ctypes.CDLL("libcuda.so.1")


class PlannedCall:
    """One call: its launches in order on torch's current stream, and the scratch buffers that they share."""

    def __init__(self, torch: Any, plan: Path, buffers: Buffers) -> None:
        """plan: JSON with the path of a `cubin`, the bytes of `scratch` buffers, and `launches`.

        A launch has `function`, `grid`, `block`, `shared_bytes`, `cluster` and `parameters`: `bytes` in hex,
        and `pointers` of which each says where in it the address of which array goes, and how far into that:
        the arrays of the case in the order of its arguments, then the scratch buffers.

        Raises DriverError for what the driver refuses.
        """
        table = json.loads(plan.read_text(encoding="utf-8"))
        self._torch, self._output = torch, buffers.output
        self._driver = load_driver()
        self._module = ctypes.c_void_p()
        image = (plan.parent / table["cubin"]).read_bytes()
        self._check("cuModuleLoadData", ctypes.byref(self._module), image)
        self._scratch = []
        for size in table["scratch"]:
            whole = torch.full((size + 2 * GUARD_BYTES,), _GUARD, dtype=torch.uint8, device="cuda")
            whole[GUARD_BYTES : GUARD_BYTES + size].fill_(_POISON)
            self._scratch.append(whole)
        arrays = [value.data_ptr() for value in buffers.arguments if hasattr(value, "data_ptr")]
        arrays += [whole.data_ptr() + GUARD_BYTES for whole in self._scratch]
        # All of it once: what a call costs the host is part of a short call's latency.
        self._launches = [self._prepare(launch, arrays) for launch in table["launches"]]

    def __call__(self) -> Any:
        """Launch; the output tensor."""
        stream = self._torch.cuda.current_stream().cuda_stream
        for config, function, parameters, _ in self._launches:
            config.stream = stream
            code = self._driver.cuLaunchKernelEx(ctypes.byref(config), function, parameters, None)
            if code:
                raise DriverError("cuLaunchKernelEx", code)
        return self._output

    def wrote_outside(self) -> bool:
        """Whether something wrote beside a scratch buffer."""
        guards = [part for whole in self._scratch for part in (whole[:GUARD_BYTES], whole[-GUARD_BYTES:])]
        return any(bool((guard != _GUARD).any().item()) for guard in guards)

    def _prepare(self, launch: Mapping[str, Any], arrays: Sequence[int]) -> tuple[Any, ...]:
        """The configuration, the function, the addresses of its parameters, and what these point to."""
        function = ctypes.c_void_p()
        name = launch["function"].encode()
        self._check("cuModuleGetFunction", ctypes.byref(function), self._module, name)
        shared = int(launch["shared_bytes"])
        if shared > _PLAIN_SHARED_BYTES:
            self._check("cuFuncSetAttribute", function, _MOST_DYNAMIC_SHARED, shared)
        values = []
        for parameter in launch["parameters"]:
            content = bytearray(bytes.fromhex(parameter["bytes"]))
            for first, array, distance in parameter["pointers"]:
                content[first : first + 8] = (arrays[array] + distance).to_bytes(8, "little")
            values.append(ctypes.create_string_buffer(bytes(content), len(content)))
        parameters = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        attribute = _LaunchAttribute(_CLUSTER, 0, (ctypes.c_uint * 16)(*launch["cluster"]))
        has_cluster = max(launch["cluster"]) > 1
        config = _LaunchConfig(
            (ctypes.c_uint * 3)(*launch["grid"]),
            (ctypes.c_uint * 3)(*launch["block"]),
            shared,
            None,
            ctypes.pointer(attribute),
            int(has_cluster),
        )
        return config, function, parameters, (values, attribute)

    def _check(self, name: str, *arguments: Any) -> None:
        if code := getattr(self._driver, name)(*arguments):
            raise DriverError(name, code)
