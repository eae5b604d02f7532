"""What can be known to be wrong with a server before anything is started or reached: no process, no socket."""

from __future__ import annotations

from typing import Any, Mapping, Optional
from urllib.parse import urlsplit

from mcpsync.config import ServerConfig
from mcpsync.errors import ConfigError, McpError

__all__ = ["preflight"]

_SCHEMES = ("http", "https", "unix", "http+unix")


def preflight(server: ServerConfig, options: Mapping[str, Any]) -> Optional[McpError]:
    """What keeps the server from being started or reached: its program is not there or not executable, its working
    folder is not there, the URL's scheme is none that servers are reached by.

    :param options: those of its client: ``env_mode`` and ``path_prepend`` settle where its program is looked for
    :returns: None if nothing is in the way
    """
    if server.error is not None:
        return server.error
    if server.url is not None:
        return _url(server)
    if server.command:
        return _command(server, options)
    return None


def _url(server: ServerConfig) -> Optional[McpError]:
    try:
        scheme = urlsplit(server.url or "").scheme
    except ValueError:
        return ConfigError("the url cannot be read", server=server.name)
    if scheme in _SCHEMES:
        return None
    return ConfigError("the url must begin with https:// or http://, not %.20r" % scheme, server=server.name)


def _command(server: ServerConfig, options: Mapping[str, Any]) -> Optional[McpError]:
    from mcpsync.transport.stdio_server import ServerCommand

    try:
        ServerCommand(
            server.command,
            env=server.env,
            env_mode=options.get("env_mode", "safe"),
            cwd=server.cwd,
            path_prepend=options.get("path_prepend", ()),
            server=server.name,
        ).prepare()
    except McpError as error:
        return error
    return None
