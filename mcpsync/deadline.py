"""Time, as the rest of the library passes it around.

:class:`Deadline` is a moment on the monotonic clock. Work of several steps hands the same deadline on instead
of a timeout per step, so that the whole never takes longer than what was asked for.
:class:`Timeouts` is what a user sets.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Optional, Union

__all__ = ["FOREVER", "Deadline", "Timeouts"]

_INFINITE = float("inf")


class Deadline:
    """A moment on the monotonic clock, or never.

    :param seconds: from now; None: never
    :ivar at: the moment, in seconds of ``time.monotonic()``; infinity for never
    """

    __slots__ = ("at",)

    def __init__(self, seconds: Optional[float] = None) -> None:
        self.at = _INFINITE if seconds is None else time.monotonic() + seconds

    @classmethod
    def at_moment(cls, at: float) -> Deadline:
        """The deadline at a moment of the monotonic clock."""
        made = cls.__new__(cls)
        made.at = at
        return made

    def remaining(self) -> Optional[float]:
        """Seconds left, never negative; None: no limit."""
        if self.at == _INFINITE:
            return None
        return max(0.0, self.at - time.monotonic())

    @property
    def expired(self) -> bool:
        """Whether the moment has passed."""
        return self.at != _INFINITE and time.monotonic() >= self.at

    def sooner(self, seconds: Optional[float]) -> Deadline:
        """This deadline, or the one that many seconds from now if that comes first."""
        if seconds is None:
            return self
        other = Deadline(seconds)
        return other if other.at < self.at else self

    def __repr__(self) -> str:
        left = self.remaining()
        return "Deadline(never)" if left is None else "Deadline(in %.3f s)" % left


FOREVER = Deadline(None)


@dataclass(frozen=True)
class Timeouts:
    """How long things may take, in seconds. None: no limit.

    :ivar connect: to start the server and agree on a revision
    :ivar call: one call, from the first byte to the result, all its rounds included
    :ivar idle: instead of ``call``: the longest silence; each progress notification starts it anew
    :ivar total: the longest a call may take whatever comes; nothing extends or pauses it
    :ivar close: to close, the server's shutdown included
    :ivar keepalive: time between pings while nothing else travels; None: none
    :ivar idle_disconnect: close a connection that nobody used for so long; the next call opens it again
    :ivar max_lifetime: replace a connection that is so old
    :ivar ask: a person answering one question; all pauses of one call together last no longer
    """

    connect: float = 60
    call: Optional[float] = 120
    idle: Optional[float] = None
    total: Optional[float] = None
    close: float = 10
    keepalive: Optional[float] = None
    idle_disconnect: Optional[float] = None
    max_lifetime: Optional[float] = None
    ask: float = 300

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is None and name not in ("connect", "close", "ask"):
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _INFINITE:
                raise ValueError("Timeouts.%s must be a positive number of seconds, not %r" % (name, value))

    def override(self, timeout: Union[float, Timeouts, None]) -> Timeouts:
        """These timeouts with what a single call asks for: a number replaces ``call``; None lifts it."""
        if isinstance(timeout, Timeouts):
            return timeout
        return replace(self, call=timeout, idle=None)
