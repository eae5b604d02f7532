"""Connections of ``urllib3`` whose exchanges can be ended by another thread, and pools that make such.

A class of ours is mixed in front of whatever connection class a pool has, so adapters, TLS contexts, proxies and
socket options stay as they are. Nothing here uses private names of ``urllib3``, ``http.client`` or ``ssl``.
"""

from __future__ import annotations

import copy
import errno
import http.client
import ipaddress
import os
import queue
import select
import socket
import ssl
import threading
import time
import weakref
from contextlib import suppress
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Type

import urllib3

from mcpsync.passing_threads import forks_wait_for_this_thread
from mcpsync.transport.http.exchange import Aborted, Connected, Exchange, StaleConnection, current

__all__ = ["AbortableMixin", "let_go_after_fork", "make_abortable", "make_retries_abortable"]

_UNWIND_SECONDS = 0.05
_TURN_SECONDS = 1.0
_MOST_HANGING = 16
_TAIL_CHUNK = 65536
_CHUNK_END = 2  # bytes of the line end that closes the last chunk, which come with that
_MOST_TAIL = 64
_SENT_APART = 65536

_KEEPALIVE = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))

_hanging: Dict[Tuple[Any, Any], int] = {}  # attempts to connect that were left behind, by host and port
_hanging_lock = threading.RLock()  # guards the counts, and the flags of an attempt
_live: weakref.WeakSet[Any] = weakref.WeakSet()


