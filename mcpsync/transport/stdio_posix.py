"""The stdio connection of POSIX systems: pipes that do not block, and one thread that polls them."""

from __future__ import annotations

import os
import sys
import threading
from typing import List, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost
from mcpsync.shield import Event
from mcpsync.transport.base import Request, Sink
from mcpsync.transport.outgoing import Outgoing
from mcpsync.transport.poll_reader import PollReader
from mcpsync.transport.process import ServerProcess
from mcpsync.transport.stdio_base import StdioBase
from mcpsync.transport.stdio_server import Prepared

assert sys.platform != "win32"

__all__ = ["PosixStdio"]

_LAST_WAIT = 0.25
"""Seconds that the reader gets to return when the deadline of a close has passed already."""


class PosixStdio(StdioBase):
    __doc__ = StdioBase.__doc__

    _process: Optional[ServerProcess] = None
    _outgoing: Optional[Outgoing] = None
    _stdout = _stderr = _wake_up = -1
    _leaving = False

    def _renew_locks(self) -> None:
        super()._renew_locks()
        self._descriptors: List[int] = []  # the last that needs them gives them back: the reader, or who closes
        self._reader: Optional[int] = None
        self._reader_gone = Event()

    @property
    def _child(self) -> Optional[ServerProcess]:
        return self._process

    def _start(self, prepared: Prepared) -> None:
        theirs: List[int] = []
        try:
            stdin = self._pipe(theirs, ours=1)
            self._stdout = self._pipe(theirs, ours=0)
            self._stderr = self._pipe(theirs, ours=0)
            self._wake_up, waker = os.pipe()
            self._descriptors += (self._wake_up, waker)
            for descriptor in self._descriptors:
                os.set_blocking(descriptor, False)
            self._process = ServerProcess(
                prepared.launch,
                prepared.environ,
                prepared.cwd,
                stdin=theirs[0],
                stdout=theirs[1],
                stderr=theirs[2],
                server=self._server,
                mask=prepared.mask,
            )
        except OSError as error:
            raise ConnectFailed("cannot start the server: %s" % error.strerror, server=self._server) from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
        for descriptor in (stdin, waker):  # the one that writes to them closes them
            self._descriptors.remove(descriptor)
        self._outgoing = Outgoing(stdin, waker, self._backlog, patience=self._graces.silence, server=self._server)
        # From here on frames go straight to the pipe: a method that hands on would cost every message a call.
        self.send = self._outgoing.send  # type: ignore[method-assign]

    def run(self, sink: Sink) -> None:
        """The body of the reader thread."""
        with self._state:
            if self._process is None or self._outgoing is None or self._output is None or self._leaving:
                return
            self._reader = threading.get_ident()
            reader = PollReader(
                stdout=self._stdout,
                stderr=self._stderr,
                wake_up=self._wake_up,
                process=self._process,
                outgoing=self._outgoing,
                output=self._output,
                sink=sink,
                leaving=lambda: self._leaving,
                closing=lambda: self._closing,
                silence=self._graces.silence,
            )
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
        if self._process is not None:
            self._process.forget()
            inherited.append(self._process.exit_notice)
        if self._outgoing is not None:
            inherited += (self._outgoing.descriptor, self._outgoing.waker)
            gone = "this connection belongs to the parent process: open one of your own"
            self._outgoing.forget(ConnectionLost(gone, server=self._server))
        _lay_null_device([descriptor for descriptor in inherited if descriptor >= 0])

    def _pipe(self, theirs: List[int], *, ours: int) -> int:
        ends = os.pipe()
        self._descriptors.append(ends[ours])
        theirs.append(ends[1 - ours])
        return ends[ours]

    def _end(self, deadline: Deadline) -> None:
        try:
            if self._process is not None:
                self._shut_down(self._process, deadline)
        finally:
            self._let_reader_go(deadline)

    def _shut_down(self, process: ServerProcess, deadline: Deadline) -> None:
        drains = [self._stdout, self._stderr]
        try:
            if self._reads_elsewhere():
                drains = []
                if self._outgoing is not None:
                    self._outgoing.flush(deadline.sooner(self._graces.flush))
        except BaseException:  # Ctrl-C: no time for manners
            deadline = Deadline(0)
            raise
        finally:
            process.shut_down(deadline, self._graces, self._close_stdin, drains)

    def _close_stdin(self) -> None:
        if self._outgoing is not None:
            self._outgoing.close()
            # A reader that polls the descriptor right now keeps it open until it looks again.
            self._outgoing.wake()

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
        self._stdout = self._stderr = self._wake_up = -1
        for descriptor in descriptors:
            os.close(descriptor)
        if self._process is not None:
            self._process.release()


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
