"""Include, then exclude, on the names that a server gives its tools."""

from __future__ import annotations

from typing import Any, List

import pytest

from mcpsync.host.filters import ToolFilter

TOOLS = ["read_file", "read_dir", "write_file", "Read_file", "read[0]"]


@pytest.mark.parametrize(
    ("include", "exclude", "used"),
    [
        ((), (), TOOLS),
        (["read_file"], (), ["read_file"]),
        (["read_*"], (), ["read_file", "read_dir"]),
        ("read_?ile", (), ["read_file"]),
        (["read[0]"], (), ["read[0]"]),
        (["[rw]*_file"], (), ["read_file", "write_file"]),
        ((), ["*_file"], ["read_dir", "read[0]"]),
        (["read_*"], ["read_file"], ["read_dir"]),
        (["read_file"], ["*"], []),
        (str.isidentifier, (), ["read_file", "read_dir", "write_file", "Read_file"]),
        ([lambda name: name.startswith("w"), "read_dir"], str.isupper, ["read_dir", "write_file"]),
        ((), lambda name: "file" in name, ["read_dir", "read[0]"]),
        (["nothing"], (), []),
        ({"read_dir": "keys of a dict"}, (), ["read_dir"]),
    ],
)
def test_filter(include: Any, exclude: Any, used: List[str]) -> None:
    rules = ToolFilter(include, exclude)
    assert [name for name in TOOLS if rules.allows(name)] == used


def test_rules_are_taken_once() -> None:
    rules = ToolFilter(iter(["read_*"]))
    assert [rules.allows("read_file") for _ in range(2)] == [True, True]


@pytest.mark.parametrize("what", ["include", "exclude"])
def test_rule_of_another_type(what: str) -> None:
    with pytest.raises(TypeError, match="%s takes names, globs and functions, and got a int" % what):
        ToolFilter(**{what: [5]})  # type: ignore[arg-type]


def test_function_that_raises_is_not_taken_for_consent() -> None:
    with pytest.raises(ZeroDivisionError):
        ToolFilter((), lambda name: 1 / 0).allows("x")
