"""Readers of JSON values, made from type annotations.

A reader returns the value in the type that the annotation names, or raises InvalidMessage, whose text tells the
kind of the value and never the value itself.
"""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from typing import Any, Callable, Dict, List, Literal, Mapping, Union, get_args, get_origin

from mcpsync.errors import InvalidMessage

__all__ = ["JsonObject", "Reader", "expected", "reader"]

JsonObject = Mapping[str, Any]
"""A JSON object, as parsed. Shared with the message it came in: read it, do not change it."""

Reader = Callable[[Any], Any]


def reader(hint: Any) -> Reader:
    """What reads a JSON value into the type that a resolved annotation names, or raises InvalidMessage."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin = get_origin(hint)
    if origin is AbstractMapping:
        return _read_object
    if origin is Literal:
        return _choice_reader(get_args(hint))
    if origin is list:
        return _list_reader(reader(get_args(hint)[0]))
    if origin is Union:
        return _union_reader([part for part in get_args(hint) if part is not type(None)])
    read: Reader = hint.from_wire
    return read


def _read_any(value: Any) -> Any:
    return value


def _read_string(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise InvalidMessage(expected("a string", value))


def _read_boolean(value: Any) -> bool:
    if isinstance(value, bool):
        return value
    raise InvalidMessage(expected("a boolean", value))


def _read_number(value: Any) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    raise InvalidMessage(expected("a number", value))


def _read_integer(value: Any) -> int:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    raise InvalidMessage(expected("an integer", value))


def _read_object(value: Any) -> JsonObject:
    if isinstance(value, AbstractMapping):
        return value
    raise InvalidMessage(expected("an object", value))


_PLAIN: Dict[Any, Reader] = {
    Any: _read_any,
    str: _read_string,
    bool: _read_boolean,
    float: _read_number,
    int: _read_integer,
}


def _choice_reader(choices: Any) -> Reader:
    def read(value: Any) -> str:
        if isinstance(value, str) and value in choices:
            return value
        raise InvalidMessage("expected %s" % " or ".join(repr(choice) for choice in choices))

    return read


def _list_reader(read_item: Reader) -> Reader:
    def read(value: Any) -> List[Any]:
        if not isinstance(value, (list, tuple)):
            raise InvalidMessage(expected("an array", value))
        items: List[Any] = []
        try:
            for item in value:
                items.append(read_item(item))
        except InvalidMessage as error:
            raise InvalidMessage("item %d: %s" % (len(items), error.message)) from None
        return items

    return read


def _union_reader(parts: List[Any]) -> Reader:
    """Objects told apart by their ``type``, the class without one taking the rest; perhaps an array of such."""
    if len(parts) == 1:
        return reader(parts[0])
    arrays = [reader(part) for part in parts if get_origin(part) is list]
    objects: Dict[Any, Reader] = {
        getattr(part, "type", None): part.from_wire for part in parts if get_origin(part) is not list
    }
    rest = objects.pop(None)

    def read(value: Any) -> Any:
        if arrays and isinstance(value, (list, tuple)):
            return arrays[0](value)
        if not isinstance(value, AbstractMapping):
            raise InvalidMessage(expected("an object", value))
        tag = value.get("type")
        return (objects.get(tag, rest) if isinstance(tag, str) else rest)(value)

    return read


def expected(what: str, value: Any) -> str:
    """What to say of a value of the wrong type."""
    return "expected %s, got %s" % (what, _kind(value))


def _kind(value: Any) -> str:
    """The JSON type, never the value: it may be long or secret."""
    if value is None:
        return "null"
    for kind, name in (
        (bool, "a boolean"),
        ((int, float), "a number"),
        (str, "a string"),
        (AbstractMapping, "an object"),
        ((list, tuple), "an array"),
    ):
        if isinstance(value, kind):
            return name
    return "a Python %s" % type(value).__name__
