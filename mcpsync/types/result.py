"""What a tool call returns. On the path of every call, so it parses nothing before it is asked."""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from typing import TYPE_CHECKING, Any, List, Mapping, Optional

from mcpsync.types.raw import RawView

if TYPE_CHECKING:
    from mcpsync.types.content import ContentBlock

__all__ = ["ToolResult"]


class ToolResult(RawView):
    """The result of ``tools/call`` (specification: server/tools, Tool Result).

    :ivar raw: the JSON object as the server sent it
    :raises InvalidMessage: the result is no object
    """

    __slots__ = ("_content",)

    _content: Optional[List[ContentBlock]]

    def __init__(self, raw: Mapping[str, Any]) -> None:
        if type(raw) is dict:  # spares the common case a call
            self.raw = raw
        else:
            super().__init__(raw)
        self._content = None

    @property
    def content(self) -> List[ContentBlock]:
        """The content blocks; empty if the server sent none. Parsed at the first look.

        :raises InvalidMessage: a block lacks what its type requires; the message names block and field
        """
        content = self._content
        if content is None:
            from mcpsync.types.content import read_blocks

            content = self._content = read_blocks(self.raw.get("content"), "ToolResult.content")
        return content

    @property
    def text(self) -> str:
        """The text blocks, joined with line ends. Skips what is no text block; never raises."""
        try:
            (block,) = self.raw["content"]
            text = block["text"]
            if block["type"] == "text" and type(text) is str:
                return text  # the one block that most results have
        except (KeyError, TypeError, ValueError):
            pass
        return self._joined()

    def _joined(self) -> str:
        content = self.raw.get("content")
        if not isinstance(content, list):
            return ""
        blocks = (block for block in content if isinstance(block, dict) and block.get("type") == "text")
        texts = (block.get("text") for block in blocks)
        return "\n".join(text for text in texts if isinstance(text, str))

    @property
    def structured(self) -> Any:
        """The structured content: an object up to 2025-11-25, any JSON value since 2026-07-28, None without one."""
        return self.raw.get("structuredContent")

    @property
    def is_error(self) -> bool:
        """Whether the tool reports that it failed."""
        raw = self.raw
        return "isError" in raw and raw["isError"] is True

    @property
    def meta(self) -> Optional[Mapping[str, Any]]:
        """The result's ``_meta``, if it has one."""
        meta = self.raw.get("_meta")
        return meta if isinstance(meta, AbstractMapping) else None
