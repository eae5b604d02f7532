"""ToolResult: a view of what the server sent, parsed when looked at."""

from __future__ import annotations

import pickle
import timeit
from collections import UserDict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.errors import InvalidMessage
from mcpsync.types import ImageContent, TextContent, ToolResult, UnknownContent

TEXT = {"type": "text", "text": "The sum of 1 and 2 is 3."}


def test_all_of_it() -> None:
    raw = {
        "content": [TEXT, {"type": "image", "data": "", "mimeType": "image/png"}, {"type": "text", "text": "b"}],
        "structuredContent": {"sum": 3},
        "isError": True,
        "_meta": {"k": 1},
        "resultType": "complete",
    }
    result = ToolResult(raw)
    assert result.raw is raw
    assert result.to_wire() is raw
    assert result.content == [TextContent(TEXT["text"]), ImageContent("", "image/png"), TextContent("b")]
    assert result.content is result.content
    assert result.text == TEXT["text"] + "\nb"
    assert result.structured == {"sum": 3}
    assert result.is_error
    assert result.meta == {"k": 1}


def test_nothing_of_it() -> None:
    result = ToolResult({})
    assert (result.content, result.text, result.structured, result.is_error, result.meta) == ([], "", None, False, None)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([], ""),
        ([TEXT], TEXT["text"]),
        ([TEXT, TEXT], TEXT["text"] + "\n" + TEXT["text"]),
        ([{"type": "image", "text": "no"}], ""),
        ([{"type": "text", "text": 3}, TEXT], TEXT["text"]),
        ([{"type": "text", "text": 3}], ""),
        ([{"type": "text"}], ""),
        ([None, 3, TEXT], TEXT["text"]),
        ({"type": "text"}, ""),
        ("x", ""),
        (3, ""),
        (None, ""),
    ],
)
def test_text(content: Any, text: str) -> None:
    assert ToolResult({"content": content}).text == text


def test_a_bad_block_is_named() -> None:
    result = ToolResult({"content": [TEXT, {"type": "text"}]})
    for _ in range(2):
        with pytest.raises(
            InvalidMessage, match=r"ToolResult.content: item 1: TextContent.text: required, but missing"
        ):
            result.content
    with pytest.raises(InvalidMessage, match=r"ToolResult.content: expected an array, got a string"):
        ToolResult({"content": "x"}).content
    assert ToolResult({"content": [{"type": "new"}]}).content == [UnknownContent("new")]


def test_any_mapping_will_do_and_nothing_else() -> None:
    assert ToolResult(UserDict({"content": [TEXT]})).text == TEXT["text"]
    for wrong in (None, [], "x", 3):
        with pytest.raises(InvalidMessage, match="ToolResult: expected an object"):
            ToolResult(wrong)  # type: ignore[arg-type]


@given(
    st.dictionaries(
        st.sampled_from(["structuredContent", "isError", "_meta"]), st.none() | st.integers() | st.lists(st.none())
    )
)
def test_fields_of_wrong_types(raw: Any) -> None:
    result = ToolResult(raw)
    assert result.is_error is False
    assert result.meta is None
    assert result.structured == raw.get("structuredContent")


def test_equal_picklable_and_shown() -> None:
    result = ToolResult({"content": [TEXT]})
    result.content
    assert result == ToolResult({"content": [TEXT]})
    assert result != ToolResult({"content": []})
    assert result != {"content": [TEXT]}
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(result, protocol)) == result
    assert len(repr(ToolResult({"content": [{"type": "text", "text": "x" * 10_000_000}] * 100}))) < 1000
    with pytest.raises(AttributeError):
        result.colour = 1  # type: ignore[attr-defined]


def test_cost() -> None:
    """The budget is 0.6 µs on CPython 3.11; the bound here only catches a change of kind, as parsing at once."""
    raw = {"content": [TEXT], "isError": False}

    def use() -> None:
        result = ToolResult(raw)
        result.text
        result.is_error

    rounds = 20_000
    cost = min(timeit.repeat(use, number=rounds, repeat=5)) / rounds * 1e6
    print("ToolResult, made and read: %.2f µs" % cost)
    assert cost < 10
