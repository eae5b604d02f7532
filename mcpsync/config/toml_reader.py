"""TOML by the standard library, or by ``tomli`` before Python 3.11; and the lines where tables and keys stand."""

from __future__ import annotations

import re
import sys
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

from mcpsync.config.diagnose import Where
from mcpsync.config.read import Document
from mcpsync.errors import ConfigError

__all__ = ["Line", "parse_toml", "toml_lines"]

_AT = re.compile(r"\s*\(at (?:line (\d+), column (\d+)|end of document)\)\s*$")
_STRINGS = r'"""(?:[^\\]|\\.)*?"""|\'\'\'.*?\'\'\'|"(?:[^"\\\n]|\\.)*"|\'[^\'\n]*\''
_PART = re.compile(r"\s*(?:\"((?:[^\"\\\n]|\\.)*)\"|'([^'\n]*)'|([A-Za-z0-9_-]+))\s*")
_VALUE = re.compile(r"(?P<skip>%s|#[^\n]*)|(?P<open>[\[{])|(?P<close>[\]}])|(?P<line>\n)" % _STRINGS, re.DOTALL)


class Line(NamedTuple):
    """A header, or a key with its value.

    :ivar where: the table, or the key within it, from the root
    :ivar start: of its first line
    :ivar end: behind its value, before a comment or the end of the line
    :ivar value: where the value begins; None for a header
    """

    where: Where
    start: int
    end: int
    value: Optional[int]


def parse_toml(text: str, path: str) -> Document:
    """Parse a TOML file.

    :raises ConfigError: the syntax is wrong, or this interpreter has no TOML parser
    """
    toml = _module(path)
    try:
        data: Dict[str, Any] = toml.loads(text.replace("\r\n", "\n"))
    except ValueError as error:
        place = _AT.search(str(error))
        at = "line %s, column %s" % place.groups() if place and place[1] else None
        # the message may quote the file
        reason = re.sub(r"'.*?'|\".*?\"", "'...'", _AT.sub("", str(error)))
        reason = "no valid TOML: %s" % (reason[:1].lower() + reason[1:])
        raise ConfigError(reason, file=path, path=at) from None
    lines: Dict[Where, int] = {}

    def line(where: Where) -> int:
        if not lines:
            for each in toml_lines(text):
                lines.setdefault(each.where, text.count("\n", 0, each.start) + 1)
        return next((lines[where[:length]] for length in range(len(where), 0, -1) if where[:length] in lines), 1)

    return Document(data, (), text, lines=line)


def _module(path: str) -> Any:
    if sys.version_info >= (3, 11):
        import tomllib

        return tomllib
    try:
        import tomli
    except ImportError:
        raise ConfigError(
            "a TOML file needs Python 3.11, or the extra 'toml': pip install 'mcpsync[toml]'", file=path
        ) from None
    return tomli


def toml_lines(text: str) -> List[Line]:
    """Headers and keys, in their order, of a text that is known to parse."""
    found: List[Line] = []
    table: Where = ()
    position = 0
    while position < len(text):
        start = position
        line_end = text.find("\n", start)
        line_end = len(text) if line_end < 0 else line_end
        first = text[start:line_end].strip()
        if not first or first.startswith("#"):
            position = line_end + 1
            continue
        if first.startswith("["):
            opening = text.index("[", start)
            keys, after = _dotted(text, opening + (2 if first.startswith("[[") else 1))
            table = keys
            found.append(Line(table, start, text.index("]", after) + (2 if first.startswith("[[") else 1), None))
            position = line_end + 1
            continue
        keys, after = _dotted(text, start)
        value = after + 1  # behind the equals sign
        while text[value : value + 1] in (" ", "\t"):
            value += 1
        end = _value_end(text, value)
        found.append(Line((*table, *keys), start, end, value))
        line_end = text.find("\n", end)
        position = len(text) if line_end < 0 else line_end + 1
    return found


def _dotted(text: str, position: int) -> Tuple[Where, int]:
    keys: List[str] = []
    while True:
        match = _PART.match(text, position)
        if match is None:
            return tuple(keys), position
        quoted, literal, bare = match.groups()
        keys.append(_unescaped(quoted) if quoted is not None else literal if literal is not None else bare)
        position = match.end()
        if text[position : position + 1] != ".":
            return tuple(keys), position
        position += 1


def _unescaped(quoted: str) -> str:
    import json

    try:
        return str(json.loads('"%s"' % quoted))
    except ValueError:  # an escape that JSON does not have: such a key is not found, and not edited
        return quoted


def _value_end(text: str, start: int) -> int:
    """Behind a value: it ends at the end of a line that stands in no bracket and no string."""
    depth = 0
    end = start
    position = start
    while True:
        match = _VALUE.search(text, position)
        if match is None:
            end = len(text)
            break
        if match["line"] is not None and depth == 0:
            end = match.start()
            break
        if match["skip"] is not None and match["skip"].startswith("#") and depth == 0:
            end = match.start()
            break
        depth += (match["open"] is not None) - (match["close"] is not None)
        position = match.end()
    return start + len(text[start:end].rstrip())
