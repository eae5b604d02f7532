"""The way of frames into a server's stdin.

A frame that fits into one atomic write of a pipe is written by whoever sends it: whole or not at all. A longer one,
and what the pipe does not take, waits in a bounded backlog that only the reader thread writes, when the pipe is
writable. So a server that stops reading holds nobody past a deadline, and neither it nor Ctrl-C, which may strike
between a write and the noting of how much was written, can tear a frame.
"""

from __future__ import annotations

import copy
import os
import select
import sys
import threading
from collections import deque
from typing import Callable, Deque, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, McpError, MessageTooLarge, Overloaded
from mcpsync.transport.base import Frame, Request

assert sys.platform != "win32"

__all__ = ["Outgoing"]

_PIECE = 65536
_TURN = 4 * _PIECE
"""Bytes that the reader writes before it looks at what came in."""

_ATOMIC = select.PIPE_BUF
_write = os.write


class _Waiting:
    """A frame in the backlog."""

    __slots__ = ("data", "request", "written")

    def __init__(self, data: bytes, request: Optional[Request]) -> None:
        self.data = data
        self.request = request
        self.written = 0


class Outgoing:
    """Writes frames to a pipe, whole, from any thread.

    :param descriptor: our end of the pipe, not blocking; owned from now on
    :param limit: bytes that may wait
    :param wake: tells the reader thread that something waits, or that the pipe is broken
    :param patience: seconds that a sender waits for the reader to find out why the pipe is broken
    :param server: name of the server, for errors
    :ivar descriptor: -1 once it is closed
    :ivar broken: the server closed its end
    """

    def __init__(self, descriptor: int, limit: int, wake: Callable[[], None], *, patience: float, server: str) -> None:
        self.descriptor = descriptor
        self.broken = False
        self._limit = limit
        self._wake = wake
        self._patience = patience
        self._server = server
        self._backlog: Deque[_Waiting] = deque()
        self._backlog_bytes = 0
        self._loss: Optional[McpError] = None
        # True while a sender may write itself: nothing waits, nothing is wrong. As long as a frame is in the
        # backlog, begun or not, only the reader writes.
        self._direct = True
        self._renew_lock()

    def _renew_lock(self) -> None:
        # Guards all of the above. Nothing waits under it: writes do not block. Reentrant, since the garbage
        # collector or a signal handler may come in between, and may send a frame of its own.
        self._lock = threading.RLock()
        self._changed = threading.Condition(self._lock)

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send one frame; see :meth:`Transport.send <mcpsync.transport.base.Transport.send>`.

        :raises MessageTooLarge: the frame alone is longer than the backlog may be
        """
        data = frame.data + b"\n"
        if len(data) <= _ATOMIC:
            try:
                with self._lock:
                    if self._direct:
                        _write(self.descriptor, data)
                        return
            except BlockingIOError:
                pass
            except OSError:
                self._break()
        self._wait_in_line(data, request, deadline)

    def abort(self, request: Request) -> bool:
        """Take a request's frame out of the backlog; False if it is not there, or begun."""
        if not self._backlog:  # one look at its length; a frame that leaves it meanwhile was written
            return False
        with self._lock:
            for place, waiting in enumerate(self._backlog):
                if waiting.request is request:
                    if waiting.written:
                        return False
                    del self._backlog[place]
                    self._backlog_bytes -= len(waiting.data)
                    self._room_made()
                    return True
        return False

    def write_waiting(self) -> bool:
        """Write what the pipe takes. For the reader thread alone.

        :returns: whether something still waits
        """
        with self._lock:
            if self.descriptor < 0 or self.broken:
                return False
            turn = _TURN
            try:
                while self._backlog and turn > 0:
                    first = self._backlog[0]
                    piece = memoryview(first.data)[first.written : first.written + _PIECE]
                    count = _write(self.descriptor, piece)
                    turn -= count
                    first.written += count
                    if first.written == len(first.data):
                        self._backlog.popleft()
                        self._backlog_bytes -= first.written
            except BlockingIOError:
                pass
            except OSError:
                self._break()
                return False
            self._room_made()
            return bool(self._backlog)

    def flush(self, deadline: Deadline) -> None:
        """Wait until nothing waits any more, or until the deadline."""
        with self._changed:
            while self._backlog and self._loss is None and not self.broken:
                left = deadline.remaining()
                if left == 0 or not self._changed.wait(left):
                    return

    def fail(self, loss: McpError) -> None:
        """From now on ``send`` raises this; senders that wait do so at once. Only the first call counts."""
        with self._changed:
            self._direct = False
            if self._loss is None:
                self._loss = loss
            self._changed.notify_all()

    def close(self) -> None:
        """Close the descriptor, which is the end of file for the server, and drop what waits."""
        self.fail(ConnectionLost("the connection was closed", server=self._server))
        with self._lock:
            if self.descriptor >= 0:
                descriptor, self.descriptor = self.descriptor, -1
                os.close(descriptor)
            self._backlog.clear()
            self._backlog_bytes = 0

    def forget(self, loss: McpError) -> None:
        """In a forked child, where another thread may have held the lock: fail, and touch nothing else."""
        self._renew_lock()
        self._direct = False
        self._loss = loss
        self._backlog.clear()
        self.descriptor = -1

    def _wait_in_line(self, data: bytes, request: Optional[Request], deadline: Deadline) -> None:
        if len(data) > self._limit:
            raise MessageTooLarge(
                "a message of %d bytes is longer than the %d bytes that may wait to be sent; raise the backlog limit"
                % (len(data), self._limit),
                limit=self._limit,
                server=self._server,
            )
        with self._changed:
            self._await_room(len(data), deadline)
            alone = not self._backlog
            self._direct = False
            self._backlog.append(_Waiting(data, request))
            self._backlog_bytes += len(data)
        if alone:
            self._wake()

    def _await_room(self, size: int, deadline: Deadline) -> None:
        """Wait, under the lock, until so many bytes may join the backlog."""
        verdict = deadline
        known_broken = False
        while True:
            if self._loss is not None:
                raise copy.copy(self._loss)  # each gets its own: errors are located, and collect tracebacks
            if self.broken:
                if not known_broken:
                    known_broken = True
                    verdict = deadline.sooner(self._patience)
                if verdict.expired:
                    raise ConnectionLost("the server closed its standard input", server=self._server)
            elif self._backlog_bytes + size <= self._limit:
                return
            elif deadline.expired:
                raise Overloaded(
                    "the server does not read its input, and %d bytes wait to be sent already" % self._backlog_bytes,
                    server=self._server,
                )
            self._changed.wait(verdict.remaining())

    def _room_made(self) -> None:
        if not self._backlog and self._loss is None and not self.broken:
            self._direct = True
        self._changed.notify_all()

    def _break(self) -> None:
        with self._changed:
            self._direct = False
            self.broken = True
            self._changed.notify_all()
        self._wake()
