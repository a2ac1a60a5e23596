"""One kernel of a cubin run as a launch that is given by hand: its arrays, scalars, grid and block."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profiler.build.kernel_names import function_name, instance_name
from profiler.build.signatures import signatures
from profiler.emulator.run_result import LaunchShape
from profiler.errors import UnknownName
from profiler.evidence.gpu_parts import GpuPart
from profiler.evidence.naming import brief_list
from profiler.model.control_words import read_code_words
from profiler.model.cubin import KernelImage, place_data, read_kernels
from profiler.model.error_table import ErrorTable
from profiler.model.instructions import NoModel
from profiler.model.interpreter import Grid
from profiler.model.machine import Array
from profiler.model.prediction import LaunchPrediction, launch_inputs, predict_run
from profiler.model.version_run import LaunchRun, run_launch
from profiler.sass.listing import FunctionCode

_TYPES = {
    **{f"{kind}{bits}": f"{kind}{bits // 8}" for kind in "iu" for bits in (8, 16, 32, 64)},
    "f16": "f2",
    "bf16": "u2",  # NumPy has none: the upper half of a float
    "f32": "f4",
    "f64": "f8",
}
_ARGUMENT = re.compile(r"(?P<type>\w+)(?:\[(?P<count>\d+)\])?(?:=(?P<values>[-+.,\w]+))?")
_MOST_BYTES = 4 << 30  # of all arrays, which this process allocates
_MOST_THREADS, _MOST_THREADS_Z = 1024, 64
_SEED = 0
_MOST_HIDDEN = 2  # pointers that Triton puts behind a kernel's own parameters: scratch memory, a profile


@dataclass(frozen=True)
class LaunchArgument:
    """One argument of a kernel: an array in global memory, or a scalar."""

    text: str  # as it was given
    values: Array  # of an array [count]; of a scalar one value
    is_array: bool


@dataclass(frozen=True)
class CubinLaunch:
    """A launch of one kernel of a cubin."""

    grid: Grid
    block: Grid
    shared_bytes: int  # dynamic, of a block
    arguments: tuple[LaunchArgument, ...]

    def __post_init__(self) -> None:
        """Raises UnknownName for what no GPU launches: CUDA C++ Programming Guide, "Compute Capabilities"."""
        threads = math.prod(self.block)
        if threads > _MOST_THREADS or self.block[2] > _MOST_THREADS_Z:
            raise UnknownName(f"a block of {threads} threads is not possible: 1024 at most, 64 along z")
        if self.grid[0] >= 1 << 31 or max(self.grid[1:]) >= 1 << 16:
            raise UnknownName(
                f"the grid {self.grid} is not possible: 2^31 - 1 blocks along x at most, 65535 along y, z"
            )
        size = sum(argument.values.nbytes for argument in self.arguments)
        if size > _MOST_BYTES:
            raise UnknownName(f"the arrays have {size} bytes: {_MOST_BYTES >> 30} GB at most")


def parse_argument(text: str) -> LaunchArgument:
    """`f16[4096]` (an array), `i32[4]=7,7,9,9` or `f32[64]=0` (of these values), `i32=512` (a scalar).

    An array without values has standard normal numbers, of integers zeros: what a kernel's branches and
    addresses depend on has to be given. Raises UnknownName.
    """
    match = _ARGUMENT.fullmatch(text)
    kind = match["type"] if match else ""
    if match is None or kind not in _TYPES:
        known = ", ".join(_TYPES)
        raise UnknownName(
            f"{text!r} is no argument: write f16[4096], f32[64]=0 or i32=512; types are {known}"
        )
    is_array, words = match["count"] is not None, (match["values"] or "").split(",")
    if not is_array and (match["values"] is None or len(words) != 1):
        raise UnknownName(f"{text!r} has no value: a scalar is written i32=512, an array f16[4096]")
    count = int(match["count"]) if is_array else 1
    dtype = np.dtype(_TYPES[kind])
    if count * dtype.itemsize > _MOST_BYTES:
        raise UnknownName(f"{text!r} is larger than {_MOST_BYTES >> 30} GB")
    if match["values"] is None:
        return LaunchArgument(text, _default_values(kind, dtype, count), is_array)
    if len(words) not in (1, count):
        raise UnknownName(f"{text!r} has {len(words)} values for {count} elements")
    try:
        given = np.array([float(word) for word in words] if "f" in kind else [int(word, 0) for word in words])
        with np.errstate(over="raise"):
            values = _bfloat16(given) if kind == "bf16" else given.astype(dtype)
        if dtype.kind in "iu" and kind != "bf16" and (values.astype(object) != given.astype(object)).any():
            raise OverflowError
    except (ValueError, OverflowError, FloatingPointError) as error:
        raise UnknownName(f"{text!r} has a value that is no {kind}") from error
    return LaunchArgument(text, np.broadcast_to(values, (count,)).copy(), is_array)


def _default_values(kind: str, dtype: np.dtype[np.generic], count: int) -> Array:
    if "f" not in kind:
        return np.zeros(count, dtype)
    normal = np.random.default_rng(_SEED).standard_normal(count, np.float32)
    return _bfloat16(normal) if kind == "bf16" else normal.astype(dtype)


def _bfloat16(values: Array) -> Array:
    bits: Array = (values.astype("f4").view("u4") >> 16).astype("u2")
    return bits


def choose_kernel(images: Sequence[str], name: str | None, where: str) -> str:
    """The mangled name of the kernel of a name, or of the only one. Raises UnknownName.

    name: mangled, plain, with its template arguments (`v2d<64>`), or any part of the mangled one, or of the
    one with template arguments, that one kernel alone has; where a demangler is installed, with types and
    namespaces too (`ns::copy<float>`).
    """
    plain = {function: function_name(function) for function in images}
    shown = {function: instance_name(function) for function in images}
    ways: tuple[Callable[[str], bool], ...] = (
        lambda function: name in (None, function),
        lambda function: name == plain[function],
        lambda function: _is_instance(function, plain[function], name or ""),
        lambda function: (name or "") in function or (name or "") in shown[function],
    )
    chosen = next((found for way in ways if (found := [one for one in images if way(one)])), [])
    if not chosen and name:
        chosen = _named_in_full(images, name)
    if len(chosen) == 1:
        return chosen[0]
    if not chosen:
        raise UnknownName(f"{where} has no kernel {name!r}: it has {_brief_names(images, shown) or 'none'}")
    raise UnknownName(f"{where} has several kernels: choose with --kernel: {_brief_names(chosen, shown)}")


def _named_in_full(functions: Sequence[str], name: str) -> list[str]:
    """Those that a demangler calls so, with or without the namespaces in front of it."""
    ends = re.compile(rf"(?:^|::|void){re.escape(''.join(name.split()))}\(")
    known = signatures(functions)
    return [one for one in functions if ends.search("".join(known.get(one, "").split()))]


def _brief_names(functions: Sequence[str], shown: Mapping[str, str]) -> str:
    """The names by which each of these can be chosen: mangled where instances differ by types alone."""
    count = Counter(shown[function] for function in functions)
    return brief_list(sorted(shown[one] if count[shown[one]] == 1 else one for one in functions))


def _is_instance(function: str, plain: str, name: str) -> bool:
    """Whether a mangled name is the instance `v2d<64, true>`: its first template arguments are these."""
    match = re.fullmatch(r"(?:\w+::)*(\w+)<(.*)>", "".join(name.split()))
    if match is None or match[1] != plain:
        return False
    values = [{"true": "1", "false": "0"}.get(word, word.replace("-", "n")) for word in match[2].split(",")]
    wanted = "".join(rf"L[a-z]{re.escape(value)}E" for value in values)
    return re.search(rf"{len(plain)}{plain}I{wanted}", function) is not None


def run_cubin(
    cubin: Path, function: FunctionCode, launch: CubinLaunch, *, has_hidden: bool = False
) -> LaunchRun:
    """The launch with what its blocks execute, as many of them run as say what all do.

    cubin: with the code of one architecture. has_hidden: it may have the pointers that Triton adds, which are
    null where no argument is given for them. Raises NoModel for arguments that are not the kernel's, accesses
    outside of the arrays, and instructions without a model.
    """
    arrays = [argument.values for argument in launch.arguments if argument.is_array]
    memory, images = place_data(read_kernels(cubin), arrays)
    image = images[function.name]
    addresses = iter(memory.addresses)
    content = [
        next(addresses).to_bytes(8, "little") if argument.is_array else argument.values.tobytes()
        for argument in launch.arguments
    ]
    arguments = launch.arguments
    behind = [parameter.size for parameter in image.parameters[len(content) :]]
    if has_hidden and len(behind) <= _MOST_HIDDEN and set(behind) == {8}:
        hidden = [LaunchArgument("u64=0", np.zeros(1, "u8"), is_array=False)] * len(behind)
        arguments, content = (*arguments, *hidden), content + [bytes(8)] * len(behind)
    _compare_parameters(image, arguments, content)
    shape = LaunchShape(
        function_name(function.name), launch.grid, launch.block, launch.shared_bytes, 0, function.name
    )
    return run_launch(image, function, shape, content, memory)


def _compare_parameters(
    image: KernelImage, arguments: Sequence[LaunchArgument], content: Sequence[bytes]
) -> None:
    """Raise NoModel where the kernel's parameters have other sizes."""
    name = function_name(image.function)
    sizes = [parameter.size for parameter in image.parameters]
    if len(sizes) != len(content):
        words = ", ".join(f"{size} bytes" for size in sizes) or "none"
        raise NoModel(f"{name} has {len(sizes)} parameters ({words}); {len(content)} arguments were given")
    for number, (size, argument, given) in enumerate(zip(sizes, arguments, content, strict=True), 1):
        if len(given) != size:
            raise NoModel(
                f"parameter {number} of {name} has {size} bytes, and {argument.text!r} has {len(given)}"
            )


def predict_cubin(
    cubin: Path,
    run: LaunchRun,
    registers: int,
    static_shared_bytes: int,
    gpu: GpuPart,
    errors: ErrorTable,
) -> LaunchPrediction:
    """How long a launch of a cubin takes on a GPU that runs its code.

    registers: of a thread; static_shared_bytes: of a block, without what the system takes. Raises NoModel.
    """
    words = read_code_words(cubin).get(run.function.name)
    return predict_run(run, launch_inputs(run, words, registers, static_shared_bytes, gpu), errors)
