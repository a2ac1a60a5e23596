"""What an isolated process sees and may do: none of the user's files, no network, within its limits."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from profiler.build.toolchain import require_tool
from profiler.errors import CannotJudge
from profiler.judge import isolation
from profiler.judge.isolation import Isolation, ProcessLimits, why_not_isolated
from tests.toolchain import needs_sass

pytestmark = pytest.mark.skipif(
    bool(why_not_isolated()), reason=f"nothing isolates here: {why_not_isolated()}"
)
LIMITS = ProcessLimits(5, memory_bytes=1 << 30, processes=20)


def shell(
    command: str, folder: Path, limits: ProcessLimits = LIMITS, factor: float = 2.0
) -> isolation.Finished:
    return Isolation().run(["/bin/sh", "-c", command], folder, limits, wall_factor=factor)


def test_only_its_own_folder_is_there_and_can_be_written(tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("a secret")
    folder = tmp_path / "own"
    folder.mkdir()
    done = shell(f"cat {secret} /etc/passwd; ls /home; touch here; touch /usr/there; echo $$; id -u", folder)
    assert "a secret" not in done.stdout.decode()
    assert "Read-only file system" in done.stderr
    assert (folder / "here").exists()
    process, user = done.stdout.split()
    assert int(process) < 10  # a pid namespace of its own
    assert user == b"1000"


def test_there_is_no_network(tmp_path: Path) -> None:
    done = shell("cat /proc/net/dev | tail -n +3 | cut -d: -f1", tmp_path)
    assert set(done.stdout.decode().split()) <= {"lo"}


def test_what_takes_too_long_is_killed_with_all_that_it_started(tmp_path: Path) -> None:
    started = time.monotonic()
    done = shell("(while true; do date > beat; sleep 0.05; done) & sleep 60", tmp_path, ProcessLimits(0.5))
    assert done.code is None
    assert time.monotonic() - started < 20
    before = (tmp_path / "beat").stat().st_mtime_ns
    time.sleep(0.3)
    assert (tmp_path / "beat").stat().st_mtime_ns == before


def test_memory_and_the_size_of_files_are_limited(tmp_path: Path) -> None:
    limits = ProcessLimits(5, memory_bytes=200 << 20, file_bytes=1 << 20)
    shell("head -c 9000000 /dev/zero > large", tmp_path, limits)
    assert 0 < (tmp_path / "large").stat().st_size <= 1 << 20
    code = "print(len(bytearray(1 << 30)))"
    done = Isolation().run([sys.executable, "-I", "-S", "-c", code], tmp_path, limits)
    assert done.last_words == "MemoryError"
    assert not done.stdout


@pytest.mark.slow
def test_without_proc_processes_run_too(tmp_path: Path) -> None:
    done = Isolation(proc=False).run(
        ["/bin/sh", "-c", "ls /proc/self; cat /proc/self/environ"], tmp_path, LIMITS
    )
    assert done.stdout == b"exe\n"  # a link that the disassembler looks for
    assert "No such file" in done.stderr
    code = "import json, subprocess; print(subprocess.run(['/bin/echo', 'ran'], capture_output=True).stdout)"
    done = Isolation(proc=False).run([sys.executable, "-I", "-S", "-c", code], tmp_path, LIMITS)
    assert done.stdout == b"b'ran\\n'\n"


@needs_sass
@pytest.mark.slow
def test_the_compiler_and_the_disassembler_run_without_proc(tmp_path: Path) -> None:
    nvcc, dump = require_tool("nvcc"), require_tool("cuobjdump")
    (tmp_path / "k.cu").write_text("__global__ void k(int* o) { *o = 1; }")
    lonely = Isolation(proc=False)
    compiled = [str(nvcc.path), "-cubin", "-arch=sm_90a", "-o", "k.cubin", "k.cu"]
    done = lonely.run(compiled, tmp_path, ProcessLimits(60))
    assert done.code == 0, done.stderr
    listed = lonely.run([str(dump.path), "--dump-sass", "k.cubin"], tmp_path, ProcessLimits(60))
    assert b"EXIT" in listed.stdout, listed.stderr


# What a source might try while it is compiled: to read, or to take the machine.
READS = (
    '#include "/etc/passwd"',
    '#include "/proc/self/environ"',
    '#include "/proc/1/cmdline"',
    '#embed "/etc/passwd"',
    'asm(".incbin \\"/etc/passwd\\"");',
    '__global__ void k() { asm volatile(".incbin \\"/etc/passwd\\""); }',
    '#if __has_include("/root") || __has_include("/home")\n#error home\n#endif',
)


@needs_sass
@pytest.mark.long
@pytest.mark.parametrize("source", READS)
def test_no_source_brings_a_file_of_the_machine_into_what_is_compiled(source: str, tmp_path: Path) -> None:
    secret = "PROFILER_SECRET_71"
    (tmp_path / "k.cu").write_text(source + "\n__global__ void other(int* o) { *o = 1; }\n")
    nvcc = require_tool("nvcc")
    command = [str(nvcc.path), "-cubin", "-arch=sm_90a", "-std=c++17", "-o", "k.cubin", "k.cu"]
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("PROFILER_TEST", secret)  # is in this process's environment, and not in the compiler's
        done = Isolation().run(command, tmp_path, ProcessLimits(60))
    left = done.stderr.encode() + done.stdout
    if (tmp_path / "k.cubin").exists():
        left += (tmp_path / "k.cubin").read_bytes()
    assert b"root:x:0" not in left
    assert secret.encode() not in left
    assert "error home" not in done.stderr


BOMBS = (
    "#define A0 int x;\n"
    + "".join(f"#define A{i} A{i - 1} A{i - 1} A{i - 1} A{i - 1}\n" for i in range(1, 30))
    + "struct S { A29 };",
    "template <long N, int K> struct T {\n"
    "  static const long v = T<N * 2, K - 1>::v + T<N * 2 + 1, K - 1>::v; };\n"
    "template <long N> struct T<N, 0> { static const long v = N; };\nlong x = T<1, 60>::v;",
    "constexpr long spin() { long n = 0; while (true) ++n; return n; }\nconstexpr long x = spin();",
)


@needs_sass
@pytest.mark.long
@pytest.mark.parametrize("source", BOMBS, ids=("macros", "templates", "constexpr"))
def test_a_source_that_grows_without_end_is_ended(source: str, tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text(source + "\n__global__ void k(int* o) { *o = 1; }\n")
    nvcc = require_tool("nvcc")
    command = [str(nvcc.path), "-cubin", "-arch=sm_90a", "-std=c++17", "-o", "k.cubin", "k.cu"]
    done = Isolation().run(command, tmp_path, ProcessLimits(4, memory_bytes=1 << 30), wall_factor=6)
    assert done.code != 0
    assert not (tmp_path / "k.cubin").exists()
    assert done.seconds < 40


def test_where_nothing_isolates_a_candidate_is_refused_unless_it_is_trusted(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(isolation, "why_not_isolated", lambda: "unshare: Operation not permitted")
    with pytest.raises(CannotJudge, match=r"Operation not permitted.*--trust"):
        Isolation()
    assert Isolation(trust=True).run(["/bin/echo", "ran"], tmp_path, LIMITS).stdout == b"ran\n"


def test_a_python_behind_a_link_is_there_inside_with_what_the_link_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where several checkouts share one `.venv`."""
    (tmp_path / "shared").mkdir()
    (tmp_path / ".venv").symlink_to(tmp_path / "shared")
    monkeypatch.setattr(sys, "prefix", str(tmp_path / ".venv"))
    isolation._readable.cache_clear()
    try:
        assert {str(tmp_path / ".venv"), str(tmp_path / "shared")} <= set(isolation._readable())
    finally:
        isolation._readable.cache_clear()
