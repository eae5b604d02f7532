"""What ``submit()`` gives: a ``concurrent.futures.Future`` that the server is told about when it is cancelled."""

from __future__ import annotations

import _thread
import sys
import threading
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Callable, List, Optional, Protocol, Set, Tuple, TypeVar, Union, cast

from mcpsync.connection import threads
from mcpsync.connection.threads import SIGNAL_SECONDS, forbid_blocking
from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, McpError, RequestCancelled

__all__ = ["CallFuture"]

T = TypeVar("T")

_NOT_OVER = ("PENDING", "RUNNING")
_CANCELLED = ("CANCELLED", "CANCELLED_AND_NOTIFIED")

# Whoever takes a future out of it settles it; each step is atomic, as futures hash by identity. What is in it is what a
# forked child must not wait for. No WeakSet: Ctrl-C in the callback of a weak reference is swallowed.
_unsettled: Set[CallFuture[Any]] = set()

_LEFT_SECONDS = 1.0


class _StateLock:
    """Guards the state of all futures, in the place of the condition of each, which would be the larger half of one.

    Nobody waits on it, and none holds it for longer than a few assignments. But where the standard library takes
    several (``wait``, ``as_completed``) it does so in steps, and Ctrl-C between two of them leaves it taken for ever,
    by the main thread. So other threads, readers among them, take it to be left behind after a while, and replace it.
    It is reentrant: the main thread itself notices nothing.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._replacing = _thread.allocate_lock()  # never taken on the main thread

    # On the main thread the lock's own methods, which Ctrl-C does not strike in the middle.
    __enter__ = property(lambda self: self._lock.__enter__ if _on_main() else self._take)
    __exit__ = property(lambda self: self._lock.__exit__ if _on_main() else self._give_back)

    def acquire(self) -> None:
        """As that of a condition."""
        if _on_main():
            self._lock.acquire()
        else:
            self._take()

    def release(self) -> None:
        """As that of a condition."""
        self._give_back()

    def notify_all(self) -> None:
        """Nobody waits."""

    def _take(self) -> None:
        while True:
            lock = self._lock
            if not lock.acquire(True, _LEFT_SECONDS):
                with self._replacing:
                    if self._lock is lock:
                        self._lock = threading.RLock()
            elif self._lock is lock:
                return
            else:
                lock.release()

    def _give_back(self, *exception: object) -> None:
        try:
            self._lock.release()
        except RuntimeError:  # it was replaced, since this thread was halted while it held it
            return


def _on_main() -> bool:
    return _thread.get_ident() == threads.main_ident


_condition = _StateLock()


# one class from Python 3.11 on; before that, what is raised goes by both names
if sys.version_info >= (3, 11):
    _NotYet = TimeoutError
else:

    class _NotYet(FutureTimeout, TimeoutError):
        pass


class Owner(Protocol):
    """The call that a future is of."""

    def cancel(self) -> bool:
        """End the call; False if it is over."""

    def run_last(self, callback: Callable[[], None]) -> None:
        """Run a done-callback."""

    def describe(self, error: McpError) -> McpError:
        """Fill in what an error should name."""


class CallFuture(Future[T]):
    """The future result of a submitted call.

    ``cancel()`` ends the call, tells the server, and wakes ``wait`` and ``as_completed``. ``result(timeout)``
    running out does not cancel, nor does Ctrl-C there. Done-callbacks run where the client's other callbacks run,
    never on a reader.

    Who waits in ``result()`` does so on a lock of their own: the reader that settles the future must not meet one
    that Ctrl-C has left taken, and before Python 3.11 no ``with`` is safe from that.

    :param owner: the call
    """

    _sleepers: Union[Tuple[()], List[_thread.LockType]] = ()

    # what the standard library's functions for several futures take
    _condition = property(lambda self: _condition)

    def __init__(self, owner: Owner) -> None:
        # What Future.__init__ sets, which differs in no version, but for a condition of its own.
        self._state = "PENDING"
        self._result = None
        self._exception = None
        self._waiters: List[Any] = []
        self._done_callbacks: List[Callable[[Any], object]] = [_wake]  # the first of all
        self._owner = owner
        _unsettled.add(self)

    def cancel(self) -> bool:
        """End the call; the server is told.

        :returns: False if it was over already
        """
        if self.done():
            return self.cancelled()
        if not self._owner.cancel():
            return False
        self.settle(None, RequestCancelled("it was cancelled"))  # a thread that goes on with it may not be so far yet
        return True

    def done(self) -> bool:
        """Whether the call is over."""
        return self._state not in _NOT_OVER

    def cancelled(self) -> bool:
        """Whether it was cancelled."""
        return self._state in _CANCELLED

    def result(self, timeout: Optional[float] = None) -> T:
        """The result, as the blocking method would return it.

        :param timeout: seconds to wait; None: until the call's own deadline. Running out does not cancel.
        :raises TimeoutError: it is not there yet
        :raises RequestCancelled: it was cancelled
        :raises McpError: what the blocking method would raise
        """
        self._await(timeout)
        # no lock: it is over, and the lock is one that a reader takes
        if self._state in _CANCELLED:
            raise self._cancelled_error()
        if self._exception is not None:
            try:
                raise self._exception
            finally:
                del self  # the traceback, which the exception keeps, would keep the future, which has the exception
        return cast(T, self._result)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What :meth:`result` would raise, or None.

        :param timeout: as there
        :raises TimeoutError: it is not over yet
        :raises RequestCancelled: it was cancelled
        """
        self._await(timeout)
        if self._state in _CANCELLED:
            raise self._cancelled_error()
        return self._exception

    def _await(self, timeout: Optional[float]) -> None:
        if self.done():
            return
        forbid_blocking()
        sleeper = _thread.allocate_lock()
        sleeper.acquire()
        # one step, so that two threads get the same list
        sleepers: List[_thread.LockType] = self.__dict__.setdefault("_sleepers", [])
        sleepers.append(sleeper)  # before the look: who settles it sets the state, and looks at the list then
        if self.done():
            return
        if not _sleep(sleeper, Deadline(timeout)):
            sleepers.remove(sleeper)
            raise _NotYet()

    def add_done_callback(self, fn: Callable[[Any], Any]) -> None:
        """Have ``fn(future)`` run, where the client's callbacks run, when the call is over."""
        super().add_done_callback(lambda future: self._owner.run_last(lambda: fn(future)))

    def _cancelled_error(self) -> McpError:
        return self._owner.describe(RequestCancelled("it was cancelled"))

    def abandon(self) -> None:
        """The request was not sent, and nobody gets to see this."""
        _unsettled.discard(self)

    def settle(self, result: Any, failure: Optional[BaseException]) -> None:
        """The outcome; the first one counts."""
        try:
            _unsettled.remove(self)
        except KeyError:
            return
        if isinstance(failure, RequestCancelled):
            super().cancel()
            self.set_running_or_notify_cancel()
        elif failure is not None:
            self.set_exception(failure)
        else:
            self.set_result(result)

    def after_fork(self) -> None:
        """In a forked child, where nobody is left to settle it."""
        self._done_callbacks = [_wake]
        self.settle(
            None, self._owner.describe(ConnectionLost("the call was made in the parent process, which has it still"))
        )


def _sleep(sleeper: _thread.LockType, deadline: Deadline) -> bool:
    """Wait until it is released; False if the deadline comes first."""
    if not _on_main():
        remaining = deadline.remaining()
        return sleeper.acquire(True, -1 if remaining is None else remaining)
    while not sleeper.acquire(True, deadline.sooner(SIGNAL_SECONDS).remaining() or 0.0):
        if deadline.expired:
            return False
    return True


def _wake(future: Future[Any]) -> None:
    assert isinstance(future, CallFuture)
    for sleeper in list(future._sleepers):
        sleeper.release()


def after_fork() -> None:
    """In a forked child: what the parent waits for will never be settled here, and the lock may have been held."""
    global _condition
    _condition = _StateLock()
    for future in list(_unsettled):
        future.after_fork()
