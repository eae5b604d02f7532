"""Which servers a host has: each entry with where it came from, and what a new set of entries changes.

Where an entry came from is said by the program that hands it over, never by the entry: else a file could pass its
servers off as the program's own.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Tuple, Union

from mcpsync.config import Config, ServerConfig, load
from mcpsync.errors import ConfigError

if TYPE_CHECKING:
    from mcpsync.transport.base import TransportFactory

__all__ = ["SOURCES", "Changes", "Entry", "Servers", "entries_of", "joined", "replaced"]

#: Who can bring servers: the user's config, the program, a plugin of it.
SOURCES = ("user", "host", "plugin")

#: What servers can be given as: a config, the path of a file, or a map from names to entries as they stand in a config
#: file, to :class:`~mcpsync.config.ServerConfig`, or to factories of transports (servers in this process).
Servers = Union[Config, str, "os.PathLike[str]", Mapping[str, Any]]

_STRICT_NAME = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Entry:
    """One server that a host was given.

    :ivar config: what the config says of it
    :ivar source: ``user``, ``host`` or ``plugin``
    :ivar file: of the config; None for one given in memory
    :ivar factory: makes its transports, for a server in this process
    :ivar denied: what the host's policy has against starting it; None if nothing
    """

    config: ServerConfig
    source: str = "user"
    file: Optional[str] = None
    factory: Optional[Callable[..., Any]] = None
    denied: Optional[str] = None

    @property
    def obstacle(self) -> Optional[str]:
        """The state of a server that is not started; None if it is."""
        if self.config.error is not None:
            return "invalid"
        if not self.config.enabled:
            return "disabled"
        return None if self.denied is None else "denied"

    def same_as(self, other: Entry) -> bool:
        """Whether a server that runs by the one runs by the other too."""
        return (
            _comparable(self.config) == _comparable(other.config)
            and self.source == other.source
            and self.denied == other.denied
            and self.factory is other.factory
        )


def _comparable(config: ServerConfig) -> Tuple[ServerConfig, str]:
    return replace(config, error=None), "" if config.error is None else str(config.error)


@dataclass(frozen=True)
class Changes:
    """What a new config came to, by names of servers.

    :ivar added: they were not there
    :ivar changed: closed, and started by their new entries
    :ivar removed: closed
    :ivar kept: not touched
    """

    added: Tuple[str, ...] = ()
    changed: Tuple[str, ...] = ()
    removed: Tuple[str, ...] = ()
    kept: Tuple[str, ...] = ()

    @classmethod
    def between(cls, old: Mapping[str, Entry], new: Mapping[str, Entry]) -> Changes:
        """What has to be done to get from the one to the other."""
        both = [name for name in new if name in old]
        kept = tuple(name for name in both if new[name].same_as(old[name]))
        return cls(
            tuple(name for name in new if name not in old),
            tuple(name for name in both if name not in kept),
            tuple(name for name in old if name not in new),
            kept,
        )


def entries_of(
    servers: Servers,
    source: str = "user",
    namespace: Optional[str] = None,
    environ: Optional[Mapping[str, str]] = None,
) -> Dict[str, Entry]:
    """The entries, by the names that the host gives them: ``<namespace>__<server>``, but for the user's own.

    :raises ConfigError: the source, the namespace or a name is wrong, or a file cannot be read
    """
    if source not in SOURCES:
        raise ConfigError("source must be one of %s, not %r" % (", ".join(SOURCES), source))
    if (source == "user") != (namespace is None):
        needs = "takes no namespace" if source == "user" else "needs a namespace: the names are <namespace>__<server>"
        raise ConfigError("servers of the source %r: %s" % (source, needs))
    if namespace is not None:
        _check_name(namespace, "a namespace")
    config, factories = _taken_apart(servers, os.environ if environ is None else environ)
    entries: Dict[str, Entry] = {}
    for name, server in config.servers.items():
        whole = name
        if namespace is not None:
            _check_name(name, "the name of a server of the source %r" % source)
            whole = "%s__%s" % (namespace, name)
        entries[whole] = Entry(replace(server, name=whole), source, config.source, factories.get(name))
    return entries


def _taken_apart(servers: Servers, environ: Mapping[str, str]) -> Tuple[Config, Dict[str, TransportFactory]]:
    if isinstance(servers, Config):
        return servers, {}
    if not isinstance(servers, Mapping):
        return load(servers, environ=environ), {}
    plain = {name: body for name, body in servers.items() if not isinstance(body, ServerConfig) and not callable(body)}
    if len(plain) == len(servers) and not _is_bare(servers):
        return load(servers, environ=environ), {}
    read = load({"mcpServers": plain}, environ=environ).servers
    factories = {name: body for name, body in servers.items() if callable(body)}
    typed: Dict[str, ServerConfig] = {}
    for name, body in servers.items():
        if name in factories:
            typed[name] = ServerConfig(name, transport="memory")
        else:
            typed[name] = replace(body, name=name) if isinstance(body, ServerConfig) else read[name]
    return Config(typed), factories


def _is_bare(servers: Mapping[str, Any]) -> bool:
    """Whether it maps names to entries itself, without the key of a config file around that."""
    return all(isinstance(body, Mapping) and ("command" in body or "url" in body) for body in servers.values())


def _check_name(name: str, what: str) -> None:
    if not isinstance(name, str) or not _STRICT_NAME.fullmatch(name):
        raise ConfigError("%s is made of letters, digits, '_' and '-', and this is %.60r" % (what, name))


def joined(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> Dict[str, Entry]:
    """Both, the new ones in the place of old ones of the same name and source.

    :raises ConfigError: a name is taken by a server from elsewhere
    """
    for name, entry in new.items():
        taken = old.get(name)
        if taken is not None and taken.source != entry.source:
            raise ConfigError(
                "the name %r is taken by a server of the source %r: give this one another" % (name, taken.source),
                server=name,
            )
    return {**old, **new}


def replaced(old: Mapping[str, Entry], new: Mapping[str, Entry]) -> Dict[str, Entry]:
    """The new ones, which are the user's, and of the old ones those from elsewhere.

    :raises ConfigError: a name is taken by a server from elsewhere
    """
    others = {name: entry for name, entry in old.items() if entry.source != "user"}
    joined(others, new)
    return {**new, **others}
