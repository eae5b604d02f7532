"""The names under which tools are shown to a model, and the way back.

A model's API takes names of at most 64 characters of ``[A-Za-z0-9_-]``, in one flat space; servers choose theirs
as they like. :func:`exposed_name` depends on the two names alone, so it is the same in every run and in any
order of connecting.
"""

from __future__ import annotations

import hashlib
import re
from typing import AbstractSet, Dict, Iterable, List, NamedTuple, Set, Tuple

__all__ = ["MAX_NAME", "RefusedName", "ToolKey", "ToolNames", "exposed_name"]

#: The longest name that the model APIs take, in characters.
MAX_NAME = 64

_PREFIX = "mcp__"
_SEPARATOR = "__"
_DIGITS = 8
#: What is left for the two parts of a name with a hash.
_PARTS = MAX_NAME - len(_PREFIX) - len(_SEPARATOR) - 1 - _DIGITS
#: Of these, what a long server name keeps beside a long tool name.
_SERVER_PART = 20

_FOREIGN = re.compile(r"[^A-Za-z0-9_-]+")
_LIKE_HASHED = re.compile(r"_[0-9a-f]{%d}$" % _DIGITS)


class ToolKey(NamedTuple):
    """A tool by the names that config and server use."""

    server: str
    tool: str


class RefusedName(NamedTuple):
    """A tool that gets no name, and why."""

    key: ToolKey
    name: str
    reason: str


def exposed_name(server: str, tool: str) -> str:
    """``mcp__<server>__<tool>`` where that is valid and can be read in one way only, else with a hash at its end.

    The hash is an underscore and the first 8 hex digits of the SHA-256 of server, NUL and tool. It is added when
    a part had to be altered or shortened, when the boundary between the parts could be read at another place,
    and when the plain name looks as if it had a hash: so a plain name never equals another tool's.
    """
    plain = _PREFIX + server + _SEPARATOR + tool
    if len(plain) <= MAX_NAME and not _FOREIGN.search(plain) and not _ambiguous(server, tool, plain):
        return plain
    # The other end may have sent lone surrogates; they must not stop the tools of everybody else.
    key = ("%s\0%s" % (server, tool)).encode("utf-8", "surrogatepass")
    server, tool = _FOREIGN.sub("_", server), _FOREIGN.sub("_", tool)
    server = server[: max(_SERVER_PART, _PARTS - len(tool))]
    tool = tool[: _PARTS - len(server)]
    return _PREFIX + server + _SEPARATOR + tool + "_" + hashlib.sha256(key).hexdigest()[:_DIGITS]


def _ambiguous(server: str, tool: str, plain: str) -> bool:
    return (
        not server
        or not tool
        or _SEPARATOR in server
        or _SEPARATOR in tool
        or server.endswith("_")  # mcp__a___b is server "a_" and tool "b", or server "a" and tool "_b"
        or tool.startswith("_")
        or _LIKE_HASHED.search(plain) is not None
    )


class ToolNames:
    """The table of exposed names for a whole set of tools.

    It is built of all tools at once, so that what is refused does not depend on who came first: a tool that its
    server lists twice keeps its first place, a reserved name is refused, and of two tools that share a name (their
    hashes collide, which takes intent) neither gets it.

    :ivar refused: the tools that got no name, with the reason
    """

    def __init__(self, tools: Iterable[Tuple[str, str]], *, reserved: AbstractSet[str] = frozenset()) -> None:
        self.refused: List[RefusedName] = []
        self._keys: Dict[str, ToolKey] = {}
        self._names: Dict[ToolKey, str] = {}
        contested: Set[str] = set()
        for server, tool in tools:
            key = ToolKey(server, tool)
            name = exposed_name(server, tool)
            if key in self._names:
                self._refuse(key, name, "the server lists a tool of this name twice")
            elif name in reserved:
                self._refuse(key, name, "the name %s is reserved by the host" % name)
            else:
                self._names[key] = name
                if self._keys.setdefault(name, key) != key:
                    contested.add(name)
        for key, name in list(self._names.items()):
            if name in contested:
                self._keys.pop(name, None)
                del self._names[key]
                self._refuse(key, name, "another tool has the same name %s for the model" % name)

    def _refuse(self, key: ToolKey, name: str, reason: str) -> None:
        self.refused.append(RefusedName(key, name, reason))

    def key_of(self, name: str) -> ToolKey:
        """The tool behind an exposed name.

        :raises KeyError: no tool has this name
        """
        return self._keys[name]

    def name_of(self, server: str, tool: str) -> str:
        """The exposed name of a tool.

        :raises KeyError: the tool is not in the table, or was refused
        """
        return self._names[ToolKey(server, tool)]

    def __contains__(self, name: object) -> bool:
        return name in self._keys

    def __len__(self) -> int:
        return len(self._keys)

    def items(self) -> Iterable[Tuple[str, ToolKey]]:
        """Exposed names with the tools behind them, in the order in which they were given."""
        return self._keys.items()
