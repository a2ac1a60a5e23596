"""The simulated SM and the levels above it, on code whose cycles can be counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from profiler.errors import UnknownName
from profiler.evidence.gpu_parts import GPU_PARTS, GpuPart, find_part
from profiler.model.control_words import NO_SCOREBOARD, ControlWords
from profiler.model.launch_model import (
    ALL_FROM_DRAM,
    ALL_IN_L2,
    DRAM_EFFICIENCY,
    WARP_START_CYCLES,
    HitRates,
    LaunchInputs,
    LaunchModel,
)
from profiler.model.pipes import Pipe, pipe_use
from profiler.model.warp_trace import ExecutedCode, make_trace

A100 = GPU_PARTS["A100-80GB"]
H100 = GPU_PARTS["H100-SXM"]


def inputs(
    texts: Sequence[str],
    counts: Sequence[float],
    *,
    stall: Sequence[int] | int = 2,
    writes: Sequence[int] = (),
    waits: Sequence[int] = (),
    targets: Sequence[int] = (),
    blocks: int = 1,
    threads: int = 32,
    gpu: GpuPart = A100,
) -> LaunchInputs:
    """A launch of this code, its accesses unknown."""
    size = len(texts)
    unknown = np.full(size, np.nan)
    stalls = np.broadcast_to(np.array(stall, np.int64), (size,)).copy()
    controls = ControlWords(
        stalls,
        np.array(writes or [NO_SCOREBOARD] * size, np.int64),
        np.full(size, NO_SCOREBOARD, np.int64),
        np.array(waits or [0] * size, np.int64),
    )
    code = ExecutedCode(texts, targets or [-1] * size, np.array(counts, float), (0,))
    none = np.zeros(size, bool)
    return LaunchInputs(gpu, blocks, threads, 32, 0, code, controls, unknown, unknown, unknown, none)


def cycles(launch: LaunchInputs, hits: HitRates = ALL_IN_L2) -> float:
    return LaunchModel(launch).simulation(hits).cycles - launch.gpu.architecture.launch_cycles


def test_a_chain_takes_the_cycles_that_its_control_words_count() -> None:
    chain = ["FFMA R0, R0, R3, R4"] * 100  # two registers of the even bank, one of the odd
    assert cycles(inputs(chain, [1] * 100, stall=4)) == pytest.approx(400, abs=6)
    # Four warps on one partition hide it, until its pipe is full: 16 lanes take two cycles a warp.
    many = inputs(chain, [1] * 100, stall=4, threads=32 * 16)
    assert 4 * 100 * 2 <= cycles(many) <= 4 * 100 * 2 + 16 * WARP_START_CYCLES
    assert LaunchModel(many).simulation(ALL_IN_L2).limiter == "FMA"
    assert LaunchModel(many).bounds().cycles * A100.sms == pytest.approx(800)


def test_a_load_is_waited_for_through_its_scoreboard() -> None:
    texts = ["LDG.E R0, [R2.64]", "FADD R4, R0, R0"]
    waiting = inputs(texts, [1, 1], writes=[0, NO_SCOREBOARD], waits=[0, 1])
    from_l2, from_dram = cycles(waiting), cycles(waiting, ALL_FROM_DRAM)
    architecture = A100.architecture
    assert from_dram - from_l2 == pytest.approx(architecture.dram_latency - architecture.l2_latency, abs=3)
    assert from_l2 > architecture.l2_latency
    stalls = LaunchModel(waiting).simulation(ALL_IN_L2).stalls
    assert max(stalls, key=lambda name: stalls[name]) == "long_scoreboard"
    assert cycles(inputs(texts, [1, 1])) < 20  # nothing waits for it


def test_conflicts_keep_the_data_stage() -> None:
    texts = ["LDS R0, [R2]"] * 200
    free = inputs(texts, [1] * 200, threads=256)
    conflicts = replace(free, wavefronts=np.full(200, 8.0))
    assert cycles(conflicts) == pytest.approx(8 * 200 * 8, rel=0.02)
    assert LaunchModel(conflicts).simulation(ALL_IN_L2).limiter == "L1 data"
    assert cycles(free) < 0.3 * cycles(conflicts)


def test_a_pass_of_l1_takes_two_cycles_on_turing() -> None:
    texts = ["LDS R0, [R2]"] * 200
    conflicts = [
        replace(inputs(texts, [1] * 200, threads=256, gpu=gpu), wavefronts=np.full(200, 8.0))
        for gpu in (A100, GPU_PARTS["T4"])
    ]
    assert cycles(conflicts[1]) == pytest.approx(2 * cycles(conflicts[0]), rel=0.02)


def stores(sectors: float, lines: float, gpu: GpuPart = GPU_PARTS["RTX-4090"]) -> LaunchInputs:
    """A grid that stores and does nothing else."""
    launch = inputs(["STG.E [R2.64], R0"] * 10, [1] * 10, threads=256, blocks=40 * gpu.sms, gpu=gpu)
    return replace(launch, sectors=np.full(10, sectors), wavefronts=np.full(10, lines))


def test_stores_go_to_l2_in_packets() -> None:
    """A slice of L2 takes one per cycle: two for a part of a line, a sector each for a whole one."""
    part = GPU_PARTS["RTX-4090"]
    slices = 72 / 2  # two MiB each
    requests = 40 * part.sms * 8 * 10
    assert cycles(stores(32, 32)) == pytest.approx(requests * 64 / slices, rel=0.05)
    assert cycles(stores(4, 1)) == pytest.approx(requests * 4 / slices, rel=0.1)
    assert LaunchModel(stores(32, 32)).simulation(ALL_IN_L2).limiter == "L2"
    model = LaunchModel(stores(32, 32))
    assert model.bounds(ALL_IN_L2).cycles == pytest.approx(requests * 64 / slices)
    # What joins another store before L2 is not sent.
    assert cycles(stores(32, 32), HitRates(0.0, 1.0, 1.0, 0.75)) < 0.35 * cycles(stores(32, 32))


def test_a_smaller_chip_has_fewer_slices_of_l2() -> None:
    whole = GPU_PARTS["T4"]
    half = replace(whole, l2_bytes=2 << 20)
    texts = ["LDG.E.128 R0, [R2.64]"] * 50
    times = [
        cycles(inputs(texts, [1] * 50, threads=1024, blocks=10 * gpu.sms, gpu=gpu)) for gpu in (whole, half)
    ]
    assert times[1] == pytest.approx(2 * times[0], rel=0.1)


def test_a_generic_access_without_sectors_is_one_of_shared_memory() -> None:
    texts = ["LD.E R0, [R2.64]", "FADD R4, R0, R0"]
    unknown = inputs(texts, [1, 1], writes=[0, NO_SCOREBOARD], waits=[0, 1])
    shared = replace(unknown, sectors=np.zeros(2), wavefronts=np.ones(2))
    assert cycles(unknown) > A100.architecture.l2_latency
    assert cycles(shared) < 2 * A100.architecture.shared_latency
    assert LaunchModel(shared).requested_bytes() == (0, 0)


def test_a_load_that_must_see_other_sms_never_hits_l1() -> None:
    hits = HitRates(1.0, 1.0, 1.0)

    def load(opcode: str) -> float:
        texts = [f"{opcode} R0, [R2.64]", "FADD R4, R0, R0"]
        return cycles(inputs(texts, [1, 1], writes=[0, NO_SCOREBOARD], waits=[0, 1]), hits)

    assert load("LDG.E.STRONG.GPU") > A100.architecture.l2_latency > load("LDG.E")


def test_a_block_that_hands_data_on_through_memory_misses_what_it_touches_first() -> None:
    body = ["LDG.E R0, [R2.64]", "FADD R4, R0, R0", "STG.E [R2.64], R4", "BAR.SYNC.DEFER_BLOCKING 0x0"]

    def rounds(load: str) -> float:
        texts = ["MOV R0, RZ", load, *body[1:], "@P0 BRA 0x10", "EXIT"]
        writes, waits = [NO_SCOREBOARD] * 7, [0] * 7
        writes[1], waits[2] = 0, 1
        launch = inputs(
            texts,
            [1, *([10] * 5), 1],
            writes=writes,
            waits=waits,
            targets=[-1] * 5 + [1, -1],
            threads=1024,
        )
        return cycles(launch, HitRates(0.9, 0.0, 1.0))

    # One round of ten misses; spread evenly, some warp of the block would miss in each of them.
    assert rounds(body[0]) < 0.6 * rounds("LDG.E.CONSTANT R0, [R2.64]")


def test_an_sm_starts_one_warp_after_another() -> None:
    empty = inputs(["MOV R1, R2", "EXIT"], [1, 1], threads=512, blocks=100 * A100.sms)
    assert make_trace(empty.code, 6000).shortened == 1
    for level in (LaunchModel(empty).simulation, LaunchModel(empty).littles_law):
        time = level(ALL_IN_L2).cycles - A100.architecture.launch_cycles
        assert time == pytest.approx(100 * 16 * WARP_START_CYCLES, rel=0.05)


def test_littles_law_lies_between_its_bounds() -> None:
    texts = ["FFMA R0, R0, R2, R4"] * 500
    launch = inputs(texts, [1] * 500, stall=4, threads=512, blocks=A100.sms)
    alone = cycles(replace(launch, threads=32))
    busy = 4 * 500 * 2  # cycles of a partition's pipe
    time = LaunchModel(launch).littles_law(ALL_IN_L2).cycles - A100.architecture.launch_cycles
    assert max(alone, busy) < time < alone + busy


def test_warps_in_step_have_one_phase_after_another() -> None:
    work = ["LDG.E R0, [R2.64]"] * 40 + ["MUFU.EX2 R4, R0"] * 40
    launch = inputs(work, [1] * 80, writes=[0] * 40 + [NO_SCOREBOARD] * 40, waits=[0] * 40 + [1] + [0] * 39)
    launch = replace(launch, threads=1024, blocks=A100.sms)

    def level_1(launch: LaunchInputs) -> float:
        return LaunchModel(launch).littles_law(ALL_IN_L2).cycles - A100.architecture.launch_cycles

    assert A100.l2_bytes is not None
    slices = A100.l2_bytes / A100.architecture.l2_slice_bytes
    rate = min(A100.architecture.l2_bytes_per_clock, slices * 64) / A100.sms
    loading = 32 * 40 * 128 / rate
    special = 32 * 40 * 32 / A100.architecture.exponentials
    assert loading + special < level_1(launch) < 1.25 * (loading + special)
    # With two blocks on an SM, one loads while the other computes.
    two = level_1(replace(launch, blocks=2 * A100.sms))
    assert two < 1.8 * level_1(launch)
    # Warps that go round many times without a barrier drift apart, and use both at once.
    round_trip = [*work[:-1], "@P0 BRA 0x0"]
    code = replace(launch.code, texts=round_trip, counts=np.full(80, 100.0), targets=[-1] * 79 + [0])
    looped = replace(launch, code=code)
    assert level_1(looped) < 100 * 0.85 * level_1(launch)


def test_warps_of_a_block_meet_at_a_barrier() -> None:
    texts = ["BAR.SYNC.DEFER_BLOCKING 0x0"] * 10
    alone, many = inputs(texts, [1] * 10), inputs(texts, [1] * 10, threads=1024)
    assert cycles(many) > cycles(alone) > 9 * 20
    assert LaunchModel(many).simulation(ALL_IN_L2).stalls["barrier"] > 0.5


def test_long_loops_are_drawn_out_to_their_true_number() -> None:
    body = ["FADD R0, R0, R2"] * 9 + ["@P0 BRA 0x10"]
    texts = ["MOV R0, RZ", *body, "EXIT"]
    targets = [-1] * 10 + [1] + [-1]

    def loop(trips: int) -> LaunchInputs:
        return inputs(texts, [1, *([trips] * 10), 1], stall=4, targets=targets)

    trace = make_trace(loop(50).code, 6000)
    assert trace.lengths.tolist() == [501]
    assert trace.shortened == pytest.approx(1, abs=0.01)
    short = make_trace(loop(100_000).code, 6000)
    assert short.lengths[0] <= 6600
    assert short.shortened * short.lengths[0] == pytest.approx(1e6, rel=0.01)
    assert cycles(loop(100_000)) == pytest.approx(1000 * cycles(loop(100)), rel=0.02)


def test_code_that_half_of_the_warps_execute_is_taken_every_second_time() -> None:
    texts = ["MOV R0, RZ", "MUFU.EX2 R1, R0", "FADD R0, R0, R1", "@P0 BRA 0x0", "EXIT"]
    code = ExecutedCode(texts, [-1, -1, -1, 0, -1], np.array([40.0, 20, 40, 40, 1]), (0,))
    executed = np.bincount(make_trace(code, 6000).positions[0], minlength=5)
    assert executed.tolist() == [40, 20, 40, 40, 0]


def test_what_some_warps_execute_is_not_executed_by_the_others() -> None:
    """Four warps, of which a quarter executes the second instruction: they wait for it at the barrier."""
    texts = ["MOV R0, RZ", "FADD R0, R0, R2", "BAR.SYNC.DEFER_BLOCKING 0x0"]
    code = ExecutedCode(texts, [-1] * 3, np.array([1.0, 0.25, 1.0]), (0,))
    trace = make_trace(code, 6000, 4)
    executed = [1 in row[:length] for row, length in zip(trace.positions, trace.lengths, strict=True)]
    assert sorted(executed) == [False, False, False, True]
    assert trace.shortened == pytest.approx(1)
    even = make_trace(ExecutedCode(texts, [-1] * 3, np.ones(3), (0,)), 6000, 4)
    assert even.positions.tolist() == [[0, 1, 2]]


def test_a_warp_alone_in_a_branch_is_waited_for() -> None:
    texts = ["MOV R0, RZ", "LDG.E R0, [R2.64]", "FADD R4, R0, R0", "BAR.SYNC.DEFER_BLOCKING 0x0"] * 8
    writes = [NO_SCOREBOARD, 0, NO_SCOREBOARD, NO_SCOREBOARD] * 8
    waits = [0, 0, 1, 0] * 8

    def launch(share: float) -> LaunchInputs:
        return inputs(texts, [1, share, share, 1] * 8, writes=writes, waits=waits, threads=256)

    some, every = cycles(launch(0.25)), cycles(launch(1.0))
    assert some > 0.7 * every
    assert some > 8 * A100.architecture.l2_latency
    outcome = LaunchModel(launch(0.25)).simulation(ALL_IN_L2)
    assert outcome.by_instruction is not None
    # Who waits at a barrier stands behind it, as in the samples of a GPU.
    assert outcome.by_instruction[4::4].sum() > 5 * outcome.by_instruction[3::4].sum()


def test_a_hit_on_a_line_that_is_on_its_way_waits_for_it() -> None:
    texts = ["LDG.E R0, [R2.64]", "FADD R4, R0, R0"]
    loads = inputs(texts, [1, 1], writes=[0, NO_SCOREBOARD], waits=[0, 1], threads=128)
    hits = HitRates(0.75, 1.0, 1.0)
    assert cycles(loads, hits) > A100.architecture.l2_latency
    assert cycles(loads, HitRates(1.0, 1.0, 1.0)) < A100.architecture.l2_latency


def test_a_register_that_an_operand_keeps_is_not_read_again() -> None:
    texts = ["FFMA R1, R2, R4, R6"] * 200  # three registers of the even bank
    launch = inputs(texts, [1] * 200, stall=1, threads=512, gpu=GPU_PARTS["L4"])
    assert launch.controls is not None
    kept = replace(launch, controls=launch.controls._replace(reuse=np.full(200, 0b11)))
    assert cycles(launch) == pytest.approx(4 * 200 * 3, rel=0.03)
    assert 4 * 200 <= cycles(kept) <= 4 * 200 + 16 * WARP_START_CYCLES


def test_waves_of_blocks_follow_each_other() -> None:
    texts = ["FFMA R0, R0, R2, R4"] * 500

    def grid(blocks: int) -> float:
        return cycles(inputs(texts, [1] * 500, stall=4, threads=1024, blocks=blocks))

    one_wave = grid(2 * A100.sms)  # two blocks of 1,024 threads fill an SM
    assert grid(1) < one_wave
    assert grid(4 * A100.sms) == pytest.approx(2 * one_wave, rel=0.05)
    assert grid(40 * A100.sms) == pytest.approx(20 * one_wave, rel=0.05)


def test_levels_agree_where_one_resource_is_all() -> None:
    texts = ["LDG.E.128 R0, [R2.64]"] * 50
    launch = inputs(texts, [1] * 50, threads=1024, blocks=100 * A100.sms)
    model = LaunchModel(launch)
    times = [outcome(ALL_FROM_DRAM) for outcome in (model.bounds, model.littles_law, model.simulation)]
    assert [time.limiter for time in times] == ["DRAM"] * 3
    loaded = 50 * 32 * 100 * A100.sms * 512
    seconds = loaded / A100.dram_bytes_per_s
    for time in times:
        assert time.cycles / A100.clock_hz == pytest.approx(seconds / DRAM_EFFICIENCY, rel=0.05)


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("HMMA.16816.F32 R4, R8, R10, R4", A100, (Pipe.TENSOR, 8)),  # 2,048 products at 256 per cycle
        ("HMMA.16816.F32 R4, R8, R10, R4", GPU_PARTS["L4"], (Pipe.TENSOR, 16)),
        ("HMMA.16816.F32 R4, R8, R10, R4", GPU_PARTS["RTX-4090"], (Pipe.TENSOR, 32)),
        ("HMMA.16816.F32 R4, R8, R10, R4", H100, (Pipe.TENSOR, 2048 / 512 / 0.63)),
        ("@!P0 FFMA R0, R1, R2, R3", H100, (Pipe.FMA, 1)),
        ("FFMA R0, R1, R2, R3", A100, (Pipe.FMA, 2)),
        ("MUFU.EX2 R0, R1", H100, (Pipe.XU, 8)),
        ("DFMA R0, R2, R4, R6", GPU_PARTS["T4"], (Pipe.FP64, 64)),
        ("DFMA R0, R2, R4, R6", H100, (Pipe.FP64, 2)),
        ("IMAD.MOV.U32 R0, RZ, RZ, R1", H100, (Pipe.FMA, 1)),
        ("IMAD.WIDE R0, R1, R2, R4", H100, (Pipe.FMA_HEAVY, 4)),
        ("F2F.F64.F32 R0, R2", GPU_PARTS["L4"], (Pipe.FP64, 64)),
        ("F2F.F64.F32 R0, R2", H100, (Pipe.XU, 8)),
        ("LDS.128 R0, [R1]", GPU_PARTS["L4"], (Pipe.LSU, 2)),
        ("UIADD3 UR4, UR5, 0x1, URZ", H100, (Pipe.UNIFORM, 2)),
    ],
)
def test_what_an_instruction_takes(text: str, part: GpuPart, expected: tuple[Pipe, float]) -> None:
    use = pipe_use(text, part)
    assert use.pipe == expected[0]
    assert use.cycles == pytest.approx(expected[1])


def test_a_gpu_is_found_by_the_beginning_of_its_name() -> None:
    assert find_part("h100 sxm") is find_part("H100-SXM") is H100
    assert find_part("l4") is GPU_PARTS["L4"]
    assert find_part("A100-8") is A100
    with pytest.raises(UnknownName, match=r"H100-PCIe, H100-SXM"):
        find_part("h100")
    with pytest.raises(UnknownName, match="V100-SXM2"):
        find_part("B9000")


def test_an_altered_model_is_simulated_with_what_it_was_given_and_leaves_the_first_as_it_was() -> None:
    launch = inputs(["LDS R0, [R2]", "FFMA R4, R0, R5, R4"] * 100, [1] * 200, threads=256, blocks=A100.sms)
    model = LaunchModel(replace(launch, wavefronts=np.full(200, 8.0)))
    before = model.simulation(ALL_IN_L2).cycles
    altered = model.altered(wavefronts=np.ones(200))
    alone = LaunchModel(replace(launch, wavefronts=np.ones(200))).simulation(ALL_IN_L2).cycles
    assert altered.simulation(ALL_IN_L2).cycles == alone < before
    assert model.simulation(ALL_IN_L2).cycles == before


def test_launches_that_execute_the_same_share_their_traces() -> None:
    texts, counts = ["IADD3 R0, R0, 0x1, RZ", "EXIT"], [3.0, 1.0]
    first, second = (inputs(texts, counts).code for _ in range(2))
    assert first is not second
    assert first.trace(100) is second.trace(100)
    assert inputs(texts, [4.0, 1.0]).code.trace(100) is not first.trace(100)
