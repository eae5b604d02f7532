"""What can be told of one server of a host, whatever has become of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional, Tuple

from mcpsync.config.model import ServerConfig

__all__ = ["ServerStatus"]


@dataclass(frozen=True)
class ServerStatus:
    """One server at one moment.

    :ivar name: as the config has it
    :ivar state: ``new``, ``connecting``, ``ready``, ``waiting`` (for the next attempt), ``down`` (no attempt is
        planned), ``dormant`` (closed for idleness, the next call opens it), ``needs_login`` (only signing in helps) or
        ``closed``; for a server that is never started ``disabled`` (the config says so), ``denied``
        (the policy says so) or ``invalid`` (its config is wrong)
    :ivar ready: its tools are listed and can be called
    :ivar transport: ``stdio``, ``http``, ``sse``, ``auto``, or empty where the config does not say
    :ivar protocol_version: the revision that was agreed on, None while not connected
    :ivar tools: how many of its tools the model can be given, ready or not
    :ivar error: what is wrong, in one line; None if nothing is
    :ivar next_attempt: seconds until the next attempt to connect, None if none is planned
    :ivar refused: the tools that got no name, each with the reason
    :ivar config: its entry in the config
    :ivar source: who brought it: ``user``, ``host`` or ``plugin``; the program says so, never the file
    :ivar file: the config file, None for what was given in memory
    """

    name: str
    state: str
    ready: bool
    transport: str
    protocol_version: Optional[str]
    tools: int
    error: Optional[str]
    next_attempt: Optional[float]
    refused: Tuple[str, ...]
    config: ServerConfig
    source: str = "user"
    file: Optional[str] = None

    @property
    def target(self) -> str:
        """The program, or scheme and host of the URL: what can be shown of where it leads. No path, which may be a
        secret."""
        return self.config.target
