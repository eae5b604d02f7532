"""Frontmatter against what a server says of it, in the ways in which YAML can be read."""

from __future__ import annotations

import json
import time
from typing import Any, Dict

import pytest
import yaml

from mcpsync.extensions.frontmatter import MOST_CHARACTERS, FrontmatterError, difference, split

DEEP = 500


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("---\nname: a\n---\n\nBody\n", "name: a\n"),
        ("---\r\nname: a\r\n---\r\nBody\r\n", "name: a\r\n"),
        ("\ufeff---\nname: a\n---", "name: a\n"),
        ("--- \nname: a\n--- \nBody", "name: a\n"),
        ("---\n---\nBody", ""),
        ("---\nname: a\n---\nBody\n---\nmore\n", "name: a\n"),
        ("---\nname: a---\n----\nb: 1\n---\n", "name: a---\n----\nb: 1\n"),
    ],
)
def test_the_block_is_found(text: str, source: str) -> None:
    assert split(text) == source


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Body\n",
        "\n---\nname: a\n---\n",
        "---\nname: a\n",
        " ---\nname: a\n---\n",
        "---\n" + "a" * MOST_CHARACTERS + "\n---\n",
    ],
)
def test_there_is_no_block(text: str) -> None:
    with pytest.raises(FrontmatterError, match="does not begin with YAML"):
        split(text)


@pytest.mark.parametrize(
    ("source", "entry"),
    [
        ("a: text", {"a": "text"}),
        ("a: 'text: more'\nb: >\n  folded\n  lines\n", {"a": "text: more", "b": "folded lines\n"}),
        ("a: 1\nb: -2.50\nc: true\nd: null\ne:\n", {"a": 1, "b": -2.5, "c": True, "d": None, "e": None}),
        ("a: 1.0", {"a": 1}),
        ("a: '1.10'", {"a": "1.10"}),
        ("a: !!str 1", {"a": "1"}),
        ("a: yes", {"a": True}),
        ("a: yes", {"a": "yes"}),
        ("a: 0755", {"a": 493}),
        ("a: 0755", {"a": 755}),
        ("a: 0o14", {"a": 12}),
        ("a: 1e3", {"a": 1000}),
        ("a: 2026-07-28", {"a": "2026-07-28"}),
        ("a: 2026-02-31", {"a": "2026-02-31"}),
        ("a: =", {"a": "="}),
        ("a: [x, {b: no}]\nc: &it {d: 1}\ne: *it", {"a": ["x", {"b": False}], "c": {"d": 1}, "e": {"d": 1}}),
        ("1: one\ntrue: two", {"1": "one", "true": "two"}),
        ("{}", {}),
    ],
)
def test_it_says_the_same(source: str, entry: Dict[str, Any]) -> None:
    assert difference(source, entry) is None


@pytest.mark.parametrize(
    ("source", "entry", "field"),
    [
        ("a: text", {"a": "other"}, "a"),
        ("a: text", {}, "a"),
        ("a: text", {"a": "text", "b": 1}, "b"),
        ("a: 1", {"a": "1"}, "a"),
        ("a: '1'", {"a": 1}, "a"),
        ("a: !!str 1", {"a": 1}, "a"),
        ("a: !!binary aGk=", {"a": "hi"}, "a"),
        ("a: !!bool what", {"a": True}, "a"),
        ("a: !!python/name:os.system x", {"a": "x"}, "a"),
        ("a: 1", {"a": True}, "a"),
        ("a: 'yes'", {"a": True}, "a"),
        ("a: [1, 2]", {"a": [1]}, "a"),
        ("a: [1]", {"a": 1}, "a"),
        ("a: {b: 1}", {"a": {"b": 2}}, "a"),
        ("a: {b: 1}", {"a": [1]}, "a"),
        ("a: 1\na: 2", {"a": 2}, "a"),
        ("? [a]\n: 1", {"a": 1}, "None"),
        ("a: " + "9" * 5_000, {"a": 9}, "a"),
    ],
)
def test_it_says_something_else(source: str, entry: Dict[str, Any], field: str) -> None:
    assert difference(source, entry) == field


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        ("", "no YAML mapping"),
        ("- a", "no YAML mapping"),
        ("just text", "no YAML mapping"),
        ("a: [", "no valid YAML"),
        ("a: *nowhere", "no valid YAML: found undefined alias"),
        ("a: \x01", "no valid YAML: a character that is not allowed"),
        ("a: " + "[" * DEEP + "]" * DEEP, "nested too deeply"),
    ],
)
def test_it_cannot_be_read(source: str, problem: str) -> None:
    with pytest.raises(FrontmatterError, match=problem):
        difference(source, {"a": 1})


def test_aliases_that_would_fill_the_memory_cost_nothing() -> None:
    lines = ["a0: &a0 [x, x]"] + ["a%d: &a%d [*a%d, *a%d]" % (n, n, n - 1, n - 1) for n in range(1, 200)]
    began = time.monotonic()
    assert difference("\n".join(lines), {"a0": ["x", "x"], "a1": [["x", "x"], ["x", "y"]]}) == "a1"
    assert difference("a: &a [*a]", {"a": [[[["x"]]]]}) == "a"
    assert time.monotonic() - began < 10


def test_whatever_a_server_renders_with_pyyaml_agrees() -> None:
    source = "name: a\nwhen: 2026-07-28\nmetadata:\n  draft: off\n  version: 1.10\n  tags: [on, 'on', 08, 0x1F]\n"
    rendered = json.loads(json.dumps(yaml.safe_load(source), default=str))
    assert rendered["metadata"] == {"draft": False, "version": 1.1, "tags": [True, "on", "08", 31]}
    assert difference(source, rendered) is None
