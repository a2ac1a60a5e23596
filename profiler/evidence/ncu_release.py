"""What depends on the release of Nsight Compute: how its version is written, and what changed in which.

To add a difference between releases: a constant here with its source; no other module compares releases. A
counter that was wrong is a row of `RIGHT_TENSOR_PEAKS`, a renamed one of `RENAMED` in `ncu_names`, an
option is handled in `profiler/collect/ncu_command.py`, the layout of a report in
`profiler/reports/file_format.py`.
"""

from __future__ import annotations

import re
from typing import NamedTuple


class NcuRelease(NamedTuple):
    """A release of ncu, such as 2024.3.2; releases compare as they came out."""

    year: int
    number: int
    patch: int = 0

    @staticmethod
    def parse(version: str | None) -> NcuRelease | None:
        """The release in "2024.1.1.0 (build 33998838) (public-release)"; None where the text names none."""
        match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", version or "")
        return NcuRelease(int(match[1]), int(match[2]), int(match[3] or 0)) if match else None

    def __str__(self) -> str:
        return f"{self.year}.{self.number}.{self.patch}"

    @property
    def short(self) -> str:
        """As NVIDIA names it: 2025.4, 2024.3.2."""
        return str(self).removesuffix(".0")


# Older ones have other options: `profiler collect` does not call them. From here to 2026.3 the command line
# that collect/ncu_command.py composes is tested.
OLDEST_CALLED = NcuRelease(2022, 4)

# `--clock-control boost`; before it there are none and base.
BOOST_CLOCK = NcuRelease(2025, 4)

# FileHeader.Version of every report from ncu 2021.2 to 2024.3; the layout inside another one is not known.
REPORT_FILE_VERSION = 7

# Counters of tensor operations by type. Before, ncu's own roofline took 512 operations for each tensor
# instruction, whatever its type.
TENSOR_OPERATIONS = NcuRelease(2024, 2)

# From these releases on the peaks of the tensor counters are right on the chip; others never had them wrong.
# Source: release notes of Nsight Compute 2024.3.2.
RIGHT_TENSOR_PEAKS = {"sm_89": NcuRelease(2024, 3, 2)}


def version_number(version: str) -> str:
    """A version as it is shown and compared: "2024.1.1.0", without the build that a report adds."""
    return version.split(" ")[0]


def wrong_tensor_peaks(release: NcuRelease | None, chip: str | None) -> str:
    """Why the tensor peaks of a report are wrong; "" where they are right, or nothing is known of it."""
    from profiler.evidence.gpu_arch import find_architecture  # a table that whoever reads a report needs not

    right_since, architecture = RIGHT_TENSOR_PEAKS.get(chip or ""), find_architecture(chip)
    if release is None or right_since is None or architecture is None or release >= right_since:
        return ""
    capability = architecture.compute_capability
    return f"ncu before {right_since.short} has wrong tensor peaks for CC {capability}"
