"""Content blocks: what tool results, prompts and sampling messages are made of (specification: server/tools,
Tool Result; client/sampling, Message Content)."""

from __future__ import annotations

from typing import Any, List, Literal, Optional, Union

from mcpsync.errors import InvalidMessage
from mcpsync.types.common import Annotations
from mcpsync.types.readers import reader
from mcpsync.types.resources import Resource, ResourceContents
from mcpsync.types.wire import JsonObject, MetaWire, constant, decode_base64

__all__ = [
    "AudioContent",
    "ContentBlock",
    "EmbeddedResource",
    "ImageContent",
    "ResourceLink",
    "SamplingContentBlock",
    "TextContent",
    "ToolResultContent",
    "ToolUseContent",
    "UnknownContent",
    "read_blocks",
]


class TextContent(MetaWire):
    """Text."""

    type: Literal["text"] = constant(default="text")
    text: str
    annotations: Optional[Annotations] = None


class ImageContent(MetaWire):
    """An image.

    :ivar data: the bytes in base64
    """

    type: Literal["image"] = constant(default="image")
    data: str
    mime_type: str
    annotations: Optional[Annotations] = None

    @property
    def data_bytes(self) -> bytes:
        """The decoded bytes of ``data``.

        :raises InvalidMessage: it is no base64
        """
        return decode_base64(self.data, "ImageContent.data")


class AudioContent(MetaWire):
    """Sound (since 2025-03-26).

    :ivar data: the bytes in base64
    """

    type: Literal["audio"] = constant(default="audio")
    data: str
    mime_type: str
    annotations: Optional[Annotations] = None

    @property
    def data_bytes(self) -> bytes:
        """The decoded bytes of ``data``.

        :raises InvalidMessage: it is no base64
        """
        return decode_base64(self.data, "AudioContent.data")


class ResourceLink(Resource):
    """A resource that can be read, named but not included (since 2025-06-18)."""

    type: Literal["resource_link"] = constant(default="resource_link")


class EmbeddedResource(MetaWire):
    """The contents of a resource, included."""

    type: Literal["resource"] = constant(default="resource")
    resource: ResourceContents
    annotations: Optional[Annotations] = None


class UnknownContent(MetaWire):
    """A block of a type that this library does not know, or that has no place where it stood.

    :ivar type: the type it names; all other fields are in ``extra``
    """

    type: str


ContentBlock = Union[TextContent, ImageContent, AudioContent, ResourceLink, EmbeddedResource, UnknownContent]
"""A block of a tool result or a prompt."""


class ToolUseContent(MetaWire):
    """The model asks for a tool, while sampling (since 2025-11-25).

    :ivar id: names this use; its result refers to it
    :ivar input: the arguments
    """

    type: Literal["tool_use"] = constant(default="tool_use")
    id: str
    name: str
    input: JsonObject


class ToolResultContent(MetaWire):
    """What a tool gave, told to the model while sampling (since 2025-11-25).

    :ivar tool_use_id: the ``id`` of the :class:`ToolUseContent` that it answers
    """

    type: Literal["tool_result"] = constant(default="tool_result")
    tool_use_id: str
    content: List[ContentBlock]
    structured_content: Any = None
    is_error: Optional[bool] = None


SamplingContentBlock = Union[TextContent, ImageContent, AudioContent, ToolUseContent, ToolResultContent, UnknownContent]
"""A block of a sampling message."""

_read_blocks = reader(List[ContentBlock])


def read_blocks(wire: Any, where: str) -> List[ContentBlock]:
    """Read an array of content blocks; none at all for None.

    :param where: type and field, for the error
    :raises InvalidMessage: it is no array of blocks, or a block lacks what its type requires
    """
    if wire is None:
        return []
    try:
        blocks: List[ContentBlock] = _read_blocks(wire)
    except InvalidMessage as error:
        raise InvalidMessage("%s: %s" % (where, error.message)) from None
    return blocks
