"""A framed stream over descriptors that can be polled: who reads them, and who gives them back."""

from __future__ import annotations

import os
import sys
import threading
from typing import Iterable, List, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost
from mcpsync.shield import Event
from mcpsync.transport.base import Request, Sink
from mcpsync.transport.frame_reader import FrameReader
from mcpsync.transport.outgoing import Outgoing
from mcpsync.transport.stream_base import StreamBase

assert sys.platform != "win32"

__all__ = ["PolledStream"]

_LAST_WAIT = 0.25
"""Seconds that the reader gets to return when the deadline of a close has passed already."""


class PolledStream(StreamBase):
    """The part of a stream that has descriptors, a reader, and frames on their way out."""

    _outgoing: Optional[Outgoing] = None
    _wake_up = -1
    _leaving = False

    def _renew_locks(self) -> None:
        super()._renew_locks()
        self._descriptors: List[int] = []  # the last that needs them gives them back: the reader, or who closes
        self._reader: Optional[int] = None
        self._reader_gone = Event()

    def _new_reader(self, sink: Sink) -> Optional[FrameReader]:
        """What reads the stream; None: it is not open."""
        raise NotImplementedError

    def _waker(self) -> int:
        """Make the pipe that wakes the reader; gives the end to write to, on the books like the other."""
        self._wake_up, waker = os.pipe()
        self._descriptors += (self._wake_up, waker)
        return waker

    def _write_with(self, outgoing: Outgoing) -> None:
        for descriptor in (outgoing.descriptor, outgoing.waker):  # the one that writes to them closes them
            self._descriptors.remove(descriptor)
        self._outgoing = outgoing
        # From here on frames go straight to the pipe: a method that hands on would cost every message a call.
        self.send = outgoing.send  # type: ignore[method-assign]

    def run(self, sink: Sink) -> None:
        """The body of the reader thread."""
        with self._state:
            reader = None if self._leaving else self._new_reader(sink)
            if reader is None:
                return
            self._reader = threading.get_ident()
        try:
            reader.run()
        finally:
            self._reader_returned()

    def abort(self, request: Request, reason: str) -> bool:
        """True if the frame of the request had not begun to travel: the server never heard of it."""
        return self._outgoing is not None and self._outgoing.abort(request)

    def after_fork(self) -> None:
        """In a forked child: lay the null device over the parent's descriptors and end here."""
        if os.getpid() == self._owner:
            return
        inherited = self._descriptors
        super().after_fork()
        self._leaving = True
        inherited += self._forget()
        if self._outgoing is not None:
            inherited += (self._outgoing.descriptor, self._outgoing.waker)
            gone = "this connection belongs to the parent process: open one of your own"
            self._outgoing.forget(ConnectionLost(gone, server=self._server))
        _lay_null_device([descriptor for descriptor in inherited if descriptor >= 0])

    def _forget(self) -> Iterable[int]:
        """In a forked child: let go of what else is the parent's; gives its descriptors."""
        return ()

    def _flush(self, deadline: Deadline) -> None:
        if self._outgoing is not None:
            self._outgoing.flush(deadline.sooner(self._graces.flush))

    def _reads_elsewhere(self) -> bool:
        with self._state:
            return self._reader is not None and self._reader != threading.get_ident()

    def _let_reader_go(self, deadline: Deadline) -> None:
        """Tell the reader to return; whoever of the two is last gives the descriptors back."""
        self._leaving = True
        if self._reads_elsewhere():
            if self._outgoing is not None:
                self._outgoing.wake()
            left = deadline.remaining()
            self._reader_gone.wait(None if left is None else max(left, _LAST_WAIT))
        with self._state:
            if self._reader is None:
                self._release()

    def _reader_returned(self) -> None:
        with self._state:
            self._reader = None
            if self._leaving:
                self._release()
        self._reader_gone.set()

    def _release(self) -> None:
        """Called under the lock of the state."""
        if self._outgoing is not None:
            self._outgoing.release()  # first: what wakes the reader must not find the other end closed
        descriptors, self._descriptors = self._descriptors, []
        self._wake_up = -1
        for descriptor in descriptors:
            os.close(descriptor)


def _lay_null_device(descriptors: List[int]) -> None:
    """Closing them would be no better in a child, where some forgotten object may close the same number again."""
    if not descriptors:
        return
    null = os.open(os.devnull, os.O_RDWR)
    try:
        for descriptor in descriptors:
            os.dup2(null, descriptor, inheritable=False)
    finally:
        os.close(null)
