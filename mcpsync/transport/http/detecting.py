"""Streamable HTTP, and where a server has not got it the transport before: found out with the first messages.

The connection asks the new way first (``server/discover``, then ``initialize``). Where ``initialize`` is refused with
400, 404 or 405, and not by a modern server, a GET decides: if it brings an ``endpoint`` event, HTTP+SSE is spoken from
there on. To the connection that looks as if ``initialize`` had been answered at once.

Specification: `basic/transports/streamable-http` (2026-07-28), "HTTP+SSE Transport (2024-11-05)"; `basic/transports`
(2025-03-26 to 2025-11-25), "Backwards Compatibility".
"""

from __future__ import annotations

import logging
import threading
from typing import Callable, Optional, Union

from mcpsync.core import jsonrpc
from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, HttpError, McpError, RpcError, TransportError
from mcpsync.transport.base import Frame, Request, Sink
from mcpsync.transport.http.legacy_sse import LegacySse
from mcpsync.transport.http.refusals import Declined
from mcpsync.transport.http.streamable import StreamableHttp

__all__ = ["DetectingHttp"]

logger = logging.getLogger("mcpsync")

_ENDPOINT_SECONDS = 5.0  # for the event that tells an old server; a stream of the newer transport never has it
_UNWIND_SECONDS = 1.0


class DetectingHttp:
    """The connection to one URL, over the transport that the server turns out to have.

    :param first: Streamable HTTP, made with ``declines``
    :param make_older: builds the transport before it
    :param starts_older: an earlier connection found that the server has the older one: it is tried first
    :param learned: told whether the server has the older one, whenever that is found out
    """

    exchange_like = True

    def __init__(
        self,
        first: StreamableHttp,
        make_older: Callable[[], LegacySse],
        *,
        server_name: str = "server",
        starts_older: bool = False,
        learned: Callable[[bool], None] = lambda older: None,
    ) -> None:
        self._first = first
        self._make_older = make_older
        self._server = server_name
        self._starts_older = starts_older
        self._learned = learned
        self._lock = threading.RLock()  # guards the three below
        self._older: Optional[LegacySse] = None  # set once its stream has named the URL for messages
        self._opening: Optional[LegacySse] = None
        self._closed = False
        self._declined: Optional[HttpError] = None
        self._settled: Union[StreamableHttp, LegacySse, None] = None

    # -- life --------------------------------------------------------------------------------------------------

    def open(self, deadline: Deadline) -> None:
        """Open the older transport if that is remembered of the server; else nothing is sent before the first message.

        :raises ConnectFailed: it was opened before, or there is no time left
        """
        if self._starts_older:
            try:
                self._switch(deadline.sooner(_ENDPOINT_SECONDS))
                return
            except TransportError as error:
                logger.debug("mcpsync: server %r no longer has HTTP+SSE: %s", self._server, error)
                self._learned(False)
        self._first.open(deadline)

    def run(self, sink: Sink) -> None:
        """The body of the reader thread: that of Streamable HTTP until the other takes its place."""
        self._first.run(sink)
        if self._older is not None:
            self._older.run(sink)

    def close(self, deadline: Deadline) -> None:
        """Close whatever is open."""
        with self._lock:
            self._closed = True
            opening = self._opening
        try:
            self._first.close(deadline)
        finally:
            if opening is not None:
                opening.close(deadline)

    def after_fork(self) -> None:
        """In a forked child: the sockets are the parent's."""
        self._lock = threading.RLock()
        self._closed = True
        self._first.after_fork()
        if self._opening is not None:
            self._opening.after_fork()

    def masked(self, text: str) -> str:
        """A text without the secrets in the headers that are sent."""
        return (self._older or self._first).masked(text)

    # -- messages ----------------------------------------------------------------------------------------------

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send one message.

        :raises TransportError: as the transport in use does
        """
        settled = self._settled
        if settled is not None:
            settled.send(frame, request, deadline)
        elif request is not None and frame.method == "initialize":
            self._initialize(frame, request, deadline)
        elif request is not None and frame.method == "server/discover":
            self._discover(frame, request, deadline)
        else:
            # the first message that opens nothing: there is nothing left to find out
            self._settled = self._older or self._first
            self._settled.send(frame, request, deadline)

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
        """Open the long stream, if the transport in use has one of its own."""
        (self._older or self._first).listen(frame, deadline, request)

    def abort(self, request: Request, reason: str) -> bool:
        """End the exchange of a request."""
        return (self._older or self._first).abort(request, reason)

    # -- finding out -------------------------------------------------------------------------------------------

    def _discover(self, frame: Frame, request: Request, deadline: Deadline) -> None:
        if self._older is not None:
            raise RpcError.of(jsonrpc.METHOD_NOT_FOUND, "servers of HTTP+SSE are older than %s" % frame.method)
        try:
            self._first.send(frame, request, deadline)
        except TransportError:
            if self._declined is None:
                raise
            # it was unanswered when the other transport took over, which is an answer too
            raise self._declined from None

    def _initialize(self, frame: Frame, request: Request, deadline: Deadline) -> None:
        if self._older is None:
            try:
                self._first.send(frame, request, deadline)
                return
            except Declined as refusal:
                try:
                    self._declined = refusal
                    self._switch(deadline.sooner(_ENDPOINT_SECONDS))
                except TransportError as error:
                    self._declined = None
                    self._refuse(refusal, error, request)
                    return
        assert self._older is not None
        self._older.send(frame, request, deadline)

    def _refuse(self, refusal: Declined, other: McpError, request: Request) -> None:
        """Neither transport is there: what the server said in JSON-RPC tells most."""
        if refusal.answer is not None and self._first.deliver(refusal.answer, request):
            return
        raise HttpError(
            "no MCP server was found at this URL: initialize over Streamable HTTP was refused with %s; and the stream "
            "of the older HTTP+SSE could not be opened: %s" % (refusal.message, other.message),
            status=refusal.status,
            excerpt=refusal.excerpt,
            retry_after=refusal.retry_after,
            server=self._server,
        )

    def _switch(self, deadline: Deadline) -> None:
        """Open the older transport in the place of the first.

        :raises TransportError: it is not there
        """
        older = self._make_older()
        with self._lock:
            if self._closed:
                raise ConnectionLost("the connection was closed", server=self._server)
            self._opening = older  # close() ends it from here on
        older.open(deadline)
        self._older = older
        self._learned(True)
        self._first.close(Deadline(_UNWIND_SECONDS))
