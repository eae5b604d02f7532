"""Each field of each type in each revision's schema has an attribute, and nothing is required that a revision
leaves out."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any, Dict, Iterator, Tuple

import pytest

from mcpsync import types

SCHEMAS = Path(__file__).parents[1] / "schemas"
REVISIONS = sorted(path.parent.name for path in SCHEMAS.glob("*/schema.json"))

OUTSIDE = {"task", "resultType"}  # of the tasks extension and of the protocol's core: kept in extra

OURS = {
    "Annotations": "Annotations",
    "AudioContent": "AudioContent",
    "BlobResourceContents": "ResourceContents",
    "CompleteResult": "CompletionResult",
    "CreateMessageRequest": "SamplingRequest",
    "CreateMessageRequestParams": "SamplingRequest",
    "CreateMessageResult": "SamplingResult",
    "ElicitRequest": "ElicitationRequest",
    "ElicitRequestFormParams": "ElicitationRequest",
    "ElicitRequestURLParams": "ElicitationRequest",
    "ElicitResult": "ElicitationResult",
    "EmbeddedResource": "EmbeddedResource",
    "GetPromptResult": "PromptResult",
    "Icon": "Icon",
    "ImageContent": "ImageContent",
    "Implementation": "Implementation",
    "LoggingMessageNotification": "LogMessage",
    "LoggingMessageNotificationParams": "LogMessage",
    "ModelHint": "ModelHint",
    "ModelPreferences": "ModelPreferences",
    "ProgressNotification": "Progress",
    "ProgressNotificationParams": "Progress",
    "Prompt": "Prompt",
    "PromptArgument": "PromptArgument",
    "PromptMessage": "PromptMessage",
    "PromptReference": "PromptReference",
    "ReadResourceResult": "ReadResult",
    "Resource": "Resource",
    "ResourceLink": "ResourceLink",
    "ResourceReference": "ResourceTemplateReference",
    "ResourceTemplate": "ResourceTemplate",
    "ResourceTemplateReference": "ResourceTemplateReference",
    "Root": "Root",
    "SamplingMessage": "SamplingMessage",
    "TextContent": "TextContent",
    "TextResourceContents": "ResourceContents",
    "Tool": "Tool",
    "ToolAnnotations": "ToolAnnotations",
    "ToolChoice": "ToolChoice",
    "ToolExecution": "ToolExecution",
    "ToolResultContent": "ToolResultContent",
    "ToolUseContent": "ToolUseContent",
}


def _definitions(revision: str) -> Iterator[Tuple[str, Dict[str, Any]]]:
    document = json.loads((SCHEMAS / revision / "schema.json").read_text("utf-8"))
    definitions = document.get("$defs") or document["definitions"]
    for name, definition in definitions.items():
        if name not in OURS:
            continue
        schema = definition
        if name.endswith(("Request", "Notification")):
            schema = definition["properties"]["params"]
        if "properties" in schema:  # the parameters have a definition of their own in later revisions
            yield OURS[name], schema
    yield "Completion", definitions["CompleteResult"]["properties"]["completion"]


def _key(name: str) -> str:
    head, *tail = name.split("_")
    return "_meta" if name == "meta" else head + "".join(map(str.capitalize, tail))


def test_all_revisions_are_there() -> None:
    assert REVISIONS == ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"]


@pytest.mark.parametrize("revision", REVISIONS)
def test_fields(revision: str) -> None:
    seen = 0
    for name, schema in _definitions(revision):
        fields = dataclasses.fields(getattr(types, name))
        assert set(schema["properties"]) - OUTSIDE <= {_key(field.name) for field in fields}, name
        required = {
            _key(field.name)
            for field in fields
            if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        }
        assert required <= set(schema.get("required", ())), name
        seen += 1
    assert seen > 20
