"""The smallest program that launches a kernel, through the CUDA driver alone: what ncu is tried on.

Standard library only, no torch and no nvcc. Prints `launched` and exits 0, or says what failed and exits 1.
"""

import ctypes
import sys
from collections.abc import Callable

PTX = b"""
.version 6.4
.target sm_70
.address_size 64
.visible .entry profiler_probe(.param .u64 p)
{
  .reg .u32 %r<2>;
  .reg .u64 %a<3>;
  mov.u32 %r1, %tid.x;
  ld.param.u64 %a1, [p];
  cvta.to.global.u64 %a2, %a1;
  st.global.u32 [%a2], %r1;
  ret;
}
"""


def main() -> int:
    """Launch one warp."""
    try:
        cuda = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        print(f"no CUDA driver: {error}")
        return 1
    device, context = ctypes.c_int(), ctypes.c_void_p()
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    memory = ctypes.c_uint64()
    ref = ctypes.byref
    argument = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(memory), ctypes.c_void_p))
    steps: tuple[tuple[str, Callable[[], int]], ...] = (
        ("cuInit", lambda: cuda.cuInit(0)),
        ("cuDeviceGet", lambda: cuda.cuDeviceGet(ref(device), 0)),
        ("cuDevicePrimaryCtxRetain", lambda: cuda.cuDevicePrimaryCtxRetain(ref(context), device)),
        ("cuCtxSetCurrent", lambda: cuda.cuCtxSetCurrent(context)),
        ("cuModuleLoadData", lambda: cuda.cuModuleLoadData(ref(module), PTX)),
        ("cuModuleGetFunction", lambda: cuda.cuModuleGetFunction(ref(function), module, b"profiler_probe")),
        ("cuMemAlloc", lambda: cuda.cuMemAlloc_v2(ref(memory), ctypes.c_size_t(256))),
        (
            "cuLaunchKernel",
            lambda: cuda.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, None, argument, None),
        ),
        ("cuCtxSynchronize", lambda: cuda.cuCtxSynchronize()),
    )
    for name, step in steps:
        code = step()
        if code:
            print(f"{name} failed with CUDA error {code}")
            return 1
    print("launched")
    return 0


if __name__ == "__main__":
    sys.exit(main())
