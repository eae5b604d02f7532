"""What a server's entry in a config file comes to: the target of a client, and its options."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, Callable, Dict, Mapping, Optional, Tuple

from mcpsync.config.model import ServerConfig

if TYPE_CHECKING:
    from mcpsync.client.target import Target
    from mcpsync.host.roster import Entry

__all__ = ["load_before_threads", "reach"]


_OF_HTTP = ("headers", "auth", "session")


def reach(
    server: ServerConfig, given: Mapping[str, Any], factory: Optional[Callable[..., Any]] = None
) -> Tuple[Target, Dict[str, Any]]:
    """The target, and the options with what the entry says.

    :param given: options from elsewhere; of these, headers are laid over those of the entry
    :param factory: makes the transports of a server in this process
    """
    options = dict(given)
    options["name"] = server.name
    if factory is not None:
        return factory, {key: value for key, value in options.items() if key not in _OF_HTTP}
    if server.url is None:
        options.pop("headers", None)
        options.pop("auth", None)
        return list(server.command), {**options, "env": server.env, "cwd": server.cwd}
    options["transport"] = server.transport
    if server.transport == "stream":
        return server.url, {key: value for key, value in options.items() if key not in _OF_HTTP}
    options["headers"] = headers = _laid_over(_said(server), given.get("headers"))
    if _wants_sign_in(server, headers, options):
        options["auth"] = _signing(server.auth or {}, options.get("auth"))
    return server.url, options


def _signing(said: Mapping[str, Any], given: Any) -> Any:
    """What the entry says over what was given for all servers, unless that is an object of the user's own."""
    from mcpsync.auth.oauth import OAuth

    if given is None:
        return OAuth.of(said)
    return replace(given, **said) if isinstance(given, OAuth) else given


def _wants_sign_in(server: ServerConfig, headers: Any, options: Mapping[str, Any]) -> bool:
    """Whether a 401 of this server is an invitation to sign in, even where the entry says nothing of that."""
    if server.auth is None or options.get("session") is not None or not str(server.url).startswith("http"):
        return False
    if callable(headers):
        return bool(server.auth)  # they may sign requests themselves
    return not any(name.lower() == "authorization" for name in headers)


def _said(server: ServerConfig) -> Any:
    """Headers of the entry; those of its command go over the others."""
    if server.headers_command is None or server.url is None:
        return server.headers
    from mcpsync.host.headers_helper import HeadersHelper

    return _laid_over(server.headers, HeadersHelper(server.headers_command, server.name, server.url))


def _laid_over(said: Any, given: Any) -> Any:
    """Headers of the entry, under those that were given; both may be a function. Names are the same in any case."""
    if not callable(given) and not callable(said):
        return _merged(said, given or {})

    def headers() -> Dict[str, str]:
        return _merged(said() if callable(said) else said, given() if callable(given) else given or {})

    return headers if said else given


def _merged(under: Mapping[str, str], over: Mapping[str, str]) -> Dict[str, str]:
    taken = {name.lower() for name in over}
    return {**{name: value for name, value in under.items() if name.lower() not in taken}, **over}


def load_before_threads(entry: Entry) -> None:
    """Import what the first connection to a server would. A fork in the middle of an import, on another thread, leaves
    half a module in the child for good."""
    server = entry.config
    if entry.factory is not None:
        return
    if server.url is None:
        import_module("mcpsync.transport.stdio")
        return
    if server.transport == "stream":
        import_module("mcpsync.transport.sockets")
        return
    import_module("mcpsync.transport.http.detecting")
    if server.auth is not None:
        import_module("mcpsync.transport.http.authorized")
        import_module("mcpsync.auth.account")
        import_module("mcpsync.auth.token_endpoint")
