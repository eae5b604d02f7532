"""The reader thread of a stdio connection on POSIX systems.

One ``poll`` waits for everything: output, stderr, the end of the process, a wake-up by another thread, and, while
frames wait to be written, room in the server's stdin. A quiet server costs nothing. (Never ``select``, which fails
for descriptors above 1,024.)
"""

from __future__ import annotations

import os
import select
from typing import Callable, Optional

from mcpsync.deadline import FOREVER, Deadline
from mcpsync.errors import McpError, MessageTooLarge
from mcpsync.transport.base import Sink
from mcpsync.transport.outgoing import Outgoing
from mcpsync.transport.process import ServerProcess
from mcpsync.transport.server_output import ServerOutput

__all__ = ["PollReader"]

_CHUNK = 65536
_LAST_READ = 4 * 1024 * 1024
"""Bytes of each stream that are still read after the end of the process; a pipe holds less, but one that something
else keeps writing to never runs dry."""


class PollReader:
    """Reads until the server is gone or the connection is closed.

    :param wake_up: descriptor that another thread makes readable
    :param leaving: whether the connection is closed and the reader shall return
    :param closing: whether the connection is being closed, so that the end of the server is no loss
    :param silence: seconds that a server which closed its stdout or stdin gets to end
    """

    def __init__(
        self,
        *,
        stdout: int,
        stderr: int,
        wake_up: int,
        process: ServerProcess,
        outgoing: Outgoing,
        output: ServerOutput,
        sink: Sink,
        leaving: Callable[[], bool],
        closing: Callable[[], bool],
        silence: float,
    ) -> None:
        self._stdout = stdout
        self._stderr = stderr
        self._wake_up = wake_up
        self._process = process
        self._outgoing = outgoing
        self._output = output
        self._sink = sink
        self._leaving = leaving
        self._closing = closing
        self._silence = silence
        self._poller = select.poll()
        self._stdin_watched = -1
        self._patience = FOREVER
        self._half_closed = ""

    def run(self) -> None:
        """Until the end; a loss is told to the sink before this returns."""
        for descriptor in (self._stdout, self._stderr, self._wake_up, self._process.exit_notice):
            self._poller.register(descriptor, select.POLLIN)
        try:
            self._write()  # frames may wait from before this thread began
            loss = self._read()
        except MessageTooLarge as error:
            loss = error
        if loss is not None and not self._closing():
            self._outgoing.fail(loss)
            self._sink.lost(loss)

    def _read(self) -> Optional[McpError]:
        """The loop; returns the loss, or None when the connection was closed."""
        poll, read, take = self._poller.poll, os.read, self._output.stdout
        stdout, sink = self._stdout, self._sink
        timeout: Optional[float] = None
        while True:
            ended = rare = False
            for descriptor, _ in poll(timeout):
                if descriptor == stdout:
                    try:
                        chunk = read(stdout, _CHUNK)
                    except BlockingIOError:
                        continue
                    if chunk:
                        take(chunk, sink)
                    else:
                        self._half_close(stdout, "the server closed its standard output")
                else:
                    rare = True  # whoever closes wakes this thread when it has said so
                    if descriptor == self._process.exit_notice:
                        ended = True
                    else:
                        self._less_common(descriptor)
            if rare:
                leaving = self._leaving()
                # Who closes may have seen the end first; what the server wrote before it is still there to be read.
                if ended or (leaving and self._process.ended):
                    return self._end_of_process()
                if leaving:
                    return None
            if self._patience is not FOREVER:
                if self._patience.expired:
                    return self._output.gone(self._half_closed + ", but it still runs")
                timeout = (self._patience.remaining() or 0) * 1000

    def _less_common(self, descriptor: int) -> None:
        if descriptor == self._stderr:
            self._read_stderr()
        elif descriptor == self._wake_up:
            os.read(self._wake_up, _CHUNK)
            self._write()
        elif descriptor == self._stdin_watched:
            self._write()

    def _read_stderr(self) -> bool:
        """Read one chunk; False if there is none."""
        try:
            chunk = os.read(self._stderr, _CHUNK)
        except BlockingIOError:
            return False
        if chunk:
            self._output.stderr(chunk, self._sink)
        else:
            self._poller.unregister(self._stderr)
            self._output.stderr_ended(self._sink)
        return bool(chunk)

    def _write(self) -> None:
        """Write what waits, and watch for room as long as some is left."""
        wanted = self._outgoing.descriptor if self._outgoing.write_waiting() else -1
        if wanted != self._stdin_watched:
            if self._stdin_watched >= 0:
                self._poller.unregister(self._stdin_watched)
            if wanted >= 0:
                self._poller.register(wanted, select.POLLOUT)
            self._stdin_watched = wanted
        if self._outgoing.broken:
            self._half_close(-1, "the server closed its standard input")

    def _half_close(self, descriptor: int, what: str) -> None:
        """One direction is gone. Mostly the process is about to end: give it time to tell its exit code."""
        if descriptor >= 0:
            self._poller.unregister(descriptor)
        if self._patience is FOREVER and not self._closing():
            self._half_closed = what
            self._patience = Deadline(self._silence)

    def _end_of_process(self) -> McpError:
        """Take what is there to be read now. A grandchild that holds the pipes does not keep the connection."""
        self._process.has_ended()
        left = _LAST_READ
        try:
            while left > 0:
                chunk = os.read(self._stdout, _CHUNK)
                if not chunk:
                    break
                left -= len(chunk)
                self._output.stdout(chunk, self._sink)
        except BlockingIOError:
            pass
        left = _LAST_READ
        try:
            while left > 0:
                chunk = os.read(self._stderr, _CHUNK)
                if not chunk:
                    break
                left -= len(chunk)
                self._output.stderr(chunk, self._sink)
        except BlockingIOError:
            pass
        self._output.stderr_ended(self._sink)
        return self._output.exited(self._process.exit_code)
