"""How a version becomes a call, and its arrays tensors."""

import ctypes
import subprocess

import numpy as np
import pytest

from profiler.catalog.attention import ATTENTION
from profiler.collect.gpu import calls
from profiler.collect.gpu.buffers import upload
from profiler.collect.gpu.correctness import check
from profiler.collect.gpu.messages import CheckRequest, VersionCode

SMALL = {"batch": 1, "heads": 2, "len_q": 48, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}


def test_arguments_are_passed_as_the_c_function_takes_them():
    class Tensor:
        def data_ptr(self):
            return 4096

    assert calls.c_argument(Tensor()).value == 4096
    assert calls.c_argument(None).value is None
    assert isinstance(calls.c_argument(0.125), ctypes.c_float)
    assert calls.c_argument(7).value == 7
    assert calls.c_argument(True).value == 1
    assert isinstance(calls.c_argument(np.int64(3)), ctypes.c_int)


def test_a_library_that_is_not_there_or_lacks_the_function_says_so(torch, version, tmp_path):
    missing = VersionCode("x", library=str(tmp_path / "no.so"))
    with pytest.raises(RuntimeError, match=r"no\.so cannot be loaded"):
        check(CheckRequest(missing, SMALL))
    empty = tmp_path / "empty.cpp"
    empty.write_text("")
    subprocess.run(["g++", "-shared", "-o", tmp_path / "empty.so", empty], check=True)
    with pytest.raises(RuntimeError, match=r"empty\.so has no function attention_forward"):
        check(CheckRequest(VersionCode("x", library=str(tmp_path / "empty.so")), SMALL))
    with pytest.raises(ValueError, match="neither a library nor a callable"):
        check(CheckRequest(VersionCode("x"), SMALL))


def test_rotated_inputs_are_others_of_the_same_kind(torch):
    case = ATTENTION.case(ATTENTION.workload(**SMALL), 0)
    first, other = upload(torch, case), upload(torch, case, shift=8)
    assert not torch.equal(first.arguments[0], other.arguments[0])
    assert torch.equal(first.arguments[0].flatten().sort()[0], other.arguments[0].flatten().sort()[0])
    assert other.output.isnan().all()
    assert first.arguments[3] is first.output
    assert first.operands[0] is first.arguments[0], "a callable reads the same arrays as a library"
    assert first.nbytes == sum(value.nbytes for value in case.arguments if hasattr(value, "nbytes"))
