"""Reports that hold kernels of libraries alone, gates of one kernel, and kernels renamed together."""

from __future__ import annotations

from pathlib import Path

import pytest

import profiler
from profiler.errors import CannotJudge, Exit, UnknownName
from profiler.statistics.verdict import Verdict

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size",'
    '"Device","CC","gpu__time_duration.sum","launch__registers_per_thread","smsp__inst_executed.sum"\n'
    '"","","","","","","","","","","","ns","register/thread","inst"\n'
)
FILL = (
    "void at::native::vectorized_elementwise_kernel<(int)4, at::native::FillFunctor<float>, "
    "at::detail::Array<char *, (int)1>>(int, T2, T3)"
)
RANDOM = (
    "void at::native::<unnamed>::distribution_elementwise_grid_stride_kernel<float, (int)4, void "
    "at::native::templates::cuda::normal_and_transform<float, float>(T4)::[lambda(int) (instance 1)]>(long)"
)
RANGE = (
    "void <unnamed>::elementwise_kernel_with_index<int, at::native::arange_cuda_out(const c10::Scalar &, "
    "at::Tensor &)::[lambda() (instance 1)]::operator ()() const::[lambda(long) (instance 1)]>(T1, T2)"
)
LIBRARY = {
    "fill": FILL,
    "random": RANDOM,
    "range": RANGE,
    "cublas": "ampere_sgemm_128x64_nn",
    "cublas 12": "nvjet_hsh_128x256_64x4_1x2_h_bz_coopA_NNT",
    "cudnn": "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int>(int)",
    "thrust": "void thrust::cuda_cub::core::_kernel_agent<thrust::cuda_cub::__parallel_for::ParallelForAgent<"
    "thrust::cuda_cub::__uninitialized_fill::functor<thrust::device_ptr<float>, float>, unsigned long>>(T2)",
    "cub": "void cub::CUB_200200_700_NS::DeviceReduceSingleTileKernel<cub::CUB_200200_700_NS::"
    "DeviceReducePolicy<float, int, cuda::std::plus<void>>::Policy600, float *, float *>(T2, T3)",
}
OWN = {
    "own": "void softmax_rows<(int)4>(float *)",
    "lambda": "void thrust::cuda_cub::core::_kernel_agent<main::[lambda(int) (instance 1)], long>(T2)",
    "functor": "void cub::DeviceTransform<cub::Policy, saxpy_functor, float *>(T2)",
}


def report(folder: Path, name: str, *launches: tuple[str, float], instructions: float = 5e5) -> str:
    rows = "".join(
        f'"{place}","7","app","h","{kernel}","1","7","(128, 1, 1)","(64, 1, 1)","0","8.0",'
        f'"{ns:.0f}","40","{instructions:.0f}"\n'
        for place, (kernel, ns) in enumerate(launches)
    )
    path = folder / f"{name}.csv"
    path.write_text(HEAD + rows)
    return str(path)


@pytest.mark.slow
@pytest.mark.parametrize("kernel", LIBRARY.values(), ids=LIBRARY)
def test_kernels_of_libraries_alone_are_judged_by_nothing(tmp_path: Path, kernel: str) -> None:
    a, b = (report(tmp_path, name, (kernel, ns)) for name, ns in (("silu_v1", 2e5), ("silu_v2", 3e5)))
    compared = profiler.compare(a, b)
    assert (compared.verdict, compared.exit_code) == (Verdict.NOT_COMPARABLE, Exit.UNJUDGED)
    assert profiler.gate([b], baseline=a).exit_code is Exit.UNJUDGED
    with pytest.raises(CannotJudge):
        profiler.insights(b)


