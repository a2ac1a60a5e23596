"""How much memory the process that reads a file may take: by the file's size, unless somebody says it."""

from __future__ import annotations

import os
import re
from pathlib import Path

from profiler.errors import ProfilerError

READER_MEMORY = "PROFILER_READER_MEMORY"  # a size such as 4G: the limit for every file
LEAST_BYTES = 1 << 30  # address space: the worker starts at 220 MiB, the 16 public reports end at 330 MiB
_BYTES_PER_BYTE = 20  # what NVIDIA's library takes of a report's size, measured at 11 to 16
_START_BYTES = 512 << 20
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) *([KMGT]?)(?:i?B)?", re.IGNORECASE)
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# Limits of the container that this process may run in: control groups of version 2 and 1.
_CONTAINER_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def parse_size(text: str, name: str = READER_MEMORY, least: int = LEAST_BYTES // 8) -> int:
    """Bytes in a size such as `4G` or `1500M`; raises ProfilerError that names where it stands."""
    match = _SIZE.fullmatch(text.strip())
    size = int(float(match[1]) * _UNITS[match[2].upper()]) if match else 0
    if size < least:
        raise ProfilerError(f"{name}={text[:40]} is no size from {least >> 20}M on, such as 4G")
    return size


def reader_memory(size_bytes: int) -> int:
    """The limit for a file, or a part of one, of this size: PROFILER_READER_MEMORY, or what it may need.

    Never more than half the memory of this machine or container, but always LEAST_BYTES.
    """
    given = os.environ.get(READER_MEMORY)
    if given:
        return parse_size(given)
    needed = _START_BYTES + _BYTES_PER_BYTE * size_bytes
    return LEAST_BYTES if needed <= LEAST_BYTES else max(LEAST_BYTES, min(needed, machine_memory() // 2))


def machine_memory() -> int:
    """Bytes of memory that this machine, or the container that this process runs in, has."""
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for path in _CONTAINER_LIMITS:
        try:
            limits.append(int(Path(path).read_text(encoding="ascii")))
        except (OSError, ValueError):  # no such group, or "max"
            continue
    return min(limits)
