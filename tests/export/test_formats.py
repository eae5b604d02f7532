"""The formats beside OpenAI's chat completions: tools out, calls in, results out, whole messages."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Dict

import pytest

from mcpsync.export import FORMATS, ToolCall, get_format

SCHEMA: Dict[str, Any] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
NAME = "mcp__fs__read"
CALLS: Dict[str, Dict[str, Any]] = {
    "openai": {"id": "c1", "type": "function", "function": {"name": NAME, "arguments": '{"path": "/a"}'}},
    "openai-responses": {"type": "function_call", "call_id": "c1", "name": NAME, "arguments": '{"path": "/a"}'},
    "anthropic": {"type": "tool_use", "id": "c1", "name": NAME, "input": {"path": "/a"}},
    "gemini": {"functionCall": {"id": "c1", "name": NAME, "args": {"path": "/a"}}},
}


def as_object(value: Any) -> Any:
    """Like an object of an official package: parts as attributes, arguments as they are."""
    if not isinstance(value, dict):
        return value
    return SimpleNamespace(
        **{key: inner if key in ("input", "args") else as_object(inner) for key, inner in value.items()}
    )


@pytest.mark.parametrize(
    ("name", "tool"),
    [
        (
            "openai-responses",
            {"type": "function", "name": NAME, "description": "Reads.", "parameters": SCHEMA, "strict": False},
        ),
        ("anthropic", {"name": NAME, "description": "Reads.", "input_schema": SCHEMA}),
        ("gemini", {"name": NAME, "description": "Reads.", "parametersJsonSchema": SCHEMA}),
    ],
)
def test_a_tool(name: str, tool: Dict[str, Any]) -> None:
    form = get_format(name)
    assert form.tool(NAME, "Reads.", SCHEMA) == tool
    bare = form.tool(NAME, None, {})
    assert "description" not in bare
    assert {"type": "object", "properties": {}} in list(bare.values())


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_a_call_as_a_dict_and_as_an_object(name: str) -> None:
    form = get_format(name)
    expected = ToolCall("c1", NAME, {"path": "/a"})
    assert form.parse_call(CALLS[name]) == expected
    assert form.parse_call(as_object(CALLS[name])) == expected


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("wrong", [None, {}, {"type": "text", "text": "x"}, "text", SimpleNamespace(type="text")])
def test_no_call_at_all_is_the_programs_mistake(name: str, wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"^no (OpenAI|Anthropic|Gemini) (tool|function) call: expected"):
        get_format(name).parse_call(wrong)


@pytest.mark.parametrize(
    ("name", "key"), [("openai-responses", "arguments"), ("anthropic", "input"), ("gemini", "args")]
)
def test_arguments_that_are_none_are_the_models_mistake(name: str, key: str) -> None:
    call = {**CALLS[name].get("functionCall", CALLS[name]), key: [1]}
    problem = get_format(name).parse_call(call).problem
    assert problem is not None
    assert problem.startswith("The arguments of %s are neither" % NAME)


def test_gemini_calls_may_have_no_id() -> None:
    form = get_format("gemini")
    call = form.parse_call({"name": NAME, "args": None})
    assert call == ToolCall("", NAME, {})
    assert form.result(call, "x") == {"functionResponse": {"name": NAME, "response": {"output": "x"}}}


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        (
            "openai-responses",
            {"type": "function_call_output", "call_id": "c1", "output": "text"},
            {"type": "function_call_output", "call_id": "c1", "output": "Error: text"},
        ),
        (
            "anthropic",
            {"type": "tool_result", "tool_use_id": "c1", "content": "text"},
            {"type": "tool_result", "tool_use_id": "c1", "content": "text", "is_error": True},
        ),
        (
            "gemini",
            {"functionResponse": {"id": "c1", "name": NAME, "response": {"output": "text"}}},
            {"functionResponse": {"id": "c1", "name": NAME, "response": {"error": "text"}}},
        ),
    ],
)
def test_a_result(name: str, good: Dict[str, Any], bad: Dict[str, Any]) -> None:
    form = get_format(name)
    assert form.result(ToolCall("c1", NAME), "text") == good
    assert form.result(ToolCall("c1", NAME), "text", is_error=True) == bad


def test_whole_messages() -> None:
    results: Any = [{"a": 1}, {"b": 2}]
    assert get_format("openai").messages(results) == results
    assert get_format("openai-responses").messages(results) == results
    assert get_format("anthropic").messages(results) == [{"role": "user", "content": results}]
    assert get_format("gemini").messages(results) == [{"role": "user", "parts": results}]
    assert [get_format(name).messages([]) for name in FORMATS] == [[]] * len(FORMATS)
