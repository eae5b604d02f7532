"""Calls that take a second request because the first was not executed: waited for, and submitted."""

from __future__ import annotations

import threading
from concurrent.futures import wait
from typing import Any, Callable, Dict, List

import pytest

import mcpsync
from mcpsync import ClientClosed, RequestCancelled, RequestTimeout, RpcError, Timeouts
from mcpsync.errors import SessionLost
from tests.faults.watch import took
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Modern, refuse

Ask = Callable[[mcpsync.Client], str]
WAYS: Dict[str, Ask] = {
    "waited for": lambda client: client.call_tool("work", {"region": "eu"}).text,
    "submitted": lambda client: client.submit("work", {"region": "eu"}).result(10).text,
}


@pytest.fixture(params=sorted(WAYS))
def ask(request: pytest.FixtureRequest) -> Ask:
    return WAYS[request.param]


class Mirroring(Modern):
    """Its tool wants a parameter in a header since it was listed last; refuses calls without.

    :ivar listed: how often it was listed
    :ivar called: the headers of each call
    """

    def __init__(self, stubborn: bool = False) -> None:
        super().__init__(self.check)
        self.stubborn = stubborn
        self.listed = 0
        self.called: List[Any] = []

    def check(self, exchange: Exchange, message: Dict[str, Any]) -> None:
        self.called.append(exchange.request.headers.get("mcp-param-region"))
        if self.stubborn or self.called[-1] is None:
            error = {"code": -32020, "message": "Mcp-Param-Region is missing"}
            exchange.respond(400, {"jsonrpc": "2.0", "id": message["id"], "error": error})
        else:
            exchange.result({"resultType": "complete", **self.result(message)})

    def result(self, message: Dict[str, Any]) -> Dict[str, Any]:
        result = super().result(message)
        if message["method"] == "tools/list":
            self.listed += 1
            region = {"type": "string", "x-mcp-header": "Region"}
            return {"tools": [{"name": "work", "inputSchema": {"type": "object", "properties": {"region": region}}}]}
        return result


def test_a_tool_that_wants_other_headers_is_listed_anew(ask: Ask) -> None:
    server = Mirroring()
    with HttpPeer(server) as peer, mcpsync.connect(peer.url) as client:
        assert ask(client) == "done"
        assert server.called == [None, "eu"] and server.listed == 1
        assert ask(client) == "done"
        assert server.listed == 1


def test_a_tool_that_never_has_enough_headers_is_an_error(ask: Ask) -> None:
    server = Mirroring(stubborn=True)
    with HttpPeer(server) as peer, mcpsync.connect(peer.url) as client:
        with pytest.raises(RpcError, match="Region is missing"):
            ask(client)
        assert len(server.called) == 2 and server.listed == 1


def test_a_session_that_was_forgotten(ask: Ask) -> None:
    server = Legacy()
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, protocol="legacy") as client:
        for round in range(1, 4):
            server.forget_sessions()
            assert ask(client) == "done"
            assert server.initialized == 1 + round


def test_a_session_that_is_forgotten_each_time(ask: Ask) -> None:
    server = Legacy(lambda exchange, message: exchange.respond(404, "no such session", "text/plain"))
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, protocol="legacy") as client:
        with took() as measured, pytest.raises(SessionLost):
            ask(client)
        assert measured.seconds < 5 and server.initialized <= 3


def test_many_submitted_calls_share_the_new_session() -> None:
    server = Legacy()
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, protocol="legacy") as client:
        server.forget_sessions()
        calls = [client.submit("work") for _ in range(40)]
        assert wait(calls, 20).not_done == set()
        assert [call.result(0).text for call in calls] == ["done"] * 40
        assert server.initialized == 2


class Slow(Legacy):
    """Takes its time with every session but the first."""

    def __init__(self) -> None:
        super().__init__(initialize=self.wait)
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def wait(self, exchange: Exchange, message: Dict[str, Any]) -> None:
        if self.initialized:
            self.asked.set()
            self.go_on.wait(10)
        initialize = self.special.pop("initialize")
        try:
            self._initialize(exchange, message)
        finally:
            self.special["initialize"] = initialize


def test_a_new_session_is_waited_for_within_the_calls_time(ask: Ask) -> None:
    server = Slow()
    timeouts = Timeouts(call=0.4)
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, protocol="legacy", timeouts=timeouts) as client:
        server.forget_sessions()
        with took() as measured, pytest.raises((RequestTimeout, mcpsync.ConnectFailed)):
            ask(client)
        assert 0.3 < measured.seconds < 1
        server.go_on.set()


def test_a_submitted_call_can_be_cancelled_while_a_session_is_made() -> None:
    server = Slow()
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, protocol="legacy") as client:
        server.forget_sessions()
        call = client.submit("work")
        assert server.asked.wait(5)
        assert call.cancel()
        with pytest.raises(RequestCancelled):
            call.result(5)
        server.go_on.set()
        assert client.call_tool("work").text == "done"


def test_closing_ends_a_call_that_waits_for_a_session() -> None:
    server = Slow()
    with HttpPeer(server) as peer:
        client = mcpsync.connect(peer.url, protocol="legacy")
        server.forget_sessions()
        call = client.submit("work")
        assert server.asked.wait(5)
        with took() as measured:
            client.close()
            with pytest.raises(ClientClosed):
                call.result(5)
        assert measured.seconds < 3
        server.go_on.set()


def test_an_exchange_that_fails_is_not_made_again(ask: Ask) -> None:
    called: List[int] = []

    def work(exchange: Exchange, message: Dict[str, Any]) -> None:
        called.append(1)
        refuse(503, "busy")(exchange)

    with HttpPeer(Modern(work)) as peer, mcpsync.connect(peer.url) as client:
        with pytest.raises(mcpsync.HttpError) as caught:
            ask(client)
        assert caught.value.status == 503 and caught.value.method == "tools/call"
        assert called == [1]
