"""Files of benchmark tools give the numbers that stand in them, and damaged ones a line that says why not."""

from __future__ import annotations

import array
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from profiler.errors import ProfilerError
from profiler.timings.columns import parse_columns
from profiler.timings.read import read_timings, timings_form
from profiler.timings.timing import Timing, TimingsFile

PYTEST: dict[str, Any] = {
    "machine_info": {"node": "box", "python_version": "3.12.1", "cpu": {"brand_raw": "a CPU"}},
    "commit_info": {"id": "0123456789abcdef0123", "dirty": True, "branch": "main"},
    "benchmarks": [
        {
            "group": None,
            "name": "test_softmax[1024]",
            "fullname": "tests/bench_ops.py::test_softmax[1024]",
            "stats": {"median": 2e-05, "data": [1.5e-05, 2e-05, 2.5e-05], "iterations": 4},
        },
        {"group": "gemm", "name": "test_gemm", "fullname": "t.py::test_gemm", "stats": {"median": 0.001}},
    ],
    "datetime": "2026-03-01T10:00:00+01:00",
    "version": "5.1.0",
}
GOOGLE: dict[str, Any] = {
    "context": {"date": "2026-03-01T10:00:00+00:00", "host_name": "box", "executable": "./build/bench_gemm"},
    "benchmarks": [
        {
            "name": "BM_a/8",
            "run_name": "BM_a/8",
            "run_type": "iteration",
            "real_time": 2.5,
            "time_unit": "us",
        },
        {
            "name": "BM_a/8",
            "run_name": "BM_a/8",
            "run_type": "iteration",
            "real_time": 3.5,
            "time_unit": "us",
        },
        {
            "name": "BM_a/8_mean",
            "run_name": "BM_a/8",
            "run_type": "aggregate",
            "aggregate_name": "mean",
            "real_time": 3.0,
            "time_unit": "us",
        },
        {
            "name": "BM_b_median",
            "run_name": "BM_b",
            "run_type": "aggregate",
            "aggregate_name": "median",
            "real_time": 7,
        },
        {"name": "BM_b_BigO", "run_name": "BM_b", "run_type": "aggregate", "aggregate_name": "BigO"},
        {
            "name": "BM_c",
            "run_name": "BM_c",
            "run_type": "iteration",
            "error_occurred": True,
            "error_message": "no GPU",
            "real_time": 0,
        },
    ],
}


def nvbench_value(name: str, value: object, kind: str = "float64") -> dict[str, Any]:
    return {"name": name, "type": kind, "value": str(value)}


def nvbench(samples: str | None) -> dict[str, Any]:
    summaries = [
        {"tag": "nv/cold/time/gpu/mean", "data": [nvbench_value("value", 3e-6)]},
        {"tag": "nv/batch/time/gpu/mean", "data": [nvbench_value("value", 2e-6)]},
    ]
    for tag, folder in (("bin:nv/cold/sample_times", "bin"), ("freqs-bin:nv/cold/sample_freqs", "freqs-bin")):
        if samples:
            data = [nvbench_value("filename", f"{samples}-{folder}/0.bin", "string")]
            data.append(nvbench_value("size", 3, "int64"))
            summaries.append({"tag": f"nv/json/{tag}", "data": data})
    axes = [nvbench_value("T", "I32", "string"), nvbench_value("N", 4096, "int64")]
    return {
        "meta": {"argv": ["./bench", "--jsonbin", "r.json"], "version": {"nvbench": {"string": "0.1.0"}}},
        "devices": [
            {"id": 0, "name": "NVIDIA H100 SXM5", "sm_version": 900},
            {"id": 1, "name": "NVIDIA L4", "sm_version": 890},
        ],
        "benchmarks": [
            {
                "name": "copy",
                "states": [
                    {"device": 0, "axis_values": axes, "summaries": summaries, "is_skipped": False},
                    {"device": 1, "axis_values": None, "is_skipped": True, "skip_reason": "too small"},
                ],
            }
        ],
    }


