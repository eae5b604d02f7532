"""What ``submit()`` gives: a ``concurrent.futures.Future`` that the server is told about when it is cancelled."""

from __future__ import annotations

import _thread
import sys
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Any, Callable, List, Optional, Set, TypeVar

from mcpsync.connection import threads
from mcpsync.connection.threads import SIGNAL_SECONDS, Condition, forbid_blocking
from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, McpError, RequestCancelled

__all__ = ["CallFuture"]

T = TypeVar("T")

_NOT_OVER = ("PENDING", "RUNNING")

# What a forked child must not wait for. No WeakSet: Ctrl-C in the callback of a weak reference is swallowed.
_unsettled: Set[CallFuture[Any]] = set()


# one class from Python 3.11 on; before that, what is raised goes by both names
if sys.version_info >= (3, 11):
    _NotYet = TimeoutError
else:

    class _NotYet(FutureTimeout, TimeoutError):
        pass


class CallFuture(Future[T]):
    """The future result of a submitted call.

    ``cancel()`` ends the call, tells the server, and wakes ``wait`` and ``as_completed``. ``result(timeout)``
    running out does not cancel, nor does Ctrl-C there. Done-callbacks run where the client's other callbacks run,
    never on a reader.

    Who waits in ``result()`` does so on a lock of their own: the reader that settles the future must not meet one
    that Ctrl-C has left taken, and before Python 3.11 no ``with`` is safe from that.

    :param cancel_call: ends the call; False if it is over
    :param dispatch: runs a done-callback
    :param describe: fills in what an error should name
    """

    def __init__(
        self,
        cancel_call: Callable[[], bool],
        dispatch: Callable[[Callable[[], None]], object],
        describe: Callable[[McpError], McpError],
    ) -> None:
        super().__init__()
        self._condition = Condition()
        self._sleepers: List[_thread.LockType] = []
        super().add_done_callback(_wake)  # the first of all
        self._cancel_call = cancel_call
        self._dispatch = dispatch
        self._describe = describe
        self._open: List[None] = [None]  # who takes the item settles it

    def cancel(self) -> bool:
        """End the call; the server is told.

        :returns: False if it was over already
        """
        if self.done():
            return self.cancelled()
        if not self._cancel_call():
            return False
        self.settle(None, RequestCancelled("it was cancelled"))  # a thread that goes on with it may not be so far yet
        return True

    def done(self) -> bool:
        """Whether the call is over."""
        return self._state not in _NOT_OVER

    def result(self, timeout: Optional[float] = None) -> T:
        """The result, as the blocking method would return it.

        :param timeout: seconds to wait; None: until the call's own deadline. Running out does not cancel.
        :raises TimeoutError: it is not there yet
        :raises RequestCancelled: it was cancelled
        :raises McpError: what the blocking method would raise
        """
        self._await(timeout)
        try:
            return super().result(0)
        except CancelledError as error:
            raise self._cancelled_error(error) from None

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        """What :meth:`result` would raise, or None.

        :param timeout: as there
        :raises TimeoutError: it is not over yet
        :raises RequestCancelled: it was cancelled
        """
        self._await(timeout)
        try:
            return super().exception(0)
        except CancelledError as error:
            raise self._cancelled_error(error) from None

    def _await(self, timeout: Optional[float]) -> None:
        if self.done():
            return
        forbid_blocking()
        sleeper = _thread.allocate_lock()
        sleeper.acquire()
        self._sleepers.append(sleeper)  # before the look: who settles it sets the state, and looks at the list then
        if self.done():
            return
        if not _sleep(sleeper, Deadline(timeout)):
            self._sleepers.remove(sleeper)
            raise _NotYet()

    def add_done_callback(self, fn: Callable[[Any], Any]) -> None:
        """Have ``fn(future)`` run, where the client's callbacks run, when the call is over."""
        super().add_done_callback(lambda future: self._dispatch(lambda: fn(future)))

    def _cancelled_error(self, error: CancelledError) -> McpError:
        return error if isinstance(error, RequestCancelled) else self._describe(RequestCancelled("it was cancelled"))

    def on_its_way(self) -> None:
        """The request was sent, so that it will be settled."""
        _unsettled.add(self)
        if self.done():
            _unsettled.discard(self)

    def settle(self, result: Any, failure: Optional[BaseException]) -> None:
        """The outcome; the first one counts."""
        try:
            self._open.pop()  # atomic
        except IndexError:
            return
        if isinstance(failure, RequestCancelled):
            super().cancel()
            self.set_running_or_notify_cancel()
        elif failure is not None:
            self.set_exception(failure)
        else:
            self.set_result(result)
        _unsettled.discard(self)

    def after_fork(self) -> None:
        """In a forked child, where nobody is left to settle it and its lock may have been held."""
        self._condition = Condition()
        self._done_callbacks: List[Callable[[Any], object]] = [_wake]
        self.settle(None, self._describe(ConnectionLost("the call was made in the parent process, which has it still")))


def _sleep(sleeper: _thread.LockType, deadline: Deadline) -> bool:
    """Wait until it is released; False if the deadline comes first."""
    if _thread.get_ident() != threads.main_ident:
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
    """In a forked child: what the parent waits for will never be settled here."""
    for future in list(_unsettled):
        future.after_fork()
