"""One mechanism between the JSON objects of the protocol and typed Python objects.

A subclass of :class:`Wire` is written like a dataclass, and its annotations say all there is to know: a field
without a default is required, ``input_schema`` travels as ``inputSchema`` and ``meta`` as ``_meta``. The functions
of the ``dataclasses`` module work on it. It is not made by that module, whose import and generated code cost
more than a whole tool call needs otherwise: what a class consists of is worked out when it is first used.

Reading is lenient with what a peer may get wrong and strict with what cannot be done without: a required field
that is missing or of another type raises, an optional one that does not fit keeps its default and its value is
kept in ``extra``, beside the fields that this library does not know. So nothing that a server sent is lost, and
:meth:`Wire.to_wire` gives it back.
"""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Dict,
    List,
    Literal,
    Optional,
    Tuple,
    Type,
    TypeVar,
    get_args,
    get_origin,
    get_type_hints,
)

from mcpsync.errors import InvalidMessage
from mcpsync.types.raw import shortened
from mcpsync.types.readers import JsonObject, Reader, expected, reader

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: Any) -> Any:
        """What type checkers act on; nothing at run time."""
        return lambda cls: cls


__all__ = ["FROZEN", "JsonObject", "MetaWire", "Wire", "constant", "decode_base64"]

T = TypeVar("T", bound="Record")

_MISSING: Any = object()
FROZEN = (
    "this is shared by all who are given it from the response cache, and cannot be changed: copy.deepcopy() makes one "
    "that can, and cache='bypass' fetches one"
)
"""The text of the ``TypeError`` that whoever changes a frozen value gets."""


def constant(*, default: str, init: Literal[False] = False) -> Any:
    """A field with one possible value: checked when read, no parameter of the constructor."""
    return default


def trailing(*, default: Any, kw_only: Literal[True]) -> Any:
    """A field that all types share: the last, by keyword only."""
    return default


class _Step:
    """How one field is read and written."""

    __slots__ = ("constant", "hint", "key", "name", "nested", "read", "required")

    def __init__(self, name: str, hint: Any, required: bool) -> None:
        self.name = name
        self.hint = hint
        self.key = _key(name)
        self.constant = len(_choices(hint)) == 1
        self.required = required or self.constant
        self.nested = _holds_wire(hint)
        self.read: Reader = reader(hint)


class _Plan:
    """What a class consists of: its fields in order, without ``extra``."""

    __slots__ = ("defaults", "names", "parameters", "positional", "required", "steps")

    def __init__(self, cls: Type[Record]) -> None:
        hints = get_type_hints(cls)
        names = [name for name in hints if name not in ("meta", "extra")]
        if "meta" in hints:
            names.append("meta")
        self.defaults = {name: getattr(cls, name, None) for name in names}
        self.defaults["extra"] = None
        self.steps = [_Step(name, hints[name], not hasattr(cls, name)) for name in names]
        self.parameters = [step.name for step in self.steps if not step.constant]
        self.positional = [name for name in self.parameters if name != "meta"]
        self.required = [step.name for step in self.steps if step.required and not step.constant]
        self.names = frozenset(self.parameters) | {"extra"}


_PLANS: Dict[type, _Plan] = {}  # filled on first use; two threads at once store equal plans


def _plan(cls: Type[Record]) -> _Plan:
    plan = _PLANS.get(cls)
    if plan is None:
        plan = _PLANS[cls] = _Plan(cls)
    return plan


class _Dataclass:
    """What the functions of ``dataclasses`` look for on a class, taken from a true dataclass with the same fields,
    which is made when they look."""

    __slots__ = ("attribute",)

    models: ClassVar[Dict[type, type]] = {}

    def __init__(self, attribute: str) -> None:
        self.attribute = attribute

    def __get__(self, instance: object, owner: Type[Record]) -> Any:
        model = self.models.get(owner)
        if model is None:
            model = self.models[owner] = _dataclass_like(owner)
        return getattr(model, self.attribute)


def _dataclass_like(cls: Type[Record]) -> type:
    from dataclasses import MISSING, field, make_dataclass

    columns: List[Tuple[str, Any, Any]] = []
    for step in sorted(_plan(cls).steps, key=lambda step: not step.required):
        default = getattr(cls, step.name, MISSING)
        columns.append((step.name, step.hint, field(default=default, init=not step.constant)))
    columns.append(("extra", JsonObject, field(default_factory=dict)))
    return make_dataclass(cls.__name__, columns, eq=False, repr=False)


