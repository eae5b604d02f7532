"""What the fault tests watch: states of a connection, moments, and what the system says of this process."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List

WAIT_SECONDS = 10.0


class Seen:
    """A list that a callback fills and a test waits on."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._items: List[Any] = []

    def __call__(self, item: Any) -> None:
        with self._changed:
            self._items.append(item)
            self._changed.notify_all()

    @property
    def items(self) -> List[Any]:
        """All so far."""
        with self._changed:
            return list(self._items)

    def wait(self, enough: Callable[[List[Any]], bool], seconds: float = WAIT_SECONDS) -> List[Any]:
        """All so far, as soon as they are enough."""
        with self._changed:
            assert self._changed.wait_for(lambda: enough(self._items), seconds), "only %r" % (self._items,)
            return list(self._items)

    def wait_for(self, item: Any, count: int = 1, seconds: float = WAIT_SECONDS) -> List[Any]:
        """All so far, as soon as the item came so often."""
        return self.wait(lambda items: items.count(item) >= count, seconds)

    def wait_count(self, count: int, seconds: float = WAIT_SECONDS) -> List[Any]:
        """All so far, as soon as there are so many."""
        return self.wait(lambda items: len(items) >= count, seconds)


class Took:
    """How long a block took. ``seconds`` is set at its end."""

    seconds = 0.0


@contextmanager
def took() -> Iterator[Took]:
    """Measure a block."""
    measured = Took()
    began = time.monotonic()
    try:
        yield measured
    finally:
        measured.seconds = time.monotonic() - began


def open_descriptors() -> int:
    """How many descriptors this process holds."""
    return len(os.listdir("/proc/self/fd"))


def sleeps(name_part: str = "") -> Dict[str, int]:
    """How often each thread of this process went to sleep of its own accord so far: the count of its wake-ups.

    :param name_part: only threads of :mod:`threading` whose name has it
    """
    counts = {}
    for thread in threading.enumerate():
        if name_part in thread.name and thread.native_id is not None:
            status = Path("/proc/self/task/%d/status" % thread.native_id).read_text()
            fields = dict(line.split(":", 1) for line in status.splitlines())
            counts["%s/%d" % (thread.name, thread.native_id)] = int(fields["voluntary_ctxt_switches"])
    return counts


def wait_until_full(pid: int, seconds: float = WAIT_SECONDS) -> None:
    """Until the pipe into a process that reads nothing is full: what is written next waits."""
    import select

    # an end of our own of the very pipe, given back before the process may be killed: it would keep the pipe alive
    descriptor = os.open("/proc/%d/fd/0" % pid, os.O_WRONLY | os.O_NONBLOCK)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLOUT)
        until = time.monotonic() + seconds
        while poll.poll(0):  # nothing tells of it
            assert time.monotonic() < until, "there is room still"
            time.sleep(0.01)
    finally:
        os.close(descriptor)
