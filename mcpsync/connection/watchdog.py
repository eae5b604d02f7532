"""The thread that owns time.

It knows two kinds of alarm. *Deadlines*: one per call, armed and disarmed on the hot path in constant time, kept
in one ordered table per length, so that the first entry of each table is its earliest. *Timers*: few, for
everything else. It sleeps until the earliest of all, and is woken only by one that is earlier still: disarming
leaves it asleep, and so one stale wake-up per sleep is possible.

It decides and never waits: what an alarm calls has to be quick.

Its clock stands still while the machine sleeps, so that a call whose answer is on its way does not run out of time in
the lid. That there was a sleep is told apart, each time that it wakes: by the clock that went on, or, where there is no
other, and for a process that was stopped, by a moment that it was to wake at and that is long past.
"""

from __future__ import annotations

import logging
import time
from collections import OrderedDict
from heapq import heapify, heappop, heappush
from queue import Empty, SimpleQueue
from threading import RLock, Thread
from typing import Any, Callable, Dict, List, Optional, Protocol, Tuple

from mcpsync.connection.threads import inner_thread
from mcpsync.deadline import Deadline, elapsed

__all__ = ["Armed", "Timer", "Watchdog"]

logger = logging.getLogger("mcpsync")

_NEVER = float("inf")
_AWAKE = float("-inf")
_LONGEST_SLEEP = 86_400.0 * 30  # what a lock may be waited for is bounded by the system
_MOST_TABLES = 64
_SLEPT_SECONDS = 5.0  # less is a machine under load, or a clock that is set right

monotonic = time.monotonic


def _ignore(seconds: float) -> None:
    pass


class Armed(Protocol):
    """What a deadline is armed for: it remembers in which table it stands."""

    table: Optional[Dict[Any, float]]


class Timer:
    """One alarm that calls back once."""

    __slots__ = ("action", "at")

    def __init__(self, at: float, action: Callable[[], object]) -> None:
        self.at = at
        self.action: Optional[Callable[[], object]] = action

    def cancel(self) -> None:
        """Never call back. Harmless when it has."""
        self.action = None

    def __lt__(self, other: Timer) -> bool:
        return self.at < other.at