HELION = [
    {
        "benchmark": {
            "name": "Helion Benchmark",
            "extra_info": {"device": "NVIDIA B200", "backend": "triton"},
        },
        "model": {"name": "softmax"},
        "metric": {"name": "helion_latency_ms", "benchmark_values": [0.25, 0.0]},
        "shape": ["(4, 8)", "(8, 8)"],
    },
    {
        "benchmark": {"name": "Helion Benchmark"},
        "model": {"name": "softmax"},
        "metric": {"name": "helion_speedup", "benchmark_values": [1.5, 2.0]},
        "shape": ["(4, 8)", "(8, 8)"],
    },
]
NIGHTLY = {
    "name": "nightly",
    "env": {
        "benchmark_date": "20260301093000",
        "device": "NVIDIA H100",
        "triton_commit": "fedcba9876543210",
        "cuda_version": "12.8",
        "tritonbench_commit": "a" * 40,
    },
    "metrics": {
        "tritonbench_softmax-pass": 1,
        "tritonbench_softmax_fwd[x_(4, 8)-triton_softmax]_latency": 0.5,
        "tritonbench_softmax_fwd[x_(4, 8)-triton_softmax]_speedup": 2.0,
        "tritonbench_softmax_fwd[x_(4, 8)-naive]_latency": "CUDA OOM",
        "tritonbench_softmax_fwd[x_average-naive]_latency": 0.5,
        "tritonbench_softmax_fwd[naive]-latency-avg": 0.5,
    },
}


def written(folder: Path, content: object, name: str = "r.json") -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
    return path


def only(path: Path) -> TimingsFile:
    (file,) = read_timings(path)
    return file


def brief(timing: Timing) -> tuple[object, ...]:
    return timing.benchmark, timing.implementation, timing.parameters, timing.ns


def test_pytest_benchmark_gives_every_round_its_commit_and_time(tmp_path: Path) -> None:
    file = only(written(tmp_path, PYTEST))
    assert file.created == datetime(2026, 3, 1, 9, tzinfo=UTC)
    assert file.commit == "0123456789ab-dirty"
    assert file.provenance["host"] == "box"
    softmax, gemm = file.timings
    assert brief(softmax) == ("bench_ops", None, "test_softmax[1024]", pytest.approx((15e3, 20e3, 25e3)))
    assert brief(gemm) == ("gemm", None, "test_gemm", pytest.approx((1e6,)))
    assert softmax.mode != gemm.mode  # single rounds, and the median of rounds that were not kept


def test_tests_of_one_name_are_told_apart_in_any_order(tmp_path: Path) -> None:
    benchmarks = [
        {"name": "test_a", "fullname": f"t.py::{of}::test_a", "stats": {"data": [seconds]}}
        for of, seconds in (("TestX", 1e-6), ("TestY", 2e-6))
    ]
    for content in (benchmarks, benchmarks[::-1]):
        file = only(written(tmp_path, {**PYTEST, "benchmarks": content}))
        assert {timing.parameters: timing.ns for timing in file.timings} == {
            "t.py::TestX::test_a": (pytest.approx(1e3),),
            "t.py::TestY::test_a": (pytest.approx(2e3),),
        }


def test_google_benchmark_gives_repetitions_else_their_median(tmp_path: Path) -> None:
    a, b, c = only(written(tmp_path, GOOGLE)).timings
    assert brief(a) == ("bench_gemm", None, "BM_a/8", (2500.0, 3500.0))
    assert (b.parameters, b.ns, b.mode.endswith("median")) == ("BM_b", (7.0,), True)
    assert (c.ns, "no GPU" in (c.failure or "")) == ((), True)


def test_what_is_no_time_may_be_no_number(tmp_path: Path) -> None:
    content = json.dumps(GOOGLE).replace('"time_unit"', '"errors": NaN, "rate": Infinity, "time_unit"')
    assert only(written(tmp_path, content)).timings[0].ns == (2500.0, 3500.0)


