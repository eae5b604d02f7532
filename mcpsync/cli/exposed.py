"""Tools called by the name that a model sees, ``mcp__<server>__<tool>``: which server that is, and what it calls it."""

from __future__ import annotations

import re
from typing import List, Tuple

from mcpsync.cli.arguments import Invocation, closest
from mcpsync.cli.servers import Server
from mcpsync.errors import ConfigError, McpError
from mcpsync.host.names import exposed_name

__all__ = ["is_exposed", "likely", "resolved"]

_PREFIX = "mcp__"
_KEPT = 20
"""Characters of a server's name that every exposed name keeps, however long the tool's is."""


def is_exposed(invocation: Invocation) -> bool:
    """Whether a tool is called by such a name, and the name alone says which server is meant."""
    return (
        invocation.command == "call"
        and invocation.words[0].startswith(_PREFIX)
        and invocation.config is not None
        and invocation.server is None
    )


def likely(servers: List[Server], name: str) -> List[Server]:
    """Those whose name the exposed one can begin with: only they need to be started.

    :raises ConfigError: there is none
    """
    rest = name[len(_PREFIX) :]
    found = [each for each in servers if rest.startswith(re.sub(r"[^A-Za-z0-9_-]+", "_", each.name)[:_KEPT])]
    if not found:
        known = ", ".join(each.name for each in servers)
        raise ConfigError("no server goes with the name %r: there are %s" % (name, known))
    return found


def resolved(servers: List[Server], name: str) -> Tuple[Server, str]:
    """The server, and its own name for the tool.

    :raises ConfigError: none of them has it
    :raises McpError: why the only one could not be asked
    """
    names: List[str] = []
    problem = None
    for server in servers:
        try:
            tools = server.open().list_tools()
        except McpError as error:
            problem = problem or error.located(server.name)
            continue
        for tool in tools:
            exposed = exposed_name(server.name, tool.name)
            if exposed == name:
                return server, tool.name
            names.append(exposed)
    if problem is not None:
        raise problem
    raise ConfigError("there is no tool %r" % name, nearest=closest(name, names))
