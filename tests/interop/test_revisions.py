"""Each revision is negotiated with real servers, and what the client sends in it is held to its schema.

The recorder in ``tests/conftest.py`` does that for every test; here every kind of message goes out in every revision.
"""

from __future__ import annotations

from typing import List

import pytest

from mcpsync.core.era import LEGACY, REVISIONS
from mcpsync.types import PromptReference
from tests.interop.side import ROOT, Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

MODERN = "2026-07-28"


@pytest.mark.parametrize("revision", LEGACY)
def test_everything_in_each_legacy_revision(revision: str, everything_command: List[str]) -> None:
    side, uri = Side(), "demo://resource/dynamic/text/1"
    with side.connect(everything_command, protocol=revision, log_level="info") as client:
        assert client.protocol_version == revision
        side.next("log", lambda log: "Roots updated" in log.data)
        assert client.call_tool("get-sum", {"a": 1, "b": 2}).text == "The sum of 1 and 2 is 3."
        assert client.call_tool("trigger-sampling-request", {"prompt": "ping"}).text
        assert ROOT in client.call_tool("get-roots-list").text
        names = {tool.name for tool in client.list_tools()}
        elicitation = REVISIONS[revision].elicitation
        assert ("trigger-elicitation-request" in names) is (elicitation != "none")
        assert ("trigger-url-elicitation" in names) is ("url" in elicitation)
        if elicitation != "none":
            # its form is one of 2025-11-25 in every revision: in an earlier one it has fields that cannot be answered
            side.answer, says = ({"name": "Ada"}, "provided") if "url" in elicitation else (False, "declined")
            assert "User %s" % says in client.call_tool("trigger-elicitation-request").text
        client.subscribe_resource(uri, side.tell("updated"))
        client.call_tool("toggle-subscriber-updates")
        assert side.next("updated") == uri
        client.unsubscribe_resource(uri)
        assert client.read_resource(uri).text and client.list_resources() and client.list_resource_templates()
        assert client.list_prompts() and client.get_prompt("args-prompt", {"city": "Turin"}).messages
        context = {"department": "Sales"} if revision >= "2025-06-18" else None  # where the context came in
        team = PromptReference(name="completable-prompt")
        assert client.complete(team, "department", "S", context).values == ["Sales", "Support"]
        client.set_logging_level("warning")
        client.roots_changed()
        client.ping()
        arguments = {"duration": 30, "steps": 300}
        long = client.submit("trigger-long-running-operation", arguments, on_progress=side.tell("step"))
        side.next("step")
        assert long.cancel()
        assert client.call_tool("echo", {"message": "hi"}, meta={"com.example/trace": "t"}).text == "Echo: hi"


@pytest.mark.parametrize("peer", ["mcp2", "fastmcp4"])
def test_the_modern_revision(peer: str, request: pytest.FixtureRequest) -> None:
    side = Side()
    command = request.getfixturevalue("%s_command" % peer)
    with side.connect(command, protocol=MODERN, log_level="info") as client:
        assert client.protocol_version == MODERN
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
        assert client.call_tool("ask").text == "accept Ada False"
        assert client.call_tool("sample", {"prompt": "ping"}).text == "m1: pong"
        assert ROOT in client.call_tool("roots").text
        client.call_tool("log", {"level": "error", "text": "oh"})
        assert side.next("log").level == "error"
        slow = client.submit("slow", {"mark": "m", "seconds": 30}, on_progress=side.tell("started"))
        side.next("started")
        assert slow.cancel()
        assert client.read_resource("note://greeting", meta={"com.example/trace": "t"}).text == "hello"
        assert client.list_tools() and client.list_prompts() and client.get_prompt("greet", {"name": "Ada"}).messages
        assert client.complete(PromptReference(name="greet"), "name", "A", {"other": "x"}).values
        client.ping()


@pytest.mark.parametrize("revision", LEGACY)
@pytest.mark.parametrize("peer", ["mcp2", "mcp1", "fastmcp4"])
def test_legacy_revisions_with_the_python_servers(peer: str, revision: str, request: pytest.FixtureRequest) -> None:
    side = Side()
    with side.connect(request.getfixturevalue("%s_command" % peer), protocol=revision) as client:
        assert client.protocol_version == revision
        assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
        assert client.call_tool("sample", {"prompt": "ping"}).text == "m1: pong"
        if REVISIONS[revision].elicitation != "none":
            assert client.call_tool("ask").text == "accept Ada False"
