"""What a client is given to connect to: a command, a URL, or a factory of transports."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Sequence, Union
from urllib.parse import urlsplit

from mcpsync.client.option_checks import refuse_foreign
from mcpsync.connection.opening import forget_verdict, recall_verdict, remember_verdict
from mcpsync.core.era import LEGACY
from mcpsync.errors import ConfigError

if TYPE_CHECKING:
    from mcpsync.client.held import Held
    from mcpsync.client.options import Options
    from mcpsync.transport.base import Transport, TransportFactory
    from mcpsync.transport.http.authorization import Auth
    from mcpsync.transport.http.endpoint import Endpoint
    from mcpsync.transport.http.legacy_sse import LegacySse
    from mcpsync.transport.http.streamable import StreamableHttp

    Target = Union[Sequence[str], str, TransportFactory]

__all__ = ["factory_for", "is_http", "kind_of", "name_of", "verdict_key"]


def is_url(target: Any) -> bool:
    """Whether it is a URL, of whatever kind."""
    return isinstance(target, str) and "://" in target


def is_http(target: Any, transport: str) -> bool:
    """Whether it names a server that is reached over HTTP.

    :param transport: the option of that name
    """
    return is_url(target) and transport != "stream" and (transport != "auto" or _streamed(target) is None)


def kind_of(target: Any, transport: str) -> str:
    """``http``, ``command``, ``stream`` or ``factory``."""
    if callable(target):
        return "factory"
    if is_url(target):
        return "http" if is_http(target, transport) else "stream"
    return "command"


def _streamed(url: str) -> Optional[str]:
    """The path of the socket, if the URL is that of a stream of messages."""
    if url[:5].lower() != "unix:":
        return None
    from mcpsync.transport.unix_url import unix_url

    unix = unix_url(url)
    return None if unix is None or unix.target is not None else unix.path


def _command(target: Any) -> List[str]:
    if isinstance(target, (str, bytes)):
        raise ConfigError("a server is a URL, or a command as a list of strings; this text is no URL")
    if not isinstance(target, (list, tuple)):
        raise ConfigError("a server is a URL, or a command as a list of strings, not %s" % type(target).__name__)
    return list(target)


def name_of(target: Any) -> str:
    """What to call the server when the user gives no name."""
    if callable(target):
        return "server"
    if is_url(target):
        try:
            streamed = _streamed(target)
            if streamed is not None:
                return os.path.basename(streamed) or "server"
            return urlsplit(target).hostname or "server"
        except ValueError:  # it is no URL, which the transport will say
            return "server"
    command = _command(target)
    return os.path.basename(str(command[0])) or "server" if command else "server"


def verdict_key(target: Any, options: Options) -> Optional[Any]:
    """Names the server in the memory of what was found out about it."""
    if callable(target):
        return None
    if is_url(target):
        return "http" if is_http(target, options.transport) else "stream", target
    env = sorted((options.env or {}).items())
    # the hash, so that no secret of the environment is kept
    return "stdio", tuple(target), str(options.cwd), hash(tuple(env))


def factory_for(
    target: Any,
    name: str,
    options: Options,
    held: Held,
    stderr: Optional[Callable[[str], None]],
    auth: Optional[Auth] = None,
) -> Callable[[], Transport]:
    """Builds a transport for each connection.

    :param stderr: gets each line that a server's process writes to stderr, on the reader's thread; quick
    :param auth: signs requests to a URL
    :raises ConfigError: target or options are wrong
    """
    refuse_foreign(options, kind_of(target, options.transport), name)
    if callable(target):
        return held.handle(target)
    if is_url(target):
        if options.transport == "stdio":
            raise ConfigError("transport 'stdio' goes with a command, and this is a URL", server=name)
        if not is_http(target, options.transport):
            return _socket(target, name, options)
        return _http(target, name, options, held, auth)
    command = _command(target)
    if options.transport not in ("auto", "stdio"):
        raise ConfigError("transport %r goes with a URL, and this is a command" % options.transport, server=name)
    return _stdio(command, name, options, stderr)


def _stdio(
    command: List[str], name: str, options: Options, stderr: Optional[Callable[[str], None]]
) -> Callable[[], Transport]:
    env, env_mode, cwd, path_prepend = options.env, options.env_mode, options.cwd, options.path_prepend
    max_message = options.max_message

    def start() -> Transport:
        from mcpsync.transport.stdio import StdioTransport

        return StdioTransport(
            command,
            env=env,
            env_mode=env_mode,
            cwd=cwd,
            path_prepend=path_prepend,
            server_name=name,
            stderr=stderr,
            max_message=max_message,
        )

    return start


def _socket(url: str, name: str, options: Options) -> Callable[[], Transport]:
    path = _streamed(url)
    if path is None:
        raise ConfigError("transport 'stream' takes the URL of a Unix socket: unix:///path/to.sock", server=name)
    if sys.platform == "win32":
        raise ConfigError("Unix sockets need a system that can poll them, which Windows cannot", server=name)
    max_message = options.max_message

    def dialling() -> Transport:
        from mcpsync.transport.sockets import SocketTransport, dial_unix

        return SocketTransport(dial_unix(path), name, max_message=max_message)

    return dialling


def _http(url: str, name: str, options: Options, held: Held, auth: Optional[Auth]) -> Callable[[], Transport]:
    headers = held.handle(options.headers) if callable(options.headers) else options.headers
    session, verify, cert, proxies = options.session, options.verify, options.cert, options.proxies
    max_calls = options.max_connections
    connections, max_message, connect_timeout = options.connections, options.max_message, options.timeouts.connect

    key = ("http transport", url)

    def endpoint() -> Endpoint:
        from mcpsync.transport.http.endpoint import Endpoint

        how: Dict[str, Any] = {
            "server": name,
            "session": session,
            "headers": headers,
            "verify": verify,
            "cert": cert,
            "proxies": proxies,
            "connections": connections,
            "connect_timeout": connect_timeout,
        }
        if auth is None:
            return Endpoint(url, **how)
        from mcpsync.transport.http.authorized import AuthorizedEndpoint

        return AuthorizedEndpoint(url, auth, **how)

    def older() -> LegacySse:
        from mcpsync.transport.http.legacy_sse import LegacySse

        return LegacySse(endpoint(), server_name=name, max_message=max_message)

    def newer(declines: bool = False) -> StreamableHttp:
        from mcpsync.transport.http.streamable import StreamableHttp

        return StreamableHttp(
            endpoint(), server_name=name, max_message=max_message, declines=declines, max_calls=max_calls
        )

    def learned(is_older: bool) -> None:
        if is_older:
            remember_verdict(key, "sse")
        else:
            forget_verdict(key)

    def detecting() -> Transport:
        from mcpsync.transport.http.detecting import DetectingHttp

        starts_older = recall_verdict(key) == "sse"
        return DetectingHttp(newer(declines=True), older, server_name=name, starts_older=starts_older, learned=learned)

    if options.transport == "auto" and options.protocol in ("auto", "legacy", *LEGACY):
        return detecting
    return older if options.transport == "sse" else newer
