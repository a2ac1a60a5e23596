"""Attention as a problem: reference, masks, stages, tolerance, FLOPs and bytes."""

import numpy as np
import pytest

from profiler.catalog.attention import ACCEPTANCE, ATTENTION, HEADLINE, INPUTS
from profiler.catalog.problem import ALL_STAGES, acceptance_workloads


def workload(**sizes):
    return ATTENTION.workload(**{"batch": 1, "heads": 2, "len_q": 7, "head_dim": 64, **sizes})


def test_the_reference_is_softmax_of_scaled_scores_times_v_row_by_row():
    case = ATTENTION.case(workload(len_kv=5), seed=3)
    q, k, v, scale, _ = case.operands
    for head in range(2):
        for row in range(7):
            scores = [
                sum(float(a) * float(b) for a, b in zip(q[0, head, row], key, strict=True)) * scale
                for key in k[0, head]
            ]
            weights = np.exp(np.array(scores) - max(scores))
            expected = (weights[:, None] * v[0, head].astype(float)).sum(axis=0) / weights.sum()
            np.testing.assert_allclose(case.reference[0, head, row], expected, rtol=1e-12)


def test_the_causal_mask_is_aligned_at_the_end():
    scores = ATTENTION.case(workload(len_q=3, len_kv=5, causal=True), 0, "QK").reference
    assert (np.isfinite(scores[0, 0]) == np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])).all()


def test_a_row_that_sees_no_key_is_zero_and_not_nan():
    sizes = workload(len_q=4, len_kv=2, causal=True)
    assert (ATTENTION.case(sizes, 0).reference[:, :, :2] == 0).all()
    assert (ATTENTION.case(sizes, 0, "SOFTMAX").reference[:, :, :2] == 0).all()
    assert (ATTENTION.case(sizes, 0).reference[:, :, 2:] != 0).all()


def test_with_uniform_probabilities_the_output_is_the_mean_of_the_visible_rows():
    case = ATTENTION.case(workload(len_q=5, causal=True), 0, "PV")
    v = case.operands[2].astype(float)
    np.testing.assert_allclose(case.reference[0, 1, 2], v[0, 1, :3].mean(axis=0), rtol=1e-12)


def test_probabilities_of_a_row_sum_to_one():
    case = ATTENTION.case(workload(causal=True), 0, "SOFTMAX")
    np.testing.assert_allclose(case.reference.sum(axis=-1), 1, rtol=1e-12)


def test_every_seed_gives_other_inputs_and_the_same_seed_the_same():
    first, again, other = (ATTENTION.case(workload(), seed).operands[0] for seed in (1, 1, 2))
    assert (first == again).all()
    assert (first != other).mean() > 0.99


@pytest.mark.parametrize("stage", [ALL_STAGES, "QK"])
def test_an_output_that_nobody_wrote_is_wrong_everywhere(stage):
    case = ATTENTION.case(workload(), 0, stage)
    check = case.check()
    assert check.wrong == check.not_finite == case.output.size
    assert check.max_abs_error is None


def test_the_reference_rounded_to_fp16_passes_and_one_element_off_is_found():
    case = ATTENTION.case(workload(), 0)
    output = case.reference.astype(np.float16)
    assert case.check(output).wrong == 0
    output[0, 1, 2, 3] += np.float16(0.01)
    check = case.check(output)
    assert (check.wrong, check.first_wrong) == (1, (0, 1, 2, 3))
    assert check.max_abs_error == pytest.approx(0.01, rel=0.1)


@pytest.mark.parametrize("inputs", INPUTS)
def test_rounding_p_and_o_to_fp16_passes_and_rounding_every_sum_does_not(inputs):
    case = ATTENTION.case(workload(len_q=9, len_kv=300, inputs=inputs), 0)
    q, k, v, scale, _ = case.operands
    scores = q.astype(float) @ k.astype(float).swapaxes(2, 3) * scale
    p = np.exp(scores - scores.max(axis=3, keepdims=True))
    total = p.sum(axis=3, keepdims=True)
    rounded = p.astype(np.float16).astype(float) @ v.astype(float) / total
    assert case.check(rounded.astype(np.float16)).wrong == 0
    sums = np.zeros(case.output.shape, np.float16)
    for key in range(300):
        sums += (p[..., key : key + 1] * v[:, :, key : key + 1]).astype(np.float16)
    assert case.check((sums / total).astype(np.float16)).wrong > 0


