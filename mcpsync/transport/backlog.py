"""Frames that wait to be written: bounded, in order, each whole; and who waits for room among them."""

from __future__ import annotations

import _thread
import copy
import functools
import sys
import threading
from collections import deque
from typing import Any, Callable, Deque, List, Optional, TypeVar, cast

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost, McpError, MessageTooLarge, Overloaded
from mcpsync.transport.base import Request

__all__ = ["Backlog", "Waiting", "lets_go"]

_LONGEST_WAIT = threading.TIMEOUT_MAX
_Method = TypeVar("_Method", bound=Callable[..., Any])

if sys.version_info < (3, 10):

    def lets_go(method: _Method) -> _Method:
        """A method of a :class:`Backlog` that leaves its lock even if Ctrl-C strikes at the very end of a ``with``.

        Python 3.9 may raise there when the block is left already and the lock is not; later ones do not.
        """

        @functools.wraps(method)
        def careful(self: Any, *arguments: Any) -> Any:
            lock = self._lock
            held = lock._is_owned()
            try:
                return method(self, *arguments)
            except BaseException:
                while not held and lock._is_owned():
                    lock.release()
                raise

        return cast(_Method, careful)

else:

    def lets_go(method: _Method) -> _Method:
        """Nothing to do: ``with`` and Ctrl-C get along since Python 3.10."""
        return method


class Waiting:
    """A frame in the backlog.

    :ivar data: its bytes, the line end included
    :ivar written: how many of them are on their way
    :ivar begun: it is being written, and cannot be taken back
    """

    __slots__ = ("begun", "data", "request", "written")

    def __init__(self, data: bytes, request: Optional[Request]) -> None:
        self.data = data
        self.request = request
        self.written = 0
        self.begun = False


class Backlog:
    """What the two ways of writing have in common: see the subclasses.

    Ctrl-C may strike a sender between any two steps. So a lock is only ever taken by ``with`` on the lock itself
    (``with`` on a ``Condition`` runs Python code in between, and can be left with the lock held), who waits does so on
    a raw lock of its own, and a frame is appended as the last step of what belongs together.

    :cvar BROKEN: how that is said
    :param limit: bytes that may wait
    :param patience: seconds that a sender waits for the reader to find out why the pipe is broken
    :param server: name of the server, for errors
    :ivar broken: the server closed its end of the pipe
    """

    BROKEN = "the server closed its standard input"

    def __init__(self, limit: int, *, patience: float, server: str) -> None:
        self.broken = False
        self._limit = limit
        self._patience = patience
        self._server = server
        self._frames: Deque[Waiting] = deque()
        self._bytes = 0
        self._loss: Optional[McpError] = None
        self._renew_lock()

    def _renew_lock(self) -> None:
        # Guards all of the above and what the subclasses add. Nothing waits for the server under it. Reentrant, since
        # the garbage collector or a signal handler may come in between, and may send a frame of its own.
        self._lock = threading.RLock()
        self._sleepers: List[_thread.LockType] = []

    @lets_go
    def abort(self, request: Request) -> bool:
        """Take a request's frame out; False if it is not there, or begun."""
        if not self._frames:  # one look at its length; a frame that leaves it meanwhile was written
            return False
        with self._lock:
            for place, waiting in enumerate(self._frames):
                if waiting.request is request:
                    if waiting.begun:
                        return False
                    self._bytes -= len(waiting.data)
                    del self._frames[place]
                    self._room_made()
                    return True
        return False

    def flush(self, deadline: Deadline) -> None:
        """Wait until nothing waits any more, or until the deadline."""
        while True:
            with self._lock:
                if not self._frames or self._loss is not None or self.broken or deadline.expired:
                    return
                sleeper = self._sleeper()
            if not self._sleep(sleeper, deadline):
                return

    def fail(self, loss: McpError) -> None:
        """From now on nothing is taken, and this is raised; who waits learns at once. Only the first call counts."""
        with self._lock:
            if self._loss is None:
                self._loss = loss
            self._wake_sleepers()

    def _append(self, data: bytes, request: Optional[Request], deadline: Deadline) -> None:
        """Put a frame at the end, when there is room.

        :raises MessageTooLarge: there never will be
        :raises Overloaded: there was none until the deadline
        """
        size = len(data)
        if size > self._limit:
            raise MessageTooLarge(
                "a message of %d bytes is longer than the %d bytes that may wait to be sent; raise the backlog limit"
                % (size, self._limit),
                limit=self._limit,
                server=self._server,
            )
        waiting = Waiting(data, request)
        verdict: Optional[Deadline] = None
        while True:
            with self._lock:
                if self._loss is not None:
                    raise copy.copy(self._loss)  # each gets its own: errors are located, and collect tracebacks
                if self.broken:
                    verdict = verdict if verdict is not None else deadline.sooner(self._patience)
                    if verdict.expired:
                        raise ConnectionLost(self.BROKEN, server=self._server)
                elif self._bytes + size <= self._limit:
                    self._before_append()
                    self._bytes += size
                    self._frames.append(waiting)
                    return
                elif deadline.expired:
                    raise self._no_room()
                sleeper = self._sleeper()
            if not self._sleep(sleeper, verdict if verdict is not None else deadline):
                raise self._no_room()

    def _before_append(self) -> None:
        """Called under the lock."""

    def _room_made(self) -> None:
        """Called under the lock when frames have left."""
        if not self._frames:
            self._bytes = 0
        self._wake_sleepers()

    def _break(self) -> None:
        with self._lock:
            self.broken = True
            self._wake_sleepers()

    def _drop_all(self) -> None:
        self._frames.clear()
        self._bytes = 0

    def _no_room(self) -> Overloaded:
        return Overloaded(
            "the server does not read its input, and %d bytes wait to be sent already" % self._bytes,
            server=self._server,
        )

    # Who sleeps until something changes has a raw lock in the list, which is taken twice: the second time sleeps.

    def _sleeper(self) -> _thread.LockType:
        """Called under the lock, with the look at what is waited for."""
        sleeper = _thread.allocate_lock()
        sleeper.acquire()
        self._sleepers.append(sleeper)
        return sleeper

    def _sleep(self, sleeper: _thread.LockType, deadline: Deadline) -> bool:
        """Sleep until something changes or the deadline; False: it makes no sense to."""
        if self._lock._is_owned():  # type: ignore[attr-defined]
            # A signal handler or a finalizer that sends, called while this very thread held the lock: nothing can
            # change before it returns.
            return False
        left = deadline.remaining()
        sleeper.acquire(True, -1 if left is None else min(left, _LONGEST_WAIT))
        with self._lock:
            if sleeper in self._sleepers:
                self._sleepers.remove(sleeper)
        return True

    def _wake_sleepers(self) -> None:
        sleepers, self._sleepers = self._sleepers, []
        for sleeper in sleepers:
            sleeper.release()
