"""A scriptable HTTP server on a real socket: what it does with each request is a small function.

::

    def slow(exchange):
        exchange.start(content_type="text/event-stream")
        exchange.event('{"id": 1, "result": {}}')
        exchange.wait_closed()

    with HttpPeer(slow, tls=authority) as peer:
        ...  # peer.url, peer.requests, peer.wait_for(...)

The function runs on the thread of the connection; when it returns without having answered, the connection closes.
"""

from __future__ import annotations

import gzip
import json
import select
import socket
import ssl
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Any, Callable, Dict, Iterable, List, Mapping, NamedTuple, Optional, Tuple, Type, Union

__all__ = ["Exchange", "HttpPeer", "Proxy", "Recorded", "Relay", "blackhole", "tool_result"]

PATIENCE = 20.0
SSE = "text/event-stream"
JSON = "application/json"


class Recorded(NamedTuple):
    """A request as it came.

    :ivar headers: by lower-case name
    :ivar connection: number of the connection, from 1
    :ivar at: when it was there as a whole, on the monotonic clock
    """

    method: str
    path: str
    headers: Dict[str, str]
    body: bytes
    connection: int
    at: float

    @property
    def message(self) -> Any:
        """The body as JSON."""
        return json.loads(self.body)


class Gone(Exception):
    """The client closed the connection."""


class Exchange:
    """One request, and the means to answer it.

    :ivar request: what came
    :ivar peer: the server
    """

    def __init__(self, peer: HttpPeer, sock: Any, request: Recorded) -> None:
        self.peer = peer
        self.request = request
        self._sock = sock
        self._chunked = False
        self.answered = False
        self.keeps_open = True

    def respond(
        self,
        status: int = 200,
        body: Union[bytes, str, Dict[str, Any], None] = b"",
        content_type: Optional[str] = JSON,
        compressed: bool = False,
        **headers: str,
    ) -> None:
        """Send a whole response, with its length."""
        data = json.dumps(body).encode() if isinstance(body, dict) else (body or b"")
        data = data.encode() if isinstance(data, str) else data
        if compressed:
            data = gzip.compress(data)
            headers["Content_Encoding"] = "gzip"
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if content_type is not None:
            named["Content-Type"] = content_type
        self.raw(_head(status, {**named, "Content-Length": str(len(data))}) + data)
        self.answered = True

    def result(self, result: Any = None, **headers: str) -> None:
        """Answer the JSON-RPC request with a result."""
        self.respond(200, {"jsonrpc": "2.0", "id": self.request.message["id"], "result": result}, JSON, **headers)

    def start(self, status: int = 200, content_type: str = SSE, framing: str = "chunked", **headers: str) -> None:
        """Send the head of a response whose body follows: ``chunked``, until ``close``, or of a length in bytes."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        named["Content-Type"] = content_type
        if framing == "chunked":
            named["Transfer-Encoding"] = "chunked"
            self._chunked = True
        elif framing == "close":
            named["Connection"] = "close"
            self.keeps_open = False
        else:
            named["Content-Length"] = framing
        self.raw(_head(status, named))
        self.answered = True

    def write(self, data: bytes) -> None:
        """Send a piece of the body."""
        self.raw(b"%x\r\n%s\r\n" % (len(data), data) if self._chunked else data)

    def event(
        self,
        data: Union[str, Dict[str, Any], None] = None,
        event: Optional[str] = None,
        event_id: Optional[str] = None,
        retry: Optional[int] = None,
    ) -> None:
        """Send an event."""
        lines = []
        if event_id is not None:
            lines.append("id: " + event_id)
        if event is not None:
            lines.append("event: " + event)
        if retry is not None:
            lines.append("retry: %d" % retry)
        if data is not None:
            lines.append("data: " + (data if isinstance(data, str) else json.dumps(data)))
        self.write(("\n".join(lines) + "\n\n").encode())

    def event_result(self, result: Any = None, event_id: Optional[str] = None) -> None:
        """Send the answer to the JSON-RPC request as an event."""
        answer = {"jsonrpc": "2.0", "id": self.request.message["id"], "result": result}
        self.event(answer, event="message", event_id=event_id)

    def end(self) -> None:
        """End a chunked body."""
        if self._chunked:
            self.raw(b"0\r\n\r\n")

    def raw(self, data: bytes) -> None:
        """Send bytes as they are."""
        try:
            self._sock.sendall(data)
        except (OSError, ValueError):
            raise Gone from None

    def dribble(self, data: bytes, seconds: float = 0.05) -> None:
        """Send bytes one by one, with a pause after each, until the client goes."""
        for position in range(len(data)):
            self.raw(data[position : position + 1])
            if self.wait_closed(seconds):
                raise Gone

    def wait_closed(self, seconds: float = PATIENCE) -> bool:
        """Wait until the client closes the connection; False: it did not."""
        until = time.monotonic() + seconds
        while not self.peer.closing.is_set():
            left = until - time.monotonic()
            if left <= 0:
                return False
            ready = _readable([self._sock], min(left, 0.05))
            if ready:
                try:
                    if not self._sock.recv(65536):
                        return True
                except ssl.SSLWantReadError:
                    continue
                except (OSError, ValueError):
                    return True
        return True

    def close(self) -> None:
        """Close the connection after this."""
        self.keeps_open = False

    def reset(self) -> None:
        """Close it without goodbye."""
        with suppress(OSError):
            self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self._sock.close()
        raise Gone


Behaviour = Callable[[Exchange], None]


class _Listening:
    """A socket, a thread that accepts, and a thread for each connection."""

    def __init__(self, name: str, path: Optional[str] = None) -> None:
        if path is None:
            self._listener = socket.create_server(("127.0.0.1", 0), backlog=256)
            self.port: int = self._listener.getsockname()[1]
        else:
            self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._listener.bind(path)
            self._listener.listen(64)
            self.port = 0
        self.closing = threading.Event()
        self.changed = threading.Condition()
        self.connections = 0
        self._name = name
        self._threads: List[threading.Thread] = []
        self._sockets: List[Any] = []
        self._thread = threading.Thread(target=self._accept, name=name)
        self._thread.start()

    def _accept(self) -> None:
        while True:
            try:
                sock, _ = self._listener.accept()
            except OSError:
                return
            if self.closing.is_set():
                sock.close()
                return
            if sock.family in (socket.AF_INET, socket.AF_INET6):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as any server does that writes in pieces
            with self.changed:
                self.connections += 1
                number = self.connections
                self._sockets.append(sock)
                self.changed.notify_all()
            thread = threading.Thread(target=self._serve_quietly, args=(sock, number), name=self._name)
            self._threads.append(thread)
            thread.start()

    def _serve_quietly(self, sock: Any, number: int) -> None:
        try:
            with suppress(OSError, ValueError, Gone):
                self.serve(sock, number)
        finally:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()

    def serve(self, sock: Any, number: int) -> None:
        raise NotImplementedError

    def keep(self, sock: Any) -> None:
        """Close this at the end, too."""
        with self.changed:
            self._sockets.append(sock)

    def close(self) -> None:
        self.closing.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join(PATIENCE)
        self.drop_connections()
        for thread in self._threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "a peer's thread hangs"

    def drop_connections(self) -> None:
        """Close all connections from this side."""
        with self.changed:
            sockets, self._sockets = self._sockets, []
        for sock in sockets:
            with suppress(OSError):
                socket.socket.shutdown(sock, socket.SHUT_RDWR)

    def wait_for(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Wait until a condition over what was recorded holds."""
        with self.changed:
            if not self.changed.wait_for(condition, seconds):
                raise AssertionError("the peer waited in vain")
            return condition()

    def __exit__(
        self,
        kind: Optional[Type[BaseException]],
        error: Optional[BaseException],
        trace: Optional[TracebackType],
    ) -> None:
        self.close()


