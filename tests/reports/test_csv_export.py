"""ncu's CSV, raw and details pages: the values of the report it was printed from, and what it cannot say."""

from __future__ import annotations

import csv
import time
from pathlib import Path

import pytest

from profiler.errors import UnreadableReport
from profiler.evidence.launch import Report
from profiler.evidence.values import State, Value
from profiler.reports import csv_export, csv_numbers
from profiler.reports import read as reports_read
from profiler.reports.csv_labels import name_of_label
from tests.reports.test_oracle import NUMBERS, printed_numbers

ID = '"ID","Process ID","Kernel Name","Stream","Block Size","Grid Size","CC"'
LONG = (
    ID
    + ',"Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description"'
)
LAUNCH = '"0","77","void scale<float>(float *)","7","(128, 1, 1)","(24, 4, 1)","9.0"'
_MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"
SECOND = LAUNCH.replace('"0"', '"1"', 1)
WIDE = f'{ID},"gpu__time_duration.sum","dram__bytes.sum"\n"","","","","","","","usecond","Mbyte"\n'


def read(tmp_path: Path, text: str) -> Report:
    path = tmp_path / "made.csv"
    path.write_text(text, "utf-8")
    return reports_read.read_report(path)


@pytest.mark.slow
@pytest.mark.parametrize("name", NUMBERS)
def test_a_wide_csv_holds_what_the_report_holds(reports: Path, name: str) -> None:
    original = reports_read.read_report(reports / f"{name}.ncu-rep")
    printed = reports_read.read_report(reports / "oracle" / f"{name.replace('/', '__')}.ncu-rep.raw.csv")
    assert printed.form == "csv-raw"
    assert printed.gpu == original.gpu
    assert len(printed.launches) == len(original.launches)
    numbers = 0
    for a, b in zip(original.launches, printed.launches, strict=True):
        assert (a.function, a.grid, a.block, a.stream, a.nvtx) == (
            b.function,
            b.grid,
            b.block,
            b.stream,
            b.nvtx,
        )
        assert set(b.values) <= set(a.values)
        for metric, value in a.values.items():
            if metric.startswith(
                ("breakdown:", "group:", "regex:")
            ):  # lists of names, which ncu does not print
                continue
            other = b.values[metric]
            assert (value.state, value.text) == (other.state, other.text), metric
            if value.number is not None and other.number is not None:
                assert abs(value.number - other.number) <= 0.005 + 1e-12 * abs(value.number), metric
                numbers += 1
            elif value.state is State.FAILED and metric.endswith((".peak_sustained", "per_active_cycle")):
                numbers += 1  # ncu prints a placeholder: tests/reports/test_oracle.py
    assert numbers == printed_numbers(reports, name)


def test_launches_of_a_csv_share_their_metric_sets(reports: Path) -> None:
    found = reports_read.read_report(reports / "oracle" / "hyperspec__profile.ncu-rep.raw.csv")
    assert len({id(launch.values.metric_set) for launch in found.launches}) < len(found.launches)


def _labelled(path: Path) -> list[tuple[str, str | None]]:
    """The labels of a details page with the names behind them."""
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    return [(row["Metric Name"], name_of_label(row["Section Name"], row["Metric Name"])) for row in rows]


def test_a_details_csv_has_named_metrics_known_labels_and_rules(reports: Path) -> None:
    found = reports_read.read_report(reports / "csv" / "kernel_0009.details.csv")
    (launch,) = found.launches
    assert found.form == "csv-details"
    assert launch.function == "fmha_cutlassF_bf16_aligned_64x64_rf_sm80"
    assert (launch.grid, launch.block, launch.stream) == ((4, 12, 54), (32, 4, 1), 7)
    named = {
        "dram__bytes_read.sum": Value(99.63e6, "byte"),
        "dram__bytes_write.sum": Value(6.02e6, "byte"),
        "dram__throughput.avg.pct_of_peak_sustained_elapsed": Value(37.26, "%"),
        "gpu__time_duration.sum": Value(160740.0, "ns"),
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum": Value(10192158720, ""),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": Value(36.75, "%"),
        "device__attribute_compute_capability_major": Value(12, ""),
        "device__attribute_compute_capability_minor": Value(0, ""),
    }
    found_values = {name: value for name, value in launch.values.items() if value.number is not None}
    assert found_values | named == found_values
    assert found_values["gpc__cycles_elapsed.avg.per_second"] == Value(1.99e9, "hz"), "SM Frequency"
    of_labels = set(found_values) - set(named)
    assert of_labels <= {
        name for label, name in _labelled(reports / "csv" / "kernel_0009.details.csv") if name
    }
    assert launch.values["flop_count_hp.sum"].state is State.NOT_COLLECTED
    assert [rule.identifier for rule in launch.rules] == [
        "SOLBottleneck",
        "SOLFPRoofline",
        "IssueSlotUtilization",
        "TheoreticalOccupancy",
    ]
    assert [rule.kind for rule in launch.rules] == ["optimization", "ok", "optimization", "optimization"]
    assert (launch.rules[2].speedup_pct, launch.rules[2].speedup_scope) == (61.96, "local")