def test_each_kind_of_inputs_hides_or_shows_what_it_is_for():
    def scores(inputs):
        case = ATTENTION.case(workload(len_q=40, len_kv=200, inputs=inputs), 0, "QK")
        return case.reference

    assert np.abs(scores("normal")).max() < 6
    offsets = scores("offsets")
    assert offsets.mean(axis=3).min() < -300, "a maximum that starts at 0 or at -50 is wrong"
    assert offsets.mean(axis=3).max() > 300, "an exponential without its maximum overflows"
    falls = offsets[..., 0] - offsets[..., -1]
    assert falls[:, :, 1::8].min() > 190, "the first tile has the maximum"
    assert falls[:, :, ::8].max() < -190, "every tile has a new one, beyond where an exponential overflows"
    for row, key in ((2, 40), (3, 198)):
        others = np.delete(offsets[:, :, row::8], key, axis=3).max(axis=3)
        assert (offsets[:, :, row::8, key] - others).min() > 100, "one key decides"
    assert scores("sharp").std() == pytest.approx(6, rel=0.1)
    assert np.abs(scores("flat")).max() < 0.1


def test_fp8_is_judged_against_what_its_codes_stand_for_and_tells_the_quantisation_error_apart():
    case = ATTENTION.case(workload(dtype="fp8"), 0)
    codes, scales = case.arguments[0], case.arguments[4]
    assert codes.dtype == np.uint8
    assert scales.shape == (3, 1, 2)
    np.testing.assert_allclose(
        (codes.astype(float) - 128) * scales[0][..., None, None], case.operands[0], rtol=1e-12
    )
    assert 1e-3 < case.input_error < 0.1
    assert case.tolerance == ATTENTION.case(workload(), 0).tolerance, "of what the codes stand for"
    assert ATTENTION.case(workload(), 0).input_error is None


def test_flops_and_bytes_of_the_headline_workload_are_those_of_the_roofline():
    assert ATTENTION.flops(HEADLINE) == 536_870_912
    assert ATTENTION.minimal_bytes(HEADLINE) == 2_097_152
    assert ATTENTION.flops(ACCEPTANCE[1]) == 4 * 8 * 64 * (
        512 * 513 // 2
    )  # each query sees itself and what is before
    assert ATTENTION.flops(workload(len_q=4, len_kv=2, causal=True)) == 4 * 2 * 64 * (0 + 0 + 1 + 2)


def test_labels_tell_every_workload_apart():
    sizes = [
        *ACCEPTANCE,
        *ATTENTION.check_workloads("fp16", (64, 128)),
        *ATTENTION.check_workloads("fp8", (64, 128)),
        workload(),
        workload(len_kv=9),
        workload(len_q=9, len_kv=7),
        workload(inputs="flat"),
    ]
    assert len({size.label for size in sizes}) == len(set(sizes)) == len(sizes)
    assert workload(len_kv=9, causal=True, dtype="fp8").label == "1x2x7:9x64 causal fp8"
    assert ATTENTION.workload(**workload(len_kv=9).sizes()) == workload(len_kv=9)
    assert "inputs" not in workload().sizes(), "stored runs have none"
    assert ATTENTION.workload(**workload(inputs="flat").sizes()) == workload(inputs="flat")


def test_a_version_of_one_head_dim_is_checked_on_that_alone():
    assert {size.head_dim for size in ATTENTION.check_workloads("fp16", (64,))} == {64}


def test_the_check_workloads_leave_no_two_sizes_equal_where_they_can():
    sizes = ATTENTION.check_workloads("fp16", (64, 128))
    assert sizes[0].label == "1x2x128x64", "whole tiles first: rejected versions are checked on it alone"
    assert any(size.batch > 1 and size.batch != size.heads and size.len_q != size.len_kv for size in sizes)
    assert any(size.causal and size.len_q < size.len_kv for size in sizes)
    assert any(size.causal and size.len_q > size.len_kv for size in sizes)
    assert any(size.head_dim == 128 and size.heads > 1 and size.len_kv % 32 for size in sizes)
    assert any(size.causal and (size.len_kv - size.len_q) % 16 for size in sizes)
    assert {size.inputs for size in sizes} == set(INPUTS)


def test_sizes_that_no_kernel_can_have_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        workload(len_q=0)
    with pytest.raises(ValueError, match="fp4"):
        workload(dtype="fp4")
    with pytest.raises(ValueError, match="ones"):
        workload(inputs="ones")
    with pytest.raises(TypeError):
        workload(window=3)


def test_it_is_measured_on_the_acceptance_workloads_in_every_dtype():
    measured = acceptance_workloads(ATTENTION, ["fp16", "fp8"], (64,))
    assert measured[:5] == list(ACCEPTANCE)
    assert [(size.label, size.dtype) for size in measured[5:]] == [
        (f"{size.label} fp8", "fp8") for size in ACCEPTANCE
    ]
