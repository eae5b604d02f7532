"""Answers to form elicitation: the schema's defaults, and whether an answer is what the server asked for.

The schema is the flat subset of JSON Schema that the specification allows (Client / Elicitation, 2025-06-18 and
later). It comes from the server, so nothing in it is taken for granted: what is malformed constrains nothing, the
work is linear in its size, ``pattern`` is not run since a regular expression of a stranger can run for ever, and
problems are told in a bounded number of bounded lines. They name keys and rules, never what the user entered.
"""

from __future__ import annotations

import datetime
import math
import re
import reprlib
from itertools import islice
from typing import Any, Callable, Dict, Iterator, List, Mapping, NamedTuple, Optional, Tuple

__all__ = ["check", "fields", "fill_defaults"]

_MAX_PROBLEMS = 20
_MAX_OPTIONS_SHOWN = 8

_shown = reprlib.Repr()
_shown.maxstring = 60
_shown.maxother = 60


def fill_defaults(requested_schema: Any, content: Optional[Mapping[str, Any]]) -> Dict[str, Any]:
    """The content with the schema's ``default`` for each key that is absent.

    A default that its own schema refuses is left out, so that a mistake of the server is not sent as the user's
    answer.

    :param requested_schema: ``requestedSchema`` of the request, as it came
    :param content: what the user gave; None for nothing
    """
    filled: Dict[str, Any] = dict(content or {})
    for key, schema in fields(requested_schema).items():
        if key in filled or "default" not in schema:
            continue
        default = schema["default"]
        if _complaint(schema, default) is None:
            filled[key] = list(default) if isinstance(default, list) else default
    return filled


def check(requested_schema: Any, content: Any) -> List[str]:
    """What is wrong with an answer, one line for each problem; empty when it can be sent.

    :param requested_schema: ``requestedSchema`` of the request, as it came
    :param content: the ``content`` of the answer
    """
    if not isinstance(content, Mapping):
        return ["the content must be an object with a value for each key, not %s" % _kind_of(content)]
    problems = list(islice(_problems(requested_schema, content), _MAX_PROBLEMS + 1))
    if len(problems) > _MAX_PROBLEMS:
        problems[_MAX_PROBLEMS] = "and more"
    return problems


def _problems(requested_schema: Any, content: Mapping[Any, Any]) -> Iterator[str]:
    properties = fields(requested_schema)
    for key in _required(requested_schema):
        if key not in content:
            yield "%s: is required" % _shown.repr(key)
    for key, value in content.items():
        if key not in properties:
            yield "%s: the server did not ask for this key" % _shown.repr(key)
            continue
        complaint = _complaint(properties[key], value)
        if complaint is not None:
            yield "%s: %s" % (_shown.repr(key), complaint)


def fields(requested_schema: Any) -> Dict[str, Mapping[str, Any]]:
    """The schema of each key that may be answered; a value that is optional by its type as what it is if given.

    :param requested_schema: ``requestedSchema`` of the request, as it came
    """
    found: Dict[str, Mapping[str, Any]] = {key: {} for key in _required(requested_schema)}
    properties = requested_schema.get("properties") if isinstance(requested_schema, Mapping) else None
    if isinstance(properties, Mapping):
        for key, schema in properties.items():
            found[key] = _without_null(schema) if isinstance(schema, Mapping) else {}
    return found


def _required(requested_schema: Any) -> List[str]:
    required = requested_schema.get("required") if isinstance(requested_schema, Mapping) else None
    return [key for key in required if isinstance(key, str)] if isinstance(required, list) else []


