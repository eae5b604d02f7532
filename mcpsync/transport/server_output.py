"""What a server writes: frames on stdout, anything on stderr; and what is said of it when the connection ends."""

from __future__ import annotations

import logging
import signal
from typing import Callable, Iterable, Optional

from mcpsync.core.framing import LineFramer
from mcpsync.errors import ConnectionLost, McpError, MessageTooLarge, ProcessExited, flat
from mcpsync.transport.base import Sink
from mcpsync.transport.masking import Mask
from mcpsync.transport.stderr_tail import StderrTail

__all__ = ["ServerOutput", "describe_exit", "excerpt"]

_EXCERPT = 200
_OPENING_BRACE = 0x7B
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class ServerOutput:
    """The two streams of one server. Fed by one thread at a time.

    :param server: its name
    :param limit: the longest message that is taken, in bytes
    :param mask: hides secrets
    :param stderr: gets each line of stderr; None: the logger ``mcpsync.server.<name>``, at DEBUG
    """

    def __init__(self, server: str, limit: int, mask: Mask, stderr: Optional[Callable[[str], None]]) -> None:
        self.tail = StderrTail(mask)
        self._server = server
        self._mask = mask
        self._framer = LineFramer(limit)
        self._stderr = stderr
        self._log = logging.getLogger("mcpsync.server." + server)
        self._last_noise = ""

    def stdout(self, chunk: bytes, sink: Sink) -> None:
        """Frames go to the sink, anything else is skipped with a warning.

        :raises MessageTooLarge: a line is longer than the limit
        """
        try:
            lines = self._framer.feed(chunk)
        except MessageTooLarge as error:
            for line in self._framer.salvaged:
                self._line(line, sink)
            error.located(self._server)
            raise
        for line in lines:
            if line[0] == _OPENING_BRACE:
                sink.frame(line, None)
            else:
                self._line(line, sink)

    def stderr(self, chunk: bytes, sink: Sink) -> None:
        """Take the next bytes of stderr."""
        self._hand_on(self.tail.feed(chunk), sink)

    def stderr_ended(self, sink: Sink) -> None:
        """There will be no more of stderr."""
        self._hand_on(self.tail.end(), sink)

    def masked(self, text: str) -> str:
        """A text without the secrets that this server was given."""
        return self._mask.text(text)

    def exited(self, code: Optional[int]) -> ProcessExited:
        """The error that says how the process ended and what it said before."""
        text = describe_exit(code) + self._last_words()
        return ProcessExited(text, exit_code=code, stderr_tail=self.tail.text, server=self._server)

    def gone(self, how: str) -> McpError:
        """The error for a server that runs, but that cannot be talked with any more."""
        return ConnectionLost(how + self._last_words(), server=self._server)

    def _line(self, line: bytes, sink: Sink) -> None:
        bare = line.lstrip()
        if bare.startswith(_BYTE_ORDER_MARK):
            bare = bare[len(_BYTE_ORDER_MARK) :].lstrip()
        # A batch is an array of objects; what else begins with a bracket is a log line: [INFO] ...
        if bare[:1] == b"{" or (bare[:1] == b"[" and bare[1:].lstrip()[:1] == b"{"):
            sink.frame(bare, None)
            return
        self._last_noise = self._mask.text(excerpt(line))
        if b'"jsonrpc"' in line:
            sink.warn(
                "glued",
                "other output stands in front of a message on the same line, so the message is lost; the server must "
                "write nothing but messages to stdout: " + self._last_noise,
            )
        else:
            sink.warn("noise", "skipped a line of stdout that is no message: " + self._last_noise)

    def _hand_on(self, lines: Iterable[str], sink: Sink) -> None:
        if self._stderr is None:
            if self._log.isEnabledFor(logging.DEBUG):
                for line in lines:
                    self._log.debug("%s", flat(line))
            return
        for line in lines:
            try:
                self._stderr(line)
            except Exception as error:  # a user's function: its faults must not end the connection
                sink.warn("stderr", "the function that takes the lines of stderr raised %r" % error)

    def _last_words(self) -> str:
        if self.tail.brief:
            return "; stderr: " + self.tail.brief
        # Many a program explains itself on the wrong stream.
        return "; stdout: " + self._last_noise if self._last_noise else ""


def describe_exit(code: Optional[int]) -> str:
    """How a process ended, in words."""
    if code is None:
        return "the server process ended (its exit code was taken by another part of this program)"
    if code >= 0:
        return "the server process exited with code %d" % code
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = "unknown"
    return "the server process was killed by signal %d (%s)" % (-code, name)


def excerpt(line: bytes) -> str:
    """The start of a line, to be shown: at most 200 characters, control characters escaped."""
    text = line[: 4 * _EXCERPT].decode("utf-8", "replace")
    shown = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text[:_EXCERPT])
    return shown[:_EXCERPT] + ("…" if len(shown) > _EXCERPT or len(text) > _EXCERPT else "")
