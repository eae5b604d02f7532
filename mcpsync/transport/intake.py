"""What comes in on a stream: frames, one to a line, and whatever else a server writes there."""

from __future__ import annotations

from mcpsync.core.framing import LineFramer
from mcpsync.errors import ConnectionLost, McpError, MessageTooLarge
from mcpsync.transport.base import Sink
from mcpsync.transport.masking import Mask

__all__ = ["FrameIntake", "excerpt"]

_EXCERPT = 200
_OPENING_BRACE = 0x7B
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class FrameIntake:
    """The incoming half of one stream. Fed by one thread at a time.

    :param server: its name
    :param limit: the longest message that is taken, in bytes
    :param mask: hides secrets
    :param stream: what the stream is called in messages
    """

    def __init__(self, server: str, limit: int, mask: Mask, stream: str) -> None:
        self._server = server
        self._mask = mask
        self._stream = stream
        self._framer = LineFramer(limit)
        self._last_noise = ""

    def feed(self, chunk: bytes, sink: Sink) -> None:
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

    def masked(self, text: str) -> str:
        """A text without the secrets that this server was given."""
        return self._mask.text(text)

    def gone(self, how: str) -> McpError:
        """The error for a server that cannot be talked with any more."""
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
                "write nothing but messages to %s: %s" % (self._stream, self._last_noise),
            )
        else:
            sink.warn("noise", "skipped a line of %s that is no message: %s" % (self._stream, self._last_noise))

    def _last_words(self) -> str:
        # Many a program explains itself on the wrong stream.
        return "; %s: %s" % (self._stream, self._last_noise) if self._last_noise else ""


def excerpt(line: bytes) -> str:
    """The start of a line, to be shown: at most 200 characters, control characters escaped."""
    text = line[: 4 * _EXCERPT].decode("utf-8", "replace")
    shown = "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text[:_EXCERPT])
    return shown[:_EXCERPT] + ("…" if len(shown) > _EXCERPT or len(text) > _EXCERPT else "")
