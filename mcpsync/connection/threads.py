"""Threads: which of them are the library's own, and pools that grow on demand and vanish when idle."""

from __future__ import annotations

import _thread
import logging
import threading
from collections import deque
from typing import Callable, Deque, Optional, Set

from mcpsync.passing_threads import forks_wait_for_this_thread
from mcpsync.shield import Condition

__all__ = ["Condition", "Workers", "forbid_blocking", "inner_thread", "is_inner", "runs_callbacks", "start_inner"]

logger = logging.getLogger("mcpsync")

_inner: Set[int] = set()  # idents of threads that no blocking call may be made on; each adds and removes its own
_calling: Set[int] = set()  # idents of threads that make calls for the library; each adds and removes its own
get_ident = _thread.get_ident

SIGNAL_SECONDS = 0.5
"""A signal that strikes when the main thread is about to sleep on a lock, and no longer looks, does not wake it: so
where the main thread waits for a call, it looks again after so many seconds. Other threads get no signals."""
main_ident = threading.main_thread().ident


def is_inner() -> bool:
    """Whether this thread is a reader, a watchdog or a control worker, which must never wait for a call."""
    return get_ident() in _inner


def runs_callbacks() -> bool:
    """Whether callbacks of the user may run on this thread while it waits: no calls of the library are made on it."""
    ident = get_ident()
    return ident not in _inner and ident not in _calling


def forbid_blocking() -> None:
    """
    :raises RuntimeError: this thread serves a connection; a blocking call on it would wait for itself
    """
    if get_ident() in _inner:
        raise RuntimeError(
            "a blocking MCP call was made on thread %r, which serves a connection and must never wait "
            "(a __del__ that the garbage collector ran there?)" % threading.current_thread().name
        )


def after_fork() -> None:
    """In a forked child: the threads are gone, and their idents may come again."""
    global main_ident
    _inner.clear()
    _calling.clear()
    main_ident = get_ident()


def inner_thread(name: str, body: Callable[[], None]) -> threading.Thread:
    """A daemon thread that no blocking call may be made on; not started, so that its owner can take note of it first:
    Ctrl-C may strike in the start.
    """

    def run() -> None:
        _inner.add(get_ident())
        try:
            body()
        finally:
            forks_wait_for_this_thread()
            _inner.discard(get_ident())

    return threading.Thread(target=run, name=name, daemon=True)


def start_inner(name: str, body: Callable[[], None]) -> None:
    """Start a thread like that, which nobody waits for.

    :raises RuntimeError: no thread can be started (the interpreter is shutting down)
    """
    inner_thread(name, body).start()


class Workers:
    """Daemon threads that run callables: started on demand up to a limit, ended when idle.

    The standard library's ``ThreadPoolExecutor`` would do, but refuses work at interpreter exit, when open
    connections still have to be told goodbye.

    :param name: of the threads
    :param limit: the most threads at a time
    :param inner: the threads may not make blocking calls
    :param calling: the threads make calls for the library, and run no callbacks while they wait
    :param idle: seconds after which a thread without work ends
    """

    def __init__(self, name: str, limit: int, inner: bool = False, idle: float = 5.0, calling: bool = False) -> None:
        self._name = name
        self._limit = limit
        self._inner = inner
        self._calling = calling
        self._idle_seconds = idle
        # guards the fields below; waited on by idle threads, and by those who wait for them to be idle or to end
        self._changed = Condition()
        self._tasks: Deque[Callable[[], None]] = deque()
        self._threads = 0
        self._idents: Set[int] = set()
        self._idle = 0
        self._flushing = 0
        self._stopped = False

    @property
    def waiting(self) -> int:
        """How many tasks wait for a thread."""
        return len(self._tasks)

    def submit(self, task: Callable[[], None]) -> bool:
        """Run it as soon as a thread is free. False: it never will be (stopped, or no thread can start)."""
        with self._changed:
            return self._accept(task)

    def try_submit(self, task: Callable[[], None]) -> bool:
        """Run it now. False: all threads are busy."""
        with self._changed:
            if self._idle <= len(self._tasks) and self._threads >= self._limit:
                return False
            return self._accept(task)

    def _accept(self, task: Callable[[], None]) -> bool:
        # the condition is held
        if self._stopped:
            return False
        self._tasks.append(task)
        if self._idle >= len(self._tasks):
            self._changed.notify()
        elif self._threads < self._limit and not self._start() and self._threads == 0:
            self._tasks.remove(task)
            return False
        return True

    def _start(self) -> bool:
        # the condition is held
        self._threads += 1
        try:
            threading.Thread(target=self._run, name=self._name, daemon=True).start()
        except RuntimeError:  # the interpreter is shutting down, or the system has no thread left
            self._threads -= 1
            return False
        return True

    def flush(self, seconds: Optional[float]) -> bool:
        """Wait until all that was submitted has been done.

        :param seconds: None: no limit
        :returns: False if it has not been done in time
        """
        with self._changed:
            self._flushing += 1
            try:
                return self._changed.wait_for(self._has_done_all, seconds)
            finally:
                self._flushing -= 1

    def _has_done_all(self) -> bool:
        # the condition is held
        return not self._tasks and self._idle == self._threads

    def stop(self) -> None:
        """Accept nothing more; threads end after what was accepted."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()

    def drain(self, seconds: Optional[float]) -> bool:
        """Wait until all threads but the caller's own have ended after :meth:`stop`; False if not in time."""
        with self._changed:
            own = 1 if get_ident() in self._idents else 0
            return self._changed.wait_for(lambda: self._threads <= own, seconds)

    def _next(self) -> Optional[Callable[[], None]]:
        with self._changed:
            self._idle += 1
            try:
                if self._flushing and self._has_done_all():
                    self._changed.notify_all()
                if not self._tasks and not self._stopped:
                    self._changed.wait_for(lambda: self._tasks or self._stopped, self._idle_seconds)
                if self._tasks:
                    return self._tasks.popleft()
            finally:
                self._idle -= 1
            # counted out in the same step in which it was found that there is nothing to do
            self._gone()
            return None

    def _gone(self) -> None:
        # the condition is held
        self._threads -= 1
        self._idents.discard(get_ident())
        self._changed.notify_all()

    def _run(self) -> None:
        ident = get_ident()
        self._idents.add(ident)
        if self._inner:
            _inner.add(ident)
        if self._calling:
            _calling.add(ident)
        try:
            task = self._next()
            while task is not None:
                try:
                    task()
                except BaseException:  # whatever a task raises, sys.exit() too: the next one needs the thread
                    logger.exception("%s: a callback failed", self._name)
                task = None  # holds no reference while idle
                task = self._next()
        finally:
            _inner.discard(ident)
            _calling.discard(ident)
            forks_wait_for_this_thread()
