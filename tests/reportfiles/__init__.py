"""Report files that the tests make for themselves."""

from pathlib import Path

MADE_BY = "Made by tests/reportfiles.\n"


def is_made(reports: Path) -> bool:
    """Whether a folder of reports is one of ours, where a test expects another number than of public ones."""
    return (reports / "README.md").read_text(encoding="utf-8") == MADE_BY
