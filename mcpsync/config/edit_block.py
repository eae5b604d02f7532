"""Edits of the indented blocks of YAML."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Optional

from mcpsync.config.edit_flow import Change, Style, write_flow
from mcpsync.config.spans import Member, Node

__all__ = ["block_lines", "put_block", "remove_block"]

_PLAIN = re.compile(r"[A-Za-z/@_.$][A-Za-z0-9/@_.$+=-]*(?: [A-Za-z0-9/@_.$+=-]+)*")
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_COLON = re.compile(r"[ \t]*:")


def _scalar(value: Any, style: Style) -> str:
    if isinstance(value, str) and _PLAIN.fullmatch(value) and value.lower() not in _WORDS and value[0] not in "@.":
        return value
    return write_flow(value, style, None)


def write_block(value: Any, style: Style, indent: str) -> str:
    """What stands behind ``key:``, for a key at this indentation; it begins with a blank or a line end."""
    if isinstance(value, Mapping) and value:
        return style.newline + block_lines(value, style, indent + _unit(style))
    if isinstance(value, list) and value and all(isinstance(each, Mapping) and each for each in value):
        inner = indent + _unit(style)
        return "".join(style.newline + _item_lines(each, style, inner) for each in value)
    return " " + _scalar(value, style)


def block_lines(value: Mapping[str, Any], style: Style, indent: str) -> str:
    """The keys of a map, each on a line at this indentation."""
    return style.newline.join(
        "%s%s:%s" % (indent, _scalar(str(key), style), write_block(each, style, indent)) for key, each in value.items()
    )


def _item_lines(value: Any, style: Style, indent: str) -> str:
    if isinstance(value, Mapping) and value:
        return indent + "- " + block_lines(value, style, indent + "  ")[len(indent) + 2 :]
    return indent + "- " + _scalar(value, style)


def _unit(style: Style) -> str:
    return "  " if "\t" in style.unit else style.unit


def _line_start(text: str, position: int) -> int:
    return max(text.rfind("\n", 0, position), text.rfind("\r", 0, position)) + 1


def _line_end(text: str, position: int) -> int:
    """The end of a line, before what ends it."""
    while position < len(text) and text[position] not in "\r\n":
        position += 1
    return position


def _behind_line(text: str, position: int) -> int:
    position = _line_end(text, position)
    return position + (2 if text[position : position + 2] == "\r\n" else 1)


def _column(text: str, position: int) -> str:
    return " " * (position - _line_start(text, position))


def put_block(text: str, node: Node, key: Optional[str], value: Any, style: Style) -> List[Change]:
    """The changes that give a map a key with a value, or a list (``key`` is None) a further item."""
    if key is None:
        return [_item(text, node, value, style)]
    found = next((each for each in reversed(node.members) if each.key == key), None)
    if found is not None:
        return _replaced(text, found, value, style)
    indent = _column(text, node.members[0].start)
    position = _line_end(text, node.end)
    written = style.newline + indent + _scalar(key, style) + ":" + write_block(value, style, indent)
    return [Change(position, position, written)]


def _item(text: str, node: Node, value: Any, style: Style) -> Change:
    first = node.members[0].start
    dash = text.rindex("-", 0, first)
    indent = _column(text, dash)
    position = _line_end(text, node.end)
    return Change(position, position, style.newline + _item_lines(value, style, indent))


def _replaced(text: str, member: Member, value: Any, style: Style) -> List[Change]:
    node = member.value
    colon = _COLON.match(text, member.key_end)
    behind = colon.end() if colon else member.key_end
    written = write_block(value, style, _column(text, member.start))
    if node.end <= behind:  # there is no value yet
        position = behind if written.startswith(" ") else _line_end(text, behind)
        return [Change(position, position, written)]
    if "\n" not in text[behind : node.start] and "\r" not in text[behind : node.start]:
        if not written.startswith(" "):
            return [Change(behind, node.end, written)]
        return [Change(node.start, node.end, written[1:])]
    first = _line_start(text, node.start)
    if written.startswith(" "):
        return [Change(behind, behind, written), Change(first, _behind_line(text, node.end))]
    return [Change(first, node.end, written[len(style.newline) :])]


def remove_block(text: str, node: Node, index: int) -> Optional[List[Change]]:
    """The changes that take a member out; None where that is better done by hand."""
    member = node.members[index]
    start = text.rindex("-", 0, member.start) if member.key is None else member.start
    line = _line_start(text, start)
    if text[line:start].strip(" \t"):
        if index + 1 == len(node.members):
            return None
        return [Change(member.start, node.members[index + 1].start)]
    colon = _COLON.match(text, member.key_end)
    end = max(member.value.end, colon.end() if colon and member.key is not None else 0)
    return [Change(line, min(_behind_line(text, end), len(text)))]
