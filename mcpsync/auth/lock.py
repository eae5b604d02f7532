"""A lock between processes, and between the threads of each: held on a file, let go by the system when its holder dies.

On POSIX it is ``flock``: it belongs to the open file and not to the process, so two threads exclude each other as two
processes do, and closing another descriptor of the same file lets nothing go. A forked child inherits the open file
and would hold the lock with its parent; so each child closes what was held when it was forked, which leaves the
parent's lock alone.
"""

from __future__ import annotations

import os
import random
import sys
import time
from contextlib import contextmanager
from typing import Iterator, Set

from mcpsync.deadline import Deadline
from mcpsync.errors import AuthError

__all__ = ["locked_file"]

_FIRST_GAP = 0.002
_LONGEST_GAP = 0.05

_held: Set[int] = set()  # descriptors; each is added and removed in one step of the interpreter, or under its lock


@contextmanager
def locked_file(path: str, deadline: Deadline) -> Iterator[None]:
    """Hold the lock on this file, which is made if it is not there and never removed.

    :raises AuthError: it was not free by the deadline, or there cannot be such a file
    """
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError as error:
        raise AuthError("the lock %s cannot be opened: %s" % (path, error.strerror or error)) from None
    owner = os.getpid()
    _held.add(descriptor)
    try:
        _acquire(descriptor, path, deadline)
        try:
            yield
        finally:
            if os.getpid() == owner:
                _let_go(descriptor)
    finally:
        if os.getpid() == owner:
            _held.discard(descriptor)
            os.close(descriptor)


def _acquire(descriptor: int, path: str, deadline: Deadline) -> None:
    # the system has no wait with an end; looks are far apart, and only while another process is at it
    gap = _FIRST_GAP
    while not _try(descriptor):
        left = deadline.remaining()
        if left == 0.0:
            raise AuthError("another process holds the credentials (%s) and did not let go in time" % path)
        pause = gap * random.uniform(0.5, 1.0)
        time.sleep(pause if left is None else min(pause, left))
        gap = min(gap * 2, _LONGEST_GAP)


if sys.platform == "win32":
    import msvcrt

    def _try(descriptor: int) -> bool:
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

    def _let_go(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

else:
    import fcntl

    def _try(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _let_go(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _after_fork() -> None:
        while _held:
            os.close(_held.pop())

    os.register_at_fork(after_in_child=_after_fork)
