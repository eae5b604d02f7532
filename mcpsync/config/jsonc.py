"""JSON with comments and trailing commas: both are blanked out, so that every place stays where it was."""

from __future__ import annotations

import json
import re
from typing import Any, List, Match, Optional

from mcpsync.config.spans import Member, Node

__all__ = ["COMMENT", "json_nodes", "strict_json"]

# Each alternative also takes what has no end, up to the end of the text: so the work stays linear.
_STRING = r'"[^"\\]*(?:\\.[^"\\]*)*"?'
COMMENT = r"//[^\r\n]*|/\*(?:.*?\*/|.*\Z)"
_COMMENTS = re.compile("(?P<string>%s)|(?P<blank>%s)" % (_STRING, COMMENT), re.DOTALL)
_COMMAS = re.compile(r"(?P<string>%s)|(?P<blank>,)(?=\s*[}\]])" % _STRING, re.DOTALL)
_NOT_A_LINE_END = re.compile(r"[^\r\n]")
_TOKEN = re.compile(r'\s*([{}\[\],:]|%s|[^\s{}\[\],:"]+)' % _STRING, re.DOTALL)


def _blanked(match: Match[str]) -> str:
    return match.group() if match["string"] is not None else _NOT_A_LINE_END.sub(" ", match.group())


def _trailing(match: Match[str]) -> str:
    """A comma behind nothing is no trailing one."""
    before = match.start() - 1
    while before >= 0 and match.string[before].isspace():
        before -= 1
    return match.group() if match.string[before : before + 1] in ("", ",", "{", "[", ":") else _blanked(match)


def strict_json(text: str) -> str:
    """The text with blanks in place of comments and trailing commas; everything else stands where it stood."""
    return _COMMAS.sub(_trailing, _COMMENTS.sub(_blanked, text))


def json_nodes(text: str) -> Node:
    """The tree of a text that :func:`strict_json` gave and that is known to parse."""
    open_nodes: List[Node] = []
    root: Optional[Node] = None
    key: Optional[str] = None
    key_start = key_end = 0
    expects_key = False
    position = 0
    while True:
        match = _TOKEN.match(text, position)
        if match is None:
            break
        position = match.end()
        token, start = match[1], match.start(1)
        if token == ",":
            expects_key = open_nodes[-1].kind == "map"
        elif token in ("}", "]"):
            open_nodes.pop().end = position
            expects_key = False
        elif token == ":":
            expects_key = False
        elif expects_key:
            key, key_start, key_end = _key(token), start, position
        else:
            node = Node({"{": "map", "[": "list"}.get(token, "scalar"), start, position)
            if open_nodes:
                around = open_nodes[-1]
                if around.kind == "map":
                    around.members.append(Member(key, key_start, key_end, node))
                else:
                    around.members.append(Member(None, start, start, node))
            root = root or node
            if node.kind != "scalar":
                open_nodes.append(node)
                expects_key = node.kind == "map"
    return root or Node("scalar", 0, len(text))


def _key(token: str) -> Any:
    return json.loads(token)
