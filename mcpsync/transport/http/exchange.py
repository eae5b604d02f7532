"""Ending an HTTP exchange from another thread, in whatever phase it is.

An exchange is one request and its response, driven by one thread. Another may end it at any moment: a duplicate of
the connection's raw socket, owned by the exchange, is shut down, which wakes whatever the driving thread is blocked
in: upload, waiting for headers, TLS handshake, proxy negotiation, body. Looking up a name and connecting have no
socket that could be reached, so they run on a helper thread that the exchange can leave behind (see ``abortable``).

What the driving thread sees when it is woken says nothing: in some phases an ended exchange looks like a good
answer with a short body. The exchange's ``reason`` is the only truth, and is looked at before anything that was read
is believed.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import contextmanager, suppress
from typing import Any, Iterator, Optional

from mcpsync.deadline import FOREVER, Deadline

__all__ = ["TIMED_OUT", "Aborted", "Connected", "Exchange", "StaleConnection", "current"]

TIMED_OUT = "timed out"
"""Why an exchange was ended that was not over at its deadline."""

_local = threading.local()


class Aborted(Exception):
    """The exchange was ended by another thread.

    No ``OSError`` and no error of ``urllib3``, so that neither wraps it nor tries again.
    """


class StaleConnection(Exception):
    """The pooled connection must not be used: its last exchange spoiled it, or it is too old.

    Nothing was sent, so the exchange can be tried again.
    """


class Connected(Exception):
    """A pool was asked for a connection alone, and has made one; nothing was sent on it."""


class Exchange:
    """One request and its response.

    :param max_idle: seconds that a kept-alive connection may have been unused; a longer unused one is replaced, since
        the server may be closing it at this moment
    :param deadline: bounds how long an attempt to connect that was left behind may go on; nothing else here
    :ivar reason: why it was ended by another thread; None as long as it was not
    :ivar finished_at: when it was over, on the monotonic clock
    :ivar began: a request of it has begun to be written, so the server may act on it
    :ivar connects: it goes through a pool only to have a connection made, which is found in ``made`` then
    """

    __slots__ = (
        "_adopted",
        "_done",
        "_guard",
        "_lock",
        "_outer",
        "_waker",
        "began",
        "connects",
        "deadline",
        "finished_at",
        "made",
        "max_idle",
        "reason",
    )

    def __init__(self, max_idle: float = float("inf"), deadline: Deadline = FOREVER) -> None:
        self.max_idle = max_idle
        self.deadline = deadline
        self.finished_at = 0.0
        self.began = False
        self.connects = False
        self.made: Any = None
        # what its thread drove before, and does again afterwards: a signal handler or a __del__ may make a call amidst
        self._outer: Optional[Exchange] = None
        self._lock = threading.RLock()  # guards the fields below
        self.reason: Optional[str] = None
        self._done = False
        self._guard: Optional[socket.socket] = None
        self._adopted: Optional[socket.socket] = None
        self._waker: Optional[threading.Event] = None

    def abort(self, reason: str) -> bool:
        """End the exchange. Any thread; never blocks. False: it is over, or was ended before."""
        with self._lock:
            if self._done or self.reason is not None:
                return False
            self.reason = reason
            if self._guard is not None:
                _shut_down(self._guard)
            if self._waker is not None:
                self._waker.set()
            return True

    def check(self) -> None:
        """
        :raises Aborted: the exchange was ended
        """
        if self.reason is not None:
            raise Aborted(self.reason)

    def pause(self, seconds: Optional[float]) -> None:
        """Wait, unless the exchange is ended first.

        :raises Aborted: it was
        """
        self.wait_for(threading.Event(), seconds)

    def wait_for(self, event: threading.Event, seconds: Optional[float] = None) -> None:
        """Wait for an event, as that a helper has connected, unless the exchange is ended first.

        :raises Aborted: it was
        """
        with self._lock:
            if self.reason is not None:
                raise Aborted(self.reason)
            self._waker = event
        try:
            event.wait(seconds)
        finally:
            self._waker = None
        self.check()

    def finish(self) -> Optional[str]:
        """The driving thread is done; from here on :meth:`abort` says False. Gives the reason, if it was ended."""
        with self._lock:
            if not self._done:
                self.finished_at = time.monotonic()
            self._done = True
            self._guard = None
            adopted, self._adopted = self._adopted, None
        if adopted is not None:
            adopted.close()
        return self.reason

    @contextmanager
    def driven(self) -> Iterator[None]:
        """This thread drives the exchange, and is not the last one to do so."""
        outer = current()
        _local.exchange = self
        try:
            yield
        finally:
            _local.exchange = outer

    def __enter__(self) -> Exchange:
        self._outer = current()
        _local.exchange = self
        return self

    def __exit__(self, *error: Any) -> None:
        _local.exchange, self._outer = self._outer, None
        self.finish()

    # -- for the connection ------------------------------------------------------------------------------------

    def attach(self, guard: socket.socket) -> None:
        """From now on, ending the exchange shuts this socket down.

        :raises Aborted: it was ended before
        """
        with self._lock:
            self._guard = guard
            if self.reason is not None:
                _shut_down(guard)
                raise Aborted(self.reason)

    def adopt(self, guard: socket.socket) -> bool:
        """The connection closes while its response is still read, as for a body that ends with it: keep the guard."""
        with self._lock:
            if self._done or self._guard is not guard:
                return False
            previous, self._adopted = self._adopted, guard
        if previous is not None:
            previous.close()
        return True

    def release(self, guard: socket.socket) -> bool:
        """Another exchange takes the connection. False: this one has shut the socket down."""
        with self._lock:
            if self._guard is guard:
                self._guard = None
            elif not self._done:
                return True
            return self.reason is None


def current() -> Optional[Exchange]:
    """The exchange that this thread drives."""
    exchange: Optional[Exchange] = getattr(_local, "exchange", None)
    return exchange


def _shut_down(guard: socket.socket) -> None:
    with suppress(OSError):
        guard.shutdown(socket.SHUT_RDWR)
