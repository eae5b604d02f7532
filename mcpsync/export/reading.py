"""Reading what a model's API hands over: dicts or objects of its package, arguments as JSON text or as an object."""

from __future__ import annotations

import json
from typing import Any, Dict, Mapping, NoReturn

from mcpsync.export.base import ToolCall

__all__ = ["BadArguments", "part", "read_arguments", "tool_call"]


class BadArguments(Exception):
    """The rest of the sentence that begins with "The arguments"."""


def part(whole: Any, name: str) -> Any:
    """A part of a dict, or of an object; None where there is none."""
    return whole.get(name) if isinstance(whole, Mapping) else getattr(whole, name, None)


def read_arguments(arguments: Any) -> Dict[str, Any]:
    """Arguments of a call: a dict, or JSON text; absent and empty ones are none.

    :raises BadArguments: they are something else
    """
    if arguments is None:
        return {}
    if isinstance(arguments, Mapping):
        return dict(arguments)
    if not isinstance(arguments, str):
        raise BadArguments("are neither JSON text nor an object")
    if not arguments.strip():
        return {}
    try:
        parsed = json.loads(arguments, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise BadArguments(
            "are not valid JSON: %s (line %d, column %d)" % (error.msg, error.lineno, error.colno)
        ) from None
    except (ValueError, RecursionError):
        raise BadArguments("are JSON with a number too long or a nesting too deep to be read") from None
    if not isinstance(parsed, dict):
        raise BadArguments("are valid JSON, but no object")
    return parsed


def _no_constant(constant: str) -> NoReturn:
    raise BadArguments("contain %s, which JSON does not have" % constant)


def tool_call(call_id: Any, name: str, arguments: Any) -> ToolCall:
    """A call, whatever its arguments are: what is wrong with them is told to the model."""
    call_id = call_id if isinstance(call_id, str) else ""
    try:
        return ToolCall(call_id, name, read_arguments(arguments))
    except BadArguments as problem:
        return ToolCall(
            call_id, name, problem="The arguments of %s %s. Call it again with a JSON object." % (name, problem)
        )
