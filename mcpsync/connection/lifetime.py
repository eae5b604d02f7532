"""Connections at the ends of a process's life: fork, interpreter exit, and clients that were forgotten.

Also the refusal of processes whose threads cannot run beside a blocking call.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from typing import Any, List, Protocol

from mcpsync.connection import opening
from mcpsync.errors import ConnectFailed

__all__ = ["Mortal", "register", "require_threads", "unregister"]

EXIT_SECONDS = 3.0


class Mortal(Protocol):
    """What this module does to a connection."""

    def after_fork(self) -> None:
        """In a forked child: let go of everything that belongs to the parent."""

    def at_exit(self, seconds: float) -> None:
        """At interpreter exit: end the server; calls in flight are left alone."""


_open: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.Lock()  # guards the set


def register(connection: Mortal) -> None:
    """From now on this connection is looked after."""
    with _lock:
        _open.add(connection)


def unregister(connection: Mortal) -> None:
    """It is closed."""
    with _lock:
        _open.discard(connection)


def _after_fork_in_child() -> None:
    global _lock
    _lock = threading.Lock()
    opening.after_fork()
    for connection in list(_open):
        connection.after_fork()


def _at_exit() -> None:
    with _lock:
        connections: List[Mortal] = list(_open)
    if len(connections) == 1:
        connections[0].at_exit(EXIT_SECONDS)
        return
    threads = []
    for connection in connections:
        thread = threading.Thread(target=connection.at_exit, args=(EXIT_SECONDS,), daemon=True)
        try:
            thread.start()
        except RuntimeError:  # too late for threads: one after the other, then
            connection.at_exit(EXIT_SECONDS)
        else:
            threads.append(thread)
    for thread in threads:
        thread.join(EXIT_SECONDS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)


def require_threads() -> None:
    """Refuse a process in which a reader thread would never run.

    :raises ConnectFailed: and says what to do instead
    """
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None and gevent.is_module_patched("threading"):
        raise ConnectFailed(
            "gevent has patched the threading module, so the reader of a connection would never run beside a "
            "blocking call; patch with monkey.patch_all(thread=False), or connect in a process that is not patched",
            permanent=True,
        )
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None and eventlet.is_monkey_patched("thread"):
        raise ConnectFailed(
            "eventlet has patched the thread module, so the reader of a connection would never run beside a "
            "blocking call; patch with eventlet.monkey_patch(thread=False), or use a process that is not patched",
            permanent=True,
        )
    uwsgi = sys.modules.get("uwsgi")
    if uwsgi is not None and not (uwsgi.opt.get("enable-threads") or uwsgi.opt.get("threads")):
        raise ConnectFailed("uWSGI runs without threads; start it with --enable-threads", permanent=True)
