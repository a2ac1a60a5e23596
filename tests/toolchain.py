"""Which compilers this machine has: what a test says where one is missing."""

import shutil

import pytest

from profiler.build import toolchain


def _missing(*names: str) -> str:
    absent = [name for name in names if toolchain.find_tool(name) is None]
    return f"{' and '.join(absent)} missing here: {toolchain.INSTALL_HINT}" if absent else ""


_NO_GXX = "" if shutil.which("g++") else "there is no g++ here, which the CPU check compiles with"

needs_nvcc = pytest.mark.skipif(bool(_missing("nvcc")), reason=_missing("nvcc") or "-")
needs_sass = pytest.mark.skipif(
    bool(_missing("nvcc", "cuobjdump", "nvdisasm")), reason=_missing("nvcc", "cuobjdump", "nvdisasm") or "-"
)
needs_gxx = pytest.mark.skipif(bool(_NO_GXX), reason=_NO_GXX or "-")
