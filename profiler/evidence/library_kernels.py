"""Tells kernels of libraries that only stand beside a program's own: fills, NVIDIA's libraries, thrust."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import lru_cache

from profiler.evidence.launch import Launch
from profiler.evidence.side import Side
from profiler.evidence.values import Evidence

# Names under which NVIDIA's libraries build their kernels, and the arrays that PyTorch and CuPy fill.
_LIBRARY_NAME = re.compile(
    r"(maxwell|volta|turing|ampere|hopper|blackwell)_\w*(gemm|scudnn|cudnn)|sm\d+_xmma_|cutlass_\d+_|nvjet_"
    r"|gemmk1_kernel|gemmSN_|splitKreduce_kernel|distribution_elementwise_grid_stride_kernel"
    r"|cublas|cudnn|implicit_convolve_sgemm|gemv2[NT]_kernel"
    r"|nccl(Dev)?Kernel|gen_sequenced$|generate_seed_pseudo|cupy_(fill|arange|linspace|random)"
)
# Of others a name that a program may have too tells less than the types of their arguments.
_LIBRARY_ARGUMENT = re.compile(r"\bcublas\w+(Params|Tensor)|_fft\b.*\(kernel_parameters_t")
_PREPARATION = re.compile(
    r"at::native::\S*(FillFunctor|random|distribution|normal_|uniform_|(?:arange|linspace|logspace)_cuda_out)"
)
_LIBRARY_NAMESPACE = re.compile(r"^(?:void |static )*(?:cublas\w*|cudnn\w*|cask\w*|cusparse\w*)::")
# thrust and cub run what they are given: a function of the program makes it the program's.
_LAUNCHER = re.compile(r"^(?:void |static )*(?:\w+::)*?(thrust|cub)::")
_LAMBDA = re.compile(r"lambda|__nv_[dh]+l_wrapper")
_ROOT = re.compile(r"(?<![\w:.])[A-Za-z_]\w*")
_TYPES = """thrust cub cuda std nv at c10 at_cuda_detail detail void bool char short int long unsigned
signed float double half __half half2 __nv_bfloat16 __int64 __int128 size_t const volatile struct class enum
true false unnamed anonymous namespace int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t
ptrdiff_t float2 float3 float4 int2 int3 int4"""
_OF_LIBRARIES = frozenset(_TYPES.split())
_CUB_VERSION = re.compile(r"CUB_\w+|THRUST_\w+|T\d+")
_WORD = re.compile(r"[a-z]{3,}")
# Words of names of families, versions and files that say nothing of a kernel.
_NO_KERNEL = frozenset(
    [
        "kernel",
        "kernels",
        "cuda",
        "gpu",
        "torch",
        "pytorch",
        "ncu",
        "rep",
        "report",
        "csv",
        "profile",
        "bench",
        "test",
        "run",
        "void",
    ]
)

_LIBRARIES = frozenset(
    ["cublas", "cublaslt", "cudnn", "thrust", "cub", "cutlass", "cufft", "curand", "cusparse", "nccl", "cupy"]
)
_BY_NAME = {  # what is in none of them is built for cuBLAS
    "cuDNN": re.compile("cudnn|cask|convolve"),
    "cuFFT": re.compile("_fft$"),
    "cuRAND": re.compile("gen_sequenced|generate_seed"),
    "cuSPARSE": re.compile("cusparse"),
    "NCCL": re.compile("nccl"),
    "CuPy": re.compile("cupy_"),
}
# Who names a report after a product or a convolution may want the library's.
_PRODUCTS, _PRODUCT = (
    frozenset(["matmul", "linear", "blas", "dense", "conv", "convolution"]),
    re.compile("gemm|conv|gemv"),
)


def is_library_launch(launch: Launch) -> bool:
    """Whether a launch is of a library: what PyTorch and CuPy fill arrays with, NVIDIA's, thrust or cub.

    What thrust and cub run for a program, a lambda or functor of its own, is the program's.
    """
    return _is_library_kernel(launch.base_name, launch.demangled)


def libraries_of(launches: Iterable[Launch]) -> str:
    """The libraries that launches are of, in words, the one with most launches first: `Thrust and CUB`.

    They are what `is_library_launch` tells; what it does not know by its namespace is built for cuBLAS.
    """
    counts = Counter(_library(launch.base_name, launch.demangled) for launch in launches)
    *others, last = [name for name, _ in counts.most_common()] or [""]
    return f"{', '.join(others)} and {last}" if others else last


@lru_cache(maxsize=4096)
def _library(base_name: str, demangled: str) -> str:
    if launcher := _LAUNCHER.match(demangled):
        return "CUB" if launcher[1] == "cub" else "Thrust"
    if _PREPARATION.search(demangled) or base_name.startswith("distribution_elementwise"):
        return "PyTorch"
    named = _LIBRARY_NAMESPACE.match(demangled)
    name = named[0] if named else base_name
    return next((library for library, names in _BY_NAME.items() if names.search(name)), "cuBLAS")


@lru_cache(maxsize=4096)
def _is_library_kernel(base_name: str, demangled: str) -> bool:
    if (
        _LIBRARY_NAME.match(base_name)
        or _PREPARATION.search(demangled)
        or _LIBRARY_NAMESPACE.match(demangled)
        or _LIBRARY_ARGUMENT.search(demangled)
    ):
        return True
    if not _LAUNCHER.match(demangled) or _LAMBDA.search(demangled):
        return False
    start = demangled.find("<")
    roots = set(_ROOT.findall(demangled[start:])) if start >= 0 else set()
    return all(root in _OF_LIBRARIES or _CUB_VERSION.fullmatch(root) for root in roots)


def library_kernels_alone(side: Side) -> str:
    """The libraries' kernels of a side that holds no others, in words; "" where it has a kernel of its own.

    A family, version or file that is named after such a kernel is about it, and what was timed or is not
    measured is what somebody asked for.
    """
    if side.evidence is not Evidence.MEASURED or side.latencies or not side.launches:
        return ""
    if not all(map(is_library_launch, side.launches)):
        return ""
    subject = " ".join(filter(None, (side.family, side.version, _file_name(side)))).lower()
    words = set(_WORD.findall(subject)) - _NO_KERNEL
    names = " ".join(launch.demangled or launch.base_name for launch in side.launches).lower()
    if words & _LIBRARIES or any(word in names for word in words):
        return ""
    if words & _PRODUCTS and _PRODUCT.search(names):
        return ""
    kernels = list(dict.fromkeys(launch.base_name for launch in side.launches))
    return ", ".join(kernels[:3]) + (f" and {len(kernels) - 3} more" if len(kernels) > 3 else "")


def _file_name(side: Side) -> str:
    """The file's name without its ending; "" for a side of a run."""
    if side.report_path is None:
        return ""
    return side.report_path.name.split(".")[0]
