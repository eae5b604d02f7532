"""The way of frames into a server's stdin, on POSIX systems.

A frame that fits into one atomic write of a pipe is written by whoever sends it: whole or not at all. A longer one,
and what the pipe does not take, waits in a bounded backlog that only the reader thread writes, when the pipe is
writable. So a server that stops reading holds nobody past a deadline, and neither it nor Ctrl-C, which may strike
between a write and the noting of how much was written, can tear a frame.
"""

from __future__ import annotations

import os
import select
import sys
from contextlib import suppress
from typing import Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, McpError
from mcpsync.transport.backlog import Backlog, lets_go
from mcpsync.transport.base import Frame, Request

assert sys.platform != "win32"

__all__ = ["Outgoing"]

_PIECE = 65536
_TURN = 4 * _PIECE
"""Bytes that the reader writes before it looks at what came in."""

_ATOMIC = select.PIPE_BUF
_write = os.write


class Outgoing(Backlog):
    """Writes frames to a pipe, whole, from any thread.

    :param descriptor: our end of the pipe, not blocking; owned from now on
    :param waker: our end, not blocking, of the pipe that wakes the reader thread; owned from now on
    :ivar descriptor: -1 once it is closed
    :ivar waker: -1 once it is closed
    """

    def __init__(self, descriptor: int, waker: int, limit: int, *, patience: float, server: str) -> None:
        super().__init__(limit, patience=patience, server=server)
        self.descriptor = descriptor
        self.waker = waker
        # True while a sender may write itself: nothing waits, nothing is wrong. As long as a frame is in the
        # backlog, begun or not, only the reader writes.
        self._direct = True

    @lets_go
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
        self._append(data, request, deadline)

    def write_waiting(self) -> bool:
        """Write what the pipe takes. For the reader thread alone.

        :returns: whether something still waits
        """
        with self._lock:
            if self.descriptor < 0 or self.broken:
                return False
            turn = _TURN
            try:
                while self._frames and turn > 0:
                    first = self._frames[0]
                    piece = memoryview(first.data)[first.written : first.written + _PIECE]
                    count = _write(self.descriptor, piece)
                    turn -= count
                    first.written += count
                    first.begun = True
                    if first.written == len(first.data):
                        self._frames.popleft()
                        self._bytes -= first.written
            except BlockingIOError:
                pass
            except OSError:
                self._break()
                return False
            self._room_made()
            return bool(self._frames)

    def wake(self) -> None:
        """Make the reader thread look: something waits, the pipe is broken, or it shall return."""
        with self._lock:
            if self.waker >= 0:
                with suppress(BlockingIOError):  # full of wake-ups: it will wake
                    _write(self.waker, b"\0")

    def fail(self, loss: McpError) -> None:
        """From now on ``send`` raises this; senders that wait do so at once. Only the first call counts."""
        with self._lock:
            self._direct = False
            super().fail(loss)

    def close(self) -> None:
        """Close the descriptor, which is the end of file for the server, and drop what waits."""
        with self._lock:
            self.fail(ConnectionLost("the connection was closed", server=self._server))
            if self.descriptor >= 0:
                descriptor, self.descriptor = self.descriptor, -1
                os.close(descriptor)
            self._drop_all()

    def release(self) -> None:
        """Close what wakes the reader: it is gone."""
        with self._lock:
            waker, self.waker = self.waker, -1
            if waker >= 0:
                os.close(waker)

    def forget(self, loss: McpError) -> None:
        """In a forked child, where another thread may have held the lock: fail, and touch nothing else."""
        self._renew_lock()
        self._direct = False
        self._loss = loss
        self._drop_all()
        self.descriptor = self.waker = -1

    def _before_append(self) -> None:
        self._direct = False
        if not self._frames:
            # Before the frame is there, for Ctrl-C may strike after it: the reader gets the lock only then anyway.
            self.wake()

    def _room_made(self) -> None:
        if not self._frames and self._loss is None and not self.broken:
            self._direct = True
        super()._room_made()

    def _break(self) -> None:
        with self._lock:
            self._direct = False
            super()._break()
        self.wake()