@pytest.mark.parametrize("name", ["kernel_0009.metrics", "kernel_0013.details", "kernel_0013.metrics"])
def test_every_public_details_csv_is_read(reports: Path, name: str) -> None:
    (launch,) = reports_read.read_report(reports / "csv" / f"{name}.csv").launches
    assert launch.values.number("gpu__time_duration.sum") in (160740.0, 10340.0)


@pytest.mark.parametrize(
    ("unit", "base", "factor"),
    [
        ("nsecond", "ns", 1.0),
        ("usecond", "ns", 1e3),
        ("ms", "ns", 1e6),
        ("second", "ns", 1e9),
        ("Kbyte", "byte", 1e3),
        ("Gbyte/second", "byte/s", 1e9),
        ("Tbyte/s", "byte/s", 1e12),
        ("Kbyte/block", "byte/block", 1e3),
        ("Ghz", "hz", 1e9),
        ("cycle/nsecond", "hz", 1e9),
        ("cycle/usecond", "hz", 1e6),
        ("cycle/second", "hz", 1.0),
        ("sector/nsecond", "sector/s", 1e9),
        ("register/thread", "register/thread", 1.0),
        ("inst/cycle", "inst/cycle", 1.0),
        ("%", "%", 1.0),
        ("", "", 1.0),
    ],
)
def test_scaled_units_become_base_units(unit: str, base: str, factor: float) -> None:
    assert csv_numbers.base_unit(unit) == (base, pytest.approx(factor))


@pytest.mark.parametrize(
    ("text", "unit", "value"),
    [
        ("10,192,158,720", "inst", Value(10192158720, "inst")),
        ("7,914.56", "cycle", Value(7914.56, "cycle")),
        ("1.5", "usecond", Value(1500.0, "ns")),
        ("18446744073709551615", "", Value(2**64 - 1)),
        ("nan", "%", Value(None, "%", state=State.FAILED)),
        ("-nan(ind)", "%", Value(None, "%", state=State.FAILED)),
        ("inf", "%", Value(None, "%", state=State.INFINITE)),
        ("no data", "", Value(None, state=State.NO_DATA)),
        ("N/A", "", Value(None, state=State.NOT_COLLECTED)),
        ("(!) nan", "ns", Value(None, "ns", state=State.FAILED)),
        ("(!) no data", "", Value(None, state=State.NO_DATA)),
        ("(!) n/a", "", Value(None, state=State.NOT_COLLECTED)),
        ("1,234,567.5", "", Value(1234567.5)),
        ("-12", "", Value(-12.0)),
        ("1e3", "", Value(1000.0)),
        ("100000000000000000000000", "", Value(1e23)),
        ("CachePreferNone", "", Value(None, text="CachePreferNone")),
        ("", "byte", None),
    ],
)
def test_a_cell_is_a_number_a_text_or_a_state(text: str, unit: str, value: Value | None) -> None:
    assert csv_numbers.NumberForm().parse(text, unit) == value


def test_what_surrounds_the_table_is_ignored(tmp_path: Path) -> None:
    before = "GEMM took 3 ms, ok\n==PROF== Connected to process 77\n"
    text = f"{before}{WIDE}==PROF== Disconnected\n{LAUNCH},1.5,2\n\n"
    (launch,) = read(tmp_path, text).launches
    assert launch.values["gpu__time_duration.sum"] == Value(1500.0, "ns")
    assert launch.values["dram__bytes.sum"] == Value(2e6, "byte")
    assert launch.values["device__attribute_compute_capability_major"].number == 9
    assert launch.base_name == "scale"