class Watchdog:
    """The alarms of one connection, and the thread that waits for them.

    :param name: of the thread
    :param expired: called, on that thread, with whatever an overdue deadline was armed for
    :param slept: called, on that thread, when the machine or the process has slept, with the seconds
    :ivar elapsed: the clock that goes on while the machine sleeps
    """

    def __init__(self, name: str, expired: Callable[[Any], None], slept: Callable[[float], object] = _ignore) -> None:
        self._name = name
        self._expired = expired
        self.elapsed = elapsed
        self._slept = slept
        self._ahead = 0.0  # of the clock that stands still in a sleep, by the one that goes on
        self._to_wake_at = _NEVER
        # guards all below but the entries of the tables by length, see arm()
        self._lock = RLock()
        self._tables: Dict[float, Dict[Any, float]] = {}
        self._moved: Dict[Any, float] = {}
        self._moments: List[Tuple[float, int, Any]] = []
        self._timers: List[Timer] = []
        self._serial = 0
        self._wake_at = _AWAKE
        # finalizers may post at any moment, whatever lock is held: put() is reentrant
        self._mailbox: SimpleQueue[Optional[Callable[[], object]]] = SimpleQueue()
        self._thread: Optional[Thread] = None
        self._runs = False
        self._stopped = False

    def start(self) -> None:
        """Start the thread, unless it runs."""
        with self._lock:
            if self._stopped or (self._thread is not None and self._thread.ident is not None):
                return
            self._thread = inner_thread(self._name, self._run)
            self._thread.start()

    def stop(self) -> None:
        """End the thread; what was posted before is still done."""
        self._stopped = True
        self._mailbox.put(None)

    def join(self, seconds: Optional[float]) -> None:
        """Wait until the thread has ended."""
        if self._thread is not None and self._thread.ident is not None:
            self._thread.join(seconds)

    def post(self, action: Callable[[], object]) -> None:
        """Have the thread do something now. Safe in a finalizer."""
        self._mailbox.put(action)

    # -- deadlines ---------------------------------------------------------------------------------------------

    def arm(self, key: Armed, seconds: float) -> Deadline:
        """Arm a deadline that many seconds from now, and give it.

        No lock is taken: putting into an ordered dict whose keys hash by identity is one atomic step (with the
        interpreter lock, and in builds without one by the dict's own). The thread publishes when it will wake
        and looks at the tables once more after that, so either it sees this entry or this sees that moment.
        """
        deadline = Deadline(seconds)
        table = self._tables.get(seconds)
        if table is None:
            table = self._new_table(seconds)
            if table is None:
                self._arm_at(key, deadline.at)
                return deadline
        key.table = table
        table[key] = deadline.at
        if deadline.at < self._wake_at:
            self._wake()
        return deadline

    def _new_table(self, seconds: float) -> Optional[Dict[Any, float]]:
        """None: there are too many lengths already, as from a program that computes each of its timeouts."""
        with self._lock:
            if seconds not in self._tables:
                if len(self._tables) >= _MOST_TABLES:
                    return None
                self._tables = {**self._tables, seconds: OrderedDict()}
            return self._tables[seconds]

    def _arm_at(self, key: Armed, at: float) -> None:
        with self._lock:
            self._put_moment(key, at)
        if at < self._wake_at:
            self._wake()

    def _wake(self) -> None:
        self._wake_at = _AWAKE  # one wake-up is enough
        self._mailbox.put(None)

    def disarm(self, key: Armed) -> None:
        """Forget a deadline; harmless if there is none."""
        table = key.table
        if table is not None:
            key.table = None
            if table.pop(key, None) is None:
                # due, or being moved to another moment by another thread, which would leave it armed
                with self._lock:
                    self._moved.pop(key, None)
                    key.table = None

    def extend(self, key: Armed, seconds: float) -> None:
        """Start a deadline anew, if it is armed."""
        self.move(key, monotonic() + seconds)

    def move(self, key: Armed, at: float) -> None:
        """Move a deadline to a moment of the monotonic clock, if it is armed."""
        with self._lock:
            table = key.table
            if table is None or table.pop(key, None) is None:
                return
            self._put_moment(key, at)
        if at < self._wake_at:
            self._wake()

    def moment(self, key: Armed) -> Optional[float]:
        """When a deadline is due, if it is armed."""
        table = key.table
        return None if table is None else table.get(key)

    def _put_moment(self, key: Armed, at: float) -> None:
        # the lock is held
        self._moved[key] = at
        key.table = self._moved
        self._serial += 1
        heappush(self._moments, (at, self._serial, key))
        if len(self._moments) > 2 * len(self._moved) + 16:
            self._moments = [entry for entry in self._moments if self._moved.get(entry[2]) == entry[0]]
            heapify(self._moments)

    # -- timers ------------------------------------------------------------------------------------------------

    def later(self, seconds: float, action: Callable[[], object]) -> Timer:
        """Call back once, on the watchdog's thread, that many seconds from now; it must be quick."""
        timer = Timer(monotonic() + seconds, action)
        with self._lock:
            heappush(self._timers, timer)
            if len(self._timers) > 64 and sum(each.action is None for each in self._timers) * 2 > len(self._timers):
                self._timers = [each for each in self._timers if each.action is not None]
                heapify(self._timers)
        if timer.at < self._wake_at:
            self._wake()
        return timer

    # -- the thread --------------------------------------------------------------------------------------------

    def _run(self) -> None:
        with self._lock:
            if self._runs:  # Ctrl-C struck in the start of this thread or of the other, and it was started once more
                return
            self._runs = True
        self._ahead = self.elapsed() - monotonic()
        while not self._stopped or not self._mailbox.empty():
            seconds = self._seconds_slept()
            if seconds > _SLEPT_SECONDS:
                self._call(self._slept, seconds)
            if not self._deal_with_due():
                self._sleep()

    def _seconds_slept(self) -> float:
        now = monotonic()
        ahead, before = self.elapsed() - now, self._ahead
        to_wake_at, self._to_wake_at = self._to_wake_at, _NEVER
        self._ahead = ahead
        return max(ahead - before, now - to_wake_at)

    def _deal_with_due(self) -> bool:
        # a function of its own, so that no call and no action is held while the thread sleeps
        with self._lock:
            overdue, actions = self._take_due(monotonic())
        for key in overdue:
            self._call(self._expired, key)
        for action in actions:
            self._call(action)
        return bool(overdue or actions)

    def _sleep(self) -> None:
        # published before the last look at the tables: see arm()
        self._wake_at = wake_at = self._earliest()
        if self._earliest() < wake_at:
            self._wake_at = _AWAKE
            return
        seconds = None if wake_at == _NEVER else min(_LONGEST_SLEEP, max(0.0, wake_at - monotonic()))
        self._to_wake_at = wake_at
        try:
            action = self._mailbox.get(timeout=seconds)
        except Empty:
            action = None
        self._wake_at = _AWAKE
        if action is not None:
            self._call(action)

    @staticmethod
    def _call(action: Callable[..., object], *arguments: Any) -> None:
        try:
            action(*arguments)
        except BaseException:  # sys.exit() too: the clock of every other call hangs on this thread, which outlives all
            logger.exception("mcpsync: an alarm failed")

    def _take_due(self, now: float) -> Tuple[List[Any], List[Callable[[], object]]]:
        # the lock is held
        overdue: List[Any] = []
        for table in self._tables.values():
            first = _first(table)
            while first is not None and first[1] <= now:
                if table.pop(first[0], None) is not None:
                    overdue.append(first[0])
                first = _first(table)
        while self._moments and (self._moments[0][0] <= now or self._stale(self._moments[0])):
            entry = heappop(self._moments)
            if not self._stale(entry):
                del self._moved[entry[2]]
                overdue.append(entry[2])
        for key in overdue:
            key.table = None
        actions: List[Callable[[], object]] = []
        while self._timers and (self._timers[0].action is None or self._timers[0].at <= now):
            action = heappop(self._timers).action
            if action is not None:
                actions.append(action)
        return overdue, actions

    def _stale(self, entry: Tuple[float, int, Any]) -> bool:
        # the lock is held
        return self._moved.get(entry[2]) != entry[0]

    def _earliest(self) -> float:
        with self._lock:
            firsts = [_first(table) for table in self._tables.values()]
            moments = [first[1] for first in firsts if first is not None]
            if self._moments:
                moments.append(self._moments[0][0])
            if self._timers:
                moments.append(self._timers[0].at)
        return min(moments, default=_NEVER)


def _first(table: Dict[Any, float]) -> Optional[Tuple[Any, float]]:
    """The earliest entry of a table that other threads change meanwhile."""
    while True:
        try:
            return next(iter(table.items()), None)
        except RuntimeError:  # changed between the two steps
            continue
