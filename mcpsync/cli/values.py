"""Arguments of tools and prompts, as they are written on a command line."""

from __future__ import annotations

import json
import sys
from typing import Any, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set

from mcpsync.cli.arguments import closest
from mcpsync.errors import ConfigError

__all__ = ["json_object", "prompt_arguments", "tool_arguments"]

_COMBINATIONS = ("anyOf", "oneOf", "allOf")
_OPENINGS = ("additionalProperties", "patternProperties", "propertyNames", "$ref", *_COMBINATIONS)

_JSON_TYPES = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def json_object(source: str) -> Dict[str, Any]:
    """The value of ``--args``.

    :param source: a JSON object; ``@FILE`` for the one in a file, ``-`` for the one on stdin
    :raises ConfigError: it cannot be read, or is none
    """
    where = "--args"
    try:
        if source == "-":
            where = "--args, from stdin"
            text = sys.stdin.read()
        elif source.startswith("@"):
            where = "--args, from %s" % source[1:]
            with open(source[1:], encoding="utf-8-sig") as file:
                text = file.read()
        else:
            text = source
    except OSError as error:
        raise ConfigError("%s: cannot be read: %s" % (where, error.strerror)) from None
    except UnicodeDecodeError:
        raise ConfigError("%s: is no UTF-8 text" % where) from None
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ConfigError("%s: no valid JSON: %s" % (where, error)) from None
    if not isinstance(value, dict):
        raise ConfigError('%s: must be a JSON object, as {"key": "value"}' % where)
    return value


def tool_arguments(tool: str, schema: Mapping[str, Any], words: Sequence[str], whole: Optional[str]) -> Dict[str, Any]:
    """The arguments for a tool.

    Those written as ``key=value`` are checked against the names in the schema; what ``--args`` gives is not.

    :param schema: the tool's input schema, which nobody trusts
    :param words: ``key=value`` each
    :param whole: the value of ``--args``
    :raises ConfigError: one is wrong, or missing
    """
    arguments = {} if whole is None else json_object(whole)
    properties = schema.get("properties")
    known: Mapping[str, Any] = properties if isinstance(properties, dict) else {}
    # JSON Schema allows other keys unless told otherwise; far more often, another key is a slip.
    closed = bool(known) and not any(schema.get(key) for key in _OPENINGS)
    for key, text in _pairs(words).items():
        if closed and key not in known:
            raise ConfigError("tool %r has no argument %r" % (tool, key), nearest=closest(key, known))
        arguments[key] = _value(text, _types(known.get(key), schema))
    required = schema.get("required")
    if whole is None and isinstance(required, list):
        missing = [name for name in required if isinstance(name, str) and name not in arguments]
        if missing:
            raise ConfigError("tool %r needs %s" % (tool, ", ".join("%s=..." % name for name in missing)))
    return arguments


def prompt_arguments(prompt: str, known: Mapping[str, bool], words: Sequence[str]) -> Dict[str, str]:
    """The arguments for a prompt: texts.

    :param known: its arguments, and whether each is required
    :raises ConfigError: one is wrong, or missing
    """
    given = _pairs(words)
    for key in given:
        if key not in known:
            raise ConfigError("prompt %r has no argument %r" % (prompt, key), nearest=closest(key, known))
    missing = [name for name, required in known.items() if required and name not in given]
    if missing:
        raise ConfigError("prompt %r needs %s" % (prompt, ", ".join("%s=..." % name for name in missing)))
    return given


def _pairs(words: Sequence[str]) -> Dict[str, str]:
    pairs: Dict[str, str] = {}
    for word in words:
        key, equals, text = word.partition("=")
        if not key or not equals:
            raise ConfigError("arguments are written KEY=VALUE, and %r is not" % word)
        if key in pairs:
            raise ConfigError("the argument %r is given twice" % key)
        pairs[key] = text
    return pairs


def _value(text: str, types: FrozenSet[str]) -> Any:
    """The text as JSON, unless it is none or the schema wants a string."""
    if types and types <= {"string", "null"}:
        return text
    try:
        value = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return text
    if "string" in types and not types & _types_of(value):
        return text
    return value


def _refuse(constant: str) -> Any:
    raise ValueError("%s is no JSON" % constant)


def _types_of(value: Any) -> FrozenSet[str]:
    if value is None:
        return frozenset(["null"])
    name = next(name for kind, name in _JSON_TYPES if isinstance(value, kind))
    return frozenset([name, "number"] if name == "integer" else [name])


def _types(schema: Any, root: Mapping[str, Any]) -> FrozenSet[str]:
    """The JSON types that a schema names; empty where it does not say. Linear in the size of a hostile one."""
    found: Set[str] = set()
    seen: Set[int] = set()
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, dict) or id(each) in seen:
            continue
        seen.add(id(each))
        kind = each.get("type")
        choices = each.get("enum", [each["const"]] if "const" in each else None)
        reference = each.get("$ref")
        if kind is not None:
            found.update(name for name in (kind if isinstance(kind, list) else [kind]) if isinstance(name, str))
        elif isinstance(choices, list):
            found.update(*map(_types_of, choices))
        elif isinstance(reference, str) and reference.startswith("#/"):
            waiting.append(_at(root, reference[2:].split("/")))
        else:
            for combination in _COMBINATIONS:
                alternatives = each.get(combination)
                waiting.extend(alternatives if isinstance(alternatives, list) else ())
    return frozenset(found)


def _at(value: Any, steps: List[str]) -> Any:
    for step in steps:
        value = value.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(value, dict) else None
    return value
