"""Names for a model: short, plain, injective, the same in any order. FAULTS.md H5."""

from __future__ import annotations

import hashlib
import re
from random import Random
from typing import List, Tuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcpsync.host.names import MAX_NAME, RefusedName, ToolKey, ToolNames, exposed_name

VALID = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")

# Config refuses control characters in a server's name; a tool's name may be any text.
servers = st.text(st.characters(exclude_categories=["Cc"]), max_size=80) | st.text("ab_-", max_size=6)
tools = st.text(max_size=150) | st.text("ab_-", max_size=6)
pairs = st.tuples(servers, tools)


def digest(server: str, tool: str) -> str:
    return hashlib.sha256(("%s\0%s" % (server, tool)).encode("utf-8", "surrogatepass")).hexdigest()[:8]


@given(pairs)
def test_every_name_is_valid_and_stable(pair: Tuple[str, str]) -> None:
    name = exposed_name(*pair)
    assert VALID.match(name)
    assert name.startswith("mcp__")
    assert name == exposed_name(*pair)


@given(pairs)
def test_plain_or_with_the_hash(pair: Tuple[str, str]) -> None:
    server, tool = pair
    name, plain = exposed_name(server, tool), "mcp__%s__%s" % pair
    assert name == plain or name.endswith("_" + digest(server, tool))
    if not VALID.match(plain) or "__" in server or "__" in tool:
        assert name != plain


@given(st.lists(pairs, unique=True, max_size=30))
@example([("a_", "b"), ("a", "_b")])
@example([("a__b", "c"), ("a", "b__c")])
@example([("a", ""), ("", "a"), ("", "")])
@example([("a b", "c"), ("a_b", "c"), ("a-b", "c"), ("a/b", "c")])
@example([("s", "read file"), ("s", "read_file_" + digest("s", "read file"))])
@example([("x" * 60 + "1", "t"), ("x" * 60 + "2", "t"), ("s", "t" * 90 + "1"), ("s", "t" * 90 + "2")])
def test_injective(keys: List[Tuple[str, str]]) -> None:
    names = ToolNames(keys)
    assert names.refused == []
    assert len(names) == len(keys)
    assert [names.key_of(names.name_of(*key)) for key in keys] == keys


@given(st.lists(pairs, max_size=15), st.randoms(use_true_random=False))
def test_independent_of_order(keys: List[Tuple[str, str]], random: Random) -> None:
    shuffled = list(keys)
    random.shuffle(shuffled)
    assert dict(ToolNames(keys).items()) == dict(ToolNames(shuffled).items())


@pytest.mark.parametrize(
    ("server", "tool", "stem"),
    [
        ("fs", "read_file", "mcp__fs__read_file"),
        ("my-fs", "get-sum", "mcp__my-fs__get-sum"),
        ("_fs", "read_", "mcp___fs__read_"),
        ("fs", "read file", "mcp__fs__read_file_{}"),
        ("日本", "道具", "mcp_______{}"),
        ("a__b", "c", "mcp__a__b__c_{}"),
        ("a_", "b", "mcp__a___b_{}"),
        ("fs", "log_20240101", "mcp__fs__log_20240101_{}"),
        ("fs", "t" * 60, "mcp__fs__" + "t" * 46 + "_{}"),
        ("s" * 60, "t" * 60, "mcp__" + "s" * 20 + "__" + "t" * 28 + "_{}"),
        ("s" * 60, "tool", "mcp__" + "s" * 44 + "__tool_{}"),
        ("s" * 27, "t" * 30, "mcp__" + "s" * 27 + "__" + "t" * 30),
        ("s" * 28, "t" * 30, "mcp__" + "s" * 20 + "__" + "t" * 28 + "_{}"),
    ],
)
def test_form(server: str, tool: str, stem: str) -> None:
    name = exposed_name(server, tool)
    assert name == stem.format(digest(server, tool))
    assert len(name) <= MAX_NAME


def test_name_never_changes() -> None:
    assert exposed_name("a b", "c") == "mcp__a_b__c_84eff4df"


def test_tool_listed_twice_keeps_its_first_place() -> None:
    names = ToolNames([("s", "a"), ("s", "b"), ("s", "a")])
    assert [name for name, _ in names.items()] == ["mcp__s__a", "mcp__s__b"]
    (refused,) = names.refused
    assert refused == RefusedName(ToolKey("s", "a"), "mcp__s__a", "the server lists a tool of this name twice")


def test_reserved_names_are_refused() -> None:
    names = ToolNames([("s", "a"), ("s", "b")], reserved={"mcp__s__a"})
    assert "mcp__s__a" not in names
    assert "mcp__s__b" in names
    assert names.refused[0].reason == "the name mcp__s__a is reserved by the host"
    with pytest.raises(KeyError):
        names.name_of("s", "a")


def test_colliding_hashes_are_both_refused_in_any_order() -> None:
    # NUL in a server's name, which config refuses, is the only collision that costs no search.
    collision = [("a\0", "x"), ("a", "\0x"), ("s", "t")]
    assert exposed_name(*collision[0]) == exposed_name(*collision[1])
    for keys in (collision, collision[::-1]):
        names = ToolNames(keys)
        assert [key for _, key in names.items()] == [("s", "t")]
        assert {refused.key for refused in names.refused} == set(collision[:2])
        assert "another tool has the same name" in names.refused[0].reason
