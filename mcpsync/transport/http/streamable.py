"""Streamable HTTP: each message a POST, each answer JSON or a stream of events; beside them one long stream.

Whoever makes a request drives its exchange. The reader thread holds the long stream: GET where the revision has
sessions, ``subscriptions/listen`` where it has none. The transport does not know revisions: what differs comes with
the headers of each frame.

Specification: `basic/transports/streamable-http` (2026-07-28); `basic/transports` (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import logging
import threading
from queue import SimpleQueue
from typing import Callable, Dict, Mapping, Optional

from mcpsync.core.sse import EventReader
from mcpsync.deadline import FOREVER, Deadline
from mcpsync.errors import ConnectionLost, McpError, RequestTimeout, SessionLost, described
from mcpsync.passing_threads import forks_wait_for_this_thread
from mcpsync.transport.base import Frame, Request, Sink, StreamId
from mcpsync.transport.http.endpoint import Endpoint
from mcpsync.transport.http.exchange import TIMED_OUT, Aborted, Exchange
from mcpsync.transport.http.failures import NETWORK_ERRORS, failure_of
from mcpsync.transport.http.gate import Gate
from mcpsync.transport.http.life import Life
from mcpsync.transport.http.refusals import (
    Declined,
    error_answer,
    may_be_older,
    not_an_answer,
    refusal,
    says_no_session,
)
from mcpsync.transport.http.response import Response

__all__ = ["StreamableHttp"]

logger = logging.getLogger("mcpsync")

_POST = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_GET = {"Accept": "text/event-stream"}
_DEFAULT_LIMIT = 64 * 1024 * 1024
_RESUMES = 5  # attempts to resume a stream that fail one after the other
_FIRST_RETRY = 1.0
_LEAST_GAP = 0.05
_LAST_RETRY = 30.0
_ERROR_BODY = 1024 * 1024
_PASSING = (429, 500, 502, 503, 504)
_BROKEN = (0, 200)
_NO_HEADERS: Mapping[str, str] = {}
_MODERN = "Mcp-Method"  # a header that every request has since sessions and resumption are gone
LONG_STREAM = "long stream"


class StreamableHttp:
    """The connection to one MCP endpoint.

    :param endpoint: where it is, and how it is reached
    :param server_name: for errors and the names of threads
    :param max_message: bytes; a longer message is an error of its call
    :param declines: raise :class:`~mcpsync.transport.http.refusals.Declined` where ``initialize`` is refused as by a
        server that only has the older transport
    :param max_calls: requests that are on their way at a time; the rest wait, within their deadlines. None: any number
    """

    exchange_like = True

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        server_name: str = "server",
        max_message: int = _DEFAULT_LIMIT,
        declines: bool = False,
        max_calls: Optional[int] = None,
    ) -> None:
        self._endpoint = endpoint
        self._gate = None if max_calls is None else Gate(max_calls)
        self._declines = declines
        self._server = server_name
        self._host = endpoint.host
        self._limit = max_message
        self._life = Life(server_name)
        self._session: Mapping[str, str] = _NO_HEADERS  # replaced as a whole, so that it can be compared by identity
        self._forgotten = False  # the server does not know the session any more
        self._version: Mapping[str, str] = _NO_HEADERS
        self._commands: SimpleQueue[Optional[Callable[[], None]]] = SimpleQueue()
        self._kinds: Dict[bytes, str] = {}
        self._reader_lock = threading.RLock()  # guards the flag below
        self._reader_busy = False

    # -- life --------------------------------------------------------------------------------------------------

    def open(self, deadline: Deadline) -> None:
        """Nothing is sent before the first message.

        :raises ConnectFailed: it was opened before, or there is no time left
        """
        self._life.open(deadline)

    def run(self, sink: Sink) -> None:
        """The body of the reader thread: holds the long stream, if there is one."""
        self._life.sink = sink
        self._life.has_sink.set()
        while True:
            command = self._commands.get()
            if command is None:
                return
            command()
            with self._reader_lock:
                self._reader_busy = False

    def close(self, deadline: Deadline) -> None:
        """End all exchanges, and tell the server that the session is over."""
        if not self._life.close(deadline):
            return
        try:
            if self._session:
                self._life.say_goodbye(self._delete, deadline)
            self._endpoint.close()
        finally:
            self._commands.put(None)
            self._life.closed_now(deadline)

    def _delete(self, exchange: Exchange) -> None:
        self._endpoint.request(exchange, "DELETE", None, {**self._session, **self._version}).close()

    def after_fork(self) -> None:
        """In a forked child: the sockets are the parent's, and so is the session."""
        self._life.after_fork()
        self._reader_lock = threading.RLock()
        self._session = _NO_HEADERS

    def masked(self, text: str) -> str:
        """A text without the secrets in the headers that are sent."""
        return self._endpoint.masked(text)

    # -- messages ----------------------------------------------------------------------------------------------

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Drive one exchange to its end: until the request is answered, or will not be any more.

        :raises ConnectFailed: the server was not reached
        :raises ConnectionLost: the exchange broke; nothing else did
        :raises SessionLost: the server no longer knows the session
        :raises HttpError: an answer that is no MCP answer
        :raises MessageTooLarge: an answer longer than the cap
        :raises RequestTimeout: it was not over at the deadline
        """
        self._drive(frame, request, deadline, None)

    def _drive(
        self, frame: Frame, request: Optional[Request], deadline: Deadline, opened: Optional[threading.Event]
    ) -> None:
        sink = self._life.sink or self._life.await_sink(deadline)
        exchange = Exchange(self._life.max_idle, deadline)
        key = self._life.enter(exchange, request, deadline, _MODERN in frame.headers)
        try:
            if request is None or not request.answered:
                with exchange:
                    if self._gate is None or request is None:
                        self._post(exchange, frame, request, sink, opened)
                    else:
                        with self._gate.passed(exchange, frame.method):
                            self._post(exchange, frame, request, sink, opened)
        except Aborted as error:
            if request is None or not request.answered:
                raise self._ended(exchange, str(error)) from None
        except NETWORK_ERRORS as error:
            if exchange.reason is None:
                raise failure_of(error, self._host, exchange.began) from error
            if request is None or not request.answered:
                raise self._ended(exchange, exchange.reason) from None
        finally:
            self._life.leave(key, exchange)

    def abort(self, request: Request, reason: str) -> bool:
        """End the exchange of a request. True where that tells the server, or there is nothing to tell."""
        found = self._life.find(request)
        if found is None:
            return False
        ended = found.exchange.abort(reason)
        # What has not begun now never will: the socket was shut down before this look
        return ended and (found.ending_tells or not found.exchange.began)

    def _ended(self, exchange: Exchange, reason: str) -> McpError:
        if reason == TIMED_OUT:
            return RequestTimeout("the exchange was not over in time", server=self._server)
        return ConnectionLost("the exchange was ended: %s" % reason, server=self._server, maybe_executed=exchange.began)

    def _post(
        self,
        exchange: Exchange,
        frame: Frame,
        request: Optional[Request],
        sink: Sink,
        opened: Optional[threading.Event],
    ) -> None:
        opens_session = frame.method == "initialize"
        if opens_session:
            self._session = _NO_HEADERS
            self._forgotten = False
        elif self._forgotten:
            raise SessionLost("the server no longer knows the session", server=self._server)
        session = self._session
        version = frame.headers.get("MCP-Protocol-Version")
        if version is not None and self._version.get("MCP-Protocol-Version") != version:
            self._version = {"MCP-Protocol-Version": version}
        response = self._endpoint.request(exchange, "POST", frame.data, {**_POST, **session, **frame.headers})
        try:
            if opened is not None:
                opened.set()
            if response.status >= 400:
                self._refused(response, frame, request, sink, session)
                return
            if opens_session:
                session_id = response.headers.get("mcp-session-id")
                if session_id is not None:
                    self._session = {"Mcp-Session-Id": session_id}
            kind = response.content_type
            if request is None:
                if kind != "text/event-stream":
                    response.start(_ERROR_BODY)  # read to its end, so that the connection can be used again
            elif kind == "text/event-stream":
                self._read_stream(exchange, response, request, sink, _MODERN not in frame.headers)
            else:
                self._read_answer(exchange, response, request, sink, kind)
        finally:
            response.close()

    def _read_answer(self, exchange: Exchange, response: Response, request: Request, sink: Sink, kind: str) -> None:
        body = response.body(self._limit)
        response.close()  # what the sink does with it may take time
        if (kind == "application/json" and body) or body.lstrip()[:1] in (b"{", b"["):
            sink.frame(body, request.request_id)
            if body[:1] != b"{" or not request.answered:
                self._life.end_answered(request.request_id)
            if request.answered:
                return
            raise not_an_answer(
                response.status, "JSON that does not answer the request", body, self._server, self.masked
            )
        if response.status != 202 or body.strip():
            raise not_an_answer(
                response.status,
                "content type %r and no JSON" % (response.content_type or "none"),
                body,
                self._server,
                self.masked,
            )
        if not self._life.holds(LONG_STREAM):
            raise not_an_answer(
                response.status, "no answer, and no stream on which it could come", body, self._server, self.masked
            )
        while not request.answered:
            exchange.pause(None)

    # -- streams of events -------------------------------------------------------------------------------------

    def _read_stream(
        self, exchange: Exchange, response: Response, request: Request, sink: Sink, resumable: bool
    ) -> None:
        """Read the stream of one request, and resume it as long as the server gave ids to its events."""
        reader = EventReader(self._limit, self._kinds)
        failures = 0
        gaps = _Gaps(reader)
        while True:
            broken: Optional[McpError] = None
            try:
                if self._feed(response, reader, request.request_id, sink, request):
                    response.leave()
                    return
            except NETWORK_ERRORS as error:
                exchange.check()
                broken = failure_of(error, self._host, True)
            finally:
                response.close()
            while True:
                if request.answered:
                    return
                if not (resumable and reader.last_id) or failures > _RESUMES:
                    raise broken or ConnectionLost(
                        "the stream ended without an answer", server=self._server, maybe_executed=True
                    )
                exchange.pause(gaps.next())
                try:
                    response = self._resume(exchange, reader)
                    failures = 0
                    break
                except NETWORK_ERRORS as error:
                    exchange.check()
                    failures += 1
                    broken = failure_of(error, self._host, True)

    def _resume(self, exchange: Exchange, reader: EventReader) -> Response:
        headers = {**_GET, **self._session, **self._version, **_after(reader)}
        response = self._endpoint.request(exchange, "GET", None, headers)
        if response.status == 200 and response.content_type == "text/event-stream":
            return response
        response.close()
        if response.status in _PASSING:
            raise OSError("HTTP %d when the stream was to be resumed" % response.status)
        raise ConnectionLost(
            "the stream ended without an answer, and could not be resumed (HTTP %d)" % response.status,
            server=self._server,
            maybe_executed=True,
        )

    def _feed(
        self, response: Response, reader: EventReader, stream: StreamId, sink: Sink, request: Optional[Request]
    ) -> bool:
        """Deliver the events of one response until it ends or, which gives True, the request is answered."""
        for chunk in response.chunks():
            events = reader.feed(chunk)
            if not events:
                sink.alive(stream)
            for event in events:
                if not event.data or event.event != "message":
                    sink.alive(stream)
                    continue
                sink.frame(event.data, stream)
                if request is not None and request.answered:
                    return True
                self._life.end_answered(stream)
        return False

    # -- refusals ----------------------------------------------------------------------------------------------

    def _refused(
        self, response: Response, frame: Frame, request: Optional[Request], sink: Sink, session: Mapping[str, str]
    ) -> None:
        status = response.status
        body = response.start(_ERROR_BODY)
        if session and (status == 404 or (status == 400 and says_no_session(body))):
            if self._session is session:
                self._session = _NO_HEADERS
                self._forgotten = True
            raise SessionLost("the server no longer knows the session", server=self._server)
        refused = refusal(response, body, self._server, self.masked)
        if request is not None and self._declines and frame.method == "initialize" and may_be_older(status, body):
            raise Declined(refused, error_answer(body, request.request_id))
        if request is not None and status != 401 and refused.retry_after is None:
            answer = error_answer(body, request.request_id)
            if answer is not None:
                sink.frame(answer, request.request_id)
                if request.answered:
                    return
        raise refused

    def deliver(self, answer: bytes, request: Request) -> bool:
        """Hand on an answer that was held back; whether it answers the request."""
        if self._life.sink is not None:
            self._life.sink.frame(answer, request.request_id)
        return request.answered

    # -- the long stream ---------------------------------------------------------------------------------------

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
        """Open a long stream: the frame's request, or a GET if it carries none.

        A GET that the server refuses is no failure. A stream that ends is opened again by GET, in growing gaps; one
        that belongs to a request breaks that request. A GET takes the place of the one before.
        """
        sink = self._life.sink or self._life.await_sink(deadline)
        opened = threading.Event()
        if frame.data and request is not None:
            body = self._listening_request(frame, request, sink, opened)
        else:
            exchange = Exchange(self._life.max_idle)
            self._life.take_over(LONG_STREAM, exchange)
            body = self._listening_get(exchange, sink, opened)
        with self._reader_lock:
            borrowed = self._reader_busy
            self._reader_busy = True
        if borrowed:

            def run() -> None:
                try:
                    body()
                finally:
                    forks_wait_for_this_thread()

            threading.Thread(target=run, name="mcpsync-%s-stream" % self._server, daemon=True).start()
        else:
            self._commands.put(body)
        opened.wait(deadline.remaining())

    def _listening_request(
        self, frame: Frame, request: Request, sink: Sink, opened: threading.Event
    ) -> Callable[[], None]:
        def listen() -> None:
            try:
                self._drive(frame, request, FOREVER, opened)
            except McpError as error:
                sink.broken(request, error)
            except Exception as error:  # the user's headers, signer or adapter: what they raise ends this stream alone
                sink.broken(request, ConnectionLost("the stream was not opened: %s" % described(error)))
            finally:
                opened.set()

        return listen

    def _listening_get(self, exchange: Exchange, sink: Sink, opened: threading.Event) -> Callable[[], None]:
        def listen() -> None:
            reader = EventReader(self._limit, self._kinds)
            gaps = _Gaps(reader)
            had_one = False
            try:
                with exchange:
                    while True:
                        ended = self._get_once(exchange, reader, sink, opened)
                        had_one = had_one or ended == 200
                        if not (ended in _BROKEN or (had_one and ended in _PASSING)):
                            return
                        exchange.pause(gaps.next())
            except Aborted:
                pass  # closed, or replaced
            except McpError as error:
                sink.warn("long stream", str(error))
            except Exception as error:  # as for a stream that is a request
                sink.warn("long stream", described(error))
            finally:
                opened.set()
                self._life.leave(LONG_STREAM, exchange)

        return listen

    def _get_once(self, exchange: Exchange, reader: EventReader, sink: Sink, opened: threading.Event) -> int:
        """Open the stream and read it to its end; gives the status, 0 if none came."""
        headers = {**_GET, **self._session, **self._version, **_after(reader)}
        status = 0
        try:
            response = self._endpoint.request(exchange, "GET", None, headers)
            try:
                opened.set()
                if response.status != 200 or response.content_type != "text/event-stream":
                    logger.debug("mcpsync: server %r has no long stream (HTTP %d)", self._server, response.status)
                    return response.status if response.status != 200 else 204
                status = 200
                self._feed(response, reader, LONG_STREAM, sink, None)
            finally:
                response.close()
        except NETWORK_ERRORS as error:
            exchange.check()
            logger.debug("mcpsync: server %r: the long stream broke: %s", self._server, error)
        return status


def _after(reader: EventReader) -> Mapping[str, str]:
    """The header that names the event to go on after, if there is one: an id is any text, and travels as UTF-8."""
    return {"Last-Event-ID": reader.last_id.encode().decode("latin-1")} if reader.last_id else _NO_HEADERS


class _Gaps:
    """How long to wait before a stream is opened again: as the server said, and longer each time it brought nothing.

    :param reader: of the stream
    """

    def __init__(self, reader: EventReader) -> None:
        self._reader = reader
        self._seen = ""
        self._last: Optional[float] = None

    def next(self) -> float:
        """Seconds."""
        reader = self._reader
        first = _FIRST_RETRY if reader.retry is None else reader.retry / 1000
        if self._last is None or reader.last_id != self._seen:
            self._last = first
        else:
            self._last = max(first, min(max(self._last, _LEAST_GAP) * 2, _LAST_RETRY))
        self._seen = reader.last_id
        return self._last
