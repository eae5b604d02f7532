"""The data types of MCP, from 2024-11-05 to 2026-07-28, as a client meets them.

Each is loaded, with its group, when it is first asked for: all of them at once would cost every program that
imports mcpsync several times what a plain tool call needs.

They read and write the JSON objects of the protocol with ``from_wire`` and ``to_wire``; attributes are the
fields there in snake_case, ``_meta`` is ``meta``, and fields unknown to this library are in ``extra``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Dict, List

if TYPE_CHECKING:
    from mcpsync.types.capabilities import ClientCapabilities, ServerCapabilities
    from mcpsync.types.common import Annotations, Icon, Implementation, Role
    from mcpsync.types.completion import Completion, CompletionResult, PromptReference, ResourceTemplateReference
    from mcpsync.types.content import (
        AudioContent,
        ContentBlock,
        EmbeddedResource,
        ImageContent,
        ResourceLink,
        SamplingContentBlock,
        TextContent,
        ToolResultContent,
        ToolUseContent,
        UnknownContent,
    )
    from mcpsync.types.elicitation import ElicitationRequest, ElicitationResult
    from mcpsync.types.extension import Extension
    from mcpsync.types.notifications import LoggingLevel, LogMessage, Progress
    from mcpsync.types.prompts import Prompt, PromptArgument, PromptMessage, PromptResult
    from mcpsync.types.resources import ReadResult, Resource, ResourceContents, ResourceTemplate
    from mcpsync.types.result import ToolResult
    from mcpsync.types.roots import Root
    from mcpsync.types.sampling import (
        ModelHint,
        ModelPreferences,
        SamplingMessage,
        SamplingRequest,
        SamplingResult,
        ToolChoice,
    )
    from mcpsync.types.tools import Tool, ToolAnnotations, ToolExecution
    from mcpsync.types.wire import JsonObject

__all__ = [
    "Annotations",
    "AudioContent",
    "ClientCapabilities",
    "Completion",
    "CompletionResult",
    "ContentBlock",
    "ElicitationRequest",
    "ElicitationResult",
    "EmbeddedResource",
    "Extension",
    "Icon",
    "ImageContent",
    "Implementation",
    "JsonObject",
    "LogMessage",
    "LoggingLevel",
    "ModelHint",
    "ModelPreferences",
    "Progress",
    "Prompt",
    "PromptArgument",
    "PromptMessage",
    "PromptReference",
    "PromptResult",
    "ReadResult",
    "Resource",
    "ResourceContents",
    "ResourceLink",
    "ResourceTemplate",
    "ResourceTemplateReference",
    "Role",
    "Root",
    "SamplingContentBlock",
    "SamplingMessage",
    "SamplingRequest",
    "SamplingResult",
    "ServerCapabilities",
    "TextContent",
    "Tool",
    "ToolAnnotations",
    "ToolChoice",
    "ToolExecution",
    "ToolResult",
    "ToolResultContent",
    "ToolUseContent",
    "UnknownContent",
]

_GROUPS = {
    "capabilities": (
        "ClientCapabilities",
        "ServerCapabilities",
    ),
    "common": (
        "Annotations",
        "Icon",
        "Implementation",
        "Role",
    ),
    "completion": (
        "Completion",
        "CompletionResult",
        "PromptReference",
        "ResourceTemplateReference",
    ),
    "content": (
        "AudioContent",
        "ContentBlock",
        "EmbeddedResource",
        "ImageContent",
        "ResourceLink",
        "SamplingContentBlock",
        "TextContent",
        "ToolResultContent",
        "ToolUseContent",
        "UnknownContent",
    ),
    "elicitation": (
        "ElicitationRequest",
        "ElicitationResult",
    ),
    "extension": ("Extension",),
    "notifications": (
        "LogMessage",
        "LoggingLevel",
        "Progress",
    ),
    "prompts": (
        "Prompt",
        "PromptArgument",
        "PromptMessage",
        "PromptResult",
    ),
    "resources": (
        "ReadResult",
        "Resource",
        "ResourceContents",
        "ResourceTemplate",
    ),
    "result": ("ToolResult",),
    "roots": ("Root",),
    "sampling": (
        "ModelHint",
        "ModelPreferences",
        "SamplingMessage",
        "SamplingRequest",
        "SamplingResult",
        "ToolChoice",
    ),
    "tools": (
        "Tool",
        "ToolAnnotations",
        "ToolExecution",
    ),
    "wire": ("JsonObject",),
}
_HOME: Dict[str, str] = {name: group for group, names in _GROUPS.items() for name in names}


def __getattr__(name: str) -> Any:
    group = _HOME.get(name)
    if group is None:
        raise AttributeError("module 'mcpsync.types' has no attribute %r" % name)
    value = globals()[name] = getattr(import_module("mcpsync.types." + group), name)
    return value


def __dir__() -> List[str]:
    return sorted({*globals(), *__all__})
