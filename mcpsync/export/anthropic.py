"""Anthropic messages: ``tools`` entries, ``tool_use`` blocks, ``tool_result`` blocks.

Nothing of the ``anthropic`` package is needed: its objects are read by their attributes.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Mapping, Optional, Sequence

from mcpsync.export.base import ToolCall, object_schema
from mcpsync.export.reading import part, tool_call

__all__ = ["AnthropicFormat"]


class AnthropicFormat:
    """The format ``anthropic``."""

    name = "anthropic"

    def tool(self, name: str, description: Optional[str], input_schema: Mapping[str, Any]) -> Dict[str, Any]:
        """An entry of ``tools``."""
        definition: Dict[str, Any] = {"name": name}
        if description:
            definition["description"] = description
        definition["input_schema"] = copy.deepcopy(object_schema(input_schema))
        return definition

    def parse_call(self, call: Any) -> ToolCall:
        """A block of ``message.content`` of the type ``tool_use``, as a dict or as an object of the package.

        :raises TypeError: it is none
        """
        name = part(call, "name")
        if part(call, "type") != "tool_use" or not isinstance(name, str):
            raise TypeError(
                "no Anthropic tool call: expected a block of message.content of the type 'tool_use', with id, name "
                "and input, and got a %s" % type(call).__name__
            )
        return tool_call(part(call, "id"), name, part(call, "input"))

    def result(self, call: ToolCall, text: str, *, is_error: bool = False) -> Dict[str, Any]:
        """A ``tool_result`` block. All of one turn go into one message: see :meth:`messages`."""
        block: Dict[str, Any] = {"type": "tool_result", "tool_use_id": call.id, "content": text}
        if is_error:
            block["is_error"] = True
        return block

    def messages(self, results: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """One message of the role ``user`` with all the results of a turn, as the API demands."""
        return [{"role": "user", "content": list(results)}] if results else []
