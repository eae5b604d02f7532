"""``@modelcontextprotocol/server-everything`` in its ``sse`` mode, the transport before Streamable HTTP."""

from __future__ import annotations

from typing import Iterator, List

import pytest

import mcpsync
from tests.interop.http_peers import HttpPeer, by_many_threads, everything_peer
from tests.interop.side import ROOT, Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def peer(everything_command: List[str]) -> Iterator[HttpPeer]:
    with everything_peer(everything_command, "sse", "/sse") as peer:
        yield peer


@pytest.fixture
def side() -> Side:
    return Side()


@pytest.fixture(params=["auto", "sse"])
def client(peer: HttpPeer, side: Side, request: pytest.FixtureRequest) -> Iterator[mcpsync.Client]:
    """Found out, and by name."""
    with mcpsync.connect(peer.url, **side.options(name="everything", transport=request.param)) as client:
        yield client


def test_tools_progress_and_questions(client: mcpsync.Client, side: Side) -> None:
    assert client.server_info is not None and client.server_info.name == "mcp-servers/everything"
    assert len(client.list_tools()) == 17
    arguments = {"duration": 0.4, "steps": 4}
    result = client.call_tool("trigger-long-running-operation", arguments, on_progress=side.tell("step"))
    assert "Steps: 4" in result.text
    assert [side.next("step").progress for _ in range(4)] == [1, 2, 3, 4]
    side.answer = {"name": "Ada", "check": True}
    assert "- Name: Ada" in client.call_tool("trigger-elicitation-request").text
    assert '"pong"' in client.call_tool("trigger-sampling-request", {"prompt": "ping"}).text
    assert ROOT in client.call_tool("get-roots-list").text


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
