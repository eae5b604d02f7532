"""Tools (specification: server/tools)."""

from __future__ import annotations

from typing import List, Optional

from mcpsync.types.common import Icon
from mcpsync.types.wire import JsonObject, MetaWire, Wire

__all__ = ["Tool", "ToolAnnotations", "ToolExecution"]


class ToolAnnotations(Wire):
    """What a server says about its tool's behaviour: hints, not to be trusted (since 2025-03-26).

    :ivar read_only_hint: it changes nothing; absent means false
    :ivar destructive_hint: it may destroy, not only add; absent means true
    :ivar idempotent_hint: calling it again with the same arguments changes nothing more; absent means false
    :ivar open_world_hint: it reaches an open world, as the web; absent means true
    """

    title: Optional[str] = None
    read_only_hint: Optional[bool] = None
    destructive_hint: Optional[bool] = None
    idempotent_hint: Optional[bool] = None
    open_world_hint: Optional[bool] = None


class ToolExecution(Wire):
    """How a tool may be run (2025-11-25).

    :ivar task_support: ``forbidden``, ``optional`` or ``required``; absent means forbidden
    """

    task_support: Optional[str] = None


class Tool(MetaWire):
    """A tool that a server offers.

    :ivar input_schema: JSON Schema of the arguments, an object
    :ivar output_schema: JSON Schema of the structured content (since 2025-06-18)
    """

    name: str
    input_schema: JsonObject
    title: Optional[str] = None
    description: Optional[str] = None
    output_schema: Optional[JsonObject] = None
    annotations: Optional[ToolAnnotations] = None
    execution: Optional[ToolExecution] = None
    icons: Optional[List[Icon]] = None
