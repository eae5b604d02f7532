"""A limit on how many calls are on their way to a server at a time; the rest wait for their turn, in order."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import Deque, Iterator, Optional

from mcpsync.transport.http.exchange import Exchange

__all__ = ["Gate"]

_FREE = frozenset(("initialize", "ping", "server/discover", "subscriptions/listen"))
"""What never waits: it keeps the connection, or lasts as long as it."""


class Gate:
    """Lets so many exchanges through at a time.

    What a call needs to go on (answers to questions, notifications, the end of a session) does not pass here.

    :param limit: how many
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._lock = threading.RLock()  # guards the two below
        self._inside = 0
        self._waiting: Deque[threading.Event] = deque()

    @contextmanager
    def passed(self, exchange: Exchange, method: Optional[str]) -> Iterator[None]:
        """Wait for a turn, and give it back at the end.

        :raises Aborted: the exchange was ended meanwhile
        """
        if method in _FREE:
            yield
            return
        self._enter(exchange)
        try:
            yield
        finally:
            self._leave()

    def _enter(self, exchange: Exchange) -> None:
        turn = threading.Event()
        with self._lock:
            if self._inside < self._limit:
                self._inside += 1
                return
            self._waiting.append(turn)
        try:
            exchange.wait_for(turn)
        except BaseException:
            with self._lock:
                waits = turn in self._waiting
                if waits:
                    self._waiting.remove(turn)
            if not waits:  # the turn came as well
                self._leave()
            raise

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            else:
                self._inside -= 1
