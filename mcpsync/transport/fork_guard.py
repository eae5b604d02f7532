"""No fork of this process in the middle of the start of a server.

A child forked between the making of a pipe and the moment when it is on the books would keep an end of it that nobody
knows of: the server would never see the end of its stdin while that child lives. So a fork by Python waits until a
start that is under way has ended.
"""

from __future__ import annotations

import os
import threading
from typing import ContextManager

__all__ = ["no_fork"]

_lock = threading.RLock()  # reentrant: a signal handler may fork, or start a server


def no_fork() -> ContextManager[bool]:
    """While this is entered, no other thread forks."""
    return _lock


if hasattr(os, "register_at_fork"):
    # held by the thread that forks, and that thread is the one that goes on in the child
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_lock.release)