def _without_null(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """An optional value, as servers write it (``anyOf`` with null, a list of types), as the type it has if given.

    No answer carries null: a key without a value is left out.
    """
    kinds = schema.get("type")
    if isinstance(kinds, list):
        given = [kind for kind in kinds if kind != "null"]
        return {**schema, "type": given[0] if len(given) == 1 else None}
    alternatives = schema.get("anyOf")
    if kinds is None and isinstance(alternatives, list):
        schemas = [each for each in alternatives if isinstance(each, Mapping) and each.get("type") != "null"]
        if len(schemas) == 1 and len(schemas) < len(alternatives):
            return {**schema, **schemas[0]}
    return schema


def _complaint(schema: Mapping[str, Any], value: Any) -> Optional[str]:
    """The first rule of a key's schema that the value breaks."""
    if isinstance(value, float) and not math.isfinite(value):
        return "must be a finite number"
    name = schema.get("type")
    kind = _KINDS.get(name) if isinstance(name, str) else None
    if kind is None:
        if not any(each.admits(value) for each in _KINDS.values()):
            return "must be a string, a number, a boolean or a list of strings, not %s" % _kind_of(value)
        return _choice_complaint(schema, value)
    if not kind.admits(value):
        return "must be %s, not %s" % (kind.description, _kind_of(value))
    return kind.complaint(schema, value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    """JSON knows one kind of number: 5.0 is an integer."""
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


def _is_strings(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value)


def _number_complaint(schema: Mapping[str, Any], value: Any) -> Optional[str]:
    minimum, maximum = schema.get("minimum"), schema.get("maximum")
    if _is_number(minimum) and value < minimum:
        return "must be at least %s" % _number_text(minimum)
    if _is_number(maximum) and value > maximum:
        return "must be at most %s" % _number_text(maximum)
    return _choice_complaint(schema, value)


def _string_complaint(schema: Mapping[str, Any], value: str) -> Optional[str]:
    complaint = _size_complaint(len(value), schema.get("minLength"), schema.get("maxLength"), "character")
    if complaint is None:
        complaint = _choice_complaint(schema, value)
    if complaint is None:
        name = schema.get("format")
        form = _FORMATS.get(name) if isinstance(name, str) else None
        if form is not None and not form.fits(value):
            return "must be %s" % form.description
    return complaint


def _strings_complaint(schema: Mapping[str, Any], value: List[str]) -> Optional[str]:
    complaint = _size_complaint(len(value), schema.get("minItems"), schema.get("maxItems"), "item")
    items = schema.get("items")
    if complaint is None and isinstance(items, Mapping):
        options = _options(items)
        if options is not None and not all(item in options for item in value):
            return "each item must be one of %s" % _listed(options)
    return complaint


def _choice_complaint(schema: Mapping[str, Any], value: Any) -> Optional[str]:
    options = _options(schema)
    if options is None or (isinstance(value, str) and value in options):
        return None
    return "must be one of %s" % _listed(options)


def _size_complaint(size: int, least: Any, most: Any, unit: str) -> Optional[str]:
    if _is_number(least) and size < least:
        return "must have at least %s %s%s" % (_number_text(least), unit, "" if least == 1 else "s")
    if _is_number(most) and size > most:
        return "must have at most %s %s%s" % (_number_text(most), unit, "" if most == 1 else "s")
    return None


def _options(schema: Mapping[str, Any]) -> Optional[Dict[str, None]]:
    """The strings that may be chosen from, in the server's order; None where the schema offers no such choice."""
    enum = schema.get("enum")
    if not isinstance(enum, list):
        titled = schema.get("oneOf", schema.get("anyOf"))
        if not isinstance(titled, list):
            return None
        enum = [each.get("const") if isinstance(each, Mapping) else None for each in titled]
    return dict.fromkeys(enum) if enum and _is_strings(enum) else None


def _listed(options: Dict[str, None]) -> str:
    first = ", ".join(_shown.repr(option) for option in islice(options, _MAX_OPTIONS_SHOWN))
    more = len(options) - _MAX_OPTIONS_SHOWN
    return first + (" and %d more" % more if more > 0 else "")


def _number_text(number: Any) -> str:
    """The number as text, also where Python refuses to write it out."""
    if isinstance(number, int) and number.bit_length() > 1_000:
        return "a number of more than 300 digits"
    return repr(number)


def _kind_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, (list, tuple)):
        return "a list" if _is_strings(value) else "a list of other things"
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return "a Python %s" % type(value).__name__


_NAMES: List[Tuple[Any, str]] = [(str, "a string"), ((int, float), "a number"), (Mapping, "an object")]


class _Kind(NamedTuple):
    description: str
    admits: Callable[[Any], bool]
    complaint: Callable[[Mapping[str, Any], Any], Optional[str]]


_KINDS: Dict[str, _Kind] = {
    "string": _Kind("a string", lambda value: isinstance(value, str), _string_complaint),
    "number": _Kind("a number", _is_number, _number_complaint),
    "integer": _Kind("an integer", _is_integer, _number_complaint),
    "boolean": _Kind("a boolean", lambda value: isinstance(value, bool), lambda schema, value: None),
    "array": _Kind("a list of strings", _is_strings, _strings_complaint),
}


# The regular expressions below have no two ways to match one text, so they take linear time.
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)", re.ASCII)
_TIME = re.compile(r"([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)", re.ASCII)
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*", re.ASCII)
_URI_REST = re.compile(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+", re.ASCII)
_NOT_IN_EMAIL = re.compile(r"[\s\x00-\x1f\x7f<>()\[\],;:\\\"]")


def _is_email(text: str) -> bool:
    local, at, domain = text.rpartition("@")
    return (
        bool(local)
        and at == "@"
        and "@" not in local
        and _NOT_IN_EMAIL.search(text) is None
        and all(local.split("."))
        and all(domain.split("."))
    )


def _is_uri(text: str) -> bool:
    scheme, _, rest = text.partition(":")
    return _SCHEME.fullmatch(scheme) is not None and _URI_REST.fullmatch(rest) is not None


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    try:
        datetime.date(int(match[1]), int(match[2]), int(match[3]))
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    return _is_date(text[:10]) and text[10:11] in ("T", "t") and _TIME.fullmatch(text, 11) is not None


class _Format(NamedTuple):
    description: str
    fits: Callable[[str], bool]


_FORMATS: Dict[str, _Format] = {
    "email": _Format("an e-mail address, such as ada@example.com", _is_email),
    "uri": _Format("a URI with its scheme, such as https://example.com/", _is_uri),
    "date": _Format("a date, such as 2026-07-28", _is_date),
    "date-time": _Format("a date and time with its offset, such as 2026-07-28T09:30:00Z", _is_date_time),
}
