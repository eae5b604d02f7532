"""Where user code runs: handlers, progress, notifications, done-callbacks.

Never on a reader or a watchdog. Three ways, by what the user gave as ``callbacks``:

``"pool"``
    threads of the client's own. Handlers get a thread each, up to a limit, and are refused past it; everything
    else runs one at a time and in order: per call, or for what belongs to no call, per connection.
``"caller"``
    the thread that waits in a call runs that call's callbacks while it waits. What belongs to a submitted call
    or to no call runs on any thread that waits on the connection, else on the pool.
a callable
    a UI loop's "run this soon". If it has an attribute ``thread`` (an ident), a call made on that thread pumps
    as ``caller`` does, so that it cannot deadlock.
"""

from __future__ import annotations

import contextvars
import logging
from collections import deque
from contextlib import contextmanager
from queue import SimpleQueue
from threading import Lock, get_ident
from typing import Any, Callable, Deque, Iterator, List, Optional, Union

from mcpsync.connection.threads import Workers

__all__ = ["Callback", "Callbacks", "Dispatch", "Lane", "Pump"]

logger = logging.getLogger("mcpsync")

Callback = Callable[[], None]
Callbacks = Union[str, Callable[[Callback], Any]]

DEFAULT_WAITING = 16_384
_TURN = 64  # callbacks that one lane runs before it lets the next one have the thread


def run_safely(callback: Callback) -> None:
    """Run user code; what it raises is logged and goes no further."""
    try:
        callback()
    except Exception:
        logger.exception("mcpsync: a callback raised")


class Lane:
    """Callbacks that run one at a time and in order, on threads of a pool.

    :param workers: the pool
    :param limit: the most callbacks that may wait; past it the latest replaces the one before it
    """

    def __init__(self, workers: Workers, limit: int = DEFAULT_WAITING) -> None:
        self._workers = workers
        self._limit = limit
        self._lock = Lock()  # guards the queue and the flag
        self._waiting: Deque[Callback] = deque()
        self._running = False

    def put(self, callback: Callback) -> bool:
        """Run it after those before it. False: the pool is gone."""
        with self._lock:
            if len(self._waiting) >= self._limit:
                self._waiting[-1] = callback
                return True
            self._waiting.append(callback)
            if self._running:
                return True
            self._running = True
        if self._workers.submit(self._run):
            return True
        self.clear()
        return False

    def clear(self) -> None:
        """Drop what has not begun."""
        with self._lock:
            self._waiting.clear()

    def _run(self) -> None:
        for _ in range(_TURN):
            with self._lock:
                if not self._waiting:
                    self._running = False
                    return
                callback = self._waiting.popleft()
            run_safely(callback)
        if not self._workers.submit(self._run):
            self.clear()


class Pump:
    """The queue of one thread that waits in a call and runs callbacks meanwhile."""

    __slots__ = ("_lock", "_open", "_queue")

    def __init__(self) -> None:
        self._queue: SimpleQueue[Optional[Callback]] = SimpleQueue()
        self._lock = Lock()  # guards _open, so that nothing is put into a queue that nobody reads any more
        self._open = True

    def put(self, callback: Callback) -> bool:
        """Have the thread run it. False: it waits no more."""
        with self._lock:
            if self._open:
                self._queue.put(callback)
            return self._open

    def finish(self) -> None:
        """End :meth:`run` after what was put before."""
        self._queue.put(None)

    def run(self) -> None:
        """Run callbacks until :meth:`finish`."""
        while True:
            callback = self._queue.get()
            if callback is None:
                return
            run_safely(callback)

    def close(self) -> None:
        """Accept nothing more, and run what is left."""
        with self._lock:
            self._open = False
        while not self._queue.empty():
            callback = self._queue.get()
            if callback is not None:
                run_safely(callback)


class Dispatch:
    """The dispatcher of one client.

    :param callbacks: ``"pool"``, ``"caller"`` or a callable
    :param name: prefix of the threads' names
    :param max_handlers: the most request handlers that may run at a time
    :param max_callbacks: the most threads for everything else
    :param max_waiting: the most progress callbacks of one call, or other callbacks, that may wait
    :ivar never_pumps: no thread that waits ever runs callbacks
    """

    def __init__(
        self,
        callbacks: Callbacks,
        name: str,
        max_handlers: int = 32,
        max_callbacks: int = 4,
        max_waiting: int = DEFAULT_WAITING,
    ) -> None:
        if not callable(callbacks) and callbacks not in ("pool", "caller"):
            raise ValueError("callbacks must be 'pool', 'caller' or a callable, not %r" % (callbacks,))
        self._loop: Optional[Callable[[Callback], Any]] = callbacks if callable(callbacks) else None
        self._pumping = callbacks == "caller"
        self._max_waiting = max_waiting
        self.never_pumps = callbacks == "pool"
        self._handlers = Workers(name + "-handler", max_handlers)
        self._callbacks = Workers(name + "-callback", max_callbacks)
        self._common = self.lane()
        self._pumps_lock = Lock()  # guards the list
        self._pumps: List[Pump] = []

    def lane(self) -> Lane:
        """A new lane on this dispatcher's pool."""
        return Lane(self._callbacks, self._max_waiting)

    def pumps_here(self) -> bool:
        """Whether a call made on this thread has to run callbacks while it waits."""
        return self._pumping or (self._loop is not None and getattr(self._loop, "thread", None) == get_ident())

    @contextmanager
    def pumping(self, pump: Pump) -> Iterator[None]:
        """While a thread waits and runs callbacks; what is left for it afterwards is run before it goes on."""
        with self._pumps_lock:
            self._pumps.append(pump)
        try:
            yield
        finally:
            with self._pumps_lock:
                self._pumps.remove(pump)
            pump.close()

    def handler(self, callback: Callback, pump: Optional[Pump] = None, patient: bool = False) -> bool:
        """Run a request handler. False: refused, all its threads are busy and it is not ``patient``."""
        if self._elsewhere(callback, pump):
            return True
        if self._loop is not None:
            return False
        return self._handlers.submit(callback) if patient else self._handlers.try_submit(callback)

    def callback(self, callback: Callback, lane: Optional[Lane] = None, pump: Optional[Pump] = None) -> bool:
        """Run anything else, in order within its lane. False: refused."""
        if self._elsewhere(callback, pump):
            return True
        return self._loop is None and (lane or self._common).put(callback)

    def _elsewhere(self, callback: Callback, pump: Optional[Pump]) -> bool:
        if pump is not None and pump.put(callback):
            return True
        if self._pumps:
            with self._pumps_lock:
                pumps = list(self._pumps)
            if any(each.put(callback) for each in reversed(pumps)):
                return True
        if self._loop is None:
            return False
        try:
            self._loop(lambda: run_safely(callback))
        except Exception:  # the loop is the user's: whatever it raises means that it refuses
            logger.warning("mcpsync: the dispatcher refused a callback", exc_info=True)
            return False
        return True

    def stop(self) -> None:
        """Accept nothing more."""
        self._handlers.stop()
        self._callbacks.stop()

    def drain(self, seconds: float) -> bool:
        """Wait until the threads have ended after :meth:`stop`."""
        return self._handlers.drain(seconds) and self._callbacks.drain(0 if seconds <= 0 else seconds)


def in_context(callback: Callable[..., Any]) -> Callable[..., Any]:
    """The callback, bound to the ``contextvars`` context of this thread as it is now."""
    context = contextvars.copy_context()

    def run(*arguments: Any) -> Any:
        return context.run(callback, *arguments)

    return run