@pytest.mark.parametrize("kernel", LIBRARY.values(), ids=LIBRARY)
def test_a_library_kernel_that_somebody_names_is_judged(tmp_path: Path, kernel: str) -> None:
    word = next(
        word
        for word in ("Fill", "distribution", "arange", "sgemm", "nvjet", "bn_fw", "_kernel_agent", "Reduce")
        if word in kernel
    )
    a, b = (report(tmp_path, name, (kernel, ns)) for name, ns in (("silu_v1", 2e5), ("silu_v2", 3e5)))
    assert profiler.compare(a, b, kernel=word).verdict is Verdict.WORSE
    assert profiler.gate([b], baseline=a, kernel=word).exit_code is Exit.REGRESSION
    profiler.insights(b, kernel=word)


def test_a_report_that_is_named_after_the_kernel_is_about_it(tmp_path: Path) -> None:
    a, b = (
        report(tmp_path, name, (LIBRARY["cublas"], ns)) for name, ns in (("sgemm_1", 2e5), ("sgemm_2", 3e5))
    )
    assert profiler.compare(a, b).verdict is Verdict.WORSE


@pytest.mark.parametrize("kernel", OWN.values(), ids=OWN)
def test_what_a_library_runs_for_a_program_is_the_programs(tmp_path: Path, kernel: str) -> None:
    a, b = (report(tmp_path, name, (kernel, ns), (FILL, 4e5)) for name, ns in (("v1", 2e5), ("v2", 3e5)))
    assert profiler.gate([b], baseline=a).exit_code is Exit.REGRESSION


def test_a_gate_of_one_kernel_judges_it_alone(tmp_path: Path) -> None:
    a = report(tmp_path, "a", ("softmax", 2e5), ("rows", 2e5), ("gone", 1e5))
    b = report(tmp_path, "b", ("softmax", 2e5), ("rows", 3e5))
    codes = {
        name: profiler.gate([b], baseline=a, kernel=name).exit_code for name in ("softmax", "rows", "gone")
    }
    assert codes == {"softmax": Exit.PASS, "rows": Exit.REGRESSION, "gone": Exit.UNJUDGED}
    with pytest.raises(UnknownName):
        profiler.gate([b], baseline=a, kernel="sofmax")


RENAMED = {
    "a prefix": ("{}_kernel_row", "fused_{}_kernel_row"),
    "a suffix": ("{}_kernel_row", "{}_kernel_row_sm90"),
    "Triton's arguments": ("{}_kernel_0d1d2d3de", "{}_kernel_0d1d2d3de4de5c"),
}


@pytest.mark.parametrize(("before", "after"), RENAMED.values(), ids=RENAMED)
def test_kernels_that_were_renamed_together_are_proposed_and_judged(
    tmp_path: Path, before: str, after: str
) -> None:
    kernels = ("softmax", "rotary", "cumsum")
    a = report(tmp_path, "a", *((before.format(kernel), 2e5) for kernel in kernels))
    b = report(
        tmp_path,
        "b",
        *((after.format(kernel), 3e5 if kernel == "rotary" else 2e5) for kernel in kernels[::-1]),
    )
    compared = profiler.compare(a, b).comparison
    words = {
        next(kernel for kernel in kernels if kernel in pair.a.base_name): (pair.verdict, pair.paired_by.value)
        for pair in compared.pairs
        if next(kernel for kernel in kernels if kernel in pair.a.base_name) in pair.b.base_name
    }
    assert words == {
        "softmax": (Verdict.SAME, "similar name"),
        "rotary": (Verdict.WORSE, "similar name"),
        "cumsum": (Verdict.SAME, "similar name"),
    }
    assert profiler.gate([b], baseline=a).exit_code is Exit.REGRESSION
    assert profiler.gate([b], baseline=a, guess=False).exit_code is Exit.UNJUDGED


def test_a_name_that_ends_another_is_no_pair_where_other_work_was_done(tmp_path: Path) -> None:
    a = report(tmp_path, "a", ("rms_norm", 2e5), ("softmax_row", 2e5))
    b = report(tmp_path, "b", ("fused_add_rms_norm", 3e5), ("other_thing", 2e5), instructions=9e5)
    assert not profiler.compare(a, b).comparison.pairs
