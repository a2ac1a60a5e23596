"""Attention as a problem: reference, masks, stages, tolerance, FLOPs and bytes."""

import numpy as np
import pytest

from profiler.catalog import ATTENTION, Tolerance, check_output
from profiler.catalog.attention import ACCEPTANCE, HEADLINE
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
    check = check_output(case.output, case.reference, case.tolerance)
    assert check.wrong == check.not_finite == case.output.size
    assert check.max_abs_error is None


def test_the_reference_rounded_to_fp16_passes_and_one_element_off_is_found():
    case = ATTENTION.case(workload(), 0)
    output = case.reference.astype(np.float16)
    assert check_output(output, case.reference, case.tolerance).wrong == 0
    output[0, 1, 2, 3] += np.float16(0.01)
    check = check_output(output, case.reference, case.tolerance)
    assert (check.wrong, check.first_wrong) == (1, (0, 1, 2, 3))
    assert check.max_abs_error == pytest.approx(0.01, rel=0.1)


def test_fp8_is_judged_against_what_its_codes_stand_for_and_tells_the_quantisation_error_apart():
    case = ATTENTION.case(workload(dtype="fp8"), 0)
    codes, scales = case.arguments[0], case.arguments[4]
    assert codes.dtype == np.uint8
    assert scales.shape == (3, 1, 2)
    np.testing.assert_allclose(
        (codes.astype(float) - 128) * scales[0][..., None, None], case.operands[0], rtol=1e-12
    )
    assert 1e-3 < case.input_error < 0.1
    assert case.tolerance == Tolerance(1e-2, 1e-2)
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
    ]
    assert len({size.label for size in sizes}) == len(set(sizes)) == len(sizes)
    assert workload(len_kv=9, causal=True, dtype="fp8").label == "1x2x7:9x64 causal fp8"
    assert ATTENTION.workload(**workload(len_kv=9).sizes()) == workload(len_kv=9)


def test_a_version_of_one_head_dim_is_checked_on_that_alone():
    assert {size.head_dim for size in ATTENTION.check_workloads("fp16", (64,))} == {64}
    labels = [size.label for size in ATTENTION.check_workloads("fp16", (64, 128))]
    for needed in ("1x2x128x64", "1x2x128x64 causal", "1x2x100x64", "1x2x100x64 causal", "1x1x96x128"):
        assert needed in labels


def test_sizes_that_no_kernel_can_have_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        workload(len_q=0)
    with pytest.raises(ValueError, match="fp4"):
        workload(dtype="fp4")
    with pytest.raises(TypeError):
        workload(window=3)


def test_it_is_measured_on_the_acceptance_workloads_in_every_dtype():
    measured = acceptance_workloads(ATTENTION, ["fp16", "fp8"], (64,))
    assert measured[:5] == list(ACCEPTANCE)
    assert [(size.label, size.dtype) for size in measured[5:]] == [
        (f"{size.label} fp8", "fp8") for size in ACCEPTANCE
    ]
