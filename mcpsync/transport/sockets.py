"""Frames over a socket, or over a pair of pipes: newline-delimited messages to a server that runs already.

On POSIX systems, as it polls what it reads from. The rules are those of stdio, without a process: what the server
sends is a line per message, a frame is written whole or not at all, and the end of the stream ends the connection.
"""

from __future__ import annotations

import os
import socket
import sys
import time
from contextlib import suppress
from typing import Any, Callable, Optional, Tuple, Union

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectTimeout, McpError
from mcpsync.shield import shielded
from mcpsync.transport.backlog import lets_go
from mcpsync.transport.base import Frame, Request, Sink
from mcpsync.transport.fork_guard import no_fork
from mcpsync.transport.frame_reader import FrameReader
from mcpsync.transport.intake import FrameIntake
from mcpsync.transport.masking import Mask
from mcpsync.transport.outgoing import Outgoing
from mcpsync.transport.polled import PolledStream
from mcpsync.transport.stdio_server import DEFAULT_LIMIT, Graces

assert sys.platform != "win32"

__all__ = ["Dial", "SocketTransport", "dial_unix"]

Dial = Callable[[Deadline], Union[socket.socket, Tuple[Any, Any]]]
"""Makes a connection by a deadline: a connected socket, or a pair of file objects to read from and to write to."""

_GRACES = Graces(eof=0.25)
_CROWDED_PAUSE = 0.02
_WRITES_WHOLE = sys.platform == "linux"
"""A Unix socket of Linux takes a write of up to PIPE_BUF bytes whole or not at all, as a pipe does everywhere."""


def dial_unix(path: str) -> Dial:
    """Connects to a Unix socket.

    :param path: of the socket
    """

    def dial(deadline: Deadline) -> socket.socket:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            while True:
                left = deadline.remaining()
                made.settimeout(left if left is None else max(left, 0.001))  # 0 would not wait at all
                try:
                    made.connect(path)
                    return made
                except BlockingIOError:  # Linux: too many wait to be accepted already
                    if deadline.expired:
                        raise
                    time.sleep(_CROWDED_PAUSE)
        except (BlockingIOError, socket.timeout) as error:
            made.close()
            raise ConnectTimeout("the server on the socket %s accepts no connection" % path) from error
        except OSError as error:
            made.close()
            why = error.strerror or error
            raise ConnectFailed("cannot connect to the socket %s: %s" % (path, why)) from error
        except BaseException:
            made.close()
            raise

    return dial


