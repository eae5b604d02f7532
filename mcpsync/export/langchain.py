"""Tools of a host as LangChain tools; ``langchain-core`` is imported when they are asked for.

A failing call raises LangChain's ``ToolException``, whose text the agent shows to the model
(``handle_tool_error`` is set).
"""

from __future__ import annotations

from typing import Any, Callable, List, Mapping, Optional, Tuple

from mcpsync.export.base import object_schema
from mcpsync.export.extras import needed

__all__ = ["tools"]


def tools(
    definitions: List[Tuple[str, Optional[str], Mapping[str, Any]]],
    call: Callable[[str, Mapping[str, Any]], Tuple[str, bool]],
) -> List[Any]:
    """A ``StructuredTool`` for each.

    :param definitions: name, description and input schema of each
    :param call: makes a call by name and arguments; gives the text and whether it tells of an error
    :raises ConfigError: ``langchain-core`` is not installed
    """
    module = needed("langchain_core.tools", "langchain")

    def made(name: str, description: Optional[str], schema: Mapping[str, Any]) -> Any:
        def run(**arguments: Any) -> str:
            text, failed = call(name, arguments)
            if failed:
                raise module.ToolException(text)
            return text

        return module.StructuredTool(
            name=name,
            description=description or name,
            args_schema=object_schema(schema),
            func=run,
            handle_tool_error=True,
        )

    return [made(*definition) for definition in definitions]