def test_tables_of_several_processes_are_read_one_after_the_other(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        f"{WIDE}{LAUNCH},1.5,2\n{WIDE.replace('usecond', 'msecond')}{LAUNCH.replace('77', '78')},1.5,2\n",
    )
    assert [launch.values["gpu__time_duration.sum"].number for launch in found.launches] == [
        1500.0,
        1500000.0,
    ]
    assert [launch.ordinal for launch in found.launches] == [0, 1]


def test_a_zero_that_stands_for_nan_is_no_number(tmp_path: Path) -> None:
    failed, whole = read(tmp_path, f"{WIDE}{LAUNCH},0.000000,0.000000\n{SECOND},2.000000,0.000000\n").launches
    assert failed.values["dram__bytes.sum"].state is State.FAILED
    assert whole.values["dram__bytes.sum"] == Value(0.0, "byte")


@pytest.mark.parametrize("text", ["0", "0.00", "-3.2", "0.000000"])
def test_a_launch_that_took_no_time_has_a_duration_that_failed(tmp_path: Path, text: str) -> None:
    (wide,) = read(tmp_path, f"{WIDE}{LAUNCH},{text},2\n").launches
    assert wide.values["gpu__time_duration.sum"] == Value(None, "ns", state=State.FAILED)
    assert wide.values["dram__bytes.sum"] == Value(2e6, "byte")
    (long,) = read(tmp_path, f'{LONG}\n{LAUNCH},"SOL","gpu__time_duration.sum","us","{text}",\n').launches
    assert long.values["gpu__time_duration.sum"] == Value(None, "ns", state=State.FAILED)


def test_utf16_from_powershell_is_read(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    path.write_text(f"{WIDE}{LAUNCH},1.5,2\n", "utf-16")
    assert reports_read.is_report(path)
    assert len(reports_read.read_report(path).launches) == 1


@pytest.mark.parametrize("code_page", ["cp949", "cp932", "latin-1"])
def test_what_a_program_printed_in_another_code_page_hides_no_table(tmp_path: Path, code_page: str) -> None:
    said = {"cp949": "최적화 컴파일러", "cp932": "最適化コンパイラ", "latin-1": "Größe"}[code_page]
    before = f"==PROF== Connected to process 26448 (C:\\python.exe)\n{said} 19.42\n"
    path = tmp_path / "made.csv"
    path.write_bytes(before.encode(code_page) + f"{WIDE}{LAUNCH},1.5,2\n".encode())
    assert reports_read.is_report(path)
    (launch,) = reports_read.read_report(path).launches
    assert launch.values.number("gpu__time_duration.sum") == 1500


def test_labels_beside_names_are_read_by_name(tmp_path: Path) -> None:
    named = f'{LAUNCH},"SOL","Duration (gpu__time_duration.sum)","us","3.5",'
    rows = f'{named}\n{LAUNCH},"SOL","Duration","us","9",\n'
    (launch,) = read(tmp_path, f"{LONG}\n{rows}").launches
    assert launch.values.value("gpu__time_duration.sum") == Value(3500.0, "ns")
    assert "Duration" not in launch.values


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a,b\n1,2\n", "no header row with Kernel Name"),
        (WIDE, "holds no launch"),
        (f"{WIDE}{LAUNCH},1.5\n", "a row has 8 of 9 cells"),
        (f'{WIDE}{LAUNCH},1.5,"2', "cut short or damaged"),
        (f"{ID},gpu__time_duration.sum\n{LAUNCH},1.5\n", "no row of units"),
        (f'{LONG}\n{LAUNCH},"SOL","Duration","us","9",\n', "--print-metric-name name"),
        (f'{LONG}\n{LAUNCH},"SOL","gpu__time_dur', "cut short or damaged"),
        (f'{LONG}\n{LAUNCH},"SOL","gpu__time_duration.sum"\n', "cells"),
    ],
)
def test_a_csv_that_is_not_whole_is_refused_in_one_line(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UnreadableReport) as refused:
        read(tmp_path, text)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "made.csv"
    path.write_bytes(b"\xff\x00\xd8\xd8" * 50)
    with pytest.raises(UnreadableReport, match="nor text"):
        reports_read.read_report(path)


