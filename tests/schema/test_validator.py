"""What is said of values and schemas: where, which keyword, what was wanted; and where references lead."""

from __future__ import annotations

import threading
from types import MappingProxyType
from typing import Any, Dict

import pytest

from mcpsync.schema.validator import Mismatch, Validator
from mcpsync.schema.work import TooMuchWork, Unusable

pytest.importorskip("jsonschema_specifications")

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
ONE = "an object with 1 property"
TREE: Dict[str, Any] = {
    "$id": "https://example.com/tree",
    "$dynamicAnchor": "node",
    "type": "object",
    "properties": {"data": True, "children": {"type": "array", "items": {"$dynamicRef": "#node"}}},
}
STRICT_TREE: Dict[str, Any] = {
    "$id": "https://example.com/strict-tree",
    "$dynamicAnchor": "node",
    "$ref": "tree",
    "unevaluatedProperties": False,
    "$defs": {"tree": TREE},
}


@pytest.mark.parametrize(
    ("schema", "value", "said"),
    [
        ({"type": "integer"}, 1.5, ("", "type", "integer", "1.5")),
        ({"type": ["string", "null"]}, 1, ("", "type", "string or null", "1")),
        (
            {"properties": {"a/b~c": {"items": {"maximum": 3}}}},
            {"a/b~c": [1, 9]},
            ("/a~1b~0c/1", "maximum", "at most 3", "9"),
        ),
        ({"minLength": 3}, "ab", ("", "minLength", "at least 3 characters", "a string of 2 characters")),
        ({"required": ["a"]}, {}, ("", "required", "the property 'a'", "an object with 0 properties")),
        (
            {"additionalProperties": False},
            {"x": 1},
            ("", "additionalProperties", "no property 'x'", "an object with 1 property"),
        ),
        ({"enum": ["a", 1, None, True]}, "b", ("", "enum", "one of 'a', 1, null, true", "a string of 1 character")),
        ({"enum": list(range(9))}, 10, ("", "enum", "one of 0, 1, 2, 3, 4 or one of 4 more", "10")),
        ({"const": {"a": 1}}, [], ("", "const", "an object with 1 property", "an array of 0 items")),
        ({"uniqueItems": True}, [1, True, 1.0], ("/2", "uniqueItems", "an item that is not there already", "1.0")),
        ({"not": {}}, None, ("", "not", "something that does not fit the schema of not", "null")),
        (False, False, ("", "false", "nothing", "false")),
        ({"oneOf": [{}, {}]}, 1, ("", "oneOf", "only one of 2 alternatives to fit", "1")),
        ({"anyOf": [{"type": "null"}, {"type": "string"}]}, 1, ("", "anyOf", "one of 2 alternatives to fit", "1")),
        (
            {"anyOf": [{"type": "null"}, {"properties": {"a": {"items": {"type": "null"}}}}]},
            {"a": [1]},
            ("/a/0", "type", "null", "1"),  # the alternative that came farthest
        ),
        (
            {"unevaluatedItems": False, "prefixItems": [True]},
            [1, 2],
            ("", "unevaluatedItems", "no item 1", "an array of 2 items"),
        ),
        (
            {"dependentRequired": {"a": ["b"]}},
            {"a": 1},
            ("", "dependentRequired", "the property 'b' beside 'a'", "an object with 1 property"),
        ),
        ({"type": "string"}, {1, 2}, ("", "type", "a JSON value", "a Python set")),
        ({"multipleOf": 0.1}, 0.25, ("", "multipleOf", "a multiple of 0.1", "0.25")),
        ({"maximum": 1}, 10**200, ("", "maximum", "at most 1", "a number of more than 70 digits")),
    ],
)
def test_what_is_said(schema: Any, value: Any, said: Any) -> None:
    assert Validator(schema).mismatch(value) == Mismatch(*said)


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"multipleOf": 0.01}, 19.99),
        ({"multipleOf": 0.1}, 0.3),
        ({"multipleOf": 1e-300}, 1e300),
        ({"type": "integer"}, 1e300),
        ({"format": "date"}, "tomorrow"),
        ({"type": "object", "required": ["a"]}, MappingProxyType({"a": 1})),
        ({"type": "array", "prefixItems": [{"const": 1}]}, (1, 2)),
        ({"$ref": "#/x-own/a%25b~1c", "x-own": {"a%b/c": {"type": "null"}}}, None),
        ({"$ref": "#here", "$defs": {"a": {"$anchor": "here", "type": "null"}}}, None),
        (
            {"$ref": "urn:a", "$defs": {"a": {"$id": "urn:a", "$ref": "#/$defs/b", "$defs": {"b": {"type": "null"}}}}},
            None,
        ),
        ({"$schema": DRAFT_7, "$ref": "#here", "definitions": {"a": {"$id": "#here", "type": "null"}}}, None),
        ({"$schema": DRAFT_7, "$ref": "#/definitions/a", "type": "string", "definitions": {"a": {}}}, 1),
        ({"$ref": "https://json-schema.org/draft/2020-12/schema"}, {"type": "string"}),
        (TREE, {"children": [{"daat": 1}]}),
        (STRICT_TREE, {"children": [{"data": 1, "children": []}]}),
    ],
)
def test_what_fits(schema: Any, value: Any) -> None:
    assert Validator(schema).mismatch(value) is None


