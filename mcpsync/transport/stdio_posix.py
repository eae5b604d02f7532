"""A server as a child process that speaks over its stdin and stdout, on POSIX systems.

Specification: Basic / Transports / stdio; shutdown: Basic / Lifecycle.
"""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from typing import Any, Callable, List, Mapping, Optional, Sequence

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, ConnectTimeout
from mcpsync.transport.base import Frame, Request, Sink
from mcpsync.transport.outgoing import Outgoing
from mcpsync.transport.poll_reader import PollReader
from mcpsync.transport.process import Graces, ServerProcess
from mcpsync.transport.server_output import ServerOutput
from mcpsync.transport.stdio_server import DEFAULT_LIMIT, ServerCommand

__all__ = ["PosixStdio"]

_LAST_WAIT = 0.25
"""Seconds that the reader gets to return when the deadline of a close has passed already."""


class PosixStdio:
    """A connection to a server that is started for it. One object, one start.

    :param command: program and arguments; never handed to a shell
    :param env: variables for the server, laid over those that ``env_mode`` lets through
    :param env_mode: ``safe`` (what programs need, no secrets), ``inherit`` (all of ours), ``none``
    :param cwd: working directory of the server; None: ours
    :param path_prepend: folders put in front of the server's PATH
    :param server_name: for errors, logs and the names of threads
    :param stderr: takes each line that the server writes to stderr; runs on the reader thread, so it must be quick;
        None: the logger ``mcpsync.server.<name>`` at DEBUG
    :param max_message: the longest message that is taken, in bytes; a longer one ends the connection
    :param backlog: bytes that may wait to be sent to a server that does not read
    :param graces: how long the server is waited for, step by step, when the connection is closed
    :raises ValueError: an unknown ``env_mode``
    """

    exchange_like = False

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Optional[Mapping[str, str]] = None,
        env_mode: str = "safe",
        cwd: Optional[Any] = None,
        path_prepend: Sequence[str] = (),
        server_name: str = "server",
        stderr: Optional[Callable[[str], None]] = None,
        max_message: int = DEFAULT_LIMIT,
        backlog: int = DEFAULT_LIMIT,
        graces: Optional[Graces] = None,
    ) -> None:
        self._command = ServerCommand(
            command, env=env, env_mode=env_mode, cwd=cwd, path_prepend=path_prepend, server=server_name
        )
        self._server = server_name
        self._stderr_sink = stderr
        self._max_message = max_message
        self._backlog = backlog
        self._graces = graces if graces is not None else Graces()
        self._descriptors: List[int] = []
        self._stdout = self._stderr = self._wake_up = self._waker = -1
        self._process: Optional[ServerProcess] = None
        self._outgoing: Optional[Outgoing] = None
        self._output: Optional[ServerOutput] = None
        self._owner = os.getpid()
        self._closing = False
        self._leaving = False
        self._reset()

    def _reset(self) -> None:
        # Guards which thread reads and who gives the descriptors back: the last that needs them. Reentrant, for the
        # garbage collector may come in between.
        self._state = threading.RLock()
        self._reader: Optional[int] = None
        self._reader_gone = threading.Event()
        self._closed = threading.Event()

    @property
    def pid(self) -> Optional[int]:
        """Process id of the server, and of its process group; None before ``open``."""
        return self._process.pid if self._process is not None else None

    @property
    def exit_code(self) -> Optional[int]:
        """How the process ended: as ``subprocess`` gives it; None while it runs, or when nobody can know."""
        return self._process.exit_code if self._process is not None else None

    @property
    def stderr_tail(self) -> str:
        """The last lines that the server wrote to stderr, bounded, without secrets."""
        return self._output.tail.text if self._output is not None else ""

    def open(self, deadline: Deadline) -> None:
        """Start the process.

        :raises ConnectFailed: it cannot be started; nothing is left behind
        :raises ConnectTimeout: the deadline has passed already
        """
        if self._process is not None or self._closing:
            raise ConnectFailed("this transport was used already: build a new one", server=self._server)
        if deadline.expired:
            raise ConnectTimeout("no time left to start the server", server=self._server)
        prepared = self._command.prepare()
        theirs: List[int] = []
        try:
            stdin = self._pipe(theirs, ours=1)
            self._stdout = self._pipe(theirs, ours=0)
            self._stderr = self._pipe(theirs, ours=0)
            self._wake_up, self._waker = os.pipe()
            self._descriptors += (self._wake_up, self._waker)
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
            if self._process is None:
                for descriptor in self._descriptors:
                    os.close(descriptor)
                self._descriptors = []
        self._descriptors.remove(stdin)  # the one that writes to it closes it
        self._output = ServerOutput(self._server, self._max_message, prepared.mask, self._stderr_sink)
        self._outgoing = Outgoing(stdin, self._backlog, self._wake, patience=self._graces.silence, server=self._server)
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

    def listen(self, frame: Frame, deadline: Deadline) -> None:
        """A stdio connection is one long stream already.

        :raises ConnectionLost: always
        """
        raise ConnectionLost("a stdio connection has no stream of its own to listen on", server=self._server)

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send one frame; never waits for the server, unless the backlog is full.

        :raises ProcessExited: the server's process has ended
        :raises ConnectionLost: the connection is gone, or was not opened
        :raises Overloaded: the server does not read, and the backlog had no room until the deadline
        :raises MessageTooLarge: the frame alone is longer than the backlog may be
        """
        raise ConnectionLost("the connection is not open", server=self._server)

    def abort(self, request: Request, reason: str) -> bool:
        """True if the frame of the request had not begun to travel: the server never heard of it."""
        return self._outgoing is not None and self._outgoing.abort(request)

    def close(self, deadline: Deadline) -> None:
        """End the server and all that it started: end of file, SIGTERM, SIGKILL, each after a grace.

        :param deadline: for the whole; SIGKILL and what follows may take half a second more
        """
        if os.getpid() != self._owner:
            self.after_fork()
        with self._state:
            first = not self._closing
            self._closing = True
        if not first:
            self._closed.wait(deadline.remaining())
            return
        try:
            self._shut_down(deadline)
        finally:
            self._let_reader_go(deadline)
            self._closed.set()

    def after_fork(self) -> None:
        """In a forked child: lay the null device over the parent's descriptors and end here."""
        if os.getpid() == self._owner:
            return
        self._owner = os.getpid()
        self._reset()
        if self._process is not None:
            self._process.forget()
            self._descriptors.append(self._process.exit_notice)
        if self._outgoing is not None:
            if self._outgoing.descriptor >= 0:
                self._descriptors.append(self._outgoing.descriptor)
            self._outgoing.forget(
                ConnectionLost(
                    "this connection belongs to the parent process: open one of your own", server=self._server
                )
            )
        _lay_null_device([descriptor for descriptor in self._descriptors if descriptor >= 0])
        self._closing = self._leaving = True
        self._closed.set()

    def _pipe(self, theirs: List[int], *, ours: int) -> int:
        ends = os.pipe()
        self._descriptors.append(ends[ours])
        theirs.append(ends[1 - ours])
        return ends[ours]

    def _wake(self) -> None:
        with self._state:
            if self._waker >= 0:
                with suppress(BlockingIOError):  # full of wake-ups: it will wake
                    os.write(self._waker, b"\0")

    def _shut_down(self, deadline: Deadline) -> None:
        process, outgoing = self._process, self._outgoing
        if process is None or outgoing is None:
            return
        with self._state:
            read_elsewhere = self._reader is not None and self._reader != threading.get_ident()
        if read_elsewhere:
            outgoing.flush(deadline.sooner(self._graces.flush))
        process.shut_down(
            deadline, self._graces, self._close_stdin, [] if read_elsewhere else [self._stdout, self._stderr]
        )

    def _close_stdin(self) -> None:
        assert self._outgoing is not None
        self._outgoing.close()
        # A reader that polls the descriptor right now keeps it open until it looks again.
        self._wake()

    def _let_reader_go(self, deadline: Deadline) -> None:
        """Tell the reader to return; whoever of the two is last gives the descriptors back."""
        with self._state:
            self._leaving = True
            waiting = self._reader is not None and self._reader != threading.get_ident()
        if waiting:
            self._wake()
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
        descriptors, self._descriptors = self._descriptors, []
        self._stdout = self._stderr = self._wake_up = self._waker = -1
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
