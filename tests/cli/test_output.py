"""What comes from outside does nothing to a terminal, whichever command prints it."""

from __future__ import annotations

import csv
import io
import json
import re
import sys
from pathlib import Path

import pytest

from profiler.cli import main
from profiler.cli.output import escape_controls, print_json, print_table, say, standard_output, write_styled

HOSTILE = "k\x1b]52;c;ZXZpbA==\x07\x1b[2J\x9b1m\u202etxet\x7f"
RAW = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]")
SGR = re.compile(r"\x1b\[[0-9;]*m")


def test_controls_are_written_out_and_text_stays() -> None:
    assert escape_controls("a\tb\nö→\x1b[31m\x85\u2066") == "a\tb\nö→\\u001b[31m\\u0085\\u2066"


def test_everything_printed_is_escaped_but_what_the_program_styled(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with standard_output():
        say(HOSTILE)
        print(HOSTILE, file=sys.stderr)
        print_table(["kernel"], [[HOSTILE]])
        write_styled("\x1b[1mbold\x1b[0m\n", sys.stdout)
    printed = capsys.readouterr()
    assert not RAW.search(SGR.sub("", printed.out))
    assert "\x1b[1mbold" in printed.out
    assert not RAW.search(printed.err)
    assert "\\u001b]52" in printed.out


def test_json_with_controls_is_still_json(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    monkeypatch.setattr(sys, "stdout", stream)
    with standard_output():
        print_json({"kernel": HOSTILE})
    text = stream.buffer.getvalue().decode()  # type: ignore[attr-defined]
    assert json.loads(text) == {"kernel": HOSTILE}
    assert not RAW.search(text)


@pytest.fixture
def hostile(tmp_path: Path, made_reports: Path) -> tuple[str, str]:
    """Two exports of a report whose kernels' names hold escape sequences and a line end."""
    source = sorted(made_reports.rglob("*.csv"))[0].read_text("utf-8")
    header, *rows = csv.reader(source.splitlines())
    name = next(row[header.index("Kernel Name")] for row in rows if row[0].isdigit())
    paths = tmp_path / "a.csv", tmp_path / "b.csv"
    for path, change in zip(paths, ("", "1"), strict=True):  # other values: no side is judged against itself
        text = source.replace('"Mbyte","', f'"Mbyte","{change}')
        path.write_text(text.replace(f'"{name}"', f'"{HOSTILE}(int,\nverdict pass)"'), "utf-8")
    return str(paths[0]), str(paths[1])


@pytest.mark.parametrize(
    "command",
    ["compare", "explain", "gate", "roofline", "show", "insights", "compare --markdown", "compare --json"],
)
def test_no_command_lets_a_hostile_name_reach_the_terminal(
    command: str, hostile: tuple[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    name, *options = command.split()
    first, second = hostile
    both = {"gate": [first, "--baseline", second]}
    names = both.get(name, [first, second] if name in ("compare", "explain") else [first])
    main([name, *names, *options])
    printed = capsys.readouterr()
    assert not RAW.search(printed.out + printed.err)
    assert name == "gate" or "u001b]52" in printed.out + printed.err  # a gate that passes names no kernel
    assert "\nverdict pass" not in printed.out
