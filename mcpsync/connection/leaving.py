"""Links that are left while the server stands: those that calls are still on their way over linger until those
have ended, for a while at most."""

from __future__ import annotations

from threading import RLock
from typing import List

from mcpsync.connection.link import Link
from mcpsync.connection.threads import Workers, is_inner
from mcpsync.connection.watchdog import Watchdog
from mcpsync.deadline import Deadline

__all__ = ["Leaving"]

_LINGER_SECONDS = 5.0  # at most, for the calls that are under way on a session that is gone
_FIRST_LOOK = 0.01  # the wait for each further look is as long as all before: few looks, and none much too late


class Leaving:
    """Closes links without making anybody wait for it.

    :param links: closes them
    :param watchdog: keeps the time of those that linger
    :param seconds: to close one
    """

    def __init__(self, links: Workers, watchdog: Watchdog, seconds: float) -> None:
        self._links = links
        self._watchdog = watchdog
        self._seconds = seconds
        self._lock = RLock()  # guards the two below
        self._lingering: List[Link] = []
        self._stopped = False

    def leave(self, link: Link) -> None:
        """Nobody begins anything on it any more. Each call that is under way finds out by itself that its session is
        gone, so it is given time for that."""
        if not link.working():
            self.close(link)
            return
        with self._lock:
            if self._stopped:
                return
            self._lingering.append(link)
        self._look_after(_FIRST_LOOK, 0.0, link)

    def _look_after(self, seconds: float, waited: float, link: Link) -> None:
        def look() -> None:
            if link.working() and waited + seconds < _LINGER_SECONDS:
                self._look_after(min(waited + seconds, _LINGER_SECONDS - waited - seconds), waited + seconds, link)
            else:
                self.close(link)

        self._watchdog.later(seconds, look)

    def close(self, link: Link) -> None:
        """Close it now, unless whoever closes the connection closes it with the rest."""
        with self._lock:
            if self._stopped:
                return
            if link in self._lingering:
                self._lingering.remove(link)
        if not self._links.submit(lambda: link.close(Deadline(self._seconds))) and not is_inner():
            link.close(Deadline(self._seconds))  # no thread can be started, and this one may wait

    def stop(self) -> List[Link]:
        """From here on nothing is closed; gives those that linger."""
        with self._lock:
            self._stopped = True
            lingering, self._lingering = self._lingering, []
        return lingering
