"""Turns of the threads of a process that want a person to sign in at the same server: they are asked once."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Hashable

from mcpsync.auth.store import FileStore
from mcpsync.auth.vault import Vault

__all__ = ["Turn", "turn_for"]


class Turn:
    """What those have in common who want the same sign-in at the same time.

    :ivar lock: held by the one thread whose turn it is
    :ivar times: how often somebody has signed in
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.times = 0


_turns: weakref.WeakValueDictionary[Hashable, Turn] = weakref.WeakValueDictionary()
_lock = threading.RLock()  # guards the table


def turn_for(vault: Vault) -> Turn:
    """The turn for these credentials; the same for all who hold it."""
    store = vault.store
    where: Hashable = store.folder if isinstance(store, FileStore) else id(store)
    with _lock:
        key = (where, vault.key)
        turn = _turns.get(key)
        if turn is None:
            turn = _turns[key] = Turn()
        return turn


def _after_fork() -> None:
    global _lock
    _lock = threading.RLock()
    _turns.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
