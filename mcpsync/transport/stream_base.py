"""What every framed stream is, whatever it runs over: opened once, closed once, and of no use in a forked child."""

from __future__ import annotations

import os
import threading
from typing import Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, ConnectTimeout
from mcpsync.shield import Event
from mcpsync.transport.base import Frame, Request
from mcpsync.transport.intake import FrameIntake
from mcpsync.transport.stdio_server import DEFAULT_LIMIT, Graces

__all__ = ["StreamBase"]


class StreamBase:
    """One stream of frames to a server. One object, one start.

    :param server_name: for errors, logs and the names of threads
    :param max_message: the longest message that is taken, in bytes; a longer one ends the connection
    :param backlog: bytes that may wait to be sent to a server that does not read
    :param graces: how long the server is waited for, step by step, when the connection is closed
    """

    exchange_like = False
    _STREAM = "this connection"
    _TO_OPEN = "connect"

    def __init__(
        self,
        server_name: str = "server",
        *,
        max_message: int = DEFAULT_LIMIT,
        backlog: int = DEFAULT_LIMIT,
        graces: Optional[Graces] = None,
    ) -> None:
        self._server = server_name
        self._max_message = max_message
        self._backlog = backlog
        self._graces = graces if graces is not None else Graces()
        self._owner = os.getpid()
        self._used = False
        self._opening = False
        self._closing = False
        self._renew_locks()

    def _renew_locks(self) -> None:
        # Guards the flags above, and which thread reads. Reentrant: the garbage collector may come in between.
        self._state = threading.RLock()
        self._opened = Event()
        self._closed = Event()

    @property
    def _intake(self) -> Optional[FrameIntake]:
        """What takes what comes in; None before the stream is open."""
        raise NotImplementedError

    def _open(self, deadline: Deadline) -> None:
        """Open the stream; what was made before a failure is left to ``_end``."""
        raise NotImplementedError

    def _end(self, deadline: Deadline) -> None:
        """End the stream and give everything back; may be called when there is nothing."""
        raise NotImplementedError

    def masked(self, text: str) -> str:
        """A text without the secrets that the server was given."""
        return self._intake.masked(text) if self._intake is not None else text

    def open(self, deadline: Deadline) -> None:
        """Open the stream.

        :raises ConnectFailed: it cannot be opened, or was closed meanwhile; nothing is left behind
        :raises ConnectTimeout: the deadline has passed
        """
        claimed = started = closed = False
        try:
            with self._state:
                if self._used or self._closing:
                    raise ConnectFailed("this transport was used already: build a new one", server=self._server)
                self._used = self._opening = claimed = True
            if deadline.expired:
                raise ConnectTimeout("no time left to %s" % self._TO_OPEN, server=self._server)
            self._open(deadline)
            started = True
        finally:
            if claimed:
                with self._state:
                    closed = self._closing
                    self._opening = False
                if closed or not started:
                    self._end(Deadline(0))
                if closed:
                    self._closed.set()
                self._opened.set()
        if closed:
            raise ConnectFailed("the connection was closed while it was opened", server=self._server)

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
        """It is one long stream already.

        :raises ConnectionLost: always
        """
        raise ConnectionLost("%s has no stream of its own to listen on" % self._STREAM, server=self._server)

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send one frame; never waits for the server, unless the backlog is full.

        :raises ProcessExited: the server's process has ended
        :raises ConnectionLost: the connection is gone, or was not opened
        :raises Overloaded: the server does not read, and the backlog had no room until the deadline
        :raises MessageTooLarge: the frame alone is longer than the backlog may be
        """
        raise ConnectionLost("the connection is not open", server=self._server)

    def close(self, deadline: Deadline) -> None:
        """End the stream, step by step, each after a grace.

        :param deadline: for the whole; where a process has to be killed that may take half a second more
        """
        if os.getpid() != self._owner:
            self.after_fork()
        mine = False
        try:
            with self._state:
                first, opening = not self._closing, self._opening
                mine = first and not opening
                self._closing = True
            if mine:
                self._end(deadline)
            else:
                # One that is being opened is ended by who opens it.
                (self._opened if opening else self._closed).wait(deadline.remaining())
        except BaseException:  # Ctrl-C: no time for manners
            if mine:
                self._end(Deadline(0))
            raise
        finally:
            if mine:
                self._closed.set()

    def after_fork(self) -> None:
        """In a forked child: let go of the parent's end of the stream without touching it."""
        if os.getpid() == self._owner:
            return
        self._owner = os.getpid()
        self._renew_locks()
        self._closing = True
        self._opening = False
        self._opened.set()
        self._closed.set()
