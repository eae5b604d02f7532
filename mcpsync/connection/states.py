"""Telling of the states of a connection in the order in which they came to be, whatever threads notice them."""

from __future__ import annotations

from collections import deque
from threading import Lock
from typing import Callable, Deque

__all__ = ["States"]


class States:
    """States that wait to be told.

    :param tell: told of one after the other; no lock is held
    """

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._waiting: Deque[str] = deque()
        self._telling = Lock()  # held by who tells; nobody waits for it

    def put(self, state: str) -> None:
        """This comes next. Called under the lock that guards the state, so that the order is right."""
        self._waiting.append(state)

    def tell_all(self) -> None:
        """Tell of all that wait; not under that lock. If another thread is at it, it goes on with these."""
        while self._waiting and self._telling.acquire(blocking=False):
            try:
                while self._waiting:
                    self._tell(self._waiting.popleft())
            finally:
                self._telling.release()
