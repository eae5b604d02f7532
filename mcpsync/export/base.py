"""What a format of a model's API has to offer, and the call that all formats share."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Protocol, Sequence

__all__ = ["Format", "ToolCall", "object_schema"]


@dataclass(frozen=True)
class ToolCall:
    """A model's call of a tool, taken out of its API's form.

    :ivar id: what ties the answer to the call
    :ivar name: the exposed name of the tool
    :ivar arguments: empty if ``problem`` is set
    :ivar problem: what the model did wrong, in words for the model; None if the call can be made
    """

    id: str
    name: str
    arguments: Dict[str, Any] = field(default_factory=dict)
    problem: Optional[str] = None


class Format(Protocol):
    """A format: tools out, calls in, results out. Pure functions, no state."""

    name: str

    def tool(self, name: str, description: Optional[str], input_schema: Mapping[str, Any]) -> Dict[str, Any]:
        """The definition of one tool."""
        ...

    def parse_call(self, call: Any) -> ToolCall:
        """A tool call, as a dict or as an object of the official package.

        :raises TypeError: it is no tool call at all
        """
        ...

    def result(self, call: ToolCall, text: str, *, is_error: bool = False) -> Dict[str, Any]:
        """What answers a call."""
        ...

    def messages(self, results: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
        """The messages that carry the results of one turn of the model."""
        ...


def object_schema(schema: Any) -> Dict[str, Any]:
    """The schema of arguments as a JSON Schema object: ``type`` and ``properties`` are always there."""
    filled = dict(schema) if isinstance(schema, Mapping) else {}
    filled["type"] = "object"
    if not isinstance(filled.get("properties"), Mapping):
        filled["properties"] = {}
    return filled
