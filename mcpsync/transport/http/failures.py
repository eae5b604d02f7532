"""Failures of the network, in one flat line each: phase and cause."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import Iterator, Tuple, Type

import requests
import urllib3

from mcpsync.errors import ConnectFailed, ConnectionLost, TransportError

__all__ = ["NETWORK_ERRORS", "failure_of"]

NETWORK_ERRORS: Tuple[Type[BaseException], ...] = (
    OSError,
    http.client.HTTPException,
    urllib3.exceptions.HTTPError,
    requests.RequestException,
)
"""What a request or the reading of its response raises when the network fails."""


def failure_of(error: BaseException, host: str, began: bool) -> TransportError:
    """The error for a failure of the network.

    :param host: as the user knows it
    :param began: the request had begun to travel, so the server may have acted on it
    """
    cause = _cause(error)
    if began:
        return ConnectionLost("the connection to %s broke: %s" % (host, cause), maybe_executed=True)
    return ConnectFailed("cannot connect to %s: %s" % (host, cause))


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen = set()
    following = [error]
    while following:
        each = following.pop()
        if id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        # urllib3 and requests carry causes as arguments and as reasons, too
        for more in (each.__cause__, each.__context__, getattr(each, "reason", None), *each.args):
            if isinstance(more, BaseException):
                following.append(more)


def _cause(error: BaseException) -> str:
    chain = list(_chain(error))
    for each in chain:
        if isinstance(each, ssl.SSLCertVerificationError):
            return "its certificate is not accepted: %s" % each.verify_message
        if isinstance(each, socket.gaierror):
            return "the name cannot be resolved (%s)" % (each.strerror or each)
    for each in chain:
        if isinstance(each, ssl.SSLError):
            return "TLS failed: %s" % (each.reason or each)
        if isinstance(each, urllib3.exceptions.ProxyError):
            inner = [str(more) for more in chain if isinstance(more, OSError)]
            return "the proxy failed: %s" % (_line(inner[-1]) if inner else _plain(each))
    for each in chain:
        if isinstance(each, http.client.RemoteDisconnected):
            return "it was closed before an answer came"
        if isinstance(each, http.client.IncompleteRead):
            return "it was closed in the middle of an answer"
        if isinstance(each, OSError) and each.strerror:
            return each.strerror.lower()
    return _plain(chain[-1])


def _plain(error: BaseException) -> str:
    return _line(str(error)) or type(error).__name__


def _line(text: str) -> str:
    return " ".join(text.split())[:200]
