"""The types under test, and the official examples of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Dict, Iterator, List, Tuple

from mcpsync import types

DATA = Path(__file__).parent / "data"

ALIASES = {"ContentBlock", "JsonObject", "LoggingLevel", "Role", "SamplingContentBlock"}
DECLARED = {"Extension"}
"""What users make and no message holds."""
CLASSES = [getattr(types, name) for name in types.__all__ if name not in ALIASES | DECLARED]

# Folder of the examples: type, and the path to the objects of that type ("*": each of a list).
_OF_TYPE: Dict[str, List[Tuple[str, Tuple[str, ...]]]] = {
    "AudioContent": [("AudioContent", ())],
    "BlobResourceContents": [("ResourceContents", ())],
    "CallToolResult": [("ToolResult", ())],
    "ClientCapabilities": [("ClientCapabilities", ())],
    "CompleteRequestParams": [("PromptReference", ("ref",))],
    "CompleteResult": [("CompletionResult", ())],
    "CreateMessageRequestParams": [("SamplingRequest", ())],
    "CreateMessageResult": [("SamplingResult", ())],
    "DiscoverResult": [
        ("ServerCapabilities", ("capabilities",)),
        ("Implementation", ("_meta", "io.modelcontextprotocol/serverInfo")),
    ],
    "ElicitRequestFormParams": [("ElicitationRequest", ())],
    "ElicitRequestURLParams": [("ElicitationRequest", ())],
    "ElicitResult": [("ElicitationResult", ())],
    "EmbeddedResource": [("EmbeddedResource", ())],
    "GetPromptResult": [("PromptResult", ())],
    "ImageContent": [("ImageContent", ())],
    "ListPromptsResult": [("Prompt", ("prompts", "*"))],
    "ListResourceTemplatesResult": [("ResourceTemplate", ("resourceTemplates", "*"))],
    "ListResourcesResult": [("Resource", ("resources", "*"))],
    "ListRootsResult": [("Root", ("roots", "*"))],
    "ListToolsResult": [("Tool", ("tools", "*"))],
    "LoggingMessageNotificationParams": [("LogMessage", ())],
    "ModelPreferences": [("ModelPreferences", ())],
    "ProgressNotificationParams": [("Progress", ())],
    "ReadResourceResult": [("ReadResult", ())],
    "Resource": [("Resource", ())],
    "ResourceLink": [("ResourceLink", ())],
    "Root": [("Root", ())],
    "SamplingMessage": [("SamplingMessage", ())],
    "ServerCapabilities": [("ServerCapabilities", ())],
    "TextContent": [("TextContent", ())],
    "TextResourceContents": [("ResourceContents", ())],
    "Tool": [("Tool", ())],
    "ToolResultContent": [("ToolResultContent", ())],
    "ToolUseContent": [("ToolUseContent", ())],
}


def _at(value: Any, path: Tuple[str, ...]) -> Iterator[Any]:
    if not path:
        yield value
    elif path[0] == "*":
        for item in value:
            yield from _at(item, path[1:])
    else:
        yield from _at(value[path[0]], path[1:])


def _collect() -> Iterator[Tuple[str, Any, Dict[str, Any]]]:
    for folder in sorted((DATA / "examples").iterdir()):
        for file in sorted(folder.iterdir()):
            document = json.loads(file.read_text("utf-8"))
            for type_name, path in _OF_TYPE[folder.name]:
                for wire in _at(document, path):
                    yield "%s/%s-%s" % (folder.name, file.stem, type_name), getattr(types, type_name), wire


EXAMPLES = list(_collect())

# Types of which the specification has no example of their own.
HAND_MADE: List[Tuple[Any, Dict[str, Any]]] = [
    (types.Annotations, {"audience": ["user"], "priority": 1, "lastModified": "2025-01-12T15:00:58Z"}),
    (types.Completion, {"values": ["a", "b"], "total": 2, "hasMore": False}),
    (types.Icon, {"src": "https://a/i.png", "mimeType": "image/png", "sizes": ["48x48"], "theme": "dark"}),
    (
        types.Implementation,
        {"name": "n", "version": "1", "title": "T", "websiteUrl": "https://a", "icons": [{"src": "data:,"}]},
    ),
    (types.ModelHint, {"name": "claude"}),
    (
        types.PromptArgument,
        {"name": "code", "title": "Code", "description": "What to review", "required": True},
    ),
    (types.PromptMessage, {"role": "user", "content": {"type": "text", "text": "hello"}}),
    (types.ResourceTemplateReference, {"type": "ref/resource", "uri": "file:///{path}"}),
    (
        types.Tool,
        {
            "name": "all",
            "inputSchema": {"type": "object"},
            "annotations": {
                "title": "All",
                "readOnlyHint": True,
                "destructiveHint": False,
                "idempotentHint": True,
                "openWorldHint": False,
            },
            "execution": {"taskSupport": "optional"},
            "icons": [{"src": "https://a/i.png"}],
            "_meta": {"k": 1},
        },
    ),
    (types.ToolAnnotations, {"title": "T", "readOnlyHint": False}),
    (types.ToolChoice, {"mode": "required"}),
    (types.ToolExecution, {"taskSupport": "required"}),
    (types.UnknownContent, {"type": "hologram", "depth": 3, "_meta": {"k": 1}}),
    (
        types.ElicitationRequest,
        {"mode": "url", "message": "Sign in", "url": "https://a/login", "elicitationId": "e-1"},
    ),
    (types.SamplingRequest, {"messages": [], "maxTokens": 5, "tools": [], "toolChoice": {"mode": "none"}, "task": {}}),
]

SAMPLES: List[Tuple[str, Any, Dict[str, Any]]] = EXAMPLES + [(made[0].__name__, *made) for made in HAND_MADE]
