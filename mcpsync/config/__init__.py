"""Config files of MCP hosts: :func:`load` makes a :class:`Config` of one.

It knows only types and errors: what a server is started with, or what its name becomes, is the host's affair.
"""

from __future__ import annotations

from mcpsync.config.load import load
from mcpsync.config.model import Config, Diagnostic, Policy, ServerConfig

__all__ = ["Config", "Diagnostic", "Policy", "ServerConfig", "load"]
