"""The order of records that several writers make: a hybrid logical clock, and how it stands in file names.

Which record is later is not what the clocks say: one may go back, and those of machines that share a folder
differ. A record's order is its writer's time, but always after every record that the writer can see.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_STAMP = "%Y%m%dT%H%M%S%f"
# How far a record may be ahead of this machine's clock: a wrong time zone is hours, a wrong day is days.
MAX_AHEAD = timedelta(days=7)
LAST_YEAR = 8999  # of an order: after the last time that Python knows nothing could be written
END = (datetime(LAST_YEAR + 1, 1, 1, tzinfo=UTC) - _EPOCH) // timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    """A moment as microseconds since 1970."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def next_order(created: datetime, last: int) -> int:
    """The order of a record that is written now, after the one of order `last`; -1 where it is the first."""
    return max(microseconds(created), last + 1)


def is_ahead(order: int, now: datetime) -> bool:
    """Whether an order is farther ahead of a clock than clocks are apart."""
    return order - microseconds(now) > MAX_AHEAD // timedelta(microseconds=1)


def stamp(order: int) -> str:
    """The order as a time, which the names of records begin with: they list in order."""
    return (_EPOCH + timedelta(microseconds=order)).strftime(_STAMP)


def order_of(name: str) -> int | None:
    """The order that a file's name begins with; None where it begins with none, or with one out of range."""
    try:
        moment = datetime.strptime(name.partition("-")[0], _STAMP).replace(tzinfo=UTC)
    except ValueError:
        return None
    return microseconds(moment) if moment.year <= LAST_YEAR else None
