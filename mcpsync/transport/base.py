"""What a transport is: the contract between the connection and the channel to a server.

A transport carries frames (one JSON-RPC message, or a batch, as UTF-8 bytes) and knows nothing of their
meaning. One object serves one connection for its life; a reconnect builds a fresh one.

The thread rules, for whoever writes a transport:

* ``open`` runs on a thread that may block until its deadline.
* ``run`` is the body of the connection's reader thread. It feeds the sink and returns after ``close()`` or
  after it has reported ``sink.lost(cause)``. It polls nothing: a quiet peer costs no CPU.
* ``send`` runs on the thread of whoever makes the request, never longer than its deadline. A *stream-like*
  transport (stdio, sockets) hands the bytes over and returns. An *exchange-like* one (HTTP) drives the whole
  exchange on this thread, feeds what comes back to the sink, and returns when the request is answered or the
  exchange has ended.
* ``abort`` and ``close`` may be called by any thread; ``abort`` never blocks.
"""

from __future__ import annotations

from typing import Callable, Hashable, Mapping, NamedTuple, Optional, Protocol

from mcpsync.deadline import Deadline
from mcpsync.errors import McpError

__all__ = ["NO_HEADERS", "Frame", "Request", "Sink", "StreamId", "Transport", "TransportFactory"]

StreamId = Hashable
"""Names the stream that a frame came on. Stream-like transports have one, None."""

NO_HEADERS: Mapping[str, str] = {}


class Frame(NamedTuple):
    """One message on its way out.

    :ivar data: the JSON text in UTF-8, without a line end
    :ivar method: the method of a request or notification; None for an answer
    :ivar headers: headers for transports that have them; the others ignore it
    """

    data: bytes
    method: Optional[str] = None
    headers: Mapping[str, str] = NO_HEADERS


class Request(Protocol):
    """What a transport may know of the request that a frame opens."""

    @property
    def request_id(self) -> Optional[int]:
        """The JSON-RPC id."""

    @property
    def answered(self) -> bool:
        """Whether the request has been retired (answered, cancelled, timed out)."""


class Sink(Protocol):
    """What a transport feeds. Each method is quick and never raises; any thread may call."""

    def frame(self, data: bytes, stream: StreamId) -> None:
        """One message came in."""

    def alive(self, stream: StreamId) -> None:
        """Something came in that is no message (an SSE comment): the peer lives."""

    def lost(self, cause: McpError) -> None:
        """The channel is gone, and why. Only the first report counts."""

    def broken(self, request: Request, cause: McpError) -> None:
        """The exchange of one request ended without an answer; nothing else is concerned."""

    def warn(self, kind: str, detail: str) -> None:
        """The peer did something odd that was survived. Logged once per kind and connection."""


class Transport(Protocol):
    """One channel to one server.

    One that is given secrets for the server has ``masked(text)`` too, which gives a text of the server's without them.
    """

    def open(self, deadline: Deadline) -> None:
        """Start the process, prepare the pool.

        :raises ConnectFailed: with phase and cause; nothing is left behind then
        """

    def run(self, sink: Sink) -> None:
        """The body of the reader thread."""

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
        """Start the long stream of a transport that has one; returns when its headers are here.

        :param frame: the request that opens it; without data, what the transport has for that
        :param request: the request that the frame opens; its end is told with ``sink.broken``
        """

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send one frame; ``request`` is the request that it opens, None for a notification or an answer.

        :raises TransportError: the channel is gone
        :raises Overloaded: there was no room until the deadline
        :raises RequestTimeout: an exchange was not over at the deadline, and is ended by that
        """

    def abort(self, request: Request, reason: str) -> bool:
        """The request was retired: stop what this transport still does for it.

        :returns: True if the peer need not be told: it never got the request, or the end of the exchange
            tells it. False: a ``notifications/cancelled`` has to travel.
        """

    def close(self, deadline: Deadline) -> None:
        """End the channel and free all it held, by the deadline. Idempotent; waits for a close under way."""

    def after_fork(self) -> None:
        """In a forked child: let go of the parent's descriptors without touching what they lead to."""

    @property
    def exchange_like(self) -> bool:
        """Whether ``send`` drives a whole exchange."""


TransportFactory = Callable[[], Transport]
"""Builds a fresh transport, for the first connection and for each one after it."""
