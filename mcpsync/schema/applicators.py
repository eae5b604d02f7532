"""The keywords that apply further schemas: to the same value, to its properties, to its items."""

from __future__ import annotations

from typing import Any, FrozenSet, Optional, Sequence, Tuple

from mcpsync.schema.patterns import Pattern
from mcpsync.schema.values import shown
from mcpsync.schema.work import Check, Evaluated, Fault, Work

__all__ = [
    "all_of",
    "any_of",
    "conditional",
    "contained",
    "dependent",
    "further_properties",
    "items_from",
    "negated",
    "one_of",
    "prefix_items",
    "properties",
    "property_names",
    "unevaluated_items",
    "unevaluated_properties",
]


# -- to the same value ---------------------------------------------------------------------------------------------


def all_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        for each in checks:
            fault = each(value, work, seen)
            if fault is not None:
                return fault
        return None

    return check


def any_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        nearest: Optional[Fault] = None
        fits = False
        for each in checks:
            own = None if seen is None else Evaluated()
            fault = each(value, work, own)
            if fault is None:
                if seen is None or own is None:
                    return None
                fits = True
                seen.add(own)
            elif nearest is None or len(fault.path) > len(nearest.path):
                nearest = fault
        return None if fits else _none_fits("anyOf", nearest, len(checks), value)

    return check


def one_of(checks: Sequence[Check]) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        nearest: Optional[Fault] = None
        fits = 0
        for each in checks:
            own = None if seen is None else Evaluated()
            fault = each(value, work, own)
            if fault is None:
                fits += 1
                if fits > 1:
                    return Fault("oneOf", "only one of %d alternatives to fit" % len(checks), value)
                if seen is not None and own is not None:
                    seen.add(own)
            elif nearest is None or len(fault.path) > len(nearest.path):
                nearest = fault
        return None if fits else _none_fits("oneOf", nearest, len(checks), value)

    return check


def _none_fits(keyword: str, nearest: Optional[Fault], count: int, value: Any) -> Fault:
    """The fault of the alternative that came farthest, if one got anywhere, or the only one."""
    if nearest is not None and (nearest.path or count == 1):
        return nearest
    return Fault(keyword, "one of %d alternatives to fit" % count, value)


def negated(inner: Check) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        if inner(value, work, None) is None:
            return Fault("not", "something that does not fit the schema of not", value)
        return None

    return check


def conditional(condition: Check, then: Optional[Check], otherwise: Optional[Check]) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        own = None if seen is None else Evaluated()
        if condition(value, work, own) is None:
            if seen is not None and own is not None:
                seen.add(own)
            return None if then is None else then(value, work, seen)
        return None if otherwise is None else otherwise(value, work, seen)

    return check


def dependent(table: Sequence[Tuple[str, Check]]) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        work.charge(len(table))
        for name, each in table:
            if name in value:
                fault = each(value, work, seen)
                if fault is not None:
                    return fault
        return None

    return check


# -- to properties -------------------------------------------------------------------------------------------------


def properties(table: Sequence[Tuple[str, Check]]) -> Check:
    known = dict(table)
    count = len(table)

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        if count > len(value):
            work.left -= len(value)
            pairs: Sequence[Tuple[str, Check]] = [(name, known[name]) for name in value if name in known]
        else:
            work.left -= count
            pairs = table
        for name, each in pairs:
            if name in value:
                fault = each(value[name], work, None)
                if fault is not None:
                    fault.path.append(name)
                    return fault
                if seen is not None:
                    seen.names.add(name)
        return None

    return check


def further_properties(
    names: FrozenSet[str], patterns: Sequence[Tuple[Pattern, Check]], rest: Optional[Check], forbidden: bool
) -> Check:
    """The check of ``patternProperties`` and ``additionalProperties`` together.

    :param names: of properties that are not additional
    :param rest: for additional ones; None if nothing is said of them
    :param forbidden: there may be none
    """

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        if forbidden and not patterns and value.keys() <= names:
            work.charge(1 + len(value) // 8)
            return None
        work.charge(len(value))
        for name, item in value.items():
            matched = name in names
            for pattern, each in patterns:
                if pattern.found_in(name, work):
                    matched = True
                    fault = each(item, work, None)
                    if fault is not None:
                        fault.path.append(name)
                        return fault
                    if seen is not None:
                        seen.names.add(name)
            if not matched and rest is not None:
                if forbidden:
                    return Fault("additionalProperties", "no property %s" % shown(name), value)
                fault = rest(item, work, None)
                if fault is not None:
                    fault.path.append(name)
                    return fault
        if seen is not None and rest is not None:
            seen.all_names = True
        return None

    return check


def property_names(inner: Check) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        for name in value:
            fault = inner(name, work, None)
            if fault is not None:
                fault.path.append(name)
                return fault
        return None

    return check


def unevaluated_properties(inner: Check, forbidden: bool) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        assert seen is not None
        if seen.all_names:
            return None
        work.charge(len(value))
        for name, item in value.items():
            if name not in seen.names:
                if forbidden:
                    return Fault("unevaluatedProperties", "no property %s" % shown(name), value)
                fault = inner(item, work, None)
                if fault is not None:
                    fault.path.append(name)
                    return fault
        seen.all_names = True
        return None

    return check


# -- to items ------------------------------------------------------------------------------------------------------


def prefix_items(checks: Sequence[Check]) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        for index, (item, each) in enumerate(zip(value, checks)):
            fault = each(item, work, None)
            if fault is not None:
                fault.path.append(index)
                return fault
        if seen is not None:
            seen.prefix = max(seen.prefix, min(len(value), len(checks)))
        return None

    return check


def items_from(first: int, inner: Check, keyword: str, forbidden: bool) -> Check:
    """All items behind the first ones.

    :param forbidden: there may be none
    """
    expected = "at most %d item%s" % (first, "" if first == 1 else "s")

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        if forbidden:
            if len(value) > first:
                return Fault(keyword, expected, value)
        else:
            for index in range(first, len(value)):
                fault = inner(value[index], work, None)
                if fault is not None:
                    fault.path.append(index)
                    return fault
        if seen is not None:
            seen.prefix = max(seen.prefix, len(value))
        return None

    return check


def contained(inner: Check, least: Any, most: Any, evaluates: bool) -> Check:
    """The check of ``contains``, ``minContains`` and ``maxContains``.

    :param evaluates: items that fit count as evaluated (since 2020-12)
    """

    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        found = 0
        collects = evaluates and seen is not None
        for index, item in enumerate(value):
            if inner(item, work, None) is not None:
                continue
            found += 1
            if collects and seen is not None:
                seen.indexes.add(index)
            if most is not None and found > most:
                return Fault("maxContains", "at most %s items that fit" % shown(most), value)
            if most is None and found >= least and not collects:
                return None
        if found >= least:
            return None
        if least == 1:
            return Fault("contains", "an item that fits", value)
        return Fault("minContains", "at least %s items that fit" % shown(least), value)

    return check


def unevaluated_items(inner: Check, forbidden: bool) -> Check:
    def check(value: Any, work: Work, seen: Optional[Evaluated]) -> Optional[Fault]:
        assert seen is not None
        work.charge(max(0, len(value) - seen.prefix))
        for index in range(seen.prefix, len(value)):
            if index not in seen.indexes:
                if forbidden:
                    return Fault("unevaluatedItems", "no item %d" % index, value)
                fault = inner(value[index], work, None)
                if fault is not None:
                    fault.path.append(index)
                    return fault
        seen.prefix = len(value)
        return None

    return check
