"""Tests of where wgmma and TMA find and leave their operands, against the tables of the PTX ISA in numpy.

Source: PTX ISA, "Strides" and "canonical layouts" of matrix descriptors (nested shapes and strides, in
elements of 16 bits), the tables of "Swizzling modes", and the figures of the fragments of m64nNk16.
"""

from pathlib import Path

import numpy as np
import pytest

from profiler.catalog.problem import Case, Tolerance
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import Emulator, Schedule
from tests.toolchain import needs_gxx

HERE = Path(__file__).resolve().parents[1] / "emulated"
IMAGE = 48 << 10
NONE, B128, B64, B32 = range(4)  # as descriptors count
CHUNKS = {NONE: 1, B128: 8, B64: 4, B32: 2}  # of 16 bytes in a row of the pattern
# Of each line of 128 bytes, where its 16-byte chunks go; the pattern repeats.
TABLES = {
    NONE: ("01234567",),
    B32: ("01234567", "10325476"),
    B64: ("01234567", "10325476", "23016745", "32107654"),
    B128: (
        "01234567",
        "10325476",
        "23016745",
        "32107654",
        "45670123",
        "54761032",
        "67452301",
        "76543210",
    ),
}
T = 8  # elements in 16 bytes
A_START, B_START = 1024, 24 << 10

pytestmark = needs_gxx


@pytest.fixture(scope="module")
def emulator():
    with Emulator() as emulator:
        yield emulator


@pytest.fixture(scope="module")
def library(build_cache):
    return build_cpu_library(HERE / "layouts.cu", folder=build_cache / "cpu")


