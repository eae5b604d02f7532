"""Input schemas that no model API takes are refused, with the path to what is wrong."""

from __future__ import annotations

from typing import Any, Dict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsync.host.schema_check import MAX_DEPTH, MAX_NODES, schema_problem


def nested(depth: int) -> Dict[str, Any]:
    schema: Dict[str, Any] = {"type": "string"}
    for _ in range(depth):
        schema = {"type": "object", "properties": {"a": schema}}
    return schema


def with_property(schema: Any) -> Dict[str, Any]:
    return {"type": "object", "properties": {"x": schema}}


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"type": "object"},
        {"properties": {"a": {"type": "string"}}},
        with_property({"type": "array", "items": {"type": "string"}}),
        with_property({"type": "array", "prefixItems": [{"type": "string"}, {"type": "number"}]}),
        with_property({"type": "array", "items": True}),
        with_property({"type": "array", "items": [{"type": "string"}]}),
        with_property({"type": ["array", "null"], "items": {}}),
        with_property({"type": ["string", "null"]}),
        with_property({"anyOf": [{"type": "string"}, {"type": "null"}]}),
        with_property(True),
        {**with_property({"$ref": "#/$defs/a"}), "$defs": {"a": {"type": "string"}}},
        {**with_property({"$ref": "#/definitions/a~1b"}), "definitions": {"a/b": {"type": "string"}}},
        {**with_property({"$ref": "#/$defs/a%20b"}), "$defs": {"a b": {"type": "string"}}},
        {**with_property({"$ref": "#here"}), "$defs": {"a": {"$anchor": "here"}}},
        {"type": "object", "properties": {"children": {"type": "array", "items": {"$ref": "#"}}}},
        with_property({"anyOf": [{"type": "string"}, {"$ref": "#/properties/x/anyOf/0"}]}),
        {"type": "object", "properties": {"items": {"type": "string"}, "properties": {"type": "integer"}}},
        {"type": "object", "additionalProperties": False, "required": ["a"]},
        nested(MAX_DEPTH),
    ],
)
def test_what_is_right_passes(schema: Any) -> None:
    assert schema_problem(schema) is None


@pytest.mark.parametrize(
    ("schema", "problem"),
    [
        ([], "the input schema is a list, not an object"),
        ("object", "the input schema is a string, not an object"),
        (True, "the input schema is a truth value, not an object"),
        ({"type": "string"}, "the input schema is of type 'string', and arguments are an object"),
        ({"type": ["object", "null"]}, "the input schema is of type ['object', 'null'], and arguments are an object"),
        ({"type": None}, "the input schema is of type None, and arguments are an object"),
        ({"properties": []}, "the input schema: properties is a list, not an object"),
        (with_property({"type": "array"}), "properties.x: an array without items or prefixItems"),
        (with_property({"type": ["array", "null"]}), "properties.x: an array without items or prefixItems"),
        (with_property({"type": "text"}), "properties.x: there is no type 'text'"),
        (with_property("string"), "properties.x: a string where a schema belongs"),
        (with_property(None), "properties.x: null where a schema belongs"),
        (with_property({"anyOf": {}}), "properties.x: anyOf is an object, not a list"),
        (with_property({"anyOf": [{}, {"type": "array"}]}), "properties.x.anyOf[1]: an array without items"),
        (with_property({"items": [{"type": "array"}]}), "properties.x.items[0]: an array without items"),
        (with_property({"not": {"type": "array"}}), "properties.x.not: an array without items"),
        ({"$defs": {"a": {"type": "array"}}}, "$defs.a: an array without items"),
        ({"patternProperties": {"^a": {"type": "array"}}}, "patternProperties.^a: an array without items"),
        ({"if": {"then": 3}}, "if.then: a number where a schema belongs"),
        ({"required": "a"}, "the input schema: required is not a list of names"),
        (with_property({"$ref": "#/$defs/b"}), "properties.x: the $ref '#/$defs/b' leads nowhere"),
        (with_property({"$ref": "#b"}), "properties.x: the $ref '#b' leads nowhere"),
        (with_property({"$ref": "https://example.com/s"}), "leads out of the schema; nothing is fetched"),
        (with_property({"$ref": "#/type"}), "properties.x: the $ref '#/type' leads to no schema"),
        (with_property({"$ref": 7}), "properties.x: a $ref that is a number"),
        (nested(MAX_DEPTH + 1), "nested more than %d deep" % MAX_DEPTH),
        ({"properties": {str(n): {} for n in range(MAX_NODES)}}, "more than %d parts" % MAX_NODES),
    ],
)
def test_what_is_wrong_is_named_with_its_path(schema: Any, problem: str) -> None:
    said = schema_problem(schema)
    assert said is not None
    assert problem in said


def test_a_path_is_no_longer_than_a_line() -> None:
    schema = with_property({"type": "array"})
    for _ in range(20):
        schema = {"type": "object", "properties": {"n" * 50: schema}}
    said = schema_problem(schema)
    assert said is not None
    assert said.endswith("properties.x: an array without items or prefixItems")
    assert len(said) < 300


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(["type", "properties", "items", "anyOf", "$ref", "$defs", "required", "not", "x"]), inner
        )
    ),
    max_leaves=30,
)


@settings(max_examples=300, deadline=None)
@given(JSON)
def test_any_json_has_an_answer(schema: Any) -> None:
    assert schema_problem(schema) is None or isinstance(schema_problem(schema), str)
