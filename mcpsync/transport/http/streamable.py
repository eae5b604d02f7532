"""Streamable HTTP: each message a POST, each answer JSON or a stream of events; beside them one long stream.

Whoever makes a request drives its exchange. The reader thread holds the long stream: GET where the revision has
sessions, ``subscriptions/listen`` where it has none. The transport does not know revisions: what differs comes with
the headers of each frame.

Specification: `basic/transports/streamable-http` (2026-07-28); `basic/transports` (2025-03-26 to 2025-11-25).
"""

from __future__ import annotations

import json
import logging
import os
import threading
from queue import SimpleQueue
from typing import Any, Callable, Dict, Hashable, Mapping, NamedTuple, Optional, Tuple, Type
from urllib.parse import urlsplit

from mcpsync.core.sse import EventReader
from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, HttpError, McpError, RequestTimeout
from mcpsync.transport.base import Frame, Request, SessionLost, Sink, StreamId
from mcpsync.transport.http.endpoint import Endpoint, Response
from mcpsync.transport.http.exchange import Aborted, Exchange
from mcpsync.transport.http.failures import NETWORK_ERRORS, failure_of

__all__ = ["StreamableHttp"]

logger = logging.getLogger("mcpsync")

_POST = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}
_GET = {"Accept": "text/event-stream"}
_DEFAULT_LIMIT = 64 * 1024 * 1024
_MAX_IDLE = 4.0  # many servers close what was idle for five seconds
_RESUMES = 5  # attempts to resume a stream that bring nothing new
_FIRST_RETRY = 1.0
_LAST_RETRY = 30.0
_GOODBYE_SECONDS = 1.5
_LINGER_SECONDS = 0.05
_ERROR_BODY = 1024 * 1024
LONG_STREAM = "long stream"
_NOT_TOLD: Tuple[Type[BaseException], ...] = (Aborted, McpError, *NETWORK_ERRORS)


class _Open(NamedTuple):
    """An exchange under way."""

    exchange: Exchange
    request: Optional[Request]


