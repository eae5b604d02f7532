"""Time, as the rest of the library passes it around.

:class:`Deadline` is a moment on the monotonic clock. Work of several steps hands the same deadline on instead
of a timeout per step, so that the whole never takes longer than what was asked for.
:class:`Timeouts` is what a user sets.
"""

from __future__ import annotations

import sys
import time
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, Tuple, Union

if TYPE_CHECKING:
    from threading import Event

__all__ = ["FOREVER", "Deadline", "Timeouts", "elapsed"]

_INFINITE = float("inf")
_LONGEST = 2_000_000.0  # seconds, 23 days: what poll() and the locks of every system can still wait for
_ALWAYS_LIMITED = ("connect", "close", "ask")


def _elapsed() -> Callable[[], float]:
    # time.monotonic is one on Windows. On macOS it is not, and CLOCK_MONOTONIC is.
    number = getattr(time, "CLOCK_BOOTTIME" if sys.platform != "darwin" else "CLOCK_MONOTONIC", None)
    return time.monotonic if number is None else partial(time.clock_gettime, number)


elapsed: Callable[[], float] = _elapsed()
"""Seconds of a clock that goes on while the machine sleeps: what was young in the evening is old in the morning.
``time.monotonic`` stands still meanwhile, and so do the deadlines of calls."""


class Deadline:
    """A moment on the monotonic clock, or never.

    :param seconds: from now, 2,000,000 at most; None: never
    :ivar at: the moment, in seconds of ``time.monotonic()``; infinity for never
    """

    __slots__ = ("at",)

    def __init__(self, seconds: Optional[float] = None) -> None:
        if seconds is None:
            self.at = _INFINITE
        else:
            self.at = monotonic() + (seconds if seconds < _LONGEST else _LONGEST)

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
        return max(0.0, self.at - monotonic())

    @property
    def expired(self) -> bool:
        """Whether the moment has passed."""
        return self.at != _INFINITE and monotonic() >= self.at

    def sooner(self, seconds: Optional[float]) -> Deadline:
        """This deadline, or the one that many seconds from now if that comes first."""
        if seconds is None:
            return self
        other = Deadline(seconds)
        return other if other.at < self.at else self

    def wait(self, event: Event) -> bool:
        """Wait for an event that nobody else waits for; False if the moment comes first."""
        return event.wait(self.remaining())

    def __repr__(self) -> str:
        left = self.remaining()
        return "Deadline(never)" if left is None else "Deadline(in %.3f s)" % left


FOREVER = Deadline(None)


class Timeouts:
    """How long things may take, in seconds. None: no limit. Immutable.

    More than 2,000,000 seconds (23 days) count as that many.

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

    # no dataclass: importing dataclasses costs a script as much as all the rest of this library

    __slots__ = (
        "ask",
        "call",
        "close",
        "connect",
        "idle",
        "idle_disconnect",
        "keepalive",
        "max_lifetime",
        "total",
    )

    connect: float
    call: Optional[float]
    idle: Optional[float]
    total: Optional[float]
    close: float
    keepalive: Optional[float]
    idle_disconnect: Optional[float]
    max_lifetime: Optional[float]
    ask: float

    def __init__(
        self,
        connect: float = 60,
        call: Optional[float] = 120,
        idle: Optional[float] = None,
        total: Optional[float] = None,
        close: float = 10,
        keepalive: Optional[float] = None,
        idle_disconnect: Optional[float] = None,
        max_lifetime: Optional[float] = None,
        ask: float = 300,
    ) -> None:
        given = {
            "connect": connect,
            "call": call,
            "idle": idle,
            "total": total,
            "close": close,
            "keepalive": keepalive,
            "idle_disconnect": idle_disconnect,
            "max_lifetime": max_lifetime,
            "ask": ask,
        }
        for name, value in given.items():
            if value is None and name not in _ALWAYS_LIMITED:
                object.__setattr__(self, name, None)
            elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < _INFINITE:
                raise ValueError("Timeouts.%s must be a positive number of seconds, not %r" % (name, value))
            else:
                object.__setattr__(self, name, min(value, _LONGEST))

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("Timeouts are immutable; use override() or make new ones")

    def _values(self) -> Tuple[Optional[float], ...]:
        return tuple(getattr(self, name) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if isinstance(other, Timeouts) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        return "Timeouts(%s)" % ", ".join("%s=%r" % (name, getattr(self, name)) for name in self.__slots__)

    def __reduce__(self) -> Tuple[Any, ...]:
        return _timeouts_of, (dict(zip(self.__slots__, self._values())),)

    def override(self, **changed: Optional[float]) -> Timeouts:
        """These timeouts with some of them changed."""
        return Timeouts(**{**dict(zip(self.__slots__, self._values())), **changed})  # type: ignore[arg-type]

    def for_call(self, timeout: Union[float, Timeouts, None]) -> Timeouts:
        """These timeouts as a single call asks for them: a number replaces ``call``; None lifts it."""
        if isinstance(timeout, Timeouts):
            return timeout
        return self.override(call=timeout, idle=None)


def _timeouts_of(values: Dict[str, Any]) -> Timeouts:
    return Timeouts(**values)
