"""The threads of a host: those that connect and list, those that call, one for time, those for callbacks. All start on
demand."""

from __future__ import annotations

import weakref
from contextlib import suppress
from threading import RLock
from typing import Any, Callable, Optional

from mcpsync.connection.dispatch import Callbacks, Dispatch
from mcpsync.connection.threads import Condition, Workers
from mcpsync.connection.watchdog import Timer, Watchdog
from mcpsync.deadline import Deadline

__all__ = ["Announcer", "Crew"]


_CONNECTING = 1024
"""Servers that connect at the same time; each needs a thread while it does."""
_CALLING = 1024
"""Calls of models that are made at the same time, for all who wait for some together."""


class Crew:
    """The threads, and the condition on which those wait who need the outcome of an attempt.

    :param callbacks: where callbacks of the user run, as for :class:`~mcpsync.Client`
    :ivar changed: notified when an attempt has ended and when the host closes; guards the host's own fields
    """

    def __init__(self, callbacks: Callbacks) -> None:
        self._callbacks = callbacks
        self.build()

    def build(self) -> None:
        """Make everything; in a forked child again, since none of the parent's threads is there."""
        self.changed = Condition()
        self.workers = Workers("mcpsync-host-connect", _CONNECTING)
        self.callers = Workers("mcpsync-host-call", _CALLING, calling=True)
        self.watchdog = Watchdog("mcpsync-host-watchdog", _no_deadlines)
        self.dispatch = Dispatch(self._callbacks, "mcpsync-host")

    def start(self) -> None:
        """Start the thread for time. It sleeps until there is something to do."""
        with suppress(RuntimeError):  # no thread can be started: then nothing is tried again, and calls say why
            self.watchdog.start()

    def end_with(self, owner: object) -> weakref.finalize[..., Any]:
        """End the threads when the owner is gone without having stopped them.

        A finalizer may run under any lock, so it only leaves a message for the thread for time.
        """
        finalizer = weakref.finalize(owner, _forgotten, self.watchdog, self.workers, self.callers, self.dispatch)
        finalizer.atexit = False
        return finalizer

    def later(self, seconds: float, action: Callable[[], object]) -> Timer:
        """Call back once, on the thread for time; it must be quick."""
        self.start()
        return self.watchdog.later(seconds, action)

    def announce(self) -> None:
        """Wake those who wait for the outcome of an attempt."""
        with self.changed:
            self.changed.notify_all()

    def stop(self, deadline: Deadline) -> None:
        """End all threads, as far as the deadline allows: one in a callback ends after it."""
        self.workers.stop()
        self.callers.stop()
        self.dispatch.stop()
        self.watchdog.stop()
        self.watchdog.join(deadline.remaining())
        self.workers.drain(deadline.remaining())
        self.callers.drain(deadline.remaining())


def _forgotten(watchdog: Watchdog, workers: Workers, callers: Workers, dispatch: Dispatch) -> None:
    watchdog.post(workers.stop)
    watchdog.post(callers.stop)
    watchdog.post(dispatch.stop)
    watchdog.stop()


def _no_deadlines(key: Any) -> None:
    """Only timers are used."""


class Announcer:
    """Tells the user's callback the newest revision: once for many changes, if they come while it waits or runs.

    :param crew: has it called
    :param function: the user's
    """

    def __init__(self, crew: Crew, function: Callable[[int], Any]) -> None:
        self._crew = crew
        self._function = function
        self._told = 0
        self.after_fork()

    def after_fork(self) -> None:
        """In a forked child, and at first: nothing waits."""
        self._lock = RLock()  # guards the flag; reentrant, as a finalizer may call the host at any moment
        self._waiting = False

    def changed(self, revision: Callable[[], Optional[int]]) -> None:
        """There is a new revision.

        :param revision: gives the newest when it is told; None: nothing is to be told any more
        """
        with self._lock:
            if self._waiting:
                return
            self._waiting = True

        def tell() -> None:
            with self._lock:
                self._waiting = False
            newest = revision()
            if newest is not None and newest != self._told:
                self._told = newest
                self._function(newest)

        if not self._crew.dispatch.callback(tell):
            with self._lock:
                self._waiting = False
