"""Results and arguments held against the schemas of their tools, over a real server."""

from __future__ import annotations

import importlib.util
import logging
import pickle
from pathlib import Path
from typing import Any, Dict

import pytest

import mcpsync
from mcpsync import (
    ArgumentsMismatch,
    ConfigError,
    Host,
    RequestTimeout,
    SchemaMismatch,
    Timeouts,
    ToolError,
    Validation,
)
from tests.peers.scripted import Peer, peer

pytest.importorskip("jsonschema_specifications")


def weather(server: Any, request: Dict[str, Any], city: str = "", **given: Any) -> Dict[str, Any]:
    """Gives back what it is to give, as its structured content."""
    result: Dict[str, Any] = {"content": [{"type": "text", "text": "it rains"}]}
    if "give" in given:
        result["structuredContent"] = given["give"]
    if given.get("fail"):
        result["isError"] = True
    return result


def listing(server: Any, request: Dict[str, Any], **params: Any) -> Dict[str, Any]:
    """Two pages; after a change, other schemas."""
    changed = getattr(server, "changed", False)
    output: Dict[str, Any] = {
        "type": "object",
        "properties": {"degrees": {"type": "string" if changed else "number"}},
        "required": ["degrees"],
    }
    given = {"type": "object", "properties": {"city": {"type": "string", "minLength": 2}}}
    if "cursor" not in params:
        fetching = {"name": "fetching", "inputSchema": {}, "outputSchema": {"$ref": "http://127.0.0.1:9/schema.json"}}
        return {"tools": [fetching, {"name": "echo", "inputSchema": {"type": "object"}}], "nextCursor": "2"}
    return {"tools": [{"name": "weather", "inputSchema": given, "outputSchema": output}]}


def fetching(server: Any, request: Dict[str, Any]) -> Dict[str, Any]:
    return {"content": [], "structuredContent": {}}


def change(server: Any, request: Dict[str, Any]) -> str:
    server.changed = True
    server.notify("notifications/tools/list_changed", {})
    return "changed"


@pytest.fixture(params=["legacy", "modern"])
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Peer:
    return peer(tmp_path, weather, fetching, change, handlers={"tools/list": listing}, era=request.param)


GOOD = {"degrees": 21.5}
BAD = {"degrees": "hunter2-is-the-password"}


def test_strict_lists_once_and_raises(server: Peer) -> None:
    with mcpsync.connect(server.command, validate="strict") as client:
        assert client.call_tool("weather", {"give": GOOD}).structured == GOOD
        with pytest.raises(SchemaMismatch) as caught:
            client.call_tool("weather", {"give": BAD})
        assert client.call_tool("echo", {"text": "x"}).text == "x"
        assert len(server.received("tools/list")) == 2  # the pages of one listing
    error = caught.value
    assert isinstance(error, ToolError)
    assert (error.path, error.keyword, error.tool) == ("/degrees", "type", "weather")
    assert error.result.structured == BAD
    assert str(error) == (
        "server %r: tool 'weather': structuredContent at /degrees: "
        "type: expected number, got a string of 23 characters" % error.server
    )
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.result.raw) == (str(error), error.path, error.result.raw)


def test_what_is_missing_and_what_failed(server: Peer) -> None:
    with mcpsync.connect(server.command, validate="strict") as client:
        with pytest.raises(SchemaMismatch, match="the result has no structuredContent, although"):
            client.call_tool("weather")
        with pytest.raises(SchemaMismatch, match="structuredContent: type: expected object, got null"):
            client.call_tool("weather", {"give": None})
        with pytest.raises(ToolError) as caught:
            client.call_tool("weather", {"give": BAD, "fail": True})
        assert not isinstance(caught.value, SchemaMismatch)
        assert client.call_tool("weather", {"give": BAD, "fail": True}, check=False).is_error


def test_a_submitted_call(server: Peer) -> None:
    with mcpsync.connect(server.command, validate="strict") as client:
        assert client.submit("weather", {"give": GOOD}).result(30).structured == GOOD
        with pytest.raises(SchemaMismatch):
            client.submit("weather", {"give": BAD}).result(30)
        assert client.submit("weather", {"give": BAD}, validate="off").result(30).structured == BAD


def test_one_call_alone(server: Peer) -> None:
    with mcpsync.connect(server.command) as client:
        assert client.call_tool("weather", {"give": BAD}).structured == BAD
        assert server.received("tools/list") == []
        with pytest.raises(SchemaMismatch):
            client.call_tool("weather", {"give": BAD}, validate="strict")
        assert client.call_tool("weather", {"give": BAD}).structured == BAD
        with pytest.raises(SchemaMismatch):
            client.call_tool("weather", {"give": BAD}, validate="strict")
        assert len(server.received("tools/list")) == 2
        with pytest.raises(ConfigError, match="validate takes"):
            client.call_tool("weather", validate="yes")


