"""OpenAI: chat completions (``tools`` entries, ``tool_calls``, messages of the role ``tool``), and responses.

Nothing of the ``openai`` package is needed: its objects are read by their attributes. Many other servers speak
the same format, some loosely, so arguments may also be absent, empty or an object already.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Mapping, Optional, Sequence

from mcpsync.export.base import ToolCall, object_schema
from mcpsync.export.reading import part, tool_call

__all__ = ["OpenAIFormat", "OpenAIResponsesFormat"]


class OpenAIFormat:
    """The format ``openai``."""

    name = "openai"

    def tool(self, name: str, description: Optional[str], input_schema: Mapping[str, Any]) -> Dict[str, Any]:
        """An entry of ``tools``; ``strict`` is not set, since few schemas of MCP servers meet its rules."""
        function: Dict[str, Any] = {"name": name}
        if description:
            function["description"] = description
        function["parameters"] = copy.deepcopy(object_schema(input_schema))
        return {"type": "function", "function": function}

    def parse_call(self, call: Any) -> ToolCall:
        """An entry of ``tool_calls``, as a dict or as an object of the ``openai`` package.

        :raises TypeError: it has no function with a name, so it is no call of a function tool
        """
        function = part(call, "function")
        name = part(function, "name")
        if not isinstance(name, str):
            raise TypeError(
                "no OpenAI tool call: expected an entry of message.tool_calls, with id, function.name and "
                "function.arguments, and got a %s" % type(call).__name__
            )
        return tool_call(part(call, "id"), name, part(function, "arguments"))

    def result(self, call: ToolCall, text: str, *, is_error: bool = False) -> Dict[str, Any]:
        """A message of the role ``tool``; the format has no mark for errors, so the text says it."""
        content = "Error: " + text if is_error else text
        return {"role": "tool", "tool_call_id": call.id, "content": content}

    def messages(self, results: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """Each result is a message of its own."""
        return list(results)


class OpenAIResponsesFormat:
    """The format ``openai-responses``: items of the type ``function_call`` and ``function_call_output``."""

    name = "openai-responses"

    def tool(self, name: str, description: Optional[str], input_schema: Mapping[str, Any]) -> Dict[str, Any]:
        """An entry of ``tools``. ``strict`` is said to be off: here its absence would mean that it is on."""
        definition: Dict[str, Any] = {"type": "function", "name": name}
        if description:
            definition["description"] = description
        definition["parameters"] = copy.deepcopy(object_schema(input_schema))
        definition["strict"] = False
        return definition

    def parse_call(self, call: Any) -> ToolCall:
        """An item of ``response.output`` of the type ``function_call``, as a dict or as an object of the package.

        :raises TypeError: it is none
        """
        name = part(call, "name")
        if part(call, "type") != "function_call" or not isinstance(name, str):
            raise TypeError(
                "no OpenAI function call: expected an item of response.output of the type 'function_call', with "
                "call_id, name and arguments, and got a %s" % type(call).__name__
            )
        return tool_call(part(call, "call_id"), name, part(call, "arguments"))

    def result(self, call: ToolCall, text: str, *, is_error: bool = False) -> Dict[str, Any]:
        """An input item of the type ``function_call_output``; there is no mark for errors, so the text says it."""
        return {
            "type": "function_call_output",
            "call_id": call.id,
            "output": "Error: " + text if is_error else text,
        }

    def messages(self, results: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """Each result is an input item of its own."""
        return list(results)
