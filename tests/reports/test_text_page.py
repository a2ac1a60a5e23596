"""ncu's details page without --csv, as logs keep it: its launches, its numbers, and what it cannot say."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import profiler
from profiler.errors import CannotJudge, UnreadableReport
from profiler.evidence.launch import Report
from profiler.evidence.values import State, Value
from profiler.reports.read import read_report

BEGIN = """\
Running 3 sizes
==PROF== Connected to process 77 (/home/me/app)
==PROF== Profiling "scale" - 0: 0%....50%....100% - 8 passes
==PROF== Disconnected from process 77
[77] app@127.0.0.1
"""
LAUNCH = "  void scale<float>(float *, int) (24, 4, 1)x(128, 1, 1), Context 1, Stream 7, Device 0, CC 9.0\n"
SPEED = """\
    Section: GPU Speed Of Light Throughput
    ----------------------- ----------- ------------
    Metric Name             Metric Unit Metric Value
    ----------------------- ----------- ------------
    SM Frequency                    Ghz         1.60
    Elapsed Cycles                cycle    1,977,370
    Duration                         ms         1.24
    Compute (SM) Throughput           %        (!) nan
    ----------------------- ----------- ------------

    INF   Compute and Memory are well-balanced: To reduce runtime, both must be reduced.

"""
STATISTICS = """\
    Section: Launch Statistics
    -------------------------------- --------------- ---------------
    Metric Name                          Metric Unit    Metric Value
    -------------------------------- --------------- ---------------
    Block Size                                                   128
    Function Cache Configuration                     CachePreferNone
    Registers Per Thread             register/thread              41
    Static Shared Memory Per Block       Kbyte/block            1.02
    -------------------------------- --------------- ---------------

"""
OLD = """\
[77] app@127.0.0.1
  scale(float *, int), 2022-Dec-15 15:22:13, Context 1, Stream 7
    Section: GPU Speed Of Light Throughput
    ---------------------------------------------------------------------- --------------- ---------------
    Elapsed Cycles                                                                   cycle          6,567
    Duration                                                                       usecond          67.50
    ---------------------------------------------------------------------- --------------- ---------------

    Section: Launch Statistics
    ---------------------------------------------------------------------- --------------- ---------------
    Block Size                                                                                          64
    Grid Size                                                                                        2,048
    ---------------------------------------------------------------------- --------------- ---------------

    Section: Command line profiler metrics
    ---------------------------------------------------------------------- --------------- ---------------
    l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.avg.pct_of_peak_sustained_elapsed    %       1.25
    smsp__inst_executed.sum                                                           inst            (!) n/a
    ---------------------------------------------------------------------- --------------- ---------------
