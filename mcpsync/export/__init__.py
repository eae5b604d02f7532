"""Formats of model APIs for tools, calls and results, by name.

They know nothing of hosts and servers: a name, a description and a schema go in, a dict comes out, and back.
"""

from __future__ import annotations

from importlib import import_module
from typing import Dict, Tuple, cast

from mcpsync.export.base import Format, ToolCall

__all__ = ["FORMATS", "Format", "ToolCall", "get_format"]

#: Each format and where its class is, loaded when it is first asked for.
FORMATS: Dict[str, Tuple[str, str]] = {
    "openai": ("mcpsync.export.openai", "OpenAIFormat"),
}


def get_format(name: str) -> Format:
    """The format of this name.

    :raises ValueError: there is none; the message lists those that are known
    """
    if name not in FORMATS:
        raise ValueError("there is no format %r: known are %s" % (name, ", ".join(sorted(FORMATS))))
    module, cls = FORMATS[name]
    return cast(Format, getattr(import_module(module), cls)())
