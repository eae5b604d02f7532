"""``@modelcontextprotocol/server-everything`` in its ``streamableHttp`` mode: the SDK 1.x for TypeScript."""

from __future__ import annotations

from typing import Iterator, List

import pytest

import mcpsync
from tests.interop.http_peers import HttpPeer, by_many_threads, everything_peer
from tests.interop.side import ROOT, Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]


def start(command: List[str]) -> HttpPeer:
    return everything_peer(command, "streamableHttp", "/mcp")


@pytest.fixture(scope="module")
def peer(everything_command: List[str]) -> Iterator[HttpPeer]:
    with start(everything_command) as peer:
        yield peer


@pytest.fixture
def side() -> Side:
    return Side()


@pytest.fixture
def client(peer: HttpPeer, side: Side) -> Iterator[mcpsync.Client]:
    with side.connect(peer.url, name="everything") as client:
        yield client


def test_what_it_is(client: mcpsync.Client) -> None:
    assert client.protocol_version == "2025-11-25"
    assert client.server_info is not None and client.server_info.name == "mcp-servers/everything"
    assert len(client.list_tools()) == 17
    assert client.call_tool("get-sum", {"a": 1.5, "b": 2}).text == "The sum of 1.5 and 2 is 3.5."
    with pytest.raises(mcpsync.ToolError, match="message"):
        client.call_tool("echo", {})
    client.ping()


def test_progress(client: mcpsync.Client, side: Side) -> None:
    arguments = {"duration": 0.4, "steps": 4}
    result = client.call_tool("trigger-long-running-operation", arguments, on_progress=side.tell("step"))
    assert "Steps: 4" in result.text
    assert [side.next("step").progress for _ in range(4)] == [1, 2, 3, 4]


def test_questions(client: mcpsync.Client, side: Side) -> None:
    side.answer = {"name": "Ada", "check": True}
    assert "- Name: Ada" in client.call_tool("trigger-elicitation-request").text
    assert [question.mode for question in side.questions] == ["form"]
    assert '"pong"' in client.call_tool("trigger-sampling-request", {"prompt": "ping"}).text
    assert ROOT in client.call_tool("get-roots-list").text


def test_what_it_tells_unasked(client: mcpsync.Client, side: Side) -> None:
    """On the long stream, which belongs to no call."""
    uri = "demo://resource/dynamic/text/1"
    client.subscribe_resource(uri, side.tell("updated"))
    client.call_tool("toggle-subscriber-updates")
    assert side.next("updated") == uri
    client.call_tool("toggle-subscriber-updates")
    client.set_logging_level("debug")
    client.call_tool("toggle-simulated-logging")
    assert side.next("log").level in {"debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"}


def test_a_call_that_is_given_up_leaves_the_others_alone(client: mcpsync.Client, side: Side) -> None:
    arguments = {"duration": 20, "steps": 100}
    long = client.submit("trigger-long-running-operation", arguments, on_progress=side.tell("step"))
    side.next("step")
    assert long.cancel()
    with pytest.raises(mcpsync.RequestTimeout):
        client.call_tool("trigger-long-running-operation", arguments, timeout=0.3)
    assert client.call_tool("echo", {"message": "x"}).text == "Echo: x"


def test_many_threads(client: mcpsync.Client) -> None:
    def echo(mark: str) -> None:
        assert client.call_tool("echo", {"message": mark}).text == "Echo: " + mark

    by_many_threads(client, echo, "many")


def test_a_lost_session_is_made_again_once(everything_command: List[str], side: Side) -> None:
    """It says 400 where the specification has 404."""
    with start(everything_command) as peer, side.connect(peer.url) as client:
        peer.restart()

        def echo(mark: str) -> None:
            assert client.call_tool("echo", {"message": mark}).text == "Echo: " + mark

        by_many_threads(client, echo, "after")
        assert peer.printed().count("Session initialized") == 1
        side.answer = {"name": "Ada", "check": True}
        assert "- Name: Ada" in client.call_tool("trigger-elicitation-request").text


def test_the_session_is_ended_there(everything_command: List[str]) -> None:
    with start(everything_command) as peer:
        mcpsync.connect(peer.url).close()
        assert peer.printed().count("Received session termination request") == 1
