"""Resources, their templates, and what reading one returns (specification: server/resources)."""

from __future__ import annotations

from typing import List, Optional, Type, TypeVar

from mcpsync.errors import InvalidMessage
from mcpsync.types.common import Annotations, Icon
from mcpsync.types.wire import JsonObject, MetaWire, decode_base64

__all__ = ["ReadResult", "Resource", "ResourceContents", "ResourceTemplate"]

T = TypeVar("T", bound="ResourceContents")


class Resource(MetaWire):
    """A resource that a server offers.

    :ivar size: in bytes, before any encoding
    """

    uri: str
    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    mime_type: Optional[str] = None
    size: Optional[int] = None
    annotations: Optional[Annotations] = None
    icons: Optional[List[Icon]] = None


class ResourceTemplate(MetaWire):
    """A family of resources.

    :ivar uri_template: a URI template of RFC 6570
    :ivar mime_type: if all resources of the family share it
    """

    uri_template: str
    name: str
    title: Optional[str] = None
    description: Optional[str] = None
    mime_type: Optional[str] = None
    annotations: Optional[Annotations] = None
    icons: Optional[List[Icon]] = None


class ResourceContents(MetaWire):
    """The contents of a resource, or of a part of it: text, or bytes.

    :ivar text: the text; None for bytes
    :ivar blob: the bytes in base64; None for text
    """

    uri: str
    mime_type: Optional[str] = None
    text: Optional[str] = None
    blob: Optional[str] = None

    @classmethod
    def from_wire(cls: Type[T], wire: JsonObject) -> T:
        """Read the JSON object of the protocol.

        :raises InvalidMessage: it is no object, or has no ``uri``, or neither ``text`` nor ``blob``
        """
        made = super().from_wire(wire)
        if made.text is None and made.blob is None:
            raise InvalidMessage("%s.text or .blob: one is required, but both are missing" % cls.__name__)
        return made

    @property
    def data_bytes(self) -> bytes:
        """The decoded bytes of ``blob``, or ``text`` in UTF-8.

        :raises InvalidMessage: ``blob`` is no base64
        """
        if self.blob is not None:
            return decode_base64(self.blob, "ResourceContents.blob")
        return (self.text or "").encode("utf-8", "surrogatepass")


class ReadResult(MetaWire):
    """The result of ``resources/read``.

    :ivar contents: one entry, or several, as for a folder
    :ivar ttl_ms: how long the result stays fresh, in milliseconds (since 2026-07-28)
    :ivar cache_scope: ``public`` or ``private`` (since 2026-07-28)
    """

    contents: List[ResourceContents]
    ttl_ms: Optional[float] = None
    cache_scope: Optional[str] = None

    @property
    def text(self) -> str:
        """The text of all text contents, joined with line ends."""
        return "\n".join(part.text for part in self.contents if part.text is not None)
