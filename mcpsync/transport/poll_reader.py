"""The reader thread of a stdio connection on POSIX systems: beside messages, stderr and the end of the process."""

from __future__ import annotations

import os
import select
from typing import Any, Optional

from mcpsync.errors import McpError
from mcpsync.transport.frame_reader import CHUNK, FrameReader
from mcpsync.transport.process import ServerProcess
from mcpsync.transport.server_output import ServerOutput

__all__ = ["PollReader"]

_LAST_READ = 4 * 1024 * 1024
"""Bytes of each stream that are still read after the end of the process; a pipe holds less, but one that something
else keeps writing to never runs dry."""


class PollReader(FrameReader):
    """Reads until the server is gone or the connection is closed.

    :param stderr: descriptor of the server's stderr
    :param process: the server
    :param output: takes what it writes
    :param options: as for :class:`FrameReader`
    """

    def __init__(self, *, stderr: int, process: ServerProcess, output: ServerOutput, **options: Any) -> None:
        super().__init__(intake=output, **options)
        self._stderr = stderr
        self._process = process
        self._output = output
        self._exited = False

    def _watch(self) -> None:
        super()._watch()
        for descriptor in (self._stderr, self._process.exit_notice):
            self._poller.register(descriptor, select.POLLIN)

    def _look_at(self, descriptor: int) -> None:
        if descriptor == self._process.exit_notice:
            self._exited = True
        elif descriptor == self._stderr:
            self._read_stderr()
        else:
            super()._look_at(descriptor)

    def _read_stderr(self) -> None:
        try:
            chunk = os.read(self._stderr, CHUNK)
        except BlockingIOError:
            return
        if chunk:
            self._output.stderr(chunk, self._sink)
        else:
            self._poller.unregister(self._stderr)
            self._output.stderr_ended(self._sink)

    def _incoming_ended(self) -> None:
        self._poller.unregister(self._incoming)
        self._half_close("the server closed its standard output")

    def _is_over(self) -> bool:
        return self._exited or self._leaving()

    def _outcome(self) -> Optional[McpError]:
        # Who closes may have seen the end first; what the server wrote before it is still there to be read.
        return self._end_of_process() if self._exited or self._process.ended else None

    def _out_of_patience(self, half_closed: str) -> McpError:
        return self._output.gone(half_closed + ", but it still runs")

    def _end_of_process(self) -> McpError:
        """Take what is there to be read now. A grandchild that holds the pipes does not keep the connection."""
        self._process.has_ended()
        left = _LAST_READ
        try:
            while left > 0:
                chunk = os.read(self._incoming, CHUNK)
                if not chunk:
                    break
                left -= len(chunk)
                self._output.feed(chunk, self._sink)
        except BlockingIOError:
            pass
        left = _LAST_READ
        try:
            while left > 0:
                chunk = os.read(self._stderr, CHUNK)
                if not chunk:
                    break
                left -= len(chunk)
                self._output.stderr(chunk, self._sink)
        except BlockingIOError:
            pass
        self._output.stderr_ended(self._sink)
        return self._output.exited(self._process.exit_code)
