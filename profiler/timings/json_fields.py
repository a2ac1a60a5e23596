"""Fields of JSON that other programs wrote: what is missing is None, what has another type is refused."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from profiler.timings.timing import NotTimes, brief


class Fields:
    """An object of JSON."""

    def __init__(self, mapping: Mapping[str, Any], where: str = "the file") -> None:
        self._mapping = mapping
        self._where = where

    def value(self, name: str) -> Any:
        """What stands there; None where nothing does."""
        return self._mapping.get(name)

    def text(self, name: str) -> str | None:
        """A text, or a number as a text; None where nothing stands there."""
        value = self._mapping.get(name)
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool):
            return str(value)
        raise NotTimes(f"{brief(name)} in {self._where} is {brief(value)}, which is no text")

    def mapping(self, name: str) -> Fields:
        """An object; an empty one where nothing stands there."""
        return self._fields(self._mapping.get(name), name)

    def list(self, name: str) -> Iterator[Fields]:
        """The objects of a list; nothing where nothing stands there."""
        value = self._mapping.get(name)
        if value is None:
            return
        if not isinstance(value, list):
            raise NotTimes(f"{brief(name)} in {self._where} is {brief(value)}, which is no list")
        for item in value:
            yield self._fields(item, name)

    def items(self) -> Iterator[tuple[str, Any]]:
        """Its names with what stands there."""
        yield from self._mapping.items()

    def _fields(self, value: Any, name: str) -> Fields:
        if value is None:
            return Fields({}, name)
        if not isinstance(value, dict):
            raise NotTimes(f"{brief(name)} in {self._where} is {brief(value)}, which is no object")
        return Fields(value, name)


def moment(text: str | None, form: str = "") -> datetime | None:
    """A time of the file as UTC, also where it names no zone; None for one that cannot be read.

    form: as strptime takes it; without it the form is that of ISO 8601.
    """
    if not text:
        return None
    try:
        when = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
        return when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
