"""The result of a tool as text for a model.

It works on the JSON that the server sent, not on parsed blocks, so that one malformed block costs no more than
itself. Text comes from a server: it is data, and what stands in brackets is kept on one line.
"""

from __future__ import annotations

import json
from typing import Any, Mapping, Sequence

from mcpsync.types import ToolResult

__all__ = ["DEFAULT_LIMIT", "render_blocks", "render_result"]

#: Characters of a result that a model gets by default.
DEFAULT_LIMIT = 100_000

_LABEL_LIMIT = 500


def render_result(result: ToolResult, *, limit: int = DEFAULT_LIMIT) -> str:
    """The content blocks in their order, then structured content that no text block carries already.

    :param limit: the longest text in characters; a note after it says how much is left out
    """
    content = result.raw.get("content")
    blocks = content if isinstance(content, list) else []
    parts = [render_blocks(blocks)] if blocks else []
    structured = result.raw.get("structuredContent")
    if structured is not None and not any(_carries(block, structured) for block in blocks):
        parts.append("[structuredContent]\n" + _indented(structured))
    text = "\n".join(parts)
    if not text:
        return "[the tool reported an error with no detail]" if result.is_error else "[no content]"
    return _bounded(text, limit)


def render_blocks(blocks: Sequence[Any]) -> str:
    """Content blocks in their order, each as text."""
    return "\n".join(_block(block) for block in blocks)


def _indented(value: Any) -> str:
    try:
        return json.dumps(value, indent=2, ensure_ascii=False)
    except RecursionError:  # a quick parser reads deeper than this encoder writes
        return "[nested too deeply to be shown]"


def _bounded(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    return "%s\n[cut here: %d of %d characters left out]" % (text[:limit], len(text) - limit, len(text))


def _block(block: Any) -> str:
    if isinstance(block, str):
        return block
    if not isinstance(block, Mapping):
        return "[unsupported content: %s]" % type(block).__name__
    kind = block.get("type")
    if kind == "text":
        text = block.get("text")
        return text if isinstance(text, str) else "[text block without text]"
    if kind in ("image", "audio"):
        return "[%s: %s]" % (kind, _label(block.get("mimeType")) or "unknown")
    if kind == "resource_link":
        return _resource_link(block)
    if kind == "resource":
        return _resource(block.get("resource"))
    return "[unsupported content type: %s]" % (_label(kind) or "none")


def _resource_link(block: Mapping[str, Any]) -> str:
    uri = _label(block.get("uri"))
    name = _label(block.get("name")) or _label(block.get("title"))
    named = "%s (%s)" % (name, uri) if name and uri and name != uri else name or uri
    return ("[resource_link: %s] %s" % (named or "unnamed", _label(block.get("description")))).rstrip()


def _resource(resource: Any) -> str:
    if not isinstance(resource, Mapping):
        return "[resource without contents]"
    uri = _label(resource.get("uri")) or "unnamed"
    text = resource.get("text")
    if isinstance(text, str):
        return "[resource: %s]\n%s" % (uri, text)
    return "[resource: %s (%s)]" % (uri, _label(resource.get("mimeType")) or "binary")


def _label(value: Any) -> str:
    """A short text on one line, so that it cannot pass for a block of its own."""
    if not isinstance(value, str):
        return ""
    line = " ".join(value[: _LABEL_LIMIT + 1].split())
    return line if len(line) <= _LABEL_LIMIT else line[:_LABEL_LIMIT] + "..."


def _carries(block: Any, structured: Any) -> bool:
    """Whether a text block is the structured content in JSON, or the only value of ``{"result": value}``.

    Servers repeat structured content as text for older clients (specification: server/tools, Structured Content).
    """
    text = block.get("text") if isinstance(block, Mapping) and block.get("type") == "text" else None
    if not isinstance(text, str):
        return False
    wrapped = isinstance(structured, Mapping) and list(structured) == ["result"]
    if wrapped and structured["result"] == text:
        return True
    try:
        parsed = json.loads(text)
        return bool(parsed == structured or (wrapped and parsed == structured["result"]))
    except (ValueError, RecursionError):
        return False
