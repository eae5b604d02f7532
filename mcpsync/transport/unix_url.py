"""The URLs of Unix sockets, whatever is spoken over them."""

from __future__ import annotations

import socket
from typing import NamedTuple, Optional
from urllib.parse import unquote, urlsplit

from mcpsync.errors import ConfigError

__all__ = ["UnixUrl", "unix_url"]


class UnixUrl(NamedTuple):
    """What such a URL names.

    :ivar path: of the socket
    :ivar target: of HTTP requests; None: the URL names none, so messages travel as on stdio
    """

    path: str
    target: Optional[str]


def unix_url(url: str) -> Optional[UnixUrl]:
    """The parts of the URL of a Unix socket; None if it is none.

    HTTP has two forms: ``unix:///run/server.sock#/mcp`` and ``http+unix://%2Frun%2Fserver.sock/mcp``. The former
    without its ``#`` is a stream of messages, one to a line.

    :raises ConfigError: it is one, but names no socket, or the system has none
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme == "unix":
        path, target = unquote(parts.path), parts.fragment or ("/" if url.endswith("#") else None)
    elif parts.scheme == "http+unix":
        path, target = unquote(parts.netloc), parts._replace(scheme="", netloc="", fragment="").geturl() or "/"
    else:
        return None
    if not path or (parts.scheme == "unix" and parts.netloc):
        raise ConfigError("a Unix socket's URL has the form unix:///path/to.sock#/mcp, with an absolute path")
    if not hasattr(socket, "AF_UNIX"):
        raise ConfigError("this system's Python has no Unix sockets")
    return UnixUrl(path, target if target is None or target.startswith("/") else "/" + target)
