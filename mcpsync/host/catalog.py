"""The tools of all servers of a host, as one table that is replaced whole.

Whoever reads takes the table as it stands and needs no lock. A server's tools are fetched first, by
:mod:`mcpsync.host.member`, and put here when all of them are there.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from threading import RLock
from typing import AbstractSet, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

from mcpsync.host.names import ToolKey, ToolNames
from mcpsync.types import Tool

__all__ = ["Catalog", "HostTool", "Table"]

_NEAR = 3


@dataclass(frozen=True)
class HostTool:
    """A tool of one of the servers.

    :ivar name: for the model, unique in the host
    :ivar server: the server's name in the config
    :ivar tool: its own name there
    :ivar ready: it can be called now: its server is connected and lists it
    :ivar definition: all that the server says of it
    """

    name: str
    server: str
    tool: str
    ready: bool
    definition: Tool


class Table:
    """The tools at one moment. Immutable.

    :param tools: of each server, in the order of the config
    :param reserved: names that no tool may get
    :ivar names: the names for the model, and the way back
    """

    def __init__(self, tools: Mapping[str, Sequence[Tool]], reserved: AbstractSet[str]) -> None:
        self.names = ToolNames(
            [(server, tool.name) for server, listed in tools.items() for tool in listed], reserved=reserved
        )
        self._definitions: Dict[ToolKey, Tool] = {}
        for server, listed in tools.items():
            for tool in listed:
                self._definitions.setdefault(ToolKey(server, tool.name), tool)

    def find(self, name: str) -> Optional[ToolKey]:
        """The tool that a model calls by this name."""
        return self.names.key_of(name) if name in self.names else None

    def nearest(self, name: str) -> List[str]:
        """The names that may have been meant: those of tools that are called so by their servers first."""
        own = [exposed for exposed, key in self.names.items() if key.tool == name]
        alike = difflib.get_close_matches(name, [exposed for exposed, _ in self.names.items()], _NEAR)
        return list(dict.fromkeys(own + alike))[:_NEAR]

    def rows(self, ready: Mapping[str, bool]) -> List[HostTool]:
        """All tools, in the order of the config and of their servers.

        :param ready: by server
        """
        return [
            HostTool(name, key.server, key.tool, ready[key.server], self._definitions[key])
            for name, key in self.names.items()
        ]

    def count(self, server: str) -> int:
        """How many tools of this server have a name."""
        return sum(key.server == server for _, key in self.names.items())

    def refused(self, server: str) -> Tuple[str, ...]:
        """The tools of this server that got no name, each with the reason."""
        return tuple("%s: %s" % (row.key.tool, row.reason) for row in self.names.refused if row.key.server == server)


class Catalog:
    """The current table, and a number that grows with each change of it.

    :param servers: their names, in the order of the config
    :param reserved: names that no tool may get
    :param changed: called after each change, on the thread that made it and without a lock; must be quick
    :ivar table: the tools there are
    :ivar revision: grows when tools come, go or change, and when a server becomes ready or stops being so
    """

    def __init__(self, servers: Sequence[str], reserved: AbstractSet[str], changed: Callable[[], None]) -> None:
        self._reserved = reserved
        self._changed = changed
        self._lock = RLock()  # guards what is written here; reentrant, as a finalizer may call a tool at any moment
        self._tools: Dict[str, Tuple[Tool, ...]] = dict.fromkeys(servers, ())
        self._ready = dict.fromkeys(servers, False)
        self.table = Table(self._tools, reserved)
        self.revision = 0

    def update(self, server: str, is_ready: Callable[[], bool], tools: Optional[Sequence[Tool]] = None) -> None:
        """Take in how a server is now.

        :param is_ready: asked under the lock, so that of two updates at once the later one has the later answer
        :param tools: all its tools; None: as before
        """
        with self._lock:
            ready = is_ready()
            changed = ready != self._ready[server]
            self._ready[server] = ready
            if tools is not None and tuple(tools) != self._tools[server]:
                self._tools[server] = tuple(tools)
                self.table = Table(self._tools, self._reserved)
                changed = True
            if changed:
                self.revision += 1
        if changed:
            self._changed()

    def after_fork(self) -> None:
        """In a forked child: the lock may have been held by a thread that is no more."""
        self._lock = RLock()
