"""The callback on this machine: a small server that takes one answer and ignores everything else.

It listens before the browser opens. Any page in any browser here can send requests to it: only one that repeats the
state of the sign-in is the answer; all others get a page that says so, and the wait goes on.

Specification: RFC 8252, 7.3 and 8.3.
"""

from __future__ import annotations

import os
import selectors
import socket
import threading
import time
from contextlib import suppress
from types import TracebackType
from typing import Dict, List, Mapping, Optional, Sequence, Tuple, Type
from urllib.parse import urlsplit

from mcpsync.auth.authorization_code import answer_of, matches
from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError, ConfigError

__all__ = ["Loopback"]

_LONGEST_REQUEST = 16 * 1024
_MOST_CONNECTIONS = 32
_IDLE_SECONDS = 10.0
_SEND_SECONDS = 2.0
_PAGE = (
    "<!doctype html><html><head><meta charset='utf-8'><title>mcpsync</title></head>"
    "<body style='font-family:sans-serif;margin:4em'><h1>%s</h1><p>%s</p></body></html>"
)
_DONE = (200, _PAGE % ("Thank you", "You can close this page and go back to the program that asked you to sign in."))
_STRAY = (400, _PAGE % ("Not expected", "This does not belong to the sign-in that is waited for."))
_MISSING = (404, _PAGE % ("Not here", "There is nothing here."))


