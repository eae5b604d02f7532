"""Answers to elicitation: defaults, checks, and schemas of hostile servers."""

from __future__ import annotations

import enum
import json
import math
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.core.elicitation import check, fill_defaults


def schema(required=(), **properties):
    return {"type": "object", "properties": properties, "required": list(required)}


def complaints(rules, value):
    """The problems of one key's value, without the key."""
    problems = check(schema(key=rules), {"key": value})
    assert all(problem.startswith("'key': ") for problem in problems)
    return [problem[len("'key': ") :] for problem in problems]


COLOURS = ["Red", "Green", "Blue"]
TITLED = [{"const": "#f00", "title": "Red"}, {"const": "#0f0", "title": "Green"}]


# --- defaults


@pytest.mark.parametrize(
    ("rules", "default"),
    [
        ({"type": "string"}, "Ada"),
        ({"type": "string", "format": "email"}, "ada@example.com"),
        ({"type": "number"}, 1.5),
        ({"type": "integer"}, 3),
        ({"type": "integer"}, 0),
        ({"type": "boolean"}, False),
        ({"type": "string", "enum": COLOURS}, "Red"),
        ({"type": "string", "enum": COLOURS, "enumNames": ["r", "g", "b"]}, "Red"),
        ({"type": "string", "oneOf": TITLED}, "#f00"),
        ({"type": "array", "items": {"type": "string", "enum": COLOURS}}, ["Red", "Blue"]),
        ({"type": "array", "items": {"anyOf": TITLED}}, ["#0f0"]),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 4),
        ({"type": ["string", "null"]}, "x"),
    ],
)
def test_a_default_fills_an_absent_key_only(rules, default):
    asked = schema(key={**rules, "default": default}, other={"type": "string"})
    assert fill_defaults(asked, {}) == {"key": default}
    assert fill_defaults(asked, None) == {"key": default}
    assert fill_defaults(asked, {"key": "mine", "other": "o"}) == {"key": "mine", "other": "o"}
    assert check(asked, fill_defaults(asked, {})) == []


@pytest.mark.parametrize(
    "rules",
    [
        {"type": "integer", "default": "three"},
        {"type": "integer", "default": True},
        {"type": "string", "default": None},
        {"type": "string", "enum": COLOURS, "default": "Mauve"},
        {"type": "array", "items": {"enum": COLOURS}, "default": ["Mauve"]},
        {"type": "object", "default": {"deep": 1}},
        {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
    ],
)
def test_a_default_that_its_own_schema_refuses_is_left_out(rules):
    assert fill_defaults(schema(key=rules), {}) == {}


def test_neither_the_answer_nor_the_schema_is_altered():
    asked = schema(key={"type": "array", "items": {"enum": COLOURS}, "default": ["Red"]})
    before = json.dumps(asked)
    given_content = {}
    filled = fill_defaults(asked, given_content)
    filled["key"].append("Green")
    assert given_content == {}
    assert json.dumps(asked) == before


# --- checks


@pytest.mark.parametrize(
    ("rules", "value"),
    [
        ({"type": "string"}, ""),
        ({"type": "string", "minLength": 2, "maxLength": 3}, "äöü"),
        ({"type": "number"}, 1),
        ({"type": "number", "minimum": 1, "maximum": 2}, 2),
        ({"type": "integer"}, 5.0),
        ({"type": "integer"}, 10**400),
        ({"type": "boolean"}, True),
        ({"type": "string", "enum": COLOURS}, "Blue"),
        ({"type": "string", "oneOf": TITLED}, "#0f0"),
        ({"type": "string", "anyOf": TITLED}, "#0f0"),
        ({"type": "array", "items": {"type": "string", "enum": COLOURS}, "minItems": 1, "maxItems": 2}, ["Red"]),
        ({"type": "array", "items": {"anyOf": TITLED}}, []),
        ({"type": "array"}, ("a", "b")),
        ({"type": ["integer", "null"]}, 3),
        # What is malformed constrains nothing.
        ({"type": "string", "minLength": "three", "maxLength": None, "format": ["email"]}, "x"),
        ({"type": "string", "format": "postcode"}, "x"),
        ({"type": "string", "pattern": "(a+)+$"}, "a" * 50 + "!"),
        ({"type": "string", "enum": []}, "x"),
        ({"type": "string", "enum": [1, 2]}, "x"),
        ({"type": "string", "oneOf": [{"const": "a"}, "b"]}, "x"),
        ({"type": "string", "oneOf": "a"}, "x"),
        ({"type": "number", "minimum": math.nan, "maximum": True}, 7),
        ({"type": "array", "items": "string", "minItems": math.nan}, ["x"]),
        ({"type": "array", "items": {}}, ["x"]),
        ({"type": {"odd": 1}}, "x"),
        ({"type": ["string", "integer"]}, 1),
        ({"type": "object"}, ["a"]),
        ("no schema at all", True),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, 4),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "null"}]}, 4),
    ],
)
def test_what_is_right_has_no_problems(rules, value):
    assert complaints(rules, value) == []


