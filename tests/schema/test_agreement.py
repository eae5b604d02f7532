"""The verdict on small schemas and values is that of the package ``jsonschema``, which shares no code with ours."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsync.schema.validator import Validator
from mcpsync.schema.work import Unusable

jsonschema = pytest.importorskip("jsonschema")

NAMES = st.sampled_from(["a", "b", "ab", "c1"])
SMALL = st.integers(0, 3)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 5),
    st.sampled_from([0.0, 1.0, 2.5, -0.5, 1e300]),
    st.text("ab1é", max_size=4),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=4), max_leaves=6
)
TYPES = st.sampled_from(["object", "array", "string", "integer", "number", "boolean", "null"])
PATTERNS = st.sampled_from(
    ["^a", "b$", "^a*b?$", "^(a|b)+$", "[0-9]", "^.{2,3}$", "(ab)*1", "^[^a]+$", "a+b+", "^$", "^(a|ab)*$"]
)
COMMON: Dict[str, Any] = {
    "type": TYPES | st.lists(TYPES, min_size=1, max_size=3, unique=True),
    "enum": st.lists(VALUES, min_size=1, max_size=3),
    "const": VALUES,
    "minimum": SMALL,
    "exclusiveMaximum": SMALL,
    "multipleOf": st.sampled_from([1, 2, 0.5]),
    "minLength": SMALL,
    "maxLength": SMALL,
    "pattern": PATTERNS,
    "minItems": SMALL,
    "maxItems": SMALL,
    "uniqueItems": st.booleans(),
    "minProperties": SMALL,
    "maxProperties": SMALL,
    "required": st.lists(NAMES, max_size=2, unique=True),
}
# what they lead to refers to nothing: jsonschema ends the whole process with a schema that refers to itself
REFERENCES = {"$ref": st.sampled_from(["#/$defs/one", "#/$defs/two", "#/definitions/one"])}


def holding(schemas: Any) -> Dict[str, Any]:
    several = st.lists(schemas, min_size=1, max_size=3)
    return {
        "properties": st.dictionaries(NAMES, schemas, max_size=3),
        "patternProperties": st.dictionaries(PATTERNS, schemas, max_size=2),
        "additionalProperties": schemas,
        "propertyNames": schemas,
        "allOf": several,
        "anyOf": several,
        "oneOf": several,
        "not": schemas,
        "if": schemas,
        "then": schemas,
        "else": schemas,
        "items": schemas,
        "contains": schemas,
    }


def modern(schemas: Any) -> Dict[str, Any]:
    return {
        **holding(schemas),
        "prefixItems": st.lists(schemas, min_size=1, max_size=2),
        "minContains": SMALL,
        "maxContains": SMALL,
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2, unique=True), max_size=2),
        "dependentSchemas": st.dictionaries(NAMES, schemas, max_size=2),
        "unevaluatedProperties": schemas,
        "unevaluatedItems": schemas,
    }


def draft_7(schemas: Any) -> Dict[str, Any]:
    return {
        **holding(schemas),
        "items": schemas | st.lists(schemas, min_size=1, max_size=2),
        "additionalItems": schemas,
        "dependencies": st.dictionaries(NAMES, schemas | st.lists(NAMES, max_size=2, unique=True), max_size=2),
    }


def schemas_of(parts: Any, common: Dict[str, Any]) -> Any:
    leaves = st.booleans() | st.fixed_dictionaries({}, optional=common)

    def grown(inner: Any) -> Any:
        return st.fixed_dictionaries({}, optional={**common, **parts(inner)})

    return st.recursive(leaves, grown, max_leaves=4)


def whole(parts: Any, head: Dict[str, Any]) -> Any:
    plain = schemas_of(parts, {**COMMON, **REFERENCES}).filter(lambda schema: isinstance(schema, dict))
    inner = schemas_of(parts, COMMON)
    definitions = st.fixed_dictionaries({"one": inner, "two": inner})
    return st.builds(
        lambda schema, defs, old: {**schema, **head, "$defs": defs, "definitions": old}, plain, definitions, definitions
    )


def agrees(schema: Any, value: Any, reference: Any) -> bool:
    fits = Validator(schema).mismatch(value) is None
    try:
        return fits is bool(reference(schema).is_valid(value))
    except TypeError:  # a fault of jsonschema: draft-07, items false beside additionalItems
        return True


@settings(max_examples=40, deadline=None)
@given(whole(modern, {}), VALUES)
def test_2020_12(schema: Any, value: Any) -> None:
    assert agrees(schema, value, jsonschema.Draft202012Validator)


@settings(max_examples=40, deadline=None)
@given(whole(draft_7, {"$schema": "http://json-schema.org/draft-07/schema#"}), VALUES)
def test_draft_7(schema: Any, value: Any) -> None:
    assert agrees(schema, value, jsonschema.Draft7Validator)


@settings(max_examples=40, deadline=None)
@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: VALUES | st.just({"a": {}}) | st.lists(st.just({}), max_size=2)
            for name in (
                "type",
                "enum",
                "properties",
                "items",
                "anyOf",
                "minLength",
                "required",
                "not",
                "pattern",
                "$id",
            )
        },
    ),
    st.sampled_from(["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]),
)
def test_what_is_a_schema(schema: Any, dialect: str) -> None:
    """A schema that its meta-schema refuses is refused, and no other is."""
    schema = {"$schema": dialect, **schema}
    try:
        jsonschema.validators.validator_for(schema).check_schema(schema, format_checker=None)
        valid = True
    except jsonschema.SchemaError:
        valid = False
    try:
        Validator(schema)
        used = True
    except Unusable:
        used = False
    assert used == valid


EVERYTHING = [
    None, True, 0, 1, 2.0, 2.5, "", "a", "ab", "1", [], [1], [1, 2], ["a", 1, None], [1, 1.0], [[1], [1]],
    [{"a": 1}, 5], {}, {"a": 1}, {"a": "x", "b": 2}, {"b": 1}, {"a": 1, "c1": 2}, {"ab": [1], "a": None},
    {"a": {"b": 1}}, {"a": 5, "b": []},
]  # fmt: skip
COLLECTED = [
    {"properties": {"a": True}, "unevaluatedProperties": False},
    {"anyOf": [{"properties": {"a": {}}}, {"properties": {"b": {"type": "integer"}}}], "unevaluatedProperties": False},
    {"oneOf": [{"properties": {"a": {"type": "integer"}}}, {"required": ["b"]}], "unevaluatedProperties": False},
    {"if": {"required": ["b"]}, "then": {"properties": {"a": True, "b": True}}, "unevaluatedProperties": {"const": 1}},
    {"if": {"properties": {"a": {"const": 1}}, "required": ["a"]}, "else": False, "unevaluatedProperties": False},
    {"patternProperties": {"^a": True}, "unevaluatedProperties": False},
    {"anyOf": [{"additionalProperties": {"type": "integer"}}, {}], "unevaluatedProperties": False},
    {"dependentSchemas": {"a": {"properties": {"a": True, "b": True}}}, "unevaluatedProperties": False},
    {"anyOf": [{"required": ["b"], "unevaluatedProperties": True}, {}], "unevaluatedProperties": False},
    {"not": {"properties": {"a": True}, "unevaluatedProperties": False}},
    {"propertyNames": {"maxLength": 1}, "minProperties": 1},
    {"patternProperties": {"a$": {"type": "integer"}}, "additionalProperties": {"type": "array"}},
    {"properties": {"a": {"type": "string"}}, "additionalProperties": False},
    {"prefixItems": [{"const": 1}], "unevaluatedItems": False},
    {"anyOf": [{"prefixItems": [True, True]}, {"prefixItems": [True]}], "unevaluatedItems": {"type": "string"}},
    {"contains": {"type": "integer"}, "unevaluatedItems": {"type": "string"}},
    {"contains": {"type": "integer"}, "minContains": 2},
    {"contains": {"type": "integer"}, "minContains": 0, "maxContains": 1},
    {"allOf": [{"items": {"type": "integer"}}], "unevaluatedItems": False},
    {"prefixItems": [True], "items": False},
    {"uniqueItems": True, "type": ["array", "object"]},
    {"enum": [1, [1, 2], {"a": 1}, "a", None, True]},
    {"dependentSchemas": {"a": {"required": ["b"]}}},
]  # fmt: skip


@pytest.mark.parametrize("schema", COLLECTED, ids=str)
def test_what_was_looked_at(schema: Any) -> None:
    """Each keyword that applies schemas, over values of every kind."""
    reference = jsonschema.Draft202012Validator(schema)
    ours = Validator(schema)
    verdicts = [reference.is_valid(value) for value in EVERYTHING]
    assert [ours.mismatch(value) is None for value in EVERYTHING] == verdicts
    assert len(set(verdicts)) == 2
