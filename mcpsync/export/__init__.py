"""Formats of model APIs for tools, calls and results, by name.

They know nothing of hosts and servers: a name, a description and a schema go in, a dict comes out, and back.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Callable, Dict, List, Mapping, Optional, Tuple, cast

from mcpsync.export.base import Format, ToolCall

__all__ = ["FORMATS", "FRAMEWORKS", "Format", "ToolCall", "framework_tools", "get_format"]

#: Each format and where its class is, loaded when it is first asked for.
FORMATS: Dict[str, Tuple[str, str]] = {
    "openai": ("mcpsync.export.openai", "OpenAIFormat"),
    "openai-responses": ("mcpsync.export.openai", "OpenAIResponsesFormat"),
    "anthropic": ("mcpsync.export.anthropic", "AnthropicFormat"),
    "gemini": ("mcpsync.export.gemini", "GeminiFormat"),
}

#: Each agent framework, and the module that makes tools for it, of packages that are imported then.
FRAMEWORKS: Dict[str, str] = {
    "langchain": "mcpsync.export.langchain",
    "smolagents": "mcpsync.export.smolagents",
}

Definitions = List[Tuple[str, Optional[str], Mapping[str, Any]]]
Call = Callable[[str, Mapping[str, Any]], Tuple[str, bool]]


def framework_tools(name: str, definitions: Definitions, call: Call) -> List[Any]:
    """Tools as objects of an agent framework.

    :param definitions: name, description and input schema of each
    :param call: makes a call by name and arguments; gives the text and whether it tells of an error
    :raises ConfigError: the framework is not installed
    """
    return cast("List[Any]", import_module(FRAMEWORKS[name]).tools(definitions, call))


def get_format(name: str) -> Format:
    """The format of this name.

    :raises ValueError: there is none; the message lists those that are known
    """
    if name not in FORMATS:
        raise ValueError("there is no format %r: known are %s" % (name, ", ".join(sorted((*FORMATS, *FRAMEWORKS)))))
    module, cls = FORMATS[name]
    return cast(Format, getattr(import_module(module), cls)())
