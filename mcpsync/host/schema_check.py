"""Whether a tool's input schema can be given to a model at all, looked at before the tool is used.

Only the structure is checked, as model APIs refuse a whole request for one tool with a wrong one: an object at the
top, arrays that say what is in them, references that lead somewhere within the schema, bounds on depth and size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, List, Optional, Tuple
from urllib.parse import unquote

from mcpsync.host.remembered import Remembered
from mcpsync.schema.structure import LISTS, MAPS, Path, children, follow

__all__ = ["MAX_DEPTH", "MAX_NODES", "schema_problem"]

#: How deeply subschemas may be nested.
MAX_DEPTH = 32
#: How many subschemas a schema may have.
MAX_NODES = 5_000

_MAPS, _LISTS = frozenset(MAPS), frozenset(LISTS)
_TYPES = frozenset(("array", "boolean", "integer", "null", "number", "object", "string"))
_REFERENCES = ("$ref", "$dynamicRef")


def schema_problem(schema: Any) -> Optional[str]:
    """What is wrong with the input schema of a tool, with the path to it; None if nothing is.

    A schema that is missing, or an empty object, stands for a tool without arguments.
    """
    return _remembered(schema)


def _look(schema: Any) -> Optional[str]:
    if schema is None:
        return None
    if not isinstance(schema, Mapping):
        return "the input schema is %s, not an object" % _kind(schema)
    stated = schema.get("type", "object")
    if stated != "object":
        return "the input schema is of type %.60r, and arguments are an object" % (stated,)
    waiting: List[Tuple[int, Path, Any]] = [(0, (), schema)]
    seen = 0
    while waiting:
        depth, path, node = waiting.pop()
        seen += 1
        if seen > MAX_NODES:
            return "the input schema has more than %d parts" % MAX_NODES
        if depth <= MAX_DEPTH and _is_plain(node):
            continue
        problem = _node_problem(node, schema)
        if problem is None and depth > MAX_DEPTH:
            problem = "nested more than %d deep" % MAX_DEPTH
        if problem is not None:
            return "%s: %s" % (_shown(path) or "the input schema", problem)
        if isinstance(node, (dict, Mapping)):
            waiting.extend(reversed([(depth + 1, path + more, child) for more, child in children(node)]))
    return None


_remembered = Remembered(_look)

_PLAIN = frozenset(("type", "description", "title", "default"))
_LEAVES = ("string", "integer", "number", "boolean", "null")


def _is_plain(node: Any) -> bool:
    """Whether it is what most parameters are: a type, described. Nothing can be wrong with that."""
    return isinstance(node, dict) and node.keys() <= _PLAIN and node.get("type") in _LEAVES


def _node_problem(node: Any, root: Mapping[str, Any]) -> Optional[str]:
    if isinstance(node, bool):
        return None
    if not isinstance(node, (dict, Mapping)):
        return "%s where a schema belongs" % _kind(node)
    for key in node:  # of the few that a schema has, in place of the many that it may have
        if key in _MAPS and not isinstance(node[key], (dict, Mapping)):
            return "%s is %s, not an object" % (key, _kind(node[key]))
        if key in _LISTS and not isinstance(node[key], list):
            return "%s is %s, not a list" % (key, _kind(node[key]))
    types = node.get("type", [])
    types = types if isinstance(types, list) else [types]
    wrong = [each for each in types if not isinstance(each, str) or each not in _TYPES]
    if wrong:
        return "there is no type %.60r" % (wrong[0],)
    if "array" in types and "items" not in node and "prefixItems" not in node:
        return "an array without items or prefixItems"
    required = node.get("required", [])
    if not isinstance(required, list) or not all(isinstance(name, str) for name in required):
        return "required is not a list of names"
    for key in _REFERENCES:
        if key in node:
            problem = _reference_problem(node[key], root)
            if problem is not None:
                return problem
    return None


def _reference_problem(reference: Any, root: Mapping[str, Any]) -> Optional[str]:
    if not isinstance(reference, str):
        return "a $ref that is %s" % _kind(reference)
    if reference == "#":
        return None
    if not reference.startswith("#"):
        return "the $ref %.100r leads out of the schema; nothing is fetched" % reference
    if not reference.startswith("#/"):
        if _has_anchor(root, unquote(reference[1:])):
            return None
        return "the $ref %.100r leads nowhere" % reference
    found, target = follow(reference[1:], root)
    if not found:
        return "the $ref %.100r leads nowhere" % reference
    return None if isinstance(target, (Mapping, bool)) else "the $ref %.100r leads to no schema" % reference


def _has_anchor(root: Mapping[str, Any], anchor: str) -> bool:
    waiting: List[Any] = [root]
    for _ in range(MAX_NODES):
        if not waiting:
            return False
        node = waiting.pop()
        if isinstance(node, (dict, Mapping)):
            if anchor in (node.get("$anchor"), node.get("$dynamicAnchor")):
                return True
            waiting.extend(node.values())
        elif isinstance(node, list):
            waiting.extend(node)
    return False


def _shown(path: Path) -> str:
    text = ""
    for step in path:
        text += "[%d]" % step if isinstance(step, int) else ("." if text else "") + "%.60s" % step
    return text if len(text) <= 200 else text[:100] + "…" + text[-99:]


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
    return names.get(type(value), "a number")
