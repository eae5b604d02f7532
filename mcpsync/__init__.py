"""MCP for code that blocks: a synchronous client for the Model Context Protocol.

::

    import mcpsync

    with mcpsync.connect(["npx", "-y", "@modelcontextprotocol/server-everything"]) as client:
        for tool in client.list_tools():
            print(tool.name, "-", tool.description)
        print(client.call_tool("get-sum", {"a": 1, "b": 2}).text)

Everything is loaded when it is first used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, List

if TYPE_CHECKING:
    from mcpsync import types
    from mcpsync.auth.oauth import OAuth
    from mcpsync.client import Client, connect
    from mcpsync.client.validating import Validation
    from mcpsync.connection.backoff import Backoff
    from mcpsync.connection.future import CallFuture
    from mcpsync.connection.hooks import Hook
    from mcpsync.connection.settings import Limits
    from mcpsync.core.cache import ResponseCache
    from mcpsync.deadline import Timeouts
    from mcpsync.errors import (
        ApprovalRefused,
        ArgumentsMismatch,
        AuthError,
        ClientClosed,
        ConfigError,
        ConnectFailed,
        ConnectionLost,
        ConnectRejected,
        ConnectTimeout,
        HttpError,
        InsufficientScope,
        InvalidMessage,
        InvalidParams,
        IssuerMismatch,
        LimitOverrun,
        McpError,
        MessageTooLarge,
        MethodNotFound,
        NeedsLogin,
        Overloaded,
        PageLimit,
        PolicyDenied,
        ProcessExited,
        ProtocolError,
        RegistrationRejected,
        RequestCancelled,
        RequestTimeout,
        ResourceNotFound,
        RpcError,
        SchemaMismatch,
        ToolBlocked,
        ToolError,
        TransportError,
        UrlElicitationRequired,
        VersionMismatch,
    )
    from mcpsync.host import Host
    from mcpsync.types.extension import Extension

__version__ = "0.1.0"

_HOME = {
    "Backoff": "mcpsync.connection.backoff",
    "CallFuture": "mcpsync.connection.future",
    "Client": "mcpsync.client",
    "Extension": "mcpsync.types.extension",
    "Hook": "mcpsync.connection.hooks",
    "Host": "mcpsync.host",
    "Limits": "mcpsync.connection.settings",
    "OAuth": "mcpsync.auth.oauth",
    "ResponseCache": "mcpsync.core.cache",
    "Timeouts": "mcpsync.deadline",
    "Validation": "mcpsync.client.validating",
    "connect": "mcpsync.client",
}

__all__ = [
    "ApprovalRefused",
    "ArgumentsMismatch",
    "AuthError",
    "Backoff",
    "CallFuture",
    "Client",
    "ClientClosed",
    "ConfigError",
    "ConnectFailed",
    "ConnectRejected",
    "ConnectTimeout",
    "ConnectionLost",
    "Extension",
    "Hook",
    "Host",
    "HttpError",
    "InsufficientScope",
    "InvalidMessage",
    "InvalidParams",
    "IssuerMismatch",
    "LimitOverrun",
    "Limits",
    "McpError",
    "MessageTooLarge",
    "MethodNotFound",
    "NeedsLogin",
    "OAuth",
    "Overloaded",
    "PageLimit",
    "PolicyDenied",
    "ProcessExited",
    "ProtocolError",
    "RegistrationRejected",
    "RequestCancelled",
    "RequestTimeout",
    "ResourceNotFound",
    "ResponseCache",
    "RpcError",
    "SchemaMismatch",
    "Timeouts",
    "ToolBlocked",
    "ToolError",
    "TransportError",
    "UrlElicitationRequired",
    "Validation",
    "VersionMismatch",
    "connect",
    "types",
]


def __getattr__(name: str) -> Any:
    if name == "types":
        return import_module("mcpsync.types")
    if name not in __all__:
        raise AttributeError("module 'mcpsync' has no attribute %r" % name)
    home = _HOME.get(name, "mcpsync.errors")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> List[str]:
    return sorted(__all__)