@dataclass_transform(eq_default=False, field_specifiers=(constant, trailing))
class Record:
    """The machinery of :class:`Wire`, which holds the fields that all types share."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        cls = type(self)
        plan = _plan(cls)
        if len(args) > len(plan.positional):
            raise TypeError(
                "%s() takes %d positional arguments, not %d" % (cls.__name__, len(plan.positional), len(args))
            )
        values = dict(zip(plan.positional, args))
        for name in kwargs:
            if name in values or name not in plan.names:
                problem = "got two values for" if name in values else "has no field"
                raise TypeError("%s() %s %r" % (cls.__name__, problem, name))
        values.update(kwargs)
        for name in plan.required:
            if name not in values:
                raise TypeError("%s() needs %r" % (cls.__name__, name))
        values.setdefault("extra", {})
        self.__dict__.update(plan.defaults)
        self.__dict__.update(values)

    @classmethod
    def from_wire(cls: Type[T], wire: JsonObject) -> T:
        """Read the JSON object of the protocol.

        :raises InvalidMessage: it is no object, or a required field is missing or of another type
        """
        if not isinstance(wire, AbstractMapping):
            raise InvalidMessage("%s: %s" % (cls.__name__, expected("an object", wire)))
        plan = _plan(cls)
        made = cls.__new__(cls)
        values = made.__dict__
        values.update(plan.defaults)
        values["extra"] = extra = dict(wire)
        for step in plan.steps:
            key = step.key
            value = extra.get(key, _MISSING)
            if value is _MISSING:
                if step.required:
                    raise InvalidMessage("%s.%s: required, but missing" % (cls.__name__, key))
            elif value is not None or step.required:
                try:
                    values[step.name] = step.read(value)
                except InvalidMessage as error:
                    if step.required:
                        raise InvalidMessage("%s.%s: %s" % (cls.__name__, key, error.message)) from None
                else:
                    del extra[key]
        return made

    def to_wire(self) -> Dict[str, Any]:
        """The JSON object of the protocol: attributes that are not None, then ``extra``."""
        values = self.__dict__
        wire: Dict[str, Any] = {}
        for step in _plan(type(self)).steps:
            value = values[step.name]
            if value is not None or step.required:
                wire[step.key] = _written(value) if step.nested else value
        for key, value in values["extra"].items():
            wire.setdefault(key, value)
        return wire

    if not TYPE_CHECKING:  # which would take it for leave to set any attribute

        def __setattr__(self, name: str, value: Any) -> None:
            if type(self.__dict__) is not dict and name != "__dict__":  # see mcpsync.types.frozen
                raise TypeError(FROZEN)
            object.__setattr__(self, name, value)

        def __delattr__(self, name: str) -> None:
            if type(self.__dict__) is not dict:
                raise TypeError(FROZEN)
            object.__delattr__(self, name)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        plan = _plan(type(self))
        shown = [name for name in plan.parameters if getattr(self, name) is not None]
        if self.__dict__["extra"]:
            shown.append("extra")
        fields = ", ".join("%s=%s" % (name, shortened(getattr(self, name))) for name in shown)
        return "%s(%s)" % (type(self).__name__, fields)


# Set here, not in the class: type checkers know what a dataclass has.
for _attribute in ("__dataclass_fields__", "__dataclass_params__"):
    setattr(Record, _attribute, _Dataclass(_attribute))


class Wire(Record):
    """The base of the protocol's data types.

    Objects compare by type and fields, are not hashable, pickle, and have a repr of bounded length.

    :ivar extra: fields of the JSON object that stand in no attribute, under their names there
    """

    extra: JsonObject = trailing(default=MappingProxyType({}), kw_only=True)


class MetaWire(Wire):
    """The base of those that carry ``_meta`` (specification: basic, ``_meta``).

    :ivar meta: the field ``_meta``, if there is one
    """

    meta: Optional[JsonObject] = trailing(default=None, kw_only=True)


def decode_base64(text: str, where: str) -> bytes:
    """The bytes behind base64 text; line breaks in it are ignored.

    :param where: type and field, for the error
    :raises InvalidMessage: the text is no base64
    """
    from binascii import a2b_base64

    try:
        return a2b_base64(text)
    except ValueError as error:
        raise InvalidMessage("%s: not base64 (%s)" % (where, error)) from None


def _key(name: str) -> str:
    if name == "meta":
        return "_meta"
    head, *tail = name.split("_")
    return head + "".join(word.capitalize() for word in tail)


def _choices(hint: Any) -> Tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) is Literal else ()


def _holds_wire(hint: Any) -> bool:
    if isinstance(hint, type) and issubclass(hint, Record):
        return True
    return any(_holds_wire(part) for part in get_args(hint))


def _written(value: Any) -> Any:
    if isinstance(value, Record):
        return value.to_wire()
    if isinstance(value, (list, tuple)):
        return [_written(item) for item in value]
    return value
