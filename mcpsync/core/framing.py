"""Lines out of a stream of bytes, as the stdio transport frames its messages.

A message is one line of UTF-8 JSON (specification, Basic / Transports / stdio). How the stream is cut into chunks
says nothing: a chunk may hold half a line, or many. The cost is linear in the bytes, whatever the cut, since the
pieces of an unfinished line are joined once, when its end is there.
"""

from __future__ import annotations

from typing import List

from mcpsync.errors import MessageTooLarge

__all__ = ["LineFramer"]

_SPACE = 0x20


class LineFramer:
    """Collects chunks, gives back complete lines.

    :param limit: the longest line that is taken, in bytes, its end not counted
    :ivar pending: bytes of the unfinished line that wait for its end
    :ivar salvaged: after :exc:`~mcpsync.errors.MessageTooLarge`, the lines of the same chunk that were complete
        before the one that was too long; they are good messages
    """

    __slots__ = ("_broken", "_limit", "_pieces", "pending", "salvaged")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pieces: List[bytes] = []
        self._broken = False
        self.pending = 0
        self.salvaged: List[bytes] = []

    def feed(self, chunk: bytes) -> List[bytes]:
        """Take the next bytes of the stream.

        :returns: the lines that are complete now, without LF or CR LF; blank ones are left out
        :raises MessageTooLarge: a line is longer than the limit, finished or not. What follows in the stream cannot
            be told from the rest of that line, so every later call raises too.
        """
        end = chunk.find(b"\n")
        if not self.pending and 0 < end == len(chunk) - 1 <= self._limit:
            # The common case: exactly one line. Nothing is copied but the line itself.
            line = chunk[:end]
            if line[-1] > _SPACE:  # no CR to strip, and not blank
                return [line]
        complete: List[bytes] = []
        if end < 0:
            self._append(chunk, complete)
            return complete
        first, *others = chunk.split(b"\n")
        self._append(first, complete)
        for start_of_next in others:
            line = b"".join(self._pieces)
            self._pieces.clear()
            self.pending = 0
            if line.endswith(b"\r"):
                line = line[:-1]
            if line and not line.isspace():
                complete.append(line)
            self._append(start_of_next, complete)
        return complete

    def _append(self, piece: bytes, complete: List[bytes]) -> None:
        """Add to the unfinished line, as long as it can still end within the limit."""
        if self._broken:
            raise self._too_large()
        if not piece:
            return
        self.pending += len(piece)
        # One byte more is let through while it can be the CR of the line's end.
        if self.pending - piece.endswith(b"\r") > self._limit:
            self._broken = True
            self._pieces.clear()
            self.salvaged = complete
            raise self._too_large()
        self._pieces.append(piece)

    def _too_large(self) -> MessageTooLarge:
        return MessageTooLarge(
            "a message is longer than the limit of %d bytes; raise max_message if this server's messages are meant "
            "to be that large" % self._limit,
            limit=self._limit,
        )
