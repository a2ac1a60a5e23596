"""Reads and runs a candidate's machine code in a process of its own; run_machine.py starts it.

Nothing of a candidate is executed here but by the model, instruction by instruction; the process is isolated
all the same, since disassemblers read what anybody made. A job comes as JSON on stdin, its arrays as files in
the working folder; the answer is one JSON object on stdout.
"""

from __future__ import annotations

import json
import math
import re
import secrets
import struct
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from profiler.build.elf import read_relocations, read_sections, read_symbols, section_name
from profiler.build.library import ResourceUsage
from profiler.build.opcode_counts import INSTRUCTION_BYTES, dump_sass
from profiler.emulator.run_result import LaunchShape
from profiler.errors import BuildFailed, ProfilerError
from profiler.evidence.gpu_parts import find_part
from profiler.judge.data_writes import data_writes
from profiler.judge.footprint import Footprint, granules_of
from profiler.judge.machine_races import GRANULE, LaunchRaces
from profiler.judge.run_work import find_doubt, work_of
from profiler.judge.sampled_call import ChosenBlocks, choose_blocks, run_chosen
from profiler.model.block_sample import sample_blocks
from profiler.model.control_words import read_code_words
from profiler.model.cubin import KernelImage, place_data, read_kernels
from profiler.model.error_table import load_errors
from profiler.model.instructions import NoModel
from profiler.model.interpreter import KernelProgram, all_blocks, count_blocks, load_program, run_blocks
from profiler.model.machine import BlockState
from profiler.model.memory import ALIGNMENT, GAP, START, GlobalMemory
from profiler.model.prediction import launch_inputs, predict_run
from profiler.model.version_run import LaunchRun
from profiler.sass.disassembly import library_functions, parse_functions
from profiler.sass.listing import FunctionCode

Job = Mapping[str, Any]
_MOST_LINES = 5
_POINTER_BANK = re.compile(r"c\[0x4\]\[([^\]]+)\]")
_MOST_BLOCKS = 1 << 24  # of a launch
_GAP_STEPS = 64  # of 512 bytes, that are free between two arrays at most
_GUARD = 0xA5  # every byte of memory beside the arrays
# What the model says of code that is wrong on every GPU, other than of code that it cannot run.
_WRONG = (
    "outside of every array",
    "leaves the shared memory",
    "no multiple of it",
    "wait for others that never come",
    "left behind its last instruction",
)


def main() -> None:
    """Answer the job on stdin."""
    job = json.load(sys.stdin)
    answers = {"inspect": inspect, "call": call, "sample": sample, "time": predict}
    try:
        answer = answers[job["kind"]](job)
    except (NoModel, ProfilerError) as error:
        text = str(error).splitlines()[0]
        is_unknown = isinstance(error, NoModel) and not any(words in text for words in _WRONG)
        answer = {"error": text, "no_model": is_unknown}
    json.dump(answer, sys.stdout)


def inspect(job: Job) -> dict[str, Any]:
    """Sections, symbols, kernels and opcodes of a cubin. The listing is kept beside it for other jobs."""
    cubin = Path(job["cubin"])
    try:
        images = read_kernels(cubin)
    except (struct.error, ArithmeticError, LookupError, ValueError) as error:
        raise BuildFailed(f"no whole ELF file: {error}") from None
    # Without source lines, for which nvdisasm would run once more.
    functions = parse_functions(dump_sass(cubin, job["arch"]), {})
    data = cubin.read_bytes()
    sections = read_sections(data)
    return {
        "sections": [[section.name, section.size, section.flags, section.kind] for section in sections],
        "symbols": [
            [symbol.name, section_name(sections, symbol.place), symbol.size, symbol.binding]
            for symbol in read_symbols(data, sections)
        ],
        "relocations": [list(relocation[:4]) for relocation in read_relocations(data)],
        "data_writes": _data_writes(images, functions),
        "kernels": {
            name: {
                "parameters": [[p.offset, p.size] for p in image.parameters],
                "static_shared_bytes": image.static_shared_bytes,
                "block_threads": image.block_threads,
            }
            for name, image in images.items()
        },
        "functions": {
            function.name: {
                "instructions": len(function.instructions),
                "code_bytes": len(function.instructions) * INSTRUCTION_BYTES,
                "opcodes": Counter(_opcode(text) for _, text in function.instructions),
                "special": sorted(
                    {word for _, text in function.instructions for word in _special_registers(text)}
                ),
                "pointers": sorted(
                    {slot for _, text in function.instructions for slot in _pointer_slots(text)}
                ),
            }
            for function in functions
        },
    }


