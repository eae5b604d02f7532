"""Regular expressions of ECMA-262, matched in both ways: by ``re`` and by following all ways at once."""

from __future__ import annotations

import random
import re
from typing import Optional

import pytest

from mcpsync.schema.patterns import Pattern, _Builder, _Search
from mcpsync.schema.regex_syntax import parse
from mcpsync.schema.work import TooMuchWork, Unusable, Work


def followed(pattern: str, text: str) -> bool:
    """By following all ways at once."""
    return _Search(text, Work(text)).anywhere(_Builder(pattern).program(parse(pattern)))


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [
        ("^a$", "a\n", False),
        ("^\\d$", "٣", False),
        ("^\\w+$", "é", False),
        ("^\\W$", "é", True),
        ("^\\s$", "\ufeff", True),
        ("^[\\s]$", "\u2003", True),
        ("^\\S$", "\ufeff", False),
        ("^.$", "\u2028", False),
        ("^.$", "😀", True),
        ("^\\ud83d\\ude00$", "😀", True),
        ("^\\u{1F600}$", "😀", True),
        ("^\\x41\\u0042\\cJ$", "AB\n", True),
        ("^\\p{Lu}\\p{L}*$", "Ärger", True),
        ("^\\p{Lu}\\p{L}*$", "ärger", False),
        ("^[\\p{L}0-9]+$", "é9", True),
        ("^[^\\p{L}x]+$", "éx", False),
        ("^[\\D]+$", "ab", True),
        ("^[^\\D]+$", "12", True),
        ("^[]$", "", False),
        ("^[^]$", "\n", True),
        ("^[a\\-z]+$", "-", True),
        ("^[a-]+$", "-", True),
        ("^[\\b]$", "\b", True),
        ("\\bcat\\b", "a cat.", True),
        ("\\bcat\\b", "concat", False),
        ("\\Bcat", "concat", True),
        ("a{2}", "aa", True),
        ("^a{,2}$", "a{,2}", True),
        ("^a{2,}?$", "aaa", True),
        ("^(?:a|b)+?$", "abab", True),
        ("^(?=.*[A-Z])(?=.*\\d).{8,}$", "Password1", True),
        ("^(?=.*[A-Z])(?=.*\\d).{8,}$", "password1", False),
        ("^(?!admin$).+$", "admin", False),
        ("(?<=ab+)c", "abbc", True),
        ("(?<!b)c", "bc", False),
        ("^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$", "-12.50", True),
        ("^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$", "-.", False),
        ("/\\/\\.", "//.", True),
    ],
)
def test_ecma_262(pattern: str, text: str, found: bool) -> None:
    assert followed(pattern, text) is found
    assert Pattern(pattern).found_in(text, Work(text)) is found


@pytest.mark.parametrize(
    ("pattern", "text", "found"),
    [("^(a+)\\1$", "aaaa", True), ("^(?<x>ab)\\k<x>$", "abab", True), ("^(?P<x>a|b)\\k<x>$", "ab", False)],
)
def test_references_back(pattern: str, text: str, found: bool) -> None:
    assert Pattern(pattern).found_in(text, Work(text)) is found
    with pytest.raises(TooMuchWork, match="cannot be matched in bounded time"):
        followed(pattern, text)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "a**",
        "*a",
        "[a",
        "[z-a]",
        "a{3,2}",
        "\\q",
        "\\",
        "(?i)a",
        "(?<a",
        "\\p{Script=Greek}",
        "\\k<a>",
        "\\1",
        "^*",
        "\\u12",
        "\\u{110000}",
        "(?<x>a)(?<x>b)",
        "(" * 30 + ")" * 30,
        "a" * 3_000,
        "(?=a)*",
        "(?>a)",
    ],
)
def test_what_is_refused(pattern: str) -> None:
    with pytest.raises(Unusable):
        Pattern(pattern).found_in("a", Work(""))


def made(chance: random.Random, depth: int) -> str:
    """A pattern at random."""
    kind = chance.random()
    if depth == 0 or kind < 0.35:
        return chance.choice(["a", "b", "ab", "[ab]", "[^a]", ".", "^", "$", "\\b", "c"])
    inner = made(chance, depth - 1)
    if kind < 0.55:
        return inner + made(chance, depth - 1)
    if kind < 0.7:
        return "(%s|%s)" % (inner, made(chance, depth - 1))
    if kind < 0.8:
        return "(?%s%s)" % (chance.choice(["=", "!", ":"]), inner)
    return "(?:%s)%s" % (inner, chance.choice(["*", "+", "?", "{2}", "{1,2}", "{0,3}?", "*?"]))


def expected(pattern: str, text: str) -> Optional[bool]:
    return re.search(pattern.replace("$", "\\Z"), text, re.ASCII) is not None


def test_both_ways_agree_with_re() -> None:
    chance = random.Random(6)
    found = 0
    for _ in range(1_500):
        pattern = made(chance, 4)
        text = "".join(chance.choice("abc ") for _ in range(chance.randint(0, 7)))
        wanted = expected(pattern, text)
        found += bool(wanted)
        assert followed(pattern, text) is wanted, (pattern, text)
        assert Pattern(pattern).found_in(text, Work(text)) is wanted, (pattern, text)
    assert 300 < found < 1_400


def test_the_bound_for_re_holds() -> None:
    """The estimate is no less than the ways that trying one after the other takes, here counted for one that fails."""
    pattern = Pattern("^a*a*a*b$")
    pattern.found_in("a" * 8, Work(""))
    assert pattern._ready is not None
    longest, steps = pattern._ready.bounds[0]
    assert longest == 16
    assert steps > 16**3 / 6  # ways to cut sixteen letters into four parts: each is tried
