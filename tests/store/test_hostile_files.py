"""Small files that would take much memory or time, and files that are none: refused in a line, at once."""

from __future__ import annotations

import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

import pytest

from profiler.bundles import run_json
from profiler.bundles.run import ReportFile
from profiler.store import find_files
from tests.bundles.test_bundle import made
from tests.reports.test_csv_export import LAUNCH, WIDE
from tests.reports.test_file_format import block, field, launch, report, sized

pytestmark = pytest.mark.slow  # a process of its own, of which the memory is measured

ZEROS = 60_000_000
# Imports each path of its arguments and prints what came of it, with the growth of memory and the CPU time.
SCRIPT = """
import json, os, sys
from pathlib import Path
from profiler.store.begin_import import import_paths

def resident(name):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(name)) // 1024

import_paths([])
for path in sys.argv[1:]:
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak begins anew
    before, start = resident("VmRSS"), sum(os.times()[:4])
    summary = import_paths([path])
    took = sum(os.times()[:4]) - start  # with the processes that have ended
    refused = [message for _, message in summary.refused]
    print(json.dumps([path, refused, len(summary.imported), resident("VmHWM") - before, took]), flush=True)
"""


class Outcome(NamedTuple):
    """What came of the import of one path."""

    refused: list[str]
    imported: int
    growth_mib: int
    cpu_s: float


def zero_entries(path: Path, declared: int) -> None:
    """A report whose only block holds entries of no bytes."""
    header = field(1, 0) + field(2, declared) + field(5, ZEROS)
    with path.open("wb") as file:
        file.write(report() + sized(header))
        file.truncate(file.tell() + ZEROS)


def zip_with_report(path: Path, source: Path) -> None:
    content = source.read_bytes()
    file = ReportFile("b", sha256(content).hexdigest(), len(content), "reports/b.ncu-rep")
    run_id = f"20250301T120000-f-v-{file.sha256[:8]}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("run.json", run_json.dump_run(made(run_id=run_id, reports=(file,))))
        archive.writestr("reports/b.ncu-rep", content)


def zip_of_many_entries(path: Path) -> None:
    """One empty file that the directory names a million times, 60 MB of it."""
    name = b"run.json"
    local = struct.pack("<4s5H3L2H", b"PK\3\4", 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0) + name
    entry = struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, 0, 0, 0, 33, 0, 0, 0, len(name), 0, 0, 0, 0, 0, 0)
    count = 1_000_000
    directory = (entry + name) * count
    end = struct.pack(
        "<4s4H2LH", b"PK\5\6", 0, 0, count & 0xFFFF, count & 0xFFFF, len(directory), len(local), 0
    )
    path.write_bytes(local + directory + end)


def zip_with_large_run_json(path: Path) -> None:
    """254 MB of empty lists in a zip of less than 4 MB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.writestr("noise", os.urandom(2_600_000))  # a smaller zip is refused for its ratio already
        with archive.open("run.json", "w") as file:
            for _ in range(254):
                file.write(b"[],[],[],[]," * 83_333)


def folder_with_large_run_json(path: Path) -> None:
    path.mkdir()
    with (path / "run.json").open("wb") as file:
        file.truncate(254 << 20)


def folder_with_dense_run_json(path: Path) -> None:
    """Within the size that is allowed, and 300 MB as Python's lists."""
    path.mkdir()
    (path / "run.json").write_bytes(b"[" + b"[]," * 5_000_000 + b"0]")


def folder_with_many_captures(path: Path) -> None:
    """The launches of a report 20,000 times; the report itself is not needed to refuse that."""
    run = made()
    path.mkdir()
    body = json.loads(run_json.dump_run(run))
    body["results"][0]["captures"] *= 20_000
    (path / "run.json").write_text(json.dumps(body))


def folder_with_repeated_keys(path: Path) -> None:
    path.mkdir()
    keys = ",".join(f'"{number}":1' for number in range(300_000))
    content = run_json.dump_run(made()).decode()
    content = content.replace('"provenance": {', f'"provenance": {{{keys},"299999":1,')
    (path / "run.json").write_text(content)


def large_header(path: Path) -> None:
    """A block's header of 60 MB."""
    header = field(3, bytes(ZEROS)) + field(2, 1)
    path.write_bytes(report() + sized(header))


def many_names(path: Path) -> None:
    """Launches with kernel names of a megabyte each."""
    path.write_bytes(report(block([launch(bytes([65 + i]) * 1_000_000, 1) for i in range(40)])))


def csv_of_one_line(path: Path) -> None:
    path.write_text(WIDE + LAUNCH + "," * ZEROS)


def csv_of_long_names(path: Path) -> None:
    """Names of 64,000 characters that two stars of a pattern could share in as many ways."""
    header = WIDE.replace("gpu__time_duration.sum", "a" + "_" * 64_000 + "!").replace("dram__", "d" * 64_000)
    path.write_text(header + LAUNCH + ",1,2\n")


def bundle_with(special: Callable[[Path], None]) -> Callable[[Path], None]:
    """A bundle of which the only report is something else."""

    def write(path: Path) -> None:
        (path / "reports").mkdir(parents=True)
        run = made()
        (path / "run.json").write_bytes(run_json.dump_run(run))
        special(path / run.reports[0].path)

    return write


def run_json_is_a_pipe(path: Path) -> None:
    path.mkdir()
    os.mkfifo(path / "run.json")


def run_json_is_elsewhere(path: Path) -> None:
    path.mkdir()
    (path / "run.json").symlink_to("/proc/self/environ")


@contextmanager
def short_working_folder(folder: Path) -> Iterator[None]:
    """A socket's path may have 107 bytes."""
    back = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(back)


