"""The layouts of config files, as data.

A :class:`Dialect` says where the map of servers stands, how its keys are spelled, in which values ``$NAME`` is
expanded, and which defaults and bounds its own program documents. The code that reads servers knows only the
field names on the right side of ``keys``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, Mapping, Optional, Tuple

__all__ = ["DIALECTS", "MISNOMERS", "TRANSPORTS", "Dialect", "KeyPath"]

KeyPath = Tuple[str, ...]

#: How the transports are written, and what each means.
TRANSPORTS: Mapping[str, str] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "remote": "http",
    "streamable-http": "http",
    "streamable_http": "http",
    "streamableHttp": "http",
    "streamable": "http",
    "sse": "sse",
}

#: What people write who come from another layout, and the field that they mean.
MISNOMERS: Mapping[str, str] = {
    "cmd": "command",
    "program": "command",
    "executable": "command",
    "arguments": "args",
    "environment": "env",
    "envs": "env",
    "workingDirectory": "cwd",
    "uri": "url",
    "endpoint": "url",
    "include": "tools_include",
    "exclude": "tools_exclude",
}

_NOT_PERMISSION = "is not imported: what another program may do without asking is no permission here"

_KEYS: Mapping[str, str] = {
    "command": "command",
    "args": "args",
    "env": "env",
    "cwd": "cwd",
    "url": "url",
    "serverUrl": "url",
    "httpUrl": "url",
    "headers": "headers",
    "auth": "auth",
    "oauth": "oauth",
    "transport": "transport",
    "type": "type",
    "transportType": "type",
    "enabled": "enabled",
    "disabled": "disabled",
    "timeout": "timeout",
    "connect_timeout": "connect_timeout",
    "connectTimeout": "connect_timeout",
    "tools_include": "tools_include",
    "toolsInclude": "tools_include",
    "includeTools": "tools_include",
    "tools_exclude": "tools_exclude",
    "toolsExclude": "tools_exclude",
    "excludeTools": "tools_exclude",
    "disabledTools": "tools_exclude",
    "trust_level": "trust_level",
    "trustLevel": "trust_level",
}

_REMARKS: Mapping[str, str] = {
    "trust": _NOT_PERMISSION + "; trust_level: trusted says it to mcpsync",
    "autoApprove": _NOT_PERMISSION,
    "alwaysAllow": _NOT_PERMISSION,
}

_SILENT: FrozenSet[str] = frozenset({"name", "title", "description", "icon", "comment", "alwaysLoad"})


@dataclass(frozen=True)
class Dialect:
    """One layout.

    :ivar name: how it is called in messages
    :ivar roots: the places where its map of servers may stand
    :ivar keys: each key that a server may have, and the field that it fills
    :ivar remarks: keys that mean something elsewhere, and what to say about them
    :ivar unused: keys of the layout that this version reads over, with a warning
    :ivar silent: keys that say nothing about the connection
    :ivar bare_variables: the fields in which ``$NAME`` is expanded as well as ``${NAME}``
    :ivar off_switch: a boolean that, when false, disables every server
    :ivar timeout: the default for a call, in seconds, None for that of mcpsync
    :ivar connect_timeout: the same for connecting
    :ivar max_timeout: the longest that the layout allows
    :ivar max_connect_timeout: the same for connecting
    """

    name: str
    roots: Tuple[KeyPath, ...]
    keys: Mapping[str, str] = field(default_factory=lambda: _KEYS)
    remarks: Mapping[str, str] = field(default_factory=lambda: _REMARKS)
    unused: FrozenSet[str] = frozenset()
    silent: FrozenSet[str] = _SILENT
    bare_variables: FrozenSet[str] = frozenset()
    off_switch: Optional[KeyPath] = None
    timeout: Optional[float] = None
    connect_timeout: Optional[float] = None
    max_timeout: Optional[float] = None
    max_connect_timeout: Optional[float] = None

    def known(self) -> Dict[str, None]:
        """Every key that it knows, in order."""
        return dict.fromkeys([*self.keys, *self.remarks, *sorted(self.unused)])


#: In the order of detection: the most telling root first.
DIALECTS: Tuple[Dialect, ...] = (
    Dialect(
        name="mcpServers",
        roots=(("mcpServers",),),
        unused=frozenset({"envFile", "headersHelper"}),
    ),
    Dialect(
        name="tools.mcp_servers",
        roots=(("tools", "mcp_servers"), ("tools", "mcpServers")),
        bare_variables=frozenset({"env", "headers"}),
        off_switch=("tools", "mcp", "enabled"),
        timeout=120,
        connect_timeout=60,
        max_timeout=3600,
        max_connect_timeout=600,
    ),
    Dialect(
        name="servers",
        roots=(("servers",),),
        unused=frozenset(
            {
                "dev",
                "envFile",
                "idle_timeout_seconds",
                "idleTimeoutSeconds",
                "keepalive_interval",
                "keepaliveInterval",
                "max_lifetime_seconds",
                "maxLifetimeSeconds",
                "skip_preflight",
                "skipPreflight",
                "streamable",
                "supports_parallel",
                "supportsParallel",
            }
        ),
        timeout=300,
        connect_timeout=60,
    ),
)
