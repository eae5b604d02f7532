"""The reader thread of a framed stream, on systems that can poll it.

One ``poll`` waits for everything: what comes in, a wake-up by another thread, and, while frames wait to be written,
room for them. A quiet server costs nothing. (Never ``select``, which fails for descriptors above 1,024.)
"""

from __future__ import annotations

import os
import select
from typing import Callable, Optional

from mcpsync.deadline import FOREVER, Deadline
from mcpsync.errors import McpError
from mcpsync.transport.base import Sink
from mcpsync.transport.intake import FrameIntake
from mcpsync.transport.outgoing import Outgoing

__all__ = ["CHUNK", "FrameReader"]

CHUNK = 65536


class FrameReader:
    """Reads until the server is gone or the connection is closed. What is odd about a kind of stream is its subclass's.

    :param incoming: descriptor that messages are read from
    :param wake_up: descriptor that another thread makes readable
    :param outgoing: what waits to be written
    :param intake: takes what comes in
    :param sink: is told of a loss
    :param leaving: whether the connection is closed and the reader shall return
    :param closing: whether the connection is being closed, so that the end of the server is no loss
    :param silence: seconds in which a server that has closed one direction has to end
    """

    def __init__(
        self,
        *,
        incoming: int,
        wake_up: int,
        outgoing: Outgoing,
        intake: FrameIntake,
        sink: Sink,
        leaving: Callable[[], bool],
        closing: Callable[[], bool],
        silence: float,
    ) -> None:
        self._incoming = incoming
        self._wake_up = wake_up
        self._outgoing = outgoing
        self._intake = intake
        self._sink = sink
        self._leaving = leaving
        self._closing = closing
        self._silence = silence
        self._poller = select.poll()
        self._room_watched = -1
        self._patience = FOREVER
        self._half_closed = ""

    def run(self) -> None:
        """Until the end; a loss is told to the sink before this returns."""
        self._watch()
        try:
            self._write()  # frames may wait from before this thread began
            loss = self._read()
        except McpError as error:  # what came in is nothing that could be gone on with
            loss = error
        if loss is not None and not self._closing():
            self._outgoing.fail(loss)
            self._sink.lost(loss)

    def _watch(self) -> None:
        for descriptor in (self._incoming, self._wake_up):
            self._poller.register(descriptor, select.POLLIN)

    def _read(self) -> Optional[McpError]:
        """The loop; returns the loss, or None when the connection was closed."""
        poll, read, take = self._poller.poll, os.read, self._intake.feed
        incoming, sink = self._incoming, self._sink
        timeout: Optional[float] = None
        while True:
            rare = False
            for descriptor, _ in poll(timeout):
                if descriptor == incoming:
                    try:
                        chunk = read(incoming, CHUNK)
                    except BlockingIOError:
                        continue
                    except OSError:  # a connection that was reset
                        chunk = b""
                    if chunk:
                        take(chunk, sink)
                        continue
                    self._incoming_ended()
                else:
                    self._look_at(descriptor)
                rare = True  # whoever closes wakes this thread when it has said so
            if rare and self._is_over():
                return self._outcome()
            if self._patience is not FOREVER:
                if self._patience.expired:
                    return self._out_of_patience(self._half_closed)
                timeout = (self._patience.remaining() or 0) * 1000

    def _look_at(self, descriptor: int) -> None:
        """Something happened on a descriptor that is not the incoming one."""
        if descriptor == self._wake_up:
            os.read(self._wake_up, CHUNK)
            self._write()
        elif descriptor == self._room_watched:
            self._write()

    def _incoming_ended(self) -> None:
        """Nothing more will come in."""
        raise NotImplementedError

    def _is_over(self) -> bool:
        """Whether the reader has to return."""
        return self._leaving()

    def _outcome(self) -> Optional[McpError]:
        """The loss, or None when the connection was closed."""
        raise NotImplementedError

    def _out_of_patience(self, half_closed: str) -> McpError:
        """The loss of a server that closed one direction and went on."""
        return self._intake.gone(half_closed)

    def _write(self) -> None:
        """Write what waits, and watch for room as long as some is left."""
        wanted = self._outgoing.descriptor if self._outgoing.write_waiting() else -1
        if wanted != self._room_watched:
            if self._room_watched >= 0:
                self._poller.unregister(self._room_watched)
            if wanted >= 0:
                self._poller.register(wanted, select.POLLOUT)
            self._room_watched = wanted
        if self._outgoing.broken:
            self._half_close(self._outgoing.BROKEN)

    def _half_close(self, what: str) -> None:
        """One direction is gone. Mostly the end of the server is near: give it time to say more."""
        if self._patience is FOREVER and not self._closing():
            self._half_closed = what
            self._patience = Deadline(self._silence)
