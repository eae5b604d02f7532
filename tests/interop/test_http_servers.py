"""Servers on the official SDKs (Python 2.x and 1.x, TypeScript 2.x) and on FastMCP 4 over Streamable HTTP.

Each with and without sessions, with SSE and with JSON answers, in each era that it has. What a mode cannot carry (a
question of the server's own wants a session and an SSE answer) fails clearly and leaves the connection as it was.
"""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any, Dict, Iterator, List, NamedTuple, Tuple

import pytest

import mcpsync
from mcpsync.types import Progress
from tests.interop.http_peers import (
    HttpPeer,
    by_many_threads,
    cancelled_there,
    each_once,
    node_peer,
    python_peer,
)
from tests.interop.side import Side

pytestmark = [pytest.mark.interop, pytest.mark.timeout(180)]

LEGACY, MODERN = "2025-11-25", "2026-07-28"
MODES = {"": [], "stateless": ["--stateless"], "json": ["--json"], "stateless-json": ["--stateless", "--json"]}
SERVERS = [
    *(("mcp2", mode) for mode in MODES),
    *(("mcp1", mode) for mode in ("", "stateless-json")),
    ("fastmcp4", ""),
    *(("node2", mode) for mode in ("", "stateless-json")),
]


def named(pair: Any) -> str:
    return "-".join(part for part in pair if part)


each_server = pytest.mark.parametrize("served", SERVERS, ids=named, indirect=True)
in_each_era = pytest.mark.parametrize(
    ("served", "protocol"),
    [
        pytest.param(server, era, id="%s-%s" % ("-".join(filter(None, server)), era))
        for server in SERVERS
        for era in ("legacy", MODERN)
        if (server[0], era) != ("mcp1", MODERN)
    ],
    indirect=["served"],
)
NOTHING = SimpleNamespace(params={})
unique = itertools.count()


class Served(NamedTuple):
    """A server that runs.

    :ivar kind: of it
    :ivar json: it answers with JSON
    """

    kind: str
    stateless: bool
    json: bool
    peer: HttpPeer

    def carries_progress(self, protocol: str) -> bool:
        # the legacy transport of the TypeScript SDK's stateless serving takes no wish for JSON
        return not self.json or (self.kind == "node2" and self.stateless and protocol == "legacy")

    def asks(self, protocol: str) -> bool:
        return protocol != "legacy" or not (self.stateless or self.json)

    def hears_cancels(self, protocol: str) -> bool:
        """The Python SDK 2.x does not look at the connection while it makes a JSON answer; 1.x never does."""
        if self.kind == "node2" or not self.json:
            return True
        return protocol == "legacy" and not self.stateless


def command_of(kind: str, request: pytest.FixtureRequest) -> List[str]:
    return list(request.getfixturevalue("everything_command" if kind == "node2" else "%s_command" % kind))


def start(kind: str, mode: str, command: List[str]) -> HttpPeer:
    return (node_peer if kind == "node2" else python_peer)(command, *MODES[mode])


@pytest.fixture(scope="module")
def farm(request: pytest.FixtureRequest) -> Iterator[Dict[Tuple[str, str], Served]]:
    """Those servers that the chosen tests want, all at once: they are slow to start."""
    wanted = {
        item.callspec.params["served"]
        for item in request.session.items
        if item.path == request.path and "served" in getattr(item, "callspec", NOTHING).params
    }
    commands = {kind: command_of(kind, request) for kind, _ in wanted}
    with ExitStack() as running:

        def started(server: Tuple[str, str]) -> Tuple[Tuple[str, str], Served]:
            kind, mode = server
            peer = running.enter_context(start(kind, mode, commands[kind]))
            return server, Served(kind, "stateless" in mode, "json" in mode, peer)

        with ThreadPoolExecutor(len(wanted)) as starters:
            servers = dict(starters.map(started, sorted(wanted)))
        yield servers


@pytest.fixture
def served(farm: Dict[Tuple[str, str], Served], request: pytest.FixtureRequest) -> Served:
    return farm[request.param]


@pytest.fixture
def side() -> Side:
    return Side()


@pytest.fixture
def client(served: Served, protocol: str, side: Side) -> Iterator[mcpsync.Client]:
    with side.connect(served.peer.url, name=served.kind, protocol=protocol) as client:
        yield client


@each_server
def test_the_era_is_found(served: Served, side: Side) -> None:
    before = served.peer.counts("requests").get("initialize", 0)
    with side.connect(served.peer.url) as client:
        assert client.protocol_version == (LEGACY if served.kind == "mcp1" else MODERN)
        assert client.server_info is not None and client.server_info.name == "%s-peer" % served.kind
        assert client.instructions == "A peer of the interop tests."
        client.ping()
    assert served.peer.counts("requests").get("initialize", 0) - before == (served.kind == "mcp1")


@each_server
def test_an_era_that_it_does_not_have(served: Served) -> None:
    if served.kind == "mcp1":
        with pytest.raises(mcpsync.VersionMismatch, match="2026-07-28"):
            mcpsync.connect(served.peer.url, protocol="modern")
    else:
        with mcpsync.connect(served.peer.url, protocol="2025-06-18") as client:
            assert client.protocol_version == "2025-06-18"
            assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"
        with mcpsync.connect(served.peer.url) as client:
            assert client.protocol_version == MODERN, "what was forced once is not remembered"