@pytest.mark.parametrize(
    ("rules", "value", "complaint"),
    [
        ({"type": "string"}, 1, "must be a string, not a number"),
        ({"type": "string"}, None, "must be a string, not null"),
        ({"type": "string"}, {}, "must be a string, not an object"),
        ({"type": "string"}, ["a"], "must be a string, not a list"),
        ({"type": "string"}, b"a", "must be a string, not a Python bytes"),
        ({"type": "number"}, True, "must be a number, not a boolean"),
        ({"type": "number"}, "1", "must be a number, not a string"),
        ({"type": "number"}, math.nan, "must be a finite number"),
        ({"type": "number"}, math.inf, "must be a finite number"),
        ({"type": "integer"}, 1.5, "must be an integer, not a number"),
        ({"type": "integer"}, False, "must be an integer, not a boolean"),
        ({"type": "boolean"}, 1, "must be a boolean, not a number"),
        ({"type": "array"}, "abc", "must be a list of strings, not a string"),
        ({"type": "array"}, ["a", 1], "must be a list of strings, not a list of other things"),
        ({"type": "number", "minimum": 18}, 17, "must be at least 18"),
        ({"type": "number", "maximum": 1.5}, 2, "must be at most 1.5"),
        ({"type": "integer", "minimum": 10**5000}, 2, "must be at least a number of more than 300 digits"),
        ({"type": "string", "minLength": 1}, "", "must have at least 1 character"),
        ({"type": "string", "maxLength": 2}, "abc", "must have at most 2 characters"),
        ({"type": "array", "minItems": 2}, ["a"], "must have at least 2 items"),
        ({"type": "array", "maxItems": 1}, ["a", "b"], "must have at most 1 item"),
        ({"type": "string", "enum": COLOURS}, "Mauve", "must be one of 'Red', 'Green', 'Blue'"),
        ({"type": "string", "oneOf": TITLED}, "Red", "must be one of '#f00', '#0f0'"),
        ({"enum": COLOURS}, 1, "must be one of 'Red', 'Green', 'Blue'"),
        ({"type": "array", "items": {"enum": ["a", "b"]}}, ["a", "c"], "each item must be one of 'a', 'b'"),
        ({"type": "array", "items": {"anyOf": TITLED}}, ["Red"], "each item must be one of '#f00', '#0f0'"),
        (
            {"type": "string", "enum": [str(number) for number in range(10)]},
            "x",
            "must be one of '0', '1', '2', '3', '4', '5', '6', '7' and 2 more",
        ),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "4", "must be an integer, not a string"),
        ({}, None, "must be a string, a number, a boolean or a list of strings, not null"),
        ({"type": "object"}, {"a": 1}, "must be a string, a number, a boolean or a list of strings, not an object"),
        ({"type": "string", "format": "email"}, "ada", "must be an e-mail address, such as ada@example.com"),
    ],
)  # fmt: skip
def test_each_rule_has_clear_words(rules, value, complaint):
    assert complaints(rules, value) == [complaint]


