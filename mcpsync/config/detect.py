"""Which layout a file has, and where in it the servers stand: by its path first, then by its root keys."""

from __future__ import annotations

import os
from typing import Any, List, Mapping, NamedTuple, Optional, Tuple

from mcpsync.config.diagnose import Report, Where, nearest
from mcpsync.config.dialects import Dialect, KeyPath
from mcpsync.config.programs import BARE, BY_NAME, DIALECTS
from mcpsync.errors import ConfigError

__all__ = ["ABSENT", "Root", "at", "by_path", "find_root", "forced"]

ABSENT = object()

_REACHES = ("command", "cmd", "url", "uri", "serverUrl", "httpUrl")
#: Roots whose name many files have for other things.
_DOUBTFUL: Tuple[KeyPath, ...] = (("extensions",), ("mcp",), ("mcp", "servers"))
_EXPECTED = "mcpServers or tools.mcp_servers or servers or context_servers or mcp_servers or extensions or mcp"


class Root(NamedTuple):
    """Where the servers stand.

    :ivar dialect: how they are written
    :ivar path: the keys that lead there
    :ivar servers: what stands there
    """

    dialect: Dialect
    path: KeyPath
    servers: Any


def at(data: Any, path: Where) -> Any:
    """The value at a place, or :data:`ABSENT`."""
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return ABSENT
        data = data[key]
    return data


def forced(name: str) -> Dialect:
    """The layout of that name.

    :raises ConfigError: there is none
    """
    if name not in BY_NAME:
        raise ConfigError(
            "there is no layout %r: it is one of %s" % (name, ", ".join(BY_NAME)), nearest=nearest(name, BY_NAME, {})
        )
    return BY_NAME[name]


def by_path(file: Optional[str]) -> Optional[Dialect]:
    """The layout that a path tells."""
    if file is None:
        return None
    path = os.path.abspath(file).replace("\\", "/").lower()
    if "/.continue/mcpservers/" in path and path.endswith((".yaml", ".yml")):
        return BY_NAME["continue"]
    return next((dialect for dialect in DIALECTS if any(path.endswith(end) for end in dialect.files)), None)


def find_root(data: Mapping[str, Any], dialect: Optional[Dialect], is_yaml: bool, report: Report) -> Root:
    """Where the servers of a file stand.

    :param dialect: the layout, if it is known already
    :raises ConfigError: there are none
    """
    if dialect is not None:
        for path in dialect.roots:
            servers = at(data, path)
            if servers is not ABSENT and (path or _is_bare(data)):
                return Root(dialect, path, servers)
        if dialect.projects is not None and at(data, dialect.projects) is not ABSENT:
            return Root(dialect, dialect.roots[0], {})
    found = _by_roots(data, is_yaml)
    if not found:
        if _is_bare(data):
            return Root(BARE, (), data)
        raise _no_root(data, report)
    for other in found[1:]:
        report.add("warning", other.path, "is ignored: the servers are read from %s" % ".".join(found[0].path))
    return found[0]


def _by_roots(data: Mapping[str, Any], is_yaml: bool) -> List[Root]:
    found: List[Root] = []
    seen = set()
    for dialect in DIALECTS:
        for path in dialect.roots:
            servers = at(data, path)
            if servers is ABSENT or not path or path in seen:
                continue
            if path in _DOUBTFUL and not _has_servers(servers):
                continue
            if path[:-1] in seen:  # the map around it is one of servers itself
                continue
            seen.add(path)
            found.append(Root(_closer(dialect, path, data, is_yaml), path, servers))
    return found


def _closer(dialect: Dialect, path: KeyPath, data: Mapping[str, Any], is_yaml: bool) -> Dialect:
    """The layout, where others have the same root."""
    if path == ("servers",) and "inputs" in data:
        return BY_NAME["vscode"]
    if path == ("mcpServers",) and isinstance(data["mcpServers"], list) and is_yaml:
        return BY_NAME["continue"]
    return dialect


def _has_servers(servers: Any) -> bool:
    return isinstance(servers, Mapping) and any(
        isinstance(entry, Mapping) and ("type" in entry or any(key in entry for key in _REACHES))
        for entry in servers.values()
    )


def _is_bare(data: Mapping[str, Any]) -> bool:
    return bool(data) and all(
        isinstance(entry, Mapping) and any(key in entry for key in _REACHES) for entry in data.values()
    )


def _no_root(data: Mapping[str, Any], report: Report) -> ConfigError:
    message = "no servers found: they are expected in %s" % _EXPECTED
    for parent in ((), ("tools",)):
        inside = at(data, parent)
        roots = [path for each in DIALECTS for path in each.roots if path and path[:-1] == parent]
        known = list(dict.fromkeys(path[-1] for path in roots))
        for key in inside if isinstance(inside, Mapping) else ():
            meant = nearest(str(key), known, {})
            if meant is not None and meant not in ("mcp", "extensions"):
                return report.failure((*parent, str(key)), message, ".".join((*parent, meant)))
    return ConfigError(message, file=report.file)
