"""Which metric names ncu computes itself and what they cost, and what old or invented names are now."""

from __future__ import annotations

from enum import StrEnum

# NVIDIA's library rejects these names. Source: Nsight Compute Profiling Guide, "Metrics Reference" (2026),
# and what reports of ncu 2021 to 2025 hold.
_LAUNCH = """
barrier_count block_dim_x block_dim_y block_dim_z block_size cluster_dim_x cluster_dim_y cluster_dim_z
cluster_max_active cluster_max_potential_size cluster_scheduling_policy cluster_size context_id device_id
execution_model func_cache_config function_pcs graph_contains_device_launch graph_exec_cuda_id
graph_is_device_launchable graph_src_cuda_id green_context_id grid_dim_x grid_dim_y grid_dim_z grid_size
kernel_name occupancy_cluster_gpu_pct occupancy_cluster_pct occupancy_limit_barriers occupancy_limit_blocks
occupancy_limit_registers occupancy_limit_shared_mem occupancy_limit_warps occupancy_per_barrier_count
occupancy_per_block_size occupancy_per_cluster_size occupancy_per_register_count
occupancy_per_shared_mem_size persisting_l2_cache_size preferred_cluster_size preferred_cluster_x
preferred_cluster_y preferred_cluster_z registers_per_thread registers_per_thread_allocated
shared_mem_config_size shared_mem_per_block shared_mem_per_block_allocated shared_mem_per_block_driver
shared_mem_per_block_dynamic shared_mem_per_block_static sm_count stack_size stream_id sub_launch_name
thread_count tpc_count tpc_enabled user_grid_dim_x user_grid_dim_y user_grid_dim_z user_grid_size
uses_blocks_as_clusters uses_cdp uses_green_context uses_mps uses_nvlink_centric_scheduling uses_vgpu
waves_per_multiprocessor work_queue_concurrency_limit work_queue_resource_id work_queue_sharing_scope
"""
_OCCUPANCY = """
sm__maximum_warps_avg_per_active_cycle sm__maximum_warps_per_active_cycle_pct
smsp__maximum_warps_avg_per_active_cycle
"""
_TOPOLOGY = """
nvlink__bandwidth nvlink__count_logical nvlink__count_physical nvlink__destination_ports nvlink__dev0Id
nvlink__dev0type nvlink__dev1Id nvlink__dev1type nvlink__dev_display_name_all nvlink__enabled_mask
nvlink__is_direct_link nvlink__is_nvswitch_connected nvlink__max_count nvlink__peer_access
nvlink__peer_atomic nvlink__source_ports nvlink__system_access nvlink__system_atomic numa__cpu_affinity
numa__dev_display_name_all numa__id_cpu numa__id_memory c2clink__enabled_mask c2clink__present
"""
_PROFILER = """
profiler__perfworks_session_reuse profiler__pmsampler_buffer_size_bytes profiler__pmsampler_interval_cycles
profiler__pmsampler_dropped_samples profiler__pmsampler_interval_time profiler__pmsampler_merged_samples
profiler__pmsampler_pass_groups profiler__replayer_bytes_mem_accessible.avg
profiler__replayer_bytes_mem_accessible.max profiler__replayer_bytes_mem_accessible.min
profiler__replayer_bytes_mem_accessible.sum profiler__replayer_bytes_mem_backed_up.avg
profiler__replayer_bytes_mem_backed_up.max profiler__replayer_bytes_mem_backed_up.min
profiler__replayer_bytes_mem_backed_up.sum profiler__replayer_passes profiler__replayer_passes_type_warmup
"""
_SOURCE = """
branch_inst_executed inst_executed thread_inst_executed thread_inst_executed_true memory_type
memory_access_type memory_access_size_type memory_l1_tag_requests_global memory_l1_wavefronts_shared
memory_l1_wavefronts_shared_ideal memory_l2_theoretical_sectors_global
memory_l2_theoretical_sectors_global_ideal memory_l2_theoretical_sectors_local
smsp__branch_targets_threads_divergent smsp__branch_targets_threads_uniform
smsp__sass_inst_executed_memdesc_explicit_evict_type
smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_first
smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_last
smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_normal
smsp__sass_inst_executed_memdesc_explicit_hitprop_evict_normal_demote
smsp__sass_inst_executed_memdesc_explicit_missprop_evict_first
smsp__sass_inst_executed_memdesc_explicit_missprop_evict_normal derived__avg_thread_executed
derived__avg_thread_executed_true derived__derivative_avg_thread_executed_true
derived__local_spilling_requests derived__local_spilling_requests_pct
derived__memory_l1_conflicts_shared_nway derived__memory_l1_wavefronts_shared_excessive
derived__memory_l2_theoretical_sectors_global_excessive derived__shared_spilling_requests
derived__shared_spilling_requests_pct sass__inst_executed_per_opcode sass__inst_executed_per_opcode_category
sass__inst_executed_per_opcode_pipeline sass__inst_executed_per_opcode_with_modifier_all
sass__inst_executed_per_opcode_with_modifier_selective sass__thread_inst_executed_per_opcode_category
sass__thread_inst_executed_per_opcode_pipeline sass__thread_inst_executed_true_per_opcode
sass__thread_inst_executed_true_per_opcode_with_modifier_all
sass__thread_inst_executed_true_per_opcode_with_modifier_selective sass__inst_executed_global_loads
sass__inst_executed_global_stores sass__inst_executed_local_loads sass__inst_executed_local_stores
sass__inst_executed_shared_loads sass__inst_executed_shared_stores sass__inst_executed_register_spilling
sass__inst_executed_register_spilling_mem_local sass__inst_executed_register_spilling_mem_shared
sass__inst_executed_register_spilling_op_read sass__inst_executed_register_spilling_op_write
"""
_SAMPLING = """
aggregated_passes buffer_overflow buffer_size_bytes dropped_bytes interval interval_cycles
sample_buffer_full sample_count samples_data_dropped
"""
_STALLS = """
barrier branch_resolving dispatch_stall drain gmma imc_miss lg_throttle long_scoreboard math_pipe_throttle
membar mio_throttle misc no_instructions not_selected selected short_scoreboard sleeping tex_throttle wait
warpgroup_arrive
"""


