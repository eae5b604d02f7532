"""A JSON Schema that values can be held against: checked itself first, compiled once, applied within bounds."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional, Union

from mcpsync.schema import dialects
from mcpsync.schema.compiler import Compiler
from mcpsync.schema.dialects import Dialect
from mcpsync.schema.resources import Resources
from mcpsync.schema.structure import MOST_VALUES, size_problem
from mcpsync.schema.values import KINDS, described
from mcpsync.schema.work import Check, Fault, TooMuchWork, Unusable, Work, count_of

__all__ = ["Mismatch", "Validator"]

_MOST_STEP = 60
_MOST_PATH = 300
_STEPS_TO_VERIFY = 60_000
_MOST_UNKNOWN = 2 * MOST_VALUES


class Mismatch(NamedTuple):
    """Where a value breaks its schema. No text of the value is in it but names of properties.

    :ivar path: a JSON pointer into the value; empty for the whole of it
    :ivar keyword: of the schema
    :ivar expected: what it wants, shortened
    :ivar got: what is there, by kind and size
    """

    path: str
    keyword: str
    expected: str
    got: str

    def __str__(self) -> str:
        return "%s: expected %s, got %s" % (self.keyword, self.expected, self.got)


class Validator:
    """One schema, in a dialect that it declares or 2020-12.

    Compiling it and applying it take a bounded amount of work, whatever it says, and nothing is fetched. Any thread may
    use it.

    :param schema: JSON as Python has it; must not change afterwards
    :raises Unusable: it is no valid schema, leads out of itself, is too large, or its dialect is not supported
    """

    def __init__(self, schema: Any) -> None:
        problem = size_problem(schema)
        if problem is not None:
            raise Unusable(problem)
        dialect = dialects.dialect_of(schema)
        _verify(schema, dialect)
        self._schema = schema
        resources = Resources()
        self._unknown = 0
        self._check = Compiler(resources, lambda part: self._verify_part(part, dialect)).compile(resources.add(schema))

    def _verify_part(self, part: Any, dialect: Dialect) -> None:
        """What a reference found where no schema is expected. Parts within parts are gone through again and again."""
        self._unknown += count_of(part)
        if self._unknown > _MOST_UNKNOWN:
            raise Unusable("its references lead to too much that stands where no schema is expected")
        _verify(part, dialect)

    def mismatch(self, value: Any) -> Optional[Mismatch]:
        """Where a value breaks the schema first; None if it does not.

        :raises TooMuchWork: it cannot be said within the bounds
        :raises Unusable: a regular expression is none
        """
        return _mismatch(self._check, value, Work(value))


def _mismatch(check: Check, value: Any, work: Work) -> Optional[Mismatch]:
    try:
        fault = check(value, work, None)
    except RecursionError:
        raise TooMuchWork("schema or value are nested too deeply to be checked") from None
    return None if fault is None else _told(fault)


def _told(fault: Fault) -> Mismatch:
    return Mismatch(_pointer(fault.path), fault.keyword, fault.expected, described(fault.value))


def _pointer(path: List[Union[str, int]]) -> str:
    text = "".join("/" + _step(step) for step in reversed(path))
    return text if len(text) <= _MOST_PATH else text[: _MOST_PATH // 2] + "…" + text[-_MOST_PATH // 2 :]


def _step(step: Union[str, int]) -> str:
    if isinstance(step, int):
        return str(step)
    text = step if len(step) <= _MOST_STEP else step[:_MOST_STEP] + "…"
    return text.replace("~", "~0").replace("/", "~1")


_checks: Dict[str, Check] = {}
"""The meta-schemas that have been needed, compiled, by URI."""


def _is_count(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_number(value: Any) -> bool:
    return type(value) in (int, float)


_PLAIN: Dict[str, Callable[[Any], bool]] = {
    "type": lambda value: type(value) is str and value in KINDS,
    **dict.fromkeys(("title", "description", "format", "pattern"), lambda value: type(value) is str),
    **dict.fromkeys(("default", "const"), lambda value: True),
    "enum": lambda value: type(value) is list,
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _is_number),
    **dict.fromkeys(("minLength", "maxLength", "minItems", "maxItems"), _is_count),
}


def _without_plain(value: Any) -> Any:
    """A schema without the parts that are plainly right, which are most: those that consist of a type and bounds.

    Where no schema belongs, such an object is as wrong as what it is replaced by.
    """
    if type(value) is dict:
        if "type" in value and all(key in _PLAIN and _PLAIN[key](item) for key, item in value.items()):
            return True
        return {key: _without_plain(item) for key, item in value.items()}
    if type(value) is list:
        return [_without_plain(item) for item in value]
    return value


def _verify(schema: Any, dialect: Dialect) -> None:
    check = _checks.get(dialect.uri)
    if check is None:
        resources = Resources()
        root = resources.add(dialects.meta_schema(dialect), dialect.uri)
        check = _checks[dialect.uri] = Compiler(resources, lambda part: None).compile(root)
    found = _mismatch(check, _without_plain(schema), Work(schema, _STEPS_TO_VERIFY, 0))
    if found is not None:
        raise Unusable(
            "it is no valid schema of %s: %s%s" % (dialect.name, found.path and "at %s: " % found.path, found)
        )
