"""The ncu names behind the labels of a details page, where a label has one counter.

`ncu --csv` prints labels unless it is asked for names. Source: a report of ncu 2025 beside its own details
page, in which each label has the number of this counter alone, or of others that count the same; a label of
another version that is not here is left out.
"""

from __future__ import annotations

from collections.abc import Mapping

_OF_SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Speed Of Light": {
        "Duration": "gpu__time_duration.sum",
        "Elapsed Cycles": "gpc__cycles_elapsed.max",
        "SM Active Cycles": "sm__cycles_active.avg",
        "SM Frequency": "gpc__cycles_elapsed.avg.per_second",
        "DRAM Frequency": "dram__cycles_elapsed.avg.per_second",
        "Compute (SM) Throughput": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
        "Memory Throughput": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
        "L1/TEX Cache Throughput": "l1tex__throughput.avg.pct_of_peak_sustained_active",
        "L2 Cache Throughput": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
        "DRAM Throughput": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    },
    "Compute Workload Analysis": {
        "Executed Ipc Active": "sm__inst_executed.avg.per_cycle_active",
        "Executed Ipc Elapsed": "sm__inst_executed.avg.per_cycle_elapsed",
        "Issued Ipc Active": "sm__inst_issued.avg.per_cycle_active",
    },
    "Memory Workload Analysis": {
        "Memory Throughput": "dram__bytes.sum.per_second",
        "L1/TEX Hit Rate": "l1tex__t_sector_hit_rate.pct",
        "L2 Hit Rate": "lts__t_sector_hit_rate.pct",
    },
    "Scheduler Statistics": {
        "Active Warps Per Scheduler": "smsp__warps_active.avg.per_cycle_active",
        "Eligible Warps Per Scheduler": "smsp__warps_eligible.avg.per_cycle_active",
        "Issued Warp Per Scheduler": "smsp__issue_active.avg.per_cycle_active",
    },
    "Warp State Statistics": {
        "Warp Cycles Per Issued Instruction": "smsp__average_warp_latency_per_inst_issued.ratio",
        "Avg. Active Threads Per Warp": "smsp__thread_inst_executed_per_inst_executed.ratio",
        "Avg. Not Predicated Off Threads Per Warp": (
            "smsp__thread_inst_executed_pred_on_per_inst_executed.ratio"
        ),
    },
    "Instruction Statistics": {
        "Executed Instructions": "smsp__inst_executed.sum",
        "Issued Instructions": "smsp__inst_issued.sum",
    },
    "Launch Statistics": {
        "Block Size": "launch__block_size",
        "Grid Size": "launch__grid_size",
        "Registers Per Thread": "launch__registers_per_thread",
        "Static Shared Memory Per Block": "launch__shared_mem_per_block_static",
        "Dynamic Shared Memory Per Block": "launch__shared_mem_per_block_dynamic",
        "Driver Shared Memory Per Block": "launch__shared_mem_per_block_driver",
        "Threads": "launch__thread_count",
        "Waves Per SM": "launch__waves_per_multiprocessor",
    },
    "Occupancy": {
        "Theoretical Occupancy": "sm__maximum_warps_per_active_cycle_pct",
        "Achieved Occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
        "Achieved Active Warps Per SM": "sm__warps_active.avg.per_cycle_active",
        "Block Limit Registers": "launch__occupancy_limit_registers",
        "Block Limit Shared Mem": "launch__occupancy_limit_shared_mem",
        "Block Limit Warps": "launch__occupancy_limit_warps",
    },
}
# How ncu versions name the section: "GPU Speed Of Light" until 2022, "GPU Speed Of Light Throughput" since.
_SPEED_OF_LIGHT = ("GPU Speed Of Light", "GPU Speed Of Light Throughput")


def name_of_label(section: str, label: str) -> str | None:
    """The ncu name of what a section of the details page calls by this label; None where it is not known."""
    known = _OF_SECTIONS.get("Speed Of Light" if section in _SPEED_OF_LIGHT else section, {})
    return known.get(label.strip())
