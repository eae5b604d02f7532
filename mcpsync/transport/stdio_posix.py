"""The stdio connection of POSIX systems: pipes that do not block, and one thread that polls them."""

from __future__ import annotations

import os
import sys
from typing import Iterable, List, Optional

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed
from mcpsync.transport.base import Sink
from mcpsync.transport.outgoing import Outgoing
from mcpsync.transport.poll_reader import PollReader
from mcpsync.transport.polled import PolledStream
from mcpsync.transport.process import ServerProcess
from mcpsync.transport.stdio_base import StdioBase
from mcpsync.transport.stdio_server import Prepared

assert sys.platform != "win32"

__all__ = ["PosixStdio"]


class PosixStdio(StdioBase, PolledStream):
    __doc__ = StdioBase.__doc__

    _process: Optional[ServerProcess] = None
    _stdout = _stderr = -1

    @property
    def _child(self) -> Optional[ServerProcess]:
        return self._process

    def _start(self, prepared: Prepared) -> None:
        theirs: List[int] = []
        try:
            stdin = self._pipe(theirs, ours=1)
            self._stdout = self._pipe(theirs, ours=0)
            self._stderr = self._pipe(theirs, ours=0)
            waker = self._waker()
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
        self._write_with(Outgoing(stdin, waker, self._backlog, patience=self._graces.silence, server=self._server))

    def _new_reader(self, sink: Sink) -> Optional[PollReader]:
        if self._process is None or self._outgoing is None or self._output is None:
            return None
        return PollReader(
            incoming=self._stdout,
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

    def _forget(self) -> Iterable[int]:
        if self._process is None:
            return ()
        self._process.forget()
        return (self._process.exit_notice,)

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
                self._flush(deadline)
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

    def _release(self) -> None:
        super()._release()
        self._stdout = self._stderr = -1
        if self._process is not None:
            self._process.release()
