"""``load``: a config file, or the same as a mapping, to a :class:`~mcpsync.config.model.Config`.

Here the layout is recognised and the servers are taken apart; :mod:`mcpsync.config.server` reads one server.
"""

from __future__ import annotations

import os
import re
import unicodedata
from dataclasses import replace
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from mcpsync.config.detect import ABSENT, Root, at, by_path, find_root, forced
from mcpsync.config.diagnose import Report, Where, kind
from mcpsync.config.dialects import Dialect
from mcpsync.config.expand import Values
from mcpsync.config.inputs import Asking, Input
from mcpsync.config.model import Config, ServerConfig
from mcpsync.config.policy import read_policy
from mcpsync.config.programs import PORTABLE
from mcpsync.config.projects import workspace_of
from mcpsync.config.read import Document, read_file
from mcpsync.config.registry import entry_of, is_server_json
from mcpsync.config.server import read_server
from mcpsync.errors import ConfigError

__all__ = ["load", "load_to_copy"]

_SERVER_MAP = 'a map of server names to servers, as {"web": {"command": "npx", "args": ["-y", "a-server"]}}'
_MISSING = ("error", "empty", "keep")
_STRICT_NAME = re.compile(r"[A-Za-z0-9._-]+")
_NEEDS_APPROVAL = (
    "this file was found in a project and is not approved, or has changed since: look at it and approve it, or name it"
)


def load(
    source: Union[str, os.PathLike[str], Mapping[str, Any]],
    *,
    environ: Mapping[str, str] = os.environ,
    dialect: Optional[str] = None,
    workspace: Optional[str] = None,
    inputs: Optional[Callable[[Input], Optional[str]]] = None,
    on_missing: Optional[str] = None,
    approved: Optional[Callable[[str, str], bool]] = None,
) -> Config:
    """Load the servers of a config file.

    The layout is recognised by the path, then by the map that holds the servers, as ``mcpServers``. A server that is
    wrong, or whose variables are not set, is kept with its ``error`` and does not keep the others from loading;
    unknown keys and the like are diagnostics.

    :param source: path of a JSON, YAML or TOML file (``~`` is the home folder), or the same content as a mapping
    :param environ: where the variables of ``${NAME}`` come from
    :param dialect: the name of the layout, where it is not to be recognised; see ``docs/config.md``
    :param workspace: the project's folder, for ``${workspaceFolder}``; by default the one that the file stands in
    :param inputs: gives the value of an ``${input:id}``, None for none; it is called once for each that is used
    :param on_missing: what becomes of a variable that is not set: ``error``, ``empty`` or ``keep``; by default what
        the layout says
    :param approved: for a file that was found, not named: whether it may be used, by path and SHA-256, as
        :class:`~mcpsync.config.Approvals`. Servers of one that may not are not started, and nothing is looked up
    :raises ConfigError: the file cannot be read, its syntax is wrong, or it has no map of servers
    """
    if on_missing not in (None, *_MISSING):
        raise ConfigError("on_missing is one of %s" % ", ".join(_MISSING))
    return _load(source, Values(environ, workspace=workspace, on_missing=on_missing or ""), dialect, inputs, approved)


def load_to_copy(source: Union[str, os.PathLike[str]], *, dialect: Optional[str] = None) -> Config:
    """The same, with variables left as they are, in the form ``${NAME}`` whatever that of the layout is.

    :raises ConfigError: as :func:`load`
    """
    return _load(source, Values({}, on_missing="error", symbolic=True), dialect, None, None)


def _load(
    source: Union[str, os.PathLike[str], Mapping[str, Any]],
    given: Values,
    dialect: Optional[str],
    inputs: Optional[Callable[[Input], Optional[str]]],
    approved: Optional[Callable[[str, str], bool]],
) -> Config:
    if isinstance(source, Mapping):
        file: Optional[str] = None
        document = Document(source)
    else:
        file = os.path.expanduser(os.fspath(source))
        document = read_file(file)
    report = Report(file, document.line)
    if not isinstance(document.data, Mapping):
        raise report.failure((), "must be a map with the key 'mcpServers', and is %s" % kind(document.data))

    root = _root(document.data, file, None if dialect is None else forced(dialect), report)
    for where in document.repeated:
        if all(step == key for step, key in zip(where, root.path)):  # in it, or on the way to it
            report.add("warning", where, "stands here more than once; the last one counts")
    may = file is None or approved is None or approved(file, document.digest)
    asking = Asking(inputs)
    asking.read(document.data.get("inputs") if "input" in root.dialect.forms else None, report)
    values = replace(
        given,
        ask=asking,
        workspace=given.workspace if given.workspace is not None else workspace_of(file),
        folder=os.path.dirname(os.path.abspath(file)) if file is not None else os.getcwd(),
        on_missing=given.on_missing or root.dialect.on_missing,
    )
    switched_on = _switched_on(document.data, root.dialect, report) and may
    servers = _read_servers(document.data, root, switched_on, values, report)
    servers = _restricted(document.data, root.dialect, servers, report)
    if not may:
        error = report.add("error", (), _NEEDS_APPROVAL).as_error()
        servers = {name: replace(server, enabled=False, error=error) for name, server in servers.items()}
    policy = read_policy(document.data, root.dialect, report)
    return Config(
        servers,
        tuple(report.diagnostics),
        file,
        policy=policy,
        dialect=root.dialect.name,
        digest=document.digest,
        approved=may,
    )


