"""HTTP with SSE, the transport before Streamable HTTP: one stream on which all comes, and a URL to POST to.

The server names that URL in the stream's first event. A POST is only accepted; its answer comes on the stream, so the
loss of the stream is the loss of the connection. To the connection it is exchange-like all the same: a POST is driven
on the thread of whoever makes the request, until the server has taken it.

Specification: `basic/transports` (2024-11-05), "HTTP with SSE".
"""

from __future__ import annotations

import threading
from typing import Iterator, List, Optional

from mcpsync.core.sse import Event, EventReader
from mcpsync.deadline import Deadline
from mcpsync.errors import (
    ConnectFailed,
    ConnectionLost,
    ConnectRejected,
    ConnectTimeout,
    HttpError,
    McpError,
    RequestTimeout,
)
from mcpsync.transport.base import Frame, Request, Sink
from mcpsync.transport.http.endpoint import Endpoint
from mcpsync.transport.http.exchange import TIMED_OUT, Aborted, Exchange
from mcpsync.transport.http.failures import NETWORK_ERRORS, failure_of
from mcpsync.transport.http.life import Life
from mcpsync.transport.http.refusals import refusal
from mcpsync.transport.http.response import Response

__all__ = ["LegacySse"]

_GET = {"Accept": "text/event-stream", "Cache-Control": "no-store"}
_POST = {"Content-Type": "application/json"}
_DEFAULT_LIMIT = 64 * 1024 * 1024
_ERROR_BODY = 1024 * 1024
_EVENT_STREAM = "text/event-stream"
_STREAM = "stream"
_UNWIND_SECONDS = 1.0


