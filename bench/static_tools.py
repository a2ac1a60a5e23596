"""Accesses to memory by line: the machine code run on the CPU, beside cuxray, which reasons about it.

    python -m bench.static_tools [VERSION…] --cuxray /path/to/cuxray

Of every function of the lineage's cubins: of how many instructions on shared and global memory each says
anything, and where both do, whether conflicts and efficiency of the line agree. Processor time of both, the
compiler's left out. cuxray counts both halves of a copy (LDGSTS), and the loads under a predicate that is
never true, with which ptxas pads.
Without cuxray (PyPI, 0.6.0 was tried) its columns are empty.
"""

from __future__ import annotations

import argparse
import json
import re
import resource
import subprocess
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from profiler.build.library import BuiltLibrary, build
from profiler.build.toolchain import find_tool
from profiler.catalog.attention import AttentionWorkload
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.catalog.sources import load_problem
from profiler.catalog.version import Version
from profiler.errors import ProfilerError
from profiler.model.accesses import AccessCounts
from profiler.model.shared_layout import find_swizzle
from profiler.model.version_run import LaunchRun, run_version
from profiler.sass.disassembly import extract_cubin
from profiler.sass.listing import make_listing
from profiler.sass.live_registers import count_live_registers

# Whole tiles, ragged ones with a mask, many tiles of keys: between them more of the code is reached.
WORKLOADS = (((128, 128), False), ((97, 65), True), ((20, 260), False))
ACCESSES = frozenset(["LDG", "STG", "LDS", "STS", "LDSM", "LDGSTS"])
EFFICIENCY_POINTS = 1.0  # by which two efficiencies may differ and agree

_SECTION = re.compile(r"^\s*\.section\s+\.text\.([^,\s]+)")
_LINE = re.compile(r'//## File "([^"]*)", line (\d+)')
_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+")
Chain = dict[tuple[str, int], set[tuple[str, int]]]


def inlined_lines(cubin: Path) -> Chain:
    """Every source line that an instruction belongs to, those that it was inlined at too, as file name."""
    tool = find_tool("nvdisasm")
    assert tool
    command = [str(tool.path), "--print-line-info-inline", "--print-code", "--no-dataflow", str(cubin)]
    lines: Chain = {}
    function, current, ended = "", set[tuple[str, int]](), True
    for text in subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines():
        if section := _SECTION.match(text):
            function, current = section[1], set()
        elif source := _LINE.search(text):
            current = set() if ended else current
            current.add((Path(source[1]).name, int(source[2])))
            ended = False
        elif code := _CODE.match(text):
            lines[function, int(code[1], 16)] = set(current)
            ended = True
    return lines


@dataclass
class Function:
    """One function: what a run says of its accesses."""

    sites: int  # instructions on shared and global memory
    reached: dict[int, list[AccessCounts]]  # by offset, of the workloads that reach it
    live: int
    threads: int


def run(version: Version, catalog: Catalog, built: BuiltLibrary) -> tuple[dict[str, Function], list[str]]:
    """The functions of a version by mangled name, and why some were not run."""
    functions: dict[str, Function] = {}
    why: list[str] = []
    for head_dim in version.head_dims:
        for lengths, causal in WORKLOADS:
            workload = AttentionWorkload(1, 2, *lengths, head_dim, causal, version.dtypes[0])
            try:
                result = run_version(version, load_problem(catalog), workload, built, "sm_90a")
            except ProfilerError as error:
                why.append(f"d={head_dim}: {str(error).splitlines()[0]}")
                continue
            for launch in result.launches:
                add_launch(functions, launch)
    return functions, why


def add_launch(functions: dict[str, Function], launch: LaunchRun) -> None:
    """Count a launch's accesses to its function."""
    name = launch.function.name
    if name not in functions:
        code = launch.execution.instructions
        never = [bool(i.guard and i.guard.number == 7 and i.guard.inverted) for i in code]
        sites = sum(i.base in ACCESSES and not skip for i, skip in zip(code, never, strict=True))
        (live,) = count_live_registers(make_listing([launch.function], ""))
        block = launch.launch.block
        functions[name] = Function(sites, {}, live.highest, block[0] * block[1] * block[2])
    for position, access in launch.execution.accesses.items():
        instruction = launch.execution.instructions[position]
        if access.requests and instruction.base in ACCESSES:
            functions[name].reached.setdefault(instruction.offset, []).append(access)


def cuxray_report(program: str, cubin: Path, threads: int) -> tuple[dict[str, Any], float]:
    """cuxray's kernels by mangled name, and its processor time in seconds."""
    command = [program, "report", "--json", "--no-cache", "--threads", str(threads), str(cubin)]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    if not done.stdout.startswith("{"):
        return {}, seconds
    units = json.loads(done.stdout)["units"]
    return {kernel["name"]: kernel for unit in units for kernel in unit["kernels"]}, seconds