def test_nested_nvtx_ranges_keep_their_order_and_their_colons(tmp_path: Path) -> None:
    header = WIDE.replace('"Kernel Name"', '"thread Domain:Push/Pop_Range:PL_Type:PL_Value","Kernel Name"')
    header = header.replace('"","",""', '"","","",""', 1)
    rest = ":none" * 6
    ranges = f'"77  ""<default domain>:step::1{rest}"" ""cuBLAS:gemm{rest}"" "'
    row = LAUNCH.replace('"void', f'{ranges},"void')
    (launch,) = read(tmp_path, f"{header}{row},1.5,2\n").launches
    assert launch.nvtx == ("step::1", "cuBLAS@gemm")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("3,14", 3.14),
        ("123,45", 123.45),
        ("1.234,5", 1234.5),
        ("1.234.567", 1234567),
        ("12,34,567", 1234567),
        ("1'234", 1234),
        ("1\u2019234", 1234),
        ("1 234", 1234),
        ("1\u202f234,5", 1234.5),
        ("1\u00a0234.567,25", None),
        ("5.", None),
        ("1.23.456", None),
        ("1,23", 1.23),
    ],
)
def test_a_number_is_read_as_the_locale_that_printed_it_writes_it(
    tmp_path: Path, text: str, number: float | None
) -> None:
    table = f'{WIDE}{LAUNCH},"2","{text}"\n'
    if number is None:
        with pytest.raises(UnreadableReport):
            read(tmp_path, table)
        return
    (launch,) = read(tmp_path, table).launches
    assert launch.values.number("dram__bytes.sum") == pytest.approx(number * 1e6)


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (("11.360", "256"), None),  # 11,360 or 11.36: nothing shows which
        (("11.360", "1.234.567"), (11_360, 1_234_567)),
        (("11.360", "25,40"), (11_360, 25.4)),
        (("11.360", "1.5"), (11.36, 1.5)),
        (("11.360", "0.456320"), None),  # six decimals stand after a point in every locale
        (("0.360", "256"), (0.36, 256)),  # no group of thousands begins with 0
        (("11.360", "1.5e3"), (11.36, 1500)),
        (("25,40", "1.5"), None),  # both forms in one file
        (("25,40", "12,345"), None),
        (("7.060,94", "0.456320"), (7060.94, 0.45632)),
    ],
)
def test_a_decimal_comma_is_never_a_factor_of_a_thousand(
    tmp_path: Path, texts: tuple[str, str], numbers: tuple[float, float] | None
) -> None:
    head = WIDE.replace("usecond", "ns").replace("Mbyte", "byte")
    table = f'{head}{LAUNCH},"{texts[0]}","{texts[1]}"\n'
    if numbers is None:
        with pytest.raises(UnreadableReport):
            read(tmp_path, table)
        return
    (launch,) = read(tmp_path, table).launches
    found = launch.values.number("gpu__time_duration.sum"), launch.values.number("dram__bytes.sum")
    assert found == pytest.approx(numbers)


def test_gaps_between_launches_are_those_of_a_filter_and_are_named(tmp_path: Path) -> None:
    found = read(
        tmp_path, f"{SORTED}{LAUNCH.replace('0', '4', 1)},1.5,2\n{LAUNCH.replace('0', '7', 1)},1.5,2\n"
    )
    assert len(found.launches) == 2
    (warning,) = found.warnings
    assert "launch ID 0, 1, 2 and 3 more" in warning


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12 (0; 4; 8)", Value(12)),
        ("12 (7: 0; 8: 4)", Value(12)),
        ("1742.22 (161463975622080 (+0): 0; 161463975641376 (+19296): 0)", Value(1742.22)),
        ("128 (128)", Value(128)),
        ("1 (no data)", Value(1)),
        ("0 (a_kernel)", Value(0)),
        ("(64; 64)", Value(None, state=State.INSTANCES_ONLY)),
        ("nan (nan; nan)", Value(None, state=State.FAILED)),
        ("inf (1; 2)", Value(None, state=State.INFINITE)),
        ("CachePreferNone (CachePreferNone)", Value(None, text="CachePreferNone")),
        ("NVIDIA H100 (MIG 1g)", Value(None, text="NVIDIA H100 (MIG 1g)")),
    ],
)
def test_of_printed_instances_the_total_is_the_value(text: str, value: Value) -> None:
    assert csv_numbers.NumberForm().parse(text, "") == value


