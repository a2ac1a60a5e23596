"""The lineage's machine code, run on the CPU, against the CPU check and sums by hand.

Of every good version, head dim 64 and 128, with a mask and without, on two small workloads: instructions by
class, tensor instructions and bytes of global memory, with what they must be, and wavefronts of shared memory
beside those of the CPU check. tests/model/test_version_run.py says which differ and why.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from profiler.build.library import BuiltLibrary, build
from profiler.catalog.attention import ATTENTION, AttentionWorkload
from profiler.catalog.catalog import Catalog, load_catalog
from profiler.catalog.version import Version
from profiler.emulator.cpu_check import check
from profiler.model.version_run import LaunchRun, run_version
from tests.model.test_version_run import bytes_by_hand, tensor_instructions_by_hand

LENGTHS = ((128, 128), (97, 65))  # whole tiles, and ragged ones


def rows(catalog: Catalog, version: Version, arch: str) -> Iterator[tuple[AttentionWorkload, LaunchRun, int]]:
    """Each workload with the launch that ran all its blocks, and the wavefronts of the CPU check."""
    (built,) = build(catalog, [version], [arch])
    assert isinstance(built, BuiltLibrary), built
    for head_dim in version.head_dims:
        for lengths in LENGTHS:
            for causal in (False, True):
                workload = AttentionWorkload(1, 2, *lengths, head_dim, causal, version.dtypes[0])
                result = run_version(version, ATTENTION, workload, built, arch)
                assert result.output_check is not None
                assert result.output_check.wrong == 0, workload.label
                (checked,) = check(version, ATTENTION, [workload], [0])
                yield workload, result.launches[0], checked.shared_wavefronts


def against(value: int, expected: int | None) -> str:
    """A count and whether it is the one by hand."""
    if expected is None:
        return str(value)
    return f"{value} ({'equal' if value == expected else f'by hand {expected}'})"


def main() -> None:
    """Print a row a version and workload."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", help="all good ones if left out")
    parser.add_argument("--arch", default="sm_90a")
    options = parser.parse_args()
    catalog = load_catalog()
    names = options.versions or [version.id for version in catalog.versions if version.state == "good"]
    print(
        "version | workload | warp instructions by class | tensor | global bytes | wavefronts | CPU check's"
    )
    for version in catalog.pick(names):
        for workload, launch, wavefronts in rows(catalog, version, options.arch):
            is_plain = (workload.len_q, workload.len_kv) == LENGTHS[0] and not workload.causal
            classes = ", ".join(f"{name} {count}" for name, count in launch.class_counts.items() if count)
            tensor = tensor_instructions_by_hand(version.id, workload) if is_plain else None
            moved = bytes_by_hand(version.id, workload.head_dim) if is_plain else None
            cells = (
                version.id,
                workload.label,
                classes,
                against(launch.tensor_instructions, tensor),
                against(launch.total("global_bytes"), moved),
                str(launch.shared_wavefronts),
                "equal" if launch.shared_wavefronts == wavefronts else str(wavefronts),
            )
            print(" | ".join(cells), flush=True)


if __name__ == "__main__":
    main()
