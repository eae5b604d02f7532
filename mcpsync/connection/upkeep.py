"""Keepalive, idle disconnect and maximum lifetime: what a connection does while nobody calls.

One timer for each of the three that is wanted, and none at all when none is.

Idleness and age are of the clock that goes on while the machine sleeps. After a sleep all three look at once: what got
too old in it is closed, and of what is left one ping decides, as the peer may have given it up long ago.
"""

from __future__ import annotations

import logging
from typing import Callable, List, Optional

from mcpsync.connection.link import Link
from mcpsync.connection.threads import Workers
from mcpsync.connection.watchdog import Timer, Watchdog
from mcpsync.deadline import Timeouts
from mcpsync.errors import ConnectionLost

__all__ = ["Upkeep"]

logger = logging.getLogger("mcpsync")

_MISSES = 3
_LOOKS = 4  # idleness is looked for that many times within the time it may last
_LONGEST_LOOK = 60.0  # seconds between looks, so that a sleep of the machine is noticed soon after it
_LATE_LOOK = 1.0  # seconds between looks for a moment without calls, when the connection is old enough to be replaced


class Upkeep:
    """What is done about one link while it stands.

    :param link: the link
    :param timeouts: with what is wanted
    :param watchdog: keeps the timer
    :param control: does what has to be sent
    :param ping: asks the server for a sign of life within so many seconds (None: as long as it takes), and tells when
        that is over; does not wait
    :param release: closes the link in favour of a later one, unless a call has come in between; says whether it did
    """

    def __init__(
        self,
        link: Link,
        timeouts: Timeouts,
        watchdog: Watchdog,
        control: Workers,
        ping: Callable[[Optional[float], Callable[[], None]], None],
        release: Callable[[str], bool],
    ) -> None:
        self._link = link
        self._timeouts = timeouts
        self._watchdog = watchdog
        self._control = control
        self._ping = ping
        self._release = release
        self._misses = 0
        self._allowed_misses = _MISSES
        self._asked = False
        self._pinging = False
        self._stopped = False
        self._born = self._watchdog.elapsed()
        self._used = self._born
        self._last_id = 0
        self._timers: List[Timer] = []
        self._looks: List[Callable[[], None]] = []

    def start(self) -> None:
        """Begin."""
        if self._timeouts.max_lifetime is not None:
            self._every(min(self._timeouts.max_lifetime, _LONGEST_LOOK), self._age)
        if self._timeouts.idle_disconnect is not None:
            self._every(min(self._timeouts.idle_disconnect / _LOOKS, _LONGEST_LOOK), self._idle)
        if self._timeouts.keepalive is not None:
            self._every(self._timeouts.keepalive, self._keepalive)

    def stop(self) -> None:
        """End."""
        self._stopped = True
        for timer in self._timers:
            timer.cancel()

    def woke(self, seconds: float) -> None:
        """The machine or the process has slept for so long; on the watchdog's thread."""
        self._notice_use(self._watchdog.elapsed() - seconds)  # what was sent since the last look was sent before
        self._misses = 0
        self._allowed_misses = 1
        self._asked = self._link.heard = False
        if self._link.transport.exchange_like:
            self._pinging = False  # the answer to the one before may have gone astray with its connection
        for timer, look in zip(self._timers, self._looks):
            timer.cancel()
            look()

    def _every(self, seconds: float, look: Callable[[], Optional[float]]) -> None:
        slot = len(self._timers)

        def due() -> None:
            if self._stopped or self._link.cause is not None:
                return
            following = look()
            if following is not None:
                self._timers[slot] = self._watchdog.later(following, due)

        self._looks.append(due)
        self._timers.append(self._watchdog.later(seconds, due))

    # -- keepalive ---------------------------------------------------------------------------------------------

    def _keepalive(self) -> Optional[float]:
        """One look per interval. A miss is an interval in which a ping waited and nothing at all came in."""
        interval = self._timeouts.keepalive
        assert interval is not None
        if self._link.heard:
            self._link.heard = self._asked = False
            self._misses = 0
            self._allowed_misses = _MISSES
            return interval
        if self._asked:
            self._misses += 1
            if self._misses >= self._allowed_misses and not self._excused():
                self._link.lost(ConnectionLost("no sign of life in %g s, with pings sent" % (interval * self._misses)))
                return None
        self._asked = True
        if not self._pinging:
            self._pinging = True
            if not self._control.submit(lambda: self._send_ping(interval)):
                self._pinging = False
        return interval

    def _excused(self) -> bool:
        """A server with one thread cannot answer while it works; were its process dead, the reader would know."""
        return not self._link.transport.exchange_like and bool(self._link.working())

    def _send_ping(self, interval: float) -> None:
        session = self._link.session
        before = session.last_id
        # on a stream one ping waits as long as it takes, so that a busy server finds one later and not a heap of them
        self._ping(interval if self._link.transport.exchange_like else None, self._ping_over)
        if self._last_id == before and session.last_id == before + 1:
            self._last_id = session.last_id  # a ping is no use of the connection

    def _ping_over(self) -> None:
        self._pinging = False

    # -- idleness and age --------------------------------------------------------------------------------------

    def _idle(self) -> Optional[float]:
        limit = self._timeouts.idle_disconnect
        assert limit is not None
        now = self._watchdog.elapsed()
        if self._link.working():
            self._used = now
        self._notice_use(now)
        if now - self._used >= limit and self._release("idle for %g s" % limit):
            return None
        return min(limit / _LOOKS, _LONGEST_LOOK)

    def _notice_use(self, at: float) -> None:
        last_id = self._link.session.last_id
        if last_id != self._last_id:
            self._last_id = last_id
            self._used = at

    def _age(self) -> Optional[float]:
        lifetime = self._timeouts.max_lifetime
        assert lifetime is not None
        left = self._born + lifetime - self._watchdog.elapsed()
        if left > 0:
            return min(left, _LONGEST_LOOK)
        if not self._link.working() and self._release("older than %g s" % lifetime):
            return None
        return min(_LATE_LOOK, lifetime)