def test_what_an_application_or_ncu_prints_between_rows_is_left_out(tmp_path: Path) -> None:
    nvlink = "    The system does not have any NVLink connections.\n\n"
    gpus = '"GPU ID","GPU Name","CPU Affinity"\n"0","NVIDIA A100","0-23"\n'
    named = f'{LAUNCH},"SOL","gpu__time_duration.sum","ns","72,640",\n'
    other = f'{LAUNCH},"Launch","launch__registers_per_thread","register/thread","40",\n'
    found = read(tmp_path, f"{LONG}\n{named}{nvlink}{gpus}{other}")
    assert found.warnings == ()
    (launch,) = found.launches
    assert launch.values.number("gpu__time_duration.sum") == 72_640
    assert launch.values.number("launch__registers_per_thread") == 40
    mixed = read(tmp_path, f"{LONG}\n{named}epoch 3: loss 0.5\n{other}")
    assert len(mixed.launches[0].values) == len(launch.values)
    assert any("epoch 3" in warning for warning in mixed.warnings)


@pytest.mark.parametrize("bar", ["  0%|  | 0/1 [00:00<?, ?it/s]", "100%|##########| 1/1 [00:03<00:00]\r"])
def test_a_progress_bar_without_an_end_of_line_hides_no_table(tmp_path: Path, bar: str) -> None:
    row = f"{LAUNCH},1.5,2\n"
    texts = (f"{bar}==PROF== Connected\n{WIDE}{row}", f"{bar}{WIDE}{row}", f"{WIDE}{bar}{row}")
    for text in (*texts, f"{WIDE}{bar}==PROF== Disconnected\n{row}"):
        (launch,) = read(tmp_path, text).launches
        assert launch.values.number("gpu__time_duration.sum") == 1500.0


def test_a_launch_that_failed_has_no_number_that_was_printed_as_zero(tmp_path: Path) -> None:
    names = (
        "dram__bytes.sum",
        "gpu__time_duration.sum",
        "launch__registers_per_thread",
        "smsp__inst_executed.sum",
    )
    head = ID + "".join(f',"{name}"' for name in names) + '\n"","","","","","","","Gbyte","ns","","inst"\n'
    failed = LAUNCH.replace("(24, 4, 1)", "(0, 0, 0)")
    for printed in ("0", "0.000000", "nan", "-nan"):
        (launch,) = read(tmp_path, f"{head}{failed},0.000000,{printed},0,0\n").launches
        states = [launch.values[name].state for name in names]
        assert states == [State.FAILED, State.FAILED, State.PRESENT, State.FAILED], printed
    (launch,) = read(tmp_path, f"{head}{LAUNCH},0.000000,5,0,0\n").launches
    assert [launch.values.number(name) for name in names] == [0, 5, 0, 0]
    # In base units NaN is printed as such, so that a zero beside it is one.
    (launch,) = read(tmp_path, f"{head.replace('Gbyte', 'byte')}{failed},0,nan,0,0\n").launches
    assert launch.values.number("dram__bytes.sum") == 0


