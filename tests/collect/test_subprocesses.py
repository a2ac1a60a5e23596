"""Tests with small real programs that end in every way a measured program can."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profiler.collect import subprocesses


def run(tmp_path, text, *, timeout_s=20.0, **how):
    program = tmp_path / "program.py"
    program.write_text(text)
    return subprocesses.run([sys.executable, program], timeout_s=timeout_s, log=tmp_path / "log", **how)


def gone(pid, within_s=3.0):
    """Whether the process has ended; a zombie that nobody waits for has."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_a_program_that_ends_well_is_ok_and_its_output_is_kept(tmp_path):
    ended = run(tmp_path, "import sys; print('one'); print('two', file=sys.stderr)")
    assert ended.ok
    assert ended.tail.split() == ["one", "two"]
    assert (tmp_path / "log").read_text().split() == ["one", "two"]


def test_an_exit_code_is_told(tmp_path):
    ended = run(tmp_path, "print('why'); raise SystemExit(7)")
    assert (ended.kind, ended.code, ended.last_line) == ("exited", 7, "why")
    assert not ended.ok


def test_a_crash_names_its_signal_and_leaves_no_core(tmp_path):
    ended = run(tmp_path, "import ctypes; ctypes.string_at(0)", cwd=tmp_path)
    assert (ended.kind, ended.code) == ("signalled", signal.SIGSEGV)
    assert ended.description == "was killed by SIGSEGV"
    assert not list(tmp_path.glob("core*"))


