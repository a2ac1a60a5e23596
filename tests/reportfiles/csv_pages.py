"""Exports as ncu prints them: the details page, a row a metric or rule, and the raw page, a row a launch."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Mapping
from pathlib import Path

from tests.reportfiles.ncu_rep import LaunchResult, Metric, ReportFile, Scalar

HEADER = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Section Name",
    "Metric Name",
    "Metric Unit",
    "Metric Value",
    "Rule Name",
    "Rule Type",
    "Rule Description",
    "Estimated Speedup Type",
    "Estimated Speedup",
]
ASKED_FOR = "Command line profiler metrics"
METRICS = (
    ("dram__bytes_read.sum", "Mbyte", "99.63", "Mbyte", "4.74"),
    ("dram__bytes_write.sum", "Mbyte", "6.02", "byte", "0"),
    ("dram__throughput.avg.pct_of_peak_sustained_elapsed", "%", "37.26", "%", "26.00"),
    ("flop_count_hp.sum", "", "n/a", "", "n/a"),
    ("flop_count_sp.sum", "", "n/a", "", "n/a"),
    ("gpu__time_duration.sum", "us", "160.74", "us", "10.34"),
    ("sm__ops_path_tensor_src_bf16_dst_bf16.sum", "", "n/a", "", "n/a"),
    ("sm__ops_path_tensor_src_bf16_dst_fp32.sum", "", "10,192,158,720", "", "335,544,320"),
    ("sm__throughput.avg.pct_of_peak_sustained_elapsed", "%", "36.75", "%", "8.77"),
)
LABELLED = (  # section, label, unit and value of each launch
    ("GPU Speed Of Light Throughput", "SM Frequency", "Ghz", "1.99", "2.01"),
    ("GPU Speed Of Light Throughput", "Duration", "us", "160.74", "10.34"),
    ("GPU Speed Of Light Throughput", "SM Active Cycles", "cycle", "298,814.60", "7,914.56"),
    ("Memory Workload Analysis", "Memory Throughput", "Gbyte/s", "657.28", "458.30"),
    ("Scheduler Statistics", "Active Warps Per Scheduler", "warp", "3.70", "1"),
    ("Occupancy", "Block Limit Registers", "block", "4", "2"),
    ("Occupancy", "Achieved Occupancy", "%", "30.81", "8.24"),
)
RULES = (  # section, rule, type, speed-up's scope and per cent for each launch
    ("SpeedOfLight", "SOLBottleneck", "OPT", "", "", ""),
    ("SpeedOfLight_RooflineChart", "SOLFPRoofline", "INF", "", "", ""),
    ("SchedulerStats", "IssueSlotUtilization", "OPT", "local", "61.96", "74"),
    ("Occupancy", "TheoreticalOccupancy", "OPT", "global", "61.96", "74"),
)
LAUNCHES = (
    (
        "kernel_0009",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(Params<bfloat16_t, Sm80, 64>)",
        "(32, 4, 1)",
        "(4, 12, 54)",
    ),
    (
        "kernel_0013",
        "void flash_fwd_splitkv_kernel<Traits<128, 64, bfloat16_t>, 0, 1>(Params)",
        "(128, 1, 1)",
        "(1, 8, 10)",
    ),
)


def write(folder: Path) -> None:
    """The details page of two launches, whole and with the duration as the only labelled metric."""
    folder.mkdir(parents=True, exist_ok=True)
    for place, (file, kernel, block, grid) in enumerate(LAUNCHES):
        launch = ["0", "77", "python3.12", "127.0.0.1", kernel, "1", "7", block, grid, "0", "12.0"]
        for page, labels in (("details", LABELLED), ("metrics", LABELLED[1:2])):
            with (folder / f"{file}.{page}.csv").open("w", newline="", encoding="utf-8") as stream:
                rows = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
                rows.writerow(HEADER)
                for name, *cells in METRICS:
                    rows.writerow([*launch, ASKED_FOR, name, *cells[2 * place : 2 * place + 2], ""])
                for section, label, unit, *values in labels:
                    rows.writerow([*launch, section, label, unit, values[place], ""])
                for section, rule, kind, scope, *speedups in RULES:
                    said = f"What {rule} says of this launch."
                    rows.writerow([*launch, section, "", "", "", rule, kind, said, scope, speedups[place]])


RAW_HEADER = ("ID", "Process ID", "Process Name", "Host Name")
NVTX_HEADER = (
    "thread Domain:Push/Pop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
    "Id:Domain:Start/Stop_Range:PL_Type:PL_Value:CLR_Type:Color:Msg_Type:Msg",
)
LAUNCH_HEADER = ("Kernel Name", "Context", "Stream", "Block Size", "Grid Size", "Device", "CC")


def write_raw(report: ReportFile, units: Mapping[str, str], path: Path) -> None:
    """What `ncu --import FILE --page raw --csv --print-units base` prints for a report."""
    path.parent.mkdir(parents=True, exist_ok=True)
    metrics = sorted({name for launch in report.launches for name in launch.metrics})
    nvtx = NVTX_HEADER if any(any(launch.nvtx.values()) for launch in report.launches) else ()
    header = [*RAW_HEADER, *nvtx, *LAUNCH_HEADER]
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream, quoting=csv.QUOTE_ALL, lineterminator="\n")
        rows.writerow([*header, *metrics])
        rows.writerow([*[""] * len(header), *(units.get(name, "") for name in metrics)])
        for index, launch in enumerate(report.launches):
            process = str(report.session.process_id)
            cells = [str(index), process, "app", "127.0.0.1"]
            cells += [_ranges(launch, process), ""] if nvtx else []
            cells += [
                _as_printed(launch.demangled),
                "1",
                str(launch.stream),
                str(launch.block),
                str(launch.grid),
            ]
            cells += ["0", _compute_capability(launch)]
            rows.writerow([*cells, *(_cell(launch.metrics.get(name)) for name in metrics)])


def _ranges(launch: LaunchResult, thread: str) -> str:
    ranges = [f'"{domain}:{name}{":none" * 6}" ' for domain, names in launch.nvtx.items() for name in names]
    return f"{thread}  {''.join(ranges)}"


def _as_printed(demangled: str) -> str:
    """Without the namespaces and the types of template arguments, as ncu prints names by default."""
    return re.sub(r"\w+::|\((?:unsigned )?int\)(?=\d)", "", demangled)


def _compute_capability(launch: LaunchResult) -> str:
    parts = (launch.metrics[f"device__attribute_compute_capability_{part}"] for part in ("major", "minor"))
    return ".".join(str(part.total if isinstance(part, Metric) else part) for part in parts)


def _cell(metric: Metric | Scalar | None) -> str:
    """A value with at most two decimals; nothing for instances without a total, `no data` without either."""
    if metric is None:
        return ""
    value = metric.total if isinstance(metric, Metric) else metric
    if value is None:
        return "" if isinstance(metric, Metric) and metric.instances else "no data"
    if isinstance(value, float) and math.isfinite(value):
        return str(int(value)) if value.is_integer() else f"{value:.2f}"
    return str(value)
