"""The framing check: what it learns from a whole report, and that no cut or appended file passes it."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from profiler.errors import UnreadableReport
from profiler.evidence.launch import Session
from profiler.reports import file_format
from profiler.reports.file_format import LaunchHeader
from profiler.reports.read import read_report


def varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes([*encoded, number])


def field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    return varint(number << 3 | 2) + varint(len(value)) + value


def sized(message: bytes) -> bytes:
    return len(message).to_bytes(4, "little") + message


def launch(name: bytes, metrics: int) -> bytes:
    """A ProfileResult of as many metrics, the first of them twice, as ncu 2024 writes some."""
    grid = field(1, 4) + field(2, 300) + field(3, 1)
    ids = [0, *range(metrics)]
    stored = b"".join(field(13, field(1, number) + field(2, b"")) for number in ids)
    return field(6, name) + field(10, grid) + field(11, b"") + stored + field(23, 7)


def block(results: list[bytes], session: bytes = b"", declared: int | None = None, kind: int = 2) -> bytes:
    payload = b"".join(map(sized, results))
    count = len(results) if declared is None else declared
    header = field(1, 0) + field(kind, count) + field(3, session) + field(5, len(payload))
    return sized(header) + payload


def report(*blocks: bytes, version: int = 7) -> bytes:
    return file_format.MAGIC + sized(field(1, version)) + b"".join(blocks)


def examine(tmp_path: Path, content: bytes) -> file_format.Framing:
    path = tmp_path / "made.ncu-rep"
    path.write_bytes(content)
    return file_format.check_framing(path)


def test_launches_are_described_before_any_library_reads_them(tmp_path: Path) -> None:
    found = examine(tmp_path, report(block([launch(b"first", 3)]), block([launch(b"second", 200)])))
    assert found.declared == 2
    assert found.launches == (
        LaunchHeader("first", (4, 300, 1), None, 7, 3),
        LaunchHeader("second", (4, 300, 1), None, 7, 200),
    )


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "empty"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:00\n", "git lfs pull"),
        (b"PK\x03\x04 something else", "not an Nsight Compute report"),
        (file_format.MAGIC, "damaged"),
        (report(), "no launch"),
        (report(block([])), "no launch"),
        (report(block([launch(b"k", 2)], declared=2)), "holds 1 entries and declares 2"),
        (report(block([launch(b"k", 2)])) + b"x", "damaged"),
        (report(block([launch(b"k", 2)])) + b"\xff\xff\xff\xff", "4,294,967,295 bytes"),
        (report(block([launch(b"k", 2) + b"\x0f"])), "type that does not exist"),
        (report(block([launch(b"k", 2) + b"\x80" * 12])), "longer than 64 bits"),
    ],
)
def test_what_is_not_whole_is_refused_in_one_line(tmp_path: Path, content: bytes, told: str) -> None:
    with pytest.raises(UnreadableReport) as refused:
        examine(tmp_path, content)
    message = str(refused.value)
    assert told in message
    assert message.startswith(str(tmp_path / "made.ncu-rep"))
    assert "\n" not in message


def test_a_file_version_not_seen_yet_is_judged_by_its_blocks_alone(tmp_path: Path) -> None:
    found = examine(tmp_path, report(block([b"\x0f\x0f"], declared=3), version=8))
    assert found.declared == 3
    assert found.launches == ()


def test_results_that_are_no_kernels_are_counted_but_not_described(tmp_path: Path) -> None:
    found = examine(tmp_path, report(block([launch(b"k", 2)]), block([b""], kind=7)))
    assert found.declared == 2
    assert found.launches == ()


def test_a_report_over_the_size_limit_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "large.ncu-rep"
    with path.open("wb") as stream:
        stream.truncate(2 << 30)  # sparse
    with pytest.raises(UnreadableReport, match="more than the limit of 1,073,741,824"):
        file_format.check_framing(path)


def test_the_session_comes_out_of_the_file(reports: Path) -> None:
    session = file_format.check_framing(reports / "cutlass" / "report75.ncu-rep").session
    assert session.ncu_version == "2024.1.1.0"
    assert session.driver == "560.35.03"
    assert session.cuda == "12.6"
    assert session.created == datetime(2024, 10, 25, 13, 26, 58, tzinfo=UTC)
    assert session.command_line
    assert session.command_line.rpartition("/")[2].startswith("13_fused_two_gemms")
    assert (session.clock_control, session.cache_control, session.replay_mode) == ("base", "all", None)


def test_a_report_without_a_command_line_claims_no_clock_control(reports: Path) -> None:
    session = file_format.check_framing(reports / "mistic" / "prof1.ncu-rep").session
    assert session == Session(
        ncu_version="2021.2.2.0",
        driver="470.82.01",
        cuda="11.4",
        created=datetime(2022, 7, 13, 17, 29, 2, tzinfo=UTC),
    )


def test_every_good_report_tells_who_made_it_and_when(good_reports: list[Path]) -> None:
    sessions = [file_format.check_framing(path).session for path in good_reports]
    assert all(session.ncu_version and session.driver and session.cuda for session in sessions)
    assert all(session.created and 2021 < session.created.year < 2026 for session in sessions)
    assert sum(session.command_line is not None for session in sessions) == 14
    assert sum(session.clock_control is not None for session in sessions) == 3


@pytest.mark.parametrize(
    ("command_line", "clock", "replay"),
    [
        ("ncu --clock-control none --replay-mode application ./a.out", "none", "application"),
        ("ncu --clock-control=boost ./a.out", "boost", None),
        ("ncu -o 'my report' ./a.out", None, None),
        ("ncu --clock-control base ./a.out it's", "base", None),  # an unbalanced quote
        ("ncu ./a.out --clock-control", None, None),
    ],
)
def test_clock_control_is_known_only_where_the_command_line_says_it(
    tmp_path: Path, command_line: str, clock: str | None, replay: str | None
) -> None:
    made = report(block([launch(b"k", 1)], session=field(11, command_line.encode())))
    session = examine(tmp_path, made).session
    assert (session.clock_control, session.replay_mode) == (clock, replay)
    assert session.command_line == command_line


@pytest.mark.parametrize("name", ["hyperspec/profile", "mistic/prof1"])
def test_no_truncation_passes(reports: Path, tmp_path: Path, name: str) -> None:
    whole = (reports / f"{name}.ncu-rep").read_bytes()
    dice = random.Random(name)
    for size in [1, 3, 4, 5, 9, len(whole) - 1, *(dice.randrange(11, len(whole)) for _ in range(60))]:
        with pytest.raises(UnreadableReport):
            examine(tmp_path, whole[:size])


@pytest.mark.slow
def test_a_launch_that_failed_has_no_grid(reports: Path) -> None:
    path = reports / "esmm" / "profile@5c6231e5.ncu-rep"
    metrics = len(read_report(path).launches[5].values)
    assert file_format.check_framing(path).launches[5] == LaunchHeader("one_d_vec", None, None, 7, metrics)


def metric(number: int, value: float) -> bytes:
    """A ProfileMetricResult with a double."""
    return field(13, field(1, number) + field(2, b"\x19" + struct.pack("<d", value)))


def named_block(names: list[bytes], results: list[bytes], codes: Sequence[bytes] = ()) -> bytes:
    payload = b"".join(map(sized, [*codes, *results]))
    table = b"".join(field(1, name) for name in names)
    counts = field(1, len(codes)) + field(2, len(results))
    return sized(counts + field(4, table) + field(5, len(payload))) + payload


TWO_NAMES = [b"gpu__time_duration.sum", b"launch__grid_size"]


@pytest.mark.parametrize(
    ("names", "launches", "told"),
    [
        (TWO_NAMES, [[(0, 1.0), (1, 2.0), (1, 3.0)]], "metric launch__grid_size twice, with two values"),
        (TWO_NAMES, [[(0, 1.0), (2, 2.0)]], "metric 2 of 2 names"),
        ([b"a", b"b", b"a"], [[(0, 1.0)]], "two metrics have one name"),
        (TWO_NAMES, [[(0, 1.0), (1, 2.0)]] * 2, "launch 1 is there twice"),
    ],
)
def test_names_that_are_mixed_up_and_launches_that_are_doubled_are_refused(
    tmp_path: Path, names: list[bytes], launches: list[list[tuple[int, float]]], told: str
) -> None:
    results = [b"".join(metric(*one) for one in launch) for launch in launches]
    with pytest.raises(UnreadableReport, match=told):
        examine(tmp_path, report(named_block(names, results)))


def test_every_metric_name_counts_however_long_it_is_and_whatever_stands_between() -> None:
    names = [b"a", b"b" * 127, b"c" * 128, b"", b"d" * 300, b"e"]
    table = b"".join(field(1, name) for name in names[:4]) + field(2, 7) + field(3, b"x")
    declared = file_format._Declared()
    declared.add_metric_names(table + b"".join(field(1, name) for name in names[4:]))
    assert declared.metric_names == [name.decode() for name in names]
    assert declared.names_bytes == 4 * sum(map(len, names))
    for cut in (field(1, b"abc")[:-1], field(1, b"d" * 300)[:-1], field(1, b"abc")[:1]):
        with pytest.raises((ValueError, IndexError)):
            file_format._Declared().add_metric_names(field(1, b"a") + cut)


def test_an_entry_a_replay_pass_is_refused_for_what_it_is(tmp_path: Path) -> None:
    """No copy mends it, and neither the first nor the last entry is the launch's own number."""
    session = block([], field(11, b"ncu --replay-mode=application ./program"))
    for entries in ([(1, 2.0), (1, 3.0), (1, 4.0)], [(1, 2.0), (1, 3.0)]):
        result = b"".join(metric(*one) for one in [(0, 1.0), *entries])
        with pytest.raises(UnreadableReport) as refused:
            examine(tmp_path, report(session, named_block(TWO_NAMES, [result])))
        told = str(refused.value)
        assert f"{len(entries)} of one metric" in told
        assert "--replay-mode application" in told
        assert "profile with --replay-mode kernel" in told
        assert "damaged" not in told
        assert "copy" not in told