def test_warnings(server: Peer, caplog: pytest.LogCaptureFixture) -> None:
    with mcpsync.connect(server.command, validate="warn") as client, caplog.at_level(logging.WARNING, "mcpsync"):
        assert client.call_tool("weather", {"give": BAD}).structured == BAD
        assert server.received("tools/list") == []  # it never lists for this
        client.list_tools()
        assert client.call_tool("weather", {"give": BAD}).structured == BAD
        client.call_tool("fetching")
        client.call_tool("fetching")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "tool 'weather': structuredContent at /degrees: type: expected number" in said[0]
    assert "its output schema cannot be used: the $ref 'http://127.0.0.1:9/schema.json' leads out" in said[1]
    assert "hunter2" not in "".join(said)


def test_a_schema_that_cannot_be_used(server: Peer) -> None:
    reason = r"its output schema cannot be used: .* nothing is fetched"
    client = mcpsync.connect(server.command, validate="strict")
    with client, pytest.raises(SchemaMismatch, match=reason) as caught:
        client.call_tool("fetching")
    assert (caught.value.path, caught.value.keyword) == ("", "")


def test_arguments(server: Peer) -> None:
    with mcpsync.connect(server.command, validate=Validation(arguments=True)) as client:
        assert client.call_tool("weather", {"city": "Bonn", "give": BAD}).structured == BAD
        with pytest.raises(ArgumentsMismatch) as caught:
            client.call_tool("weather", {"city": "B"})
        with pytest.raises(ArgumentsMismatch):
            client.submit("weather", {"city": 5})
        assert len(server.received("tools/call")) == 1
    error = caught.value
    assert isinstance(error, ValueError)
    assert (error.path, error.keyword, error.tool) == ("/city", "minLength", "weather")
    assert "the arguments at /city: minLength: expected at least 2 characters" in str(error)
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_a_changed_list_is_listed_again(server: Peer) -> None:
    with mcpsync.connect(server.command, validate="strict") as client:
        assert client.call_tool("weather", {"give": GOOD}).structured == GOOD
        client.call_tool("change")
        assert client.call_tool("weather", {"give": {"degrees": "21"}}).structured == {"degrees": "21"}
        with pytest.raises(SchemaMismatch):
            client.call_tool("weather", {"give": GOOD})
        assert len(server.received("tools/list")) == 4


def test_a_new_session_lists_again(server: Peer) -> None:
    with mcpsync.connect(server.command, validate="strict") as client:
        client.call_tool("weather", {"give": GOOD})
        client.reconnect()
        client.call_tool("weather", {"give": GOOD})
        client.call_tool("weather", {"give": GOOD})
    assert len(server.received("tools/list")) == 4


def never(server: Any, request: Dict[str, Any], **params: Any) -> None:
    return None


def test_listing_is_a_part_of_the_calls_time(tmp_path: Path) -> None:
    server = peer(tmp_path, weather, handlers={"tools/list": never})
    client = mcpsync.connect(server.command, validate="strict", timeouts=Timeouts(call=0.2))
    with client, pytest.raises(RequestTimeout):
        client.call_tool("weather", {"give": GOOD})
    assert server.received("tools/call") == []


def test_a_host_hands_it_on(server: Peer) -> None:
    command, *arguments = server.command
    entry = {"command": command, "args": arguments, "trust_level": "trusted"}
    with Host.from_config({"mcpServers": {"sky": entry}}, validate="strict", approve=lambda request: True) as host:
        (name,) = [tool.name for tool in host.tools() if tool.tool == "weather"]
        assert host.call_tool(name, {"give": GOOD}).structured == GOOD
        with pytest.raises(SchemaMismatch):
            host.call_tool(name, {"give": BAD})
        assert host.call_tool(name, {"give": BAD}, validate="off").structured == BAD
        with pytest.raises(ArgumentsMismatch):
            host.call_tool(name, {"city": ""}, validate=Validation(arguments=True))


@pytest.mark.parametrize("validate", ["warn", "strict", Validation("strict"), Validation(arguments=True)])
def test_without_the_extra(validate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The finder of modules is asked for a package that is not there; everything else is as it is."""
    found = importlib.util.find_spec
    monkeypatch.setattr(
        "mcpsync.schema.dialects.find_spec", lambda name: found("no_such_package" if name.startswith("json") else name)
    )
    with pytest.raises(ConfigError, match=r"pip install 'mcpsync\[schema\]'"):
        mcpsync.Client(["server"], validate=validate)
    mcpsync.Client(["server"], validate="off").close()


@pytest.mark.parametrize("validate", ["yes", None, True, Validation("often"), Validation("off", arguments=1)])  # type: ignore[arg-type]
def test_what_is_no_choice(validate: Any) -> None:
    with pytest.raises(ConfigError, match=r"validate takes 'off', 'warn', 'strict' or a mcpsync\.Validation"):
        mcpsync.Client(["server"], validate=validate)
