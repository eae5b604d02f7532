"""Ending an HTTP exchange from another thread, in whatever phase it is.

An exchange is one request and its response, driven by one thread. Another may end it at any moment: a duplicate of
the connection's raw socket, owned by the exchange, is shut down, which wakes whatever the driving thread is blocked
in: upload, waiting for headers, TLS handshake, proxy negotiation, body. Looking up a name and connecting have no
socket that could be reached, so they run on a helper thread that the exchange can leave behind.

What the driving thread sees when it is woken says nothing: in some phases an ended exchange looks like a good
answer with a short body. The exchange's ``reason`` is the only truth, and is looked at before anything that was read
is believed. Nothing here uses private names of ``urllib3``, ``http.client`` or ``ssl``.
"""

from __future__ import annotations

import socket
import threading
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional, Type

__all__ = ["Aborted", "Exchange", "StaleConnection", "current", "make_abortable"]

_ABANDON_SECONDS = 0.05

_local = threading.local()


class Aborted(Exception):
    """The exchange was ended by another thread.

    No ``OSError`` and no error of ``urllib3``, so that neither wraps it nor tries again.
    """


class StaleConnection(Exception):
    """The pooled connection must not be used: the end of its last exchange shut it down, or it is too old.

    Nothing was sent, so the exchange can be tried again.
    """


class Exchange:
    """One request and its response.

    :param max_idle: seconds that a kept-alive connection may have been unused; a longer unused one is replaced, since
        the server may be closing it at this moment
    :ivar reason: why it was ended by another thread; None as long as it was not
    :ivar finished_at: when it was over, on the monotonic clock
    :ivar began: a request of it has begun to be written, so the server may act on it
    """

    __slots__ = ("_adopted", "_done", "_guard", "_lock", "_waker", "began", "finished_at", "max_idle", "reason")

    def __init__(self, max_idle: float = float("inf")) -> None:
        self.max_idle = max_idle
        self.finished_at = 0.0
        self.began = False
        self._lock = threading.Lock()  # guards all fields
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

    def pause(self, seconds: float) -> None:
        """Wait, unless the exchange is ended first.

        :raises Aborted: it was
        """
        self.wait_for(threading.Event(), seconds)

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

    def __enter__(self) -> Exchange:
        _local.exchange = self
        return self

    def __exit__(self, *error: Any) -> None:
        _local.exchange = None
        self.finish()

    # -- for the connection ------------------------------------------------------------------------------------

    def attach(self, guard: socket.socket) -> None:
        """From now on, ending the exchange shuts this socket down."""
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
            if self._guard is not guard:
                return True
            self._guard = None
            return self.reason is None

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


def current() -> Optional[Exchange]:
    """The exchange that this thread drives."""
    exchange: Optional[Exchange] = getattr(_local, "exchange", None)
    return exchange


def _shut_down(guard: socket.socket) -> None:
    with suppress(OSError):
        guard.shutdown(socket.SHUT_RDWR)


class _AbortableMixin:
    """In front of a connection class of ``urllib3``: an exchange that is being driven can be ended.

    Without a current exchange it behaves as the class behind it.
    """

    _exchange: Optional[Exchange] = None
    _guard: Optional[socket.socket] = None
    _socket: Any = None
    _abandoned = False

    @property
    def sock(self) -> Any:
        """The connection's socket. ``http.client`` and ``urllib3`` set it as soon as TCP is connected, and set it
        again when TLS is; the first is what can be shut down in every phase."""
        return self._socket

    @sock.setter
    def sock(self, value: Any) -> None:
        if value is not None and self._abandoned:
            value.close()
            raise Aborted("the exchange was ended while it connected")
        self._socket = value
        if value is not None and self._guard is None:
            self._make_guard()

    def _make_guard(self) -> None:
        # a duplicate by number: TLS sockets refuse dup()
        self._guard = socket.fromfd(self._socket.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        if self._exchange is not None:
            self._exchange.attach(self._guard)

    def connect(self) -> Any:
        exchange = current()
        if exchange is None:
            return super().connect()  # type: ignore[misc]
        self._exchange = exchange
        connected = threading.Event()
        failed: List[BaseException] = []
        connect = super().connect  # type: ignore[misc]

        def run() -> None:
            try:
                connect()
            except BaseException as error:
                failed.append(error)
            if self._abandoned:
                self.close()
            connected.set()

        exchange.check()
        helper = threading.Thread(target=run, name="mcpsync-connecting", daemon=True)
        try:
            helper.start()
            exchange.wait_for(connected)
        except BaseException:
            self._abandoned = True
            if self._guard is not None:
                helper.join(_ABANDON_SECONDS)  # its socket was shut down: let it unwind before this thread cleans up
            raise
        if failed:
            try:
                raise failed[0]
            finally:
                failed.clear()  # no cycle through the traceback
        return None

    def putrequest(self, *arguments: Any, **keywords: Any) -> Any:
        # the first thing that every exchange does with its connection
        exchange, previous = current(), self._exchange
        if previous is not exchange:
            if previous is not None and self._guard is not None:
                if not previous.release(self._guard):
                    raise StaleConnection
                if exchange is not None and time.monotonic() - previous.finished_at > exchange.max_idle:
                    raise StaleConnection
            self._exchange = exchange
            if exchange is not None and self._socket is not None:
                if self._guard is None:
                    self._make_guard()
                else:
                    exchange.attach(self._guard)
        if exchange is not None:
            exchange.began = True
        return super().putrequest(*arguments, **keywords)  # type: ignore[misc]

    def close(self) -> None:
        guard, self._guard = self._guard, None
        exchange, self._exchange = self._exchange, None
        try:
            super().close()  # type: ignore[misc]
        finally:
            self._socket = None
            # a guard left open would hold back the FIN
            if guard is not None and not (exchange is not None and exchange.adopt(guard)):
                guard.close()


_classes: Dict[Type[Any], Type[Any]] = {}


def make_abortable(pool: Any) -> None:
    """Have a connection pool of ``urllib3`` make connections whose exchanges can be ended. Idempotent."""
    plain = pool.ConnectionCls
    if issubclass(plain, _AbortableMixin):
        return
    made = _classes.get(plain)
    if made is None:
        made = _classes[plain] = type("Abortable" + plain.__name__, (_AbortableMixin, plain), {})
    pool.ConnectionCls = made
