"""Nothing that a terminal would obey gets through."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpsync.cli.text import inline, printable, shorten

ANY = st.text(st.characters(codec=None, exclude_categories=()))


@given(ANY)
def test_no_control_character_is_left(text: str) -> None:
    for shown, allowed in ((printable(text), "\n\t"), (inline(text), "")):
        for character in shown:
            assert character in allowed or unicodedata.category(character) not in ("Cc", "Cs", "Zl", "Zp")
        shown.encode("utf-8")


@pytest.mark.parametrize(
    ("text", "lines", "line"),
    [
        ("plain \u00e9 \u4e2d \U0001f600", "plain \u00e9 \u4e2d \U0001f600", "plain \u00e9 \u4e2d \U0001f600"),
        ("a\nb\tc", "a\nb\tc", "a\\nb\\tc"),
        ("a\r\nb", "a\nb", "a\\r\\nb"),
        ("a\rb", "a\\rb", "a\\rb"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07", "\\x1b]0;title\\x07"),
        ("\x9b2J", "\\x9b2J", "\\x9b2J"),
        ("\u202etxt.exe\u202c", "\\u202etxt.exe\\u202c", "\\u202etxt.exe\\u202c"),
        ("\U000e0041", "\\U000e0041", "\\U000e0041"),
        ("\ud800", "\\ud800", "\\ud800"),
    ],
)
def test_what_is_unsafe_is_escaped(text: str, lines: str, line: str) -> None:
    assert printable(text) == lines
    assert inline(text) == line


def test_shorten() -> None:
    assert shorten("abcdef", 6) == "abcdef"
    assert shorten("abcdefg", 6) == "abc..."
