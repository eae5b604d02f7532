"""What the types offer beyond their fields."""

from __future__ import annotations

import pytest

from mcpsync.errors import InvalidMessage
from mcpsync.types import (
    AudioContent,
    ClientCapabilities,
    ElicitationRequest,
    ElicitationResult,
    ImageContent,
    PromptMessage,
    ReadResult,
    ResourceContents,
    SamplingMessage,
    SamplingResult,
    ServerCapabilities,
    TextContent,
    ToolResultContent,
    ToolUseContent,
    UnknownContent,
)


@pytest.mark.parametrize("cls", [ImageContent, AudioContent])
def test_data_bytes(cls: type) -> None:
    assert cls("aGVs\nbG8=", "any/type").data_bytes == b"hello"
    with pytest.raises(InvalidMessage, match=cls.__name__ + ".data: not base64"):
        cls("aGVsbG8", "any/type").data_bytes
    with pytest.raises(InvalidMessage, match="not base64"):
        cls("\u00e9", "any/type").data_bytes


def test_resource_contents_bytes() -> None:
    assert ResourceContents("u", blob="aGVsbG8=").data_bytes == b"hello"
    assert ResourceContents("u", text="h\u00e9").data_bytes == b"h\xc3\xa9"
    with pytest.raises(InvalidMessage, match=r"ResourceContents\.blob: not base64"):
        ResourceContents("u", blob="x").data_bytes


def test_read_result_text() -> None:
    contents = [{"uri": "a", "text": "1"}, {"uri": "b", "blob": ""}, {"uri": "c", "text": "2"}]
    result = ReadResult.from_wire({"contents": contents, "ttlMs": 5, "cacheScope": "public"})
    assert (result.text, result.ttl_ms, result.cache_scope) == ("1\n2", 5, "public")


def test_a_block_of_an_unknown_type_is_kept() -> None:
    message = PromptMessage.from_wire({"role": "user", "content": {"type": "hologram", "depth": 3}})
    assert message.content == UnknownContent("hologram", extra={"depth": 3})


def test_tool_use_has_its_place_in_sampling_only() -> None:
    use = {"type": "tool_use", "id": "1", "name": "n", "input": {"a": 1}}
    assert SamplingMessage.from_wire({"role": "assistant", "content": use}).content == ToolUseContent(
        "1", "n", {"a": 1}
    )
    assert isinstance(PromptMessage.from_wire({"role": "assistant", "content": use}).content, UnknownContent)


def test_nested_without_end() -> None:
    block: object = {"type": "text", "text": "x"}
    for _ in range(5000):
        block = {"type": "tool_result", "toolUseId": "1", "content": [block]}
    content = SamplingMessage.from_wire({"role": "user", "content": block}).content
    assert isinstance(content, ToolResultContent)
    assert isinstance(content.content[0], UnknownContent)
    assert len(repr(content)) < 1000


def test_sampling_content_one_or_many() -> None:
    one = SamplingMessage("user", TextContent("a"))
    many = SamplingMessage("user", [TextContent("a"), ImageContent("", "image/png"), TextContent("b")])
    assert one.to_wire()["content"] == {"type": "text", "text": "a"}
    assert [block["type"] for block in many.to_wire()["content"]] == ["text", "image", "text"]
    assert one.blocks == [TextContent("a")]
    assert (one.text, many.text) == ("a", "a\nb")
    assert SamplingMessage.from_wire(many.to_wire()) == many


def test_sampling_result() -> None:
    result = SamplingResult(TextContent("hi"), "some-model", stop_reason="endTurn")
    assert result.to_wire() == {
        "role": "assistant",
        "content": {"type": "text", "text": "hi"},
        "model": "some-model",
        "stopReason": "endTurn",
    }


def test_elicitation() -> None:
    assert ElicitationResult.accept({"a": 1}).to_wire() == {"action": "accept", "content": {"a": 1}}
    assert ElicitationResult.accept().to_wire() == {"action": "accept"}
    assert ElicitationResult.decline().to_wire() == {"action": "decline"}
    assert ElicitationResult.cancel().to_wire() == {"action": "cancel"}
    form = ElicitationRequest.from_wire({"message": "m", "requestedSchema": {"type": "object"}})
    assert form.mode == "form"  # 2025-06-18 has no mode
    assert ElicitationRequest.from_wire({"message": "m", "mode": "dance"}).mode == "dance"


def test_server_capabilities() -> None:
    nothing = ServerCapabilities({})
    names = [name for name in dir(ServerCapabilities) if isinstance(getattr(ServerCapabilities, name), property)]
    switches = [name for name in names if name not in ("experimental", "extensions")]
    assert len(switches) == 9
    assert not any(getattr(nothing, name) for name in names)
    everything = ServerCapabilities(
        {
            "tools": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "prompts": {"listChanged": True},
            "logging": {},
            "completions": {},
            "tasks": {"requests": {"tools": {"call": {}}}},
            "extensions": {"io.example/x": {"k": 1}},
            "experimental": {"y": {}},
        }
    )
    assert all(getattr(everything, name) for name in names)
    assert everything.has("tasks", "requests", "tools", "call")
    assert not everything.has("tasks", "requests", "tools", "call", "deeper")
    assert everything.extensions == {"io.example/x": {"k": 1}}
    junk = ServerCapabilities({"tools": False, "resources": None, "prompts": 1, "extensions": []})
    assert (junk.tools, junk.resources, junk.prompts, junk.prompts_list_changed) == (False, False, True, False)
    assert junk.extensions == {}


def test_client_capabilities() -> None:
    assert not ClientCapabilities({}).elicitation_form
    empty = ClientCapabilities({"elicitation": {}, "sampling": {}, "roots": {}})
    assert (empty.elicitation_form, empty.elicitation_url) == (True, False)
    assert (empty.sampling, empty.sampling_tools, empty.sampling_context) == (True, False, False)
    assert (empty.roots, empty.roots_list_changed) == (True, False)
    url = ClientCapabilities({"elicitation": {"url": {}}, "sampling": {"tools": {}, "context": {}}})
    assert (url.elicitation_form, url.elicitation_url) == (False, True)
    assert (url.sampling_tools, url.sampling_context) == (True, True)
    both = ClientCapabilities({"elicitation": {"form": {}, "url": {}}, "roots": {"listChanged": True}})
    assert (both.elicitation_form, both.elicitation_url, both.roots_list_changed) == (True, True, True)
