"""Connections at the ends of a process's life: fork, interpreter exit, and clients that were forgotten.

Also the refusal of processes whose threads cannot run beside a blocking call.
"""

from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from typing import Any, Callable, List, Protocol

from mcpsync.connection import future, threads
from mcpsync.core import jsonrpc
from mcpsync.errors import ConnectFailed

__all__ = [
    "Channel",
    "Mortal",
    "after_unseen_fork",
    "forks_unseen",
    "register",
    "register_channel",
    "renew_in_child",
    "require_threads",
    "unregister",
    "unregister_channel",
]

EXIT_SECONDS = 3.0


class Channel(Protocol):
    """A link, as long as it holds a server or descriptors: from before it opens until it is closed."""

    def after_fork(self) -> None:
        """In a forked child: let go of the parent's descriptors, and fail the calls that cannot be answered there."""

    def at_exit(self, seconds: float) -> None:
        """At interpreter exit: end the server; calls in flight are left alone."""


class Mortal(Protocol):
    """What this module does to a connection."""

    def after_fork(self) -> None:
        """In a forked child: renew all locks, and begin anew at the next use."""

    def at_exit(self, seconds: float) -> None:
        """At interpreter exit: open nothing any more; quick. Links are ended after this, within so many seconds."""


_connections: weakref.WeakSet[Any] = weakref.WeakSet()
_channels: weakref.WeakSet[Any] = weakref.WeakSet()
_lock = threading.RLock()  # guards the sets
_renewals: List[Callable[[], None]] = [threads.after_fork, future.after_fork, jsonrpc.after_fork]
_pid = os.getpid()
_told_multiprocessing = False


def register(connection: Mortal) -> None:
    """From now on this connection is looked after."""
    with _lock:
        _connections.add(connection)


def unregister(connection: Mortal) -> None:
    """It is closed."""
    with _lock:
        _connections.discard(connection)


def register_channel(channel: Channel) -> None:
    """From now on this link is looked after."""
    _tell_multiprocessing()
    with _lock:
        _channels.add(channel)


def unregister_channel(channel: Channel) -> None:
    """It holds nothing any more."""
    with _lock:
        _channels.discard(channel)


def renew_in_child(function: Callable[[], None]) -> None:
    """Have a module renew its locks in every forked child."""
    _renewals.append(function)


def _tell_multiprocessing() -> None:
    """Its processes end without a look at ``atexit``, but they run finalizers of its own."""
    global _told_multiprocessing
    process = sys.modules.get("multiprocessing.process")
    if _told_multiprocessing or process is None or process.parent_process() is None:
        return
    _told_multiprocessing = True
    from multiprocessing.util import Finalize

    Finalize(None, _at_exit, exitpriority=0)


def _after_fork_in_child() -> None:
    global _lock, _pid, _told_multiprocessing
    _lock = threading.RLock()
    _pid = os.getpid()
    _told_multiprocessing = False
    for renew in _renewals:
        renew()
    channels, connections = list(_channels), list(_connections)
    _channels.clear()
    for channel in channels:
        channel.after_fork()
    for connection in connections:
        connection.after_fork()


def _at_exit() -> None:
    with _lock:
        connections: List[Mortal] = list(_connections)
    for connection in connections:
        connection.at_exit(EXIT_SECONDS)
    with _lock:
        channels: List[Channel] = list(_channels)
    enders = [
        threading.Thread(target=each.at_exit, args=(EXIT_SECONDS,), name="mcpsync-exit", daemon=True)
        for each in channels[1:]
    ]
    late: List[Channel] = channels[:1]
    for ender, channel in zip(enders, channels[1:]):
        try:
            ender.start()
        except RuntimeError:  # too late for threads: one after the other, then
            late.append(channel)
    for channel in late:
        channel.at_exit(EXIT_SECONDS)
    for ender in enders:
        if ender.ident is not None:
            ender.join(EXIT_SECONDS)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
atexit.register(_at_exit)


def forks_unseen() -> bool:
    """Whether this process may be forked by something that runs none of Python's hooks, as uWSGI does."""
    return "uwsgi" in sys.modules


def after_unseen_fork() -> None:
    """What the hook would have done, if it was not run."""
    if os.getpid() != _pid:
        with _lock:
            if os.getpid() != _pid:
                _after_fork_in_child()


def require_threads() -> None:
    """Refuse a process in which a reader thread would never run beside a blocking call.

    :raises ConnectFailed: and says what to do instead
    """
    gevent = sys.modules.get("gevent.monkey")
    if gevent is not None:
        _refuse_patched(
            "gevent",
            [name for name in ("threading", "queue", "select", "subprocess") if gevent.is_module_patched(name)],
            "monkey.patch_all(thread=False, queue=False, select=False, subprocess=False)",
        )
    eventlet = sys.modules.get("eventlet.patcher")
    if eventlet is not None:
        _refuse_patched(
            "eventlet",
            [name for name in ("thread", "os", "select", "subprocess") if eventlet.is_monkey_patched(name)],
            "eventlet.monkey_patch(thread=False, os=False, select=False, subprocess=False)",
        )
    uwsgi = sys.modules.get("uwsgi")
    if uwsgi is not None and not (uwsgi.opt.get("enable-threads") or uwsgi.opt.get("threads")):
        raise ConnectFailed("uWSGI runs without threads; start it with --enable-threads", permanent=True)


def _refuse_patched(package: str, modules: List[str], remedy: str) -> None:
    if modules:
        raise ConnectFailed(
            "%s has patched %s, so the threads of a connection and a blocking call would wait for each other for ever; "
            "patch with %s, or connect in a process that is not patched" % (package, ", ".join(modules), remedy),
            permanent=True,
        )
