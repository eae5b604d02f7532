"""The dialects of JSON Schema that are understood, and their meta-schemas, which the extra ``schema`` brings.

Specification: `basic`, "JSON Schema Usage" (2025-11-25 and later): without ``$schema`` it is 2020-12.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any, NamedTuple, Optional
from urllib.parse import urljoin

from mcpsync.schema.work import Unusable

__all__ = ["DIALECTS", "Dialect", "dialect_of", "document", "is_installed", "meta_schema"]


class Dialect(NamedTuple):
    """What differs between the dialects.

    :ivar name: for people
    :ivar uri: of its meta-schema
    :ivar modern: it is 2020-12; else draft-07
    """

    name: str
    uri: str
    modern: bool


_MODERN = Dialect("2020-12", "https://json-schema.org/draft/2020-12/schema", True)
_DRAFT_7 = Dialect("draft-07", "http://json-schema.org/draft-07/schema", False)
DIALECTS = (_MODERN, _DRAFT_7)

_BY_URI = {each.uri: each for each in DIALECTS}
_BY_URI["https" + _DRAFT_7.uri[len("http") :]] = _DRAFT_7


def dialect_of(schema: Any, outer: Optional[Dialect] = None) -> Dialect:
    """The dialect that a schema declares, or has without declaring one.

    :param outer: that of the schema it stands in
    :raises Unusable: it is none of those that are understood
    """
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    if declared is None:
        return outer or _MODERN
    found = _BY_URI.get(declared.rstrip("#")) if isinstance(declared, str) else None
    if found is None:
        names = " and ".join(each.name for each in DIALECTS)
        raise Unusable("its dialect %.100r is not supported: %s are" % (declared, names))
    return found


def is_installed() -> bool:
    """Whether the meta-schemas are there. Imports nothing."""
    return find_spec("jsonschema_specifications") is not None


def meta_schema(dialect: Dialect) -> Any:
    """What a schema of a dialect has to fit, as one schema that refers to itself.

    That of 2020-12 consists of a schema for each vocabulary, each of which says something of other keywords; put
    together they say the same, and are applied in a fraction of the time.
    """
    whole = dict(document(dialect.uri))
    whole.pop("$id", None)
    whole.pop("$dynamicAnchor", None)
    for reference in whole.pop("allOf", ()):
        part = document(urljoin(dialect.uri, reference["$ref"]))
        for key in ("properties", "$defs"):
            whole[key] = {**whole.get(key, {}), **part.get(key, {})}
    return _recursive(whole)


def _recursive(value: Any) -> Any:
    """The same, with plain references to the root for those by the name that all vocabularies share."""
    if isinstance(value, list):
        return [_recursive(item) for item in value]
    if isinstance(value, dict):
        if value == {"$dynamicRef": "#meta"}:
            return {"$ref": "#"}
        return {key: _recursive(item) for key, item in value.items()}
    return value


def document(uri: str) -> Any:
    """The meta-schema of this URI, or a part of one that has a URI of its own; None for any other URI."""
    from jsonschema_specifications import REGISTRY

    resource = REGISTRY.get(uri)
    return None if resource is None else resource.contents