class Loopback:
    """Listens on this machine from its creation on.

    :param redirect_uri: ``http://`` with a loopback host; with port 0 one that is free is taken
    :param preferred: ports to try first where it is 0
    :ivar redirect_uri: with the port that it listens on
    :raises ConfigError: the URI is none that can be listened on
    :raises AuthError: the port is taken
    """

    def __init__(self, redirect_uri: str = "http://127.0.0.1:0/callback", preferred: Sequence[int] = ()) -> None:
        try:
            parts = urlsplit(redirect_uri)
            port = parts.port if parts.port is not None else 80
        except ValueError:
            raise ConfigError("the redirect URI is no URL", path="redirect_uri") from None
        self._host = parts.hostname or ""
        if parts.scheme != "http" or self._host not in ("127.0.0.1", "localhost", "::1"):
            raise ConfigError(
                "the redirect URI of a callback on this machine is http:// with 127.0.0.1, localhost or [::1]; others "
                "need a way of your own to sign in",
                path="redirect_uri",
            )
        self._listeners = self._listen(port, preferred)
        self.port: int = self._listeners[0].getsockname()[1]
        self._path = parts.path or "/"
        shown = "[%s]" % self._host if ":" in self._host else self._host
        self._hosts = {"%s:%d" % (host, self.port) for host in (shown, "127.0.0.1", "localhost", "[::1]")}
        if self.port == 80:
            self._hosts |= {shown}
        self.redirect_uri = parts._replace(netloc="%s:%d" % (shown, self.port)).geturl()
        self._wake, self._woken = socket.socketpair()
        self._state = ""
        self._answer: Optional[Mapping[str, str]] = None
        self._done = threading.Event()
        self._thread: Optional[threading.Thread] = None

    def __enter__(self) -> Loopback:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def expect(self, state: str) -> None:
        """Take the answer that repeats this state from now on."""
        self._state = state
        self._thread = threading.Thread(target=self._serve, name="mcpsync-sign-in-callback", daemon=True)
        self._thread.start()

    def wait(self, deadline: Deadline) -> Mapping[str, str]:
        """The parameters of the answer.

        :raises AuthError: it did not come in time
        """
        if not deadline.wait(self._done) or self._answer is None:
            raise AuthError("nobody came back from the browser in time; sign in again")
        return self._answer

    def close(self) -> None:
        """Stop listening. Idempotent."""
        with suppress(OSError):
            self._wake.send(b"x")
        if self._thread is not None:
            self._thread.join()
        for sock in (*self._listeners, self._wake, self._woken):
            sock.close()

    # -- listening ---------------------------------------------------------------------------------------------

    def _listen(self, port: int, preferred: Sequence[int]) -> List[socket.socket]:
        for candidate in (*preferred, 0) if port == 0 else (port,):
            try:
                return self._listen_on(candidate)
            except OSError as error:
                failed = error
        if port == 0:
            raise AuthError("no port for the callback could be opened: %s" % failed)
        raise AuthError(
            "port %d for the callback is taken or not allowed (%s); end the program that has it, or set another "
            "callback_port that the client is registered with" % (port, failed.strerror)
        )

    def _listen_on(self, port: int) -> List[socket.socket]:
        first = _listener(socket.AF_INET6 if self._host == "::1" else socket.AF_INET, port)
        found = [first]
        if self._host == "localhost":  # what a browser may take for ::1
            with suppress(OSError):
                found.append(_listener(socket.AF_INET6, first.getsockname()[1]))
        return found

    # -- on its own thread -------------------------------------------------------------------------------------

    def _serve(self) -> None:
        since: Dict[socket.socket, float] = {}
        received: Dict[socket.socket, bytes] = {}
        with selectors.DefaultSelector() as selector:
            for listener in self._listeners:
                selector.register(listener, selectors.EVENT_READ, "listener")
            selector.register(self._woken, selectors.EVENT_READ, "end")

            def drop(sock: socket.socket) -> None:
                selector.unregister(sock)
                since.pop(sock)
                received.pop(sock)
                sock.close()

            while True:
                for key, _ in selector.select(_IDLE_SECONDS if since else None):
                    sock = key.fileobj
                    assert isinstance(sock, socket.socket)
                    if key.data == "end":
                        for left in list(since):
                            drop(left)
                        return
                    if key.data == "listener":
                        with suppress(OSError):
                            made, _ = sock.accept()
                            made.setblocking(False)
                            since[made], received[made] = time.monotonic(), b""
                            selector.register(made, selectors.EVENT_READ, "connection")
                    elif self._read(sock, received):
                        drop(sock)
                now = time.monotonic()
                for sock in [each for each, began in since.items() if now - began > _IDLE_SECONDS]:
                    drop(sock)
                while len(since) > _MOST_CONNECTIONS:
                    drop(next(iter(since)))

    def _read(self, sock: socket.socket, received: Dict[socket.socket, bytes]) -> bool:
        """Read what is there; True: the connection is over."""
        try:
            piece = sock.recv(_LONGEST_REQUEST)
        except BlockingIOError:
            return False
        except OSError:
            return True
        received[sock] += piece
        if not piece or len(received[sock]) > _LONGEST_REQUEST:
            return True
        if b"\r\n\r\n" not in received[sock]:
            return False
        status, page = self._respond(received[sock].decode("latin-1"))
        with suppress(OSError):
            sock.settimeout(_SEND_SECONDS)
            sock.sendall(_response(status, page))
            sock.shutdown(socket.SHUT_WR)
        if status == 200:
            self._done.set()
        return True

    def _respond(self, request: str) -> Tuple[int, str]:
        first, *lines = request.partition("\r\n\r\n")[0].split("\r\n")
        method, _, rest = first.partition(" ")
        target = rest.partition(" ")[0]
        hosts = [line.partition(":")[2].strip().lower() for line in lines if line.lower().startswith("host:")]
        path, _, query = target.partition("?")
        if method != "GET" or path != self._path or len(hosts) != 1 or hosts[0] not in self._hosts:
            return _MISSING
        try:
            answer = answer_of("?" + query)
        except AuthError:
            return _STRAY
        if not matches(self._state, answer) or self._done.is_set():
            return _STRAY
        self._answer = answer
        return _DONE


def _listener(family: int, port: int) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "nt":
            listener.setsockopt(socket.SOL_SOCKET, getattr(socket, "SO_EXCLUSIVEADDRUSE"), 1)  # noqa: B009
        else:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind(("::1" if family == socket.AF_INET6 else "127.0.0.1", port))
        listener.listen(64)
    except BaseException:
        listener.close()
        raise
    return listener


def _response(status: int, page: str) -> bytes:
    body = page.encode()
    reason = {200: "OK", 400: "Bad Request", 404: "Not Found"}[status]
    head = (
        "HTTP/1.1 %d %s\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: %d\r\nConnection: close\r\n"
        "Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
        "X-Frame-Options: DENY\r\nContent-Security-Policy: default-src 'none'; style-src 'unsafe-inline'\r\n\r\n"
    )
    return (head % (status, reason, len(body))).encode() + body
