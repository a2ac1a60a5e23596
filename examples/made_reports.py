"""Two small reports for the examples, in the form that `ncu --import FILE --page raw --csv` prints.

The numbers are made: an attention kernel on an H100, before and after its loads were made asynchronous. With
reports of your own, `ncu --export a.ncu-rep …` is all that is needed, and nothing of this file is.
"""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path

LAUNCH = {
    "ID": "0",
    "Process ID": "77",
    "Process Name": "attention",
    "Host Name": "127.0.0.1",
    "Kernel Name": "flash_attention<64, 128>(half const*, half*)",
    "Context": "1",
    "Stream": "7",
    "Block Size": "(128, 1, 1)",
    "Grid Size": "(528, 1, 1)",
    "Device": "0",
    "CC": "9.0",
}
STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
SAME = {  # metric: unit and value
    "device__attribute_display_name": ("", "NVIDIA H100 80GB HBM3"),
    "device__attribute_multiprocessor_count": ("", 132),
    "device__attribute_num_schedulers_per_multiprocessor": ("", 4),
    "gpc__cycles_elapsed.avg.per_second": ("hz", 1.7e9),
    "smsp__cycles_elapsed.avg.per_second": ("hz", 1.7e9),
    "smsp__warps_active.avg.per_cycle_active": ("warp", 2),
    "dram__cycles_elapsed.avg.per_second": ("hz", 2.6e9),
    "dram__bytes.sum.peak_sustained": ("byte/cycle", 1280),
    "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained": ("inst/cycle", 16896),
}
STALLS = {
    "short_scoreboard": 0.5,
    "wait": 1.5,
    "barrier": 0.8,
    "math_pipe_throttle": 0.9,
    "not_selected": 0.3,
}


def write(folder: Path | None = None) -> tuple[Path, Path]:
    """Write before.csv and after.csv, by default to a new temporary folder."""
    folder = folder or Path(tempfile.mkdtemp(prefix="made-reports-"))
    before = _launch(duration_ns=210_000, cycles=357_000, long_scoreboard=3.0)
    after = _launch(duration_ns=164_000, cycles=278_800, long_scoreboard=1.4)
    return _write(folder / "before.csv", before), _write(folder / "after.csv", after)


def _launch(duration_ns: int, cycles: int, long_scoreboard: float) -> dict[str, tuple[str, object]]:
    """The metrics of one launch, which fit together: time x clock x warps = instructions x latency."""
    active = round(0.95 * cycles)
    stalls = {**STALLS, "long_scoreboard": long_scoreboard, "selected": 1.0}
    latency = sum(stalls.values())
    issued = round(active * 132 * 4 * 2 / latency)
    seconds, floating = duration_ns / 1e9, 2_400_000_000
    return {
        **SAME,
        "gpu__time_duration.sum": ("ns", duration_ns),
        "gpc__cycles_elapsed.max": ("cycle", cycles),
        "smsp__cycles_elapsed.avg": ("cycle", cycles),
        "sm__cycles_elapsed.avg": ("cycle", cycles),
        "smsp__cycles_active.avg": ("cycle", active),
        "sm__cycles_active.avg": ("cycle", active),
        "smsp__inst_issued.sum": ("inst", issued),
        "smsp__average_warp_latency_per_inst_issued.ratio": ("cycle", round(latency, 3)),
        **{STALL.format(reason): ("inst", cycles_waited) for reason, cycles_waited in stalls.items()},
        "dram__bytes.sum": ("byte", 201_326_592),
        "dram__bytes.sum.per_second": ("byte/second", round(201_326_592 / seconds)),
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": ("inst", floating),
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum.per_cycle_elapsed": (
            "inst/cycle",
            round(floating / cycles, 2),
        ),
        "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum.per_cycle_elapsed": ("inst/cycle", 0),
        "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum.per_cycle_elapsed": ("inst/cycle", 0),
    }


def _write(path: Path, metrics: dict[str, tuple[str, object]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        rows = csv.writer(stream, quoting=csv.QUOTE_ALL)
        rows.writerow([*LAUNCH, *metrics])
        rows.writerow([*[""] * len(LAUNCH), *(unit for unit, _ in metrics.values())])
        rows.writerow([*LAUNCH.values(), *(number for _, number in metrics.values())])
    return path
