"""What both in-memory transports share: the way from open to close, and the threads that the server runs on."""

from __future__ import annotations

import copy
import logging
import os
import threading
from abc import ABC, abstractmethod
from collections import deque
from typing import Callable, Deque, List, Optional, Set

from mcpsync.deadline import FOREVER, Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, ConnectTimeout, McpError, Overloaded
from mcpsync.transport.base import Frame, Request, Sink, StreamId, Transport
from mcpsync.transport.memory_channel import Channel

__all__ = ["CAPACITY", "MemoryServer", "MemoryTransport"]

logger = logging.getLogger("mcpsync")

CAPACITY = 1024
"""Messages that may wait in one direction, unless told otherwise."""

# guards the tables of all servers: one lock, so that a forked child can renew it; reentrant, since the garbage
# collector may close a connection in the middle of what it guards
_servers_lock = threading.RLock()


def _after_fork_in_child() -> None:
    global _servers_lock
    _servers_lock = threading.RLock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)


class MemoryServer(ABC):
    """A server in this process. Calling it gives a fresh transport to it, so it is a transport factory.

    :param server_name: for errors and the names of threads
    """

    def __init__(self, server_name: Optional[str] = None) -> None:
        self.server_name = server_name
        self._open: List[MemoryTransport] = []
        self._refusals: Deque[McpError] = deque()
        self._connects = 0

    @abstractmethod
    def __call__(self) -> Transport:
        """A transport for one connection to this server."""

    @property
    def connects(self) -> int:
        """How many connections were opened so far."""
        return self._connects

    def fail_next(self, cause: Optional[McpError] = None, times: int = 1) -> None:
        """Have the next attempts to connect fail.

        :param cause: what they raise; a ``ConnectFailed`` if not given
        :param times: how many of them
        """
        refusal = cause or ConnectFailed("the in-memory server was told to refuse", server=self.server_name)
        with _servers_lock:
            self._refusals.extend([refusal] * times)

    def lose(self, cause: Optional[McpError] = None) -> None:
        """Lose all open connections now, and what is on its way over them.

        :param cause: what the clients are told; a ``ConnectionLost`` if not given
        """
        with _servers_lock:
            lost, self._open = self._open, []
        for transport in lost:
            transport.lose(cause or ConnectionLost("the in-memory connection was cut", server=self.server_name))

    def _admit(self, transport: MemoryTransport) -> None:
        with _servers_lock:
            if self._refusals:
                raise copy.copy(self._refusals.popleft())
            self._connects += 1
            self._open.append(transport)

    def _discard(self, transport: MemoryTransport) -> None:
        with _servers_lock:
            self._open = [each for each in self._open if each is not transport]

    def _transports(self) -> List[MemoryTransport]:
        with _servers_lock:
            return list(self._open)


