"""The prompts of all servers of a host."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, List, Mapping, Optional

from mcpsync.errors import ConfigError, McpError

if TYPE_CHECKING:
    from mcpsync.client import Client
    from mcpsync.client.features import Timeout
    from mcpsync.types import Prompt

__all__ = ["HostPrompt", "gathered_prompts"]

logger = logging.getLogger("mcpsync")


@dataclass(frozen=True)
class HostPrompt:
    """A prompt of one of the servers.

    :ivar server: the server's name in the config
    :ivar prompt: what the server says of it
    """

    server: str
    prompt: Prompt


def gathered_prompts(clients: Mapping[str, Client], server: Optional[str], timeout: Timeout) -> List[HostPrompt]:
    """The prompts of these clients, in their order.

    :param server: of this one alone
    :raises ConfigError: it is not among them
    """
    if server is not None:
        if server not in clients:
            raise ConfigError("there is no server %.100r connected" % server)
        return [HostPrompt(server, prompt) for prompt in clients[server].list_prompts(timeout=timeout)]
    found: List[HostPrompt] = []
    for name, client in clients.items():
        try:
            found += [HostPrompt(name, prompt) for prompt in client.list_prompts(timeout=timeout)]
        except McpError as error:  # one server must not cost the prompts of the others
            logger.warning("mcpsync: host: no prompts of server %r: %s", name, error)
    return found