class HttpPeer(_Listening):
    """A server.

    :param behaviour: what it does with each request; None: it accepts connections and is silent
    :param tls: a server's TLS context; its handshake never ends if ``behaviour`` is None
    :param idle_seconds: closes a connection that was unused for so long
    :param reads_bodies: False: the function is called when the headers are there
    :param path: of a Unix socket to listen on instead of a port
    """

    def __init__(
        self,
        behaviour: Optional[Behaviour],
        tls: Optional[ssl.SSLContext] = None,
        idle_seconds: Optional[float] = None,
        reads_bodies: bool = True,
        path: Optional[str] = None,
    ) -> None:
        self._behaviour = behaviour
        self._tls = tls
        self._idle_seconds = idle_seconds
        self._reads_bodies = reads_bodies
        self.requests: List[Recorded] = []
        super().__init__("peer-http", path)

    def __enter__(self) -> HttpPeer:
        return self

    @property
    def url(self) -> str:
        """Of its endpoint."""
        return "%s://127.0.0.1:%d/mcp" % ("https" if self._tls else "http", self.port)

    def of(self, method: str) -> List[Recorded]:
        """The requests with this HTTP method."""
        return [request for request in self.requests if request.method == method]

    def wait_requests(self, count: int, method: Optional[str] = None) -> List[Recorded]:
        """Wait for so many requests, and give them."""
        self.wait_for(lambda: len(self.requests if method is None else self.of(method)) >= count)
        return list(self.requests) if method is None else self.of(method)

    def serve(self, sock: Any, number: int) -> None:
        if self._behaviour is None:
            self.closing.wait()
            return
        if self._tls is None:
            self._converse(sock, number)
            return
        with self._tls.wrap_socket(sock, server_side=True, do_handshake_on_connect=False) as encrypted:
            self.keep(encrypted)
            encrypted.do_handshake()
            self._converse(encrypted, number)

    def _converse(self, sock: Any, number: int) -> None:
        assert self._behaviour is not None
        with sock.makefile("rb") as reader:
            while not self.closing.is_set():
                if self._idle_seconds is not None:
                    ready = _readable([sock], self._idle_seconds)
                    if not ready:
                        return
                request = self._read(sock, reader, number)
                if request is None:
                    return
                with self.changed:
                    self.requests.append(request)
                    self.changed.notify_all()
                exchange = Exchange(self, sock, request)
                self._behaviour(exchange)
                if not (exchange.answered and exchange.keeps_open):
                    return

    def _read(self, sock: Any, reader: Any, number: int) -> Optional[Recorded]:
        first = reader.readline()
        if not first:
            return None
        method, target, _ = first.decode().split()
        headers: Dict[str, str] = {}
        for line in iter(reader.readline, b"\r\n"):
            if not line:
                return None
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.strip().lower()] = value.strip()
        body = b""
        if self._reads_bodies:
            if "chunked" in headers.get("transfer-encoding", ""):
                raise AssertionError("the client sent a body in chunks")
            body = reader.read(int(headers.get("content-length", 0)))
        path = "/" + target.split("/", 3)[-1] if "://" in target else target
        return Recorded(method, path, headers, body, number, time.monotonic())