def _data_writes(
    images: Mapping[str, KernelImage], functions: Sequence[FunctionCode]
) -> dict[str, dict[str, Sequence[str]]]:
    """What writes into the cubin's own global memory, and what may, by function; DataWrites."""
    has_addresses = any(image.data.pointers for image in images.values())
    return {
        function.name: asdict(
            data_writes(load_program(image, function.instructions), holds_addresses=has_addresses)
        )
        for function in functions
        if (image := images.get(function.name)) is not None and image.data.size
    }


def _opcode(text: str) -> str:
    words = text.split()
    return words[1 if words[0].startswith("@") and len(words) > 1 else 0].rstrip(";")


def _pointer_slots(text: str) -> list[int]:
    """The slots of constant bank 4 that an instruction reads, an address each; -1 for any of them."""
    if "cx[" in text:  # of a bank that a register names
        return [-1]
    slots = []
    for at in _POINTER_BANK.findall(text):
        first = int(at, 0) // 8 if at[0].isdigit() else 0 if at in ("RZ", "URZ") else -1
        slots += [first, first + 1] if ".128" in text and first >= 0 else [first]
    return slots


def _special_registers(text: str) -> list[str]:
    return [word.strip(",;") for word in text.split() if word.startswith("SR_")]


class _CubinCode:
    """A cubin's kernels, each taken apart once."""

    def __init__(self, cubin: Path, arch: str) -> None:
        self.images = read_kernels(cubin)
        self.functions = {function.name: function for function in library_functions(cubin, arch)}
        self._programs: dict[str, KernelProgram] = {}

    def memory(self, arrays: list[np.ndarray[Any, Any]], place: tuple[int, list[int]]) -> GlobalMemory:
        """Global memory with these arrays, and with what the cubin brings along, always at one place."""
        memory, self.images = place_data(self.images, arrays, *place)
        return memory

    def program(self, name: str) -> KernelProgram:
        if name not in self._programs:
            self._programs[name] = load_program(self.images[name], self.functions[name].instructions)
        return self._programs[name]


def _shape(launch: Job) -> LaunchShape:
    """Raises NoModel for a grid of more blocks than can be looked through."""
    grid, block = tuple(launch["grid"]), tuple(launch["block"])
    if math.prod(grid) > _MOST_BLOCKS:
        raise NoModel(
            f"a grid of {math.prod(grid):,} blocks: the model goes through {_MOST_BLOCKS:,} at most"
        )
    return LaunchShape(launch["function"], grid, block, launch["shared_bytes"], 0)


def _parameters(launch: Job, addresses: Sequence[int]) -> list[bytes]:
    """The bytes of each parameter, with the addresses of the arrays where they point to these."""
    values = []
    for parameter in launch["parameters"]:
        content = bytearray(bytes.fromhex(parameter["bytes"]))
        for first, array, distance in parameter["pointers"]:
            content[first : first + 8] = (addresses[array] + distance).to_bytes(8, "little")
        values.append(bytes(content))
    return values


def _anywhere(arrays: int) -> tuple[int, list[int]]:
    """Where memory starts, and what lies free before each array: anywhere that a GPU might put them.

    Code that knew it could tell that it is looked at, or that its time is modelled.
    """
    start = START + (secrets.randbelow(1 << 19) << 21) + ALIGNMENT * secrets.randbelow(1 << 12)
    return start, [GAP + ALIGNMENT * secrets.randbelow(_GAP_STEPS) for _ in range(arrays)]


