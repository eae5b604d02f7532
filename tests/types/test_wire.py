"""Every type reads and writes the JSON of the protocol, keeps what it does not know, and survives junk."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import pprint
from typing import Any, Dict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcpsync import types
from mcpsync.errors import InvalidMessage
from tests.types.samples import ALIASES, CLASSES, SAMPLES

samples = pytest.mark.parametrize(("cls", "wire"), [s[1:] for s in SAMPLES], ids=[s[0] for s in SAMPLES])

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
json_values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
)


@samples
def test_round_trip(cls: Any, wire: Dict[str, Any]) -> None:
    before = copy.deepcopy(wire)
    made = cls.from_wire(wire)
    assert isinstance(made, cls)
    assert made.to_wire() == wire == before
    assert json.loads(json.dumps(made.to_wire())) == wire


def test_each_type_has_a_sample() -> None:
    assert {cls for _, cls, _ in SAMPLES} == set(CLASSES)
    assert set(types.__all__) >= ALIASES


@samples
def test_equal_picklable_and_shown(cls: Any, wire: Dict[str, Any]) -> None:
    made = cls.from_wire(wire)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(made, protocol)) == made
    assert copy.deepcopy(made) == made
    assert made != cls.from_wire({**wire, "x-new": 1})
    assert made != wire
    assert repr(made).startswith(cls.__name__ + "(")
    with pytest.raises(TypeError, match="unhashable"):
        hash(made)


@samples
def test_the_dataclasses_module_works_on_it(cls: Any, wire: Dict[str, Any]) -> None:
    if cls in (types.ToolResult, types.ClientCapabilities, types.ServerCapabilities):
        assert not dataclasses.is_dataclass(cls)
        return
    made = cls.from_wire(wire)
    assert {field.name for field in dataclasses.fields(cls)} == set(vars(made))
    assert dataclasses.replace(made) == made
    assert dataclasses.replace(made, extra={"k": 1}).to_wire()["k"] == 1
    assert set(dataclasses.asdict(made)) == set(vars(made))
    assert pprint.pformat(made, width=1)


@given(st.sampled_from(SAMPLES), st.dictionaries(st.text(max_size=8).map("x-".__add__), json_values, max_size=4))
def test_unknown_fields_survive(sample: Any, unknown: Dict[str, Any]) -> None:
    _, cls, wire = sample
    made = cls.from_wire({**wire, **unknown})
    assert made.to_wire() == {**wire, **unknown}
    if hasattr(made, "extra"):
        assert {key: made.extra[key] for key in unknown} == unknown


def _use(cls: Any, wire: Any) -> None:
    """Read, and look at all that can be looked at; only InvalidMessage may come of it."""
    try:
        made = cls.from_wire(wire)
    except InvalidMessage as error:
        assert cls.__name__ in error.message or "content" in error.message
        return
    assert len(repr(made)) < 4000
    written = made.to_wire()
    # "mode" and "role" have defaults, which stand in for what does not fit.
    assert {k: v for k, v in written.items() if k not in ("mode", "role")} == {
        k: v for k, v in wire.items() if k not in ("mode", "role")
    }
    assert cls.from_wire(written) == made or "mode" in written or "role" in written
    for name in dir(cls):
        if isinstance(getattr(cls, name), property):
            try:
                getattr(made, name)
            except InvalidMessage:
                assert name in ("content", "data_bytes")


@given(st.sampled_from(CLASSES), json_values)
def test_junk_raises_nothing_but_invalid_message(cls: Any, wire: Any) -> None:
    _use(cls, wire)


@pytest.mark.once
@given(st.data())
@settings(max_examples=500, deadline=None)
def test_nor_does_junk_in_one_place(data: st.DataObject) -> None:
    _, cls, wire = data.draw(st.sampled_from(SAMPLES))
    wire = copy.deepcopy(wire)
    at: Any = wire
    while True:
        places = list(at) if isinstance(at, dict) else list(range(len(at)))
        if not places:
            break
        place = data.draw(st.sampled_from(places))
        if isinstance(at[place], (dict, list)) and data.draw(st.booleans()):
            at = at[place]
        elif isinstance(at, dict) and data.draw(st.booleans()):
            del at[place]
            break
        else:
            at[place] = data.draw(json_values)
            break
    _use(cls, wire)


@pytest.mark.parametrize(
    ("cls", "wire", "message"),
    [
        (types.Tool, {"inputSchema": {}}, "Tool.name: required, but missing"),
        (types.Tool, {"name": "n", "inputSchema": []}, "Tool.inputSchema: expected an object, got an array"),
        (types.Tool, None, "Tool: expected an object, got null"),
        (types.Tool, {"name": None, "inputSchema": {}}, "Tool.name: expected a string, got null"),
        (types.TextContent, {"type": "image", "text": ""}, "TextContent.type: expected 'text'"),
        (types.LogMessage, {"level": "info"}, "LogMessage.data: required, but missing"),
        (types.Progress, {"progress": True}, "Progress.progress: expected a number, got a boolean"),
        (types.SamplingRequest, {"messages": [], "maxTokens": 1.5}, "SamplingRequest.maxTokens: expected an integer"),
        (
            types.PromptResult,
            {"messages": [{"role": "user", "content": {"type": "text", "text": "a"}}, {"role": "user", "content": 1}]},
            "PromptResult.messages: item 1: PromptMessage.content: expected an object, got a number",
        ),
        (types.ElicitationResult, {"action": "maybe"}, "ElicitationResult.action: expected 'accept' or 'decline' or"),
        (types.ElicitationRequest, {"message": "m"}, "ElicitationRequest.requestedSchema: required in form mode"),
        (types.ElicitationRequest, {"message": "m", "mode": "url"}, "ElicitationRequest.url: required in URL mode"),
        (types.ResourceContents, {"uri": "u"}, "ResourceContents.text or .blob: one is required"),
        (types.ServerCapabilities, 3, "ServerCapabilities: expected an object, got a number"),
        (types.ToolResult, [], "ToolResult: expected an object, got an array"),
        (types.Tool, object(), "Tool: expected an object, got a Python object"),
    ],
)
def test_what_cannot_be_read_is_named(cls: Any, wire: Any, message: str) -> None:
    with pytest.raises(InvalidMessage) as caught:
        cls.from_wire(wire)
    assert caught.value.message.startswith(message)


def test_an_optional_field_that_does_not_fit_is_none_and_kept() -> None:
    wire = {
        "name": "n",
        "inputSchema": {},
        "title": 3,
        "description": None,
        "annotations": {"readOnlyHint": "yes", "title": "T"},
        "icons": [{"src": "https://a/i.png"}, {"sizes": ["any"]}],
        "_meta": [],
    }
    tool = types.Tool.from_wire(wire)
    assert (tool.title, tool.description, tool.icons, tool.meta) == (None, None, None, None)
    assert tool.annotations is not None
    assert (tool.annotations.read_only_hint, tool.annotations.title) == (None, "T")
    assert tool.to_wire() == wire


def test_a_whole_float_is_an_integer() -> None:
    size = types.Resource.from_wire({"uri": "u", "name": "n", "size": 3.0}).size
    assert size == 3
    assert isinstance(size, int)


def test_constructor() -> None:
    block = types.TextContent("hi", extra={"x": 1}, meta={"k": 2})
    assert block.to_wire() == {"type": "text", "text": "hi", "x": 1, "_meta": {"k": 2}}
    assert types.Tool("n", {}).extra is not types.Tool("n", {}).extra
    for call, message in [
        (types.TextContent, r"TextContent\(\) needs 'text'"),
        (lambda: types.TextContent("a", None, 3), r"takes 2 positional arguments, not 3"),
        (lambda: types.TextContent("a", text="b"), r"got two values for 'text'"),
        (lambda: types.TextContent("a", colour="b"), r"has no field 'colour'"),
        (lambda: types.TextContent("a", type="image"), r"has no field 'type'"),
    ]:
        with pytest.raises(TypeError, match=message):
            call()


def test_an_attribute_wins_over_extra() -> None:
    tool = types.Tool.from_wire({"name": "n", "inputSchema": {}, "title": 3})
    tool.title = "T"
    assert tool.to_wire() == {"name": "n", "inputSchema": {}, "title": "T"}


def test_repr_is_bounded() -> None:
    image = types.ImageContent("A" * 10_000_000, "image/png")
    assert len(repr(image)) < 300
    many = types.PromptResult([types.PromptMessage("user", types.TextContent("x" * 9999))] * 9999)
    assert len(repr(many)) < 2000
    assert repr(types.Root("file:///a", extra={"k": 1})) == "Root(uri='file:///a', extra={'k': 1})"


def test_a_plain_object_in_a_nested_place_is_written_as_it_is() -> None:
    block: Any = {"type": "text", "text": "a"}
    assert types.SamplingMessage("user", [block]).to_wire() == {"role": "user", "content": [block]}