# Names that tutorials and metric lists carry on, and what they are called now. Where the right name has no
# suffix, the wrong name's suffix goes on. Source: Nsight Compute CLI manual, "nvprof Metric Comparison"; the
# last four never existed and come from published metric lists.
_STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
RENAMED = {
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "dram_read_bytes": "dram__bytes_read.sum",
    "dram_read_throughput": "dram__bytes_read.sum.per_second",
    "dram_read_transactions": "dram__sectors_read.sum",
    "dram_utilization": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "dram_write_bytes": "dram__bytes_write.sum",
    "dram_write_throughput": "dram__bytes_write.sum.per_second",
    "dram_write_transactions": "dram__sectors_write.sum",
    "eligible_warps_per_cycle": "smsp__warps_eligible.avg.per_cycle_active",
    "gld_efficiency": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "gld_transactions": "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",
    "gst_efficiency": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    "gst_transactions": "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",
    "inst_issued": "smsp__inst_issued.sum",
    "ipc": "smsp__inst_executed.avg.per_cycle_active",
    "issue_slot_utilization": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "issued_ipc": "smsp__inst_issued.avg.per_cycle_active",
    "l2_read_transactions": "lts__t_sectors_op_read.sum",
    "l2_write_transactions": "lts__t_sectors_op_write.sum",
    "local_load_transactions": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "local_store_transactions": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
    "shared_efficiency": "smsp__sass_average_data_bytes_per_wavefront_mem_shared.pct",
    "shared_ld_bank_conflict": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "shared_load_transactions": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",
    "shared_st_bank_conflict": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "shared_store_transactions": "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",
    "sm_efficiency": "smsp__cycles_active.avg.pct_of_peak_sustained_elapsed",
    "stall_constant_memory_dependency": _STALLED.format("imc_miss"),
    "stall_exec_dependency": _STALLED.format("wait"),
    "stall_inst_fetch": _STALLED.format("no_instruction"),
    "stall_memory_dependency": _STALLED.format("long_scoreboard"),
    "stall_memory_throttle": _STALLED.format("lg_throttle"),
    "stall_not_selected": _STALLED.format("not_selected"),
    "stall_pipe_busy": _STALLED.format("math_pipe_throttle"),
    "stall_sync": _STALLED.format("barrier"),
    "stall_texture": _STALLED.format("tex_throttle"),
    "tensor_precision_fu_utilization": (
        "sm__inst_executed_pipe_tensor_op_hmma.avg.pct_of_peak_sustained_active"
    ),
    "warp_execution_efficiency": "smsp__average_thread_inst_executed_per_inst_executed.ratio",
    "sm__pipe_tensor_active": "sm__pipe_tensor_cycles_active",
    "smsp__gmio_stall": _STALLED.format("lg_throttle"),
    "smsp__inst_executed_op_cp_async": "smsp__inst_executed_op_ldgsts",
    "sm__inst_executed_op_cp_async": "smsp__inst_executed_op_ldgsts",
}


class CollectionCost(StrEnum):
    """What a name that ncu computes itself adds to the replay passes of the hardware counters."""

    NONE = "none"  # known from the launch, the device or the replay itself
    PATCHED = "patched"  # passes of its own with instrumented SASS
    SAMPLED = "sampled"  # a pass of its own with the warp sampler
    OWN = "own"  # not ncu's at all: from the compiler or the CPU check
    UNKNOWN = "unknown"  # defined by a section file, from metrics that only the file knows


def _costs() -> dict[str, CollectionCost]:
    free = [f"launch__{word}" for word in _LAUNCH.split()]
    free += [*_OCCUPANCY.split(), *_TOPOLOGY.split(), *_PROFILER.split()]
    sampled = [f"smsp__pcsamp_{word}" for word in _SAMPLING.split()]
    for reason in _STALLS.split():
        sampled += [f"smsp__pcsamp_warps_issue_stalled_{reason}{ending}" for ending in ("", "_not_issued")]
    return {
        **dict.fromkeys(free, CollectionCost.NONE),
        **dict.fromkeys(_SOURCE.split(), CollectionCost.PATCHED),
        **dict.fromkeys(sampled, CollectionCost.SAMPLED),
    }


OWN_METRICS = _costs()


def collection_cost(name: str) -> CollectionCost | None:
    """What collecting the name costs where ncu computes it itself; None where it is no name of ncu's own."""
    if name.startswith(("static__", "modelled__")):
        return CollectionCost.OWN
    if name.startswith("device__attribute_") and "." not in name:
        return CollectionCost.NONE  # one for every attribute of the CUDA driver: no closed list
    if name not in OWN_METRICS and name.startswith("derived__"):
        return CollectionCost.UNKNOWN  # section files define their own: no closed list either
    return OWN_METRICS.get(name)
