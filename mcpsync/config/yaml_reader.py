"""YAML by PyYAML's safe loader, with the scalars of YAML 1.2.

Under YAML 1.1 ``no`` is false, ``1:30`` is 90 and ``0755`` is 493, which spoils arguments and variables that
are written without quotes. Here a plain scalar is a boolean only as ``true`` or ``false``, and a number only where
its text can be had back from it; everything else stays text.
"""

from __future__ import annotations

import re
from typing import List, Optional, Set, Tuple

import yaml

from mcpsync.config.diagnose import Where
from mcpsync.config.read import Document
from mcpsync.config.spans import Member, Node
from mcpsync.errors import ConfigError

__all__ = ["parse_yaml"]

_QUOTED = re.compile(r"'(?!<|\\.')[^']{2,}'")


class _Loader(yaml.SafeLoader):
    yaml_implicit_resolvers = {}  # noqa: RUF012 - the declaration of the base class


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"0|-?[1-9][0-9]*", list("-0123456789")),
    ("float", r"-?(?:0|[1-9][0-9]*)\.[0-9]+", list("-0123456789")),
    ("merge", r"<<", ["<"]),
):
    _Loader.add_implicit_resolver("tag:yaml.org,2002:" + _tag, re.compile("^(?:%s)$" % _pattern), _first)


def parse_yaml(text: str, path: str) -> Document:
    """Parse one YAML document.

    :raises ConfigError: the syntax is wrong, with line and column
    """
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
            repeated = _repeated(root) if root is not None else []
            data = loader.construct_document(root) if root is not None else None
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = "line %d, column %d" % (mark.line + 1, mark.column + 1) if mark else None
        # What the message quotes comes from the file, apart from names of tokens, as '<block end>', and escapes.
        problem = _QUOTED.sub("'...'", error.problem or error.context or "syntax error")
        raise ConfigError("no valid YAML: %s" % problem, file=path, path=place) from None
    except yaml.reader.ReaderError as error:
        before = text[: error.position]
        place = "line %d, column %d" % (before.count("\n") + 1, len(before) - before.rfind("\n"))
        raise ConfigError("no valid YAML: a character that is not allowed", file=path, path=place) from None
    except ValueError:  # an integer of more digits than the interpreter converts
        raise ConfigError("no valid YAML: a number has too many digits", file=path) from None
    return Document(data, tuple(repeated), text, lambda: _nodes(text, root))


def _repeated(root: yaml.Node) -> List[Where]:
    """Places of repeated keys; read from the nodes, since merge keys (``<<``) may repeat what they merge."""
    found: List[Where] = []
    seen: Set[int] = set()  # an anchor may be used many times, and inside itself
    waiting: List[Tuple[Where, yaml.Node]] = [((), root)]
    while waiting:
        where, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, yaml.MappingNode):
            keys: Set[str] = set()
            for key, value in node.value:
                if not isinstance(key, yaml.ScalarNode):
                    continue
                if key.value in keys and key.tag != "tag:yaml.org,2002:merge":
                    found.append((*where, key.value))
                keys.add(key.value)
                waiting.append(((*where, key.value), value))
        elif isinstance(node, yaml.SequenceNode):
            waiting.extend(((*where, index), inner) for index, inner in enumerate(node.value))
    return found


_ALIAS = re.compile(r"[\s:,?-]*(\*[^\s,\[\]{}]+)")


def _nodes(text: str, root: Optional[yaml.Node]) -> Node:
    if root is None:
        return Node("scalar", len(text), len(text), flow=False)
    return _node(root, text, 0)


def _node(node: yaml.Node, text: str, after: int) -> Node:
    """A node as ours.

    :param after: where it can begin at the earliest: an alias has the place of what it names
    """
    start, end = node.start_mark.index, node.end_mark.index
    if start < after:
        alias = _ALIAS.match(text, after)
        return Node("alias", *(alias.span(1) if alias else (after, after)))
    if isinstance(node, yaml.ScalarNode):
        if node.style not in ("|", ">"):
            return Node("scalar", start, end)
        return Node("scalar", start, start + len(text[start:end].rstrip()), flow=False)
    assert isinstance(node, yaml.CollectionNode)
    found = Node("map" if isinstance(node, yaml.MappingNode) else "list", start, end, flow=bool(node.flow_style))
    position = start + 1  # what begins where this does is an alias of this
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            name = key.value if isinstance(key, yaml.ScalarNode) else None
            key_end = key.end_mark.index
            found.members.append(Member(name, key.start_mark.index, key_end, _node(value, text, key_end)))
    else:
        for item in node.value:
            inner = _node(item, text, position)
            position = inner.end
            found.members.append(Member(None, inner.start, inner.start, inner))
    if not found.flow and found.members:
        # a block ends where the next token begins, behind blank lines and comments: its content ends before
        found.end = max(member.value.end for member in found.members)
    return found
