"""The last of what a server wrote to stderr: lines, bounded, without secrets."""

from __future__ import annotations

from collections import deque
from typing import Deque, List, Tuple

from mcpsync.transport.masking import Mask

__all__ = ["StderrTail"]

_LINES = 40
_CHARACTERS = 8192
_LINE_CHARACTERS = 2048
_MESSAGE_CHARACTERS = 600
_WIDEST_CHARACTER = 4


class StderrTail:
    """Collects chunks, gives back lines, remembers the last ones.

    A line beyond 2,048 characters is cut, so that a server that writes megabytes without a line end costs nothing.
    One thread feeds; any thread may read ``text`` and ``brief``, which see what the last feed published.

    :param mask: hides the secrets, in the lines given back too
    """

    def __init__(self, mask: Mask) -> None:
        self._mask = mask
        self._lines: Deque[str] = deque(maxlen=_LINES)
        self._characters = 0
        self._unfinished = bytearray()
        self._dropped = 0
        self._published: Tuple[str, ...] = ()

    def feed(self, chunk: bytes) -> List[str]:
        """Take the next bytes.

        :returns: the lines that are complete now, decoded (what is no UTF-8 is replaced)
        """
        *ended, rest = chunk.split(b"\n")
        complete = []
        for piece in ended:
            self._extend(piece)
            complete.append(self._finish())
        self._extend(rest)
        self._publish()
        return complete

    def end(self) -> List[str]:
        """The stream is over: the unfinished line, if there is one, is complete now."""
        complete = [self._finish()] if self._unfinished else []
        self._publish()
        return complete

    @property
    def text(self) -> str:
        """The last 40 lines, at most 8,192 characters of them, the unfinished one included."""
        return "\n".join(self._published)[-_CHARACTERS:]

    @property
    def brief(self) -> str:
        """The end of it on one line, short enough for an error message."""
        flat = " | ".join(line.strip() for line in self.text.splitlines() if line.strip())
        return flat if len(flat) <= _MESSAGE_CHARACTERS else "…" + flat[-_MESSAGE_CHARACTERS:]

    def _publish(self) -> None:
        unfinished = (self._shown(bytes(self._unfinished), self._dropped),) if self._unfinished else ()
        self._published = (*self._lines, *unfinished)

    def _extend(self, piece: bytes) -> None:
        # Long enough that a secret which begins before the cut is whole, and is seen by the mask.
        keep = (_LINE_CHARACTERS + self._mask.longest) * _WIDEST_CHARACTER
        room = max(0, keep - len(self._unfinished))
        self._unfinished += piece[:room]
        self._dropped += max(0, len(piece) - room)

    def _finish(self) -> str:
        line = self._shown(bytes(self._unfinished), self._dropped)
        self._unfinished.clear()
        self._dropped = 0
        if line:
            self._remember(line)
        return line

    def _shown(self, raw: bytes, dropped: int) -> str:
        line = self._mask.text(raw.decode("utf-8", "replace").rstrip("\r"))
        if len(line) > _LINE_CHARACTERS or dropped:
            more = dropped + max(0, len(line) - _LINE_CHARACTERS)
            line = "%s… [%d more]" % (line[:_LINE_CHARACTERS], more)
        return line

    def _remember(self, line: str) -> None:
        if len(self._lines) == _LINES:
            self._characters -= len(self._lines[0])
        self._lines.append(line)
        self._characters += len(line)
        while self._characters > _CHARACTERS and len(self._lines) > 1:
            self._characters -= len(self._lines.popleft())
