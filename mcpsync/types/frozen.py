"""Values that are handed out more than once, and that nobody who got one can change for the others.

A frozen JSON object is a ``dict`` still and a frozen array a ``list``, so whatever reads or writes JSON takes them.
What would change one raises ``TypeError``. Copies (``copy.copy``, ``copy.deepcopy``, ``pickle``) are ordinary objects
again.
"""

from __future__ import annotations

from sys import getsizeof
from typing import Any, Dict, List, Tuple

from mcpsync.types.wire import FROZEN, Record

__all__ = ["FrozenDict", "FrozenList", "freeze"]


def _refuse(self: Any, *args: Any, **kwargs: Any) -> Any:
    raise TypeError(FROZEN)


class FrozenDict(Dict[Any, Any]):
    """A JSON object that does not change."""

    __slots__ = ()

    def __reduce__(self) -> Tuple[Any, ...]:
        return dict, (dict(self),)


class FrozenList(List[Any]):
    """A JSON array that does not change."""

    __slots__ = ()

    def __reduce__(self) -> Tuple[Any, ...]:
        return list, (list(self),)


# set here, since a type checker holds an override to what it overrides
for _name in ("__setitem__", "__delitem__", "__ior__", "clear", "pop", "popitem", "setdefault", "update"):
    setattr(FrozenDict, _name, _refuse)
for _name in (
    *("__setitem__", "__delitem__", "__iadd__", "__imul__", "append", "clear", "extend", "insert", "pop", "remove"),
    *("reverse", "sort"),
):
    setattr(FrozenList, _name, _refuse)


def freeze(value: Any) -> Tuple[Any, int]:
    """The value, frozen with all that is in it, and about how many bytes it takes.

    Typed objects are frozen as they are, JSON objects and arrays are replaced.

    :raises RecursionError: it is nested too deeply; what has been frozen by then stays so
    """
    kind = type(value)
    if kind is dict or kind is FrozenDict:
        taken = getsizeof(value)
        items = {}
        for key, entry in value.items():
            items[key], size = freeze(entry)
            taken += size + getsizeof(key)
        return FrozenDict(items), taken
    if kind is list or kind is FrozenList or isinstance(value, tuple):
        taken = getsizeof(value)
        entries = []
        for entry in value:
            frozen, size = freeze(entry)
            entries.append(frozen)
            taken += size
        if not isinstance(value, tuple):
            return FrozenList(entries), taken
        return (kind._make(entries) if hasattr(kind, "_make") else tuple(entries)), taken
    if isinstance(value, Record):
        # keys are the names of fields, which all objects of a type share
        fields: Dict[str, Any] = {}
        taken = getsizeof(value.__dict__)
        for name, entry in value.__dict__.items():
            fields[name], size = freeze(entry)
            taken += size
        value.__dict__ = FrozenDict(fields)
        return value, taken
    return value, getsizeof(value)
