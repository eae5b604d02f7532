"""What a server's entry in a config file comes to: the target of a client, and its options."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Dict, Mapping, Tuple

from mcpsync.config.model import ServerConfig

if TYPE_CHECKING:
    from mcpsync.client.target import Target

__all__ = ["load_before_threads", "reach"]


def reach(server: ServerConfig, given: Mapping[str, Any]) -> Tuple[Target, Dict[str, Any]]:
    """The target, and the options with what the entry says.

    Whatever an entry says of signing in would be handed on here.

    :param given: options from elsewhere; of these, headers are laid over those of the entry
    """
    options = dict(given)
    options["name"] = server.name
    if server.url is None:
        options.pop("headers", None)
        return list(server.command), {**options, "env": server.env, "cwd": server.cwd}
    options["transport"] = server.transport
    options["headers"] = _laid_over(server.headers, given.get("headers"))
    return server.url, options


def _laid_over(said: Mapping[str, str], given: Any) -> Any:
    """Headers of the entry, under those that were given, which may be a function. Names are the same in any case."""
    if not callable(given):
        return _merged(said, given or {})

    def headers() -> Dict[str, str]:
        return _merged(said, given())

    return headers if said else given


def _merged(under: Mapping[str, str], over: Mapping[str, str]) -> Dict[str, str]:
    taken = {name.lower() for name in over}
    return {**{name: value for name, value in under.items() if name.lower() not in taken}, **over}


def load_before_threads(server: ServerConfig) -> None:
    """Import what the first connection to a server would. A fork in the middle of an import, on another thread, leaves
    half a module in the child for good."""
    import_module("mcpsync.transport.stdio" if server.url is None else "mcpsync.transport.http.detecting")