def test_aggregates_of_old_google_benchmarks_are_no_benchmarks(tmp_path: Path) -> None:
    times = {
        "a/8": 2,
        "a/8_mean": 3,
        "a/8_stddev": 1,
        "b_mean": 7,
        "b_median": 6,
        "b_stddev": 1,
        "sum_mean": 4,
    }
    times |= {"c/1": 5, "c/2": 9}
    benchmarks: list[dict[str, Any]] = [{"name": name, "real_time": time} for name, time in times.items()]
    benchmarks += [{"name": "c_BigO", "real_coefficient": 4.5, "big_o": "N"}, {"name": "c_RMS", "rms": 0.1}]
    content = {"context": {"date": "2019/03/12-14:22:12", "num_cpus": 4}, "benchmarks": benchmarks}
    file = only(written(tmp_path, content))
    assert {timing.parameters: timing.ns for timing in file.timings} == {
        "a/8": (2.0,),
        "b": (6.0,),  # its repetitions are not there
        "sum_mean": (4.0,),  # a benchmark of that name
        "c/1": (5.0,),
        "c/2": (9.0,),
    }
    assert file.created == datetime(2019, 3, 12, 14, 22, 12, tzinfo=UTC)


def test_gpus_of_one_name_are_measured_apart(tmp_path: Path) -> None:
    content = nvbench(None)
    content["devices"][1]["name"] = content["devices"][0]["name"]
    cold, _, skipped = only(written(tmp_path, content)).timings
    assert (cold.parameters, skipped.parameters) == ("T=I32 N=4096 Device=0", "Device=1")


@pytest.mark.parametrize("old", ["states", "summaries"])
def test_nvbench_before_its_version_1_is_refused(tmp_path: Path, old: str) -> None:
    content = nvbench(None)
    (benchmark,) = content["benchmarks"]
    if old == "states":
        benchmark["states"] = {"Device=0": benchmark["states"][0]}
    else:
        benchmark["states"][0]["summaries"] = [{"name": "Average GPU Time (Cold)", "values": []}]
    with pytest.raises(ProfilerError, match=r"version 1\.0"):
        read_timings(written(tmp_path, content))


def test_nvbench_gives_the_samples_that_lie_beside_it(tmp_path: Path) -> None:
    path = written(tmp_path, nvbench("out/r.json"), "renamed.json")
    for folder, numbers in (("bin", (1e-6, 2e-6, 3e-6)), ("freqs-bin", (1.9e9, 1.8e9, 1.7e9))):
        (tmp_path / f"renamed.json-{folder}").mkdir()
        content = array.array("f", numbers).tobytes()
        (tmp_path / f"renamed.json-{folder}" / "0.bin").write_bytes(content)
    cold, batch, skipped = only(path).timings
    assert brief(cold)[:3] == ("copy", None, "T=I32 N=4096")
    assert cold.ns == pytest.approx((1e3, 2e3, 3e3), rel=1e-6)
    assert cold.clocks_mhz == pytest.approx((1900, 1800, 1700), rel=1e-6)
    assert (cold.gpu, skipped.gpu) == ("NVIDIA H100 SXM5", "NVIDIA L4")
    assert (batch.ns, batch.mode == cold.mode) == (pytest.approx((2e3,)), False)
    assert "too small" in (skipped.failure or "")
    (tmp_path / "renamed.json-freqs-bin" / "0.bin").write_bytes(array.array("f", (1.9e9, 0, 1e9)).tobytes())
    assert only(path).timings[0].clocks_mhz == ()  # one is not known


def test_nvbench_without_its_samples_gives_the_mean_and_says_so(tmp_path: Path) -> None:
    file = only(written(tmp_path, nvbench("r.json")))
    assert file.timings[0].ns == pytest.approx((3e3,))
    assert file.timings[0].mode.endswith("mean")
    assert len(file.warnings) == 1
    assert not only(written(tmp_path, nvbench(None))).warnings


def test_nvbench_with_samples_cut_short_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, nvbench("r.json"))
    (tmp_path / "r.json-bin").mkdir()
    (tmp_path / "r.json-bin" / "0.bin").write_bytes(b"\0" * 8)
    with pytest.raises(ProfilerError, match="8 bytes"):
        read_timings(path)


