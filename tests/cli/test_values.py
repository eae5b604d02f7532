"""``key=value`` and ``--args``."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path
from typing import Any, Dict

import pytest

from mcpsync.cli.values import json_object, prompt_arguments, tool_arguments
from mcpsync.errors import ConfigError

OPEN = {"type": "object"}


def with_schema(schema: Any, text: str, **root: Any) -> Any:
    return tool_arguments("t", {"properties": {"k": schema}, **root}, ["k=" + text], None)["k"]


@pytest.mark.parametrize(
    ("schema", "text", "value"),
    [
        ({"type": "number"}, "5", 5),
        ({"type": "integer"}, "five", "five"),
        ({"type": "boolean"}, "true", True),
        ({"type": "string"}, "true", "true"),
        ({"type": "string"}, "", ""),
        ({"type": ["string", "null"]}, "5", "5"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "5", "5"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "5", 5),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "true", "true"),
        ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "5", 5),
        ({"anyOf": [{"type": "string"}, {"type": "array"}]}, '["a"]', ["a"]),
        ({"enum": ["1", "2"]}, "1", "1"),
        ({"enum": [1, 2]}, "1", 1),
        ({"const": "1"}, "1", "1"),
        ({"$ref": "#/$defs/Level"}, "1", "1"),
        ({"$ref": "#/$defs/a~1b"}, "1", 1),
        ({"$ref": "#/nowhere/at all"}, "1", 1),
        ({"type": "array"}, "[1, 2]", [1, 2]),
        ({"type": "object"}, '{"a": {"b": null}}', {"a": {"b": None}}),
        ({}, "5", 5),
        ({}, "text", "text"),
        ({}, "a=b", "a=b"),
        ({}, "NaN", "NaN"),
        ({}, "Infinity", "Infinity"),
        ({}, "[" * 100_000, "[" * 100_000),
        ({}, "null", None),
        (True, "5", 5),
        ({"type": {"no": "type"}}, "5", 5),
    ],
)
def test_a_value_is_json_unless_it_is_none_or_a_string_is_wanted(schema: Any, text: str, value: Any) -> None:
    found = with_schema(schema, text, **{"$defs": {"Level": {"enum": ["1", "2"]}, "a/b": {"type": "integer"}}})
    assert found == value
    assert type(found) is type(value)


def test_a_schema_that_refers_to_itself_many_times_costs_no_time() -> None:
    loop: Dict[str, Any] = {"anyOf": [{"$ref": "#/$defs/loop"}] * 1_000}
    began = time.perf_counter()
    assert with_schema(loop, "5", **{"$defs": {"loop": loop}}) == 5
    assert time.perf_counter() - began < 2


CLOSED = {"properties": {"text": {"type": "string"}, "n": {"type": "integer"}}, "required": ["text"]}


@pytest.mark.parametrize(
    ("words", "whole", "message"),
    [
        (["txt=a"], None, "tool 't' has no argument 'txt' (did you mean 'text'?)"),
        (["n=1"], None, "tool 't' needs text=..."),
        ([], None, "tool 't' needs text=..."),
        (["text"], None, "arguments are written KEY=VALUE, and 'text' is not"),
        (["=text"], None, "arguments are written KEY=VALUE, and '=text' is not"),
        (["text=a", "text=b"], None, "the argument 'text' is given twice"),
        ([], "[1]", '--args: must be a JSON object, as {"key": "value"}'),
        ([], "{", "--args: no valid JSON"),
        ([], '{"n": NaN}', "--args: no valid JSON: NaN is no JSON"),
        ([], "[" * 100_000, "--args: no valid JSON"),
        ([], "@nowhere", "--args, from nowhere: cannot be read: No such file or directory"),
    ],
)
def test_what_is_wrong_is_named(words: Any, whole: Any, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        tool_arguments("t", CLOSED, words, whole)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "schema",
    [OPEN, {**CLOSED, "additionalProperties": True}, {**CLOSED, "patternProperties": {"x": {}}}, {"required": "k"}],
)
def test_a_schema_that_allows_other_keys_gets_them(schema: Any) -> None:
    assert tool_arguments("t", schema, ["text=a", "other=1"], None) == {"text": "a", "other": 1}


def test_args_are_sent_as_they_are_and_words_are_laid_on_top() -> None:
    assert tool_arguments("t", CLOSED, [], '{"other": 1}') == {"other": 1}
    assert tool_arguments("t", CLOSED, ["text=5"], '{"text": 1, "n": 2}') == {"text": "5", "n": 2}


def test_args_come_from_a_file_or_from_stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "args.json"
    file.write_text('\ufeff{"a": "\u00e9"}', encoding="utf-8")
    assert json_object("@%s" % file) == {"a": "\u00e9"}
    monkeypatch.setattr("sys.stdin", io.StringIO(json.dumps({"b": 1})))
    assert json_object("-") == {"b": 1}
    file.write_bytes(b'{"a": "\xff"}')
    with pytest.raises(ConfigError, match="is no UTF-8 text"):
        json_object("@%s" % file)


def test_arguments_of_a_prompt_are_texts() -> None:
    known = {"hero": True, "mood": False}
    assert prompt_arguments("p", known, ["hero=5"]) == {"hero": "5"}
    with pytest.raises(ConfigError, match=r"prompt 'p' needs hero=\.\.\."):
        prompt_arguments("p", known, ["mood=calm"])
    with pytest.raises(ConfigError, match=r"no argument 'her' \(did you mean 'hero'"):
        prompt_arguments("p", known, ["her=5"])
