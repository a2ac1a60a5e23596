import numpy as np
import pytest

from profiler.catalog.fp8 import ZERO_CODE, dequantize, quantize


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def attention(q, k, v):
    s = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    p = np.exp(s - s.max(-1, keepdims=True))
    return p / p.sum(-1, keepdims=True) @ v


def test_every_value_is_at_most_half_a_scale_off():
    x = normal(2, 3, 50, 64)
    codes, scales = quantize(x)
    off = np.abs(dequantize(codes, scales) - x)
    # The scale is rounded to float32, which moves the largest value by 127 such roundings.
    assert (off <= scales[..., None, None] * (0.5 + 1e-5)).all()


def test_each_head_has_its_own_scale_and_its_largest_value_the_outermost_code():
    x = normal(2, 3, 50, 64)
    x[1, 2] *= np.float16(100)
    codes, scales = quantize(x)
    assert codes.shape == x.shape
    assert codes.dtype == np.uint8
    assert scales.shape == (2, 3)
    assert scales.dtype == np.float32
    np.testing.assert_allclose(scales, np.abs(x.astype(np.float64)).max((-2, -1)) / 127, rtol=1e-7)
    assert scales[1, 2] > 50 * scales[0, 0]
    assert (np.abs(codes.astype(int) - ZERO_CODE).max((-2, -1)) == 127).all()


def test_the_codes_are_symmetric_so_a_negated_tensor_has_mirrored_codes():
    x = normal(1, 2, 40, 64)
    codes, scales = quantize(x)
    negated, same_scales = quantize(-x)
    assert (codes.astype(int) - ZERO_CODE == ZERO_CODE - negated.astype(int)).all()
    assert (scales == same_scales).all()
    assert codes.min() >= 1


def test_zero_has_code_128_beside_other_values():
    x = normal(1, 1, 8, 64)
    x[0, 0, 3] = 0
    codes, scales = quantize(x)
    assert (codes[0, 0, 3] == 128).all()
    assert (dequantize(codes, scales)[0, 0, 3] == 0).all()


def test_a_zero_tensor_has_scale_1_and_codes_128():
    codes, scales = quantize(np.zeros((2, 2, 5, 64), np.float16))
    assert (scales == 1.0).all()
    assert (codes == 128).all()
    assert (dequantize(codes, scales) == 0).all()


def test_a_head_of_zeros_leaves_its_neighbours_alone():
    x = normal(1, 3, 8, 64)
    x[0, 1] = 0
    codes, scales = quantize(x)
    assert scales[0, 1] == 1.0
    assert (codes[0, 1] == 128).all()
    for head in (0, 2):
        alone, scale = quantize(x[:, head : head + 1])
        assert (codes[:, head : head + 1] == alone).all()
        assert scales[0, head] == scale[0, 0]


@pytest.mark.parametrize("value", [2.0**-24, 65504.0])  # fp16's smallest and largest
def test_the_ends_of_fp16_survive(value):
    x = np.full((1, 1, 2, 64), value, np.float16)
    x[0, 0, 1] *= -1
    codes, scales = quantize(x)
    assert np.isfinite(scales).all()
    assert (scales > 0).all()
    np.testing.assert_allclose(dequantize(codes, scales), x.astype(np.float64), rtol=1e-6)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_values_that_are_not_finite_are_refused(value):
    x = normal(1, 1, 4, 64)
    x[0, 0, 1, 1] = value
    with pytest.raises(ValueError, match="no code"):
        quantize(x)


def test_the_kernels_table_of_halves_is_exact():
    """So the scale, applied to the scores and the output in fp32, is all that the kernels round."""
    table = (np.arange(256) - ZERO_CODE).astype(np.float16)
    codes, scales = quantize(normal(1, 1, 64, 64))
    assert (table[codes].astype(np.float64) * scales[0, 0] == dequantize(codes, scales)).all()


def test_attention_on_codes_is_off_by_what_8_bits_cost():
    """More than the kernel's own tolerance of 1e-2, which is why the reference is computed from the codes."""
    q, k, v = (normal(1, 2, 512, 64, seed=s) for s in range(3))
    exact = attention(*(x.astype(np.float64) for x in (q, k, v)))
    coded = attention(*(dequantize(*quantize(x)) for x in (q, k, v)))
    assert 0.002 < np.abs(coded - exact).max() < 0.05
