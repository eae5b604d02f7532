"""The stdio connection of systems whose pipes cannot be polled: a thread each for output, stderr, input and the end.

The threads block in the system and end when the pipes do; the pipes end when the process and all it started have
ended, and that is seen to by the process object as soon as the server itself is gone.
"""

from __future__ import annotations

import os
import threading
from typing import List, Optional, Protocol

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, McpError, MessageTooLarge
from mcpsync.transport.base import Request, Sink
from mcpsync.transport.server_output import ServerOutput
from mcpsync.transport.stdio_base import StdioBase
from mcpsync.transport.stdio_server import Prepared
from mcpsync.transport.threaded_outgoing import ThreadedOutgoing

__all__ = ["EndableProcess", "ThreadedStdio"]

_CHUNK = 65536
_LAST_WAIT = 0.25
"""Seconds that killed processes and the threads at their pipes get to end when a deadline has passed already."""


class EndableProcess(Protocol):
    """A process that can be waited for by several threads, and ended with all that it started."""

    @property
    def pid(self) -> int:
        """Its id."""

    @property
    def exit_code(self) -> Optional[int]:
        """As ``subprocess`` gives it; None while it runs."""

    def wait(self, deadline: Deadline) -> bool:
        """Wait for its end; False if the deadline came first."""

    def end_all(self) -> None:
        """End it and all that it started, at once."""

    def release(self) -> None:
        """Give back what the system holds for it."""


class ThreadedStdio(StdioBase):
    """A :class:`StdioBase` over blocking pipes. What remains to be said is how a process is started."""

    _process: Optional[EndableProcess] = None
    _outgoing: Optional[ThreadedOutgoing] = None
    _stdout = _stderr = -1
    _reader: Optional[int] = None

    def _renew_locks(self) -> None:
        super()._renew_locks()
        self._reader_gone = threading.Event()
        self._stderr_gone = threading.Event()

    def _start_process(self, prepared: Prepared, stdin: int, stdout: int, stderr: int) -> EndableProcess:
        raise NotImplementedError

    @property
    def _child(self) -> Optional[EndableProcess]:
        return self._process

    def _start(self, prepared: Prepared) -> None:
        theirs: List[int] = []
        ours: List[int] = []
        try:
            for writes in (True, False, False):
                ends = os.pipe()
                ours.append(ends[writes])
                theirs.append(ends[not writes])
            self._process = self._start_process(prepared, *theirs)
        except OSError as error:
            raise ConnectFailed("cannot start the server: %s" % error.strerror, server=self._server) from error
        finally:
            for descriptor in theirs:
                os.close(descriptor)
            if self._process is None:
                for descriptor in ours:
                    os.close(descriptor)
        stdin, self._stdout, self._stderr = ours
        outgoing = ThreadedOutgoing(stdin, self._backlog, patience=self._graces.silence, server=self._server)
        outgoing.start()
        self._outgoing = outgoing
        self.send = outgoing.send  # type: ignore[method-assign]

    def run(self, sink: Sink) -> None:
        """The body of the reader thread."""
        with self._state:
            process, outgoing, output = self._process, self._outgoing, self._output
            if process is None or outgoing is None or output is None or self._closing:
                return
            self._reader = threading.get_ident()
        helpers = [
            threading.Thread(target=work, args=(sink,), name="mcpsync-%s-%s" % (self._server, role), daemon=True)
            for role, work in (("stderr", self._read_stderr), ("waiter", self._wait_for_end))
        ]
        for helper in helpers:
            helper.start()
        try:
            loss = self._read_stdout(sink, process, output)
            if loss is not None and not self._closing:
                outgoing.fail(loss)
                sink.lost(loss)
        finally:
            self._give_back_stdout()
            self._reader_gone.set()

    def abort(self, request: Request, reason: str) -> bool:
        """True if the frame of the request had not begun to travel: the server never heard of it."""
        return self._outgoing is not None and self._outgoing.abort(request)

    def _read_stdout(self, sink: Sink, process: EndableProcess, output: ServerOutput) -> Optional[McpError]:
        try:
            while True:
                chunk = os.read(self._stdout, _CHUNK)
                if not chunk:
                    break
                output.feed(chunk, sink)
        except MessageTooLarge as error:
            return error
        if not process.wait(Deadline(self._graces.silence)):
            return output.gone("the server closed its standard output, but it still runs")
        self._stderr_gone.wait(self._graces.silence)
        return output.exited(process.exit_code)

    def _read_stderr(self, sink: Sink) -> None:
        output = self._output
        try:
            while output is not None:
                chunk = os.read(self._stderr, _CHUNK)
                if not chunk:
                    break
                output.stderr(chunk, sink)
            if output is not None:
                output.stderr_ended(sink)
        finally:
            self._give_back_stderr()
            self._stderr_gone.set()

    def _wait_for_end(self, sink: Sink) -> None:
        """The server's end is the end of all that it started, and so of the pipes."""
        if self._process is not None:
            self._process.wait(Deadline(None))
            self._process.end_all()

    def _end(self, deadline: Deadline) -> None:
        process, outgoing = self._process, self._outgoing
        if process is None:
            return
        if outgoing is not None:
            outgoing.flush(deadline.sooner(self._graces.flush))
            outgoing.close()
        budget = deadline.remaining()
        grace = self._graces.eof if budget is None else min(self._graces.eof, 0.5 * budget)
        process.wait(deadline.sooner(grace))
        process.end_all()
        last = Deadline.at_moment(max(deadline.at, Deadline(_LAST_WAIT).at))
        process.wait(last)
        process.release()
        if outgoing is not None:
            outgoing.join(last)
        with self._state:
            reader = self._reader
        if reader is None:
            self._give_back_stdout()
            self._give_back_stderr()
        elif reader != threading.get_ident():
            self._reader_gone.wait(last.remaining())
            self._stderr_gone.wait(last.remaining())

    # A descriptor is closed by the thread that reads it, or, if none ever did, by who closes the connection.

    def _give_back_stdout(self) -> None:
        descriptor, self._stdout = self._stdout, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _give_back_stderr(self) -> None:
        descriptor, self._stderr = self._stderr, -1
        if descriptor >= 0:
            os.close(descriptor)