def test_an_outer_resource_takes_the_place_of_a_dynamic_name() -> None:
    found = Validator(STRICT_TREE).mismatch({"children": [{"daat": 1}]})
    assert found is not None
    assert (found.path, found.keyword) == ("/children/0", "unevaluatedProperties")


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (5, "it is no valid schema of 2020-12: type: expected object or boolean, got 5"),
        ({"properties": {"a": {"type": "text"}}}, "at /properties/a/type"),
        ({"minLength": -1}, "at /minLength: minimum: expected at least 0, got -1"),
        ({"$ref": "#/x", "x": {"type": 5}}, "it is no valid schema"),  # where the meta-schema does not look
        ({"$ref": "#/nowhere"}, "the $ref '#/nowhere' leads nowhere"),
        ({"$ref": "#nowhere"}, "the $ref '#nowhere' leads nowhere"),
        ({"$ref": "#/title", "title": "x"}, "leads to no schema"),
        ({"$ref": "http://127.0.0.1/x.json"}, "leads out of the schema; nothing is fetched"),
        ({"$ref": "file:///etc/passwd"}, "leads out of the schema; nothing is fetched"),
        ({"$ref": "other.json#/a"}, "leads out of the schema; nothing is fetched"),
        ({"$id": "http://a/b", "$ref": "c"}, "leads out of the schema; nothing is fetched"),
        ({"$ref": "http://[x#a"}, "is no URI"),
        ({"$schema": "http://json-schema.org/draft-04/schema#"}, "is not supported: 2020-12 and draft-07 are"),
        ({"$schema": 5}, "is not supported"),
        ({"$defs": {"a": {"$id": "urn:a", "$schema": "urn:own"}}}, "its dialect 'urn:own' is not supported"),
    ],
)
def test_schemas_that_cannot_be_used(schema: Any, reason: str) -> None:
    with pytest.raises(Unusable) as caught:
        Validator(schema)
    assert reason in str(caught.value)


def test_a_pattern_that_is_none() -> None:
    with pytest.raises(Unusable, match="the regular expression '\\('"):
        Validator({"pattern": "("}).mismatch("x")


def test_what_a_value_says_is_not_repeated() -> None:
    secret = "hunter2"
    schema = {"anyOf": [{"const": 1}, {"items": {"pattern": "^x"}}, {"additionalProperties": {"maxLength": 2}}]}
    for value in (secret, [secret], {"a": secret}):
        assert secret not in str(Validator({**schema, "type": "null"}).mismatch(value))
        assert secret not in str(Validator(schema).mismatch([value] if isinstance(value, str) else value))


def test_names_and_paths_are_bounded() -> None:
    found = Validator({"additionalProperties": {"additionalProperties": False}}).mismatch(
        {"a" * 9_000: {"b" * 9_000: 1}}
    )
    assert found is not None
    assert len(str(found)) + len(found.path) < 500


def test_a_thread_with_a_deep_stack_of_its_own() -> None:
    """Where there is no room on the stack any more, it is said like any other bound."""
    check = Validator({"type": "array", "items": {"$ref": "#"}})
    value: Any = []
    for _ in range(80):
        value = [value]
    assert check.mismatch(value) is None
    outcome = []

    def down(depth: int) -> None:
        if depth:
            down(depth - 1)
            return
        try:
            outcome.append(check.mismatch(value))
        except TooMuchWork as error:
            outcome.append(error)

    thread = threading.Thread(target=lambda: down(880))
    thread.start()
    thread.join()
    assert isinstance(outcome[0], TooMuchWork)