class AbortableMixin:
    """In front of a connection class of ``urllib3``: an exchange that is being driven can be ended.

    Without a current exchange it behaves as the class behind it.

    :ivar tail: a response whose end nobody waited for, and which has to be read before the next request
    :ivar keep_for: seconds that the server keeps the connection open while it is unused, as far as it said
    """

    timeout: Any  # that of http.client: seconds for each step of an attempt to connect
    tail: Optional[http.client.HTTPResponse] = None
    keep_for = float("inf")
    _exchange: Optional[Exchange] = None
    _guard: Optional[socket.socket] = None
    _socket: Any = None
    _abandoned = False
    _kept = False
    _held_back: Optional[List[bytes]] = None
    _poll: Any = None

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        _live.add(self)

    @property
    def sock(self) -> Any:
        """The connection's socket. ``http.client`` and ``urllib3`` set it as soon as TCP is connected, and set it
        again when TLS is; the first is what can be shut down in every phase."""
        return self._socket

    @sock.setter
    def sock(self, value: Any) -> None:
        if value is not None and self._abandoned:
            value.close()
            raise Aborted("the exchange was ended while it connected")
        self._socket = value
        if value is not None and self._guard is None:
            self._make_guard()

    def _make_guard(self) -> None:
        # a duplicate by number: TLS sockets refuse dup()
        self._guard = socket.fromfd(self._socket.fileno(), socket.AF_INET, socket.SOCK_STREAM)
        with suppress(OSError):  # no TCP: a Unix socket
            # a stream may be silent for long, and the end of what is behind it too
            self._guard.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE:
                if hasattr(socket, name):
                    self._guard.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
        if self._exchange is not None:
            self._exchange.attach(self._guard)

    # -- connecting --------------------------------------------------------------------------------------------

    def connect(self) -> Any:
        exchange = current()
        connect = super().connect  # type: ignore[misc]
        if exchange is None:
            return connect()
        exchange.check()
        self._exchange = exchange
        key = (getattr(self, "host", None), getattr(self, "port", None))
        if _hanging.get(key, 0) >= _MOST_HANGING:
            raise OSError(errno.EAGAIN, "%d earlier attempts to connect have not ended yet" % _MOST_HANGING)
        connected = threading.Event()
        failed: List[BaseException] = []
        over: List[bool] = []  # not the event, which an abort sets as well
        counted: List[bool] = []

        def run() -> None:
            forks_wait_for_this_thread()
            try:
                self._connect_in_turns(connect, exchange)
            except BaseException as error:  # all of them are raised again, on the thread that waits
                failed.append(error)
            with _hanging_lock:
                over.append(True)
                if counted:
                    _hanging[key] -= 1
            if self._abandoned:
                failed.clear()  # nobody raises it; with it goes a cycle through the traceback
                self.close()
            connected.set()

        helper = threading.Thread(target=run, name="mcpsync-connecting", daemon=True)
        try:
            helper.start()
        except RuntimeError:  # no more threads, as while the interpreter ends: then this one
            return connect()
        try:
            exchange.wait_for(connected)
        except BaseException:
            self._abandoned = True
            if self._guard is not None:
                helper.join(_UNWIND_SECONDS)  # its socket was shut down: let it unwind before this thread cleans up
            with _hanging_lock:
                if not over:
                    _hanging[key] = _hanging.get(key, 0) + 1
                    counted.append(True)
            failed.clear()
            raise
        if failed:
            try:
                raise failed[0]
            finally:
                failed.clear()
        return None

    def _connect_in_turns(self, connect: Callable[[], Any], exchange: Exchange) -> None:
        """Connect; first with little time for each address of the host, so that one that leads nowhere does not keep
        those behind it from being tried; and if none answered, with all the time there is."""
        whole = self.timeout
        turn = min(_TURN_SECONDS, whole / 3) if isinstance(whole, (int, float)) else None
        if turn is None or _is_address(getattr(self, "host", None)):
            connect()
            return
        until = time.monotonic() + whole
        self.timeout = turn
        try:
            connect()
        except (urllib3.exceptions.TimeoutError, socket.timeout):
            exchange.check()
            self.close()
            self._exchange = exchange
            self.timeout = max(turn, until - time.monotonic())
            connect()
        finally:
            self.timeout = whole
        connected = self._socket
        if connected is not None:
            connected.settimeout(whole)

    # -- requests ----------------------------------------------------------------------------------------------

    def putrequest(self, *arguments: Any, **keywords: Any) -> Any:
        # the first thing that every exchange does with its connection
        exchange, previous = current(), self._exchange
        if previous is not exchange:
            if previous is not None and self._guard is not None:
                if not previous.release(self._guard):
                    raise StaleConnection
                if exchange is not None and self._too_old(previous, exchange):
                    raise StaleConnection
            self._exchange = exchange
            if exchange is not None and self._socket is not None:
                if self._guard is None:
                    self._make_guard()
                else:
                    exchange.attach(self._guard)
        if exchange is not None:
            if exchange.connects:
                if self._socket is None:
                    self.connect()
                exchange.made = self
                self._kept = True
                raise Connected
            exchange.began = True
        return super().putrequest(*arguments, **keywords)  # type: ignore[misc]

    def _too_old(self, previous: Exchange, exchange: Exchange) -> bool:
        if not previous.finished_at:
            return False  # its thread is about to finish
        return time.monotonic() - previous.finished_at > min(exchange.max_idle, self.keep_for)

    def send(self, data: Any) -> Any:
        if self._held_back is not None and isinstance(data, bytes):
            self._held_back.append(data)
            return None
        return super().send(data)  # type: ignore[misc]

    def ask(self, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes]) -> Any:
        """Send a whole request, in one piece, and give ``http.client``'s response when its headers are there.

        What ``urllib3`` puts around that costs as much as the request itself.

        :param headers: all of them but ``Content-Length``
        :raises http.client.HTTPException: a header cannot be sent; or the response is none
        """
        pieces: List[bytes] = []
        self._held_back = pieces
        try:
            self.putrequest(method, target, True, True)
            self.endheaders()  # type: ignore[attr-defined]
        finally:
            self._held_back = None
        lines = ["%s: %s\r\n" % header for header in headers.items()]
        if body is not None:
            lines.append("Content-Length: %d\r\n" % len(body))
        try:
            head = "".join(lines).encode("latin-1")
        except UnicodeEncodeError:  # a cookie that the user has put into the session
            head = b""
        if head.count(b"\n") != len(lines) or head.count(b"\r") != len(lines):
            raise http.client.HTTPException("a header has a line end in it, or characters that cannot be sent")
        # the request line, then an empty line, which comes after the headers
        head = b"%s%s\r\n" % (b"".join(pieces)[:-2], head)
        try:
            if body is None or len(body) > _SENT_APART:
                self.send(head)
                if body is not None:
                    self.send(body)
            else:
                self.send(head + body)
        except (BrokenPipeError, ConnectionResetError):
            pass  # the server may have answered before it closed
        return http.client.HTTPConnection.getresponse(self)  # type: ignore[arg-type]

    # -- between requests --------------------------------------------------------------------------------------

    def dropped(self) -> bool:
        """Whether the server closed the connection, or says what nobody asked for."""
        if not hasattr(select, "poll"):
            return bool(urllib3.util.wait_for_read(self._socket, 0.0))
        if self._poll is None:
            self._poll = select.poll()
            self._poll.register(self._guard, select.POLLIN)
        return bool(self._poll.poll(0))

    def tail_is_here(self) -> bool:
        """Whether something of the end of the response before has come, or will never: then :meth:`settle` is quick."""
        tail = self.tail
        if tail is None or tail.isclosed():
            return True
        try:
            self._socket.settimeout(0)
            # what has been read already, or what the system has; a read that finds nothing leaves no trace
            if len(tail.fp.peek(1)) > _CHUNK_END:
                return True
        except (BlockingIOError, ssl.SSLWantReadError):
            pass
        except (OSError, http.client.HTTPException):
            return True
        finally:
            self._socket.settimeout(None)
        pending = getattr(self._socket, "pending", None)
        return self.dropped() or (pending is not None and pending() > 0)

    def settle(self, seconds: float) -> bool:
        """Read the end of the response before, if it comes within so many seconds. False: it does not."""
        tail, self.tail = self.tail, None
        if tail is None:
            return True
        until = time.monotonic() + seconds
        try:
            self._socket.settimeout(seconds)
            for _ in range(_MOST_TAIL):
                if not tail.read1(_TAIL_CHUNK):
                    self._socket.settimeout(None)
                    return tail.isclosed()
                if time.monotonic() > until:
                    break
        except (OSError, http.client.HTTPException):
            pass
        return False

    def close(self) -> None:
        if self._kept:
            self._kept = False  # the pool throws away what it believes to have failed
            return
        # one step: a helper that still connects may make a guard at this very moment, which must not be lost
        guard = self.__dict__.pop("_guard", None)
        exchange, self._exchange = self._exchange, None
        self.tail = self._poll = None
        try:
            super().close()  # type: ignore[misc]
        finally:
            self._socket = None
            # a guard left open would hold back the FIN
            if guard is not None and not (exchange is not None and exchange.adopt(guard)):
                guard.close()

    def let_go(self) -> None:
        """In a forked child: lay the null device over the parent's socket, whose other end must see it close."""
        null = os.open(os.devnull, os.O_RDWR)
        for held in (self._socket, self._guard):
            with suppress(OSError, AttributeError):  # TLS within TLS has no number of its own
                if held is not None and held.fileno() >= 0:
                    os.dup2(null, held.fileno())
        os.close(null)