def _read_arrays(job: Job) -> list[np.ndarray[Any, Any]]:
    return [np.fromfile(name, np.uint8) for name in job["arrays"]]


class _Call:
    """A call's launches, run one after the other with values."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._code = _CubinCode(Path(job["cubin"]), job["arch"])
        self._place = _anywhere(len(job["arrays"]))
        self._sizes = job["sizes"]
        self.races: dict[str, None] = {}
        self.executed: list[dict[str, Any]] = [{"blocks": [], "work": []} for _ in job["launches"]]
        self.memory = self.new_memory()
        self.ranges = [(self.memory.addresses[i] - self.memory.start, self._sizes[i]) for i in job["written"]]
        self.grids = [_shape(launch).grid for launch in job["launches"]]

    def new_memory(self) -> GlobalMemory:
        """The arrays as they are given, with guards between them."""
        memory = self._code.memory(_read_arrays(self._job), self._place)
        memory.bytes[self._outside(memory)] = _GUARD
        self._own = memory.bytes[memory.own].copy()
        return memory

    def _outside(self, memory: GlobalMemory) -> np.ndarray[Any, Any]:
        outside = np.ones(len(memory.bytes), bool)
        for address, size in zip(memory.addresses, self._sizes, strict=True):
            outside[address - memory.start : address - memory.start + size] = False
        outside[memory.own] = False
        return outside

    def run(self, number: int, blocks: np.ndarray[Any, Any], memory: GlobalMemory | None = None) -> Footprint:
        """Run blocks of a launch, [n, 3]; without `memory` it counts, and races are kept."""
        launch = self._job["launches"][number]
        function = self._code.functions[launch["function"]]
        counts = memory is None
        memory = self.memory if memory is None else memory
        footprint = Footprint(self.ranges, len(memory.bytes), len(blocks))
        own = [(first, first + size) for first, size in self.ranges]
        watch = LaunchRaces(own, len(memory.bytes), _describer(function), self._job["leftover"])

        def prepare(machine: BlockState) -> None:
            watch.prepare(machine)
            footprint.watch(machine)
            machine.set_cluster(tuple(launch["cluster"]))

        shape = _shape(launch)
        execution = run_blocks(
            self._code.program(launch["function"]),
            shape.grid,
            shape.block,
            shape.shared_bytes,
            _parameters(launch, memory.addresses),
            memory,
            blocks=blocks,
            prepare=prepare,
        )
        if not np.array_equal(memory.bytes[memory.own], self._own):
            raise BuildFailed(f"{_shape(launch).kernel} writes into global memory of its own")
        if counts:
            self.races |= watch.findings
            self.executed[number] = {"blocks": blocks.tolist(), "work": work_of(execution)}
        return footprint

    def answer(self, missing: np.ndarray[Any, Any]) -> dict[str, Any]:
        """Write what the arrays hold to files; what else was seen. missing: granules read before written."""
        for number, (name, size) in enumerate(zip(self._job["results"], self._sizes, strict=True)):
            self.memory.read_array(number, np.empty(size, np.uint8)).tofile(name)
        return {
            "written_outside": int((self.memory.bytes[self._outside(self.memory)] != _GUARD).sum()),
            "races": list(self.races),
            "missing_bytes": int(missing.sum()) * GRANULE,
        }


def call(job: Job) -> dict[str, Any]:
    """Run launches whole, one after the other; what all arrays hold then goes to files."""
    own = _Call(job)
    chosen = ChosenBlocks(tuple(all_blocks(grid) for grid in own.grids), {})
    return own.answer(run_chosen(own.run, chosen).missing)


def sample(job: Job) -> dict[str, Any]:
    """Run drawn blocks of launches, and of earlier ones what these need; as `call`, and who wrote the output.

    `drawn` are blocks by the number of their launch; `blocks` those of all launches, as an earlier job found
    them.
    """
    own = _Call(job)
    ranges = [granules_of(first, size) for first, size in own.ranges]
    if "blocks" in job or len(own.grids) == 1:
        given = job.get("blocks") or [job["drawn"]["0"]]
        blocks = tuple(np.array(rows, np.int64).reshape(-1, 3) for rows in given)
        chosen = ChosenBlocks(blocks, {})
    else:
        aside = own.new_memory()
        chosen = choose_blocks(
            lambda number, blocks: own.run(number, blocks, aside),
            own.grids,
            ranges,
            0,
            {int(number): np.array(rows, np.int64) for number, rows in job["drawn"].items()},
            np.random.default_rng(job["seed"]),
            job["seconds"],
        )
    done = run_chosen(own.run, chosen)
    done.writer[ranges[0]].tofile(job["writer"])
    # Of a single launch nothing had to be looked for: what its blocks wrote is what they write.
    wrote = chosen.wrote or {0: int((done.writer[ranges[0]] == 0).sum())}
    return {
        **own.answer(done.missing),
        "executed": own.executed,
        "blocks": [rows.tolist() for rows in chosen.blocks],
        "wrote_bytes": {str(number): count * GRANULE for number, count in wrote.items()},
    }


def _describer(function: FunctionCode) -> Callable[[int], str]:
    """A position in the code as the line of its source, or as the instruction where there is none."""

    def describe(position: int) -> str:
        source = function.sources[position]
        if source is not None:
            return f"{Path(source[0]).name}:{source[1]}"
        offset, text = function.instructions[position]
        return f"{text} at {offset:#x}"

    return describe


def predict(job: Job) -> dict[str, Any]:
    """The modelled time of each launch on a GPU, with what its accesses cost."""
    code = _CubinCode(Path(job["cubin"]), job["arch"])
    words = read_code_words(Path(job["cubin"]))
    gpu, errors = find_part(job["gpu"]), load_errors()
    memory = code.memory(_read_arrays(job), _anywhere(len(job["arrays"])))
    answers = []
    for number, launch in enumerate(job["launches"]):
        name, shape = launch["function"], _shape(launch)
        image = code.images[name]
        parameters = _parameters(launch, memory.addresses)
        count = partial(
            count_blocks,
            code.program(name),
            shape.grid,
            shape.block,
            shape.shared_bytes,
            parameters,
            memory,
            with_values=False,
            with_trace=True,
        )
        sample = sample_blocks(shape.grid, count)
        run = _launch_run(shape, code.functions[name], image, sample)
        usage = _usage(job, name)
        inputs = launch_inputs(run, words.get(name), usage.registers, usage.static_shared_bytes, gpu)
        prediction = predict_run(run, inputs, errors)
        document = prediction.as_json()
        executed = run.opcode_counts
        document |= {
            "kernel": name,
            "doubt": find_doubt(job["executed"][number], sample) if job["executed"] else None,
            "shared_wavefronts": run.shared_wavefronts,
            "bank_conflicts": run.bank_conflicts,
            "sectors": run.total("sectors"),
            "tensor_instructions": run.tensor_instructions,
            "warp_instructions": int(run.execution.warps.sum()),
            "by_class": run.class_counts,
            "local_requests": sum(executed.get(opcode, 0) for opcode in ("LDL", "STL")),
            "lines": [
                [source[0], source[1], share]
                for source, share in list(prediction.line_shares.items())[:_MOST_LINES]
            ],
            "stalls": dict(prediction.simulation.stalls),
        }
        answers.append(document)
    return {"launches": answers}


def _launch_run(shape: LaunchShape, function: FunctionCode, image: KernelImage, sample: Any) -> LaunchRun:
    shared_bytes = shape.shared_bytes + image.static_shared_bytes
    return LaunchRun(shape, function, sample.execution, sample, False, shared_bytes)


def _usage(job: Job, function: str) -> ResourceUsage:
    return ResourceUsage(**job["usage"][function])


if __name__ == "__main__":
    main()