def permuted(address, mode):
    """A byte's address after the swizzle, by the tables."""
    table = TABLES[mode]
    line, within = divmod(address, 128)
    return line * 128 + int(table[line % len(table)][within // 16]) * 16 + within % 16


def nested(shape, strides, index):
    """The offset of an index into a nested shape: the first of its sizes runs fastest."""
    offset = 0
    for size, stride in zip(shape, strides, strict=True):
        offset += index % size * stride
        index //= size
    return offset


def canonical(mode, by_mn, leading, stride):
    """((shape, strides) along M or N, along K), in elements; leading and stride are bytes."""
    width, leading, stride = CHUNKS[mode], leading // 2, stride // 2
    many = 1 << 10
    if by_mn and mode == NONE:
        return ((T, many), (1, stride)), ((8, many), (T, leading))
    if by_mn:
        return ((T, width, many), (1, T, leading)), ((8, many), (width * T, stride))
    if mode == NONE:
        return ((8, many), (T, stride)), ((T, many), (1, leading))
    return ((8, many), (width * T, stride)), ((T, many), (1, T))


def place(image, values, mode, by_mn, start, leading, stride):
    """Put an operand [size][16] into the image of shared memory."""
    along_mn, along_k = canonical(mode, by_mn, leading, stride)
    for mn, k in np.ndindex(values.shape):
        address = start + 2 * (nested(*along_mn, mn) + nested(*along_k, k))
        image[permuted(address, mode) // 2] = values[mn, k]


def fragments(matrix):
    """[64][columns] as [128 threads][registers]: rows by warp, half, lane; columns by block of 8, lane."""
    split = matrix.reshape(4, 2, 8, matrix.shape[1] // 8, 4, 2)
    return split.transpose(0, 2, 4, 3, 1, 5).reshape(128, -1)


def integers(*shape):
    """Products and sums of these are exact in fp32."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(np.float16)


def multiplied(emulator, library, image, operand, fields, trans_b, n):
    output = np.full((128, n // 2), np.nan, np.float32)
    case = Case(
        (image, operand, output, *fields, trans_b, n), (), output, np.zeros(output.shape), Tolerance(0, 0)
    )
    result = emulator.run(library, "multiply", case, Schedule(0))
    assert (result.returned, result.defects) == (0, ())
    return output


@pytest.mark.parametrize("n", [32, 128])
@pytest.mark.parametrize("by_n", [False, True])
@pytest.mark.parametrize("mode", [NONE, B128, B64, B32])
def test_a_product_reads_what_the_canonical_layouts_say(emulator, library, mode, by_n, n):
    image = np.full(IMAGE // 2, np.nan, np.float16)
    a, b = integers(64, 16), integers(n, 16)
    group = 8 * 16 * CHUNKS[mode]  # bytes of 8 rows of the pattern
    # K-major with no swizzle: 8 x 8 matrices, those along K beside each other.
    a_strides = (128, 256) if mode == NONE else (16, group)
    place(image, a, mode, False, A_START, *a_strides)
    if by_n:  # columns of the next row of the pattern lie behind all 16 k; with no swizzle, k behind all n
        b_strides = (n * 16, 128) if mode == NONE else (16 * 16 * CHUNKS[mode], group)
    else:
        b_strides = a_strides
    place(image, b, mode, by_n, B_START, *b_strides)
    fields = (A_START, *a_strides, B_START, *b_strides, mode)
    expected = fragments(a.astype(np.float32) @ b.astype(np.float32).T)
    assert np.array_equal(multiplied(emulator, library, image, None, fields, int(by_n), n), expected)
    if mode == B128:
        in_registers = fragments(a).reshape(128, 8).view(np.uint32).copy()
        assert np.array_equal(
            multiplied(emulator, library, image, in_registers, fields, int(by_n), n), expected
        )
        wrong = (*fields[:5], fields[5] // 2, mode)  # another stride
        assert not np.array_equal(multiplied(emulator, library, image, None, wrong, int(by_n), n), expected)


@pytest.mark.parametrize("mode", [NONE, B128, B64, B32])
@pytest.mark.parametrize("corner", [(0, 0, 0), (8, 20, 1), (-8, -3, 0), (0, 0, 2)])
def test_a_box_lies_where_the_swizzle_tables_say_and_is_clipped(emulator, library, mode, corner):
    x, y, z = corner
    tensor = np.arange(1, 1 + 2 * 40 * 72, dtype=np.float16).reshape(2, 40, 72)
    columns, rows = CHUNKS[mode] * T, 32
    padded = np.zeros((4, 120, 200), np.float16)
    padded[1:3, 40:80, 64:136] = tensor
    box = padded[1 + z, 40 + y : 40 + y + rows, 64 + x : 64 + x + columns]
    image = np.full(IMAGE // 2, 1, np.uint16)
    image[1::2] = 0  # 1, as a word of 32 bits
    for row, column in np.ndindex(box.shape):
        image[permuted((row * columns + column) * 2, mode) // 2] = box[row, column].view(np.uint16)
    sizes = (72, 40, 2, columns, rows, mode, x, y, z)
    loaded = np.zeros(IMAGE // 2, np.uint16)
    case = Case((tensor, loaded, 1, *sizes), (), loaded, np.zeros(loaded.shape), Tolerance(0, 0))
    result = emulator.run(library, "copy_box", case, Schedule(1))
    assert (result.returned, result.defects) == (0, ())
    assert np.array_equal(loaded, image)
    stored = np.zeros_like(tensor)
    case = Case((image, stored, 0, *sizes), (), stored, np.zeros(stored.shape), Tolerance(0, 0))
    result = emulator.run(library, "copy_box", case, Schedule(1))
    assert (result.returned, result.defects) == (0, ())
    kept = np.zeros_like(padded)
    kept[1 + z, 40 + y : 40 + y + rows, 64 + x : 64 + x + columns] = box
    assert np.array_equal(stored, kept[1:3, 40:80, 64:136])


@pytest.mark.parametrize(
    "sizes",
    [
        (36, 40, 2, 64, 32, B128),  # rows that are no multiple of 16 bytes
        (72, 40, 2, 32, 32, B128),  # a box narrower than the pattern
        (72, 40, 2, 64, 257, B128),
        (72, 0, 2, 64, 32, B128),
    ],
)
def test_a_tensor_map_that_the_driver_or_the_header_refuses_is_refused(emulator, library, sizes):
    output = np.zeros(IMAGE // 2, np.uint16)
    case = Case(
        (output.copy(), output, 1, *sizes, 0, 0, 0), (), output, np.zeros(output.shape), Tolerance(0, 0)
    )
    result = emulator.run(library, "copy_box", case, Schedule(0))
    assert (result.returned, result.launches) == (1, ())
