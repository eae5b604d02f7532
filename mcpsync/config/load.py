"""``load``: a config file, or the same as a mapping, to a :class:`~mcpsync.config.model.Config`.

Here the layout is recognised and the servers are taken apart; :mod:`mcpsync.config.server` reads one server.
"""

from __future__ import annotations

import os
import unicodedata
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Union

from mcpsync.config.diagnose import Report, Where, kind, nearest
from mcpsync.config.dialects import DIALECTS, Dialect, KeyPath
from mcpsync.config.model import Config, ServerConfig
from mcpsync.config.read import Document, read_file
from mcpsync.config.server import read_server
from mcpsync.errors import ConfigError

__all__ = ["load"]

_SERVER_MAP = 'a map of server names to servers, as {"web": {"command": "npx", "args": ["-y", "a-server"]}}'


def load(source: Union[str, os.PathLike[str], Mapping[str, Any]], *, environ: Mapping[str, str] = os.environ) -> Config:
    """Load the servers of a config file.

    The layout is recognised by the map that holds the servers: ``mcpServers``, ``tools.mcp_servers`` or
    ``servers``. A server that is wrong, or whose variables are not set, is kept with its ``error`` and does not
    keep the others from loading; unknown keys and the like are diagnostics.

    :param source: path of a JSON or YAML file (``~`` is the home folder), or the same content as a mapping
    :param environ: where the variables of ``${NAME}`` come from
    :raises ConfigError: the file cannot be read, its syntax is wrong, or it has no map of servers
    """
    if isinstance(source, Mapping):
        file: Optional[str] = None
        document = Document(source, ())
    else:
        file = os.path.expanduser(os.fspath(source))
        document = read_file(file)
    report = Report(file)
    if not isinstance(document.data, Mapping):
        raise ConfigError("must be a map with the key 'mcpServers', and is %s" % kind(document.data), file=file)

    root = _find_root(document.data, report)
    for where in document.repeated:
        if all(step == key for step, key in zip(where, root.path)):  # in it, or on the way to it
            report.add("warning", where, "stands here more than once; the last one counts")
    servers = _read_servers(root, _switched_on(document.data, root.dialect, report), environ, report)
    return Config(servers, tuple(report.diagnostics), file)


class _Root(NamedTuple):
    dialect: Dialect
    path: KeyPath
    servers: Any


_ABSENT = object()


def _at(data: Any, path: KeyPath) -> Any:
    for key in path:
        if not isinstance(data, Mapping) or key not in data:
            return _ABSENT
        data = data[key]
    return data


def _find_root(data: Mapping[str, Any], report: Report) -> _Root:
    found = [
        _Root(dialect, path, servers)
        for dialect in DIALECTS
        for path in dialect.roots
        for servers in (_at(data, path),)
        if servers is not _ABSENT
    ]
    if not found:
        raise _no_root(data, report.file)
    for other in found[1:]:
        report.add("warning", other.path, "is ignored: the servers are read from %s" % ".".join(found[0].path))
    return found[0]


def _no_root(data: Mapping[str, Any], file: Optional[str]) -> ConfigError:
    message = "no servers found: they are expected in %s" % " or ".join(
        ".".join(dialect.roots[0]) for dialect in DIALECTS
    )
    for parent in ((), ("tools",)):
        inside = _at(data, parent)
        known = [path[-1] for dialect in DIALECTS for path in dialect.roots if path[:-1] == parent]
        for key in inside if isinstance(inside, Mapping) else ():
            meant = nearest(str(key), known, {})
            if meant is not None:
                return ConfigError(
                    message, file=file, path=".".join((*parent, str(key))), nearest=".".join((*parent, meant))
                )
    return ConfigError(message, file=file)


def _switched_on(data: Mapping[str, Any], dialect: Dialect, report: Report) -> bool:
    if dialect.off_switch is None:
        return True
    switch = _at(data, dialect.off_switch)
    if switch is _ABSENT or switch is True:
        return True
    if switch is not False:
        raise ConfigError(
            "must be true or false, and is %s" % kind(switch), file=report.file, path=".".join(dialect.off_switch)
        )
    report.add("note", dialect.off_switch, "is false: every server is disabled")
    return False


def _read_servers(
    root: _Root, switched_on: bool, environ: Mapping[str, str], report: Report
) -> Dict[str, ServerConfig]:
    if root.servers is None:
        report.add("warning", root.path, "is empty: there are no servers")
        return {}
    if not isinstance(root.servers, Mapping):
        raise ConfigError(
            "must be %s, and is %s" % (_SERVER_MAP, kind(root.servers)), file=report.file, path=".".join(root.path)
        )
    servers: Dict[str, ServerConfig] = {}
    for name, body in root.servers.items():
        where: Where = (*root.path, name if isinstance(name, str) else str(name))
        if not isinstance(name, str):
            report.add("error", where, "a server's name must be a string: put it in quotes")
            continue
        problem = _name_problem(name)
        if problem:
            error = report.add("error", where, problem, server=name).as_error()
            servers[name] = ServerConfig(name, enabled=False, error=error)
            continue
        servers[name] = read_server(name, body, where, root.dialect, switched_on, environ, report)
    return servers


def _name_problem(name: str) -> str:
    if not name.strip():
        return "a server's name must not be empty"
    # Controls, lone surrogates and line separators spoil logs, and terminals obey them.
    bad: List[str] = [char for char in name if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")]
    return "a server's name must not contain the character U+%04X" % ord(bad[0]) if bad else ""
