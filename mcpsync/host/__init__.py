"""Many servers, coordinated: their tools for one model, under names of their own.

:class:`Host` is loaded when it is first asked for; the modules beside it that only compute stay cheap to import.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from mcpsync.host.approval import ApprovalRequest, approve_all
    from mcpsync.host.catalog import HostTool
    from mcpsync.host.gate import Gate, ServerRequest
    from mcpsync.host.host import Host
    from mcpsync.host.prompts import HostPrompt
    from mcpsync.host.roster import Changes
    from mcpsync.host.status import ServerStatus

__all__ = [
    "ApprovalRequest",
    "Changes",
    "Gate",
    "Host",
    "HostPrompt",
    "HostTool",
    "ServerRequest",
    "ServerStatus",
    "approve_all",
]

_HOME = {
    "ApprovalRequest": "mcpsync.host.approval",
    "Changes": "mcpsync.host.roster",
    "Gate": "mcpsync.host.gate",
    "Host": "mcpsync.host.host",
    "HostPrompt": "mcpsync.host.prompts",
    "HostTool": "mcpsync.host.catalog",
    "ServerRequest": "mcpsync.host.gate",
    "ServerStatus": "mcpsync.host.status",
    "approve_all": "mcpsync.host.approval",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError("module 'mcpsync.host' has no attribute %r" % name)
    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> List[str]:
    return sorted(__all__)
