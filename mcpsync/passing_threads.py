"""No fork of this process while a thread of ours is on its way out.

A thread that has used TLS goes through OpenSSL once more when it ends, long after Python's ``join``, and holds one of
OpenSSL's locks there. A child forked at that moment has the lock taken for ever: its first TLS connection on a new
thread would hang. So a fork by Python waits for such threads, a moment at most.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import deque
from contextlib import suppress
from typing import Deque

__all__ = ["FORK_SECONDS", "forks_wait_for_this_thread"]

FORK_SECONDS = 0.1
"""How long a fork waits at most: a thread that still connects may be busy for much longer."""

_LOOK_SECONDS = 0.0002
_MOST = 64

_passing: Deque[threading.Thread] = deque(maxlen=_MOST)  # each step on it is atomic


def forks_wait_for_this_thread() -> None:
    """From now on a fork waits until this thread has ended. For one that is short-lived at its start, for others at
    their end.
    """
    _passing.append(threading.current_thread())


def _wait() -> None:
    until = time.monotonic() + FORK_SECONDS
    while _passing:
        for thread in _passing.copy():
            if not _is_there(thread):
                with suppress(ValueError):  # another thread forks too
                    _passing.remove(thread)
        own = threading.get_ident()  # a callback may fork on one of them
        if all(thread.ident == own for thread in _passing.copy()) or time.monotonic() > until:
            return
        time.sleep(_LOOK_SECONDS)


def _is_there(thread: threading.Thread) -> bool:
    # The system's thread outlives Python's; only Linux shows it.
    return thread.is_alive() or (sys.platform == "linux" and os.path.exists("/proc/self/task/%s" % thread.native_id))


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_wait, after_in_child=_passing.clear)
