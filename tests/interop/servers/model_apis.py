"""What a host exports, judged by the official packages of the model APIs and by two agent frameworks.

Run where these are installed, with the checkout on PYTHONPATH: ``model_apis.py FORMAT COMMAND...`` starts the server,
has its exported tools validated, makes a recorded call of a model and has the answer validated. Prints the answer's
text as JSON; fails with a traceback.
"""

from __future__ import annotations

import json
import sys
from typing import Any, Callable, Dict, List, Tuple

from mcpsync import Host

NAME = "mcp__demo__echo"
ARGUMENTS = {"text": "from a model"}


def valid(form: Any, value: Any) -> Any:
    """The value, as the package's own type takes it; unknown keys are refused where the type can."""
    from pydantic import ConfigDict, TypeAdapter
    from typing_extensions import is_typeddict

    if is_typeddict(form):
        form.__pydantic_config__ = ConfigDict(extra="forbid")
    return TypeAdapter(form).validate_python(value)


def openai(host: Host) -> str:
    """Chat completions."""
    from openai.types.chat import ChatCompletion, ChatCompletionToolMessageParam
    from openai.types.chat.chat_completion_function_tool_param import ChatCompletionFunctionToolParam

    for tool in host.export_tools("openai"):
        valid(ChatCompletionFunctionToolParam, tool)
    call = {"id": "call_1", "type": "function", "function": {"name": NAME, "arguments": json.dumps(ARGUMENTS)}}
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": [call]}
    recorded = ChatCompletion.model_validate(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt",
            "choices": [{"index": 0, "finish_reason": "tool_calls", "logprobs": None, "message": message}],
        }
    )
    (answer,) = host.dispatch_all("openai", recorded.choices[0].message.tool_calls or [])
    valid(ChatCompletionToolMessageParam, answer)
    return str(answer["content"])


def openai_responses(host: Host) -> str:
    """Responses."""
    from openai.types.responses import FunctionToolParam, ResponseFunctionToolCall
    from openai.types.responses.response_input_param import FunctionCallOutput

    for tool in host.export_tools("openai-responses"):
        valid(FunctionToolParam, tool)
    call = ResponseFunctionToolCall(
        type="function_call", call_id="call_1", name=NAME, arguments=json.dumps(ARGUMENTS), id="fc_1"
    )
    (answer,) = host.dispatch_all("openai-responses", [call])
    valid(FunctionCallOutput, answer)
    return str(answer["output"])


def anthropic(host: Host) -> str:
    """Messages."""
    from anthropic.types import Message, MessageParam, ToolParam

    for tool in host.export_tools("anthropic"):
        valid(ToolParam, tool)
    recorded = Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
            "content": [
                {"type": "text", "text": "Let me see."},
                {"type": "tool_use", "id": "toolu_1", "name": NAME, "input": ARGUMENTS},
            ],
        }
    )
    calls = [block for block in recorded.content if block.type == "tool_use"]
    (answer,) = host.dispatch_all("anthropic", calls)
    valid(MessageParam, answer)
    return str(answer["content"][0]["content"])


def gemini(host: Host) -> str:
    """Function calls of google-genai."""
    from google.genai import types

    declarations = host.export_tools("gemini")
    config = types.GenerateContentConfig.model_validate({"tools": [{"functionDeclarations": declarations}]})
    assert config.tools is not None
    tool: Any = config.tools[0]
    assert [each.name for each in tool.function_declarations] == [each["name"] for each in declarations]
    assert tool.function_declarations[0].parameters_json_schema == declarations[0]["parametersJsonSchema"]
    recorded = types.GenerateContentResponse.model_validate(
        {"candidates": [{"content": {"role": "model", "parts": [{"functionCall": {"name": NAME, "args": ARGUMENTS}}]}}]}
    )
    (answer,) = host.dispatch_all("gemini", recorded.function_calls or [])
    content = types.Content.model_validate(answer)
    assert content.parts is not None
    response: Any = content.parts[0].function_response
    assert response.name == NAME
    return str(response.response["output"])


def langchain(host: Host) -> str:
    """Structured tools of LangChain."""
    from langchain_core.utils.function_calling import convert_to_openai_tool

    tools = {tool.name: tool for tool in host.export_tools("langchain")}
    assert convert_to_openai_tool(tools[NAME])["function"]["parameters"]["required"] == ["text"]
    message = tools["mcp__demo__fail"].invoke({"type": "tool_call", "id": "c", "name": "mcp__demo__fail", "args": {}})
    assert message.status == "error", message
    called = tools[NAME].invoke({"type": "tool_call", "id": "call_1", "name": NAME, "args": ARGUMENTS})
    assert called.tool_call_id == "call_1"
    return str(called.content)


def smolagents(host: Host) -> str:
    """Tools of smolagents."""
    tools = {tool.name: tool for tool in host.export_tools("smolagents")}
    assert tools[NAME].inputs["text"]["type"] == "string"
    try:
        tools["mcp__demo__fail"]()
    except RuntimeError as error:
        assert str(error) == "this tool always fails"
    else:
        raise AssertionError("a failing tool did not raise")
    return str(tools[NAME](**ARGUMENTS))


CHECKS: Dict[str, Callable[[Host], str]] = {
    "openai": openai,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "langchain": langchain,
    "smolagents": smolagents,
}


def main() -> None:
    """Do one check."""
    form, *command = sys.argv[1:]
    entry: Tuple[str, List[str]] = command[0], command[1:]
    servers = {"demo": {"command": entry[0], "args": entry[1], "trust_level": "trusted"}}
    with Host.from_config({"mcpServers": servers}, context_tools="all", schema_cache=False) as host:
        print(json.dumps(CHECKS[form](host)))


if __name__ == "__main__":
    main()
