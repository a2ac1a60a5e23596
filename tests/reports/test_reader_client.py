"""The worker that waits for the next report: when it is used again, and when a new one is started."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from profiler.errors import UnreadableReport
from profiler.reports import read, reader_client
from profiler.reports.reader_client import borrow_csv_worker, borrow_worker


@pytest.fixture
def small(made_reports: Path) -> Path:
    """The report that is read fastest."""
    return made_reports / "esmm" / "profile@5c6231e5.ncu-rep"


@pytest.fixture
def small_csv(tmp_path: Path) -> Path:
    """A CSV with one launch."""
    path = tmp_path / "report.csv"
    path.write_text(
        '"ID","Kernel Name","Block Size","Grid Size","gpu__time_duration.sum"\n'
        '"","","","","nsecond"\n"0","kernel","(32, 1, 1)","(1, 1, 1)","1,000"\n'
    )
    return path


@pytest.fixture(autouse=True)
def no_spare() -> Iterator[None]:
    """No worker waits before a test or after it."""
    reader_client._spare.close()
    reader_client._csv_spare.close()
    yield
    reader_client._spare.close()
    reader_client._csv_spare.close()


def spare_pid(memory_bytes: int = read.MEMORY_BYTES) -> int:
    """The process that the next report would be read in."""
    with borrow_worker(memory_bytes) as worker:
        return worker.start().pid


@pytest.mark.slow
def test_the_next_report_is_read_by_the_same_process(small: Path) -> None:
    first = read.read_report(small)
    pid = spare_pid()
    assert read.read_report(small).launches[0].values == first.launches[0].values
    read.launch_detail(small, 0)
    assert spare_pid() == pid


def test_the_next_csv_is_read_by_the_same_process(small_csv: Path) -> None:
    def csv_pid() -> int:
        with borrow_csv_worker(read.MEMORY_BYTES) as worker:
            return worker.start().pid

    first = read.read_report(small_csv)
    pid = csv_pid()
    assert read.read_report(small_csv) == first
    assert csv_pid() == pid
    bad = small_csv.with_name("bad.csv")
    bad.write_text('"ID","Kernel Name","Metric Name"\n')
    with pytest.raises(UnreadableReport):
        read.read_report(bad)
    assert csv_pid() != pid


@pytest.mark.slow
def test_a_worker_that_met_a_damaged_report_reads_no_other(small: Path, made_reports: Path) -> None:
    damaged = made_reports / "bad" / "flip1_exception.ncu-rep"  # its framing is whole
    read.read_report(small)
    pid = spare_pid()
    results = list(read.read_reports([small, damaged]))
    assert isinstance(results[1], UnreadableReport)
    assert spare_pid() != pid


@pytest.mark.slow
def test_a_worker_that_was_killed_costs_no_report(small: Path) -> None:
    read.read_report(small)
    pid = spare_pid()
    os.kill(pid, 9)
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    assert read.read_report(small).launches
    assert spare_pid() != pid


@pytest.mark.slow
def test_another_limit_of_memory_takes_another_process(small: Path) -> None:
    read.read_report(small)
    assert spare_pid() == spare_pid()
    assert spare_pid() != spare_pid(read.MEMORY_BYTES // 2)


@pytest.mark.slow
def test_an_exception_of_the_caller_ends_the_worker(small: Path) -> None:
    read.read_report(small)
    pid = spare_pid()

    def read_and_stop() -> None:
        with borrow_worker(read.MEMORY_BYTES) as worker:
            worker.ask(small, 10)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        read_and_stop()
    assert spare_pid() != pid


def test_a_worker_with_unread_answers_is_not_kept(small: Path) -> None:
    with borrow_worker(read.MEMORY_BYTES) as worker:
        worker.ask(small, 10)
        pid = worker.start().pid
    assert spare_pid() != pid


@pytest.mark.slow
def test_it_ends_by_itself(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_client, "SPARE_S", 1)
    read.read_report(small)
    with borrow_worker(read.MEMORY_BYTES) as worker:
        process = worker.start()
    assert process.wait(60) == -14  # SIGALRM
    assert read.read_report(small).launches


@pytest.mark.slow
def test_it_is_not_used_where_it_may_be_about_to_end(small: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read.read_report(small)
    pid = spare_pid()
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + reader_client.SPARE_S * 0.6)
    assert spare_pid() != pid


def test_a_forked_child_has_its_own(small: Path) -> None:
    read.read_report(small)
    pid = spare_pid()
    child = os.fork()
    if child == 0:
        os._exit(0 if reader_client._spare._worker is None else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert spare_pid() == pid


@pytest.mark.slow
def test_threads_do_not_share_a_worker(small: Path) -> None:
    results: list[object] = []

    def read_some() -> None:
        results.extend(read.read_report(small).launches[0].function for _ in range(5))

    threads = [threading.Thread(target=read_some) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 15
    assert len(set(results)) == 1


@pytest.mark.slow
def test_a_dismissed_worker_ends_without_being_waited_for(small: Path) -> None:
    read.read_report(small)
    pid = spare_pid()
    reader_client.dismiss_reader()
    assert os.path.exists(f"/proc/{pid}"), "it is a child of this process until somebody waits for it"
    assert spare_pid() != pid
    reader_client._spare.close()
    assert not os.path.exists(f"/proc/{pid}")


def test_a_started_worker_has_loaded_the_library_before_it_is_asked(small: Path) -> None:
    reader_client.start_reader()
    pid = spare_pid()
    until = time.monotonic() + 30
    while "ncu_report" not in Path(f"/proc/{pid}/maps").read_text() and time.monotonic() < until:
        time.sleep(0.01)
    assert "ncu_report" in Path(f"/proc/{pid}/maps").read_text()
    assert read.read_report(small).launches
    assert spare_pid() == pid
