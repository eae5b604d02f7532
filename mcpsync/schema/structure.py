"""Where the parts of a JSON Schema stand, in all dialects together, and how large one may be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Iterator, List, Optional, Sequence, Tuple, Union
from urllib.parse import unquote

__all__ = ["LISTS", "MAPS", "MOST_VALUES", "ONE", "Path", "children", "follow", "size_problem"]

ONE = (
    *("additionalItems", "additionalProperties", "contains", "contentSchema", "else", "if", "not", "propertyNames"),
    *("then", "unevaluatedItems", "unevaluatedProperties"),
)
"""Keywords that hold a schema."""
LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
"""Keywords that hold a list of schemas."""
MAPS = ("$defs", "definitions", "dependentSchemas", "patternProperties", "properties")
"""Keywords that hold schemas by name."""
_HOLDERS = frozenset((*ONE, *LISTS, *MAPS, "items", "dependencies"))

MOST_DEPTH = 100
MOST_PARTS = 3_000
MOST_VALUES = 50_000
MOST_TEXT = 1_000_000

Step = Union[str, int]
Path = Tuple[Step, ...]


def children(node: Mapping[str, Any]) -> Iterator[Tuple[Path, Any]]:
    """The subschemas of a schema whose own structure is right, each with the way to it."""
    if _HOLDERS.isdisjoint(node):
        return  # most
    for key in ONE:
        if key in node:
            yield (key,), node[key]
    items = node.get("items")
    if isinstance(items, list):
        yield from ((("items", index), item) for index, item in enumerate(items))
    elif items is not None:
        yield ("items",), items
    for key in LISTS:
        if key in node:
            yield from (((key, index), item) for index, item in enumerate(node[key]))
    for key in MAPS:
        if key in node:
            yield from (((key, name), item) for name, item in node[key].items())
    dependencies = node.get("dependencies")
    if isinstance(dependencies, Mapping):  # draft-07; the other kind of entry is a list of names
        yield from ((("dependencies", name), item) for name, item in dependencies.items() if not isinstance(item, list))


def follow(pointer: str, root: Any) -> Tuple[bool, Any]:
    """What a JSON pointer, as it stands in a URI, leads to: whether there is such a thing, and it."""
    target = root
    for part in pointer.split("/")[1:]:
        step = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(target, Mapping) and step in target:
            target = target[step]
        elif isinstance(target, list) and step.isascii() and step.isdigit() and int(step[:9]) < len(target):
            target = target[int(step[:9])]
        else:
            return False, None
    return True, target


def size_problem(schema: Any) -> Optional[str]:
    """Why a schema is too large to be used at all; None if it is not."""
    values = text = parts = 0
    waiting: List[Tuple[int, Sequence[Any]]] = [(0, [schema])]
    while waiting:
        depth, found = waiting.pop()
        values += len(found)
        if values > MOST_VALUES:
            return "it consists of more than %d values" % MOST_VALUES
        if depth > MOST_DEPTH:
            return "it is nested more than %d deep" % MOST_DEPTH
        for each in found:
            if isinstance(each, str):
                text += len(each)
            elif isinstance(each, Mapping):
                text += sum(map(len, each))
                parts += 1
                waiting.append((depth + 1, list(each.values())))
            elif isinstance(each, list):
                waiting.append((depth + 1, each))
            elif isinstance(each, int) and each.bit_length() > 4_096:
                return "a number in it has more than 1,200 digits"
        if parts > MOST_PARTS:
            return "it has more than %d parts" % MOST_PARTS
        if text > MOST_TEXT:
            return "it has more than %d characters" % MOST_TEXT
    return None
