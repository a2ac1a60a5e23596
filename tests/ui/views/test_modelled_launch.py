"""Which of a version's modelled times are those of the kernel that the Launch page shows."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from profiler.model.stored_predictions import StoredPrediction, StoredPredictions
from profiler.ui.views.modelled_launch import predictions_of

ROLES = {"v2d_d": "main", "v2d_d_few": "few"}
FEW, MAIN = "_Z9v2d_d_fewILi64EEvPK6__half", "_Z5v2d_dILi64EEvPK6__half"


def prediction(workload: str, function: str) -> StoredPrediction:
    return StoredPrediction(
        "v2d_d", workload, "H100-SXM", "sm_90a", 1e4, 9e3, 1.1e4, "issue", 0.0, {}, "", function=function
    )


STORED = StoredPredictions(
    "run",
    datetime(2026, 11, 23, tzinfo=UTC),
    "",
    (prediction("1x8x512x64", FEW), prediction("2x8x2048x64", MAIN), prediction("2x8x2048x128", MAIN)),
)


@pytest.mark.parametrize(
    ("role", "roles", "workloads"),
    [
        ("few", ROLES, ["1x8x512x64"]),
        ("main", ROLES, ["2x8x2048x64"]),
        ("combine", ROLES, []),
        ("main", {}, ["1x8x512x64", "2x8x2048x64"]),
    ],
)
def test_a_kernel_has_the_times_of_the_workloads_that_it_is_launched_for(
    role: str, roles: dict[str, str], workloads: list[str]
) -> None:
    found = predictions_of(STORED, "v2d_d", "sm_90a", "head dim 64", role, roles)
    assert [prediction.workload for prediction in found] == workloads