class LegacySse:
    """The connection to one server.

    :param endpoint: of the stream
    :param server_name: for errors and the names of threads
    :param max_message: bytes; a longer message ends the connection, since nobody knows whose it was
    """

    exchange_like = True

    def __init__(self, endpoint: Endpoint, *, server_name: str = "server", max_message: int = _DEFAULT_LIMIT) -> None:
        self._endpoint = endpoint
        self._server = server_name
        self._host = endpoint.host
        self._life = Life(server_name)
        self._reader = EventReader(max_message)
        self._stream = Exchange(self._life.max_idle)
        self._response: Optional[Response] = None
        self._chunks: Iterator[bytes] = iter(())
        self._early: List[Event] = []
        self._post_url = ""
        self._lost: Optional[McpError] = None
        self._lock = threading.RLock()  # guards the two below: one thread at a time has the response
        self._held = False
        self._closed = False
        self._free = threading.Event()
        self._free.set()

    # -- life --------------------------------------------------------------------------------------------------

    def open(self, deadline: Deadline) -> None:
        """Open the stream, and wait for the URL to POST to.

        :raises ConnectFailed: there is no such stream, or it names no URL of the same origin
        :raises ConnectTimeout: not in time
        """
        self._life.open(deadline)
        self._stream.deadline = deadline
        self._life.watch(_STREAM, self._stream)
        self._hold()
        try:
            with self._stream.driven():
                self._post_url = self._connect()
        except BaseException as error:
            self._end_stream()
            self._let_go()
            self.close(Deadline(0))
            if isinstance(error, (Aborted, *NETWORK_ERRORS)):
                raise self._connect_error(error) from error
            if isinstance(error, HttpError):
                raise ConnectRejected(
                    error.message,
                    status=error.status,
                    excerpt=error.excerpt,
                    retry_after=error.retry_after,
                    server=self._server,
                ) from error
            raise
        self._life.unwatch(self._stream)
        self._let_go()

    def _hold(self) -> bool:
        """This thread has the response from here on. False: it is closed."""
        with self._lock:
            if self._closed:
                return False
            self._held = True
            self._free.clear()
            return True

    def _let_go(self) -> None:
        with self._lock:
            self._held = False
            closed = self._closed
        if closed:
            self._end_stream()  # whoever closes did not want to wait any longer
        self._free.set()

    def _end_stream(self) -> Optional[str]:
        """The stream is over; gives the reason, if it was ended from this side. Of the thread that has the response."""
        reason = self._stream.finish()
        self._life.leave(_STREAM, self._stream)
        if self._response is not None:
            self._response.close()
        return reason

    def _connect(self) -> str:
        self._response = response = self._endpoint.request(self._stream, "GET", None, _GET)
        if response.status != 200:
            raise refusal(response, response.start(_ERROR_BODY), self._server, self.masked)
        if response.content_type != _EVENT_STREAM:
            raise ConnectFailed(
                "%s gives no stream of events but %r" % (self._host, response.content_type), server=self._server
            )
        self._chunks = response.chunks()
        for chunk in self._chunks:
            events = self._reader.feed(chunk)
            for position, event in enumerate(events):
                if event.event == "endpoint" and event.data:
                    self._early = events[position + 1 :]
                    return self._endpoint.resolve(event.data.decode())
        raise ConnectFailed("the stream ended before it named a URL for messages", server=self._server)

    def _connect_error(self, error: BaseException) -> McpError:
        if self._stream.reason == TIMED_OUT:
            return ConnectTimeout("%s did not name a URL for messages in time" % self._host, server=self._server)
        if self._stream.reason is not None:
            return ConnectFailed("the connection was closed", server=self._server)
        failure = failure_of(error, self._host, False)
        return failure.located(self._server)

    def run(self, sink: Sink) -> None:
        """The body of the reader thread: reads the stream until it ends."""
        self._life.sink = sink
        self._life.has_sink.set()
        if not self._hold():
            return
        cause: McpError = ConnectionLost("the stream ended", server=self._server)
        try:
            self._deliver(self._early, sink)
            for chunk in self._chunks:
                events = self._reader.feed(chunk)
                if not events:
                    sink.alive(None)
                self._deliver(events, sink)
        except Aborted:
            pass  # closed
        except NETWORK_ERRORS as error:
            cause = failure_of(error, self._host, True)
        except McpError as error:
            cause = error
        finally:
            reason = self._end_stream()
            self._let_go()
        if reason is None:
            self._lost = cause
            self._life.end_all(cause.message)
            sink.lost(cause)

    def _deliver(self, events: List[Event], sink: Sink) -> None:
        for event in events:
            if event.event == "message" and event.data:
                sink.frame(event.data, None)
            else:
                sink.alive(None)

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
        """The stream is there already.

        :raises ConnectionLost: it is not
        """
        self._life.await_sink(deadline)

    def close(self, deadline: Deadline) -> None:
        """End the stream, and what is being sent."""
        if not self._life.close(deadline):
            return
        try:
            self._stream.abort("the connection was closed")
            self._free.wait(deadline.sooner(_UNWIND_SECONDS).remaining())
            with self._lock:
                self._closed = True
                nobodys = not self._held
            if nobodys:
                self._end_stream()
            self._endpoint.close()
        finally:
            self._life.closed_now(deadline)

    def after_fork(self) -> None:
        """In a forked child: the sockets are the parent's."""
        self._life.after_fork()
        self._lock = threading.RLock()
        self._closed = True
        self._free.set()

    def masked(self, text: str) -> str:
        """A text without the secrets in the headers that are sent."""
        return self._endpoint.masked(text)

    # -- messages ----------------------------------------------------------------------------------------------

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Send a message; returns when the server has taken it.

        :raises ConnectFailed: the server was not reached
        :raises ConnectionLost: the stream is gone, or the message may not have arrived
        :raises HttpError: the server refused it
        :raises RequestTimeout: it was not taken in time
        """
        self._life.await_sink(deadline)
        if self._lost is not None:
            raise ConnectionLost(self._lost.message, server=self._server)
        exchange = Exchange(self._life.max_idle, deadline)
        key = self._life.enter(exchange, request, deadline, False)
        try:
            if request is None or not request.answered:
                with exchange:
                    self._post(exchange, frame)
        except Aborted as error:
            raise self._ended(exchange, str(error)) from None
        except NETWORK_ERRORS as error:
            if exchange.reason is None:
                raise failure_of(error, self._host, exchange.began).located(self._server) from error
            raise self._ended(exchange, exchange.reason) from None
        finally:
            self._life.leave(key, exchange)

    def _post(self, exchange: Exchange, frame: Frame) -> None:
        # of those of the protocol its revisions know one; what else is there is the program's
        headers = {
            name: value
            for name, value in frame.headers.items()
            if name == "MCP-Protocol-Version" or not name.lower().startswith("mcp-")
        }
        response = self._endpoint.request(exchange, "POST", frame.data, {**_POST, **headers}, self._post_url)
        try:
            if response.status >= 400:
                raise refusal(response, response.start(_ERROR_BODY), self._server, self.masked)
            if response.content_type != _EVENT_STREAM:
                response.start(_ERROR_BODY)  # read to its end, so that the connection can be used again
        finally:
            response.close()

    def _ended(self, exchange: Exchange, reason: str) -> McpError:
        if reason == TIMED_OUT:
            return RequestTimeout("the message was not taken in time", server=self._server)
        return ConnectionLost(
            "the message was given up: %s" % reason, server=self._server, maybe_executed=exchange.began
        )

    def abort(self, request: Request, reason: str) -> bool:
        """Stop sending a request. True if it had not begun."""
        found = self._life.find(request)
        return found is not None and found.exchange.abort(reason) and not found.exchange.began
