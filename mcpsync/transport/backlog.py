"""Frames that wait to be written: bounded, in order, each whole; and who waits for room among them."""

from __future__ import annotations

import copy
import threading
from collections import deque
from typing import Deque, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, McpError, MessageTooLarge, Overloaded
from mcpsync.transport.base import Request

__all__ = ["Backlog", "Waiting"]


class Waiting:
    """A frame in the backlog.

    :ivar data: its bytes, the line end included
    :ivar written: how many of them are on their way
    :ivar begun: it is being written, and cannot be taken back
    """

    __slots__ = ("begun", "data", "request", "written")

    def __init__(self, data: bytes, request: Optional[Request]) -> None:
        self.data = data
        self.request = request
        self.written = 0
        self.begun = False


class Backlog:
    """What the two ways of writing have in common: see the subclasses.

    :param limit: bytes that may wait
    :param patience: seconds that a sender waits for the reader to find out why the pipe is broken
    :param server: name of the server, for errors
    :ivar broken: the server closed its end of the pipe
    """

    def __init__(self, limit: int, *, patience: float, server: str) -> None:
        self.broken = False
        self._limit = limit
        self._patience = patience
        self._server = server
        self._frames: Deque[Waiting] = deque()
        self._bytes = 0
        self._loss: Optional[McpError] = None
        self._renew_lock()

    def _renew_lock(self) -> None:
        # Guards all of the above and what the subclasses add. Nothing waits for the server under it. Reentrant, since
        # the garbage collector or a signal handler may come in between, and may send a frame of its own.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def abort(self, request: Request) -> bool:
        """Take a request's frame out; False if it is not there, or begun."""
        if not self._frames:  # one look at its length; a frame that leaves it meanwhile was written
            return False
        with self._lock:
            for place, waiting in enumerate(self._frames):
                if waiting.request is request:
                    if waiting.begun:
                        return False
                    del self._frames[place]
                    self._bytes -= len(waiting.data)
                    self._room_made()
                    return True
        return False

    def flush(self, deadline: Deadline) -> None:
        """Wait until nothing waits any more, or until the deadline."""
        with self._changed:
            while self._frames and self._loss is None and not self.broken:
                left = deadline.remaining()
                if left == 0 or not self._changed.wait(left):
                    return

    def fail(self, loss: McpError) -> None:
        """From now on nothing is taken, and this is raised; who waits learns at once. Only the first call counts."""
        with self._changed:
            if self._loss is None:
                self._loss = loss
            self._changed.notify_all()

    def _append(self, data: bytes, request: Optional[Request], deadline: Deadline) -> bool:
        """Put a frame at the end, when there is room; returns whether it is the only one.

        :raises MessageTooLarge: there never will be
        :raises Overloaded: there was none until the deadline
        """
        if len(data) > self._limit:
            raise MessageTooLarge(
                "a message of %d bytes is longer than the %d bytes that may wait to be sent; raise the backlog limit"
                % (len(data), self._limit),
                limit=self._limit,
                server=self._server,
            )
        with self._changed:
            self._await_room(len(data), deadline)
            alone = not self._frames
            self._frames.append(Waiting(data, request))
            self._bytes += len(data)
            self._changed.notify_all()
        return alone

    def _await_room(self, size: int, deadline: Deadline) -> None:
        """Wait, under the lock, until so many bytes may join."""
        verdict = None
        while True:
            if self._loss is not None:
                raise copy.copy(self._loss)  # each gets its own: errors are located, and collect tracebacks
            if self.broken:
                verdict = verdict if verdict is not None else deadline.sooner(self._patience)
                if verdict.expired:
                    raise ConnectionLost("the server closed its standard input", server=self._server)
            elif self._bytes + size <= self._limit:
                return
            elif deadline.expired:
                raise Overloaded(
                    "the server does not read its input, and %d bytes wait to be sent already" % self._bytes,
                    server=self._server,
                )
            self._changed.wait((verdict or deadline).remaining())

    def _drop_all(self) -> None:
        self._frames.clear()
        self._bytes = 0

    def _room_made(self) -> None:
        """Called under the lock when a frame has left."""
        self._changed.notify_all()

    def _break(self) -> None:
        with self._changed:
            self.broken = True
            self._changed.notify_all()
