"""The base of types that are a view of the JSON object they came as: cheap to make, parsed when looked at."""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from reprlib import Repr
from typing import Any, Tuple, Type, TypeVar

from mcpsync.errors import InvalidMessage
from mcpsync.types.readers import JsonObject, expected

__all__ = ["RawView", "shortened"]

T = TypeVar("T", bound="RawView")


class _Short(Repr):
    """Which goes by the names of types: frozen objects and arrays are shown as the plain ones."""

    repr_FrozenDict = Repr.repr_dict
    repr_FrozenList = Repr.repr_list


_SHORT = _Short()
_SHORT.maxstring = _SHORT.maxother = 120
_SHORT.maxlevel = 3


def shortened(value: object) -> str:
    """A repr of bounded length."""
    return _SHORT.repr(value)


class RawView:
    """A typed view of a JSON object, which it shares and never changes.

    Views compare by type and object, are not hashable, pickle, and have a repr of bounded length.

    :ivar raw: the JSON object as parsed
    :raises InvalidMessage: it is no object
    """

    __slots__ = ("raw",)

    raw: JsonObject

    def __init__(self, raw: JsonObject) -> None:
        if not isinstance(raw, AbstractMapping):
            raise InvalidMessage("%s: %s" % (type(self).__name__, expected("an object", raw)))
        self.raw = raw

    @classmethod
    def from_wire(cls: Type[T], wire: JsonObject) -> T:
        """The view of a JSON object.

        :raises InvalidMessage: it is no object
        """
        return cls(wire)

    def to_wire(self) -> JsonObject:
        """The JSON object."""
        return self.raw

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.raw == other.raw

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return "%s(%s)" % (type(self).__name__, shortened(self.raw))

    def __reduce__(self) -> Tuple[Any, ...]:
        return type(self), (self.raw,)