def test_what_ncu_could_not_profile_is_named(tmp_path: Path) -> None:
    error = '==ERROR== Failed to profile "k2" in process 7\n'
    found = read(tmp_path, f"{error}{SORTED}{LAUNCH},1.5,2\n")
    assert len(found.launches) == 1
    assert any('"k2"' in warning for warning in found.warnings)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "==PROF== Connected to process 7\n==ERROR== ERR_NVGPUCTRPERM - no permission\n",
            "ERR_NVGPUCTRPERM",
        ),
        (f"==ERROR== No kernels were profiled.\n{WIDE}", "No kernels were profiled"),
        ('"Process ID","Kernel Name","Grid Size","Invocations","Metric Name","Minimum"\n', "--print-summary"),
        ('"Kernel Name","k",\n"Address","Source"\n', "source page"),
        ("==PROF== Connected to process 7\n", "printed no launch"),
    ],
)
def test_a_file_without_launches_is_refused_with_the_true_reason(
    tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises(UnreadableReport) as refused:
        read(tmp_path, text)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_rule_whose_stream_is_its_context_is_of_its_launch(tmp_path: Path) -> None:
    metric = f'{LAUNCH},"SOL","gpu__time_duration.sum","ns","5",'
    rule = (
        f'{LAUNCH.replace(chr(34) + "7" + chr(34), chr(34) + "1" + chr(34))},"SOL","","","","R","WRN","slow"'
    )
    other = f'{LAUNCH},"Launch","launch__registers_per_thread","","40",'
    (launch,) = read(tmp_path, f"{LONG}\n{metric}\n{rule}\n{other}\n").launches
    assert launch.stream == 7
    assert launch.values.number("launch__registers_per_thread") == 40
    assert [one.identifier for one in launch.rules] == ["R"]


def test_the_raw_page_of_ncu_2022_is_read(tmp_path: Path) -> None:
    head = '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream"'
    table = head + ',"gpu__time_duration.sum"\n"","","","","","","","","nsecond"\n'
    row = '"0","7","app","h","k(float *)","2022-Jun-16 05:43:44","1","7","11360"\n'
    (launch,) = read(tmp_path, table + row).launches
    assert (launch.grid, launch.stream, launch.base_name) == (None, 7, "k")
    assert launch.values.number("gpu__time_duration.sum") == 11_360


def test_the_twelve_columns_of_ncu_2020_are_read(tmp_path: Path) -> None:
    head = '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream"'
    head += ',"Section Name","Metric Name","Metric Unit","Metric Value"\n'
    row = '"0","7","app","h","k","2024-Jan-02 10:00:00","1","7","S"'
    row += ',"gpu__time_duration.sum","nsecond","152192"\n'
    (launch,) = read(tmp_path, head + row).launches
    assert (launch.grid, launch.block, launch.base_name) == (None, None, "k")
    assert launch.values.number("gpu__time_duration.sum") == 152_192
    assert launch.values.value("launch__registers_per_thread").state is State.NOT_COLLECTED


@pytest.mark.parametrize("digits", [400, 5000])
@pytest.mark.parametrize("unit", ["Mbyte", ""])
def test_a_number_larger_than_any_counter_refuses_the_file(tmp_path: Path, digits: int, unit: str) -> None:
    with pytest.raises(UnreadableReport, match="larger than any counter"):
        read(tmp_path, f"{WIDE.replace('Mbyte', unit)}{LAUNCH},1.5,{'9' * digits}\n")


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ("(24, 4, 1)", f"({'9' * 5000}, 4, 1)", "Grid Size is '\\(9999"),
        ('"7"', '"²"', "Stream is '²'"),
        ('"9.0"', '"8.²"', "CC is '8.²'"),
    ],
)
def test_a_fact_of_a_launch_that_ncu_cannot_have_printed_refuses_the_file(
    tmp_path: Path, right: str, wrong: str, told: str
) -> None:
    with pytest.raises(UnreadableReport, match=told) as refused:
        read(tmp_path, f"{WIDE}{LAUNCH.replace(right, wrong)},1.5,2\n")
    assert len(str(refused.value)) < len(str(tmp_path)) + 150


def test_a_header_without_a_column_that_is_needed_refuses_the_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport, match="no column Metric Value"):
        read(tmp_path, f'{ID},"Section Name","Metric Name","Metric Unit"\n{LAUNCH},"SOL","a__b.sum","ns"\n')
    with pytest.raises(UnreadableReport, match="no header row"):
        read(tmp_path, f"{WIDE.replace('ID', 'IDX', 1)}{LAUNCH},1.5,2\n")


@pytest.mark.slow
def test_a_metric_with_two_columns_is_read_where_they_are_equal(tmp_path: Path) -> None:
    header = f'{ID},"gpu__time_duration.sum","gpu__time_duration.sum"\n"","","","","","","","us","us"\n'
    (launch,) = read(tmp_path, f"{header}{LAUNCH},1.5,1.5\n").launches
    assert launch.values["gpu__time_duration.sum"] == Value(1500.0, "ns")
    with pytest.raises(UnreadableReport, match=r"gpu__time_duration\.sum has two columns that differ"):
        read(tmp_path, f"{header}{LAUNCH},1.5,2\n")
    with pytest.raises(UnreadableReport, match="two columns that differ"):
        read(tmp_path, f"{header.replace('us', 'ns', 1)}{LAUNCH},1.5,1.5\n")


