"""Edits of what stands in brackets: JSON, with or without comments, and the flow style of YAML."""

from __future__ import annotations

import json
import re
from typing import Any, List, Mapping, NamedTuple, Optional, Pattern

from mcpsync.config.spans import Node

__all__ = ["Change", "Style", "apply", "put_flow", "remove_flow", "style_of", "write_flow"]


class Change(NamedTuple):
    """A part of a text, and what stands there afterwards."""

    start: int
    end: int
    text: str = ""


class Style(NamedTuple):
    """How a file is written.

    :ivar newline: what ends a line
    :ivar unit: one step of indentation
    :ivar comment: what is passed over between values
    """

    newline: str
    unit: str
    comment: Pattern[str]


_JSON_GAP = re.compile(r"(?:\s|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)
_YAML_GAP = re.compile(r"(?:\s|#[^\r\n]*)*")
_JSON_REST = re.compile(r"[ \t]*(?:/\*[^\r\n]*?\*/[ \t]*)*(?://[^\r\n]*)?")
_YAML_REST = re.compile(r"[ \t]*(?:#[^\r\n]*)?")
_INDENTED = re.compile(r"^([ \t]+)\S", re.MULTILINE)
_NOT_PRINTABLE = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")


def style_of(text: str, form: str) -> Style:
    """The style of a text."""
    indented = _INDENTED.search(text)
    unit = indented[1] if indented else "  "
    return Style("\r\n" if "\r\n" in text else "\n", unit, _JSON_GAP if form == "json" else _YAML_GAP)


def apply(text: str, changes: List[Change]) -> str:
    """The text with the changes made; they do not overlap."""
    for change in sorted(changes, reverse=True):
        text = text[: change.start] + change.text + text[change.end :]
    return text


def write_flow(value: Any, style: Style, indent: Optional[str]) -> str:
    """A value in brackets.

    :param indent: of the line that it begins on; None: all on one line
    """
    if isinstance(value, Mapping) and value and indent is not None:
        inner = indent + style.unit
        members = [
            "%s%s: %s" % (inner, _scalar(str(key)), write_flow(each, style, inner)) for key, each in value.items()
        ]
        between = "," + style.newline
        return "{" + style.newline + between.join(members) + style.newline + indent + "}"
    if isinstance(value, Mapping):
        return "{%s}" % ", ".join(
            "%s: %s" % (_scalar(str(key)), write_flow(each, style, None)) for key, each in value.items()
        )
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(write_flow(each, style, None) for each in value)
    return _scalar(value)


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _NOT_PRINTABLE.sub(lambda match: "\\u%04x" % ord(match[0]), text)


def _line_start(text: str, position: int) -> int:
    return max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1


def _indent_at(text: str, position: int) -> str:
    start = _line_start(text, position)
    end = start
    while text[end : end + 1] in (" ", "\t"):
        end += 1
    return text[start:end]


def _comma(text: str, position: int, style: Style) -> Optional[int]:
    gap = style.comment.match(text, position)
    after = gap.end() if gap else position
    return after if text[after : after + 1] == "," else None


def put_flow(text: str, node: Node, key: Optional[str], value: Any, style: Style) -> List[Change]:
    """The changes that give a map a key with a value, or a list (``key`` is None) a further item."""
    found = next((each for each in reversed(node.members) if key is not None and each.key == key), None)
    if found is not None:
        on_lines = _has_line_end(text[found.value.start : found.value.end]) or _has_line_end(
            text[node.start : node.members[0].start]
        )
        written = write_flow(value, style, _indent_at(text, found.start) if on_lines else None)
        return [Change(found.value.start, found.value.end, written)]

    outer = _indent_at(text, node.start)
    named = "" if key is None else _scalar(key) + ": "
    if not node.members:
        inside = text[node.start + 1 : node.end - 1]
        indent = outer + style.unit
        closing = "" if _has_line_end(inside) else style.newline + outer
        written = style.newline + indent + named + write_flow(value, style, indent) + closing
        return [Change(node.start + 1, node.start + 1, written)]

    last = node.members[-1].value.end
    on_lines = _has_line_end(text[node.start : node.members[0].start])
    comma = _comma(text, last, style)
    rest = (_JSON_REST if style.comment is _JSON_GAP else _YAML_REST).match(text, last if comma is None else comma + 1)
    position = rest.end() if rest else last
    comments = text[last:position].strip(" \t,")
    if not on_lines and not comments:
        return [Change(last, last, ", " + named + write_flow(value, style, None))]
    indent = _indent_at(text, node.members[0].start) if on_lines else outer + style.unit
    written = style.newline + indent + named + write_flow(value, style, indent)
    if comma is not None:
        return [Change(position, position, written + ",")]
    if position == last:
        return [Change(last, last, "," + written)]
    return [Change(last, last, ","), Change(position, position, written)]


def remove_flow(text: str, node: Node, index: int, style: Style) -> List[Change]:
    """The changes that take a member out."""
    member = node.members[index]
    comma = _comma(text, member.value.end, style)
    end = member.value.end if comma is None else comma + 1
    changes: List[Change] = []
    if comma is None and index > 0:
        before = _comma(text, node.members[index - 1].value.end, style)
        if before is not None:
            changes.append(Change(before, before + 1))
    start = member.start
    line = _line_start(text, start)
    after = end
    while text[after : after + 1] in (" ", "\t"):
        after += 1
    ends_line = text[after : after + 1] in ("\r", "\n")
    if not text[line:start].strip(" \t") and ends_line:
        start = line
        end = after + (2 if text[after : after + 2] == "\r\n" else 1)
    elif comma is not None and not ends_line:
        end = after  # the blank behind the comma
    elif changes and not text[changes[0].end : start].strip(" \t"):
        start = changes[0].end  # the blank behind the comma before
    # comments between value and comma are kept
    if comma is not None and text[member.value.end : comma].strip():
        return [*changes, Change(start, member.value.end), Change(comma, end)]
    return [*changes, Change(start, end)]


def _has_line_end(text: str) -> bool:
    return "\n" in text or "\r" in text
