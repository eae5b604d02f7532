"""Tools of a host as smolagents tools; ``smolagents`` is imported when they are asked for.

Its code agents call tools as Python functions, so names and arguments have to be identifiers: a name is altered where
it is none, and a tool with an argument that is none takes all its arguments as one, ``arguments``.
"""

from __future__ import annotations

import hashlib
import keyword
import re
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple

from mcpsync.export.base import object_schema
from mcpsync.export.extras import needed

__all__ = ["identifier", "tools"]

_TYPES = ("string", "boolean", "integer", "number", "array", "object", "null")
_WHOLE: Dict[str, Any] = {"arguments": {"type": "object", "description": "All arguments, by name."}}


def identifier(name: str) -> str:
    """The name itself, or an identifier made of it that no other name gets."""
    if name.isidentifier() and not keyword.iskeyword(name):
        return name
    digits = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:8]
    return re.sub(r"\W", "_", name, flags=re.ASCII) + "_" + digits


def tools(
    definitions: List[Tuple[str, Optional[str], Mapping[str, Any]]],
    call: Callable[[str, Mapping[str, Any]], Tuple[str, bool]],
) -> List[Any]:
    """A ``smolagents.Tool`` for each.

    :param definitions: name, description and input schema of each
    :param call: makes a call by name and arguments; gives the text and whether it tells of an error
    :raises ConfigError: ``smolagents`` is not installed
    """
    base = needed("smolagents", "smolagents").Tool
    return [_made(base, call, *definition) for definition in definitions]


def _made(
    base: Any,
    call: Callable[[str, Mapping[str, Any]], Tuple[str, bool]],
    name: str,
    description: Optional[str],
    schema: Mapping[str, Any],
) -> Any:
    inputs = _inputs(object_schema(schema))
    whole = inputs is _WHOLE

    def forward(self: Any, **arguments: Any) -> str:
        given = dict(arguments.get("arguments") or {}) if whole else arguments
        text, failed = call(name, {key: value for key, value in given.items() if value is not None})
        if failed:
            raise RuntimeError(text)  # how this framework's tools fail: the agent shows it to the model
        return text

    members = {
        "name": identifier(name),
        "description": description or name,
        "inputs": inputs,
        "output_type": "string",
        "skip_forward_signature_validation": True,  # it would demand a parameter in the source for each input
        "forward": forward,
    }
    return type("HostTool", (base,), members)()


def _inputs(schema: Mapping[str, Any]) -> Dict[str, Any]:
    properties: Mapping[str, Any] = schema["properties"]
    if not all(name.isidentifier() and not keyword.iskeyword(name) for name in properties):
        return _WHOLE
    required = schema.get("required")
    needed_names = required if isinstance(required, list) else []
    inputs: Dict[str, Any] = {}
    for name, about in properties.items():
        said = about if isinstance(about, Mapping) else {}
        description = said.get("description")
        inputs[name] = {
            "type": said["type"] if isinstance(said.get("type"), str) and said["type"] in _TYPES else "any",
            "description": description if isinstance(description, str) and description else name,
        }
        if name not in needed_names:
            inputs[name]["nullable"] = True
    return inputs
