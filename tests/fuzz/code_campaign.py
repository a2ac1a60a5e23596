"""Damaged machine code by the thousand: cubins and libraries through `changes` and `static`.

    python -m tests.fuzz.code_campaign --count 5000 --seed 1

What may come of it is an answer, or one line that says what is wrong. Beside what the other campaign counts,
accepted files count that lost functions of the undamaged file without a word.
"""

from __future__ import annotations

import argparse
import struct
import subprocess
import sys
import tempfile
from pathlib import Path
from random import Random

from profiler.build.toolchain import require_tool
from profiler.documents.changes import code_changes
from profiler.documents.code_files import examine_files
from profiler.errors import CannotJudge
from profiler.sass.binary_functions import read_functions_of
from tests.fuzz.campaign import VALUES, Result, Target, run_targets
from tests.fuzz.mutations import change_bytes

_SOURCE = """
__constant__ float factors[4] = {1.f, 2.f, 3.f, 4.f};
template <int N> __global__ void scale(float *x) { for (int i = 0; i < N; i++) x[i] *= factors[i & 3]; }
template __global__ void scale<64>(float *);
template __global__ void scale<128>(float *);
__global__ void copy(const int *a, int *b) { __shared__ int s[64]; s[threadIdx.x] = *a; b[1] = s[7 - *b]; }
"""


class CodeTargets:
    """What reads machine code, each with a mutation of a good file."""

    def __init__(self, folder: Path) -> None:
        (folder / "good.cu").write_text(_SOURCE)
        nvcc = str(require_tool("nvcc").path)
        both = [f"-gencode=arch=compute_{n},code=sm_{n}" for n in ("80", "120")]
        for name, options in (
            ("one.cubin", ["-arch=sm_90a", "-cubin", "-lineinfo"]),
            ("two.fatbin", [*both, "-fatbin"]),
            ("two.so", [*both, "-shared", "-Xcompiler=-fPIC"]),
            ("one.o", ["-arch=sm_100a", "-dc"]),
        ):
            subprocess.run([nvcc, *options, "-o", name, "good.cu"], cwd=folder, check=True)
        self._good = [folder / name for name in ("one.cubin", "two.fatbin", "two.so", "one.o")]
        self._names = {path: sorted(one.name for one in read_functions_of(path)) for path in self._good}

    def changes(self, random: Random, folder: Path) -> str | None:
        """The damaged file against the good one."""
        source, path = self._damaged(random, folder)
        document = code_changes(str(source), str(path))
        if not document.changes.changed:
            return None
        return self._difference(source, path)

    def read(self, random: Random, folder: Path) -> str | None:
        """The functions alone, which no tool has a part in."""
        source, path = self._damaged(random, folder)
        read_functions_of(path)
        return self._difference(source, path)

    def static(self, random: Random, folder: Path) -> str | None:
        """What the headers and the code say of the kernels."""
        source, path = self._damaged(random, folder)
        document = examine_files([path])
        if document.errors:
            (words,) = document.errors.values()
            raise CannotJudge(words)
        names = sorted(one.function for one in document.functions)
        good = sorted(one.function for one in examine_files([source]).functions)
        return None if names == good else "functions lost or renamed"

    def _difference(self, source: Path, path: Path) -> str | None:
        names = sorted(one.name for one in read_functions_of(path))
        if len(names) < len(self._names[source]):
            return "functions lost"
        return VALUES if names != self._names[source] else None

    def _damaged(self, random: Random, folder: Path) -> tuple[Path, Path]:
        source = random.choice(self._good)
        change = change_headers if random.random() < 0.5 else change_bytes
        path = folder / source.name
        path.write_bytes(change(source.read_bytes(), random))
        return source, path


def change_headers(content: bytes, random: Random) -> bytes:
    """One to four fields of the file's header, of its section headers, or of a container's entry."""
    data = bytearray(content)
    places = list(range(0, 64, 4))
    if content[:4] == b"\x7fELF":
        (table,) = struct.unpack_from("<Q", content, 0x28)
        places += range(table, len(content) - 8, 4)
    at = content.find(b"\x50\xed\x55\xba")
    while at >= 0:
        places += range(at, min(at + 96, len(content) - 8), 4)
        at = content.find(b"\x50\xed\x55\xba", at + 4)
    for _ in range(random.randint(1, 4)):
        value = random.choice((0, 1, 7, 0xFF, 0x7FFFFFFF, 0xFFFFFFFF, len(content), random.getrandbits(32)))
        struct.pack_into("<I", data, random.choice(places), value)
    return bytes(data)


def run(count: int, seed: int, *, with_static: bool = True, first: int = 0) -> Result:
    """A campaign of so many mutations. with_static: `static` runs two tools for each."""
    with tempfile.TemporaryDirectory() as name:
        targets = CodeTargets(Path(name))
        by_name: dict[str, Target] = {"changes": targets.changes, "read": targets.read}
        if with_static:
            by_name["static"] = targets.static
        return run_targets(by_name, count, seed, Path(name), first=first)


def main() -> int:
    """Run a campaign and print what became of it; exit 1 where something crashed, hung or took memory."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--count", type=int, default=5000)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument(
        "--first", type=int, default=0, help="number of the first mutation, to repeat a case"
    )
    options.add_argument("--no-static", action="store_true")
    arguments = options.parse_args()
    result = run(arguments.count, arguments.seed, with_static=not arguments.no_static, first=arguments.first)
    print("\n".join(result.table()))
    return 0 if result.is_sound else 1


if __name__ == "__main__":
    sys.exit(main())
