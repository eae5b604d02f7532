"""Values that are shared: they read as before, refuse every change, and are free again once copied."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
from typing import Any, Callable, Dict, List

import pytest

from mcpsync.types import ReadResult, Tool
from mcpsync.types.frozen import FrozenDict, FrozenList, freeze

WIRE: Dict[str, Any] = {
    "name": "t",
    "inputSchema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}}},
    "annotations": {"readOnlyHint": True},
    "icons": [{"src": "https://x/i.png"}],
    "unknown": {"deep": [1]},
}


def frozen_tool() -> Tool:
    return freeze(Tool.from_wire(copy.deepcopy(WIRE)))[0]  # type: ignore[no-any-return]


def test_it_reads_as_before() -> None:
    tool, plain = frozen_tool(), Tool.from_wire(WIRE)
    assert tool == plain
    assert plain == tool
    assert repr(tool) == repr(plain)
    assert tool.to_wire() == WIRE
    assert isinstance(tool.input_schema, dict)
    assert json.loads(json.dumps(tool.input_schema)) == WIRE["inputSchema"]
    orjson = pytest.importorskip("orjson")
    assert orjson.loads(orjson.dumps(tool.input_schema)) == WIRE["inputSchema"]


CHANGES: List[Callable[[Any], Any]] = [
    lambda tool: setattr(tool, "description", "other"),
    lambda tool: delattr(tool, "description"),
    lambda tool: setattr(tool.annotations, "title", "other"),
    lambda tool: setattr(tool.icons[0], "src", "other"),
    lambda tool: tool.icons.append(1),
    lambda tool: tool.input_schema.update(a=1),
    lambda tool: tool.input_schema.pop("type"),
    lambda tool: tool.input_schema["properties"].__setitem__("b", {}),
    lambda tool: tool.input_schema["required"].append("b"),
    lambda tool: tool.extra["unknown"]["deep"].clear(),
    lambda tool: vars(tool).update(name="other"),
]


@pytest.mark.parametrize("number", range(len(CHANGES)))
def test_it_refuses_changes(number: int) -> None:
    tool = frozen_tool()
    with pytest.raises(TypeError, match="shared by all who are given it"):
        CHANGES[number](tool)
    assert tool.to_wire() == WIRE


@pytest.mark.parametrize("kind", [FrozenDict, FrozenList])
def test_nothing_that_changes_its_kind_was_forgotten(kind: Any) -> None:
    plain = kind.__mro__[1]
    harmless = {"__new__", "__init__", "__getattribute__", "__setattr__", "__delattr__", "__init_subclass__"}
    names = set(dir(plain)) - set(dir(tuple)) - set(dir(frozenset)) - harmless
    reads = {"copy", "fromkeys", "get", "items", "keys", "values", "__reversed__", "__ror__", "__class_getitem__"}
    assert names - reads == {name for name in names - reads if getattr(kind, name) is not getattr(plain, name)}


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))], ids=["deepcopy", "pickle"]
)
def test_a_copy_is_free(duplicate: Callable[[Any], Any]) -> None:
    tool = duplicate(frozen_tool())
    for change in CHANGES[:3] + CHANGES[4:10]:
        change(tool)
    assert tool.annotations.title == "other"


def test_a_shallow_copy_has_attributes_of_its_own() -> None:
    tool = copy.copy(frozen_tool())
    tool.description = "other"
    assert dataclasses.replace(frozen_tool(), description="other") == tool


def test_what_it_takes() -> None:
    small = freeze(ReadResult.from_wire({"contents": [{"uri": "a", "text": "x"}]}))[1]
    large = freeze(ReadResult.from_wire({"contents": [{"uri": "a", "text": "x" * 100_000}]}))[1]
    assert 99_000 <= large - small <= 101_000
