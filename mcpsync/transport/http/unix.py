"""HTTP over a Unix socket, for servers that listen on a path instead of a port."""

from __future__ import annotations

import socket
from typing import Any, Optional, Tuple
from urllib.parse import unquote, urlsplit

import requests.adapters
import urllib3
import urllib3.connection

from mcpsync.errors import ConfigError

__all__ = ["UnixAdapter", "split_unix_url"]


def split_unix_url(url: str) -> Optional[Tuple[str, str]]:
    """The path of the socket and the target on it, if it is such a URL.

    Two forms are in use: ``unix:///run/server.sock#/mcp`` and ``http+unix://%2Frun%2Fserver.sock/mcp``.

    :raises ConfigError: it is one, but names no socket, or the system has none
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme == "unix":
        path, target = unquote(parts.path), parts.fragment or "/"
    elif parts.scheme == "http+unix":
        path, target = unquote(parts.netloc), parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    else:
        return None
    if not path or (parts.scheme == "unix" and parts.netloc):
        raise ConfigError("a Unix socket's URL has the form unix:///path/to.sock#/mcp, with an absolute path")
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError("this system's Python has no Unix sockets")
    return path, target if target.startswith("/") else "/" + target


class UnixAdapter(requests.adapters.HTTPAdapter):
    """Sends every request to one Unix socket, whatever host its URL names.

    :param path: of the socket
    :param connections: kept open at a time
    """

    def __init__(self, path: str, connections: int) -> None:
        self._pool = _UnixPool(path, connections)
        super().__init__()

    def get_connection_with_tls_context(self, *arguments: Any, **keywords: Any) -> Any:
        """The pool, the only one there is."""
        return self._pool

    def close(self) -> None:
        """Close all connections."""
        self._pool.close()
        super().close()


class _UnixPool(urllib3.HTTPConnectionPool):
    def __init__(self, path: str, connections: int) -> None:
        super().__init__("localhost", maxsize=connections, path=path)
        self.ConnectionCls = _UnixConnection


class _UnixConnection(urllib3.connection.HTTPConnection):
    def __init__(self, *arguments: Any, path: str, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        self._path = path

    def connect(self) -> None:
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if isinstance(self.timeout, (int, float)):
            made.settimeout(self.timeout)
        try:
            made.connect(self._path)
        except BaseException:
            made.close()
            raise
        self.sock = made
