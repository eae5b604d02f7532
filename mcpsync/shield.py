"""What Ctrl-C must not strike in the middle of.

It may be raised on the main thread after any step of the interpreter, above all when a call into the system returns.
So what must not be cut there is done in one step, put right afterwards, or done on another thread.
"""

from __future__ import annotations

import _thread
import threading
from contextlib import suppress
from typing import Any, Callable, List, Optional

__all__ = ["Condition", "Event", "shielded"]

get_ident = _thread.get_ident


class Condition(threading.Condition):
    """A condition whose lock Ctrl-C leaves as it has to be.

    ``with`` on a lock takes it in one step, but that of the standard condition is a Python function: an interrupt that
    strikes when it has taken the lock and has not yet returned leaves it taken for ever. Here ``with`` finds the
    methods of the lock itself. The standard ``wait``, struck when it has given the lock back, does not take it again.

    The lock is reentrant, since the garbage collector may run a ``__del__``, and a signal its handler, in the middle of
    what it guards.
    """

    _waiters: Any
    _is_owned: Any
    _release_save: Any
    _acquire_restore: Any

    def __init__(self) -> None:
        super().__init__(threading.RLock())

    __enter__ = property(lambda self: self._lock.__enter__)
    __exit__ = property(lambda self: self._lock.__exit__)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """As the standard one."""
        if not self._is_owned():
            raise RuntimeError("cannot wait on un-acquired lock")
        waiter = _thread.allocate_lock()
        waiter.acquire()
        self._waiters.append(waiter)
        state = None
        woken = False
        try:
            state = self._release_save()
            woken = waiter.acquire(True, -1 if timeout is None else max(0.0, timeout))
            return woken
        finally:
            try:
                self._take_back(state)
            except BaseException:  # struck in the last moment
                self._take_back(state)
                raise
            if not woken:
                with suppress(ValueError):
                    self._waiters.remove(waiter)

    def _take_back(self, state: Any) -> None:
        if not self._is_owned():
            self._acquire_restore(state if state is not None else (1, get_ident()))


class Event(threading.Event):
    """An event that Ctrl-C in a wait leaves as it has to be."""

    def __init__(self) -> None:
        super().__init__()
        self._cond = Condition()


def shielded(work: Callable[[], None]) -> None:
    """Do it, whatever is raised on this thread meanwhile: that is raised when the work is done, or has not begun.

    Between the moment when the system has started a process and the one when Python has noted its id lies the likeliest
    place for Ctrl-C: it came while the system worked. The id is lost then, and the process with it. Ctrl-C is only
    raised on the main thread, so there the work is done on another one.
    """
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    failure: List[BaseException] = []
    unclaimed: List[None] = [None]
    finished = Event()

    def run() -> None:
        if not _claim(unclaimed):
            return
        try:
            work()
        except BaseException as error:
            failure.append(error)
        finally:
            finished.set()

    try:
        try:
            _thread.start_new_thread(run, ())
        except RuntimeError:  # no thread to be had: at interpreter exit, say
            run()
        finished.wait()
    except BaseException:
        if not _claim(unclaimed):
            _wait(finished)
        raise
    if failure:
        raise failure[0]


def _claim(unclaimed: List[None]) -> bool:
    """True for the first who asks."""
    try:
        unclaimed.pop()  # atomic
    except IndexError:
        return False
    return True


def _wait(finished: Event) -> None:
    while not finished.is_set():
        with suppress(KeyboardInterrupt):  # once more; the first is raised soon
            finished.wait()
