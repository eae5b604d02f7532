"""OpenAI chat completions: tools out, calls in, answers out."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, ClassVar, Dict

import pytest

from mcpsync.export import ToolCall, get_format

openai = get_format("openai")


def call(arguments: Any, name: Any = "mcp__fs__read", call_id: Any = "call_1") -> Any:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


class TestTool:
    SCHEMA: ClassVar[Dict[str, Any]] = {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
        "x-hint": 1,
    }

    def test_definition(self) -> None:
        assert openai.tool("mcp__fs__read", "Reads.", self.SCHEMA) == {
            "type": "function",
            "function": {"name": "mcp__fs__read", "description": "Reads.", "parameters": self.SCHEMA},
        }

    @pytest.mark.parametrize(
        "schema", [{}, None, True, {"type": "object"}, {"type": ["object", "null"]}, {"properties": 5}]
    )
    def test_schema_is_filled_to_an_object(self, schema: Any) -> None:
        entry = openai.tool("t", None, schema)
        assert entry["function"] == {"name": "t", "parameters": {"type": "object", "properties": {}}}

    def test_schema_is_a_copy(self) -> None:
        entry = openai.tool("t", "", self.SCHEMA)
        entry["function"]["parameters"]["properties"]["path"]["type"] = "number"
        assert self.SCHEMA["properties"] == {"path": {"type": "string"}}


class TestCall:
    def test_dict(self) -> None:
        assert openai.parse_call(call('{"path": "/a", "n": 1}')) == ToolCall(
            "call_1", "mcp__fs__read", {"path": "/a", "n": 1}
        )

    def test_object_of_the_official_package(self) -> None:
        function = SimpleNamespace(name="t", arguments='{"a": null}')
        parsed = openai.parse_call(SimpleNamespace(id="c", type="function", function=function))
        assert parsed == ToolCall("c", "t", {"a": None})

    @pytest.mark.parametrize("arguments", [None, "", "  \n", "{}", {}])
    def test_no_arguments(self, arguments: Any) -> None:
        assert openai.parse_call(call(arguments)) == ToolCall("call_1", "mcp__fs__read", {})

    def test_arguments_that_are_an_object_already_are_copied(self) -> None:
        given = {"a": 1}
        parsed = openai.parse_call(call(given))
        assert parsed.arguments == given
        assert parsed.arguments is not given

    def test_missing_id(self) -> None:
        assert openai.parse_call({"function": {"name": "t"}}).id == ""

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ('{"a": 1', "are not valid JSON: Expecting ',' delimiter (line 1, column 8)"),
            ("{'a': 1}", "are not valid JSON: Expecting property name enclosed in double quotes (line 1, column 2)"),
            ("[1]", "are valid JSON, but no object"),
            ('"text"', "are valid JSON, but no object"),
            ("null", "are valid JSON, but no object"),
            ('{"a": NaN}', "contain NaN, which JSON does not have"),
            ('{"a": -Infinity}', "contain -Infinity, which JSON does not have"),
            ('{"a": ' + "[" * 100_000, "are JSON with a number too long or a nesting too deep to be read"),
            (5, "are neither JSON text nor an object"),
        ],
    )
    def test_bad_arguments_are_said_to_the_model(self, arguments: Any, problem: str) -> None:
        parsed = openai.parse_call(call(arguments))
        assert parsed.arguments == {}
        assert parsed.problem == "The arguments of mcp__fs__read %s. Call it again with a JSON object." % problem
        assert openai.result(parsed, parsed.problem, is_error=True) == {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": "Error: " + parsed.problem,
        }

    @pytest.mark.parametrize(
        "other",
        [
            None,
            "mcp__fs__read",
            {},
            {"function": None},
            call("{}", name=None),
            {"id": "c", "type": "custom", "custom": {"name": "t", "input": "x"}},
            SimpleNamespace(id="c"),
        ],
    )
    def test_no_tool_call(self, other: Any) -> None:
        with pytest.raises(TypeError, match=r"no OpenAI tool call: expected an entry of message\.tool_calls"):
            openai.parse_call(other)


def test_result() -> None:
    assert openai.result(ToolCall("c", "t"), "the text") == {"role": "tool", "tool_call_id": "c", "content": "the text"}


def test_unknown_format_lists_those_that_are_known() -> None:
    with pytest.raises(ValueError, match="there is no format 'morse': known are anthropic, gemini, langchain, openai"):
        get_format("morse")
