"""The life of a transport over HTTP: opened once, exchanges under way, closed once."""

from __future__ import annotations

import logging
import os
import threading
from typing import Callable, Dict, Hashable, NamedTuple, Optional, Tuple, Type

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, ConnectTimeout, McpError, RequestTimeout
from mcpsync.passing_threads import forks_wait_for_this_thread
from mcpsync.transport.base import Request, Sink, StreamId
from mcpsync.transport.http.abortable import let_go_after_fork
from mcpsync.transport.http.clock import Clock
from mcpsync.transport.http.exchange import Aborted, Exchange
from mcpsync.transport.http.failures import NETWORK_ERRORS

__all__ = ["Life", "Open"]

logger = logging.getLogger("mcpsync")

_MAX_IDLE = 4.0  # many servers close what was idle for five seconds
_GOODBYE_SECONDS = 1.5
_LINGER_SECONDS = 0.05
_NEVER = float("inf")
_NOT_TOLD: Tuple[Type[BaseException], ...] = (Aborted, McpError, *NETWORK_ERRORS)


class Open(NamedTuple):
    """An exchange under way.

    :ivar ending_tells: its end tells the server that the request is cancelled
    """

    exchange: Exchange
    request: Optional[Request]
    ending_tells: bool


class Life:
    """What is open, and until when.

    :param server_name: for errors and the names of threads
    :ivar sink: what the reader feeds; None before there is a reader
    :ivar max_idle: seconds after which an idle connection is not used again
    """

    def __init__(self, server_name: str) -> None:
        self._server = server_name
        self._owner = os.getpid()
        self.sink: Optional[Sink] = None
        self.has_sink = threading.Event()
        self.max_idle = _MAX_IDLE
        self._clock = Clock("mcpsync-%s-clock" % server_name)
        self._lock = threading.RLock()  # guards the table and the flags below
        self._open: Dict[Hashable, Open] = {}
        self._opened = False
        self._closed = False
        self._over = threading.Event()

    def open(self, deadline: Deadline) -> None:
        """
        :raises ConnectFailed: it was opened or closed before
        :raises ConnectTimeout: there is no time left
        """
        with self._lock:
            if self._opened or self._closed:
                raise ConnectFailed("this transport was used before; each makes one connection", server=self._server)
            if deadline.expired:
                raise ConnectTimeout("no time is left to connect", server=self._server)
            self._opened = True

    def close(self, deadline: Deadline) -> bool:
        """End all exchanges. False: somebody else has, or does, and is done or the time is over."""
        if os.getpid() != self._owner:
            return False
        with self._lock:
            first = not self._closed
            self._closed = True
        if not first:
            self._over.wait(deadline.remaining())
            return False
        self.has_sink.set()
        self.end_all("the connection was closed")
        return True

    def closed_now(self, deadline: Deadline) -> None:
        """All is closed: let go those who wait for that."""
        self._over.set()
        self._clock.stop(deadline.remaining())

    def say_goodbye(self, goodbye: Callable[[Exchange], None], deadline: Deadline) -> None:
        """Do an exchange that nobody needs, within a short time."""
        exchange = Exchange(self.max_idle, deadline)
        over = threading.Event()

        def say() -> None:
            forks_wait_for_this_thread()
            try:
                with exchange:
                    goodbye(exchange)
            except _NOT_TOLD as error:
                logger.debug("mcpsync: server %r was not told that the session is over: %s", self._server, error)
            finally:
                over.set()

        try:
            threading.Thread(target=say, name="mcpsync-%s-goodbye" % self._server, daemon=True).start()
        except RuntimeError:  # the interpreter is ending: the session will time out
            return
        if not over.wait(deadline.sooner(_GOODBYE_SECONDS).remaining()):
            exchange.abort("no time left")
            over.wait(_LINGER_SECONDS)

    def after_fork(self) -> None:
        """In a forked child: nothing of this is its own."""
        self._owner = -1
        self._lock = threading.RLock()
        self._closed = True
        self._open = {}
        self._clock.after_fork()
        self._over.set()
        let_go_after_fork()

    # -- exchanges ---------------------------------------------------------------------------------------------

    def await_sink(self, deadline: Deadline) -> Sink:
        """The sink, once there is a reader.

        :raises ConnectionLost: it is not open
        :raises RequestTimeout: nobody reads
        """
        if not self._opened or self._closed:
            raise self._not_open()
        self.has_sink.wait(deadline.remaining())
        if self._closed:
            raise self._not_open()
        if self.sink is None:
            raise RequestTimeout("nobody reads the connection", server=self._server)
        return self.sink

    def enter(self, exchange: Exchange, request: Optional[Request], deadline: Deadline, ending_tells: bool) -> Hashable:
        """Note an exchange, so that it can be ended from here on; gives the key that :meth:`leave` takes.

        :raises ConnectionLost: it is not open
        """
        key: Hashable = exchange if request is None else request.request_id
        with self._lock:
            if self._closed:
                raise self._not_open()
            self._open[key] = Open(exchange, request, ending_tells)
        if deadline.at != _NEVER:
            self._clock.watch(exchange, deadline)
        return key

    def watch(self, key: Hashable, exchange: Exchange) -> None:
        """Note an exchange of the transport's own, and end it at its deadline unless it is :meth:`unwatched <unwatch>`.

        :raises ConnectionLost: it is not open
        """
        self.take_over(key, exchange)
        if exchange.deadline.at != _NEVER:
            self._clock.watch(exchange, exchange.deadline)

    def unwatch(self, exchange: Exchange) -> None:
        """From here on the exchange has no deadline."""
        self._clock.forget(exchange)

    def end_all(self, reason: str) -> None:
        """End all exchanges."""
        with self._lock:
            under_way = [each.exchange for each in self._open.values()]
        for exchange in under_way:
            exchange.abort(reason)

    def take_over(self, key: Hashable, exchange: Exchange) -> None:
        """Note an exchange in the place of another, which is ended.

        :raises ConnectionLost: it is not open
        """
        with self._lock:
            if self._closed:
                raise self._not_open()
            before = self._open.get(key)
            self._open[key] = Open(exchange, None, False)
        if before is not None:
            before.exchange.abort("another took its place")

    def leave(self, key: Hashable, exchange: Exchange) -> None:
        """An exchange is over."""
        with self._lock:
            found = self._open.get(key)
            if found is not None and found.exchange is exchange:
                del self._open[key]
        if exchange.deadline.at != _NEVER:
            self._clock.forget(exchange)

    def find(self, request: Request) -> Optional[Open]:
        """The exchange of a request."""
        with self._lock:
            found = self._open.get(request.request_id)
        return found if found is not None and found.request is request else None

    def holds(self, key: Hashable) -> bool:
        """Whether there is such an exchange."""
        return key in self._open

    def end_answered(self, stream: StreamId) -> None:
        """A message came on a stream: end the exchanges of other requests that it may have answered."""
        if len(self._open) < 2:
            return
        with self._lock:
            others = [each for key, each in self._open.items() if key != stream and each.request is not None]
        for each in others:
            if each.request is not None and each.request.answered:
                each.exchange.abort("answered on another stream")

    def _not_open(self) -> ConnectionLost:
        return ConnectionLost(
            "the connection is closed" if self._closed else "the connection is not open", server=self._server
        )