def _root(data: Mapping[str, Any], file: Optional[str], dialect: Optional[Dialect], report: Report) -> Root:
    if dialect is None and is_server_json(data):
        name, entry = entry_of(data)
        if entry is None:
            raise report.failure((), "describes a server of which no package can be run and no remote be reached")
        return Root(PORTABLE, (), {name: entry})
    is_yaml = file is not None and file.lower().endswith((".yaml", ".yml"))
    root = find_root(data, dialect or by_path(file), is_yaml, report)
    if dialect is not None and root.dialect is not dialect:
        raise report.failure(
            (), "has no servers where the layout %s has them: %s" % (dialect.name, ".".join(dialect.roots[0]))
        )
    return root


def _switched_on(data: Mapping[str, Any], dialect: Dialect, report: Report) -> bool:
    if dialect.off_switch is None:
        return True
    switch = at(data, dialect.off_switch)
    if switch is ABSENT or switch is True:
        return True
    if switch is not False:
        raise report.failure(dialect.off_switch, "must be true or false, and is %s" % kind(switch))
    report.add("note", dialect.off_switch, "is false: every server is disabled")
    return False


def _entries(root: Root, report: Report) -> List[Tuple[Any, Any, Where]]:
    """Name, entry and place of each server."""
    if root.servers is None:
        report.add("warning", root.path, "is empty: there are no servers")
        return []
    if root.dialect.list_root and isinstance(root.servers, list):
        return [
            (body.get("name") if isinstance(body, Mapping) else None, body, (*root.path, index))
            for index, body in enumerate(root.servers)
        ]
    if not isinstance(root.servers, Mapping):
        raise report.failure(root.path, "must be %s, and is %s" % (_SERVER_MAP, kind(root.servers)))
    return [(name, body, (*root.path, str(name))) for name, body in root.servers.items()]


def _read_servers(
    data: Mapping[str, Any], root: Root, switched_on: bool, values: Values, report: Report
) -> Dict[str, ServerConfig]:
    entries = _entries(root, report)
    entries.extend(_of_project(data, root, values.workspace, report))
    servers: Dict[str, ServerConfig] = {}
    for name, body, where in entries:
        if not isinstance(name, str):
            wanted = "an entry needs a 'name'" if isinstance(where[-1], int) else "a server's name must be a string"
            report.add("error", where, wanted + ": put it in quotes" if name is not None else wanted)
            continue
        problem = _name_problem(name, root.dialect)
        if problem:
            error = report.add("error", where, problem, server=name).as_error()
            servers[name] = ServerConfig(name, enabled=False, error=error)
            continue
        if name in servers and isinstance(where[-1], int):
            report.add("warning", where, "stands here more than once; the last one counts")
        servers[name] = read_server(name, body, where, root.dialect, switched_on, values, report)
    return servers


def _of_project(
    data: Mapping[str, Any], root: Root, workspace: Optional[str], report: Report
) -> List[Tuple[Any, Any, Where]]:
    """Entries that a file keeps for one project folder; they go before those of the same name for all folders."""
    place = root.dialect.projects
    projects = at(data, place) if place is not None else None
    if place is None or not isinstance(projects, Mapping):
        return []
    found: List[Tuple[Any, Any, Where]] = []
    for folder, project in projects.items():
        path = (*place, str(folder), *root.dialect.roots[0])
        servers = at(project, root.dialect.roots[0])
        if servers is ABSENT or not servers:
            continue
        if workspace is None or os.path.abspath(str(folder)) != os.path.abspath(workspace):
            report.add("note", path, "is for another folder: load with workspace= to use it")
        else:
            found.extend(_entries(Root(root.dialect, path, servers), report))
    return found


def _restricted(
    data: Mapping[str, Any], dialect: Dialect, servers: Dict[str, ServerConfig], report: Report
) -> Dict[str, ServerConfig]:
    """The servers, less those that lists of the file switch off."""
    for place, allows in ((dialect.allowed, True), (dialect.excluded, False)):
        names = at(data, place) if place is not None else ABSENT
        if place is None or names is ABSENT or names is None:
            continue
        if not isinstance(names, list):
            raise report.failure(place, "must be a list of server names, and is %s" % kind(names))
        for name, server in servers.items():
            if server.enabled and (name in names) is not allows:
                report.add("note", place, "server %r is switched off here" % name, server=name)
                servers[name] = replace(server, enabled=False)
    return servers


def _name_problem(name: str, dialect: Dialect) -> str:
    if not name.strip():
        return "a server's name must not be empty"
    # Controls, lone surrogates and line separators spoil logs, and terminals obey them.
    bad: List[str] = [char for char in name if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp")]
    if bad:
        return "a server's name must not contain the character U+%04X" % ord(bad[0])
    if dialect.strict_names and not _STRICT_NAME.fullmatch(name):
        right = re.sub(r"[^A-Za-z0-9._-]+", "-", unicodedata.normalize("NFKD", name)).strip("-") or "web"
        return "a server's name is part of the names of its tools: letters, digits, '.', '-' and '_', as %r" % right
    return ""
