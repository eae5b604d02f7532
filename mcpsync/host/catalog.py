"""The tools of all servers of a host, as one table that is replaced whole.

Whoever reads takes the table as it stands and needs no lock. A server's tools are fetched first, by
:mod:`mcpsync.host.member`, and put here when all of them are there: as a *shelf*, which is made once and shared by
every table until that server's tools change, so that a change of one server costs little with any number of others.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from itertools import islice
from threading import RLock
from types import MappingProxyType
from typing import Any, Callable, Collection, Dict, FrozenSet, Iterator, List, Mapping, Optional, Sequence, Set, Tuple

from mcpsync.host.names import RefusedName, ToolKey, ToolNames, exposed_name
from mcpsync.types import Tool

__all__ = ["Catalog", "HostTool", "Shelf", "Table"]

_NEAR = 3
_COMPARED = 300
"""Names that a wrong one is compared with at most: each comparison costs as much as a thousand look-ups."""


@dataclass(frozen=True)
class HostTool:
    """A tool of one of the servers, or one of the host's own.

    :ivar name: for the model, unique in the host
    :ivar server: the server's name in the config; empty for a tool of the host
    :ivar tool: its own name there
    :ivar ready: it can be called now: its server is connected and lists it
    :ivar definition: all that the server says of it, its annotations and title among that
    :ivar risk: ``read_only``, ``write``, ``exec`` or ``dangerous``: the last two need approval
    """

    name: str
    server: str
    tool: str
    ready: bool
    definition: Tool
    risk: str = "read_only"


class Shelf:
    """The tools of one server. Immutable, but for what is derived from it once.

    :param server: its name
    :param tools: in the server's order
    :param reserved: names that none of them may get
    :param refused: names of other tools of this server, each with what speaks against it
    :param risks: the levels of the tools, by name
    :ivar names: the names for the model, and the way back
    :ivar derived: what others keep here for as long as these tools are the server's, as their exported forms
    """

    def __init__(
        self,
        server: str,
        tools: Sequence[Tool],
        reserved: Collection[str],
        refused: Sequence[Tuple[str, str]] = (),
        risks: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.server = server
        self.refused = tuple(refused)
        self.risks = risks
        self.tools = tuple(tools)
        self.names = ToolNames([(server, tool.name) for tool in tools], reserved=frozenset(reserved))
        self.definitions: Dict[str, Tool] = {}
        for tool in tools:
            self.definitions.setdefault(tool.name, tool)
        self.derived: Dict[Any, Any] = {}


class Table:
    """The tools at one moment. Immutable.

    :param shelves: of each server, in the order of the config
    """

    def __init__(self, shelves: Mapping[str, Shelf]) -> None:
        self._shelves = dict(shelves)
        self._keys: Dict[str, ToolKey] = {}
        for shelf in shelves.values():
            self._keys.update(shelf.names.items())
        self._contested: FrozenSet[str] = frozenset()
        if len(self._keys) != sum(len(shelf.names) for shelf in shelves.values()):
            self._contested = _on_several(shelves)
            for name in self._contested:
                del self._keys[name]
        self._by_tool: Optional[Dict[str, List[str]]] = None

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, name: str) -> Optional[ToolKey]:
        """The tool that a model calls by this name."""
        return self._keys.get(name)

    def definition(self, key: ToolKey) -> Tool:
        """What the server says of a tool of the table."""
        return self._shelves[key.server].definitions[key.tool]

    def nearest(self, name: str) -> List[str]:
        """The names that may have been meant: those of tools that are called so by their servers first."""
        own = self._names_by_tool().get(name, [])[:_NEAR]
        alike = difflib.get_close_matches(name, list(islice(self._candidates(name), _COMPARED)), _NEAR)
        return list(dict.fromkeys(own + alike))[:_NEAR]

    def _names_by_tool(self) -> Dict[str, List[str]]:
        if self._by_tool is None:
            found: Dict[str, List[str]] = {}
            for exposed, key in self._keys.items():
                found.setdefault(key.tool, []).append(exposed)
            self._by_tool = found
        return self._by_tool

    def _candidates(self, name: str) -> Iterator[str]:
        """Names of the servers that the wrong one seems to name, then all."""
        servers = [server for server in self._shelves if server and server in name]
        for server in sorted(servers, key=len, reverse=True):
            yield from (exposed for exposed, _ in self._shelves[server].names.items() if exposed in self._keys)
        yield from self._keys

    def rows(self, ready: Mapping[str, bool]) -> List[HostTool]:
        """All tools, in the order of the config and of their servers.

        :param ready: by server; one that is not in it is not ready
        """
        return [
            HostTool(
                name,
                key.server,
                key.tool,
                ready.get(key.server, False),
                shelf.definitions[key.tool],
                shelf.risks.get(key.tool, "exec"),
            )
            for shelf in self._shelves.values()
            for name, key in shelf.names.items()
            if name not in self._contested
        ]

    def shelves(self) -> List[Tuple[Shelf, FrozenSet[str]]]:
        """The shelves in order, each with those of its names that are not in this table."""
        return [(shelf, self._contested) for shelf in self._shelves.values()]

    def count(self, server: str) -> int:
        """How many tools of this server have a name."""
        shelf = self._shelves.get(server)
        if shelf is None:
            return 0
        return len(shelf.names) - sum(name in self._contested for name, _ in shelf.names.items())

    def refused(self, server: str) -> Tuple[str, ...]:
        """The tools of this server that are not used, each with the reason."""
        shelf = self._shelves.get(server)
        if shelf is None:
            return ()
        contested = [
            RefusedName(key, name, "another tool has the same name %s for the model" % name)
            for name, key in shelf.names.items()
            if name in self._contested
        ]
        unnamed = ((row.key.tool, row.reason) for row in (*shelf.names.refused, *contested))
        return tuple("%s: %s" % row for row in (*shelf.refused, *unnamed))

    def refusal(self, name: str) -> Optional[str]:
        """Why there is no tool of this name, though a server lists one; None if none does.

        :param name: the one that the model would see
        """
        for shelf in self._shelves.values():
            for tool, reason in shelf.refused:
                if exposed_name(shelf.server, tool) == name:
                    return reason
        return None


def _on_several(shelves: Mapping[str, Shelf]) -> FrozenSet[str]:
    """Names that tools of several servers would have: their hashes collide, which takes intent; none gets it."""
    seen: Set[str] = set()
    several: Set[str] = set()
    for shelf in shelves.values():
        names = {name for name, _ in shelf.names.items()}
        several |= seen & names
        seen |= names
    return frozenset(several)


class Catalog:
    """The current table, and a number that grows with each change of it.

    :param reserved: gives the names that no tool of a server may get, by the server's name
    :param changed: called after each change, on the thread that made it and without a lock; must be quick
    :ivar revision: grows when tools come, go or change, and when a server becomes ready or stops being so
    """

    def __init__(self, reserved: Callable[[str], Collection[str]], changed: Callable[[], None]) -> None:
        self._reserved = reserved
        self._changed = changed
        self._lock = RLock()  # guards what is written here; reentrant, as a finalizer may call a tool at any moment
        self._shelves: Dict[str, Shelf] = {}
        self._ready: Dict[str, bool] = {}
        self._table: Optional[Table] = None
        self.revision = 0

    @property
    def table(self) -> Table:
        """The tools there are. Made when it is asked for: many servers that come at once need no table each."""
        table = self._table
        if table is None:
            with self._lock:
                table = self._table
                if table is None:
                    table = self._table = Table(self._shelves)
        return table

    def arrange(self, servers: Sequence[str], anew: Collection[str] = ()) -> bool:
        """Have these servers, in this order. May be called under a lock: it tells nobody.

        :param anew: of these, the ones that begin without tools, whatever they had
        :returns: whether the table changed: then :meth:`announce` it
        """
        with self._lock:
            before = {name: shelf for name, shelf in self._shelves.items() if shelf.tools}
            kept = {name: self._shelves[name] for name in servers if name in self._shelves and name not in anew}
            self._shelves = {name: kept.get(name) or Shelf(name, (), ()) for name in servers}
            self._ready = {name: self._ready.get(name, False) and name not in anew for name in servers}
            after = {name: shelf for name, shelf in self._shelves.items() if shelf.tools}
            changed = list(before.items()) != list(after.items())
            self._table = None
            if changed:
                self.revision += 1
        return changed

    def announce(self) -> None:
        """Tell of the newest revision."""
        self._changed()

    def update(
        self,
        server: str,
        is_ready: Callable[[], Optional[bool]],
        tools: Optional[Sequence[Tool]] = None,
        refused: Sequence[Tuple[str, str]] = (),
        risks: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Take in how a server is now.

        :param is_ready: asked under the lock, so that of two updates at once the later one has the later answer; None:
            whoever tells has nothing to say of this server any more
        :param tools: all its tools; None: as before
        :param refused: with ``tools``: those that are not used, each with the reason
        :param risks: with ``tools``: their levels, by name
        """
        with self._lock:
            ready = is_ready()
            if ready is None or server not in self._shelves:
                return
            changed = ready != self._ready[server]
            self._ready[server] = ready
            shelf = self._shelves[server]
            if tools is not None and (tuple(tools), tuple(refused)) != (shelf.tools, shelf.refused):
                self._shelves[server] = Shelf(server, tools, self._reserved(server), refused, risks)
                self._table = None
                changed = True
            if changed:
                self.revision += 1
        if changed:
            self._changed()

    def after_fork(self) -> None:
        """In a forked child: the lock may have been held by a thread that is no more."""
        self._lock = RLock()
