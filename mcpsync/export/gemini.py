"""Gemini: function declarations, ``functionCall`` and ``functionResponse`` parts.

The keys are those of the REST API, which the ``google-genai`` package takes as well. Nothing of that package is needed:
its objects are read by their attributes.
"""

from __future__ import annotations

import copy
from typing import Any, Dict, List, Mapping, Optional, Sequence

from mcpsync.export.base import ToolCall, object_schema
from mcpsync.export.reading import part, tool_call

__all__ = ["GeminiFormat"]


class GeminiFormat:
    """The format ``gemini``."""

    name = "gemini"

    def tool(self, name: str, description: Optional[str], input_schema: Mapping[str, Any]) -> Dict[str, Any]:
        """An entry of ``functionDeclarations``: ``tools=[{"functionDeclarations": host.export_tools("gemini")}]``.

        The schema goes as JSON Schema (``parametersJsonSchema``): the older ``parameters`` knows only a part of it.
        """
        declaration: Dict[str, Any] = {"name": name}
        if description:
            declaration["description"] = description
        declaration["parametersJsonSchema"] = copy.deepcopy(object_schema(input_schema))
        return declaration

    def parse_call(self, call: Any) -> ToolCall:
        """A function call, or the part that carries it, as a dict or as an object of the package.

        :raises TypeError: it is none
        """
        for key in ("functionCall", "function_call"):
            inner = part(call, key)
            if inner is not None:
                call = inner
                break
        name = part(call, "name")
        if not isinstance(name, str):
            raise TypeError(
                "no Gemini function call: expected a functionCall of a part, with name and args, and got a %s"
                % type(call).__name__
            )
        return tool_call(part(call, "id"), name, part(call, "args"))

    def result(self, call: ToolCall, text: str, *, is_error: bool = False) -> Dict[str, Any]:
        """A part with a ``functionResponse``. All of one turn go into one content: see :meth:`messages`."""
        response: Dict[str, Any] = {"name": call.name, "response": {"error" if is_error else "output": text}}
        if call.id:
            response["id"] = call.id
        return {"functionResponse": response}

    def messages(self, results: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """One content of the role ``user`` with all the results of a turn."""
        return [{"role": "user", "parts": list(results)}] if results else []
