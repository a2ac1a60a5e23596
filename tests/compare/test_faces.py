"""Further forms of what strangers' pairs were once judged wrongly by: other facts, tools, GPUs and names."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

import profiler
from profiler.cli import main
from profiler.compare.comparison import compare
from profiler.compare.launch_facts import generated_stem
from profiler.errors import CannotJudge, Exit
from profiler.evidence.launch import Launch
from profiler.evidence.values import Value, pack_values
from profiler.statistics.verdict import Verdict
from tests.compare.test_launch_facts import TABLE, launch, matched, places, side
from tests.compare.test_library_kernels import report
from tests.compare.test_split_by_gpu import report as report_of_gpus
from tests.compare.test_split_by_gpu import sides

DYNAMIC = "launch__shared_mem_per_block_dynamic"
SAME, WORSE, BETTER = Verdict.SAME, Verdict.WORSE, Verdict.BETTER


def with_values(made: Launch, **numbers: float) -> Launch:
    return replace(made, values=pack_values(dict(made.values) | {k: Value(n) for k, n in numbers.items()}))


def verdicts(a: list[Launch], b: list[Launch]) -> dict[tuple[int, int], Verdict]:
    pairs = compare(side(*a), side(*b), TABLE).pairs
    return {(pair.a.ordinal, pair.b.ordinal): pair.verdict for pair in pairs}


@pytest.mark.parametrize("order", [(1, 2, 3, 0), (3, 2, 1, 0)])
def test_configurations_that_differ_in_dynamic_shared_memory_alone(order: tuple[int, ...]) -> None:
    made = [
        with_values(launch(us), **{DYNAMIC: kb << 10})
        for us, kb in ((400, 8), (300, 16), (180, 32), (90, 64))
    ]
    found = verdicts(made, [made[place] for place in order])
    assert found == {(of_a, of_b): SAME for of_b, of_a in enumerate(order)}


H100, H200 = ("NVIDIA H100 80GB HBM3", "9.0"), ("NVIDIA H200", "9.0")


def test_gpus_of_one_capability_are_two_gpus(tmp_path: Path) -> None:
    """What tells them apart is the name alone; the H100 has no partner, and the H200 is slower."""
    a = report_of_gpus(tmp_path / "a.csv", [(H100, 203_456, 0), (H200, 151_234, 1)])
    b = report_of_gpus(tmp_path / "b.csv", [(H200, 181_234, 0), (H200, 181_238, 0)])
    comparison = compare(*sides(a, b), TABLE)
    assert {(pair.a.gpu, pair.b.gpu, pair.verdict) for pair in comparison.pairs} == {
        (H200[0], H200[0], WORSE)
    }
    assert [one.gpu for one in comparison.only_in_a] == [H100[0]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("across", "codes"),
    [(("gpu",), (Exit.REGRESSION, Exit.PASS)), ((), (Exit.UNJUDGED, Exit.UNJUDGED))],
    ids=["across", "not across"],
)
def test_a_gate_across_gpus_of_one_kernel(
    tmp_path: Path, across: tuple[str, ...], codes: tuple[Exit, Exit]
) -> None:
    """Both options at once, on two files."""
    a = report_of_gpus(tmp_path / "a.csv", [(H100, 203_456, 0)])
    b = report_of_gpus(tmp_path / "b.csv", [(H200, 251_234, 0)])
    forth, back = (
        profiler.gate([str(y)], baseline=str(x), kernel="attn*", across=across).exit_code
        for x, y in ((a, b), (b, a))
    )
    assert (forth, back) == codes


@pytest.mark.parametrize(("of_a", "of_b"), [(12, 10), (5, 8)])
def test_samples_of_two_kernels_that_take_turns(of_a: int, of_b: int) -> None:
    """A kernel with steady times, and one that got slower, launched in turns and other numbers of times."""

    def taking_turns(count: int, factor: float) -> list[Launch]:
        return [
            launch(us * (1 + 0.0004 * (place * 4 % 9)), name, registers=40, instructions=5e5)
            for place in range(count)
            for name, us in (("rows", 200.0), ("columns", 150.0 * factor))
        ]

    pairs = compare(side(*taking_turns(of_a, 1.0)), side(*taking_turns(of_b, 1.1)), TABLE).pairs
    found = {pair.a.base_name: (pair.verdict, [len(of) for of in pair.launches]) for pair in pairs}
    assert found == {"rows": (SAME, [of_a, of_b]), "columns": (WORSE, [of_a, of_b])}


RENAMED = {
    "a version before and a suffix behind": ("{}_fwd", "v2_{}_fwd"),
    "Triton's sizes": ("{}_kernel_0d1d2de", "{}_kernel"),
    "CuTe's arguments": ("kernel_cutlass_{}_tensorptrf16_0", "fused_kernel_cutlass_{}_tensorptrf16_0"),
}


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), RENAMED.values(), ids=RENAMED)
def test_all_kernels_renamed_by_another_rule_are_proposed(tmp_path: Path, before: str, after: str) -> None:
    kernels = ("attention", "rotary", "cumsum", "norm")
    a = report(tmp_path, "a", *((before.format(kernel), 2e5) for kernel in kernels))
    b = report(
        tmp_path, "b", *((after.format(kernel), 3e5 if kernel == "norm" else 2e5) for kernel in kernels[::-1])
    )
    pairs = profiler.compare(a, b).comparison.pairs
    assert len(pairs) == 4
    for pair in pairs:
        (kernel,) = (kernel for kernel in kernels if kernel in pair.a.base_name)
        assert kernel in pair.b.base_name
        assert pair.verdict is (WORSE if kernel == "norm" else SAME)
    assert profiler.gate([b], baseline=a).exit_code is Exit.REGRESSION


CASTS = [
    ("<Shape<C<128>, C<64> >, 0u>", "<Shape<C<(int)128>, C<(int)64>>, (unsigned int)0>"),
    ("<18446744073709551615ul, false>", "<(unsigned long)18446744073709551615, (bool)0>"),
    ("<std::integral_constant<int, 4> >", "<std::integral_constant<int, (int)4>>"),
    ("<(short)-3, 1ll>", "<-3, (long long)1>"),
]


@pytest.mark.parametrize(("plain", "cast"), CASTS)
def test_casts_within_types_and_of_the_largest_numbers(plain: str, cast: str) -> None:
    a, b = (
        [launch(us, "gemm", demangled=f"void gemm{text}(float *)") for us, text in texts]
        for texts in (((200, plain), (100, "<99>")), ((100, "<(int)99>"), (200, cast)))
    )
    assert verdicts(a, b) == {(0, 1): SAME, (1, 0): SAME}
    assert {pair.differs for pair in compare(side(*a), side(*b), TABLE).pairs} == {()}


FACTS = [{"registers": 20 + 8 * n, "instructions": 1e6 * (n + 1)} for n in range(3)]
GENERATED = {
    "Inductor, all three moved round": ("triton_per_fused_norm_{}", (0, 1, 2), (1, 2, 0)),
    "Inductor, one more before": ("triton_red_fused_sum_{}", (0, 1, 2), (1, 2, 3)),
    "XLA": ("loop_multiply_fusion_{}", (1, 2, 3), (3, 1, 2)),
    "nvFuser": ("nvfuser_pointwise_f0_c1_r0_g{}", (0, 1, 2), (2, 0, 1)),
    "nvFuser, another fusion": ("nvfuser_reduction_f{}_c1_r0_g0", (0, 1, 2), (1, 2, 3)),
    "TVM": ("tvmgen_default_fused_add_{}_kernel", (1, 2, 3), (2, 3, 1)),
}


@pytest.mark.parametrize(("name", "before", "after"), GENERATED.values(), ids=GENERATED)
def test_numbers_of_other_generators_that_moved_pair_by_facts(
    name: str, before: tuple[int, ...], after: tuple[int, ...]
) -> None:
    a, b = (
        [launch(100 * (n + 1), name.format(of), **FACTS[n]) for n, of in enumerate(numbers)]
        for numbers in (before, after)
    )
    assert verdicts(a, b) == {(n, n): SAME for n in range(3)}
    assert len({generated_stem(one.base_name) for one in (*a, *b)}) == 1


TAG = "__nv_dl_wrapper_t<__nv_dl_tag<{}>, float>"
OWNERS = {
    "Kokkos": (
        "void launch<Kokkos::Impl::ParallelFor<Solver::push()::{lambda(int const&)#1}, Policy>>(T1)",
        "void launch<Kokkos::Impl::ParallelFor<Solver::pull()::{lambda(int const&)#1}, Policy>>(T1)",
    ),
    "nvcc's tag": tuple(
        f"void run<{TAG.format(f'void (*)(float*), &({owner}(float*)), (unsigned int)1')}>(T1)"
        for owner in ("rows", "columns")
    ),
    "a tag of a member": tuple(
        f"void run<{TAG.format(f'void (ns::S::*)(float*), &ns::S::{owner}, 1u')} >(float*)"
        for owner in ("step", "start")
    ),
    "a tag in a tag": tuple(
        "void run<"
        + TAG.format(
            f"void (*)({TAG.format(f'void (*)(int), &(void cuda::{owner}_kernel<float*>(int)), 2u')}), "
            "&(void cuda::transform<float, float>(int, int)), 2u"
        )
        + ">(int)"
        for owner in ("uniform", "normal")
    ),
}


@pytest.mark.parametrize(("a", "b"), OWNERS.values(), ids=OWNERS)
def test_other_words_for_the_function_of_a_lambda(a: str, b: str) -> None:
    one, other = launch(100, "run", demangled=a), launch(143, "run", demangled=b)
    assert not matched(side(one), side(other)).pairs
    assert places(side(one, other), side(other, one)) == {(0, 1), (1, 0)}


LIBRARIES = {
    "cuFFT": "void regular_fft<(unsigned int)256, EPT<(unsigned int)8>, (padding_t)1>(kernel_parameters_t)",
    "cuRAND": "void gen_sequenced<curandStateXORWOW, float, int, &curand_uniform<curandStateXORWOW>>(T1)",
    "cuSPARSE": "void cusparse::csrmv_v3_kernel<std::integral_constant<bool, 0>, int, int, float>(T1)",
    "NCCL": "ncclDevKernel_AllReduce_Sum_f16_RING_LL(ncclDevKernelArgsStorage<(unsigned long)4096>)",
    "cuBLAS, a dot": "void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensor<const float>>>(T4)",
    "CuPy": "cupy_fill",
}


@pytest.mark.slow
def test_the_pair_that_is_printed_for_unequal_numbers_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Five launches beside three of steady other kernels, of which no fact says which is which."""
    a, b = (
        report(tmp_path, name, *(("partition", us * 1e3) for us in times), ("rows", 2e5))
        for name, times in (("a", (90, 190, 390, 790, 1590)), ("b", (110, 230, 480)))
    )
    without = (tmp_path / "a.csv", tmp_path / "b.csv")
    for path in without:
        path.write_text(re.sub(r',"40","\d+"\n', ',"",""\n', path.read_text()))
    assert main(["compare", a, b]) == Exit.PASS
    advice = re.search(r"--pair (\S+=\S+) pairs what is ambiguous", capsys.readouterr().out)
    assert advice is not None
    left, _, right = advice[1].partition("=")
    compared = profiler.compare(a, b, pairs=[(left, right)]).comparison
    assert not compared.ambiguous
    assert sum(pair.a.base_name == "partition" for pair in compared.pairs) == 3


