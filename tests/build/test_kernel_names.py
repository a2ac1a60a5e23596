"""What is read from mangled names of kernel functions."""

from __future__ import annotations

import pytest

from profiler.build.kernel_names import function_name, stable_name, stable_symbols, template_integer


@pytest.mark.parametrize(
    ("mangled", "name", "integer"),
    [
        ("_Z3v2dILi64EEvPK6__halfS2_S2_PS0_iifi", "v2d", 64),
        ("_ZN4mine6reduceIfLi128EEEvPT_", "reduce", 128),
        ("_ZN35_GLOBAL__N__ee343ae4_5_an_cu__Z1fPf6kernelILj32ELb1EEEvPf", "kernel", 32),
        ("_Z7indexedPKiPf", "indexed", None),
        ("product", "product", None),
        ("_Z12takes_struct6Params", "takes_struct", None),
        ("_Z6attend6Params", "attend", None),
        ("_ZN2ns6attendI6ParamsLi64EEEvT_", "attend", 64),
        ("_ZN12_GLOBAL__N_16attendE6Params", "attend", None),
        ("_ZL6attend6Params", "attend", None),
        ("_ZN7cutlass6KernelI4GemmILi128EEEEvNT_6ParamsE", "Kernel", 128),
        ("_ZN4ClasILi64EE3runE6Params", "run", None),
        ("_Z3k16I13__nv_bfloat16DF16_Ev6Params", "k16", None),
        ("_Z6kernelIZ4mainEUlfE_EvT_", "kernel", None),
        ("_Z99x", "_Z99x", None),
    ],
)
def test_names_are_read_from_mangled_ones(mangled: str, name: str, integer: int | None) -> None:
    assert function_name(mangled) == name
    assert template_integer(mangled) == integer


def test_a_function_of_an_anonymous_namespace_has_one_name_wherever_it_is_built() -> None:
    first, second = (
        f"_ZN35_GLOBAL__N__{path_hash}_5_an_cu__Z1fPf6kernelEv" for path_hash in ("ee343ae4", "0badcafe")
    )
    assert stable_name(first) == stable_name(second) == "_ZN_GLOBAL__N__5_an_cu__Z1fPf6kernelEv"


@pytest.mark.parametrize(
    ("mangled", "stable"),
    [
        ("_ZN30_GLOBAL__N__69f9bab9_4_a_cu_go1kEv", "_ZN_GLOBAL__N__4_a_cu_go1kEv"),
        ("_ZN41_GLOBAL__N__69f9bab9_4_a_cu_deadbeef_64331kEv", "_ZN_GLOBAL__N__4_a_cu1kEv"),
        ("_INTERNAL_69f9bab9_4_a_cu_deadbeef", "_INTERNAL_4_a_cu"),
        ("_Z8deadbeefPf", "_Z8deadbeefPf"),
    ],
)
def test_hashes_of_paths_and_no_part_of_a_name_are_left_out(mangled: str, stable: str) -> None:
    assert stable_name(mangled) == stable


def test_numbers_that_a_compiler_counts_variables_by_are_left_out_and_their_order_kept() -> None:
    shared = "$___ZZ9kQuantizePfS_PhiE9smem_code__"
    static = "__nv_static_36__b96781cf_10_kernels_cu_9e07a690_{}_nf4_data"
    assert stable_symbols([f"{shared}1821", "_Z1xf__7"]) == stable_symbols([f"{shared}1739", "_Z1xf__7"])
    assert stable_symbols([static.format(759)]) == stable_symbols([static.format(529)])
    assert stable_symbols(["_Z1xf__7", "x__8"]) == ["_Z1xf__7", "x__8"]
    both, turned = (stable_symbols([f"{shared}{a}", f"{shared}{b}"]) for a, b in ((9, 10), (10, 9)))
    assert both == [f"{shared}0", f"{shared}1"] == turned[::-1]
