"""Where user code runs: handlers, progress, notifications, done-callbacks.

Never on a reader or a watchdog. Three ways, by what the user gave as ``callbacks``:

``"pool"``
    threads of the client's own. Handlers get a thread each, up to a limit; everything else runs one at a time and
    in order: per call, or for what belongs to no call, per connection.
``"caller"``
    the thread that waits in a call runs that call's callbacks while it waits. What belongs to a submitted call
    or to no call runs on any thread that waits on the connection, else on the pool.
a callable
    a UI loop's "run this soon". If it has an attribute ``thread`` (an ident), a call made on that thread pumps
    as ``caller`` does, so that it cannot deadlock.
"""

from __future__ import annotations

import contextvars
import functools
import logging
from collections import deque
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import RLock, Thread, get_ident
from typing import Any, Callable, Deque, Iterator, List, Optional, Union

from mcpsync.connection import threads
from mcpsync.connection.threads import SIGNAL_SECONDS, Workers, is_inner, runs_callbacks

__all__ = ["Callback", "Callbacks", "Dispatch", "Lane", "Pump"]

logger = logging.getLogger("mcpsync")

Callback = Callable[[], None]
Callbacks = Union[str, Callable[[Callback], Any]]

DEFAULT_WAITING = 16_384
_TURN = 64  # callbacks that one lane runs before it lets the next one have the thread
_MOST_CROWDED = 8  # handlers that may wait for a thread, per thread that there may be


def run_safely(callback: Callback) -> None:
    """Run user code; what it raises is logged and goes no further."""
    try:
        callback()
    except Exception:  # the callback is the user's: it may raise anything
        logger.exception("mcpsync: a callback raised")


class Lane:
    """Callbacks that run one at a time and in order, whatever threads their turns come on.

    :param post: has a turn run somewhere; False if it never will
    :param limit: the most callbacks that may wait; past it the latest replaces the one before it
    :param turn: the most callbacks that run in one turn; None: all there are
    """

    def __init__(
        self, post: Callable[[Callback], bool], limit: int = DEFAULT_WAITING, turn: Optional[int] = _TURN
    ) -> None:
        self._post = post
        self._limit = limit
        self._turn = turn
        self._renew_lock()
        self._waiting: Deque[Callback] = deque()
        self._last: Deque[Callback] = deque()
        self._running = False  # a turn is posted, or under way

    def _renew_lock(self) -> None:
        # guards the two queues and the flag; reentrant for __del__, as all locks on the way of a call
        self._lock = RLock()

    def put(self, callback: Callback, last: bool = False) -> bool:
        """Run it after those before it. False: it never will be.

        :param last: it comes after all others, and neither the limit nor :meth:`clear` takes it away
        """
        with self._lock:
            if last:
                self._last.append(callback)
            else:
                if len(self._waiting) >= self._limit:
                    with suppress(IndexError):  # the turn under way may have taken it
                        self._waiting.pop()
                self._waiting.append(callback)
            if self._running:
                return True
            self._running = True
        return self._post_turn()

    def clear(self) -> None:
        """Drop what has not begun, but for what comes last."""
        with self._lock:
            self._waiting.clear()

    def after_fork(self) -> None:
        """In a forked child, where another thread may have held the lock."""
        self._renew_lock()

    def _post_turn(self) -> bool:
        if self._post(self._run):
            return True
        self._give_up()
        return False

    def _give_up(self) -> List[Callback]:
        """There will be no more turns. Gives what must not be lost."""
        with self._lock:
            last = list(self._last)
            self._waiting.clear()
            self._last.clear()
            self._running = False
        return last

    def _run(self) -> None:
        left = self._turn
        while left is None or left > 0:
            try:
                callback = self._waiting.popleft()  # atomic; the lock is for the end
            except IndexError:
                with self._lock:
                    queue = self._waiting or self._last
                    if not queue:
                        self._running = False
                        return
                    callback = queue.popleft()
            finished = False
            try:
                run_safely(callback)
                finished = True
            finally:
                if not finished:  # Ctrl-C, or sys.exit(): it is for this thread, and those behind it for the next turn
                    self._post_turn()
            if left is not None:
                left -= 1
        if not self._post(self._run):
            for callback in self._give_up():
                run_safely(callback)


class Pump:
    """The queue of one thread that waits in a call and runs callbacks meanwhile."""

    __slots__ = ("_lock", "_open", "_queue")

    def __init__(self) -> None:
        self._queue: SimpleQueue[Optional[Callback]] = SimpleQueue()
        self._renew_lock()
        self._open = True

    def _renew_lock(self) -> None:
        # guards _open, so that nothing is put into a queue that nobody reads any more
        self._lock = RLock()

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
        seconds = SIGNAL_SECONDS if get_ident() == threads.main_ident else None
        while True:
            try:
                callback = self._queue.get(timeout=seconds)
            except Empty:
                continue
            if callback is None:
                return
            run_safely(callback)

    def close(self) -> None:
        """Accept nothing more; what is left belongs to a call that is over, or is run by others."""
        with self._lock:
            self._open = False

    def after_fork(self) -> None:
        """In a forked child, where another thread may have held the lock."""
        self._renew_lock()