class MemoryTransport(ABC):
    """One connection to a server in this process. One object, one connection.

    :param server: whom it leads to
    :param capacity: messages that may wait
    """

    def __init__(self, server: MemoryServer, capacity: int) -> None:
        self._server = server
        self._server_name = server.server_name
        self._label = server.server_name or "memory"
        self._incoming = Channel(capacity)
        self._farewell = self._gone("the connection was closed")
        self._end: Optional[McpError] = self._gone("the connection is not open")
        self._owner = os.getpid()
        self._used = self._closing = self._closed = False
        self._reset()

    def _reset(self) -> None:
        # Guards what is set here and in __init__; waited on for the reader to come and go, and for a close under way.
        # Reentrant, since the garbage collector may come in between, and may close a connection.
        self._state = threading.Condition(threading.RLock())
        self._sink: Optional[Sink] = None
        self._reader: Optional[int] = None
        self._threads: Set[threading.Thread] = set()

    def open(self, deadline: Deadline) -> None:
        """Connect.

        :raises ConnectFailed: the server was told to refuse, or the transport was used before
        :raises ConnectTimeout: the deadline has passed already
        """
        with self._state:
            if self._used or self._closing:
                raise ConnectFailed("this transport was used already: build a new one", server=self._server_name)
            if deadline.expired:
                raise ConnectTimeout("no time left to connect", server=self._server_name)
            self._used = True
            self._server._admit(self)
            self._end = None
            try:
                self._start()
            except McpError as error:
                self._end = self._farewell
                self._server._discard(self)
                raise ConnectFailed(error.message, server=self._server_name) from None

    def run(self, sink: Sink) -> None:
        """The body of the reader thread."""
        with self._state:
            if not self._used or self._closing:
                return
            self._sink = sink
            self._reader = threading.get_ident()
            self._state.notify_all()
        try:
            data = self._incoming.take(FOREVER)
            while data is not None:
                self._deliver(data, None)
                data = self._incoming.take(FOREVER)
            cause = self._incoming.end
            if cause is not None and cause is not self._farewell:
                self._server._discard(self)
                sink.lost(copy.copy(cause))
        finally:
            with self._state:
                self._reader = None
                self._state.notify_all()

    def close(self, deadline: Deadline) -> None:
        """Tell the server that nothing comes any more, and wait for its threads and for the reader."""
        if os.getpid() != self._owner:
            self.after_fork()
            return
        with self._state:
            if self._closing:
                if not self._is_waited_for():
                    self._state.wait_for(lambda: self._closed, deadline.remaining())
                return
            self._closing = True
            self._end = self._end or self._farewell
        try:
            self._end_all(self._farewell)
            self._server._discard(self)
            self._await_threads(deadline)
        finally:
            with self._state:
                self._closed = True
                self._state.notify_all()

    def lose(self, cause: McpError) -> None:
        """Lose the connection now, and what is on its way over it."""
        with self._state:
            self._end = self._end or cause
        self._end_all(cause)

    def after_fork(self) -> None:
        """In a forked child, where the server's threads are no more: end here. A fresh transport has its own."""
        if os.getpid() == self._owner:
            return
        self._owner = os.getpid()
        self._end = self._gone("this connection belongs to the parent process: open one of your own")
        for channel in self._channels():
            channel.forget(self._end)
        self._reset()
        self._closing = self._closed = True
        self._server._discard(self)

    @abstractmethod
    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send one frame; see :meth:`Transport.send <mcpsync.transport.base.Transport.send>`."""

    @abstractmethod
    def _start(self) -> None:
        """Start what serves an open connection."""

    @abstractmethod
    def _deliver(self, data: bytes, stream: StreamId) -> None:
        """Feed the sink."""

    @abstractmethod
    def _end_all(self, cause: McpError) -> None:
        """End everything that goes on, for this reason; quick."""

    @abstractmethod
    def _channels(self) -> List[Channel]:
        """All channels; in a forked child, without locks."""

    def _gone(self, message: str, maybe_executed: bool = False) -> ConnectionLost:
        return ConnectionLost(message, server=self._server_name, maybe_executed=maybe_executed)

    # -- the server's threads ----------------------------------------------------------------------------------

    def _start_thread(
        self, serve: Callable[[], None], over: Callable[[Optional[McpError]], None], channel: Channel
    ) -> None:
        """Run the user's server on a thread.

        :param serve: it
        :param over: called when it has ended, with its failure if it has failed
        :param channel: on which it speaks; what it raises after the end of that is no failure
        :raises Overloaded: no thread can be started
        :raises McpError: the connection is over
        """

        def body() -> None:
            failure: Optional[McpError] = None
            try:
                serve()
            except Exception as error:  # the server is the user's: whatever it raises ends this connection of it
                if not (isinstance(error, ConnectionLost) and channel.end is not None):
                    logger.exception("mcpsync: the in-memory server %r failed", self._label)
                    text = "the in-memory server failed: %s: %.200s" % (type(error).__name__, error)
                    failure = self._gone(text, maybe_executed=True)
            finally:
                over(failure)
                with self._state:
                    self._threads.discard(threading.current_thread())

        thread = threading.Thread(target=body, name="mcpsync-%s-server" % self._label, daemon=True)
        with self._state:
            if self._end is not None:
                raise copy.copy(self._end)
            try:
                thread.start()
            except RuntimeError as error:
                raise Overloaded(
                    "no thread can be started for the in-memory server: %s" % error, server=self._server_name
                ) from None
            self._threads.add(thread)

    def _is_waited_for(self) -> bool:
        # the condition is held
        return self._reader == threading.get_ident() or threading.current_thread() in self._threads

    def _await_threads(self, deadline: Deadline) -> None:
        here = threading.current_thread()
        with self._state:
            threads = [thread for thread in self._threads if thread is not here]
        for thread in threads:
            thread.join(deadline.remaining())
            if thread.is_alive():
                logger.warning(
                    "mcpsync: the in-memory server %r goes on after its client has closed: its function has to return "
                    "when receive() gives None, or when wait_ended() is true",
                    self._label,
                )
        with self._state:
            self._state.wait_for(lambda: self._reader in (None, here.ident), deadline.remaining())