class StreamableHttp:
    """The connection to one MCP endpoint.

    :param endpoint: where it is, and how it is reached
    :param server_name: for errors
    :param max_message: bytes; a longer message is an error of its call
    """

    exchange_like = True

    def __init__(self, endpoint: Endpoint, *, server_name: str = "server", max_message: int = _DEFAULT_LIMIT) -> None:
        self._endpoint = endpoint
        self._server = server_name
        self._host = urlsplit(endpoint.url).netloc
        self._limit = max_message
        self._owner = os.getpid()
        self._lock = threading.Lock()  # guards the table and the flags below
        self._open: Dict[Hashable, _Open] = {}
        self._closed = False
        self._goodbye_said = threading.Event()
        self._session: Dict[str, str] = {}
        self._version: Dict[str, str] = {}
        self._ends_tell = False
        self._max_idle = _MAX_IDLE
        self._sink: Optional[Sink] = None
        self._has_sink = threading.Event()
        self._commands: SimpleQueue[Optional[Callable[[], None]]] = SimpleQueue()
        self._reader_busy = False

    # -- life --------------------------------------------------------------------------------------------------

    def open(self, deadline: Deadline) -> None:
        """Nothing is sent before the first message."""

    def run(self, sink: Sink) -> None:
        """The body of the reader thread: holds the long stream, if there is one."""
        self._sink = sink
        self._has_sink.set()
        while True:
            command = self._commands.get()
            if command is None:
                return
            command()
            with self._lock:
                self._reader_busy = False

    def close(self, deadline: Deadline) -> None:
        """End all exchanges, and tell the server that the session is over."""
        if os.getpid() != self._owner:
            return
        with self._lock:
            first = not self._closed
            self._closed = True
            under_way = [each.exchange for each in self._open.values()]
        if not first:
            self._goodbye_said.wait(deadline.remaining())
            return
        try:
            for exchange in under_way:
                exchange.abort("the connection was closed")
            if self._session:
                self._say_goodbye(deadline.sooner(_GOODBYE_SECONDS))
            self._endpoint.close()
        finally:
            self._commands.put(None)
            self._goodbye_said.set()

    def after_fork(self) -> None:
        """In a forked child: the sockets are the parent's, and so is the session."""
        self._owner = -1
        self._lock = threading.Lock()
        self._closed = True
        self._open = {}
        self._session = {}
        self._goodbye_said.set()

    def _say_goodbye(self, deadline: Deadline) -> None:
        exchange = Exchange(self._max_idle)
        over = threading.Event()

        def delete() -> None:
            try:
                with exchange:
                    self._endpoint.request(exchange, "DELETE", None, {**self._session, **self._version}).close()
            except _NOT_TOLD as error:
                logger.debug("mcpsync: server %r was not told that the session is over: %s", self._server, error)
            finally:
                over.set()

        try:
            threading.Thread(target=delete, name="mcpsync-goodbye", daemon=True).start()
        except RuntimeError:  # the interpreter is shutting down: the session will time out
            return
        if not over.wait(deadline.remaining()):
            exchange.abort("no time left")
            over.wait(_LINGER_SECONDS)

    # -- messages ----------------------------------------------------------------------------------------------

    def send(self, frame: Frame, request: Optional[Request], deadline: Deadline) -> None:
        """Drive one exchange to its end: until the request is answered, or will not be any more.

        :raises ConnectFailed: the server was not reached
        :raises ConnectionLost: the exchange broke; nothing else did
        :raises SessionLost: the server no longer knows the session
        :raises HttpError: an answer that is no MCP answer
        :raises RequestTimeout: what is no request was not taken in time
        """
        sink = self._sink or self._await_sink(deadline)
        exchange = Exchange(self._max_idle)
        key: Hashable = exchange if request is None else request.request_id
        timer = None
        if request is None:  # nobody watches over it
            timer = threading.Timer(deadline.remaining() or _GOODBYE_SECONDS, exchange.abort, ["timed out"])
            timer.daemon = True
            timer.start()
        self._enter(key, exchange, request)
        try:
            with exchange:
                self._post(exchange, frame, request, sink)
        except Aborted as error:
            if request is None:
                raise RequestTimeout("the message was not taken in time", server=self._server) from None
            if not request.answered:
                raise ConnectionLost("the exchange was ended: %s" % error, server=self._server) from None
        except NETWORK_ERRORS as error:
            if exchange.reason is None:
                raise failure_of(error, self._host, exchange.began) from error
            if request is not None and not request.answered:
                raise ConnectionLost("the exchange was ended: %s" % exchange.reason, server=self._server) from None
        finally:
            if timer is not None:
                timer.cancel()
            with self._lock:
                self._open.pop(key, None)

    def abort(self, request: Request, reason: str) -> bool:
        """End the exchange of a request. True where that tells the server."""
        with self._lock:
            found = self._open.get(request.request_id)
        if found is None or found.request is not request:
            return False
        return found.exchange.abort(reason) and self._ends_tell

    def _await_sink(self, deadline: Deadline) -> Sink:
        self._has_sink.wait(deadline.remaining())
        if self._sink is None:
            raise ConnectionLost("the connection has no reader", server=self._server)
        return self._sink

    def _enter(self, key: Hashable, exchange: Exchange, request: Optional[Request]) -> None:
        with self._lock:
            if self._closed:
                raise ConnectionLost("the connection is closed", server=self._server)
            self._open[key] = _Open(exchange, request)

    def _headers(self, frame: Frame) -> Dict[str, str]:
        version = frame.headers.get("MCP-Protocol-Version")
        if version is not None and self._version.get("MCP-Protocol-Version") != version:
            self._version = {"MCP-Protocol-Version": version}
        self._ends_tell = "Mcp-Method" in frame.headers
        return {**_POST, **self._session, **frame.headers}

    def _post(self, exchange: Exchange, frame: Frame, request: Optional[Request], sink: Sink) -> None:
        session = self._session
        response = self._endpoint.request(exchange, "POST", frame.data, self._headers(frame))
        try:
            if response.status >= 400:
                self._refused(response, request, sink, bool(session))
                return
            session_id = response.headers.get("mcp-session-id")
            if session_id is not None and not self._ends_tell and self._session.get("Mcp-Session-Id") != session_id:
                self._session = {"Mcp-Session-Id": session_id}
            if request is None:
                response.body(_ERROR_BODY)  # read to its end, so that the connection can be used again
            elif response.content_type == "text/event-stream":
                self._read_stream(exchange, response, request, sink)
            else:
                self._read_answer(exchange, response, request, sink)
        finally:
            response.close()

    def _read_answer(self, exchange: Exchange, response: Response, request: Request, sink: Sink) -> None:
        body = response.body(self._limit)
        if body.strip() and (response.content_type == "application/json" or body.lstrip()[:1] in (b"{", b"[")):
            self._deliver(sink, body, request.request_id)
            if request.answered:
                return
            raise HttpError(
                "the answer does not answer the request: %.200r" % body[:200],
                status=response.status,
                server=self._server,
            )
        if body.strip() or response.status == 200:
            raise HttpError(
                "HTTP %d with the content type %r and no JSON in it: %.200r"
                % (response.status, response.content_type or "none", body[:200].decode("utf-8", "replace")),
                status=response.status,
                excerpt=body[:300].decode("utf-8", "replace"),
                server=self._server,
            )
        # accepted: the answer will come on the long stream
        while not request.answered:
            exchange.pause(3600)

    # -- streams of events -------------------------------------------------------------------------------------

    def _read_stream(self, exchange: Exchange, response: Response, request: Request, sink: Sink) -> None:
        """Read the stream of one request, and resume it as long as the server gave ids to its events."""
        reader = EventReader(self._limit)
        stream: StreamId = request.request_id
        failures = 0
        while True:
            before = reader.last_id
            try:
                broken = self._feed(response, reader, stream, sink, request)
            except NETWORK_ERRORS as error:
                exchange.check()
                broken = failure_of(error, self._host, True)
            if request.answered:
                return
            failures = 0 if reader.last_id != before else failures + 1
            if not reader.last_id or self._ends_tell or failures > _RESUMES:
                raise broken or ConnectionLost(
                    "the stream ended without an answer", server=self._server, maybe_executed=True
                )
            response.close()
            response = self._resume(exchange, reader)

    def _resume(self, exchange: Exchange, reader: EventReader) -> Response:
        exchange.pause(_FIRST_RETRY if reader.retry is None else reader.retry / 1000)
        headers = {**_GET, **self._session, **self._version, "Last-Event-ID": reader.last_id}
        response = self._endpoint.request(exchange, "GET", None, headers)
        if response.status != 200 or response.content_type != "text/event-stream":
            response.close()
            raise ConnectionLost(
                "the stream ended without an answer, and could not be resumed (HTTP %d)" % response.status,
                server=self._server,
                maybe_executed=True,
            )
        return response

    def _feed(
        self, response: Response, reader: EventReader, stream: StreamId, sink: Sink, request: Optional[Request]
    ) -> Optional[McpError]:
        """Deliver the events of one response until it ends or the request is answered."""
        for chunk in response.chunks():
            events = reader.feed(chunk)
            if not events:
                sink.alive(stream)
            for event in events:
                if event.data and event.event == "message":
                    self._deliver(sink, event.data, stream)
            if request is not None and request.answered:
                break
        return None

    def _deliver(self, sink: Sink, data: bytes, stream: StreamId) -> None:
        sink.frame(data, stream)
        if len(self._open) < 2:
            return
        with self._lock:
            elsewhere = [each for key, each in self._open.items() if key != stream and each.request is not None]
        for each in elsewhere:
            if each.request is not None and each.request.answered:
                each.exchange.abort("answered on another stream")

    # -- refusals ----------------------------------------------------------------------------------------------

    def _refused(self, response: Response, request: Optional[Request], sink: Sink, had_session: bool) -> None:
        status = response.status
        body = response.body(_ERROR_BODY)
        if status == 404 and had_session:
            self._session = {}
            raise SessionLost("the server no longer knows the session", server=self._server)
        if request is not None:
            answer = _error_answer(body, request.request_id)
            if answer is not None:
                self._deliver(sink, answer, request.request_id)
                if request.answered:
                    return
        excerpt = " ".join(body[:300].decode("utf-8", "replace").split())
        raise HttpError(
            "HTTP %d%s%s" % (status, _meaning(status), ": " + excerpt if excerpt else ""),
            status=status,
            excerpt=excerpt,
            server=self._server,
        )

    # -- the long stream ---------------------------------------------------------------------------------------

    def listen(self, frame: Frame, deadline: Deadline, request: Optional[Request] = None) -> None:
        """Open a long stream: the frame's request, or a GET if it carries none.

        A GET that the server refuses is no failure. A stream that ends is opened again by GET, in growing gaps;
        one that belongs to a request breaks that request.
        """
        sink = self._sink or self._await_sink(deadline)
        opened = threading.Event()
        if frame.data and request is not None:
            body = self._listening_request(frame, request, sink, opened)
        else:
            body = self._listening_get(sink, opened)
        with self._lock:
            if self._closed:
                raise ConnectionLost("the connection is closed", server=self._server)
            borrowed = self._reader_busy
            self._reader_busy = True
        if borrowed:
            threading.Thread(target=body, name="mcpsync-%s-stream" % self._server, daemon=True).start()
        else:
            self._commands.put(body)
        opened.wait(deadline.remaining())

    def _listening_request(
        self, frame: Frame, request: Request, sink: Sink, opened: threading.Event
    ) -> Callable[[], None]:
        def listen() -> None:
            try:
                self.send(frame, request, Deadline(None))
            except McpError as error:
                sink.broken(request, error)
            finally:
                opened.set()

        return listen

    def _listening_get(self, sink: Sink, opened: threading.Event) -> Callable[[], None]:
        def listen() -> None:
            reader = EventReader(self._limit)
            gap = _FIRST_RETRY
            exchange = Exchange(self._max_idle)
            try:
                self._enter(LONG_STREAM, exchange, None)
                with exchange:
                    while self._get_once(exchange, reader, sink, opened):
                        exchange.pause(gap if reader.retry is None else max(gap, reader.retry / 1000))
                        gap = min(gap * 2, _LAST_RETRY)
            except (Aborted, McpError):
                pass  # closed
            finally:
                opened.set()
                with self._lock:
                    self._open.pop(LONG_STREAM, None)

        return listen

    def _get_once(self, exchange: Exchange, reader: EventReader, sink: Sink, opened: threading.Event) -> bool:
        """Open the stream and read it to its end. False: the server has none."""
        headers = {**_GET, **self._session, **self._version}
        if reader.last_id:
            headers["Last-Event-ID"] = reader.last_id
        try:
            response = self._endpoint.request(exchange, "GET", None, headers)
            try:
                opened.set()
                if response.status != 200 or response.content_type != "text/event-stream":
                    logger.debug("mcpsync: server %r has no long stream (HTTP %d)", self._server, response.status)
                    return response.status in (429, 500, 502, 503, 504) and bool(reader.last_id)
                self._feed(response, reader, LONG_STREAM, sink, None)
            finally:
                response.close()
        except NETWORK_ERRORS as error:
            exchange.check()
            logger.debug("mcpsync: server %r: the long stream broke: %s", self._server, error)
        return True


def _error_answer(body: bytes, request_id: Optional[int]) -> Optional[bytes]:
    """A JSON-RPC answer in the body of a refusal. Whoever refuses before reading the id leaves it out."""
    try:
        message: Any = json.loads(body)
    except ValueError:
        return None
    if not isinstance(message, dict) or not ("result" in message or isinstance(message.get("error"), dict)):
        return None
    if message.get("id") is None:
        message["id"] = request_id
    return json.dumps(message).encode()


def _meaning(status: int) -> str:
    known: Mapping[int, str] = {
        401: " (not signed in)",
        403: " (forbidden)",
        404: " (there is no MCP endpoint at this URL)",
        405: " (this URL takes no POST)",
        429: " (too many requests)",
        503: " (unavailable)",
    }
    return known.get(status, "")
