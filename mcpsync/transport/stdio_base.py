"""What a stdio connection is on every system: a command, a process, its output.

Specification: Basic / Transports / stdio; shutdown: Basic / Lifecycle.
"""

from __future__ import annotations

from typing import Any, Callable, Mapping, Optional, Protocol, Sequence

from mcpsync.deadline import Deadline
from mcpsync.shield import shielded
from mcpsync.transport.fork_guard import no_fork
from mcpsync.transport.server_output import ServerOutput
from mcpsync.transport.stdio_server import DEFAULT_LIMIT, Graces, Prepared, ServerCommand
from mcpsync.transport.stream_base import StreamBase

__all__ = ["Process", "StdioBase"]


class Process(Protocol):
    """What is known of a server's process."""

    @property
    def pid(self) -> int:
        """Its id."""

    @property
    def exit_code(self) -> Optional[int]:
        """As ``subprocess`` gives it; None while it runs, or when nobody can know."""


class StdioBase(StreamBase):
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
    :param graces: how long the server is waited for, step by step, when the connection is closed: end of file, SIGTERM,
        SIGKILL
    :raises ValueError: an unknown ``env_mode``
    """

    _STREAM = "a stdio connection"
    _TO_OPEN = "start the server"

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
        super().__init__(server_name, max_message=max_message, backlog=backlog, graces=graces)
        self._command = ServerCommand(
            command, env=env, env_mode=env_mode, cwd=cwd, path_prepend=path_prepend, server=server_name
        )
        self._stderr_sink = stderr
        self._output: Optional[ServerOutput] = None

    @property
    def _intake(self) -> Optional[ServerOutput]:
        return self._output

    @property
    def _child(self) -> Optional[Process]:
        raise NotImplementedError

    def _start(self, prepared: Prepared) -> None:
        """Start the process; what was made before a failure is left to ``_end``."""
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

    def _open(self, deadline: Deadline) -> None:
        prepared = self._command.prepare()
        self._output = ServerOutput(self._server, self._max_message, prepared.mask, self._stderr_sink)
        shielded(lambda: self._start_unforked(prepared))

    def _start_unforked(self, prepared: Prepared) -> None:
        with no_fork():
            self._start(prepared)
