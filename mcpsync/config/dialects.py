"""The layouts of config files, as data: what a :class:`Dialect` is, and what several of them share.

A dialect says where the servers stand, how keys are spelled, in which units times are, which variables are expanded
in which values, and which defaults and bounds its own program documents. The code that reads servers knows only the
field names on the right side of ``keys``. The dialects themselves are in :mod:`mcpsync.config.programs`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Dict, FrozenSet, Mapping, Optional, Tuple

__all__ = [
    "COMMON",
    "EVERYWHERE",
    "MISNOMERS",
    "NOT_PERMISSION",
    "NO_UNIT",
    "PERMISSIONS",
    "TRANSPORTS",
    "Dialect",
    "KeyPath",
    "spelled",
]

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
    "serverUrl": "url",
    "include": "tools_include",
    "exclude": "tools_exclude",
}

NOT_PERMISSION = "is not imported: what another program may do without asking is no permission here"
NO_UNIT = "is not used: this layout documents no timeout, and seconds and milliseconds cannot be told apart"

COMMON: Mapping[str, str] = {
    "command": "command",
    "args": "args",
    "env": "env",
    "cwd": "cwd",
    "url": "url",
    "headers": "headers",
    "type": "type",
}
"""What nearly every layout has."""

PERMISSIONS: Mapping[str, str] = {
    "trust": NOT_PERMISSION + "; trust_level: trusted says it to mcpsync",
    "autoApprove": NOT_PERMISSION,
    "alwaysAllow": NOT_PERMISSION,
}
"""What only reports: permissions of another program."""

_SILENT: FrozenSet[str] = frozenset({"name", "title", "description", "icon", "comment", "alwaysLoad"})

EVERYWHERE: FrozenSet[str] = frozenset(
    {
        *("command", "args", "env", "cwd", "env_file"),
        *("url", "http_url", "socket", "headers", "headers_command", "auth", "token"),
    }
)
"""The fields in which values are expanded, where a layout does not say otherwise."""


def spelled(**fields: str) -> Dict[str, str]:
    """Fields by their keys, each in snake_case and in camelCase."""
    found: Dict[str, str] = {}
    for key, meant in fields.items():
        first, *rest = key.split("_")
        found[key] = meant
        found[first + "".join(part.title() for part in rest)] = meant
    return found


@dataclass(frozen=True)
class Dialect:
    """One layout.

    :ivar name: how it is called in messages, and by who forces it
    :ivar roots: the places where its servers may stand, a map or (``list_root``) a list of entries with a ``name``
    :ivar keys: each key that a server may have, and the field that it fills
    :ivar nested: keys whose value may be a map, and the fields that the keys in there fill
    :ivar command_list: ``command`` is a list with the arguments
    :ivar written_types: what is written for a transport, where that is not its own name
    :ivar milliseconds: the keys, as they are spelled, whose numbers are milliseconds; all others are seconds
    :ivar remarks: keys that mean something elsewhere, and what to say about them
    :ivar unused: keys of the layout that are read over, with a warning
    :ivar silent: keys that say nothing about the connection
    :ivar files: ends of the paths of its files, in lower case with slashes
    :ivar forms: the kinds of variables that it has, see :mod:`mcpsync.config.expand`
    :ivar expanded: the fields in which they are
    :ivar bare_variables: the fields in which ``$NAME`` is expanded as well as ``${NAME}``
    :ivar on_missing: what becomes of a variable that is not set: ``error``, ``empty`` or ``keep``
    :ivar transports: how transports are written beside :data:`TRANSPORTS`; an empty one is not supported
    :ivar own_kinds: what stands in the place of a transport for parts of its own program, which are no servers
    :ivar least_timeout: below this, in seconds, its own program ignores a timeout
    :ivar off_switch: a boolean that, when false, disables every server
    :ivar allowed: where the list of the only servers to use stands
    :ivar excluded: where that of servers not to use does
    :ivar projects: a map of project folders to maps with the same root, for that folder only
    :ivar policies: by name of a field of :class:`~mcpsync.config.Policy`, the places where it may stand
    :ivar network: the network policy where the file has none
    :ivar strict_names: a server's name is of letters, digits, ``.``, ``-`` and ``_``
    :ivar env_mode: what its program lets a server inherit, None for the default of mcpsync
    :ivar parallel: calls run at the same time where an entry does not say so
    :ivar timeout: the default for a call, in seconds, None for that of mcpsync
    :ivar connect_timeout: the same for connecting
    :ivar keepalive: the same for signs of life
    :ivar max_timeout: the longest that the layout allows
    :ivar max_connect_timeout: the same for connecting
    """

    name: str
    roots: Tuple[KeyPath, ...]
    keys: Mapping[str, str] = field(default_factory=lambda: COMMON)
    nested: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    list_root: bool = False
    command_list: bool = False
    written_types: Mapping[str, str] = field(default_factory=dict)
    milliseconds: FrozenSet[str] = frozenset()
    remarks: Mapping[str, str] = field(default_factory=lambda: PERMISSIONS)
    unused: FrozenSet[str] = frozenset()
    silent: FrozenSet[str] = _SILENT
    files: Tuple[str, ...] = ()
    forms: FrozenSet[str] = frozenset()
    expanded: FrozenSet[str] = EVERYWHERE
    bare_variables: FrozenSet[str] = frozenset()
    on_missing: str = "error"
    transports: Mapping[str, str] = field(default_factory=dict)
    own_kinds: FrozenSet[str] = frozenset()
    least_timeout: float = 0.0
    off_switch: Optional[KeyPath] = None
    allowed: Optional[KeyPath] = None
    excluded: Optional[KeyPath] = None
    projects: Optional[KeyPath] = None
    policies: Mapping[str, Tuple[KeyPath, ...]] = field(default_factory=dict)
    network: str = "allow"
    strict_names: bool = False
    env_mode: Optional[str] = None
    parallel: bool = True
    timeout: Optional[float] = None
    connect_timeout: Optional[float] = None
    keepalive: Optional[float] = None
    max_timeout: Optional[float] = None
    max_connect_timeout: Optional[float] = None

    def known(self) -> Dict[str, None]:
        """Every key that it knows, in order."""
        return dict.fromkeys([*self.keys, *self.remarks, *self.nested, *sorted(self.unused)])
