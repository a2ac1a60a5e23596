"""Reports lose what tells of their makers and nothing else. Real reports, copied to a temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.errors import UnreadableReport
from profiler.reports import read, redact
from tests.reportfiles import is_made


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    return tmp_path / "clean.ncu-rep"


@pytest.mark.slow
def test_every_report_keeps_its_values_and_its_length(good_reports: list[Path], clean: Path) -> None:
    for path in good_reports:
        redact.redact_report(path, clean)
        before, after = read.read_report(path), read.read_report(clean)
        assert clean.stat().st_size == path.stat().st_size
        assert after.session.clock_control == before.session.clock_control
        assert [one.function for one in after.launches] == [one.function for one in before.launches]
        for one, other in zip(before.launches, after.launches, strict=True):
            assert one.values.metric_set.names == other.values.metric_set.names
            assert one.values.slots == other.values.slots
            assert one.nvtx == other.nvtx


@pytest.mark.parametrize(
    ("file", "secrets"),
    [
        (
            "llm.c/adamw_coalsecing_shared",
            {"public": (b"/home/gabe", b"gabe/llm.c"), "made": (b"/home/tester", b"tester/attention")},
        ),
        (
            "cutlass/report75",
            {
                "public": (b"974ee2de314f", b"172.17.0.5", b"/root/cutlass/build"),
                "made": (b"gpu-node-17", b"172.17.0.4", b"/srv/gemms/build"),
            },
        ),
        ("esmm/profile@a62323b2", {"public": (b"ec2-user", b"cuda_work"), "made": (b"/home/tester",)}),
        (
            "cutlass/report80",
            {
                "public": (b"/root/cutlass/examples/13_two_tensor_op_fusion",),
                "made": (b"/data/builds/gemms",),
            },
        ),  # call stacks
        (
            "esmm/profile@5c6231e5",
            {"public": (b"/root/Documents",), "made": (b"/mnt/rules/sections",)},
        ),  # the error of a rule
    ],
)
def test_host_address_user_and_folders_are_gone(
    reports: Path, clean: Path, file: str, secrets: dict[str, tuple[bytes, ...]]
) -> None:
    path, told = reports / f"{file}.ncu-rep", secrets["made" if is_made(reports) else "public"]
    before = path.read_bytes()
    assert all(secret in before for secret in told)
    redact.redact_report(path, clean)
    after = clean.read_bytes()
    assert [secret for secret in told if secret in after] == []


def test_the_names_of_source_files_stay(reports: Path, clean: Path) -> None:
    redact.redact_report(reports / "llm.c/adamw_coalsecing_shared.ncu-rep", clean)
    assert (b"/v1.cu" if is_made(reports) else b"/adamw.cu") in clean.read_bytes()


def test_a_word_of_the_caller_is_overwritten_everywhere(reports: Path, clean: Path) -> None:
    redact.redact_report(reports / "cutlass/report75.ncu-rep", clean, ["13_fused_two_gemms"])
    assert b"13_fused_two_gemms" in (reports / "cutlass/report75.ncu-rep").read_bytes()
    assert b"13_fused_two_gemms" not in clean.read_bytes()


def test_a_machine_that_is_called_like_a_metric_costs_no_metric(reports: Path, clean: Path) -> None:
    path = reports / "cutlass/report75.ncu-rep"
    redact.redact_report(path, clean, ["device", "launch"])
    (before, *_), (after, *_) = (read.read_report(one).launches for one in (path, clean))
    assert before.values.metric_set.names == after.values.metric_set.names


def test_a_damaged_report_is_refused_and_nothing_is_left(reports: Path, clean: Path) -> None:
    with pytest.raises(UnreadableReport):
        redact.redact_report(reports / "bad" / "trailing_garbage.ncu-rep", clean)
    assert not clean.exists()
