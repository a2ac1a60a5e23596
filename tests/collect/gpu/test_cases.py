"""Cases that are kept on disk are the cases that were made."""

import numpy as np
import pytest

from profiler.catalog.attention import ATTENTION
from profiler.collect.gpu.cases import load_or_make

SMALL = {"batch": 1, "heads": 2, "len_q": 64, "len_kv": 64, "head_dim": 64, "causal": True, "dtype": "fp16"}


@pytest.mark.parametrize("dtype", ["fp16", "fp8"])
def test_a_kept_case_is_the_case_that_was_made(tmp_path, dtype):
    workload = ATTENTION.workload(**{**SMALL, "dtype": dtype})
    made = load_or_make(ATTENTION, workload, 5, tmp_path)
    assert len(list(tmp_path.iterdir())) == 1
    kept = load_or_make(ATTENTION, workload, 5, tmp_path)
    for values, same in ((made.arguments, kept.arguments), (made.operands, kept.operands)):
        assert [type(value) for value in values] == [type(value) for value in same]
        for value, other in zip(values, same, strict=True):
            np.testing.assert_array_equal(value, other)
    np.testing.assert_array_equal(made.reference, kept.reference)
    assert (made.tolerance, made.input_error) == (kept.tolerance, kept.input_error)
    assert sum(value is kept.output for value in kept.arguments) == 1
    assert np.isnan(kept.output).all()


def test_another_seed_or_size_is_another_case(tmp_path):
    workload = ATTENTION.workload(**SMALL)
    first = load_or_make(ATTENTION, workload, 0, tmp_path)
    second = load_or_make(ATTENTION, workload, 1, tmp_path)
    load_or_make(ATTENTION, ATTENTION.workload(**{**SMALL, "causal": False}), 0, tmp_path)
    assert len(list(tmp_path.iterdir())) == 3
    assert not np.array_equal(first.arguments[0], second.arguments[0])


def test_a_damaged_kept_case_is_made_again(tmp_path):
    workload = ATTENTION.workload(**SMALL)
    load_or_make(ATTENTION, workload, 0, tmp_path)
    (path,) = tmp_path.iterdir()
    for damage in (b"", path.read_bytes()[:1000], b"no zip at all"):
        path.write_bytes(damage)
        assert np.isfinite(load_or_make(ATTENTION, workload, 0, tmp_path).reference).all()
