"""The glossary's words are the code's: each public class of a room stands in it with its docstring."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

from tests.test_faces import FACES

GLOSSARY = Path(__file__).resolve().parent.parent / "docs" / "glossary.md"
_HEAD = ["| room | class | is |", "|---|---|---|"]


def class_rows() -> list[str]:
    """A row for every class that a room's face exports, by room and name."""
    rows = []
    for room in FACES:
        face = importlib.import_module(f"profiler.{room}")
        for name in sorted(face.__all__):
            value = getattr(face, name)
            if inspect.isclass(value) and value.__module__.startswith("profiler."):
                meaning = " ".join((value.__doc__ or "").split("\n\n")[0].split()).replace("|", "\\|")
                rows.append(f"| {room} | `{name}` | {meaning.removesuffix('.')} |")
    return rows


def table_rows(text: str) -> list[str]:
    """The rows of the glossary's last table."""
    return [line for line in text.partition("## Classes")[2].splitlines() if line.startswith("| ")][1:]


def test_every_public_class_of_a_room_stands_in_the_glossary() -> None:
    assert table_rows(GLOSSARY.read_text("utf-8")) == class_rows(), (
        "docs/glossary.md says otherwise than the docstrings: python -m tests.test_glossary"
    )


def test_the_words_come_in_order_and_once() -> None:
    words = GLOSSARY.read_text("utf-8").partition("## Words")[2].partition("## Classes")[0]
    names = [line.split("|")[1].strip() for line in words.splitlines() if line.startswith("| ")][1:]
    assert names == sorted(set(names), key=str.lower)


if __name__ == "__main__":
    head, mark, last = GLOSSARY.read_text("utf-8").partition("## Classes")
    introduction = last.strip().partition("\n| ")[0].strip()
    table = "\n".join([*_HEAD, *class_rows()])
    GLOSSARY.write_text(f"{head}{mark}\n\n{introduction}\n\n{table}\n", "utf-8")
