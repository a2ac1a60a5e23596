"""A file that a user names is read, or refused at once where it is none: no command waits for a pipe."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path

import pytest

from profiler.catalog import catalog, sources
from profiler.cli import main
from profiler.cli.output import write_bytes
from profiler.documents.code_files import examine_files
from profiler.errors import BadCatalog, ProfilerError
from profiler.evidence.plain_file import read_plain, special_kind

CATALOG = """
family = "mine"
problem = "mine.py:PROBLEM"
[[version]]
id = "one"
technique = "t"
file = "one.cu"
[[version]]
id = "two"
technique = "t"
state = "baseline"
callable = "two.py:f"
"""


@pytest.fixture
def specials(tmp_path: Path) -> dict[str, Path]:
    """A path by what it leads to; names are short, since a socket's address has 108 bytes."""
    pipe, place = tmp_path / "p", Path(os.path.relpath(tmp_path / "s"))
    os.mkfifo(pipe)
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(place))
    return {"a named pipe": pipe, "a socket": place, "a device": Path("/dev/zero")}


def test_what_is_no_file_is_never_opened(specials: dict[str, Path], tmp_path: Path) -> None:
    for kind, path in specials.items():
        assert special_kind(path) == kind
        with pytest.raises(OSError, match=f"{kind}, not a file"):
            read_plain(path, 10)
    (tmp_path / "f").write_bytes(b"0123456789abc")
    assert special_kind(tmp_path / "f") is None
    assert read_plain(tmp_path / "f", 10) == b"0123456789a"
    assert special_kind(tmp_path / "absent") is None


@pytest.mark.parametrize("command", [["list", "metrics", "--check"], ["static", "--catalog"], ["static"]])
def test_a_command_that_is_given_one_says_so_in_one_line(
    command: list[str], specials: dict[str, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    for kind, path in specials.items():
        assert main([*command, f"{path.parent}/./{path.name}"]) == 2
        printed = capsys.readouterr()
        assert f"{kind}, not a file" in f"{printed.out}{printed.err}"


def test_a_catalogues_own_files_are_files(tmp_path: Path) -> None:
    (tmp_path / "catalog.toml").write_text(CATALOG)
    os.mkfifo(tmp_path / "one.cu")
    with pytest.raises(BadCatalog, match=r"one\.cu is a named pipe, not a file"):
        catalog.load_catalog(tmp_path)
    (tmp_path / "one.cu").unlink()
    (tmp_path / "one.cu").write_text("// nothing\n")
    for name in ("mine.py", "two.py", "beside.cuh", "beside.toml"):
        os.mkfifo(tmp_path / name)
    mine = catalog.load_catalog(tmp_path)
    with pytest.raises(BadCatalog, match=r"mine\.py is a named pipe, not a file"):
        sources.load_object(mine, mine.problem)
    with pytest.raises(BadCatalog, match=r"two\.py is a named pipe, not a file"):
        sources.source_sha256(mine, mine.by_id["two"])
    assert sources.inconsistencies(mine) == []


def test_code_in_a_folder_is_of_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "k.cubin")
    assert examine_files([tmp_path]).errors == {"k.cubin": "a named pipe, not a file"}


def test_an_answer_is_written_to_a_pipe_that_somebody_reads_and_to_no_other(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    with pytest.raises(ProfilerError, match=r"--out .*pipe\.csv: a named pipe without a reader, not a file"):
        write_bytes(b"x", pipe)
    content = bytes(1 << 18)  # more than a pipe holds
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    writing = threading.Thread(target=write_bytes, args=(content, pipe))
    writing.start()
    with open(reader, "rb") as file:
        while not (start := file.read(1 << 17)):  # the end, as long as nobody has begun to write
            pass
        assert start + file.read() == content
    writing.join()