THIRD = LAUNCH.replace('"0"', '"2"', 1)
LAST = LAUNCH.replace('"0"', '"9007199254740993"', 1)
LONG_ROW = '"SOL","gpu__time_duration.sum","us","3.5",'


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (f"{WIDE}{LAST},1.5,2\n", "ID is '"),
        (f"{WIDE}{LAUNCH},1.5,2\n{LAUNCH},1.5,2\n", "holds launch ID 0 twice"),
        (f"{WIDE}{LAUNCH},1.5,2\n{WIDE}{LAUNCH},1.5,2\n", "holds launch ID 0 twice"),
        (f"{WIDE}{LAUNCH.replace('0', 'x', 1)},1.5,2\n", "ID is 'x'"),
        (f"{WIDE}{LAUNCH},1.5,2\n{SECOND},1.5,2", "line 4, the last, has no end"),
        (f"{WIDE}{LAUNCH},1.5,2\0\n", "line 3 holds a NUL byte"),
        (
            f"{LONG}\n{LAUNCH},{LONG_ROW}\n{SECOND},{LONG_ROW}\n{LAUNCH},{LONG_ROW}\n",
            "holds launch ID 0 twice",
        ),
        (
            f"{LONG}\n{LAUNCH},{LONG_ROW}\n{LAUNCH.replace('scale', 'other')},{LONG_ROW}\n",
            "holds launch ID 0 twice",
        ),
    ],
)
def test_a_csv_that_doubled_launches_is_refused_by_their_ids(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UnreadableReport) as refused:
        read(tmp_path, text)
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


SORTED = WIDE.replace("gpu__time_duration.sum", "dram__bytes.avg")
TIMED = f'{ID},"dram__bytes.sum","gpu__time_duration.sum"\n"","","","","","","","Mbyte","usecond"\n'
DRAM_ROW = '"SOL","dram__bytes.sum","byte","2",'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"{WIDE}{LAUNCH},1.5,2\n", "column dram__bytes.sum stands after gpu__time_duration.sum"),
        (f"{SORTED.replace('Stream', 'Strxam')}{LAUNCH},1.5,2\n", "column 'Strxam' is no metric"),
        (f"{SORTED.replace('dram__bytes.avg', '')}{LAUNCH},1.5,2\n", "column '' is no metric"),
        (f"{SORTED}{SECOND},1.5,2\n{LAUNCH},1.5,2\n", "launch ID 0 stands after 1"),
        (f"{LONG}\n{LAUNCH},{LONG_ROW}\n{LAUNCH},{LONG_ROW}\n", "sum stands twice in section SOL"),
        (
            f'{LONG}\n{LAUNCH},{LONG_ROW}\n{LAUNCH},"SOL","é","us","1",\n',
            "has 'é' among rows of another form",
        ),
        (f'{LONG}\n{LAUNCH},{LONG_ROW}\n{LAUNCH},"SOL","","us","1",\n', "about no metric and no rule"),
        (
            f'{LONG}\n{LAUNCH},{LONG_ROW}\n{LAUNCH},"X","a__b.sum","","1",\n{LAUNCH},{DRAM_ROW}\n',
            "rows of section SOL stand apart",
        ),
        (
            f"{LONG}\n{LAUNCH},{LONG_ROW}\n{LAUNCH},{DRAM_ROW}\n{SECOND},{LONG_ROW}\n",
            "launch ID 1 lacks dram__bytes.sum, which others have",
        ),
        (f"{TIMED}{LAUNCH},1.5,5%\n", "launch ID 0: gpu__time_duration.sum is '5%', which is no time"),
        (f"{TIMED.replace('usecond', 'Mbyte')}{LAUNCH},1.5,2\n", "gpu__time_duration.sum is in byte"),
        (
            f"{TIMED.replace('usecond', '').replace('Mbyte', '')}{LAUNCH},1.5,2\n",
            "gpu__time_duration.sum and 1 more without a unit",
        ),
        (f"{LONG}\n{LAUNCH},{LONG_ROW.replace('us', '', 1)}\n", "gpu__time_duration.sum without a unit"),
    ],
)
def test_what_ncu_would_not_print_is_read_with_a_warning(tmp_path: Path, text: str, said: str) -> None:
    (warning,) = read(tmp_path, text).warnings
    assert said in warning
    assert "\n" not in warning