def test_a_program_that_kills_itself_is_not_called_a_timeout(tmp_path):
    ended = run(tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert (ended.kind, ended.code) == ("signalled", signal.SIGKILL)


@pytest.mark.slow
def test_a_hang_is_ended_at_its_time_and_what_it_said_is_kept(tmp_path):
    text = "import time, signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    ended = run(tmp_path, text + "print('begun', flush=True)\nwhile True: time.sleep(1)", timeout_s=1.0)
    assert ended.kind == "timed_out"
    assert ended.description == "did not end within 1 s"
    assert ended.tail.strip() == "begun"
    assert 1.0 <= ended.seconds < 5.0


@pytest.mark.slow
def test_a_program_that_closes_its_output_and_hangs_is_ended_too(tmp_path):
    ended = run(tmp_path, "import os, time; os.close(1); os.close(2); time.sleep(60)", timeout_s=1.0)
    assert ended.kind == "timed_out"
    assert ended.seconds < 5.0


def test_a_flood_of_output_is_bounded_and_its_end_is_there(tmp_path):
    text = "import sys\nfor _ in range(400): sys.stdout.write('x' * 65536)\nprint('\\nthe end')"
    ended = run(tmp_path, text)
    assert ended.ok
    assert ended.last_line == "the end"
    kept = (tmp_path / "log").read_bytes()
    assert len(kept) < subprocesses.LOG_BYTES + 2 * subprocesses.TAIL_BYTES
    assert b"bytes left out]" in kept
    assert kept.rstrip().endswith(b"the end")
    assert len(ended.tail) <= subprocesses.TAIL_BYTES


@pytest.mark.slow
def test_an_endless_flood_is_ended_at_its_time(tmp_path):
    ended = run(tmp_path, "import sys\nwhile True: sys.stdout.write('y' * 65536)", timeout_s=1.0)
    assert ended.kind == "timed_out"
    assert (tmp_path / "log").stat().st_size < 2 * subprocesses.LOG_BYTES


def test_children_left_behind_are_gone_even_in_a_session_of_their_own(tmp_path):
    text = (
        "import subprocess, sys\n"
        "sleep = [sys.executable, '-c', 'import time; time.sleep(300)']\n"
        "one, other = subprocess.Popen(sleep), subprocess.Popen(sleep, start_new_session=True)\n"
        "print(one.pid, other.pid, flush=True)\n"
    )
    started = time.monotonic()
    ended = run(tmp_path, text)
    children = [int(word) for word in ended.tail.split()]
    assert ended.ok
    assert len(children) == 2
    assert all(gone(child) for child in children)
    assert time.monotonic() - started < 10, "the children hold the pipe open, which must not be waited for"


@pytest.mark.slow
def test_children_of_a_hang_are_gone_too(tmp_path):
    text = (
        "import subprocess, sys, time\n"
        "print(subprocess.Popen(['sleep', '300'], start_new_session=True).pid, flush=True)\ntime.sleep(300)\n"
    )
    ended = run(tmp_path, text, timeout_s=1.5)
    assert ended.kind == "timed_out"
    assert gone(int(ended.tail))


@pytest.mark.slow
def test_a_program_that_takes_too_much_memory_is_ended_and_says_so(tmp_path):
    text = "import time\nheld = []\nwhile True: held.append(bytearray(b'x') * (8 << 20)); time.sleep(0.01)"
    ended = run(tmp_path, text, memory_bytes=200_000_000)
    assert ended.kind == "out_of_memory"
    assert ended.description == "took more than 0.2 GB of memory"


@pytest.mark.slow
def test_memory_is_counted_over_all_its_processes(tmp_path):
    text = (
        "import os, time\n"
        "for _ in range(3):\n"
        "    if os.fork() == 0: break\n"
        "held = bytearray(b'x') * (80 << 20)\ntime.sleep(30)\n"
    )
    assert run(tmp_path, text, memory_bytes=200_000_000).kind == "out_of_memory"
    single = text.replace("range(3)", "range(0)").replace("sleep(30)", "sleep(0.5)")
    assert run(tmp_path, single, memory_bytes=200_000_000).ok


def test_reserved_address_space_is_no_memory(tmp_path):
    no_reserve = 0x4000  # Linux; Python's mmap does not name it
    text = f"import mmap; m = mmap.mmap(-1, 1 << 40, flags=mmap.MAP_PRIVATE | {no_reserve}); print('ok')"
    assert run(tmp_path, text, memory_bytes=200_000_000).last_line == "ok"


def test_a_program_that_is_not_there_is_an_ending_and_not_an_exception(tmp_path):
    ended = subprocesses.run([tmp_path / "nothing"], timeout_s=5, log=tmp_path / "log")
    assert (ended.kind, ended.code) == ("exited", 127)
    assert "cannot be started" in ended.description


def test_the_environment_is_added_to(tmp_path, monkeypatch):
    monkeypatch.setenv("FROM_OUTSIDE", "1")
    text = "import os; print(os.environ['FROM_OUTSIDE'], os.environ['ADDED'])"
    assert run(tmp_path, text, env={"ADDED": "2"}).tail.split() == ["1", "2"]


# ---------------------------------------------------------------- a caller that is ended

# A shell starts what it sends to the background with SIGINT ignored, and Python then keeps it so.
DEFAULT_SIGINT = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
SILENT = "import time; time.sleep(300)"  # who writes into a broken pipe dies of it
CALLER = f"""
import sys; from pathlib import Path; from profiler.collect import subprocesses
try:
    subprocesses.run([sys.executable, "-c", {SILENT!r}], timeout_s=300, log=Path(sys.argv[1]))
except KeyboardInterrupt:
    sys.exit(5)
"""


def start(*argv, **how):
    """Python in a session of its own: what it is sent meets nobody else."""
    environment = {**os.environ, **subprocesses.package_environment()}
    return subprocess.Popen([sys.executable, *argv], env=environment, start_new_session=True, **how)


def start_caller(log):
    """A caller of subprocesses.run, and the pid of the program that it runs."""
    caller = start("-c", DEFAULT_SIGINT + CALLER, str(log))
    until = time.monotonic() + 20
    while time.monotonic() < until:
        for pid in subprocesses._pids():
            if _mark(pid) == str(log):
                return caller, pid
        time.sleep(0.05)
    raise AssertionError("it was not started")


@pytest.mark.slow
def test_an_interrupt_of_the_caller_leaves_nothing_running(tmp_path):
    caller, program = start_caller(tmp_path / "log")
    time.sleep(0.3)  # until the caller waits for it
    os.killpg(caller.pid, signal.SIGINT)
    assert caller.wait(timeout=20) == 5
    assert gone(program)


@pytest.mark.slow
def test_what_a_killed_caller_left_running_is_found_by_its_folder(tmp_path):
    caller, program = start_caller(tmp_path / "run" / "cell" / "log")
    caller.kill()
    caller.wait()
    assert not gone(program, within_s=0.3), "kill -9 of the caller leaves its program: what this is for"
    assert subprocesses.kill_leftovers(tmp_path / "other") == 0
    assert subprocesses.kill_leftovers(tmp_path / "run", runner=os.getpid()) == 0, (
        "another's who goes on there"
    )
    assert subprocesses.kill_leftovers(tmp_path / "run", runner=caller.pid) == 1
    assert gone(program)


INTERRUPTED = """
import sys
from pathlib import Path
from profiler.collect import subprocesses
from tests.gpu.conftest import GpuBench

FOLDER = Path({folder!r})

def test_first():
    assert not "what came out before is told"

def test_second():
    def one(number):
        code = "import time; open({begun!r}, 'w').close(); time.sleep(300)"
        return subprocesses.run([sys.executable, "-c", code], timeout_s=300, log=FOLDER / str(number) / "log")
    GpuBench(FOLDER, {{}}, {{}}, {{}}, None).side_by_side(one, range(200))
"""


@pytest.mark.slow
def test_ctrl_c_ends_the_gpu_tests_at_once_with_their_summary(tmp_path):
    begun, file = tmp_path / "begun", tmp_path / "test_it.py"
    file.write_text(INTERRUPTED.format(folder=str(tmp_path / "work"), begun=str(begun)))
    options = ["-q", "-rf", "-p", "no:cacheprovider", "-o", "addopts=", str(file)]
    program = DEFAULT_SIGINT + f"import sys, pytest; sys.exit(pytest.main({options!r}))"
    process = start("-c", program, text=True, stdout=subprocess.PIPE, cwd=tmp_path)
    until = time.monotonic() + 60
    while not begun.exists() and time.monotonic() < until:
        time.sleep(0.05)
    for send in (os.kill, os.killpg):  # as `timeout` does: the program, then its group
        send(process.pid, signal.SIGINT)
        time.sleep(0.02)
    out, _ = process.communicate(timeout=60)
    assert "FAILED test_it.py::test_first" in out
    assert "KeyboardInterrupt" in out
    assert subprocesses.kill_leftovers(tmp_path / "work") == 0


def _mark(pid):
    try:
        marks = subprocesses._marks_of(pid)
    except OSError:
        return None
    return marks and marks[0]