def make_socket(path: Path) -> None:
    with short_working_folder(path.parent), socket.socket(socket.AF_UNIX) as unix:
        unix.bind(path.name)


def link_to(target: str) -> Callable[[Path], None]:
    return lambda path: path.symlink_to(target)


ATTACKS: dict[str, tuple[Callable[[Path], None], str]] = {
    "entries.ncu-rep": (lambda path: zero_entries(path, ZEROS // 4), "declares over 100,000 launches"),
    "few.ncu-rep": (lambda path: zero_entries(path, 1000), "launch 1 is there twice"),
    "line.csv": (csv_of_one_line, "line 3 has 4,194,304 characters or more"),
    "names.csv": (csv_of_long_names, "names no metric"),
    "header.ncu-rep": (large_header, "a header has 60,0"),
    "names.ncu-rep": (many_names, "names of its launches take over 16 MiB"),
    "directory.zip": (zip_of_many_entries, "its list of files has 54,000,000 bytes"),
    "run_json.zip": (zip_with_large_run_json, "its run.json has 253,9"),
    "large_run_json": (folder_with_large_run_json, "has 16,777,217 bytes or more"),
    "dense_run_json": (folder_with_dense_run_json, "MiB of memory"),
    "many_captures": (folder_with_many_captures, "names every launch of the report"),
    "repeated_keys": (folder_with_repeated_keys, "stands there twice"),
    "pipe_run_json": (run_json_is_a_pipe, "not a regular file"),
    "linked_run_json": (run_json_is_elsewhere, "a link that leads out of"),
    "pipe_report": (bundle_with(os.mkfifo), "not a regular file"),
    "socket_report": (bundle_with(make_socket), "such device|not a regular file"),
    "device_report": (bundle_with(link_to("/dev/zero")), "a link that leads out of"),
    "linked_report": (bundle_with(link_to("/etc/hostname")), "a link that leads out of"),
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """All attacks, one after the other, on one process."""
    folder = tmp_path_factory.mktemp("hostile")
    for name, (write, _) in ATTACKS.items():
        write(folder / name)
    zip_with_report(folder / "report.zip", folder / "entries.ncu-rep")
    assert (folder / "report.zip").stat().st_size < 70_000
    names = [*ATTACKS, "report.zip"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *(str(folder / name) for name in names)],
        env={**os.environ, "PROFILER_DATA": str(folder / "data")},
        stdout=subprocess.PIPE,
        text=True,
        timeout=300,
        check=True,
    )
    shutil.rmtree(folder)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {Path(path).name: Outcome(*rest) for path, *rest in rows}


@pytest.mark.parametrize("name", [*ATTACKS, "report.zip"])
def test_it_is_refused_in_a_line_at_once_and_with_little_memory(
    outcomes: dict[str, Outcome], name: str
) -> None:
    outcome = outcomes[name]
    said = ATTACKS.get(name, ATTACKS["entries.ncu-rep"])[1]
    assert len(outcome.refused) == 1
    assert any(part in outcome.refused[0] for part in said.split("|")), outcome.refused
    assert "\n" not in outcome.refused[0]
    assert outcome.imported == 0
    assert outcome.growth_mib < 100
    assert outcome.cpu_s < 5


def test_what_is_no_file_is_never_opened_when_a_folder_is_searched(tmp_path: Path) -> None:
    folder = tmp_path / "given"
    folder.mkdir()
    (tmp_path / "elsewhere.ncu-rep").write_bytes(report())
    (tmp_path / "notes.txt").write_text("x")
    (folder / "own.ncu-rep").write_bytes(report())
    (folder / "same.ncu-rep").symlink_to("own.ncu-rep")
    (folder / "out.ncu-rep").symlink_to(tmp_path / "elsewhere.ncu-rep")
    (folder / "out.txt").symlink_to(tmp_path / "notes.txt")
    (folder / "zero.zip").symlink_to("/dev/zero")
    os.mkfifo(folder / "pipe.zip")
    os.mkfifo(folder / "pipe")
    make_socket(folder / "socket")
    files = find_files.find_files([folder, folder / "pipe.zip", folder / "zero.zip"])
    assert [path.name for path in files.reports] == ["own.ncu-rep", "same.ncu-rep"]
    assert files.skipped == 1
    messages = {Path(path).name: message for path, message in files.refused}
    assert sorted(messages) == ["out.ncu-rep", "pipe", "pipe.zip", "socket", "zero.zip"]
    assert messages["pipe.zip"].endswith("a named pipe, not a file")
    assert messages["socket"].endswith("a socket, not a file")
    assert messages["zero.zip"].endswith("a device, not a file")
    assert "leads out of" in messages["out.ncu-rep"]


def test_a_bundle_without_its_run_json_is_refused_and_its_reports_can_be_named(tmp_path: Path) -> None:
    folder = tmp_path / "20250301T120000-f-v-00000000" / "reports"
    folder.mkdir(parents=True)
    report_file = folder / "v.ncu-rep"
    report_file.write_bytes(b"NVR\0")
    files = find_files.find_files([tmp_path])
    assert not files.reports
    ((path, message),) = files.refused
    assert path == str(folder.parent)
    assert "a bundle whose run.json is gone" in message
    assert find_files.find_files([folder]).reports == [report_file]


def test_a_link_that_the_user_names_is_followed(tmp_path: Path) -> None:
    (tmp_path / "own.ncu-rep").write_bytes(report())
    (tmp_path / "link.ncu-rep").symlink_to(tmp_path / "own.ncu-rep")
    assert find_files.find_files([tmp_path / "link.ncu-rep"]).reports == [tmp_path / "link.ncu-rep"]