def compare_site(site: dict[str, Any], accesses: list[AccessCounts]) -> str:
    """What a run says of a line that cuxray judged: equal, or both in words."""
    if site["space"] == "shared":
        shared = [access for access in accesses if access.wavefronts]
        if not shared:
            return "not reached"
        ways = max(access.wavefronts / access.ideal_wavefronts for access in shared)
        theirs = site["conflict_ways"] or 1
        return "equal" if abs(ways - theirs) < 0.05 else f"conflicts {theirs} ways, run {ways:.2f}"
    loads = [access for access in accesses if access.sectors]
    if not loads:
        return "not reached"
    efficiency = min(100, 100 * sum(a.global_bytes for a in loads) / sum(32 * a.sectors for a in loads))
    theirs = site["efficiency_pct"]
    if theirs is None or abs(efficiency - theirs) <= EFFICIENCY_POINTS:
        return "equal"
    return f"efficiency {theirs:.0f} %, run {efficiency:.0f} %"


def compare_function(kernel: dict[str, Any], ours: Function, name: str, chain: Chain) -> Counter[str]:
    """How cuxray's lines compare with the run's."""
    words: Counter[str] = Counter()
    for site in kernel["access"]["by_site"]:
        if site["space"] not in ("shared", "global"):
            continue
        place = Path(site["file"] or "").name, site["line"]
        accesses = [
            access
            for offset, counted in ours.reached.items()
            if place in chain.get((name, offset), ())
            for access in counted
        ]
        words[compare_site(site, accesses)] += 1
    return words


def main() -> None:
    """Print a row a function, and the sums."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("versions", nargs="*", help="all good ones if left out")
    parser.add_argument("--cuxray", help="the program; its columns are left out without")
    options = parser.parse_args()
    catalog = load_catalog()
    names = options.versions or [version.id for version in catalog.versions if version.state == "good"]
    print("function | accesses | run | seconds | live | cuxray | seconds | live | lines of both")
    sums: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for version in catalog.pick(names):
        (built,) = build(catalog, [version], ["sm_90a"])
        assert isinstance(built, BuiltLibrary), built
        start = time.process_time() + children()
        functions, why = run(version, catalog, built)
        own = time.process_time() + children() - start
        with tempfile.TemporaryDirectory() as folder:
            cubin = extract_cubin(built.library, "sm_90a", Path(folder))
            threads = max((function.threads for function in functions.values()), default=128)
            kernels, theirs = cuxray_report(options.cuxray, cubin, threads) if options.cuxray else ({}, 0.0)
            chain = inlined_lines(cubin)
        sums.update(own_ms=round(1000 * own), their_ms=round(1000 * theirs))
        for name, function in sorted(functions.items()):
            row = [f"{version.id} {name[-40:]}", str(function.sites), str(len(function.reached))]
            row += [f"{own / len(functions):.1f}", str(function.live)]
            sums.update(sites=function.sites, reached=len(function.reached))
            if kernel := kernels.get(name):
                access = kernel["access"]
                known, unknown = access["analyzed_count"], access["unanalyzed_count"]
                words = compare_function(kernel, function, name, chain)
                sums.update(known=known, unknown=unknown)
                lines.update(words)
                row += [f"{known} of {known + unknown}", f"{theirs / len(functions):.1f}"]
                row += [str(kernel["pressure"]["peak"]["live_gpr"])]
                row += [", ".join(f"{count} {word}" for word, count in words.most_common())]
            print(" | ".join(row), flush=True)
        for reason in why:
            print(f"{version.id} {reason}")
    print(f"run: {sums['reached']} of {sums['sites']} accesses, {sums['own_ms'] / 1000:.1f} s")
    if options.cuxray:
        all_sites = sums["known"] + sums["unknown"]
        print(f"cuxray: {sums['known']} of {all_sites} accesses, {sums['their_ms'] / 1000:.1f} s")
        print("lines: " + ", ".join(f"{count} {word}" for word, count in lines.most_common()))
    solve(catalog, options.cuxray)


def children() -> float:
    """Processor time of programs that have ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def solve(catalog: Catalog, program: str | None) -> None:
    """The swizzle of v2d_a by both."""
    (version,) = catalog.pick(["v2d_a"])
    (built,) = build(catalog, [version], ["sm_90a"])
    assert isinstance(built, BuiltLibrary)
    for head_dim in version.head_dims:
        start = time.process_time() + children()
        workload = AttentionWorkload(1, 2, 128, 128, head_dim)
        result = run_version(version, load_problem(catalog), workload, built, "sm_90a", trace_shared=True)
        (launch,) = result.launches
        assert launch.shared_trace
        search = find_swizzle(launch.shared_trace.patterns(), launch.shared_bytes)
        seconds = time.process_time() + children() - start
        print(
            f"v2d_a d={head_dim}: {search.swizzle} of bytes, {search.before} wavefronts to {search.after} "
            f"(ideal {search.ideal}), {seconds:.1f} s"
        )
    if program:
        with tempfile.TemporaryDirectory() as folder:
            cubin = extract_cubin(built.library, "sm_90a", Path(folder))
            start = children()
            done = subprocess.run(
                [program, "solve", "--threads", "128", str(cubin)], capture_output=True, text=True
            )
            print(f"cuxray solve: {' '.join(done.stdout.split())}, {children() - start:.1f} s")


if __name__ == "__main__":
    main()
