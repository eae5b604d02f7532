"""Responses whose bodies are read, piece by piece, by the thread that drives the exchange."""

from __future__ import annotations

import http.client
from typing import Any, Callable, Iterator, List, Mapping, Optional

import urllib3

from mcpsync.errors import HttpError, MessageTooLarge
from mcpsync.transport.http.abortable import AbortableMixin
from mcpsync.transport.http.exchange import Exchange

__all__ = ["HeldResponse", "PooledResponse", "Response"]

_CHUNK = 65536
_COMPRESSED_CHUNK = 16384  # what may grow a thousandfold


class Response:
    """A response whose headers are here.

    :ivar status: HTTP status
    :ivar headers: by name, in any case
    """

    def __init__(self, raw: Any, exchange: Exchange) -> None:
        self._raw = raw
        self._exchange = exchange
        self._ended = False
        self._closed = False
        self.status: int = raw.status
        self.headers: Mapping[str, str] = raw.headers

    @property
    def content_type(self) -> str:
        """The media type, without parameters, in lower case."""
        return (self.headers.get("content-type") or "").partition(";")[0].strip().lower()

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes, decompressed.

        :raises Aborted: the exchange was ended meanwhile
        :raises OSError, http.client.HTTPException, urllib3.exceptions.HTTPError: the body broke off
        """
        if "," in (self.headers.get("content-encoding") or ""):
            raise HttpError("the body is compressed more than once, which is refused", status=self.status)
        exchange = self._exchange
        for piece in self._pieces():
            if exchange.reason is not None:
                exchange.check()
            yield piece
        exchange.check()
        self._ended = True

    def body(self, limit: int) -> bytes:
        """The whole body.

        :raises MessageTooLarge: it is longer than the limit, in bytes, decompressed
        """
        pieces: List[bytes] = []
        left = limit
        for piece in self.chunks():
            left -= len(piece)
            if left < 0:
                raise self._too_large(limit)
            pieces.append(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def start(self, limit: int) -> bytes:
        """The body, or so many bytes of it."""
        pieces: List[bytes] = []
        left = limit
        for piece in self.chunks():
            pieces.append(piece[:left])
            left -= len(piece)
            if left <= 0:
                break
        return b"".join(pieces)

    def leave(self) -> None:
        """Nobody needs the rest of the body, which most likely is empty. Closes the response."""
        self.close()

    def close(self) -> None:
        """Give the connection back: to the pool if the body was read to its end, to the system if not. Idempotent."""
        raise NotImplementedError

    def _pieces(self) -> Iterator[bytes]:
        raise NotImplementedError

    @staticmethod
    def _too_large(limit: int) -> MessageTooLarge:
        return MessageTooLarge(
            "the body is longer than the limit of %d bytes; raise the limit if this server's messages are meant to be "
            "that large" % limit,
            limit=limit,
        )


class PooledResponse(Response):
    """A response as ``urllib3`` gives it, which also gives the connection back.

    :param already_read: gives the body if somebody else, as a hook of the user's, has read it
    """

    def __init__(self, raw: Any, exchange: Exchange, already_read: Optional[Callable[[], bytes]] = None) -> None:
        super().__init__(raw, exchange)
        self._already_read = already_read

    def _pieces(self) -> Iterator[bytes]:
        empty = True
        for piece in _decoded(self._raw):
            if piece:
                empty = False
                yield piece
        if empty and self._already_read is not None:
            yield self._already_read()

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        if not self._ended or self._exchange.reason is not None:
            self._raw.close()
        release = getattr(self._raw, "release_conn", None)  # an adapter of the user's may give something simpler
        if release is not None:
            release()


class HeldResponse(Response):
    """A response of ``http.client`` on a connection that was taken out of its pool for this exchange.

    :param give_back: takes the connection, and whether it can be used again
    :param lingers: whether a response that is left may be read to its end later
    """

    def __init__(
        self,
        raw: http.client.HTTPResponse,
        exchange: Exchange,
        connection: AbortableMixin,
        give_back: Callable[[AbortableMixin, bool], None],
        lingers: bool,
    ) -> None:
        super().__init__(raw, exchange)
        self._connection = connection
        self._give_back = give_back
        self._lingers = lingers

    def body(self, limit: int) -> bytes:
        raw = self._raw
        if raw.length is None or self.headers.get("content-encoding") is not None:
            return super().body(limit)
        if raw.length > limit:
            raise self._too_large(limit)
        body: bytes = raw.read()
        self._exchange.check()
        self._ended = True
        return body

    def _pieces(self) -> Iterator[bytes]:
        raw = self._raw
        if self.headers.get("content-encoding") is not None:
            decoding = urllib3.HTTPResponse(
                body=raw,
                headers=dict(raw.headers.items()),
                status=raw.status,
                preload_content=False,
                decode_content=True,
                original_response=raw,
                request_method="POST",
            )
            yield from _decoded(decoding)
            return
        read1 = raw.read1
        left = raw.length
        while left != 0:
            piece = read1(_CHUNK if left is None or left > _CHUNK else left)
            if not piece:
                break
            if left is not None:
                left -= len(piece)
            yield piece
        if left:
            raise http.client.IncompleteRead(b"", left)
        raw.close()

    def leave(self) -> None:
        lingers = (
            self._lingers
            and self._raw.chunked
            and self._exchange.reason is None
            and self._connection.sock is not None  # it closes after this response
        )
        if not lingers or self._closed or self._ended:
            self.close()
            return
        self._closed = True
        self._connection.tail = self._raw
        self._give_back(self._connection, True)

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            usable = self._ended and self._exchange.reason is None
            self._give_back(self._connection, usable)
            if not usable:
                self._raw.close()  # it holds the socket of a connection that was to be closed after it


def _decoded(raw: Any) -> Iterator[bytes]:
    """The pieces of a response of ``urllib3``; each as soon as it is there, where that version can."""
    compressed = bool(raw.headers.get("content-encoding"))
    size = _COMPRESSED_CHUNK if compressed else _CHUNK
    read1 = getattr(raw, "read1", None)
    if read1 is not None and isinstance(raw, urllib3.HTTPResponse):
        while True:
            piece = read1(size)
            if not piece:
                return
            yield piece
    elif getattr(raw, "chunked", False):
        yield from raw.stream(size)
    else:
        # urllib3 before 2.2, and a body that is not in chunks: if it may be a stream of events, a longer read would
        # hold back the first of them
        length = getattr(raw, "length_remaining", None)
        while True:
            piece = raw.read(1 if length is None and not compressed else size)
            if not piece:
                return
            yield piece
