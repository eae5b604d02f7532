"""The way of frames into a server's stdin where pipes cannot be polled: a thread that writes them, one by one."""

from __future__ import annotations

import os
import threading
from typing import Optional

from mcpsync.deadline import FOREVER, Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost
from mcpsync.transport.backlog import Backlog, Waiting, lets_go
from mcpsync.transport.base import Frame, Request

__all__ = ["ThreadedOutgoing"]


class ThreadedOutgoing(Backlog):
    """Writes frames to a pipe, whole, in the order in which they were sent.

    :param descriptor: our end of the pipe, blocking; owned, and closed by the thread that writes
    """

    def __init__(self, descriptor: int, limit: int, *, patience: float, server: str) -> None:
        super().__init__(limit, patience=patience, server=server)
        self._descriptor = descriptor
        self._thread = threading.Thread(target=self._write_all, name="mcpsync-%s-writer" % server, daemon=True)

    def start(self) -> None:
        """Start the thread.

        :raises ConnectFailed: the system has no thread to give
        """
        try:
            self._thread.start()
        except RuntimeError as error:
            os.close(self._descriptor)
            raise ConnectFailed("cannot start the server: %s" % error, server=self._server) from error

    def _before_append(self) -> None:
        # It sleeps until something changes; it gets the lock, and looks, when the frame is there.
        self._wake_sleepers()

    @lets_go
    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send one frame; see :meth:`Transport.send <mcpsync.transport.base.Transport.send>`."""
        self._append(frame.data + b"\n", request, deadline)

    def close(self) -> None:
        """Drop what waits; the end of file follows as soon as a frame that has begun is through."""
        with self._lock:
            self.fail(ConnectionLost("the connection was closed", server=self._server))
            self._drop_all()

    def join(self, deadline: Deadline) -> None:
        """Wait for the end of the thread."""
        self._thread.join(deadline.remaining())

    def _write_all(self) -> None:
        try:
            while True:
                waiting = self._next()
                if waiting is None:
                    return
                data = memoryview(waiting.data)
                while waiting.written < len(data):
                    waiting.written += os.write(self._descriptor, data[waiting.written :])
                with self._lock:
                    if self._frames:  # not dropped meanwhile
                        self._frames.popleft()
                        self._bytes -= len(data)
                    self._room_made()
        except OSError:
            self._break()
        finally:
            os.close(self._descriptor)

    def _next(self) -> Optional[Waiting]:
        """The frame to write next, marked as begun; None: there will be none."""
        while True:
            with self._lock:
                if self._loss is not None:
                    return None
                if self._frames:
                    self._frames[0].begun = True
                    return self._frames[0]
                sleeper = self._sleeper()
            self._sleep(sleeper, FOREVER)
