"""Keepalive, idle disconnect and maximum lifetime: what a connection does while nobody calls.

One timer at a time, and none at all when none of the three is wanted.
"""

from __future__ import annotations

import logging
import time
from typing import Callable, Optional

from mcpsync.connection.link import Link
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Timer, Watchdog
from mcpsync.deadline import Timeouts
from mcpsync.errors import ConnectionLost, McpError, RpcError

__all__ = ["Upkeep"]

logger = logging.getLogger("mcpsync")

_LISTEN = "subscriptions/listen"
_MISSES = 3
_LOOKS = 4  # idleness is looked for that many times within the time it may last


class Upkeep:
    """What is done about one link while it stands.

    :param link: the link
    :param timeouts: with what is wanted
    :param watchdog: keeps the timer
    :param control: does what has to be sent
    :param ping: asks the server for a sign of life within so many seconds; raises if none comes
    :param release: closes the link in favour of a later one; called when no call is in flight
    """

    def __init__(
        self,
        link: Link,
        timeouts: Timeouts,
        watchdog: Watchdog,
        control: Workers,
        ping: Callable[[float], None],
        release: Callable[[str], None],
    ) -> None:
        self._link = link
        self._timeouts = timeouts
        self._watchdog = watchdog
        self._control = control
        self._ping = ping
        self._release = release
        self._misses = 0
        self._pinging = False
        self._born = time.monotonic()
        self._used = self._born
        self._last_id = 0
        self._timers: list[Timer] = []

    def start(self) -> None:
        """Begin."""
        if self._timeouts.keepalive is not None:
            self._every(self._timeouts.keepalive, self._keepalive)
        if self._timeouts.idle_disconnect is not None:
            self._every(self._timeouts.idle_disconnect / _LOOKS, self._idle)
        if self._timeouts.max_lifetime is not None:
            self._every(self._timeouts.max_lifetime, self._age)

    def stop(self) -> None:
        """End."""
        for timer in self._timers:
            timer.cancel()

    def _every(self, seconds: float, look: Callable[[], Optional[float]]) -> None:
        slot = len(self._timers)

        def due() -> None:
            if self._link.cause is not None:
                return
            following = look()
            if following is not None:
                self._timers[slot] = self._watchdog.later(following, due)

        self._timers.append(self._watchdog.later(seconds, due))

    def _busy(self) -> bool:
        """Whether a call waits for its answer. The stream of notifications waits for none, however long it stands."""
        return any(call.method != _LISTEN for call in self._link.session.in_flight())

    # -- keepalive ---------------------------------------------------------------------------------------------

    def _keepalive(self) -> Optional[float]:
        interval = self._timeouts.keepalive
        assert interval is not None
        if self._link.heard:
            self._link.heard = False
            self._misses = 0
        elif not self._pinging:
            self._pinging = True
            if not self._control.submit(lambda: self._ask_for_life(interval)):
                self._pinging = False
        return interval

    def _ask_for_life(self, seconds: float) -> None:
        try:
            self._ping(seconds)
        except RpcError:
            self._misses = 0  # an error is an answer
        except McpError as error:
            self._missed(error)
        else:
            self._misses = 0
        finally:
            self._pinging = False

    def _missed(self, error: McpError) -> None:
        self._misses += 1
        if self._misses < _MISSES or self._link.heard:
            return
        transport = self._link.transport
        if not transport.exchange_like and self._busy():
            # a server with one thread cannot answer while it works; were the process dead, the reader would know
            return
        self._link.lost(
            ConnectionLost("no sign of life: %d pings went unanswered (%s)" % (self._misses, error.message))
        )

    # -- idleness and age --------------------------------------------------------------------------------------

    def _idle(self) -> Optional[float]:
        limit = self._timeouts.idle_disconnect
        assert limit is not None
        now = time.monotonic()
        last_id = self._link.session.last_id
        if last_id != self._last_id or self._busy():
            self._last_id = last_id
            self._used = now
        elif now - self._used >= limit:
            self._release("idle for %g s" % limit)
            return None
        return limit / _LOOKS

    def _age(self) -> Optional[float]:
        if self._busy():
            return 0.1
        self._release("older than %g s" % (self._timeouts.max_lifetime or 0))
        return None
