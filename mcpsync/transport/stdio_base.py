"""What a stdio connection is on every system: a command, a process, its output; opened once, closed once.

Specification: Basic / Transports / stdio; shutdown: Basic / Lifecycle.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Callable, Mapping, Optional, Protocol, Sequence

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, ConnectTimeout
from mcpsync.shield import Event, shielded
from mcpsync.transport.base import Frame, Request
from mcpsync.transport.fork_guard import no_fork
from mcpsync.transport.server_output import ServerOutput
from mcpsync.transport.stdio_server import DEFAULT_LIMIT, Graces, Prepared, ServerCommand

__all__ = ["Process", "StdioBase"]


class Process(Protocol):
    """What is known of a server's process."""

    @property
    def pid(self) -> int:
        """Its id."""

    @property
    def exit_code(self) -> Optional[int]:
        """As ``subprocess`` gives it; None while it runs, or when nobody can know."""


class StdioBase:
    """A connection to a server that is started for it. One object, one start.

    :param command: program and arguments; never handed to a shell
    :param env: variables for the server, laid over those that ``env_mode`` lets through
    :param env_mode: ``safe`` (what programs need, no secrets), ``inherit`` (all of ours), ``none``
    :param cwd: working directory of the server; None: ours
    :param path_prepend: folders put in front of the server's PATH
    :param server_name: for errors, logs and the names of threads
    :param stderr: takes each line that the server writes to stderr; runs on the thread that reads it, so it must be
        quick; None: the logger ``mcpsync.server.<name>`` at DEBUG
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
        self._output: Optional[ServerOutput] = None
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
    def _child(self) -> Optional[Process]:
        raise NotImplementedError

    def _start(self, prepared: Prepared) -> None:
        """Start the process; what was made before a failure is left to ``_end``."""
        raise NotImplementedError

    def _end(self, deadline: Deadline) -> None:
        """End the process and give everything back; may be called when there is nothing."""
        raise NotImplementedError

    @property
    def pid(self) -> Optional[int]:
        """Process id of the server; None before ``open``."""
        return self._child.pid if self._child is not None else None

    @property
    def exit_code(self) -> Optional[int]:
        """How the process ended: as ``subprocess`` gives it; None while it runs, or when nobody can know."""
        return self._child.exit_code if self._child is not None else None

    @property
    def stderr_tail(self) -> str:
        """The last lines that the server wrote to stderr, bounded, without secrets."""
        return self._output.tail.text if self._output is not None else ""

    def masked(self, text: str) -> str:
        """A text without the secrets of the server's environment and command line."""
        return self._output.masked(text) if self._output is not None else text

    def open(self, deadline: Deadline) -> None:
        """Start the process.

        :raises ConnectFailed: it cannot be started, or was closed meanwhile; nothing is left behind
        :raises ConnectTimeout: the deadline has passed already
        """
        claimed = started = closed = False
        try:
            with self._state:
                if self._used or self._closing:
                    raise ConnectFailed("this transport was used already: build a new one", server=self._server)
                self._used = self._opening = claimed = True
            if deadline.expired:
                raise ConnectTimeout("no time left to start the server", server=self._server)
            prepared = self._command.prepare()
            self._output = ServerOutput(self._server, self._max_message, prepared.mask, self._stderr_sink)
            shielded(lambda: self._start_unforked(prepared))
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

    def _start_unforked(self, prepared: Prepared) -> None:
        with no_fork():
            self._start(prepared)

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
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

    def close(self, deadline: Deadline) -> None:
        """End the server and all that it started: end of file, SIGTERM, SIGKILL, each after a grace.

        :param deadline: for the whole; SIGKILL and what follows may take half a second more
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
        """In a forked child: let go of the parent's process and pipes without touching them."""
        if os.getpid() == self._owner:
            return
        self._owner = os.getpid()
        self._renew_locks()
        self._closing = True
        self._opening = False
        self._opened.set()
        self._closed.set()
