"""Which launch an address means, and which one opens."""

from __future__ import annotations

from datetime import UTC, datetime

from profiler.evidence.values import Evidence, Value
from profiler.store.rows import ResultInfo
from profiler.ui.data import launches


def info(part: str, ms: float | None, *, ordinal: int = 0, **fields: object) -> ResultInfo:
    name = part.rpartition("#")[0]
    defaults = {"family": "f", "version": "v", "workload": None, "gpu": "GPU", "grid": (1, 1, 1)}
    own = defaults | fields
    return ResultInfo(
        ordinal,
        "run",
        evidence=Evidence.MEASURED,
        mode="",
        part=part,
        base_name=name.rpartition("/")[2],
        demangled=name,
        block=(64, 1, 1),
        ordinal=ordinal,
        created=datetime(2026, 1, 1, tzinfo=UTC),
        duration_ns=Value(None if ms is None else 1e6 * ms, "ns"),
        report_sha256="0",
        **own,  # type: ignore[arg-type]
    )


LABELS = {
    "warm/a": info("warm/a#0", 1.0),
    "b#0": info("b#0", 2.0, ordinal=1),
    "b#1": info("b#1", 3.0, ordinal=2, grid=(2, 1, 1)),
}


def test_a_launch_is_found_by_label_part_kernel_or_ordinal() -> None:
    assert launches.find_label(LABELS, "b#1") == "b#1"
    assert launches.find_label(LABELS, "warm/a#0") == "warm/a"
    assert launches.find_label(LABELS, "a") == "warm/a"
    assert launches.find_label(LABELS, "2") == "b#1"
    assert launches.find_label(LABELS, "c") is None
    assert launches.find_label(LABELS, None) is None


def test_the_longest_opens_and_beside_another_launch_the_one_like_it() -> None:
    version = launches.DataVersion("", "")
    assert launches.default_label(version, LABELS) == "b#1"
    assert launches.default_label(version, LABELS, info("b#0", 9.0)) == "b#0"
    assert launches.default_label(version, LABELS, info("b#7", 9.0, grid=(2, 1, 1))) == "b#1"
    assert launches.default_label(version, LABELS, info("other#0", 9.0)) == "b#1"
