"""Names with the types of their parameters, by whatever demangler there is."""

from __future__ import annotations

from pathlib import Path

import pytest

from profiler.build.signatures import signatures

_ROWS, _GAPS = "_Z4rowsILi64EEvPfi", "_ZN5other4gapsILi8EEEvPfPKi"


def _install(folder: Path, name: str, script: str) -> None:
    program = folder / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)


def test_all_names_are_asked_for_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    log = tmp_path / "calls"
    _install(tmp_path, "cu++filt", f"echo call >> {log}; sed -e 's/^{_ROWS}$/void rows<64>(float*, int)/'")
    found = signatures([_ROWS, "plain", _GAPS, _ROWS])
    assert found == {_ROWS: "void rows<64>(float*, int)"}, "_GAPS comes back as it is: not known"
    assert log.read_text("utf-8") == "call\n"


@pytest.mark.parametrize("script", [None, "exit 1", "echo one; echo two; echo three", "cat; exit 3"])
def test_without_a_demangler_that_works_there_is_no_signature(
    script: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script:
        _install(tmp_path, "c++filt", script)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert signatures([_ROWS, _GAPS]) == {}
