"""An iterator whose items are fetched ahead by a thread, while the caller works on earlier ones."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Any, TypeVar

_ITEMS_AHEAD = 4

T = TypeVar("T")


class Prefetch(Iterator[T]):
    """The items of a slow iterator, at most four ahead of the caller.

    An exception of the iterator is raised to the caller when it reaches that place.
    """

    def __init__(self, items: Iterator[T]) -> None:
        # Entries are (True, item); the last one is (False, exception).
        self._queue: queue.Queue[tuple[bool, Any]] = queue.Queue(_ITEMS_AHEAD)
        self._closed = False
        self._thread = threading.Thread(target=self._run, args=(items,), daemon=True)
        self._thread.start()

    @property
    def has_next(self) -> bool:
        """Whether the next item is there already."""
        return not self._queue.empty()

    def close(self) -> None:
        """Fetch no more items, and wait until the thread has ended."""
        self._closed = True
        while self._thread.is_alive():
            # The thread may be waiting for room in the queue, which taking an item makes.
            with contextlib.suppress(queue.Empty):
                self._queue.get(timeout=0.05)

    def __next__(self) -> T:
        is_item, content = self._queue.get()
        if is_item:
            return content  # type: ignore[no-any-return]
        raise content

    def _run(self, items: Iterator[T]) -> None:
        """The thread's work: its last entry in the queue is always an exception, if only StopIteration."""
        try:
            for item in items:
                self._queue.put((True, item))
                if self._closed:
                    break
            self._queue.put((False, StopIteration()))
        except BaseException as error:
            self._queue.put((False, error))