@pytest.mark.slow
@pytest.mark.parametrize("kernel", LIBRARIES.values(), ids=LIBRARIES)
def test_kernels_of_further_libraries_alone_are_judged_by_nothing(tmp_path: Path, kernel: str) -> None:
    a, b = (report(tmp_path, name, (kernel, ns)) for name, ns in (("silu_v1", 2e5), ("silu_v2", 3e5)))
    compared = profiler.compare(a, b)
    assert (compared.verdict, compared.exit_code) == (Verdict.NOT_COMPARABLE, Exit.UNJUDGED)
    with pytest.raises(CannotJudge):
        profiler.insights(b)


@pytest.mark.slow
def test_an_export_in_other_units_of_some_launches_is_the_same_measurement(tmp_path: Path) -> None:
    """The raw page in base units beside what ncu printed of its second and third launch, by name, in µs."""
    head = ["ID", "Process ID", "Kernel Name", "Stream", "Block Size", "Grid Size", "CC"]
    units = {
        "gpc__cycles_elapsed.max": "cycle",
        "gpu__time_duration.sum": "ns",
        "sm__cycles_active.avg": "cycle",
        "smsp__inst_executed.sum": "inst",
    }
    places = [[n, 7, "rows(float *)", 7, "(128, 1, 1)", f"({64 << n}, 1, 1)", "9.0"] for n in range(3)]
    values = [
        (612_345 + 991 * n, 437_441 + 773 * n, 598_765.4321 + 877.123 * n, 9_876_541 + 12_345 * n)
        for n in range(3)
    ]
    raw_rows = [[*head, *units], [""] * 7 + [*units.values()]]
    raw_rows += [[*place, *of] for place, of in zip(places, values, strict=True)]
    long_rows: list[list[object]] = [[*head, "Section Name", "Metric Name", "Metric Unit", "Metric Value"]]
    for place, of in list(zip(places, values, strict=True))[1:]:
        for (name, unit), number in zip(units.items(), of, strict=True):
            cells = ["us", f"{number / 1e3:,.2f}"] if unit == "ns" else [unit, f"{round(number, 2):,}"]
            long_rows.append([*place, "S", name, *cells])
    for name, rows in (("raw", raw_rows), ("details", long_rows)):
        with (tmp_path / f"{name}.csv").open("w", newline="") as stream:
            csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(rows)
    raw, details = (str(tmp_path / f"{name}.csv") for name in ("raw", "details"))
    for one, other in ((raw, details), (details, raw)):
        assert profiler.gate([one], baseline=other).exit_code is Exit.UNJUDGED
        assert profiler.compare(one, other).verdict is Verdict.NOT_COMPARABLE
