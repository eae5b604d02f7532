"""The options of a host: which there are, and what of them each client gets."""

from __future__ import annotations

import difflib
from typing import Any, Callable, Dict, Iterable, Mapping, Optional

from mcpsync.client.option_checks import TRANSPORTS, foreign_to
from mcpsync.client.options import Options
from mcpsync.client.target import kind_of
from mcpsync.config import ServerConfig
from mcpsync.deadline import Timeouts
from mcpsync.errors import ConfigError

__all__ = ["ClientOptions", "checked_connect_timeout"]

_OF_THE_CONFIG = ("name", "env", "cwd", "transport")
_OF_THE_HOST = ("on_tools_changed", "observer")
_OF_ONE_SERVER = ("on_state", "on_prompts_changed", "on_resources_changed", "on_notification", "headers")
"""What is of no use without knowing the server, or would tell a secret to all: only ``for_server`` can give it."""


class ClientOptions:
    """What the clients of a host have in common, and what the program gives for each.

    :param options: for all servers
    :param for_server: gives further ones for the server of this name
    :raises ConfigError: one is wrong, or not for a host
    """

    def __init__(
        self, options: Mapping[str, Any], for_server: Optional[Callable[[str], Mapping[str, Any]]] = None
    ) -> None:
        _check(options, (*_OF_THE_CONFIG, *_OF_THE_HOST, *_OF_ONE_SERVER))
        self._options = dict(options)
        self._for_server = for_server
        self.timeouts: Timeouts = options.get("timeouts", Timeouts())
        if not isinstance(self.timeouts, Timeouts):
            raise ConfigError("timeouts takes a mcpsync.Timeouts, not %s" % type(self.timeouts).__name__)

    def of(self, server: ServerConfig) -> Dict[str, Any]:
        """The options for one server, ``timeouts`` always among them: what its entry says goes before the rest.

        :raises ConfigError: what the program gives for it is wrong
        """
        own = {} if self._for_server is None else dict(self._for_server(server.name))
        _check(own, (*_OF_THE_CONFIG, *_OF_THE_HOST), server.name)
        foreign = foreign_to(_kind(server))  # what is for all servers is for those that it means something for
        merged = {**{name: value for name, value in self._options.items() if name not in foreign}, **own}
        merged["timeouts"] = merged.get("timeouts", self.timeouts).override(**_said(server))
        for name, value in (("protocol", server.protocol), ("env_mode", server.env_mode)):
            if value is not None and name not in foreign:
                merged[name] = value
        return merged


def _kind(server: ServerConfig) -> str:
    if server.url is not None:
        return kind_of(server.url, server.transport if server.transport in TRANSPORTS else "auto")
    return "command" if server.command else "factory"


def _said(server: ServerConfig) -> Dict[str, Optional[float]]:
    """The times that an entry gives. In a config 0 stands for none, here None does."""
    said = {
        "call": server.timeout,
        "connect": server.connect_timeout,
        "keepalive": server.keepalive,
        "idle_disconnect": server.idle_disconnect,
        "max_lifetime": server.max_lifetime,
    }
    return {name: value or None for name, value in said.items() if value is not None}


def checked_connect_timeout(seconds: Optional[float]) -> Optional[float]:
    """
    :raises ConfigError: it is no number of seconds
    """
    if seconds is None:
        return None
    try:
        return Timeouts(connect=seconds).connect
    except ValueError:
        raise ConfigError("connect_timeout must be a positive number of seconds, not %r" % (seconds,)) from None


def _check(given: Mapping[str, Any], barred: Iterable[str], server: Optional[str] = None) -> None:
    allowed = [name for name in Options._fields if name not in barred]
    for name in given:
        if name in _OF_THE_CONFIG:
            raise ConfigError("the option %r is not for a host: the config says it for each server" % name)
        if name in _OF_ONE_SERVER and name in barred:
            raise ConfigError("the option %r must know its server: give it by for_server" % name)
        if name not in allowed:
            near = difflib.get_close_matches(name, allowed, 1)
            raise ConfigError("unknown option %r" % name, nearest=near[0] if near else None, server=server)
