"""Calls of a server that takes one at a time wait here for their turn, first come first served."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from typing import Any, Deque, Iterator, Optional

from mcpsync.deadline import Timeouts
from mcpsync.errors import RequestTimeout

__all__ = ["Turnstile"]


class Turnstile:
    """Lets one through at a time.

    A call that the same thread makes while it has the turn (from a handler of a question of its own call) goes through:
    it would wait for itself.

    :param server: its name, for errors
    """

    def __init__(self, server: str) -> None:
        self._server = server
        self._lock = threading.RLock()  # guards the fields below
        self._owner: Optional[int] = None
        self._waiting: Deque[Any] = deque()

    @contextmanager
    def turn(self, timeouts: Timeouts, tool: str) -> Iterator[None]:
        """Hold the turn.

        :param timeouts: those of the call: waiting is over after ``call`` seconds, or ``idle``, or ``total``
        :raises RequestTimeout: the turn did not come
        """
        if not self._enter(_patience(timeouts), tool):
            yield
            return
        try:
            yield
        finally:
            self._leave()

    def _enter(self, seconds: Optional[float], tool: str) -> bool:
        me = threading.get_ident()
        with self._lock:
            if self._owner is None:
                self._owner = me
                return True
            if self._owner == me:
                return False
            ticket = threading.Lock()
            ticket.acquire()
            self._waiting.append(ticket)
        try:
            if ticket.acquire(timeout=-1 if seconds is None else seconds):
                self._owner = me
                return True
        except BaseException:  # Ctrl-C while it waits: the turn must not be given to one who has gone
            self._give_up(ticket)
            raise
        self._give_up(ticket)
        raise RequestTimeout(
            "no turn within %g s: the server takes one call at a time (supports_parallel is false)" % (seconds or 0),
            after=seconds,
            server=self._server,
            method="tools/call",
        )

    def _give_up(self, ticket: Any) -> None:
        with self._lock:
            if ticket in self._waiting:
                self._waiting.remove(ticket)
                return
        self._leave()  # the turn came at the last moment

    def _leave(self) -> None:
        with self._lock:
            if self._waiting:
                self._owner = 0  # of nobody until the next one has woken; no thread has this ident
                self._waiting.popleft().release()
            else:
                self._owner = None


def _patience(timeouts: Timeouts) -> Optional[float]:
    known = [seconds for seconds in (timeouts.idle or timeouts.call, timeouts.total) if seconds is not None]
    return min(known) if known else None
