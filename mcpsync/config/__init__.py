"""Config files of MCP hosts: :func:`load` makes a :class:`Config` of one.

It knows only types and errors: what a server is started with, or what its name becomes, is the host's affair.
"""

from __future__ import annotations

from mcpsync.config.inputs import Input
from mcpsync.config.load import load
from mcpsync.config.model import Config, Diagnostic, Policy, ServerConfig
from mcpsync.config.projects import Approvals, project_files

__all__ = ["Approvals", "Config", "Diagnostic", "Input", "Policy", "ServerConfig", "load", "project_files"]