class Dispatch:
    """The dispatcher of one client.

    What goes to a user's loop, or to whoever waits in a call, is kept in one queue here; they are only told to run
    the next one of it. So the order holds, and a thread that begins to wait in a call can run what its loop has not
    come to.

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
        self.never_pumps = callbacks == "pool"
        self._name = name
        self._max_waiting = max_waiting
        self._most_crowded = _MOST_CROWDED * max_handlers
        self._handlers = Workers(name + "-handler", max_handlers)
        self._callbacks = Workers(name + "-callback", max_callbacks)
        self._common = self.lane()
        self._renew_lock()
        self._pumps: List[Pump] = []
        self._shared: Deque[Callback] = deque()  # each item has a token in the loop, or in every pump of the list

    def _renew_lock(self) -> None:
        # guards the list of pumps and the shared queue; reentrant, as all locks on the way of a call
        self._lock = RLock()

    def lane(self, pump: Optional[Pump] = None) -> Lane:
        """A new lane: of one call whose thread runs its callbacks, or of whatever else."""
        if pump is not None:
            return Lane(pump.put, self._max_waiting, None)
        return Lane(self._post, self._max_waiting)

    def pumps_here(self) -> bool:
        """Whether a call made on this thread has to run callbacks while it waits."""
        if self._pumping:
            return runs_callbacks()  # a link that is rebuilt in the background, and a listing, make calls too
        return self._loop is not None and getattr(self._loop, "thread", None) == get_ident()

    @contextmanager
    def pumping(self, pump: Pump) -> Iterator[None]:
        """While a thread waits and runs callbacks."""
        with self._lock:
            self._pumps.append(pump)
            for _ in self._shared:
                pump.put(self._run_shared)
        try:
            yield
        finally:
            pump.close()
            with self._lock:
                self._pumps.remove(pump)
                orphans = 0 if self._pumps else len(self._shared)
            for _ in range(orphans):
                self._post_shared()

    def handler(
        self, callback: Callback, pump: Optional[Pump] = None, crowded: Optional[Callable[[], None]] = None
    ) -> bool:
        """Run a request handler. False: refused.

        :param pump: of the call that it belongs to, if the thread of that runs callbacks
        :param crowded: called if it has to wait for a thread of the pool
        """
        if pump is not None:
            return pump.put(callback)
        if self._hand_over(callback):
            return True
        if self._loop is not None:
            return False
        if crowded is None:
            return self._handlers.submit(callback)
        if self._handlers.try_submit(callback):
            return True
        if self._handlers.waiting >= self._most_crowded:
            return False
        crowded()
        return self._handlers.submit(callback)

    def callback(self, callback: Callback, lane: Optional[Lane] = None) -> bool:
        """Run anything else, in order within its lane. False: refused."""
        return (lane or self._common).put(callback)

    def last_callback(self, callback: Callback, lane: Lane) -> None:
        """Run what must not be lost when the pool has been stopped: a done-callback. A user's loop may refuse it."""
        if lane.put(callback, last=True) or self._loop is not None:
            return
        if not is_inner():
            run_safely(callback)
            return
        try:
            Thread(target=run_safely, args=(callback,), name=self._name + "-callback", daemon=True).start()
        except RuntimeError:
            logger.warning("mcpsync: a callback is lost: no thread can be started")

    def _post(self, turn: Callback) -> bool:
        return self._hand_over(turn) or (self._loop is None and self._callbacks.submit(turn))

    def _hand_over(self, callback: Callback) -> bool:
        """Have it run by whoever waits in a call, or else by the user's loop."""
        if self._loop is None and not self._pumping:
            return False
        with self._lock:
            if self._loop is None and not self._pumps:
                return False
            self._shared.append(callback)
            for pump in self._pumps:
                pump.put(self._run_shared)
            if self._pumps:
                return True
        if self._tell_loop():
            return True
        with self._lock:
            if callback not in self._shared:  # somebody runs it
                return True
            self._shared.remove(callback)
            return False

    def _tell_loop(self) -> bool:
        loop = self._loop
        assert loop is not None
        try:
            loop(self._run_shared)
        except Exception:  # the loop is the user's: whatever it raises means that it refuses
            logger.warning("mcpsync: the dispatcher refused a callback", exc_info=True)
            return False
        return True

    def _post_shared(self) -> None:
        """Nobody waits any more: what is left goes to the loop, or to the pool."""
        if self._loop is None:
            self._handlers.submit(self._run_shared)
        else:
            self._tell_loop()

    def _run_shared(self) -> None:
        with self._lock:
            if not self._shared:  # there are more tokens than callbacks where several threads wait
                return
            callback = self._shared.popleft()
        run_safely(callback)

    def stop(self) -> None:
        """Accept nothing more."""
        self._handlers.stop()
        self._callbacks.stop()

    def after_fork(self) -> None:
        """In a forked child: a call of the forking thread may go on there, if only to its end."""
        self._renew_lock()
        self._common.after_fork()
        for pump in self._pumps:
            pump.after_fork()


def in_context(callback: Callable[..., Any]) -> Callable[..., Any]:
    """The callback, bound to the ``contextvars`` context of this thread as it is now."""
    return functools.partial(contextvars.copy_context().run, callback)
