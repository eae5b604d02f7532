"""The connections to one origin: those of an adapter's own pool, spoken to without what ``urllib3`` puts around them.

The pool makes the connections, proxies and TLS included, and keeps the idle ones. A request takes one out, drives it
through ``http.client``, and gives it back: a third of the time that ``urlopen`` takes goes into what is settled here
once per connection.
"""

from __future__ import annotations

import http.client
import queue
from collections import deque
from contextlib import suppress
from time import monotonic
from typing import Any, Deque, Dict, Mapping, Optional

import urllib3

from mcpsync.transport.http.abortable import AbortableMixin, make_abortable
from mcpsync.transport.http.exchange import Connected, Exchange, StaleConnection
from mcpsync.transport.http.response import HeldResponse, Response

__all__ = ["DirectPool"]

_TAIL_SECONDS = 0.005  # how long a request waits for all of the end of the response before it, of which some is here
_MOST_LINGERING = 8
_MOST_ENDLESS = 4
_ENDLESS_AGAIN = 16
_LOOK_SECONDS = 0.1
_WATCHDOG_SECONDS = 1.0  # in which the watchdog ends what is overdue, however busy the machine is
_MARGIN = 0.8
_UNKNOWN = float("inf")
_LONG = 86400.0


class DirectPool:
    """A connection pool of ``urllib3``.

    :param pool: of a plain adapter
    :param connect_timeout: seconds for one attempt to connect
    """

    def __init__(self, pool: Any, connect_timeout: float) -> None:
        make_abortable(pool)
        self._pool = pool
        self._connect_timeout = connect_timeout
        self._proxy_headers: Dict[str, str] = dict(pool.proxy_headers or {}) if pool.scheme == "http" else {}
        # Connections whose last response has not ended yet, which nobody waited for; each step on the queue is atomic.
        self._lingering: Deque[Any] = deque()
        self._forgotten = False
        self._endless = 0  # responses in a row that did not end after what was wanted of them

    def send(
        self, exchange: Exchange, method: str, target: str, body: Optional[bytes], headers: Mapping[str, str]
    ) -> Response:
        """Send a request and give the response when its headers are here.

        :raises ClosedPoolError: the pool was closed; nothing was sent
        :raises Aborted: the exchange was ended
        :raises OSError, http.client.HTTPException, urllib3.exceptions.HTTPError: the network failed
        """
        if self._proxy_headers:
            headers = {**self._proxy_headers, **headers}
        while True:
            connection = raw = None
            try:
                connection = self._ended_since() or self._take() or self._connect(exchange, target)
                raw = connection.ask(method, target, headers, body)
                exchange.check()
            except BaseException as error:
                if connection is not None:
                    self._give_back(connection, False)
                if raw is not None:
                    raw.close()
                if isinstance(error, StaleConnection):
                    continue
                raise
            if connection.keep_for == _UNKNOWN:
                connection.keep_for = _kept_for(raw)
            return HeldResponse(raw, exchange, connection, self._give_back, self._may_linger())

    def close(self) -> None:
        """Close the connections: the idle ones now, each other one when its exchange is over."""
        self.forget()
        self._pool.close()

    def forget(self) -> None:
        """Close what only this object knows of, now and from now on."""
        self._forgotten = True
        while self._lingering:
            self._drop_oldest()

    def _ended_since(self) -> Any:
        """A connection whose last response has ended by now; None: there is none."""
        for _ in range(len(self._lingering)):
            try:
                connection = self._lingering.popleft()  # so that no other thread touches it
            except IndexError:
                return None
            if not connection.tail_is_here():
                self._lingering.append(connection)
            elif connection.settle(_TAIL_SECONDS) and not connection.dropped():
                self._endless = 0
                return connection
            else:
                self._endless += 1
                self._give_back(connection, False)
        return None

    def _linger(self, connection: Any) -> None:
        self._lingering.append(connection)
        if self._forgotten:  # looked at after that, as it may happen at this very moment
            self.forget()
        if len(self._lingering) > _MOST_LINGERING:
            self._endless += 1
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        with suppress(IndexError):
            self._give_back(self._lingering.popleft(), False)

    def _take(self) -> Any:
        """An idle connection that is alive; None: there is none."""
        idle = self._idle()
        try:
            connection = idle.get_nowait()
        except queue.Empty:
            return None
        if isinstance(connection, AbortableMixin) and connection.sock is not None:
            if not connection.dropped():
                return connection
            connection.close()
        elif connection is not None and not isinstance(connection, AbortableMixin):
            # made before this pool was ours, and in use until now
            connection.close()
            connection = None
        self._put(connection)
        return None

    def _connect(self, exchange: Exchange, target: str) -> Any:
        remaining = exchange.deadline.remaining()
        seconds = self._connect_timeout if remaining is None else max(0.001, min(remaining, self._connect_timeout))
        exchange.connects = True
        try:
            while True:
                try:
                    # never sent: the connection stops it when it is connected
                    self._pool.urlopen(
                        "OPTIONS",
                        target,
                        redirect=False,
                        assert_same_host=False,
                        preload_content=False,
                        retries=False,
                        timeout=urllib3.Timeout(connect=seconds, read=None),
                        pool_timeout=_LOOK_SECONDS,
                    )
                except urllib3.exceptions.EmptyPoolError:
                    # a pool of the user's that is all in use, and whose queue cannot be woken; that the time is over
                    # says whoever keeps it
                    exchange.check()
                    self._drop_oldest()
                    if monotonic() > exchange.deadline.at + _WATCHDOG_SECONDS:
                        raise
        except Connected:
            connection, exchange.made = exchange.made, None
        finally:
            exchange.connects = False
        with suppress(queue.Empty, urllib3.exceptions.ClosedPoolError):
            place = self._idle().get_nowait()
            if place is not None:  # another connection was given back meanwhile
                self._put(place)
        connection.sock.settimeout(None)
        return connection

    def _may_linger(self) -> bool:
        """Whether a response that was left will end soon, as far as is known; now and then it is tried all the same."""
        if self._endless < _MOST_ENDLESS:
            return True
        self._endless += 1
        return self._endless % _ENDLESS_AGAIN == 0

    def _give_back(self, connection: Any, usable: bool) -> None:
        if usable and connection.tail is not None:
            self._linger(connection)
            return
        if not usable:
            connection.close()
        self._put(connection)

    def _put(self, connection: Any) -> None:
        try:
            self._idle().put_nowait(connection)
        except (
            queue.Full,
            urllib3.exceptions.ClosedPoolError,
        ):  # more at once than are kept; or the pool was closed meanwhile
            if connection is not None:
                connection.close()

    def _idle(self) -> Any:
        idle = self._pool.pool
        if idle is None:
            raise urllib3.exceptions.ClosedPoolError(self._pool, "the session was closed")
        return idle


def _kept_for(raw: http.client.HTTPResponse) -> float:
    """How long an idle connection may be used again, as its server says in ``Keep-Alive: timeout=5``."""
    for part in (raw.headers.get("keep-alive") or "").split(","):
        name, _, value = part.strip().partition("=")
        if name.lower() == "timeout" and value.isdecimal():
            return float(value) * _MARGIN
    return _LONG
