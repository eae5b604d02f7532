"""The clocks of calls: put off by signs of life, standing still while a person is asked.

What may stand still is the running deadline (``call`` or ``idle``), never ``total``; and all pauses of one call
together last no longer than ``ask``. After that the clock goes on, asked or not.
"""

from __future__ import annotations

import time
from threading import RLock

from mcpsync.connection.call import Call
from mcpsync.connection.watchdog import Watchdog
from mcpsync.deadline import Deadline

__all__ = ["Clock"]


class Clock:
    """Moves the deadlines of calls.

    :param watchdog: keeps them
    """

    def __init__(self, watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        self._lock = RLock()  # guards the pauses of all calls

    def extend(self, call: Call, seconds: float) -> None:
        """A sign of life: the call has so many seconds again."""
        more = call.extras
        with self._lock:
            if more is None or more.paused_since is None:
                self._watchdog.extend(call, seconds)
            else:
                more.seconds_left = seconds
                self._watchdog.move(call, more.paused_since + more.pause_left + seconds)

    def pause(self, call: Call) -> None:
        """Stop the clock of a call, until each pause has been followed by a :meth:`resume`."""
        more = call.more()
        with self._lock:
            more.pauses += 1
            at = self._watchdog.moment(call)
            if more.pauses > 1 or at is None or more.pause_left <= 0:
                return
            more.paused_since = time.monotonic()
            more.seconds_left = at - more.paused_since
            self._watchdog.move(call, at + more.pause_left)

    def resume(self, call: Call) -> None:
        """Undo one :meth:`pause`; after the last the clock goes on where it stood."""
        more = call.more()
        with self._lock:
            more.pauses -= 1
            if more.pauses > 0 or more.paused_since is None:
                return
            used = min(time.monotonic() - more.paused_since, more.pause_left)
            call.deadline = Deadline.at_moment(more.paused_since + used + more.seconds_left)
            more.pause_left -= used
            more.paused_since = None
            self._watchdog.move(call, call.deadline.at)
