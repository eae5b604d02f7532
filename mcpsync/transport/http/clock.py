"""Deadlines of exchanges.

Calls have a watchdog that ends their exchanges. What else travels over HTTP (the messages that open a connection,
notifications, answers) is watched over here, by one thread that is started when it is needed and sleeps until the
earliest deadline.
"""

from __future__ import annotations

import threading
import time
from typing import Dict, Optional

from mcpsync.deadline import Deadline
from mcpsync.transport.http.exchange import TIMED_OUT, Exchange

__all__ = ["Clock"]

_NEVER = float("inf")
_LONGEST_SLEEP = 86_400.0  # what a lock may be waited for is bounded by the system


class Clock:
    """Ends exchanges that are not over at their deadlines.

    :param name: of the thread
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.RLock()  # guards all below
        self._watched: Dict[Exchange, float] = {}
        self._wake_at = _NEVER
        self._thread: Optional[threading.Thread] = None
        self._bell = threading.Event()
        self._stopped = False

    def watch(self, exchange: Exchange, deadline: Deadline) -> None:
        """End this exchange at this deadline, unless it is :meth:`forgotten <forget>` before."""
        with self._lock:
            self._watched[exchange] = deadline.at
            if deadline.at >= self._wake_at or self._stopped:
                return
            self._wake_at = deadline.at
            self._bell.set()
            if self._thread is None:
                thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                try:
                    thread.start()
                except RuntimeError:  # no thread is to be had: the next exchange asks for one again
                    self._wake_at = _NEVER
                else:
                    self._thread = thread

    def forget(self, exchange: Exchange) -> None:
        """The exchange is over. The thread sleeps on."""
        with self._lock:
            self._watched.pop(exchange, None)

    def stop(self, seconds: Optional[float]) -> None:
        """End the thread, and wait for it at most so long."""
        with self._lock:
            self._stopped = True
            thread = self._thread
            self._bell.set()
        if thread is not None and thread is not threading.current_thread():
            thread.join(seconds)

    def after_fork(self) -> None:
        """In a forked child: there is no thread."""
        self._reset()

    def _run(self) -> None:
        while True:
            with self._lock:
                now = time.monotonic()
                overdue = [exchange for exchange, at in self._watched.items() if at <= now]
                for exchange in overdue:
                    del self._watched[exchange]
                self._wake_at = min(self._watched.values(), default=_NEVER)
                if self._stopped or not self._watched:
                    self._wake_at = _NEVER
                    self._thread = None
                sleep = None if self._thread is None else self._wake_at - now
                self._bell.clear()
            for exchange in overdue:
                exchange.abort(TIMED_OUT)
            if sleep is None:
                return
            self._bell.wait(min(sleep, _LONGEST_SLEEP))
