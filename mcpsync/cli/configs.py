"""Commands that read and write config files, and start nothing: servers, add, remove, import, config check."""

from __future__ import annotations

import os
import shlex
from typing import Any, Callable, Dict, List, Optional

from mcpsync.auth.store import state_folder
from mcpsync.cli.arguments import Invocation
from mcpsync.cli.asking import can_ask, confirmed
from mcpsync.cli.exits import OK, USAGE
from mcpsync.cli.output import Output
from mcpsync.cli.text import inline
from mcpsync.config import Approvals, Config, Diagnostic, ServerConfig, load
from mcpsync.config.edit import add_server, layout_of, remove_server
from mcpsync.config.load import load_to_copy
from mcpsync.config.projects import workspace_of
from mcpsync.config.shape import new_entry, portable_entry, variable_in
from mcpsync.errors import ConfigError

__all__ = ["CONFIGS", "default_file", "run_config"]

Action = Callable[[Invocation, Output], int]


def default_file() -> str:
    """The user's own config file: ``mcp.json`` in the state folder."""
    return os.path.join(state_folder(), "mcp.json")


def run_config(invocation: Invocation, output: Output) -> int:
    """Do it, show what came of it, and give the exit code."""
    return CONFIGS[invocation.command](invocation, output)


def _servers(invocation: Invocation, output: Output) -> int:
    config = _loaded(invocation.config or default_file(), invocation)
    output.document({"file": config.source, "layout": config.dialect, "servers": _documents(config)})
    output.lines("%s: %s" % (config.source, _count(len(config.servers), "server")))
    output.table([(each.name, _state(each), each.transport, each.target) for each in config.servers.values()])
    return OK


def approved_file() -> str:
    """Where the project files that were approved are kept: ``approved.json`` in the state folder."""
    return os.path.join(state_folder(), "approved.json")


def _config(invocation: Invocation, output: Output) -> int:
    return (_approve if invocation.words[0] == "approve" else _check)(invocation, output)


def _approve(invocation: Invocation, output: Output) -> int:
    given = invocation.words[1] if len(invocation.words) > 1 else invocation.config or ""
    file = os.path.abspath(os.path.expanduser(given))
    config = load_to_copy(file, dialect=invocation.dialect)  # variables stay as they are written
    approvals = Approvals(approved_file())
    if approvals(file, config.digest):
        return _approved(output, file, "is approved already")
    output.note("%s would start, or connect to:" % file)
    for each in config.servers.values():
        output.note("  %s" % inline(_shown_to_approve(each)))
    for remark in config.diagnostics:
        output.note(str(remark))
    if not invocation.yes:
        if not can_ask(output):
            raise ConfigError("config approve: there is nobody to ask here: give --yes if you have looked at the file")
        if not confirmed(output, "Approve this file as it is now?"):
            output.note("not approved")
            return USAGE
    approvals.approve(file, config.digest)
    return _approved(output, file, "approved, until it changes")


def _approved(output: Output, file: str, what: str) -> int:
    output.document({"file": file, "approved": True})
    output.lines("%s: %s" % (file, what))
    return OK


def _shown_to_approve(server: ServerConfig) -> str:
    """What it would do: command line or URL as the file has them, names of variables, no values of these."""
    if not server.enabled:
        return "%s: nothing, it is %s" % (server.name, _state(server))
    what = server.target if server.url is not None else " ".join(map(shlex.quote, server.command))
    names = ", ".join(sorted({**server.env, **server.headers}))
    return "%s: %s%s" % (server.name, what, " (sets %s)" % names if names else "")


def _check(invocation: Invocation, output: Output) -> int:
    file = invocation.words[1] if len(invocation.words) > 1 else invocation.config or default_file()
    config = _loaded(file, invocation)
    errors = sum(each.severity == "error" for each in config.diagnostics)
    output.document(
        {
            "file": config.source,
            "layout": config.dialect,
            "servers": _documents(config),
            "diagnostics": [_remark(each) for each in config.diagnostics],
        }
    )
    for each in config.diagnostics:
        output.lines(str(each))
    usable = sum(each.enabled for each in config.servers.values())
    output.lines(
        "%s: layout %s, %s, %d to be started, %s"
        % (config.source, config.dialect, _count(len(config.servers), "server"), usable, _count(errors, "error"))
    )
    if workspace_of(config.source) is not None and not Approvals(approved_file())(config.source or "", config.digest):
        output.lines("found in a project, it starts nothing before: mcpsync config approve %s" % shlex.quote(file))
    return USAGE if errors else OK


def _loaded(file: str, invocation: Invocation) -> Config:
    return load(file, dialect=invocation.dialect)


def _documents(config: Config) -> List[Dict[str, Any]]:
    return [
        {
            "name": each.name,
            "state": _state(each),
            "transport": each.transport,
            "target": each.target,
            "error": None if each.error is None else str(each.error),
        }
        for each in config.servers.values()
    ]


def _remark(each: Diagnostic) -> Dict[str, Any]:
    return {
        "severity": each.severity,
        "line": each.line,
        "path": each.path,
        "message": each.message,
        "nearest": each.nearest,
        "server": each.server,
    }


def _state(server: ServerConfig) -> str:
    if server.error is not None:
        return "wrong"
    return "enabled" if server.enabled else "disabled"


def _count(number: int, noun: str) -> str:
    return "%d %s%s" % (number, noun, "" if number == 1 else "s")


def _add(invocation: Invocation, output: Output) -> int:
    (name,) = invocation.words
    file = invocation.config or default_file()
    layout = layout_of(file, invocation.dialect)
    env = {key: variable_in(layout, key) if value is None else value for key, value in invocation.given_env.items()}
    entry = new_entry(
        layout,
        command=invocation.server_command or (),
        env=env,
        url=invocation.url,
        headers=invocation.headers,
        transport=invocation.transport,
        timeout=invocation.timeout,
    )
    written = add_server(file, name, entry, dialect=invocation.dialect)
    for each in _loaded(written, invocation).diagnostics:
        if each.server == name and each.severity == "error":
            output.note(str(each))
    return _told(output, "added", [name], written)


def _remove(invocation: Invocation, output: Output) -> int:
    (name,) = invocation.words
    written = remove_server(invocation.config or default_file(), name, dialect=invocation.dialect)
    return _told(output, "removed", [name], written)


def _import(invocation: Invocation, output: Output) -> int:
    (source,) = invocation.words
    config = load_to_copy(source, dialect=invocation.dialect)
    file = invocation.config or default_file()
    for each in config.diagnostics:
        if each.severity != "note" or invocation.verbose or "is not imported" in each.message:
            output.note(str(each))
    copied: List[str] = []
    written: Optional[str] = None
    code = OK
    for server in config.servers.values():
        if server.error is not None:
            code = USAGE  # it was said above
            continue
        if not server.command and server.url is None:
            continue  # a part of another program
        try:
            written = add_server(file, server.name, portable_entry(server))
            copied.append(server.name)
        except ConfigError as error:
            output.note("server %r: %s" % (server.name, error))
            code = USAGE
    _told(output, "imported", copied, written)
    return code


def _told(output: Output, what: str, names: List[str], file: Optional[str]) -> int:
    output.document({what: names, "file": file})
    output.lines("%s: %s" % (what, ", ".join(names) + " in %s" % file if names else "nothing"))
    return OK


CONFIGS: Dict[str, Action] = {
    "servers": _servers,
    "add": _add,
    "remove": _remove,
    "import": _import,
    "config": _config,
}
