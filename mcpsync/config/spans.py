"""Where the parts of a file stand: a tree of nodes with their places in its text.

Reading uses it for the lines in messages, editing for what it may touch. :mod:`mcpsync.config.jsonc` and
:mod:`mcpsync.config.yaml_reader` build it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import List, Optional

from mcpsync.config.diagnose import Where

__all__ = ["Member", "Node", "find", "line_at", "nearest_start"]


@dataclass
class Node:
    """A value in a text.

    :ivar kind: ``map``, ``list``, ``scalar``, or ``alias`` for one that stands at another place
    :ivar start: of its first character
    :ivar end: behind its last one
    :ivar flow: it stands in brackets; False for the indented blocks of YAML
    """

    kind: str
    start: int
    end: int
    flow: bool = True
    members: List[Member] = field(default_factory=list)


@dataclass
class Member:
    """A key with its value in a map; an item of a list has no key.

    :ivar start: of the key, or of the item
    :ivar key_end: behind the key; of an item, its start
    """

    key: Optional[str]
    start: int
    key_end: int
    value: Node


def find(root: Node, where: Where) -> Optional[Member]:
    """What stands at a place, or None. Of a key that stands twice, the last one, which counts."""
    found: Optional[Member] = None
    node = root
    for step in where:
        found = _step(node, step)
        if found is None:
            return None
        node = found.value
    return found


def _step(node: Node, step: object) -> Optional[Member]:
    if isinstance(step, int) and node.kind == "list":
        return node.members[step] if step < len(node.members) else None
    return next((each for each in reversed(node.members) if each.key == step), None) if node.kind == "map" else None


def nearest_start(root: Node, where: Where) -> int:
    """Where a place begins; for one that the text does not have, the place around it."""
    start, node = root.start, root
    for step in where:
        found = _step(node, step)
        if found is None:
            break
        start, node = found.start, found.value
    return start


def line_at(text: str, position: int) -> int:
    """The line of a position, from 1. CR, LF and CR LF end a line."""
    before = text[:position]
    return before.count("\n") + before.count("\r") - before.count("\r\n") + 1
