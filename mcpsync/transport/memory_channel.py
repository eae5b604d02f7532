"""Frames on their way in one direction, within the process: a bounded queue that has an end."""

from __future__ import annotations

import copy
import threading
from collections import deque
from typing import Deque, Optional, Tuple

from mcpsync.deadline import Deadline
from mcpsync.errors import McpError, Overloaded
from mcpsync.transport.base import Request

__all__ = ["Channel"]


class Channel:
    """One direction. Any thread may use it.

    :param capacity: frames that may wait
    :raises ValueError: a capacity below one
    :ivar end: why nothing comes after what waits; None while it is open
    """

    def __init__(self, capacity: int) -> None:
        if capacity < 1:
            raise ValueError("capacity must be at least one message, not %r" % (capacity,))
        self.end: Optional[McpError] = None
        self._capacity = capacity
        self._waiting: Deque[Tuple[bytes, Optional[Request]]] = deque()
        self._renew_lock()

    def _renew_lock(self) -> None:
        # Guards the fields above; waited on for room, for a frame and for the end. Its lock is reentrant, since the
        # garbage collector or a signal handler may come in between, and may send a frame of its own.
        self._changed = threading.Condition(threading.RLock())

    def put(self, data: bytes, deadline: Deadline, request: Optional[Request] = None) -> None:
        """Add a frame at the end, unless the request that it opens has been retired.

        :raises Overloaded: there was no room until the deadline
        :raises McpError: what ended the channel
        """
        with self._changed:
            while self.end is None and len(self._waiting) >= self._capacity:
                if deadline.expired:
                    raise Overloaded("the other side does not read, and %d messages wait already" % len(self._waiting))
                self._changed.wait(deadline.remaining())
            if self.end is not None:
                raise copy.copy(self.end)  # each gets its own: errors are located, and collect tracebacks
            if request is None or not request.answered:
                self._waiting.append((data, request))
                self._changed.notify_all()

    def take(self, deadline: Deadline) -> Optional[bytes]:
        """The next frame; None once the channel has ended and nothing waits.

        :raises TimeoutError: none came until the deadline
        """
        with self._changed:
            while not self._waiting:
                if self.end is not None:
                    return None
                if deadline.expired:
                    raise TimeoutError("no message came in time")
                self._changed.wait(deadline.remaining())
            data, _ = self._waiting.popleft()
            self._changed.notify_all()
            return data

    def withdraw(self, request: Request) -> bool:
        """Take back the frame of a request; False if it is not there (any more)."""
        with self._changed:
            for place, (_, waiting) in enumerate(self._waiting):
                if waiting is request:
                    del self._waiting[place]
                    self._changed.notify_all()
                    return True
        return False

    def close(self, cause: McpError, *, drop: bool) -> None:
        """End it. Only the first cause counts.

        :param drop: what waits is lost as well
        """
        with self._changed:
            if drop:
                self._waiting.clear()
            if self.end is None:
                self.end = cause
            self._changed.notify_all()

    def wait_end(self, deadline: Deadline) -> bool:
        """Wait until it has ended; False if it had not at the deadline."""
        with self._changed:
            return self._changed.wait_for(lambda: self.end is not None, deadline.remaining())

    def forget(self, cause: McpError) -> None:
        """In a forked child, where another thread may have held the lock: end it."""
        self._renew_lock()
        self._waiting.clear()
        self.end = cause