def test_no_file_elsewhere_is_read_for_samples(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    path = written(tmp_path / "in", nvbench("../../r.json"))
    (tmp_path / "r.json-bin").mkdir()
    (tmp_path / "r.json-bin" / "0.bin").write_bytes(array.array("f", (1e-6, 2e-6, 3e-6)).tobytes())
    assert only(path).timings[0].ns == pytest.approx((3e3,))  # the mean: nothing lies beside it


def test_tritonbench_tables_give_implementations_by_size_and_keep_failures(tmp_path: Path) -> None:
    table = (
        "x_val;naive-softmax-latency;triton-latency;triton-speedup\n"
        "(4, 8);0.5;0.25 (±3.10%);2.0\n"
        "(8, 8);CUDA OOM;0.75;\n"
        "average;0.5;0.5;2\n"
    )
    file = only(written(tmp_path, table, "op_softmax_ab12cd_x.csv"))
    assert [brief(timing) for timing in file.timings] == [
        ("softmax", "naive-softmax", "(4, 8)", (5e5,)),
        ("softmax", "triton", "(4, 8)", (2.5e5,)),
        ("softmax", "naive-softmax", "(8, 8)", ()),
        ("softmax", "triton", "(8, 8)", (7.5e5,)),
    ]
    assert "CUDA OOM" in (file.timings[2].failure or "")


def test_a_nightly_of_tritonbench_says_where_and_when(tmp_path: Path) -> None:
    file = only(written(tmp_path, NIGHTLY))
    assert file.created == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
    assert (file.commit, file.provenance["cuda"]) == ("fedcba987654", "12.8")
    triton, naive = file.timings
    assert brief(triton) == ("softmax_fwd", "triton_softmax", "(4, 8)", (5e5,))
    assert (triton.gpu, naive.ns, naive.failure is None) == ("NVIDIA H100", (), False)


def test_keys_of_tritonbench_with_hyphens_and_of_2024(tmp_path: Path) -> None:
    keys = (
        "[x_(4, -8)-naive]_softmax-v2-latency",
        "[x_256-triton_softmax-latency]",
        "[x_256-triton_softmax-gbps]",
        "[x_8-triton]_latency-p20",
    )
    metrics = {f"tritonbench_softmax{key}": 0.5 for key in keys}
    file = only(written(tmp_path, {"name": "triton", "environ": {}, "metrics": metrics}))
    assert [brief(timing) for timing in file.timings] == [
        ("softmax", "naive-softmax-v2", "(4, -8)", (5e5,)),
        ("softmax", "triton_softmax", "256", (5e5,)),
    ]


def test_helion_gives_latencies_alone_and_no_zero(tmp_path: Path) -> None:
    first, failed = only(written(tmp_path, HELION)).timings
    assert brief(first) == ("softmax", "helion", "(4, 8)", (2.5e5,))
    assert (first.gpu, failed.ns, failed.failure is None) == ("NVIDIA B200", (), False)


@pytest.mark.parametrize("unit", ["(ms)", "(Time (ms))", "(latency [ms])"])
def test_a_table_of_triton_testing_names_sizes_and_implementations(tmp_path: Path, unit: str) -> None:
    table = f"M,N,Triton {unit},Torch {unit}\n128.000000,64.000000,0.5,\n256.000000,64.000000,1.5,2.5\n"
    file = only(written(tmp_path, table, "layer-norm.csv"))
    assert [brief(timing) for timing in file.timings] == [
        ("layer-norm", "Triton", "M=128 N=64", (5e5,)),
        ("layer-norm", "Triton", "M=256 N=64", (1.5e6,)),
        ("layer-norm", "Torch", "M=256 N=64", (2.5e6,)),
    ]


def test_names_of_implementations_keep_their_own_brackets(tmp_path: Path) -> None:
    table = "N,Triton [FP16] (TFLOPS),Triton [FP8] (TFLOPS),Diff\n64.0,1.0,2.0,1.0\n"
    timings = only(written(tmp_path, table, "attention.csv")).timings
    assert [timing.implementation for timing in timings] == ["Triton [FP16]", "Triton [FP8]"]
    bare = written(tmp_path, "N,Torch (native),Torch (jit)\n64.0,1.0,2.0\n", "softmax.csv")
    (named,) = read_timings(bare, parse_columns(["time=Torch (native)+Torch (jit)"], "GB/s"))
    assert [timing.implementation for timing in named.timings] == ["Torch (native)", "Torch (jit)"]
    old_mac = only(written(tmp_path, "N,Triton (ms)\r64.0,1.0\r", "mac.csv"))
    assert (old_mac.timings[0].parameters, old_mac.timings[0].ns) == ("N=64", (1e6,))
    indexed = only(written(tmp_path, ",N,Triton (ms)\n0,64.0,1.0\n", "indexed.csv"))
    assert indexed.timings[0].parameters == "N=64"


@pytest.mark.parametrize(
    "header",
    [
        "Benchmark,Device,Samples,CPU Time (sec),Noise,GPU Time (sec),Noise",  # CSV of NVBench
        "M,Kernel Time (us),id",
        "N,Triton (ms),Triton (GB/s)",
        "N,Triton (ms),Triton (ms)",
        "kernel,M,time_ms,gflops",  # what kernel and M are, nothing says
        "time,time_ms",
    ],
)
def test_tables_of_other_programs_are_not_guessed_at(tmp_path: Path, header: str) -> None:
    path = written(tmp_path, f"{header}\n{','.join('1' * (header.count(',') + 1))}\n", "r.csv")
    assert timings_form(path) is None
    with pytest.raises(ProfilerError, match="--columns"):
        read_timings(path)


def test_csv_of_nvbench_is_read_by_its_columns(tmp_path: Path) -> None:
    table = "Benchmark,Device Name,N,CPU Time (sec),Noise,GPU Time (sec),Noise\ncopy,L4,8,2e-6,0.1,1e-6,0.2\n"
    keys = ["benchmark=Benchmark", "gpu=Device Name", "workload=N", "time=GPU Time (sec)"]
    (file,) = read_timings(written(tmp_path, table, "r.csv"), parse_columns(keys))
    assert [(brief(timing), timing.gpu) for timing in file.timings] == [
        (("copy", None, "N=8", (pytest.approx(1e3),)), "L4")
    ]


def test_rates_are_the_time_for_a_unit_of_work_and_a_mode_of_their_own(tmp_path: Path) -> None:
    rates = only(written(tmp_path, "N,Triton (GB/s),Torch (GB/s)\n128.0,900.0,inf\n", "add.csv"))
    triton, torch = rates.timings
    assert brief(triton) == ("add", "Triton", "N=128", (pytest.approx(1e9 / 900),))
    assert triton.mode.endswith("time per GB")
    assert (torch.ns, torch.failure is None) == ((), False)
    bare = written(tmp_path, "M,N,cuBLAS,Triton\n4096.0,64.0,17.1,4.0\n", "matmul.csv")
    assert timings_form(bare) is None  # nothing says that these are TFLOPS
    (named,) = read_timings(bare, parse_columns(["time=cuBLAS+Triton"], "tflops"))
    assert [brief(timing) for timing in named.timings] == [
        ("matmul", "cuBLAS", "M=4096 N=64", (pytest.approx(1e6 / 17.1),)),
        ("matmul", "Triton", "M=4096 N=64", (pytest.approx(1e6 / 4.0),)),
    ]
    assert named.timings[0].mode.endswith("time per GFLOP")


def test_the_plain_form_is_a_run_for_each_date_and_commit(tmp_path: Path) -> None:
    table = (
        "benchmark,version,workload,gpu,commit,date,time_us\n"
        "softmax,v1,small,L4,abc,2026-03-01,1.5\n"
        "softmax,v1,small,L4,abc,2026-03-01,1.7\n"
        "softmax,v2,small,L4,abc,2026-03-01,2\n"
        "softmax,v1,small,L4,def,2026-03-02,1.6\n"
    )
    first, second = read_timings(written(tmp_path, table, "log.csv"))
    assert [brief(timing) for timing in first.timings] == [
        ("softmax", "v1", "small", (1500.0, 1700.0)),
        ("softmax", "v2", "small", (2000.0,)),
    ]
    assert (first.commit, second.commit) == ("abc", "def")
    assert (second.created, second.timings[0].gpu) == (datetime(2026, 3, 2, tzinfo=UTC), "L4")


def test_named_columns_make_any_table_readable(tmp_path: Path) -> None:
    path = written(tmp_path, "impl,M,N,fast,slow\nours,4,8,1,2\n", "results.csv")
    assert timings_form(path) is None
    columns = parse_columns(["time=fast+slow", "workload=M+N"], "us")
    (file,) = read_timings(path, columns)
    assert [brief(timing) for timing in file.timings] == [
        ("results", "fast", "M=4 N=8", (1000.0,)),
        ("results", "slow", "M=4 N=8", (2000.0,)),
    ]
    with pytest.raises(ProfilerError, match="--time-unit"):
        read_timings(path, parse_columns(["time=fast"]))
    with pytest.raises(ProfilerError, match="no column"):
        read_timings(path, parse_columns(["time=absent"], "us"))


@pytest.mark.parametrize(
    ("texts", "unit", "word"),
    [(["times=ms"], None, "KEY"), (["workload=M"], None, "time="), (["time=ms"], "hours", "--time-unit")],
)
def test_columns_that_say_nothing_are_refused(texts: list[str], unit: str | None, word: str) -> None:
    with pytest.raises(ProfilerError, match=word):
        parse_columns(texts, unit)


@pytest.mark.parametrize(
    ("content", "name"),
    [
        (json.dumps(PYTEST)[:-200], "cut.json"),
        (json.dumps(PYTEST).replace("1.5e-05", "NaN"), "nan.json"),
        (json.dumps(PYTEST).replace("1.5e-05", "-1.0"), "negative.json"),
        (json.dumps(PYTEST).replace("1.5e-05", "0"), "zero.json"),
        (json.dumps(PYTEST).replace("1.5e-05", "true"), "boolean.json"),
        (json.dumps(PYTEST).replace("1.5e-05", "1e999"), "infinite.json"),
        (json.dumps(PYTEST).replace("1.5e-05", "9" * 400), "digits.json"),
        (json.dumps(PYTEST).replace("[1.5e-05, 2e-05, 2.5e-05]", '{"a": 1}'), "mapping.json"),
        (json.dumps(PYTEST).replace('"stats"', '"statistics"'), "none.json"),
        ('{"machine_info": {}, "benchmarks": []}', "empty.json"),
        (json.dumps(HELION[1:]), "speedups.json"),
        ('{"machine_info": ' + "[" * 100_000, "deep.json"),
        (json.dumps(GOOGLE).replace('"us"', '"fortnights"'), "unit.json"),
        (json.dumps(GOOGLE).replace('"us"', '["us"]'), "list.json"),
        (json.dumps(PYTEST).replace("test_gemm", "test_\\ud83d"), "half.json"),
        (json.dumps(nvbench(None)).replace("3e-06", "fast"), "text.json"),
        ("x_val;a-latency\n4;1;2;3\n", "wide.csv"),
        ("N,T (ms)\n4.0,abc\n", "word.csv"),
        ("workload,time_ns\nsmall\n", "short.csv"),
        ("workload,date,time_ns\nsmall,yesterday,5\n", "date.csv"),
        ("workload,time_ns\n", "header.csv"),
    ],
)
def test_what_is_damaged_is_refused_in_a_line_that_names_the_file(
    tmp_path: Path, content: str, name: str
) -> None:
    with pytest.raises(ProfilerError) as refused:
        read_timings(written(tmp_path, content, name))
    assert name in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_file_of_times_is_known_by_its_beginning(tmp_path: Path) -> None:
    known = {
        "pytest-benchmark": PYTEST,
        "google-benchmark": GOOGLE,
        "nvbench": nvbench(None),
        "helion": HELION,
        "tritonbench": NIGHTLY,
    }
    assert {form: timings_form(written(tmp_path, content)) for form, content in known.items()} == {
        form: form for form in known
    }
    for form, content in known.items():  # as other programs write them again
        assert timings_form(written(tmp_path, json.dumps(content, sort_keys=True, indent=8))) == form
    filled = {
        **PYTEST,
        "benchmarks": [{"options": {"disable_gc": False}, "stats": {"data": [1.5e-5] * 9999}}],
    }
    assert timings_form(written(tmp_path, json.dumps(filled, sort_keys=True))) == "pytest-benchmark"
    assert timings_form(written(tmp_path, {"name": "package", "version": "1.0"})) is None
    assert timings_form(written(tmp_path, {"devices": [{"name": "a phone"}]})) is None
    assert timings_form(written(tmp_path, '"ID","Kernel Name","gpu__time_duration.sum"\n', "r.csv")) is None