@in_each_era
def test_tools_and_progress(served: Served, protocol: str, client: mcpsync.Client, side: Side) -> None:
    assert client.protocol_version == (LEGACY if protocol == "legacy" else MODERN)
    tools = {tool.name: tool for tool in client.list_tools()}
    assert {"add", "echo", "count", "slow", "ask", "sample", "fail", "tally"} <= tools.keys()
    assert tools["add"].output_schema is not None
    result = client.call_tool("add", {"a": 19, "b": 23})
    assert (result.text, result.structured) == ("42", {"result": 42})
    assert client.call_tool("echo", {"text": "hé\u2028\U0001f40d"}).text == "hé\u2028\U0001f40d"
    with pytest.raises(mcpsync.ToolError, match="boom"):
        client.call_tool("fail", {"text": "boom"})
    with pytest.raises((mcpsync.ToolError, mcpsync.RpcError), match="nothing"):
        client.call_tool("nothing")

    counted = client.submit("count", {"steps": 4}, on_progress=side.tell("step"))
    assert counted.result(timeout=30).text == "counted to 4"
    if served.carries_progress(protocol):
        steps: List[Progress] = [side.next("step") for _ in range(4)]
        assert [(step.progress, step.total) for step in steps] == [(1, 4), (2, 4), (3, 4), (4, 4)]
        assert [step.message for step in steps] == ["step 1", "step 2", "step 3", "step 4"]


@in_each_era
def test_questions(served: Served, protocol: str, client: mcpsync.Client, side: Side) -> None:
    if served.asks(protocol):
        assert client.call_tool("ask").text == "accept Ada False"  # the form's default is filled in
        side.answer = {"name": "Grace", "newsletter": True}
        assert client.submit("ask").result(timeout=30).text == "accept Grace True"
        side.answer = "decline"
        assert client.call_tool("ask").text == "decline"
        assert client.call_tool("sample", {"prompt": "ping"}).text == "m1: pong"
        (asked,) = side.sampled
        assert (asked.messages[0].text, asked.max_tokens, asked.system_prompt) == ("ping", 50, "Be brief.")
    elif served.kind == "mcp1":  # it waits for an answer to what it never sent
        with pytest.raises(mcpsync.RequestTimeout):
            client.call_tool("ask", timeout=0.5)
    else:
        with pytest.raises((mcpsync.ToolError, mcpsync.RpcError)):
            client.call_tool("ask", timeout=30)
    assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"


@in_each_era
def test_cancel(served: Served, protocol: str, client: mcpsync.Client, side: Side) -> None:
    """By hand and by time; the server writes both down, where it can."""
    number = next(unique)
    by_hand, too_late = "by hand %d" % number, "too late %d" % number
    slow = client.submit("slow", {"mark": by_hand, "seconds": 20}, on_progress=side.tell("started"))
    if served.carries_progress(protocol):
        side.next("started")
        assert slow.cancel()
    else:  # nothing tells that it began
        with pytest.raises(mcpsync.RequestTimeout):
            client.call_tool("slow", {"mark": "meanwhile", "seconds": 20}, timeout=0.3)
        assert slow.cancel()
    with pytest.raises(mcpsync.RequestTimeout):
        client.call_tool("slow", {"mark": too_late, "seconds": 20}, timeout=0.3)
    if served.hears_cancels(protocol):
        assert cancelled_there(client, [by_hand, too_late])
    assert client.call_tool("add", {"a": 1, "b": 2}).text == "3"


@in_each_era
def test_many_threads(served: Served, protocol: str, client: mcpsync.Client) -> None:
    def tally(mark: str) -> None:
        assert client.call_tool("tally", {"mark": mark}).text == "1"

    each_once(served.peer, by_many_threads(client, tally, "many %d" % next(unique)))


# -- a server that forgets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["mcp2", "mcp1", "node2"])
def test_a_lost_session_is_made_again_once(kind: str, request: pytest.FixtureRequest, side: Side) -> None:
    """A restarted server knows no session: 404, whoever calls; one new ``initialize`` serves all of them."""
    with start(kind, "", command_of(kind, request)) as peer, side.connect(peer.url, protocol="legacy") as client:
        assert client.call_tool("tally", {"mark": "before"}).text == "1"
        peer.restart()

        def tally(mark: str) -> None:
            assert client.call_tool("tally", {"mark": mark}).text == "1"

        each_once(peer, by_many_threads(client, tally, "after"))
        requests: Dict[str, int] = peer.counts("requests")
        assert (requests["initialize"], requests["notifications/initialized"]) == (1, 1)
        assert client.call_tool("ask").text == "accept Ada False"


def test_where_there_is_no_session_none_is_lost(everything_command: List[str], side: Side) -> None:
    with node_peer(everything_command) as peer, side.connect(peer.url, protocol=MODERN) as client:
        assert client.call_tool("tally", {"mark": "before"}).text == "1"
        peer.restart()

        def tally(mark: str) -> None:
            assert client.call_tool("tally", {"mark": mark}).text == "1"

        each_once(peer, by_many_threads(client, tally, "after"))
        assert "initialize" not in peer.counts("requests")