class SocketTransport(PolledStream):
    """A connection to a server over a socket, or over a pair of pipes. One object, one connection.

    :param dial: makes the connection, on the thread that opens it; what it gives is owned by the transport from then on
        and must not be used or closed by anybody else
    :param server_name: for errors, logs and the names of threads
    :param max_message: the longest message that is taken, in bytes; a longer one ends the connection
    :param backlog: bytes that may wait to be sent to a server that does not read
    """

    _STREAM = "a socket connection"

    def __init__(
        self,
        dial: Dial,
        server_name: str = "server",
        *,
        max_message: int = DEFAULT_LIMIT,
        backlog: int = DEFAULT_LIMIT,
    ) -> None:
        super().__init__(server_name, max_message=max_message, backlog=backlog, graces=_GRACES)
        self._dial = dial
        self._incoming = -1
        self._is_socket = False
        self._lines: Optional[FrameIntake] = None

    @property
    def _intake(self) -> Optional[FrameIntake]:
        return self._lines

    def _open(self, deadline: Deadline) -> None:
        try:
            ends: Any = self._dial(deadline)
            shielded(lambda: self._take_unforked(ends))
        except McpError as error:
            raise error.located(self._server) from error.__cause__
        except socket.timeout as error:
            raise ConnectTimeout("the server accepts no connection", server=self._server) from error
        except OSError as error:
            why = error.strerror or error
            raise ConnectFailed("cannot connect: %s" % why, server=self._server) from error

    def _take_unforked(self, ends: Any) -> None:
        with no_fork():
            self._take(ends)

    def _take(self, ends: Any) -> None:
        """Make the ends ours."""
        self._is_socket = isinstance(ends, socket.socket)
        whole = not self._is_socket or (ends.family == getattr(socket, "AF_UNIX", None) and _WRITES_WHOLE)
        if self._is_socket:
            if hasattr(ends, "unwrap"):
                ends.close()
                raise ConnectFailed("a TLS socket cannot be read by its descriptor", server=self._server)
            self._incoming = ends.detach()
            self._descriptors.append(self._incoming)
            out = os.dup(self._incoming)
        else:
            reads, writes = ends
            self._incoming = os.dup(reads.fileno())
            self._descriptors.append(self._incoming)
            out = os.dup(writes.fileno())
        self._descriptors.append(out)
        if not self._is_socket:
            for end in {reads, writes}:
                end.close()
        waker = self._waker()
        for descriptor in self._descriptors:
            os.set_blocking(descriptor, False)
        self._lines = _SocketIntake(self._server, self._max_message, Mask({}), "the stream")
        make = _DirectOutgoing if whole else _ReadersOutgoing
        self._write_with(make(out, waker, self._backlog, patience=self._graces.silence, server=self._server))

    def _new_reader(self, sink: Sink) -> Optional[FrameReader]:
        if self._lines is None or self._outgoing is None:
            return None
        return _SocketReader(
            incoming=self._incoming,
            wake_up=self._wake_up,
            outgoing=self._outgoing,
            intake=self._lines,
            sink=sink,
            leaving=lambda: self._leaving,
            closing=lambda: self._closing,
            silence=self._graces.silence,
        )

    def _end(self, deadline: Deadline) -> None:
        try:
            if self._outgoing is not None and self._reads_elsewhere():
                try:
                    self._flush(deadline)
                finally:
                    self._end_output()
                # What the server still says is read: with bytes unread a close is a reset, which can cost the server
                # what was sent last.
                self._reader_gone.wait(deadline.sooner(self._graces.eof).remaining())
        finally:
            self._end_output()
            self._let_reader_go(deadline)

    def _end_output(self) -> None:
        """The end of the stream, for the server."""
        if self._outgoing is not None:
            self._outgoing.close()
            self._outgoing.wake()
        with self._state:
            if self._is_socket and self._incoming >= 0:
                with suppress(OSError), socket.socket(fileno=os.dup(self._incoming)) as same:
                    same.shutdown(socket.SHUT_WR)

    def _release(self) -> None:
        super()._release()
        self._incoming = -1


class _DirectOutgoing(Outgoing):
    BROKEN = "the server closed the connection"


class _ReadersOutgoing(_DirectOutgoing):
    """For what may take a part of a small frame: then the reader alone writes, whom no Ctrl-C can strike."""

    @lets_go
    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send one frame; see :meth:`Transport.send <mcpsync.transport.base.Transport.send>`."""
        self._append(frame.data + b"\n", request, deadline)


class _SocketIntake(FrameIntake):
    def _line(self, line: bytes, sink: Sink) -> None:
        if line.startswith(b"HTTP/"):
            raise ConnectFailed(
                "the server on this socket speaks HTTP: give its path with the URL, as unix:///path/to.sock#/mcp",
                server=self._server,
                permanent=True,
            )
        super()._line(line, sink)

    def ended(self) -> McpError:
        """The stream is over."""
        cut = ", in the middle of a message" if self._framer.pending else ""
        return self.gone("the server closed the connection" + cut)


class _SocketReader(FrameReader):
    _at_end = False

    def _incoming_ended(self) -> None:
        self._at_end = True

    def _is_over(self) -> bool:
        return self._at_end or self._leaving()

    def _outcome(self) -> Optional[McpError]:
        return self._intake.ended() if self._at_end and isinstance(self._intake, _SocketIntake) else None
