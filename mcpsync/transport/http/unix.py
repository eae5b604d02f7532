"""HTTP over a Unix socket, for servers that listen on a path instead of a port."""

from __future__ import annotations

import socket
from typing import Any

import requests.adapters
import urllib3
import urllib3.connection

__all__ = ["UnixAdapter"]


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
