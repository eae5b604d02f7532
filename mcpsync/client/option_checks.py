"""The options of a client, held to their kinds: who makes a mistake is told, not a thread that trips over it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Set
from typing import TYPE_CHECKING, Any, Callable, Dict, Tuple

from mcpsync.client.extending import is_extensions
from mcpsync.connection.backoff import Backoff
from mcpsync.connection.settings import Limits
from mcpsync.core.cache import ResponseCache
from mcpsync.deadline import Timeouts
from mcpsync.errors import ConfigError

if TYPE_CHECKING:
    from mcpsync.client.options import Options

__all__ = ["check_options", "foreign_to", "refuse_foreign"]

TRANSPORTS = ("auto", "http", "sse", "stdio", "stream")


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _is_wait(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < float("inf")


def _is_env(value: Any) -> bool:
    return isinstance(value, Mapping) and all(isinstance(text, str) for item in value.items() for text in item)


def _is_env_mode(value: Any) -> bool:
    from mcpsync.transport.environment import MODES

    return value in MODES


def _is_folders(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(folder, (str, os.PathLike)) for folder in value)


def _is_implementation(value: Any) -> bool:
    from mcpsync.types import Implementation

    return isinstance(value, Implementation)


def _is_limits(value: Any) -> bool:
    return isinstance(value, Limits) and all(map(_is_count, value))


def _is_cache(value: Any) -> bool:
    if not isinstance(value, ResponseCache):
        return isinstance(value, bool)
    counts = _is_count(value.entries) and _is_count(value.bytes)
    return counts and _is_wait(value.longest) and _is_wait(value.stale_if_error) and isinstance(value.listen, bool)


def _is_backoff(value: Any) -> bool:
    return isinstance(value, Backoff) and isinstance(value.delays, tuple) and all(map(_is_wait, value.delays))


def _is_hooks(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(
        callable(getattr(hook, method, None)) for hook in value for method in ("before", "after")
    )


def _is_words(value: Any) -> bool:
    return isinstance(value, (list, tuple, Set)) and all(isinstance(word, str) for word in value)


class _Kind:
    def __init__(self, fits: Callable[[Any], bool], named: str, optional: bool = False) -> None:
        self.fits = fits
        self.named = named
        self.optional = optional


_FUNCTION = _Kind(callable, "a function", optional=True)
_COUNT = _Kind(_is_count, "a positive whole number")
_KINDS: Dict[str, _Kind] = {
    "name": _Kind(lambda value: isinstance(value, str), "a string", optional=True),
    "timeouts": _Kind(lambda value: isinstance(value, Timeouts), "a mcpsync.Timeouts"),
    "client_info": _Kind(_is_implementation, "a mcpsync.types.Implementation", optional=True),
    "elicitation": _FUNCTION,
    "elicitation_modes": _Kind(_is_words, "a list of strings"),
    "sampling": _FUNCTION,
    "on_log": _FUNCTION,
    "on_tools_changed": _FUNCTION,
    "on_prompts_changed": _FUNCTION,
    "on_resources_changed": _FUNCTION,
    "on_notification": _FUNCTION,
    "on_state": _FUNCTION,
    "hooks": _Kind(_is_hooks, "a list of objects with the methods of mcpsync.Hook"),
    "cache": _Kind(_is_cache, "True, False or a mcpsync.ResponseCache of positive numbers"),
    "extensions": _Kind(is_extensions, "a mapping of names to settings, or a list of mcpsync.Extension", optional=True),
    "result_types": _Kind(_is_words, "a set of strings"),
    "limits": _Kind(_is_limits, "a mcpsync.connection.settings.Limits of positive whole numbers"),
    "backoff": _Kind(_is_backoff, "a mcpsync.connection.backoff.Backoff of seconds"),
    "transport": _Kind(lambda value: value in TRANSPORTS, "'auto', 'http', 'sse', 'stdio' or 'stream'"),
    "page_limit": _COUNT,
    "debounce": _Kind(_is_wait, "a number of seconds"),
    "max_message": _COUNT,
    "connections": _COUNT,
    "max_connections": _Kind(_is_count, "a positive whole number", optional=True),
    "env": _Kind(_is_env, "a mapping of strings to strings", optional=True),
    "env_mode": _Kind(_is_env_mode, "'safe', 'inherit' or 'none'"),
    "path_prepend": _Kind(_is_folders, "a list of folders"),
    "stderr": _FUNCTION,
}
_SHOWN = frozenset(
    ("env_mode", "transport", "page_limit", "debounce", "max_message", "connections", "max_connections")
)  # never a secret


def check_options(options: Options) -> None:
    """
    :raises ConfigError: names the option, and what it takes
    """
    for name, kind in _KINDS.items():
        value = getattr(options, name)
        if value is None and kind.optional:
            continue
        if not kind.fits(value):
            given = "%.100r" % (value,) if name in _SHOWN else type(value).__name__
            if isinstance(value, (Mapping, list, tuple, Set)) and name not in _SHOWN:
                given = "a %s of other things" % given
            raise ConfigError("%s takes %s, not %s" % (name, kind.named, given))


_OF_HTTP = ("auth", "cert", "connections", "headers", "max_connections", "proxies", "session", "verify")
_OF_COMMANDS = ("cwd", "env", "env_mode", "path_prepend", "stderr")


def foreign_to(kind: str) -> Tuple[str, ...]:
    """The options that mean nothing for a target of a kind.

    :param kind: ``http``, ``command``, ``stream`` or ``factory``
    """
    return (() if kind == "http" else _OF_HTTP) + (() if kind == "command" else _OF_COMMANDS)


def refuse_foreign(options: Options, kind: str, server: str) -> None:
    """
    :raises ConfigError: an option was given that would silently be of no use
    """
    for name in foreign_to(kind):
        if getattr(options, name) != options._field_defaults[name]:
            goes_with = "the URL of a server over HTTP" if name in _OF_HTTP else "a command"
            raise ConfigError(
                "%s goes with %s, and this is %s" % (name, goes_with, _KINDS_OF_TARGET[kind]), server=server
            )


_KINDS_OF_TARGET = {
    "http": "the URL of a server over HTTP",
    "command": "a command",
    "stream": "a stream of messages on a Unix socket (over HTTP it is unix:///path/to.sock#/mcp)",
    "factory": "a transport of your own",
}
