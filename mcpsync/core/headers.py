"""HTTP headers that repeat parts of a message, so that intermediaries need not read its body.

Specification: `basic/transports/streamable-http` (2026-07-28), "Request Metadata", "Custom Headers from Tool
Parameters", "Value Encoding".
"""

from __future__ import annotations

import base64
import re
from typing import Any, Dict, List, Mapping, NamedTuple, Optional, Tuple

__all__ = ["Mirror", "ParameterHeader", "encode_value", "mirrors_of", "request_headers"]

_PREFIX = "Mcp-Param-"
_ANNOTATION = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z")
_PLAIN = re.compile(r"(?:[!-~]|[!-~][ -~]*[!-~])?\Z")
_SAFE_INTEGER = 2**53 - 1
_DEEPEST = 64

_NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    # of the extension io.modelcontextprotocol/tasks, "Streamable HTTP: Routing Headers"
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}


class ParameterHeader(NamedTuple):
    """One parameter of a tool that travels in a header too.

    :ivar header: name of the header
    :ivar path: names of the properties that lead to the parameter
    """

    header: str
    path: Tuple[str, ...]


Mirror = Tuple[ParameterHeader, ...]
"""All parameters of one tool that travel in headers."""


def mirrors_of(input_schema: Any) -> Mirror:
    """The parameters that a tool's schema wants to see in headers.

    :raises ValueError: an annotation breaks the rules, so the tool must not be used over HTTP; the text says which
    """
    found: List[ParameterHeader] = []
    _walk(input_schema, (), True, found, 0)
    names: Dict[str, str] = {}
    for each in found:
        name = each.header.lower()
        if name in names:
            raise ValueError("two parameters want the header %s" % each.header)
        names[name] = each.header
    return tuple(found)


def _walk(schema: Any, path: Tuple[str, ...], reachable: bool, found: List[ParameterHeader], depth: int) -> None:
    if depth > _DEEPEST:
        raise ValueError("the schema is nested more than %d deep" % _DEEPEST)
    if isinstance(schema, list):
        for each in schema:
            _walk(each, path, False, found, depth + 1)
        return
    if not isinstance(schema, dict):
        return
    if _ANNOTATION in schema:
        found.append(ParameterHeader(_PREFIX + _checked(schema, path, reachable), path))
    for key, value in schema.items():
        if key == "properties" and isinstance(value, dict):
            for name, each in value.items():
                _walk(each, (*path, name), reachable, found, depth + 1)
        elif key not in _DATA:
            _walk(value, path, False, found, depth + 1)


# what these hold is data, in which the annotation's name means nothing
_DATA = (_ANNOTATION, "const", "default", "enum", "examples")


def _checked(schema: Dict[str, Any], path: Tuple[str, ...], reachable: bool) -> str:
    name = schema[_ANNOTATION]
    where = ".".join(path) or "the schema itself"
    if not isinstance(name, str) or not _TOKEN.match(name):
        raise ValueError("%s: %.100r is no name for a header" % (where, name))
    if not reachable or not path:
        raise ValueError("%s: %s may stand on properties alone" % (where, _ANNOTATION))
    if schema.get("type") not in ("string", "integer", "boolean"):
        raise ValueError("%s: only a string, integer or boolean can travel in a header" % where)
    return name


def encode_value(value: str) -> str:
    """A text as a header's value: as it is where that is safe, else in Base64 between markers."""
    if _PLAIN.match(value) and not (value.startswith("=?base64?") and value.endswith("?=")):
        return value
    return "=?base64?%s?=" % base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()


def request_headers(method: str, params: Mapping[str, Any], mirror: Optional[Mirror] = None) -> Dict[str, str]:
    """The headers that repeat a request's method, name and annotated parameters.

    :raises ValueError: an integer is too large to travel in a header
    """
    headers = {"Mcp-Method": method}
    named_by = _NAMED_BY.get(method)
    name = params.get(named_by) if named_by is not None else None
    if isinstance(name, str):
        headers["Mcp-Name"] = encode_value(name)
    for header, path in mirror or ():
        value: Any = params.get("arguments")
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        text = _text_of(value, header)
        if text is not None:
            headers[header] = encode_value(text)
    return headers


def _text_of(value: Any, header: str) -> Optional[str]:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int):
        if abs(value) > _SAFE_INTEGER:
            raise ValueError("%d is too large for the header %s" % (value, header))
        return str(value)
    return value if isinstance(value, str) else None