"""


def read(tmp_path: Path, text: str, encoding: str = "utf-8") -> Report:
    path = tmp_path / "made.txt"
    path.write_text(text, encoding)
    return read_report(path)


def test_a_log_holds_the_launches_and_numbers_that_ncu_printed(tmp_path: Path) -> None:
    second = LAUNCH.replace("(24, 4, 1)", "(48, 4, 1)")
    slower = SPEED.replace("1.24", "2.50")
    found = read(tmp_path, BEGIN + LAUNCH + SPEED + STATISTICS + second + slower + STATISTICS)
    assert (found.form, found.warnings) == ("text-details", ())
    one, two = found.launches
    assert (one.function, one.demangled) == ("scale", "void scale<float>(float *, int)")
    assert (one.grid, one.block, one.stream, one.device_column) == ((24, 4, 1), (128, 1, 1), 7, 0)
    assert (two.grid, two.ordinal) == ((48, 4, 1), 1)
    assert dict(one.values.items()) == {
        "gpc__cycles_elapsed.avg.per_second": Value(1.6e9, "hz"),
        "gpc__cycles_elapsed.max": Value(1977370, "cycle"),
        "gpu__time_duration.sum": Value(1.24e6, "ns"),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": Value(None, "%", state=State.FAILED),
        "launch__block_size": Value(128),
        "launch__registers_per_thread": Value(41, "register/thread"),
        "launch__shared_mem_per_block_static": Value(1020, "byte/block"),
        "device__attribute_compute_capability_major": Value(9),
        "device__attribute_compute_capability_minor": Value(0),
    }
    assert two.values.number("gpu__time_duration.sum") == 2.5e6


def test_a_log_of_older_versions_says_how_many_blocks_and_has_no_header_in_its_tables(tmp_path: Path) -> None:
    (launch,) = read(tmp_path, OLD).launches
    assert (launch.function, launch.stream) == ("scale", 7)
    assert (launch.grid, launch.block) == ((2048, 1, 1), (64, 1, 1))
    assert dict(launch.values.items()) == {
        "gpc__cycles_elapsed.max": Value(6567, "cycle"),
        "gpu__time_duration.sum": Value(67500.0, "ns"),
        "launch__block_size": Value(64),
        "launch__grid_size": Value(2048),
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.avg.pct_of_peak_sustained_elapsed": Value(
            1.25, "%"
        ),
        "smsp__inst_executed.sum": Value(None, "inst", state=State.NOT_COLLECTED),
    }


def test_a_page_whose_rows_were_indented_by_hand_has_the_same_numbers(tmp_path: Path) -> None:
    """All below the first ruler of a table, which alone says where the columns stand."""
    rows_and_ends = r"(    (?:Elapsed|Duration|Block|Grid|-+ -+ -+\n\n))"
    moved = re.sub(rf"(?<=\n){rows_and_ends}", r"  \1", OLD)
    assert moved.count("\n      ") == 6
    assert dict(read(tmp_path, moved).launches[0].values.items()) == dict(
        read(tmp_path, OLD).launches[0].values.items()
    )


def test_a_log_of_powershell_in_german_and_without_an_end_of_its_last_line_is_read(tmp_path: Path) -> None:
    german = SPEED.replace("1.60", "1,60").replace("1,977,370", "1.977.370").replace("1.24", "1,24")
    found = read(tmp_path, (BEGIN + LAUNCH + german).rstrip(), "utf-16")
    values = found.launches[0].values
    assert values.number("gpc__cycles_elapsed.max") == 1977370
    assert values.number("gpu__time_duration.sum") == 1.24e6


def test_tables_with_a_title_are_left_out(tmp_path: Path) -> None:
    """--print-details all repeats labels in them, as of the parts of a roofline."""
    table = "\n".join(SPEED.splitlines()[1:9]).replace("1.24", "9.99")
    titled = f"    GPU Throughput Breakdown\n    Table Name : Compute\n{table}\n\n"
    found = read(tmp_path, LAUNCH + SPEED + titled + STATISTICS)
    assert found.warnings == ()
    assert found.launches[0].values.number("gpu__time_duration.sum") == 1.24e6
    assert found.launches[0].values.number("launch__registers_per_thread") == 41


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (LAUNCH + SPEED[: SPEED.index("Duration")], "has no end: the page is cut short"),
        (LAUNCH + SPEED[: SPEED.index("Duration")] + "\n" + LAUNCH + SPEED, "has no end"),
        (LAUNCH.replace("Context 1, Stream 7, ", "")[:-1] + ", Invocations 2\n" + SPEED, "is a summary"),
        (BEGIN + LAUNCH, "names no metric; export with --page raw"),
        (BEGIN + LAUNCH + SPEED + LAUNCH, "names no metric; the page seems to be cut short"),
        (BEGIN.replace("8 passes", "8 passes\n==ERROR== LaunchFailed"), "ncu says: LaunchFailed"),
    ],
)
def test_a_log_without_whole_launches_is_refused_with_the_reason(
    tmp_path: Path, text: str, reason: str
) -> None:
    with pytest.raises(UnreadableReport, match=reason):
        read(tmp_path, text)


def test_logs_are_judged_as_reports_are(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.txt", "b.log")]
    for path, time in zip(paths, ("1.24", "1.50"), strict=True):
        path.write_text(BEGIN + LAUNCH + SPEED.replace("1.24", time).replace("(!) nan", "40.12") + STATISTICS)
    assert profiler.gate(paths[1], baseline=paths[0]).exit_code == 1
    assert profiler.gate(paths[0], baseline=paths[1]).exit_code == 0
    assert profiler.compare(*paths).sentence == "! worse: kernel durations 1 worse"


def test_older_logs_of_other_sizes_are_not_compared(tmp_path: Path) -> None:
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    small.write_text(OLD)
    large.write_text(OLD.replace("2,048", "8,192").replace("67.50", "270.00").replace("6,567", "26,268"))
    assert profiler.gate(large, baseline=small).exit_code == 3
    assert profiler.gate(small, baseline=large).exit_code == 3


@pytest.mark.parametrize("name", ["made.log", "made.csv"])
def test_no_time_is_modelled_of_a_text_which_holds_no_machine_code(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text(LAUNCH + SPEED)
    with pytest.raises(CannotJudge, match="holds no machine code: name the report"):
        profiler.predict(path)