def test_a_string_enum_of_python_is_a_string():
    class Colour(str, enum.Enum):
        RED = "Red"

    assert complaints({"type": "string", "enum": COLOURS}, Colour.RED) == []


@pytest.mark.parametrize(
    ("form", "good", "bad"),
    [
        (
            "email",
            ["a@b", "ada.l@example.co.uk", "o'neil+tag@example.com", "jörg@exämple.de"],
            ["", "@", "a@", "@b", "a b@c", "a@b@c", "a@b..c", ".a@b", "a@b.", "a@b\n", "a\x00@b", "<a@b>"],
        ),
        (
            "uri",
            ["https://example.com/a?b=c#d", "urn:isbn:0451450523", "mailto:a@b", "file:///x", "http://[::1]/", "a:%20"],
            ["", "example.com", "/path", "https:", ":x", "1a:x", "http://a b", "http://a\n", "http://ü", "a:%2", "a:<"],
        ),
        (
            "date",
            ["2026-07-28", "2024-02-29", "0001-01-01"],
            ["", "2026-7-28", "2026-02-30", "2026-13-01", "20260728", "2026-W31-2", "\uff12026-07-28", "0000-01-01"],
        ),
        (
            "date-time",
            ["2026-07-28T09:30:00Z", "2026-07-28t09:30:00z", "2026-07-28T23:59:60.123+02:00"],
            ["", "2026-07-28", "2026-07-28T09:30:00", "2026-07-28 09:30:00Z", "2026-07-28T24:00:00Z",
             "2026-02-30T00:00:00Z", "2026-07-28T09:30Z", "2026-07-28T09:30:00.Z",
             "2026-07-28T09:30:00+0200", "2026-07-28T09:30:00Z\n"],
        ),
    ],
)  # fmt: skip
def test_formats(form, good, bad):
    rules = {"type": "string", "format": form}
    assert [text for text in good if complaints(rules, text)] == []
    assert [text for text in bad if not complaints(rules, text)] == []


def test_required_and_unknown_keys_are_named():
    asked = schema(["name", "extra"], name={"type": "string"})
    assert check(asked, {"nmae": "Ada"}) == [
        "'name': is required",
        "'extra': is required",
        "'nmae': the server did not ask for this key",
    ]
    assert check(asked, {"name": "Ada", "extra": 1}) == []


def test_keys_that_are_no_strings_are_named():
    assert check(schema(), {1: "x"}) == ["1: the server did not ask for this key"]


@pytest.mark.parametrize("content", [None, "name", ["name"], 1])
def test_content_that_is_no_object(content):
    assert len(check(schema(), content)) == 1
    assert check(schema(), content)[0].startswith("the content must be an object")


@pytest.mark.parametrize(
    "asked",
    [None, [], "object", {}, {"properties": []}, {"required": "name"}, {"required": [1, None]}, {"properties": None}],
)
def test_a_schema_that_is_none_asks_for_nothing(asked):
    assert check(asked, {}) == []
    assert fill_defaults(asked, {"kept": 1}) == {"kept": 1}
    assert check(asked, {"kept": 1}) == ["'kept': the server did not ask for this key"]


# --- hostile servers


def test_problems_are_bounded_in_number_and_length():
    asked = {"required": ["k%d" % number + "x" * 10_000 for number in range(1_000)]}
    problems = check(asked, {})
    assert len(problems) == 21
    assert problems[-1] == "and more"
    assert max(map(len, problems)) < 200


def test_text_of_the_server_cannot_write_lines_of_its_own():
    assert check({"required": ["a\nb\x1b[2J"]}, {}) == ["'a\\nb\\x1b[2J': is required"]


