"""What a command prints as JSON, to hold a document against."""

from __future__ import annotations

import json
from typing import Any

import pytest

from profiler.cli import main
from profiler.documents.document import Document


def assert_same_as_printed(
    document: Document, capsys: pytest.CaptureFixture[str], *command: str, code: int = 0
) -> dict[str, Any]:
    """The document is, byte for byte, what the command prints with --json, and its frame agrees."""
    capsys.readouterr()
    assert main([*command, "--json"]) == code
    printed = capsys.readouterr().out
    forms = [
        json.dumps(document.to_dict(), allow_nan=False, indent=1, ensure_ascii=ascii_only) + "\n"
        for ascii_only in (True, False)
    ]
    assert printed in forms, "the document is not what is printed"
    rows, frame = document.rows(), document.to_frame()
    assert tuple(frame.columns) == document.columns
    assert len(frame) == len(rows)
    answer: dict[str, Any] = json.loads(printed)
    return answer


def assert_html_escapes(document: Document, text: str, escaped: str) -> None:
    """A text that the answer holds stands in a notebook's HTML with its tags written out."""
    html = document._repr_html_()
    assert text not in html
    assert escaped in html
