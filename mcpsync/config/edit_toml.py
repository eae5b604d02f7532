"""Edits of TOML: tables with a header each, and keys on lines of their own."""

from __future__ import annotations

import re
from typing import Any, List, Mapping, Optional, Tuple

from mcpsync.config.diagnose import Where
from mcpsync.config.edit_flow import Change, Style, write_flow
from mcpsync.config.toml_reader import Line, toml_lines

__all__ = ["put_toml", "remove_toml"]

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def _key(key: str, style: Style) -> str:
    return key if _BARE.fullmatch(key) else write_flow(key, style, None)


def _value(value: Any, style: Style) -> str:
    if isinstance(value, Mapping):
        return "{%s}" % ", ".join(
            "%s = %s" % (_key(str(key), style), _value(each, style)) for key, each in value.items()
        )
    if isinstance(value, (list, tuple)):
        return "[%s]" % ", ".join(_value(each, style) for each in value)
    return write_flow(value, style, None)


def _behind_line(text: str, position: int) -> int:
    end = text.find("\n", position)
    return len(text) if end < 0 else end + 1


def _line_end(text: str, position: int) -> int:
    end = _behind_line(text, position)
    while end > position and text[end - 1] in "\r\n":
        end -= 1
    return end


def put_toml(text: str, where: Where, value: Any, style: Style, *, as_table: bool) -> Optional[List[Change]]:
    """The changes that give a place a value; None: it is within a table that is written in a line.

    :param as_table: a place that is not there yet becomes a table with a header
    """
    lines = toml_lines(text)
    existing = next((each for each in lines if each.where == where and each.value is not None), None)
    if existing is not None and existing.value is not None:
        return [Change(existing.value, existing.end, _value(value, style))]
    name = str(where[-1])
    header = next((each for each in lines if each.where == where[:-1] and each.value is None), None)
    if header is not None and not as_table:
        position = _line_end(text, _last_of(lines, header))
        return [
            *(remove_toml(text, where) or ()),
            Change(position, position, "%s%s = %s" % (style.newline, _key(name, style), _value(value, style))),
        ]
    if not isinstance(value, Mapping):
        return None
    inside = [each for each in lines if each.where[: len(where) - 1] == where[:-1]]
    position = _line_end(text, inside[-1].end) if inside else len(text.rstrip("\r\n"))
    end = "" if text[position:] else style.newline
    return [Change(position, position, _table(text[:position], where, value, style) + end)]


def _table(before: str, where: Where, value: Mapping[str, Any], style: Style) -> str:
    header = "[%s]" % ".".join(_key(str(step), style) for step in where)
    body = ["%s = %s" % (_key(str(key), style), _value(each, style)) for key, each in value.items()]
    return (style.newline * 2 if before else "") + style.newline.join([header, *body])


def _last_of(lines: List[Line], header: Line) -> int:
    """The end of the last key under a header."""
    end = header.end
    for each in lines[lines.index(header) + 1 :]:
        if each.value is None:
            break
        end = each.end
    return end


def remove_toml(text: str, where: Where) -> Optional[List[Change]]:
    """The changes that take a place out with all that it holds; None where it has no lines of its own."""
    lines = toml_lines(text)
    changes: List[Change] = []
    table: Optional[Tuple[int, int]] = None
    for each in lines:
        if each.where[: len(where)] == where:
            start, end = each.start, _behind_line(text, each.end)
            if table is not None:
                table = (table[0], end)
            elif each.value is None:
                table = (_before_blank(text, start), end)
            else:
                changes.append(Change(start, end))
        elif table is not None:
            changes.append(Change(*table))
            table = None
    if table is not None:
        changes.append(Change(*table))
    return changes or None


def _before_blank(text: str, start: int) -> int:
    """The start of the blank line that sets a table apart, if there is one."""
    for blank in ("\n\r\n", "\n\n"):
        if text[:start].endswith(blank):
            return start - len(blank) + 1
    return start
