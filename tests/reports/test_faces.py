"""Further forms of what strangers' exports were once answered wrongly for: other pages, places and tools."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.errors import UnreadableReport
from profiler.evidence.values import State
from tests.reports.test_csv_export import ID, LAUNCH, LONG, SECOND, read

TIME, REGISTERS = "gpu__time_duration.sum", "launch__registers_per_thread"
BUSY = "dram__throughput.avg.pct_of_peak_sustained_elapsed"


def raw(*rows: str, launches: tuple[str, ...] = (LAUNCH,), units: str = '"ns","register/thread"') -> str:
    """A raw page with duration and registers: a row of cells each."""
    head = f'{ID},"{TIME}","{REGISTERS}"\n"","","","","","","",{units}\n'
    return head + "".join(f"{launch},{row}\n" for launch, row in zip(launches, rows, strict=True))


def details(*rows: str, launch: str = LAUNCH) -> str:
    return "".join(f'{launch},"S",{row},\n' for row in rows)


def numbers(folder: Path, text: str, metric: str = TIME) -> list[float | None]:
    return [launch.values.number(metric) for launch in read(folder, text).launches]


GERMAN = (f'"{TIME}","ns","11.360"', f'"{REGISTERS}","register/thread","34"')


def test_on_the_details_page_a_share_shows_the_locale_of_a_time(tmp_path: Path) -> None:
    """The time has no decimals there, and the share of DRAM has two."""
    share = f'"{BUSY}","%","37,26"'
    assert numbers(tmp_path, f"{LONG}\n{details(*GERMAN, share)}") == [11_360]
    with pytest.raises(UnreadableReport, match=r"11\.360"):
        read(tmp_path, f"{LONG}\n{details(*GERMAN)}")


def test_the_locale_of_one_launch_is_that_of_the_file(tmp_path: Path) -> None:
    text = raw('"11.360","40"', '"1.234.567","40"', launches=(LAUNCH, SECOND))
    assert numbers(tmp_path, text) == [11_360, 1_234_567]


def test_a_filtered_details_page_has_the_launches_that_it_has(tmp_path: Path) -> None:
    launches = [LAUNCH.replace('"0"', f'"{number}"', 1) for number in (3, 9)]
    rows = [
        details(f'"{TIME}","ns","{number}360"', launch=one)
        for number, one in zip((3, 9), launches, strict=True)
    ]
    assert numbers(tmp_path, f"{LONG}\n{''.join(rows)}") == [3360, 9360]


@pytest.mark.parametrize(
    ("printed", "number"),
    [
        ("2,048 (1,024; 1,024)", 2048),
        ("12,50 (0,25; 4,25; 8,00)", 12.5),
        ("120 (FFMA: 100; LDG: 20)", 120),
        ("(FFMA: 100; LDG: 20)", None),
    ],
)
def test_instances_follow_the_number_in_whatever_locale_and_page(
    tmp_path: Path, printed: str, number: float | None
) -> None:
    metric = "smsp__inst_executed.sum"
    text = f"{LONG}\n" + details(f'"{TIME}","ns","72640"', f'"{metric}","inst","{printed}"')
    assert numbers(tmp_path, text, metric) == [number]


NVLINK = "    The system does not have any NVLink connections.\n\n"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("place", ["between launches", "last"])
def test_a_sentence_of_ncu_stands_anywhere(tmp_path: Path, end: str, place: str) -> None:
    first, second = (
        details(f'"{TIME}","ns","{ns}"', f'"{REGISTERS}","register/thread","40"', launch=launch)
        for launch, ns in ((LAUNCH, 72_640), (SECOND, 80_000))
    )
    text = first + (NVLINK if place == "between launches" else "") + second + NVLINK
    text = f"{LONG}\n{text}".replace("\n", end)
    assert read(tmp_path, text).warnings == ()
    assert numbers(tmp_path, text) == [72_640, 80_000]
    assert numbers(tmp_path, text, REGISTERS) == [40, 40]


@pytest.mark.parametrize("form", ["raw", "details", "labels"])
def test_one_failed_launch_leaves_the_other_its_numbers(tmp_path: Path, form: str) -> None:
    failed = SECOND.replace("(24, 4, 1)", "(0, 0, 0)")
    label = '"GPU Speed Of Light Throughput","Duration"'
    text = {
        "raw": raw('"1000","40"', '"0","40"', launches=(LAUNCH, failed)),
        "details": f"{LONG}\n"
        + "".join(
            details(f'"{TIME}","ns","{ns}"', launch=launch) for launch, ns in ((LAUNCH, 1000), (failed, 0))
        ),
        "labels": f"{LONG}\n" + f'{LAUNCH},{label},"ns","1,000",\n{failed},{label},"ns","0",\n',
    }[form]
    good, bad = read(tmp_path, text).launches
    assert good.values.number(TIME) == 1000
    assert bad.values[TIME].state is State.FAILED


BARS = {
    "blocks": "Epoch 3:  33%|███▎      | 1/3 [00:12<00:24, 12.1s/it, loss=0.51]",
    "a log": "2026-01-02 10:00:00,123 INFO step 3, loss 0.5",
    "quotes": 'loading "model" ... ',
    "colours": "\x1b[2K\x1b[1G\x1b[32mINFO\x1b[0m ",
    "carriage returns": "10%\r20%\r30%\r",
}


@pytest.mark.parametrize("bar", BARS.values(), ids=BARS)
def test_what_a_program_prints_without_an_end_of_line_hides_no_row(tmp_path: Path, bar: str) -> None:
    head, units, first, second = raw('"1000","40"', '"2000","40"', launches=(LAUNCH, SECOND)).splitlines()
    for lines in ([bar + head, units, first, second], [head, units, first, bar + second]):
        assert numbers(tmp_path, "\n".join([*lines, ""])) == [1000, 2000]


@pytest.mark.parametrize("before", [True, False])
def test_every_kernel_that_failed_is_named_wherever_ncu_says_it(tmp_path: Path, before: bool) -> None:
    names = ("void ns::k2<(int)3>(float *)", "k3")
    errors = "".join(f'==ERROR== Failed to profile "{name}" in process 7\n' for name in names)
    table = raw('"1000","40"')
    warnings = read(tmp_path, errors + table if before else table + errors).warnings
    assert [any(f'"{name}"' in warning for warning in warnings) for name in names] == [True, True]


def test_a_share_over_its_peak_is_marked_by_its_label_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    label = f'{LAUNCH},"GPU Speed Of Light Throughput","{{}}","%","{{}}",\n'
    path = tmp_path / "labels.csv"
    path.write_text(
        f"{LONG}\n" + label.format("DRAM Throughput", "104.25") + label.format("L2 Cache Throughput", "99.9")
    )
    assert main(["show", str(path), "--all", "--json"]) == 0
    (launch,) = json.loads(capsys.readouterr().out)["launches"]
    marked = [one["value"] for one in launch["metrics"].values() if one.get("over_peak")]
    assert marked == [104.25]


TWELVE = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Kernel Time","Context","Stream",'
    '"Section Name","Metric Name","Metric Unit","Metric Value"\n'
)


def test_two_launches_in_the_twelve_columns_of_ncu_2020_with_labels(tmp_path: Path) -> None:
    """Two sections by label, in scaled units; grid and block are metrics there, and no columns."""
    rows = [
        f'"{number}","7","app","h","k<(int)4>(float *)","2020-Jun-01 10:00:0{number}","1","7",{cells}\n'
        for number in (0, 1)
        for cells in (
            f'"GPU Speed Of Light","Duration","usecond","{150 + number}.25"',
            '"Launch Statistics","Registers Per Thread","register/thread","40"',
            '"Launch Statistics","Grid Size","","64"',
        )
    ]
    text = TWELVE + "".join(rows)
    assert numbers(tmp_path, text) == [150_250, 151_250]
    assert numbers(tmp_path, text, "launch__grid_size") == [64, 64]


@pytest.mark.parametrize(
    "header",
    [
        '"Domain","Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg","Kernel Name","Invocations",'
        '"Metric Name","Average"',  # per-nvtx
        '"Device","Kernel Name","Invocations","Metric Name","Metric Unit","Minimum","Maximum","Average"',
        '"Kernel Name","Block Size","Grid Size","Invocations","Metric Name","Metric Unit","Average"',
        '10%|# | 1/9"Process ID","Kernel Name","Invocations","Section Name","Metric Name","Average"',
    ],
)
def test_a_summary_of_any_kind_is_refused_as_one(tmp_path: Path, header: str) -> None:
    with pytest.raises(UnreadableReport, match="--print-summary"):
        read(tmp_path, f'==PROF== Connected to process 7\n{header}\n"1","k","2","3"\n')
