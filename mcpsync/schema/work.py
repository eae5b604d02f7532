"""What an evaluation may cost, and how it ends.

A step is a schema applied to a value, a property looked up, an item walked past: a fraction of a microsecond each.
What takes longer is charged with more before it is done. Small values get a fixed number of steps; a large one gets
more, by how many values are in it, so that the cost stays linear in what a server sent, within a limit of time. That
is the thread's own: how busy the machine is does not make a value invalid.
"""

from __future__ import annotations

import time
from typing import Any, Callable, List, Mapping, Optional, Sequence, Set, TypeVar, Union

__all__ = ["Check", "Evaluated", "Fault", "TooMuchWork", "Unusable", "Work", "count_of"]

T = TypeVar("T")

STEPS = 40_000
"""For any value."""
STEPS_PER_VALUE = 10
SECONDS = 1.0
"""Of this thread's processor time, for the steps that its size earns a value; the fixed ones take some hundredths."""
_TEXT_PER_VALUE = 16
DEPTH = 200
"""Schemas that are being applied within one another: each takes a few frames of Python's stack."""


class Unusable(Exception):
    """The schema cannot be used; the text says why, and where in it."""


class TooMuchWork(Unusable):
    """Schema and value together take more steps, time or depth than they get."""


class Fault:
    """Where a value breaks a schema.

    :ivar keyword: of the schema
    :ivar expected: what it wants
    :ivar value: what is there instead
    :ivar path: keys and indexes that lead to it, the last one first
    """

    __slots__ = ("expected", "keyword", "path", "value")

    def __init__(self, keyword: str, expected: str, value: Any) -> None:
        self.keyword = keyword
        self.expected = expected
        self.value = value
        self.path: List[Union[str, int]] = []


class Evaluated:
    """Which properties and items of a value some schema has looked at, for ``unevaluatedProperties`` and ``-Items``.

    :ivar names: of properties
    :ivar all_names: all of them
    :ivar indexes: of items
    :ivar prefix: all items before this one
    """

    __slots__ = ("all_names", "indexes", "names", "prefix")

    def __init__(self) -> None:
        self.names: Set[str] = set()
        self.all_names = False
        self.indexes: Set[int] = set()
        self.prefix = 0

    def add(self, other: Evaluated) -> None:
        """What another one has seen too; that one must not be used any more.

        The smaller set goes into the larger: all of it was charged when it was made, and then so is this, however often
        it is handed on.
        """
        self.names = _united(self.names, other.names)
        self.all_names = self.all_names or other.all_names
        self.indexes = _united(self.indexes, other.indexes)
        self.prefix = max(self.prefix, other.prefix)


def _united(one: Set[T], other: Set[T]) -> Set[T]:
    if len(one) < len(other):
        one, other = other, one
    one |= other
    return one


class Work:
    """What is left for one evaluation.

    :param value: that is evaluated
    :param steps: for any value
    :param per_value: further ones for each value in it
    :param clock: gives seconds
    :ivar left: steps
    :ivar depth: schemas that may still be applied within the present one
    :ivar scope: the schema resources that were entered, the outermost first
    """

    __slots__ = ("_clock", "_end", "_granted", "_per_value", "_value", "depth", "left", "scope")

    def __init__(
        self,
        value: Any,
        steps: int = STEPS,
        per_value: int = STEPS_PER_VALUE,
        clock: Callable[[], float] = time.thread_time,
    ) -> None:
        self.left = steps
        self._per_value = per_value
        self.depth = DEPTH
        self.scope: List[Any] = []
        self._value = value
        self._clock = clock
        self._end = 0.0
        self._granted: Optional[int] = None

    def charge(self, steps: int) -> None:
        """Take steps.

        :raises TooMuchWork: there are none left
        """
        self.left -= steps
        if self.left < 0:
            self.refill()

    def refill(self) -> None:
        """The steps are used up: give the next ones that the size of the value earns, and look at the clock.

        :raises TooMuchWork: it has earned no more
        """
        if self._granted is None:
            self._granted = self._per_value and self._per_value * count_of(self._value)
            self._end = self._clock() + SECONDS
        while self.left < 0:
            if self._granted <= 0:
                raise TooMuchWork("checking it takes too much work")
            if self._clock() > self._end:
                raise TooMuchWork("checking it takes longer than %g s" % SECONDS)
            steps = min(STEPS, self._granted)
            self._granted -= steps
            self.left += steps


Check = Callable[[Any, Work, Optional[Evaluated]], Optional[Fault]]
"""Applies something to a value; gives what is wrong. With a collector, what was looked at goes there."""


def count_of(value: Any) -> int:
    """How many values are in a value; a long text counts as several."""
    count = 0
    waiting: List[Sequence[Any]] = [[value]]
    while waiting:
        values = waiting.pop()
        count += len(values)
        for each in values:
            if isinstance(each, Mapping):
                waiting.append(list(each.values()))
            elif isinstance(each, (list, tuple)):
                waiting.append(each)
            elif isinstance(each, str):
                count += len(each) // _TEXT_PER_VALUE
    return count