def test_what_the_user_entered_is_not_repeated():
    asked = schema(a={"type": "integer"}, b={"type": "string", "enum": ["x"]}, c={"type": "string", "format": "date"})
    assert "hunter2" not in "".join(check(asked, dict.fromkeys("abc", "hunter2")))


@pytest.mark.alone
@pytest.mark.timed
def test_large_schemas_take_linear_time():
    options = ["option %d" % number for number in range(50_000)]
    asked = schema(
        many={"type": "array", "items": {"enum": options}, "default": options},
        **{"k%d" % number: {"type": "string", "default": "d"} for number in range(20_000)},
    )
    started = time.process_time()
    assert check(asked, fill_defaults(asked, {})) == []
    assert time.process_time() - started < 2.0


@pytest.mark.alone
@pytest.mark.timed
@pytest.mark.parametrize("form", ["email", "uri", "date", "date-time"])
def test_formats_take_linear_time(form):
    rules = {"type": "string", "format": form}
    started = time.process_time()
    for text in (
        "a" * 500_000,
        "a." * 250_000 + "@",
        "@" * 500_000,
        "a:" + "%" * 500_000,
        "a:" + "%20" * 200_000 + " ",
    ):
        complaints(rules, text)
    complaints(rules, "2026-07-28T09:30:00." + "0" * 500_000)
    assert time.process_time() - started < 2.0


KEYWORDS = """
type properties required default enum oneOf anyOf items const minimum maximum minLength maxLength minItems maxItems
format object string number integer boolean array null email uri date date-time name
"""
words = st.sampled_from(KEYWORDS.split())
atoms = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | words
anything = st.recursive(
    atoms, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=5), max_leaves=8
)
rule_sets = st.dictionaries(words, anything, max_size=6) | anything
schemas = anything | st.fixed_dictionaries(
    {"properties": st.dictionaries(words, rule_sets, max_size=4), "required": st.lists(words, max_size=3) | anything}
)


@given(schemas, st.dictionaries(words, anything, max_size=5))
def test_no_schema_and_no_content_makes_it_raise(asked, content):
    filled = fill_defaults(asked, content)
    assert {key: filled[key] for key in content} == content or content != content  # NaN differs from itself
    problems = check(asked, filled)
    assert all(isinstance(problem, str) and "\n" not in problem for problem in problems)
    # What was filled in is never the problem.
    added = [key for key in filled if key not in content]
    assert not [problem for problem in problems for key in added if problem.startswith("%r:" % key)]


@given(anything)
def test_no_content_makes_it_raise(content):
    assert isinstance(check(schema(["name"], name={"type": "string"}), content), list)


flat_rules = st.one_of(
    st.fixed_dictionaries({"type": st.just("string"), "minLength": st.integers(0, 3), "maxLength": st.integers(0, 3)}),
    st.fixed_dictionaries({"type": st.sampled_from(["number", "integer"]), "minimum": st.integers(-3, 3)}),
    st.just({"type": "boolean"}),
    st.just({"type": "string", "enum": COLOURS}),
    st.just({"type": "string", "oneOf": TITLED}),
    st.just({"type": "array", "items": {"type": "string", "enum": COLOURS}, "minItems": 1}),
    st.just({"type": "array", "items": {"anyOf": TITLED}, "maxItems": 2}),
    st.just({"type": "string", "enum": COLOURS, "enumNames": ["Red", "Green"]}),
    st.fixed_dictionaries({"type": st.sampled_from(["number", "integer"]), "maximum": st.integers(-3, 3)}),
)
flat_values = st.one_of(
    atoms.filter(lambda value: not isinstance(value, float) or math.isfinite(value)),
    st.sampled_from([*COLOURS, "#f00"]),
    st.lists(st.sampled_from(COLOURS), max_size=3),
)


@given(flat_rules, flat_values)
def test_it_agrees_with_a_json_schema_validator(rules, value):
    jsonschema = pytest.importorskip("jsonschema")
    valid = jsonschema.Draft202012Validator(rules).is_valid(value)
    assert (complaints(rules, value) == []) == valid