def _is_address(host: Optional[str]) -> bool:
    """Whether it is no name, which may have several addresses, but one of these."""
    try:
        ipaddress.ip_address((host or "").strip("[]"))
    except ValueError:
        return False
    return True


def let_go_after_fork() -> None:
    """In a forked child: hold none of the parent's connections open."""
    global _hanging_lock
    _hanging_lock = threading.RLock()
    _hanging.clear()
    for connection in list(_live):
        connection.let_go()


_classes: Dict[Type[Any], Type[Any]] = {}


def make_abortable(pool: Any) -> None:
    """Have a connection pool of ``urllib3`` make connections whose exchanges can be ended. Idempotent."""
    plain = pool.ConnectionCls
    if issubclass(plain, AbortableMixin):
        return
    made = _classes.get(plain)
    if made is None:
        made = _classes[plain] = type("Abortable" + plain.__name__, (AbortableMixin, plain), {})
    pool.ConnectionCls = made
    _replace_idle(pool)


def _replace_idle(pool: Any) -> None:
    """Close the connections that were made before: their exchanges could not be ended."""
    idle = []
    with suppress(queue.Empty, AttributeError):  # the pool is closed
        while True:
            idle.append(pool.pool.get_nowait())
    for connection in idle:
        foreign = connection is not None and not isinstance(connection, AbortableMixin)
        if foreign:
            connection.close()
        with suppress(queue.Full, AttributeError):
            pool.pool.put_nowait(None if foreign else connection)


def make_retries_abortable(adapter: Any) -> None:
    """Have the waits between an adapter's own retries end with the exchange."""
    retries = adapter.max_retries
    if isinstance(retries, _AbortableWaits) or not isinstance(retries, urllib3.Retry):
        return
    plain = type(retries)
    made = _classes.get(plain)
    if made is None:
        made = _classes[plain] = type("Abortable" + plain.__name__, (_AbortableWaits, plain), {})
    adapter.max_retries = copy.copy(retries)
    adapter.max_retries.__class__ = made


class _AbortableWaits:
    """In front of a ``Retry``: its sleeps end with the current exchange."""

    def sleep(self, response: Any = None) -> None:
        exchange = current()
        if exchange is None:
            super().sleep(response)  # type: ignore[misc]
            return
        own: Any = self
        asked = own.get_retry_after(response) if own.respect_retry_after_header and response is not None else None
        exchange.pause(asked or own.get_backoff_time())
