"""The keywords that say something about one value by itself: its size, its bounds, what it may be."""

from __future__ import annotations

from typing import Any, Callable, Dict, FrozenSet, List, Mapping, Optional, Sequence, Set, Tuple

from mcpsync.schema.patterns import Pattern
from mcpsync.schema.values import exact, frozen, shown
from mcpsync.schema.work import Check, Evaluated, Fault, Work

__all__ = ["ASSERTIONS", "NUMBER", "choice", "constant"]

_MOST_LISTED = 5

NUMBER = (int, float)
_ARRAY = (list,)
_OBJECT = (dict,)
_STRING = (str,)

Kinds = Tuple[type, ...]


def _bound(keyword: str, breaks: Callable[[Any, Any], bool], words: str) -> Callable[[Any], Check]:
    def make(limit: Any) -> Check:
        expected = "%s %s" % (words, shown(limit))

        def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
            return Fault(keyword, expected, value) if breaks(value, limit) else None

        return check

    return make


def _size(keyword: str, most: bool, noun: str) -> Callable[[Any], Check]:
    def make(limit: Any) -> Check:
        expected = "at %s %s %s" % ("most" if most else "least", shown(limit), noun)

        def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
            size = len(value)
            return Fault(keyword, expected, value) if (size > limit if most else size < limit) else None

        return check

    return make


def _multiple_of(step: Any) -> Check:
    """By the numbers as they are written: 19.99 is a multiple of 0.01, although the floats' quotient is no integer."""
    divisor = exact(step)
    expected = "a multiple of %s" % shown(step)

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        if isinstance(value, float) and not abs(value) < float("inf"):
            return Fault("multipleOf", expected, value)
        if isinstance(value, int) and isinstance(step, int):
            work.charge(value.bit_length() // 64)
            return Fault("multipleOf", expected, value) if value % step else None
        number = exact(value)
        work.charge(4 + number.numerator.bit_length() // 64)
        # not the quotient, since making one finds the greatest common divisor
        rest = (number.numerator * divisor.denominator) % (number.denominator * divisor.numerator)
        return Fault("multipleOf", expected, value) if rest else None

    return check


def _pattern(text: str) -> Check:
    pattern = Pattern(text)
    expected = "a text that matches %s" % shown(text)

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        return None if pattern.found_in(value, work) else Fault("pattern", expected, value)

    return check


def _unique_items(wanted: bool) -> Optional[Check]:
    if not wanted:
        return None

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        known: Set[Any] = set()
        for index, item in enumerate(value):
            key = frozen(item, work)
            if key in known:
                fault = Fault("uniqueItems", "an item that is not there already", item)
                fault.path.append(index)
                return fault
            known.add(key)
        return None

    return check


def _required(names: Sequence[str]) -> Optional[Check]:
    wanted = tuple(dict.fromkeys(names))
    if not wanted:
        return None

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        work.left -= len(wanted)
        for name in wanted:
            if name not in value:
                return Fault("required", "the property %s" % shown(name), value)
        return None

    return check


def _dependent_required(table: Mapping[str, Sequence[str]]) -> Check:
    checks = [(name, _required(names)) for name, names in table.items()]

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        work.charge(len(checks))
        for name, required in checks:
            if required is not None and name in value:
                fault = required(value, work, None)
                if fault is not None:
                    return Fault("dependentRequired", fault.expected + " beside %s" % shown(name), value)
        return None

    return check


def choice(keyword: str, options: Sequence[Any]) -> Check:
    """The check of ``enum``, and of ``const`` with its one option."""
    texts: FrozenSet[str] = frozenset(option for option in options if isinstance(option, str))
    others: List[Any] = [option for option in options if not isinstance(option, str)]
    keys: Optional[FrozenSet[Any]] = None
    listed = ", ".join(map(shown, options[:_MOST_LISTED]))
    more = len(options) - _MOST_LISTED
    expected = listed + (" or one of %d more" % more if more > 0 else "")
    if len(options) > 1:
        expected = "one of " + expected

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        nonlocal keys
        if type(value) is str:
            return None if value in texts else Fault(keyword, expected, value)
        if keys is None:
            keys = frozenset(frozen(option, work) for option in others)
        found = frozen(value, work) in keys or (isinstance(value, str) and value in texts)
        return None if found else Fault(keyword, expected, value)

    return check


def constant(value: Any) -> Check:
    """The check of ``const``."""
    return choice("const", [value])


ASSERTIONS: Dict[str, Tuple[Kinds, Callable[[Any], Optional[Check]]]] = {
    "minimum": (NUMBER, _bound("minimum", lambda value, limit: value < limit, "at least")),
    "maximum": (NUMBER, _bound("maximum", lambda value, limit: value > limit, "at most")),
    "exclusiveMinimum": (NUMBER, _bound("exclusiveMinimum", lambda value, limit: value <= limit, "more than")),
    "exclusiveMaximum": (NUMBER, _bound("exclusiveMaximum", lambda value, limit: value >= limit, "less than")),
    "multipleOf": (NUMBER, _multiple_of),
    "minLength": (_STRING, _size("minLength", False, "characters")),
    "maxLength": (_STRING, _size("maxLength", True, "characters")),
    "pattern": (_STRING, _pattern),
    "minItems": (_ARRAY, _size("minItems", False, "items")),
    "maxItems": (_ARRAY, _size("maxItems", True, "items")),
    "uniqueItems": (_ARRAY, _unique_items),
    "minProperties": (_OBJECT, _size("minProperties", False, "properties")),
    "maxProperties": (_OBJECT, _size("maxProperties", True, "properties")),
    "required": (_OBJECT, _required),
    "dependentRequired": (_OBJECT, _dependent_required),
}
"""For each keyword, the kinds of values that it is about, and what makes its check of what it says."""
