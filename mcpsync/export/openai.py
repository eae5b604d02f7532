"""OpenAI chat completions: ``tools`` entries, ``tool_calls``, messages of the role ``tool``.

Nothing of the ``openai`` package is needed: its objects are read by their attributes. Many other servers speak
the same format, some loosely, so arguments may also be absent, empty or an object already.
"""

from __future__ import annotations

import copy
import json
from typing import Any, Dict, Mapping, NoReturn, Optional

from mcpsync.export.base import ToolCall, object_schema

__all__ = ["OpenAIFormat"]


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
        function = _part(call, "function")
        name = _part(function, "name")
        if not isinstance(name, str):
            raise TypeError(
                "no OpenAI tool call: expected an entry of message.tool_calls, with id, function.name and "
                "function.arguments, and got a %s" % type(call).__name__
            )
        call_id = _part(call, "id")
        call_id = call_id if isinstance(call_id, str) else ""
        try:
            return ToolCall(call_id, name, _arguments(_part(function, "arguments")))
        except _BadArguments as problem:
            return ToolCall(
                call_id, name, problem="The arguments of %s %s. Call it again with a JSON object." % (name, problem)
            )

    def result(self, call: ToolCall, text: str, *, is_error: bool = False) -> Dict[str, Any]:
        """A message of the role ``tool``; the format has no mark for errors, so the text says it."""
        content = "Error: " + text if is_error else text
        return {"role": "tool", "tool_call_id": call.id, "content": content}


class _BadArguments(Exception):
    """The rest of the sentence that begins with "The arguments"."""


def _part(whole: Any, name: str) -> Any:
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def _arguments(arguments: Any) -> Dict[str, Any]:
    if arguments is None:
        return {}
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if not isinstance(arguments, str):
        raise _BadArguments("are neither JSON text nor an object")
    if not arguments.strip():
        return {}
    try:
        parsed = json.loads(arguments, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise _BadArguments(
            "are not valid JSON: %s (line %d, column %d)" % (error.msg, error.lineno, error.colno)
        ) from None
    except (ValueError, RecursionError):
        raise _BadArguments("are JSON with a number too long or a nesting too deep to be read") from None
    if not isinstance(parsed, dict):
        raise _BadArguments("are valid JSON, but no object")
    return parsed


def _no_constant(constant: str) -> NoReturn:
    raise _BadArguments("contain %s, which JSON does not have" % constant)
