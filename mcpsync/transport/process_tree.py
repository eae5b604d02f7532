"""The processes that a server started, remembered so that they can be ended after it.

A process is remembered with its start time and, where the system has them, with a handle (``pidfd``) that was opened
while the start time still matched. It is signalled through the handle, or after the start time was compared once
more: a stranger that was given the same process id meanwhile is never hit.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import time
from typing import Dict, Iterable, List, Optional, Set

from mcpsync.deadline import Deadline
from mcpsync.transport.process_table import (
    Identity,
    children_of,
    group_of,
    identity_of,
    look,
    look_together,
    offspring,
)

__all__ = ["Member", "ProcessTree", "open_handle"]

_log = logging.getLogger("mcpsync.transport")
_RECHECK = 0.02
"""Seconds between looks at a process that the system gives no handle for."""


def open_handle(pid: int) -> Optional[int]:
    """A descriptor that becomes readable when the process ends; None: this system has none."""
    opener = getattr(os, "pidfd_open", None)
    if opener is None:
        return None
    try:
        handle: int = opener(pid)
    except OSError:
        return None  # gone; or a kernel or a sandbox without it
    return handle


class Member:
    """One remembered process.

    :ivar handle: its pidfd, or None
    """

    def __init__(self, identity: Identity, handle: Optional[int] = None) -> None:
        self.identity = identity
        self.handle = handle

    @classmethod
    def of(cls, identity: Identity) -> Optional[Member]:
        """Take hold of a process; None: it is gone."""
        handle = open_handle(identity.pid)
        # Only now is it certain whom the handle leads to.
        if identity_of(identity.pid) != identity:
            if handle is not None:
                os.close(handle)
            return None
        return cls(identity, handle)

    def alive(self) -> bool:
        """Whether this very process still runs (a zombie does not)."""
        if self.handle is not None:
            # Surer than the table, where a process whose first thread has ended looks like a zombie.
            return not _readable([self.handle], 0)
        return identity_of(self.identity.pid) == self.identity

    def signal(self, number: int) -> None:
        """Send it a signal, if it is still itself."""
        try:
            if self.handle is not None:
                signal.pidfd_send_signal(self.handle, number)  # type: ignore[attr-defined,unused-ignore]
            elif self.alive():
                os.kill(self.identity.pid, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            _log.warning("process %d of a server may not be signalled: it runs as another user", self.identity.pid)

    def release(self) -> None:
        """Give the handle back."""
        if self.handle is not None:
            os.close(self.handle)
            self.handle = None


def _readable(handles: List[int], seconds: float) -> bool:
    poller = select.poll()
    for handle in handles:
        poller.register(handle, select.POLLIN)
    return bool(poller.poll(seconds * 1000))


class ProcessTree:
    """A server's descendants.

    :param root: process id of the server, which leads a process group of its own; not itself a member
    :param token: the server's token in the marker
    """

    def __init__(self, root: int, token: str) -> None:
        self._root = root
        self._token = token
        self._identity = identity_of(root)
        self._members: Dict[int, Member] = {}

    def __bool__(self) -> bool:
        return bool(self._members)

    def remember(self) -> None:
        """Note who descends from the server now. To be called while it lives: orphans have another parent."""
        unvisited = [self._root]
        while unvisited:
            children = children_of(unvisited.pop())
            if children is None:
                self._take(entry.identity for entry in offspring(self._known(), look(tokens=False)))
                return
            for pid in children:
                identity = identity_of(pid)
                if identity is not None and pid not in self._members:
                    self._take([identity])
                    unvisited.append(pid)

    def search(self, deadline: Deadline) -> None:
        """Find those too that have another parent by now: by group, by marker, by descent from a member."""
        entries = look_together(deadline)
        kin = offspring(self._known(), entries)
        # The id stays taken as long as its group has members; a new owner means that the group was empty.
        reused = any(entry.identity.pid == self._root and entry.identity != self._identity for entry in entries)
        group = None if reused else self._root
        kin += [entry for entry in entries if entry.group == group or self._token in entry.tokens]
        self._take(entry.identity for entry in kin if entry.identity.pid != self._root)

    def alive(self) -> List[Member]:
        """The members that still run; the others are forgotten."""
        living = {}
        for pid, member in self._members.items():
            if member.alive():
                living[pid] = member
            else:
                member.release()
        self._members = living
        return list(living.values())

    def signal(self, number: int, *, outside_group: Optional[int] = None) -> None:
        """Signal the members.

        :param outside_group: leave out those in this process group: the group was signalled as a whole
        """
        for member in self.alive():
            if outside_group is None or group_of(member.identity.pid) != outside_group:
                member.signal(number)

    def wait(self, deadline: Deadline) -> bool:
        """Wait until no member runs.

        :returns: False if the deadline came first
        """
        while True:
            living = self.alive()
            if not living:
                return True
            left = deadline.remaining()
            if left == 0:
                return False
            handles = [member.handle for member in living if member.handle is not None]
            if len(handles) < len(living):
                pause = _RECHECK if left is None else min(_RECHECK, left)
            else:
                pause = left if left is not None else _RECHECK
            if handles:
                _readable(handles, pause)
            else:
                time.sleep(pause)

    def release(self) -> None:
        """Forget all members."""
        for member in self._members.values():
            member.release()
        self._members.clear()

    def _known(self) -> Set[int]:
        return {self._root, *self._members}

    def _take(self, identities: Iterable[Identity]) -> None:
        for identity in identities:
            known = self._members.get(identity.pid)
            if known is not None and known.identity == identity:
                continue
            member = Member.of(identity)
            if member is not None:
                if known is not None:
                    known.release()
                self._members[identity.pid] = member
