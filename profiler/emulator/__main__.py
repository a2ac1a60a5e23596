"""`python -m profiler.emulator SOURCE.cu`: one attention source on one shape, for whoever is writing it."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from profiler.catalog.attention import ATTENTION
from profiler.catalog.problem import ALL_STAGES
from profiler.emulator.cpu_library import build_cpu_library
from profiler.emulator.emulator import SHARED_BUDGET_BYTES, Emulator, Landing, Schedule, time_limit_s
from profiler.emulator.run_result import RunResult

LANDING_HELP = "when TMA and wgmma take effect (default: by the seed)"


def main(argv: Sequence[str] | None = None) -> int:
    """Run it under some schedules and print what each showed; 1 where one did not pass."""
    parser = argparse.ArgumentParser(prog="python -m profiler.emulator", description=__doc__)
    parser.add_argument("source", type=Path)
    parser.add_argument("--shape", default="1,2,128,64", help="batch,heads,len,head_dim")
    parser.add_argument("--len-kv", type=int)
    parser.add_argument("--causal", action="store_true")
    parser.add_argument("--dtype", default="fp16", choices=("fp16", "fp8"))
    parser.add_argument("--only", choices=ATTENTION.stages, default=ALL_STAGES)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--landing", choices=[landing.label for landing in Landing], help=LANDING_HELP)
    parser.add_argument(
        "--shared-kb", type=int, default=SHARED_BUDGET_BYTES >> 10, help="the budget of a block"
    )
    parser.add_argument("--bank", action="store_true", help="wavefronts a line")
    arguments, flags = parser.parse_known_args(argv)
    if unknown := [flag for flag in flags if not flag.startswith(("-D", "-I"))]:
        parser.error(f"unknown: {' '.join(unknown)}")
    batch, heads, length, head_dim = map(int, arguments.shape.split(","))
    workload = ATTENTION.workload(
        batch=batch,
        heads=heads,
        len_q=length,
        len_kv=arguments.len_kv or length,
        head_dim=head_dim,
        causal=arguments.causal,
        dtype=arguments.dtype,
    )
    library = build_cpu_library(
        arguments.source,
        [*flags, *ATTENTION.stage_flags(arguments.only)],
        [Path(flag.removeprefix("-I")) for flag in flags if flag.startswith("-I")],
    )
    landing = next((policy for policy in Landing if policy.label == arguments.landing), None)
    passed = True
    with Emulator() as emulator:
        for seed in range(arguments.seeds):
            case = ATTENTION.case(workload, seed, arguments.only)
            folder = arguments.source.resolve().parent
            limit_s = time_limit_s(ATTENTION.flops(workload), case)
            result = emulator.run(
                library,
                ATTENTION.symbol,
                case,
                Schedule(seed, landing),
                source_folder=folder,
                budget_bytes=arguments.shared_kb << 10,
                time_limit_s=limit_s,
            )
            passed = passed and result.passed
            word = "PASS" if result.passed else "FAIL"
            print(f"seed {seed} {word} rc={result.returned} {result.seconds:.2f}s {result.output_check}")
            for defect in result.defects[:12]:
                where = f"{defect.source.file}:{defect.source.line}" if defect.source else ""
                print(f"    {defect.kind} {where} x{defect.count}: {defect.text}")
            if arguments.bank and seed == 0:
                _print_banks(result)
    return 0 if passed else 1


def _print_banks(result: RunResult) -> None:
    for line in sorted(result.traffic, key=lambda line: -line.conflicts):
        where = f"{line.source.file}:{line.source.line} {line.kind}"
        counts = f"{line.requests:8d} requests {line.wavefronts:8d} wavefronts {line.conflicts:8d} conflicts"
        print(f"    {where:32s} {counts}")
    total = sum(line.wavefronts for line in result.traffic)
    print(f"    {sum(line.conflicts for line in result.traffic)} conflicts of {total} wavefronts")
    for launch in result.launches:
        print(f"    {launch}")


if __name__ == "__main__":
    sys.exit(main())
