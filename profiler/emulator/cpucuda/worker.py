"""Calls kernels built for the CPU, in a process that may die of them. emulator.py starts it.

Standard library only. One JSON object a line: what to call on stdin, what the runtime saw on stdout. Arrays
are in the file whose descriptor is the only argument; the other process writes and reads them.
"""

import _ctypes
import ctypes
import json
import mmap
import os
import resource
import sys
import traceback
from typing import Any, TextIO

TEXTS = ("defects", "banks", "launches")
STREAM = 0x5747  # no stream has this handle: a launch that has another was not given this one


def load(path: str) -> ctypes.CDLL:
    """The library with the runtime's functions declared."""
    library = ctypes.CDLL(path)
    library.cpucuda_begin.argtypes = [
        ctypes.c_uint64,
        ctypes.c_int,
        ctypes.c_double,
        ctypes.c_int,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_uint64,
        ctypes.c_int,
    ]
    library.cpucuda_end.restype = None
    library.cpucuda_buffer.argtypes = [ctypes.c_void_p, ctypes.c_uint64, ctypes.c_int, ctypes.c_int]
    for name in TEXTS:
        getattr(library, f"cpucuda_{name}").restype = ctypes.c_char_p
    return library


def unload(library: ctypes.CDLL) -> None:
    """Give back what the library holds: its stacks alone are 2000 of the mappings a process may have."""
    library.cpucuda_end()
    _ctypes.dlclose(library._handle)


def call(library: ctypes.CDLL, job: dict[str, Any], memory: mmap.mmap) -> dict[str, Any]:
    """Run one job. Its arguments are buffers [offset, bytes, writable, pointer's offset], numbers or null."""
    function = getattr(library, job["symbol"])
    anchor = ctypes.c_char.from_buffer(memory)
    base = ctypes.addressof(anchor)
    library.cpucuda_begin(
        *(job[name] for name in ("seed", "random", "preempt", "landing", "device_limit", "budget")),
        STREAM,
        job["run"],
    )
    arguments: list[Any] = []
    for number, value in enumerate(job["arguments"], 1):
        if isinstance(value, list):
            offset, size, writable, pointer = value
            library.cpucuda_buffer(base + offset, size, writable, number)
            arguments.append(ctypes.c_void_p(base + pointer))
        elif value is None:
            arguments.append(ctypes.c_void_p(None))
        else:
            arguments.append(ctypes.c_float(value) if isinstance(value, float) else ctypes.c_int(value))
    reply = {"rc": function(*arguments, ctypes.c_void_p(STREAM)), "base": base}
    for name in TEXTS:
        reply[name] = getattr(library, f"cpucuda_{name}")().decode(errors="replace")
    del anchor
    return reply


def serve(arrays: int, replies: TextIO) -> None:
    """Answer jobs until stdin ends. One library is loaded at a time."""
    path, library = "", None
    for line in sys.stdin:
        job = json.loads(line)
        if job["library"] != path or job["fresh"]:
            if library is not None:
                unload(library)
            path, library = job["library"], load(job["library"])
        with mmap.mmap(arrays, 0) as memory:
            assert library is not None
            reply = call(library, job, memory)
        replies.write(json.dumps(reply) + "\n")
        replies.flush()


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what a kernel prints must not mix with answers
    try:
        serve(int(sys.argv[1]), answers)
    except BaseException:  # not by exit(), which is taken for the kernel's
        traceback.print_exc()
        os._exit(1)
