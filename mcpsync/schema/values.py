"""JSON values: their kinds, when two of them are equal, and how they are named without being shown."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Dict, Hashable, Type

from mcpsync.schema.work import Work

__all__ = ["KINDS", "described", "exact", "frozen", "kind_of", "shown"]

KINDS: Dict[str, Type[Any]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": float,
    "boolean": bool,
    "null": type(None),
}
"""The Python type that stands for each type of JSON Schema; a number without fraction is either of two."""

_MOST_SHOWN = 60


def kind_of(value: Any) -> Type[Any]:
    """Which of these types a value of any Python type counts as; ``object`` for what is no JSON value."""
    if isinstance(value, Mapping):
        return dict
    if isinstance(value, (list, tuple)):
        return list
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind
    return type(None) if value is None else object


def frozen(value: Any, work: Work) -> Hashable:
    """Something that is equal and has the same hash for values that are equal as JSON: 1 and 1.0, not 1 and true.

    Numbers go as text, since whoever chooses numbers can choose ones with the same hash.
    """
    kind = type(value)
    if kind not in (str, int, float, bool, dict, list, type(None)):
        kind = kind_of(value)
    work.charge(2)
    if kind is str:
        return str(value)
    if kind is float and value.is_integer():
        kind, value = int, int(value)
    if kind is int or kind is float:
        return (0, _digits(value, work))
    if kind is bool or value is None:
        return (1, value)
    if kind is dict:
        return (2, frozenset((key, frozen(item, work)) for key, item in value.items()))
    if kind is list:
        return (3, tuple(frozen(item, work) for item in value))
    return (4, id(value))


def _digits(value: Any, work: Work) -> str:
    if isinstance(value, float):
        return repr(value)
    if value.bit_length() > 256:
        work.charge(value.bit_length() // 64)
    return "%x" % value


def exact(number: Any) -> Fraction:
    """The number that was written: 0.1 is a tenth, as in the text that the float came from."""
    return Fraction(repr(number)) if isinstance(number, float) else Fraction(int(number))


def shown(value: Any) -> str:
    """A part of a schema, bounded."""
    if isinstance(value, int) and not isinstance(value, bool) and value.bit_length() > 256:
        return "a number of more than 70 digits"
    if isinstance(value, str):
        return "%.60r" % value[:_MOST_SHOWN]
    if isinstance(value, (dict, list)):
        return described(value)
    if value is None or isinstance(value, bool):
        return {True: "true", False: "false", None: "null"}[value]
    return repr(value)


def described(value: Any) -> str:
    """A value by kind and size. What a text says is not shown: it may be a secret."""
    kind = kind_of(value)
    if kind is str:
        return "a string of %s" % _counted(len(value), "character")
    if kind is dict:
        return "an object with %s" % _counted(len(value), "property", "properties")
    if kind is list:
        return "an array of %s" % _counted(len(value), "item")
    if kind is bool:
        return "true" if value else "false"
    if kind is type(None):
        return "null"
    return shown(value) if kind in (int, float) else "a Python %s" % type(value).__name__


def _counted(number: int, one: str, many: str = "") -> str:
    return "%d %s" % (number, one if number == 1 else many or one + "s")
