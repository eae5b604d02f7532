"""How the thread that waits for a call is woken: by a lock, or by a byte in a pipe.

Releasing a lock wakes the other thread while this one holds the interpreter lock, so on a busy CPU it wakes in vain,
sleeps again on the interpreter lock, and is woken a second time. A write gives the interpreter lock up before it wakes
anybody, which spares a call over stdio a quarter of its time. Where the answer comes in on the waiting thread itself,
as over HTTP, nobody sleeps, and the lock is the cheaper one.
"""

from __future__ import annotations

import _thread
import errno
import os
import select
import sys
from collections import deque
from contextlib import suppress
from typing import Callable, Deque, Protocol

from mcpsync.connection import threads
from mcpsync.connection.threads import SIGNAL_SECONDS

__all__ = ["NOBODY", "LockWakeup", "Wakeup", "Wakeups"]

get_ident = _thread.get_ident
_read = os.read
_write = os.write

_MOST_PIPES = 64
_ALL = 512  # bytes: more than there ever are, of wakes that came too late for the call before
_SIGNAL_MILLISECONDS = int(SIGNAL_SECONDS * 1000)
_PIPES_WAKE = sys.platform != "win32"  # where select.poll() can wait for them


class Wakeup(Protocol):
    """Wakes one thread."""

    def wake(self) -> None:
        """End one :meth:`wait`, be it before or after that began; any thread."""

    def wait(self) -> None:
        """Wait to be woken, or now and then for nothing: who waits looks whether it was meant."""

    def after_fork(self) -> None:
        """In a forked child, where the thread that waits may go on: nothing wakes the parent's."""


class LockWakeup:
    """By the release of a lock."""

    __slots__ = ("_lock",)

    def __init__(self) -> None:
        self._lock = lock = _thread.allocate_lock()
        lock.acquire()

    def wake(self) -> None:
        with suppress(RuntimeError):  # a wake that was noticed before it came has left it open
            self._lock.release()

    def wait(self) -> None:
        if get_ident() != threads.main_ident:
            self._lock.acquire()
            return
        while not self._lock.acquire(True, SIGNAL_SECONDS):
            pass

    def after_fork(self) -> None:
        """The lock is the child's own."""


class PipeWakeup:
    """By a byte in a pipe, which is closed when nobody refers to it: not under a thread that is about to write.

    :raises OSError: few descriptors are left
    """

    __slots__ = ("_poll", "_reader", "_writer")

    def __init__(self) -> None:
        self._reader = self._writer = -1
        self._reader, self._writer = os.pipe()
        # pipes are kept, so they leave half of the numbers to what nothing can take the place of: a new connection, or
        # the program's own files; the lowest number that is free is the one that is given
        most = os.sysconf("SC_OPEN_MAX")
        if 0 < most <= self._writer * 2:
            raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))
        poll = select.poll()
        poll.register(self._reader, select.POLLIN)
        self._poll = poll.poll

    def wake(self) -> None:
        _write(self._writer, b"\0")

    def wait(self) -> None:
        if get_ident() == threads.main_ident:
            while not self._poll(_SIGNAL_MILLISECONDS):
                pass
        _read(self._reader, _ALL)

    def after_fork(self) -> None:
        """The numbers stay, as the thread may be in the middle of a read; what they lead to is the child's."""
        for ours, inherited in zip(os.pipe(), (self._reader, self._writer)):
            os.dup2(ours, inherited, inheritable=False)
            os.close(ours)

    def __del__(self) -> None:
        for descriptor in (self._reader, self._writer):
            if descriptor >= 0:
                with suppress(OSError):
                    os.close(descriptor)


class _Nobody:
    """Wakes no thread: of a call that is over."""

    def wake(self) -> None:
        pass

    wait = after_fork = wake


NOBODY = _Nobody()


class Wakeups:
    """The wakeups of one connection, used again and again.

    :ivar free: those that nobody uses; who takes one puts it back when its call is over. Whoever was about to wake that
        call wakes the next one for nothing then.
    """

    def __init__(self) -> None:
        self.free: Deque[Wakeup] = deque()
        self._pipes = _MOST_PIPES if _PIPES_WAKE else 0

    def take(self) -> Wakeup:
        """One that nobody uses."""
        try:
            return self.free.pop()  # atomic
        except IndexError:
            pass
        if self._pipes > 0:
            self._pipes -= 1  # a bound, and no exact one: threads may come in between
            with suppress(OSError):
                return PipeWakeup()
        return LockWakeup()

    def close(self) -> Callable[[], None]:
        """Keep nothing any more: what is used is closed when it no longer is.

        :returns: closes what nobody uses; better not called on the main thread, where Ctrl-C in a ``__del__`` is lost
        """
        unused, self.free = self.free, deque(maxlen=0)
        return unused.clear
