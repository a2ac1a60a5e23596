"""The name that a launch goes by."""

from __future__ import annotations

import pytest

from profiler.evidence.launch import Launch, place_of_most_time
from profiler.evidence.values import pack_values


def launch(function: str, demangled: str) -> Launch:
    return Launch(function, demangled, "", (1, 1, 1), (1, 1, 1), 7, (), 0, pack_values({}))


@pytest.mark.parametrize(
    ("function", "demangled", "name"),
    [
        ("gemm", "void ns::gemm<(int)64>(A<float>*)", "gemm"),
        ("", "void ns::gemm<(int)64>(A<float>*)", "ns::gemm"),
        # ncu splits numba's name at the last colon, which stands inside the tag.
        ("cw51cXTL_3d]", "cudapy::__main__::add_1_241[abi:cw51cXTL_3d](Array<float, 2, C>)", "add_1_241"),
        ("v1][abi:c8]", "cudapy::kernels::add[abi:v1][abi:c8](Array<double, 1>)", "add"),
        ("text[abi:cxx11]", "text[abi:cxx11](int)", "text"),
        ("cw51]", "", "cw51]"),
    ],
)
def test_the_base_name_has_no_return_type_template_parameters_or_abi_tags(
    function: str, demangled: str, name: str
) -> None:
    assert launch(function, demangled).base_name == name


def test_two_kernels_of_numba_that_share_a_tag_are_two() -> None:
    names = {launch("c8]", f"cudapy::k::{name}[abi:c8](int)").base_name for name in ("rows", "columns")}
    assert names == {"rows", "columns"}


@pytest.mark.parametrize(
    ("kernels", "times", "place"),
    [
        (["a", "b", "b", "b"], [5.0, 2.0, 3.0, 2.5], 2),  # the longest launch is of another kernel
        (["a", "b", "b"], [6.0, 2.0, 3.0], 0),
        (["a", "b"], [None, 1.0], 1),
        (["a", "b"], [None, None], 0),
        (["a", "a"], [None, 0.0], 1),
        (["fill", *["rows"] * 4, "gemm"], [9.0, 2.0, 2.5, None, 2.25, 6.5], 0),  # 9 of 6.75 and 6.5
        (
            ["fill", *["rows"] * 5, "gemm"],
            [9.0, 2.0, 2.5, 2.5, 1.0, 2.25, 6.5],
            2,
        ),  # 10.25: the first longest
    ],
)
def test_the_launch_of_most_time_is_the_longest_of_the_kernel_with_most(
    kernels: list[str], times: list[float | None], place: int
) -> None:
    assert place_of_most_time(kernels, times) == place
