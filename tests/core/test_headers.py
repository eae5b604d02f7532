"""Headers that repeat parts of a message: rules of the specification, one by one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.core.headers import ParameterHeader, encode_value, mirrors_of, request_headers


def schema(**properties):
    return {"type": "object", "properties": properties}


def annotated(name, kind="string"):
    return {"type": kind, "x-mcp-header": name}


@pytest.mark.parametrize(
    ("value", "encoded"),
    [
        ("us-west1", "us-west1"),
        ("two words", "two words"),
        ("", ""),
        ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
        (" padded ", "=?base64?IHBhZGRlZCA=?="),
        ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
        ("tab\tinside", "=?base64?dGFiCWluc2lkZQ==?="),
        ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ("=?base64?open", "=?base64?open"),
    ],
)
def test_values_are_encoded_where_they_have_to_be(value, encoded):
    assert encode_value(value) == encoded


@given(st.text())
def test_no_value_can_break_out_of_its_header(value):
    encoded = encode_value(value)
    assert encoded == encoded.strip()
    assert all(" " <= char <= "~" for char in encoded)


def test_method_and_name():
    assert request_headers("tools/list", {}) == {"Mcp-Method": "tools/list"}
    assert request_headers("tools/call", {"name": "a b"}) == {"Mcp-Method": "tools/call", "Mcp-Name": "a b"}
    assert request_headers("prompts/get", {"name": "é"})["Mcp-Name"] == "=?base64?w6k=?="
    assert request_headers("resources/read", {"uri": "file:///x%20y"})["Mcp-Name"] == "file:///x%20y"
    assert "Mcp-Name" not in request_headers("tools/call", {"name": 4})


def test_annotated_parameters_travel_as_text():
    mirror = mirrors_of(
        schema(
            region=annotated("Region"),
            count=annotated("Count", "integer"),
            dry=annotated("Dry", "boolean"),
            inner=schema(deep=annotated("Method")),
            query={"type": "string"},
        )
    )
    arguments = {"region": "", "count": 42, "dry": False, "inner": {"deep": "x"}, "query": "select"}
    assert request_headers("tools/call", {"name": "t", "arguments": arguments}, mirror) == {
        "Mcp-Method": "tools/call",
        "Mcp-Name": "t",
        "Mcp-Param-Region": "",
        "Mcp-Param-Count": "42",
        "Mcp-Param-Dry": "false",
        "Mcp-Param-Method": "x",
    }


@pytest.mark.parametrize("arguments", [None, {}, {"a": None}, {"a": {}}, {"a": [1]}, {"a": 1.5}, "text"])
def test_what_is_not_there_or_no_primitive_has_no_header(arguments):
    mirror = (ParameterHeader("Mcp-Param-A", ("a",)), ParameterHeader("Mcp-Param-B", ("a", "b")))
    headers = request_headers("tools/call", {"name": "t", "arguments": arguments}, mirror)
    assert headers == {"Mcp-Method": "tools/call", "Mcp-Name": "t"}


def test_integers_stay_within_what_all_peers_can_hold():
    mirror = (ParameterHeader("Mcp-Param-A", ("a",)),)
    assert request_headers("tools/call", {"arguments": {"a": 3.0}}, mirror)["Mcp-Param-A"] == "3"
    with pytest.raises(ValueError, match="too large for the header Mcp-Param-A"):
        request_headers("tools/call", {"arguments": {"a": 2**53}}, mirror)


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        (schema(a=annotated("")), "no name for a header"),
        (schema(a=annotated(4)), "no name for a header"),
        (schema(a=annotated("a b")), "no name for a header"),
        (schema(a=annotated("a:b")), "no name for a header"),
        (schema(a=annotated("é")), "no name for a header"),
        (schema(a=annotated("a\tb")), "no name for a header"),
        (schema(a=annotated("a\n")), "no name for a header"),
        (schema(a=annotated("A", "number")), "only a string, integer or boolean"),
        (schema(a=annotated("A", "object")), "only a string, integer or boolean"),
        (schema(a=annotated("A", ["string", "null"])), "only a string, integer or boolean"),
        (schema(a=annotated("A"), b=annotated("A")), "two parameters want the header"),
        (schema(a=annotated("A"), b=annotated("a")), "two parameters want the header"),
        (schema(a={"type": "array", "items": annotated("A")}), "properties alone"),
        ({"anyOf": [schema(a=annotated("A"))]}, "properties alone"),
        ({"$defs": {"x": schema(a=annotated("A"))}}, "properties alone"),
        ({"type": "string", "x-mcp-header": "A"}, "properties alone"),
    ],
)
def test_a_broken_annotation_names_itself(bad, reason):
    with pytest.raises(ValueError, match=reason):
        mirrors_of(bad)


def test_schemas_are_read_within_bounds():
    assert mirrors_of({"anyOf": [{"type": "string"}, 4]}) == ()
    assert mirrors_of(None) == mirrors_of(True) == mirrors_of({"properties": 4}) == ()
    assert mirrors_of(schema(a={"default": {"x-mcp-header": 4}, "enum": [{"x-mcp-header": 5}]})) == ()
    deep = {}
    for _ in range(100):
        deep = {"properties": {"a": deep}}
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        mirrors_of(deep)