class Proxy(_Listening):
    """A forward proxy, plain and CONNECT, which sends everything to one address.

    :param upstream: host and port, whatever was asked for
    :param silent: accepts, and never says anything
    """

    def __init__(self, upstream: Tuple[str, int], silent: bool = False) -> None:
        self._upstream = upstream
        self._silent = silent
        self.asked: List[str] = []
        super().__init__("peer-proxy")

    def __enter__(self) -> Proxy:
        return self

    @property
    def url(self) -> str:
        return "http://127.0.0.1:%d" % self.port

    def serve(self, sock: Any, number: int) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            piece = sock.recv(65536)
            if not piece:
                return
            head += piece
        with self.changed:
            self.asked.append(head.split(b"\r\n", 1)[0].decode())
            self.changed.notify_all()
        if self._silent:
            self.closing.wait()
            return
        with socket.create_connection(self._upstream) as upstream:
            self.keep(upstream)
            if head.startswith(b"CONNECT"):
                sock.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                upstream.sendall(head)
            _pump(sock, upstream)


class Relay(_Listening):
    """Hands bytes on to an address, until the packets vanish: then nothing more arrives, and nothing is closed.

    :param upstream: host and port
    """

    def __init__(self, upstream: Tuple[str, int]) -> None:
        self._upstream = upstream
        self.vanishing = threading.Event()
        super().__init__("peer-relay")

    def __enter__(self) -> Relay:
        return self

    def vanish(self) -> None:
        """From here on packets vanish, those of new connections too."""
        self.vanishing.set()

    def heal(self) -> None:
        """They arrive again, but for those of the connections that were there before."""
        self.vanishing.clear()

    def serve(self, sock: Any, number: int) -> None:
        lost = self.vanishing.is_set()
        with socket.create_connection(self._upstream) as upstream:
            self.keep(upstream)
            ways = {sock: upstream, upstream: sock}
            while not lost:
                ready = _readable(list(ways))
                lost = self.vanishing.is_set()
                for each in ready:
                    data = b"" if lost else each.recv(65536)
                    if not data and not lost:
                        return
                    ways[each].sendall(data)
            self.closing.wait()


def _readable(sockets: List[Any], seconds: Optional[float] = None) -> List[Any]:
    """Those that can be read, whatever their numbers are."""
    poll = select.poll()
    for sock in sockets:
        poll.register(sock, select.POLLIN)
    ready = {number for number, _ in poll.poll(None if seconds is None else seconds * 1000)}
    return [sock for sock in sockets if sock.fileno() in ready]


def _pump(one: Any, other: Any) -> None:
    ways = {one: other, other: one}
    while True:
        ready = _readable(list(ways))
        for sock in ready:
            data = sock.recv(65536)
            if not data:
                return
            ways[sock].sendall(data)


class blackhole:
    """A port whose backlog is full: attempts to connect to it get no answer."""

    def __enter__(self) -> int:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(0)
        address = self._listener.getsockname()
        self._waiting = []
        for _ in range(16):
            sock = socket.socket()
            sock.setblocking(False)
            sock.connect_ex(address)
            self._waiting.append(sock)
        time.sleep(0)
        port: int = address[1]
        return port

    def __exit__(self, *error: Any) -> None:
        for sock in (*self._waiting, self._listener):
            sock.close()


def tool_result(text: str = "done") -> Dict[str, Any]:
    """What a tool's result looks like."""
    return {"content": [{"type": "text", "text": text}]}


def _head(status: int, headers: Mapping[str, str]) -> bytes:
    lines: Iterable[str] = ("%s: %s\r\n" % header for header in headers.items())
    return ("HTTP/1.1 %d Status\r\n%s\r\n" % (status, "".join(lines))).encode("latin-1")
