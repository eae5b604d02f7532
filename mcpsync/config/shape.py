"""The entry of a server, written as a layout has it."""

from __future__ import annotations

from typing import Any, Dict, Mapping, Optional, Sequence

from mcpsync.config.dialects import Dialect
from mcpsync.config.model import ServerConfig
from mcpsync.errors import ConfigError

__all__ = ["new_entry", "portable_entry", "variable_in"]

_FORMS = (
    ("braced", "${%s}"),
    ("env", "${env:%s}"),
    ("brace_env", "{env:%s}"),
    ("bare", "$%s"),
    ("secrets", "${{ secrets.%s }}"),
)


def variable_in(dialect: Dialect, name: str) -> str:
    """How a variable of the environment is written.

    :raises ConfigError: the layout has none
    """
    for kind, form in _FORMS:
        if kind in dialect.forms and "env" in dialect.expanded:
            return form % name
    raise ConfigError("the layout %s has no variables in env: give a value" % dialect.name)


def new_entry(
    dialect: Dialect,
    *,
    command: Sequence[str] = (),
    env: Optional[Mapping[str, str]] = None,
    url: Optional[str] = None,
    headers: Optional[Mapping[str, str]] = None,
    transport: str = "auto",
    timeout: Optional[float] = None,
) -> Dict[str, Any]:
    """An entry with the keys of a layout. Values are written as they are.

    :param timeout: seconds for a call
    :raises ConfigError: the layout cannot say that
    """
    entry: Dict[str, Any] = {}
    kind = transport if url is not None else "stdio"
    written = dialect.written_types.get(kind)
    if written is not None or (url is not None and kind != "auto"):
        entry["type"] = written or kind
    if url is None:
        entry[_key(dialect, "command")] = list(command) if dialect.command_list else command[0]
        if not dialect.command_list and (len(command) > 1 or dialect.name == "zed"):
            entry[_key(dialect, "args")] = list(command[1:])
        if env:
            entry[_key(dialect, "env")] = dict(env)
    else:
        entry[_key(dialect, "url")] = url
        if headers:
            entry[_key(dialect, "headers")] = dict(headers)
    if timeout is not None:
        key = _key(dialect, "timeout")
        amount = timeout * 1000 if key in dialect.milliseconds else timeout
        entry[key] = int(amount) if amount == int(amount) else amount
    return entry


def _key(dialect: Dialect, field: str) -> str:
    for key, meant in dialect.keys.items():
        if meant == field:
            return key
    raise ConfigError("the layout %s has no %s" % (dialect.name, field.replace("_", " ")))


def portable_entry(server: ServerConfig) -> Dict[str, Any]:
    """A server that was loaded to be copied, as an entry of mcpsync's own layout. No trust comes with it."""
    entry: Dict[str, Any] = {}
    if server.url is None:
        entry["command"] = server.command[0] if server.command else ""
        entry["args"] = list(server.command[1:])
    elif server.transport in ("http", "sse"):
        entry["type"] = server.transport
    said: Mapping[str, Any] = {
        "url": server.url,
        "env": dict(server.env),
        "cwd": server.cwd,
        "headers": dict(server.headers),
        "oauth": dict(server.auth or {}),
        "timeout": server.timeout,
        "connect_timeout": server.connect_timeout,
        "tools_include": list(server.tools_include),
        "tools_exclude": list(server.tools_exclude),
        "env_mode": server.env_mode,
        "headersHelper": server.headers_command,
        "protocol": server.protocol,
        "keepalive_interval": server.keepalive,
        "idle_timeout_seconds": server.idle_disconnect,
        "max_lifetime_seconds": server.max_lifetime,
    }
    entry.update((key, value) for key, value in said.items() if value not in (None, [], {}))
    if not server.supports_parallel:
        entry["supports_parallel"] = False
    if server.skip_preflight:
        entry["skip_preflight"] = True
    if not server.enabled and server.error is None:
        entry["disabled"] = True
    return entry
