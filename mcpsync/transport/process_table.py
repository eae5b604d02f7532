"""What the system tells of its processes: identity, parent, group, and our marker in their environment.

A process id alone names nobody for long: the system gives it to another process as soon as its owner is gone. An
:class:`Identity` adds the start time. Linux tells it in ``/proc``; elsewhere ``ps`` is asked, once per look.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from typing import Dict, FrozenSet, List, NamedTuple, Optional, Set

from mcpsync.deadline import Deadline

__all__ = ["MARKER", "Entry", "Identity", "children_of", "identity_of", "look", "look_together", "marked"]

MARKER = "MCPSYNC_SERVER"
"""The variable that marks a server and all it starts. Its value is a path of tokens: a server that is itself a
client of this library adds a token of its own for its servers."""

HAS_PROC = sys.platform.startswith("linux")
_MARKER_BYTES = b"\0" + MARKER.encode() + b"="
_PS_LIMIT = 5.0


class Identity(NamedTuple):
    """One process, not just its number.

    :ivar started: its start time, as the system writes it
    """

    pid: int
    started: str


class Entry(NamedTuple):
    """One living process.

    :ivar tokens: the tokens of its marker, if it could be read
    """

    identity: Identity
    parent: int
    group: int
    tokens: FrozenSet[str] = frozenset()


def marked(environ: Dict[str, str], token: str) -> None:
    """Put the marker for a new server into its variables."""
    outer = os.environ.get(MARKER)
    environ[MARKER] = "%s/%s" % (outer, token) if outer else token


def identity_of(pid: int) -> Optional[Identity]:
    """Who has this process id now; None: nobody who is alive (a zombie is not)."""
    entry = _entry(pid)
    return entry.identity if entry is not None else None


def group_of(pid: int) -> Optional[int]:
    """The process group of a process; None: it is gone."""
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def children_of(pid: int) -> Optional[List[int]]:
    """The process ids of the children of all threads of a process; None: this system has no quick way to tell."""
    if not HAS_PROC:
        return None
    found: List[int] = []
    try:
        threads = os.listdir("/proc/%d/task" % pid)
    except OSError:
        return found
    for thread in threads:
        try:
            with open("/proc/%d/task/%s/children" % (pid, thread), "rb") as file:
                found += map(int, file.read().split())
        except FileNotFoundError:
            if os.path.exists("/proc/%d/task/%s" % (pid, thread)):
                return None  # a kernel built without this file
        except OSError:
            continue  # the thread ended meanwhile
    return found


def look(*, tokens: bool) -> List[Entry]:
    """All processes that are alive now.

    :param tokens: read the markers too, where the system shows them
    """
    if not HAS_PROC:
        return _ask_ps()
    try:
        names = os.listdir("/proc")
    except OSError:
        return []  # this process has no descriptor left; a group can still be signalled as a whole
    entries = []
    for name in names:
        if name.isdigit():
            entry = _entry(int(name))
            if entry is not None:
                entries.append(entry._replace(tokens=_tokens(name)) if tokens else entry)
    return entries


def _entry(pid: int) -> Optional[Entry]:
    if not HAS_PROC:
        return next((entry for entry in _ask_ps(pid) if entry.identity.pid == pid), None)
    try:
        with open("/proc/%d/stat" % pid, "rb", buffering=0) as file:
            text = file.read(1024)
    except OSError:
        return None
    # The second field, the name, may hold blanks and parentheses; state is what follows the last of them.
    fields = text[text.rfind(b")") + 2 :].split()
    if len(fields) < 20 or fields[0] in (b"Z", b"X"):
        return None
    return Entry(Identity(pid, fields[19].decode()), int(fields[1]), int(fields[2]))


def _tokens(pid: str) -> FrozenSet[str]:
    try:
        with open("/proc/%s/environ" % pid, "rb", buffering=0) as file:
            variables = b"\0" + file.read()
    except OSError:
        return frozenset()  # another user's, or gone
    start = variables.find(_MARKER_BYTES)
    if start < 0:
        return frozenset()
    start += len(_MARKER_BYTES)
    value = variables[start : variables.find(b"\0", start)]
    return frozenset(value.decode("utf-8", "replace").split("/"))


def _ask_ps(pid: Optional[int] = None) -> List[Entry]:
    which = ["-p", str(pid)] if pid is not None else ["-ax"]
    try:
        answer = subprocess.run(
            ["ps", *which, "-o", "pid=,ppid=,pgid=,stat=,lstart="],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_PS_LIMIT,
            env={"PATH": "/bin:/usr/bin", "LC_ALL": "C", "TZ": "UTC"},
            check=False,
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [entry for entry in map(_ps_entry, answer.decode("ascii", "replace").splitlines()) if entry is not None]


def _ps_entry(line: str) -> Optional[Entry]:
    fields = line.split(None, 4)
    if len(fields) < 5 or not "".join(fields[:3]).isdigit() or fields[3].startswith("Z"):
        return None
    return Entry(Identity(int(fields[0]), fields[4].strip()), int(fields[1]), int(fields[2]))


class _Together:
    """Lets closes that happen together share one look: a look serves all who asked before it began."""

    def __init__(self) -> None:
        self.changed = threading.Condition()  # guards all below
        self.looking = False
        self.begun = 0
        self.done = 0
        self.entries: List[Entry] = []

    def look(self, deadline: Deadline) -> List[Entry]:
        with self.changed:
            wanted = self.begun + 1
            while self.looking and self.done < wanted:
                if not self.changed.wait(deadline.remaining()):
                    break
            if self.done >= wanted:
                return self.entries
            self.looking = True
            self.begun += 1
            mine = self.begun
        entries: List[Entry] = []
        try:
            entries = look(tokens=True)
        finally:
            with self.changed:
                self.looking = False
                if mine > self.done:
                    self.done, self.entries = mine, entries
                self.changed.notify_all()
        return entries


_together = _Together()


def look_together(deadline: Deadline) -> List[Entry]:
    """All processes with their markers, as they are now or were seen since this was called."""
    return _together.look(deadline)


def _renew_after_fork() -> None:
    global _together
    _together = _Together()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_after_fork)


def offspring(roots: Set[int], entries: List[Entry]) -> List[Entry]:
    """Those of the entries that descend from one of the process ids."""
    below: Dict[int, List[Entry]] = {}
    for entry in entries:
        below.setdefault(entry.parent, []).append(entry)
    found: List[Entry] = []
    seen = set(roots)
    unvisited = list(roots)
    while unvisited:
        for entry in below.get(unvisited.pop(), ()):
            if entry.identity.pid not in seen:
                seen.add(entry.identity.pid)
                found.append(entry)
                unvisited.append(entry.identity.pid)
    return found
