"""The rows of docs/commands.md that follow from declared answers; `python -m tests.docs_rows` writes them."""

from __future__ import annotations

import re
from pathlib import Path

from profiler.documents.declared import ANSWERS, declaration

COMMANDS = Path(__file__).resolve().parent.parent / "docs" / "commands.md"


def row(command: str) -> str:
    """The row of one answer: how it is called, what it says of itself, its options and other faces."""
    answer, declared = declaration(command), ANSWERS[command]
    call = " ".join([command, *(one.name.upper() for one in answer.parameters if one.required)])
    flags = [f"`--{one.name.replace('_', '-')}`" for one in answer.parameters if not one.required]
    flags += ["`--all`"] * bool(declared.all_shows)
    options = f" Options: {', '.join(flags)}." if flags else ""
    faces = [
        f"Python: `profiler.{declared.library}`",
        *([f"MCP tool `{declared.tool}`"] if declared.tool else []),
    ]
    return f"| `profiler {call}` | {answer.brief}{options} {'; '.join(faces)} |"


def written(text: str) -> str:
    """The document with the row of every declared answer; a new one comes after the last of these."""
    lines, last = text.splitlines(), 0
    for command in ANSWERS:
        known = [n for n, line in enumerate(lines) if re.match(rf"\| `profiler {command}\b(?! [a-z])", line)]
        if known:
            lines[known[0]] = row(command)
        else:
            lines.insert(last + 1, row(command))
        last = known[0] if known else last + 1
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    COMMANDS.write_text(written(COMMANDS.read_text("utf-8")), encoding="utf-8")