def test_a_csv_as_ncu_prints_it_has_no_warning(reports: Path) -> None:
    for path in (*(reports / "csv").glob("*.csv"), *(reports / "oracle").glob("*.csv")):
        assert csv_export.read_csv(path).warnings == ()


def test_many_warnings_end_in_their_number(tmp_path: Path) -> None:
    names = ",".join(f'"x{number}"' for number in range(9))
    text = SORTED.replace('"dram__bytes.sum"\n', f'"dram__bytes.sum",{names}\n', 1)
    text = text.replace('"Mbyte"\n', '"Mbyte"' + ',""' * 9 + "\n") + f"{LAUNCH},1.5,2{',1' * 9}\n"
    warnings = read(tmp_path, text).warnings
    assert len(warnings) == 5
    assert warnings[-1] == "there are 5 more doubts about its rows and columns"


@pytest.mark.parametrize(
    "ids",
    [
        [("0", "77"), ("1", "78"), ("2", "77")],  # counted over the report
        [("0", "77"), ("1", "77"), ("0", "78"), ("1", "78")],  # counted by process
    ],
)
def test_launches_of_several_processes_may_be_counted_together_or_apart(
    tmp_path: Path, ids: list[tuple[str, str]]
) -> None:
    rows = [LAUNCH.replace('"0","77"', f'"{number}","{process}"') + ",1.5,2\n" for number, process in ids]
    assert len(read(tmp_path, WIDE + "".join(rows)).launches) == len(ids)


@pytest.mark.parametrize("text", ["a" + "_" * 64_000 + "!", "(" * 64_000, " (a_" * 16_000, "a_.:" * 16_000])
def test_names_of_any_form_are_looked_through_in_linear_time(tmp_path: Path, text: str) -> None:
    started = time.process_time()
    wide = WIDE.replace('"dram__bytes.sum"', f'"{text}"')
    long = f'{LONG}\n{LAUNCH},"SOL","{text}","us","{text}","{text}","{text}"\n{LAUNCH},{LONG_ROW}\n'
    for content in (f'{wide}{LAUNCH.replace("scale", text)},1.5,"{text}"\n', long):
        path = tmp_path / "made.csv"
        path.write_text(content)
        assert csv_export.is_ncu_csv(path)
        csv_export.read_csv(path)
    assert time.process_time() - started < 2


def test_a_details_page_by_labels_has_what_is_known_of_them(tmp_path: Path) -> None:
    """What `ncu --csv` prints unless it is asked for names."""
    labels = (
        ("GPU Speed Of Light Throughput", "Duration", "us", "64.35", "gpu__time_duration.sum", 64_350),
        ("GPU Speed Of Light Throughput", "Memory Throughput", "%", "82.21", _MEMORY, 82.21),
        (
            "Memory Workload Analysis",
            "Memory Throughput",
            "Tbyte/s",
            "2.11",
            "dram__bytes.sum.per_second",
            2.11e12,
        ),
        (
            "Launch Statistics",
            "Registers Per Thread",
            "register/thread",
            "46",
            "launch__registers_per_thread",
            46,
        ),
        ("PM Sampling", "Maximum Buffer Size", "Mbyte", "30.47", "", 0),
    )
    rows = [f'{LAUNCH},"{of}","{label}","{unit}","{text}",\n' for of, label, unit, text, *_ in labels]
    report = read(tmp_path, f"{LONG}\n{''.join(rows)}")
    (launch,) = report.launches
    assert {
        name: value.number for name, value in launch.values.items() if "device_" not in name
    } == pytest.approx({name: number for *_, name, number in labels if name})
    assert report.warnings == ()


@pytest.mark.parametrize(("row", "labels"), [('"SOL","Frequency","hz","3.5",', True), ("", False)])
def test_a_details_page_whose_labels_are_not_known_is_refused_as_that(
    tmp_path: Path, row: str, labels: bool
) -> None:
    """Where the page has rows of rules alone, no metric is named at all."""
    rule = '"SOL","","","","Bound","WRN","busy"'
    with pytest.raises(UnreadableReport, match="export with --page raw") as refused:
        read(tmp_path, f"{LONG}\n{LAUNCH},{row or rule}\n")
    assert ("only by their labels" in str(refused.value)) is labels
    assert ("names no metric" in str(refused.value)) is not labels