def test_two_entries_of_one_metric_are_no_passes(tmp_path: Path) -> None:
    result = b"".join(metric(*one) for one in [(0, 1.0), (0, 1.5), (1, 2.0), (1, 2.0), (1, 2.0)])
    assert examine(tmp_path, report(named_block(TWO_NAMES, [result]))).launches[0].metrics == 2


def test_what_ncu_writes_twice_is_taken(tmp_path: Path) -> None:
    """Equal values of any metric, and two values of the duration, which reports of 2025 have."""
    result = b"".join(metric(*one) for one in [(0, 1.0), (1, 2.0), (1, 2.0), (0, 1.5)])
    assert examine(tmp_path, report(named_block(TWO_NAMES, [result]))).launches[0].metrics == 2


def test_a_report_whose_code_was_removed_is_refused(tmp_path: Path) -> None:
    result = metric(0, 1.0) + field(15, field(1, 300))
    code = field(1, 300) + field(2, b"cubin")
    assert examine(tmp_path, report(named_block(TWO_NAMES, [result], [code]))).declared == 1
    assert (
        examine(tmp_path, report(named_block([], [], [code]), named_block(TWO_NAMES, [result]))).declared == 1
    )
    with pytest.raises(UnreadableReport, match="module 300"):
        examine(tmp_path, report(named_block(TWO_NAMES, [result])))
