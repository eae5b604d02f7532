"""Server-sent events out of a stream of bytes.

:class:`EventFramer` finds where events end, whatever the line ends and however the stream is cut, in linear time,
and gives each whole, with its lines ended by LF. :class:`EventReader` turns them into events; ``sseclient-py``
reads the fields. Used alone on a stream, that library is quadratic in the number of chunks, merges events where
kinds of line ends mix, loses the first field after a byte order mark, delivers an event that was cut off, and hides
events without data; given one whole event at a time it is right.

Specification: `basic/transports/streamable-http`; WHATWG HTML, 9.2 "Server-sent events".
"""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional

import sseclient

from mcpsync.errors import MessageTooLarge

__all__ = ["Event", "EventFramer", "EventReader"]

_BOM = b"\xef\xbb\xbf"
_MOST_KINDS = 16


class Event(NamedTuple):
    """One event.

    :ivar event: its type, ``message`` if it names none
    :ivar data: its data in UTF-8; None: it has none, and only carries ``event_id`` or ``retry``
    :ivar event_id: the last event id of the stream, after this event
    :ivar retry: milliseconds to wait before reconnecting, if it says so
    """

    event: str
    data: Optional[bytes]
    event_id: str
    retry: Optional[int]


class EventFramer:
    """Collects chunks, gives back whole events as bytes, their lines ended by LF.

    :param limit: the longest event that is taken, in bytes
    """

    __slots__ = ("_after_cr", "_bom", "_limit", "_line_ended", "_pieces", "_size")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._bom: Optional[bytes] = b""  # what may still be the start of a byte order mark; None: past that
        self._after_cr = False
        self._line_ended = True  # the pieces end a line; that LF is not among them
        self._pieces: List[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> List[bytes]:
        """Take the next bytes of the stream.

        :returns: the events that are complete now; what is cut off at the end of a stream is never given
        :raises MessageTooLarge: an event is longer than the limit
        """
        text = self._with_plain_line_ends(chunk)
        if not text:
            return []
        if self._line_ended:
            text = b"\n" + text
        *whole, rest = text.split(b"\n\n")
        if whole:
            self._keep(whole[0])
            whole[0] = b"".join(self._pieces)
            self._pieces.clear()
            self._size = 0
        self._line_ended = rest.endswith(b"\n") or (bool(whole) and not rest)
        self._keep(rest[:-1] if rest.endswith(b"\n") else rest)
        return [event for event in (each.strip(b"\n") for each in whole) if event]

    def _keep(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._size > self._limit + 1:  # the LF before an event counts among its bytes here
            raise MessageTooLarge(
                "an event is longer than the limit of %d bytes; raise the limit if this server's messages are meant "
                "to be that large" % self._limit,
                limit=self._limit,
            )
        if piece:
            self._pieces.append(piece)

    def _with_plain_line_ends(self, chunk: bytes) -> bytes:
        """The chunk with every line end as LF; a CR LF that was cut in two counts once."""
        if self._bom is not None:
            chunk = self._bom + chunk
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._bom = chunk
                return b""
            self._bom = None
            if chunk.startswith(_BOM):
                chunk = chunk[len(_BOM) :]
        if self._after_cr and chunk:
            self._after_cr = False
            if chunk.startswith(b"\n"):
                chunk = chunk[1:]
        if b"\r" in chunk:
            self._after_cr = chunk.endswith(b"\r")
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        return chunk


class EventReader:
    """The events of one stream.

    :param limit: the longest event that is taken, in bytes
    :param kinds: what the readers of one server's streams have learned, if they share it
    :ivar last_id: what ``Last-Event-ID`` would be now
    :ivar retry: milliseconds to wait before reconnecting, as last told; None: never told
    """

    __slots__ = ("_framer", "_kinds", "last_id", "retry")

    def __init__(self, limit: int, kinds: Optional[Dict[bytes, str]] = None) -> None:
        self._framer = EventFramer(limit)
        self._kinds: Dict[bytes, str] = {} if kinds is None else kinds
        self.last_id = ""
        self.retry: Optional[int] = None

    def feed(self, chunk: bytes) -> List[Event]:
        """Take the next bytes of the stream.

        :returns: the events that are complete now, comments left out
        :raises MessageTooLarge: an event is longer than the limit
        """
        events = []
        for block in self._framer.feed(chunk):
            event = self._read(block)
            if event is not None:
                events.append(event)
        return events

    def _read(self, block: bytes) -> Optional[Event]:
        # Nearly every event has one line of data, its last, and that may be long: it is set aside, and the fields
        # before it, mostly the same each time, are read with a short one in its place.
        start = block.rfind(b"\n") + 1
        head, data = block[:start], block[start:]
        if not data.startswith(b"data: ") or b"data" in head:
            return self._read_fields(_valid(block))
        told = self._take_id_and_retry(head) if b"id" in head or b"retry" in head else False
        kind = self._kinds.get(head)
        if kind is None:
            kind = next(sseclient.SSEClient(iter((_valid(head) + b"data: x\n\n",))).events()).event
            if not told and len(self._kinds) < _MOST_KINDS:
                self._kinds[head] = kind
        return Event(kind, _valid(data[6:]), self.last_id, self.retry if told else None)

    def _read_fields(self, block: bytes) -> Optional[Event]:
        told = self._take_id_and_retry(block)
        for event in sseclient.SSEClient(iter((block + b"\n\n",))).events():
            return Event(event.event, event.data.encode(), self.last_id, self.retry if told else None)
        return Event("message", None, self.last_id, self.retry) if told else None

    def _take_id_and_retry(self, block: bytes) -> bool:
        """sseclient-py keeps neither over events, and shows neither without data."""
        told = False
        for line in block.split(b"\n"):
            if line.startswith((b"id", b"retry")):
                field, _, value = line.partition(b":")
                value = value[1:] if value.startswith(b" ") else value
                if field == b"id" and b"\0" not in value:
                    self.last_id = value.decode("utf-8", "replace")
                    told = True
                elif field == b"retry" and value.isdigit() and len(value) < 10:
                    self.retry = int(value)
                    told = True
        return told


def _valid(data: bytes) -> bytes:
    """The bytes, with what is no UTF-8 replaced as the rules of event streams have it."""
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError:
            return data.decode("utf-8", "replace").encode()
    return data
