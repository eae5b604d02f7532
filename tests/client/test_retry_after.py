"""``Retry-After``: waited for where a request can be made again, and nowhere else."""

from __future__ import annotations

import threading
from typing import Any, Callable, List

import pytest

import mcpsync
from mcpsync import ClientClosed, HttpError, Timeouts
from tests.faults.watch import took
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Modern

SERVERS = {"modern": Modern, "legacy": Legacy}
ASK: List[Callable[[mcpsync.Client], Any]] = [
    lambda client: client.list_tools(),
    lambda client: client.request("resources/read", {"uri": "x:y"}),
    lambda client: client.request("prompts/get", {"name": "x"}),
]


class Busy:
    """Puts the requests off that are no handshake.

    :param delays: what it says, one after the other; then it answers
    """

    def __init__(self, server: Any, delays: List[str], status: int = 429) -> None:
        self.server = server
        self.delays = list(delays)
        self.status = status
        self.asked: List[str] = []
        self.put_off = threading.Event()

    def __call__(self, exchange: Exchange) -> None:
        method = exchange.request.message.get("method") if exchange.request.method == "POST" else None
        if method is None or method in ("server/discover", "initialize") or method.startswith("notifications/"):
            self.server(exchange)
            return
        self.asked.append(method)
        if self.delays:
            error = {
                "jsonrpc": "2.0",
                "id": exchange.request.message["id"],
                "error": {"code": -32000, "message": "busy"},
            }
            exchange.respond(self.status, error, Retry_After=self.delays.pop(0))
            self.put_off.set()
        else:
            self.server(exchange)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("ask", ASK)
@pytest.mark.parametrize("era", SERVERS)
def test_what_changes_nothing_is_asked_again_when_the_server_says(era: str, ask: Any, status: int) -> None:
    busy = Busy(SERVERS[era](), ["1", "0"], status)
    with HttpPeer(busy) as peer, mcpsync.connect(peer.url) as client:
        with took() as measured:
            ask(client)
        assert 1 <= measured.seconds < 2
        assert len(busy.asked) == 3


@pytest.mark.parametrize("era", SERVERS)
def test_a_tool_call_is_never_made_again(era: str) -> None:
    busy = Busy(SERVERS[era](), ["0"])
    with HttpPeer(busy) as peer, mcpsync.connect(peer.url) as client:
        with pytest.raises(HttpError) as caught:
            client.call_tool("work")
        assert caught.value.status == 429 and caught.value.retry_after == 0
        assert busy.asked == ["tools/call"]
        assert client.call_tool("work").text == "done"


@pytest.mark.parametrize("timeout", [2, Timeouts(call=60, total=2), Timeouts(idle=2)], ids=["call", "total", "idle"])
def test_a_wait_that_is_longer_than_the_call_may_take_is_not_begun(timeout: Any) -> None:
    with HttpPeer(Busy(Modern(), ["3"])) as peer, mcpsync.connect(peer.url) as client:
        with took() as measured, pytest.raises(HttpError) as caught:
            client.list_tools(timeout=timeout)
        assert measured.seconds < 1 and caught.value.retry_after == 3


def test_a_server_that_always_puts_it_off_is_given_up() -> None:
    busy = Busy(Modern(), ["0"] * 100)
    with HttpPeer(busy) as peer, mcpsync.connect(peer.url) as client:
        with pytest.raises(HttpError):
            client.list_tools(timeout=None)
        assert len(busy.asked) == 6


def test_without_the_header_the_answer_counts() -> None:
    def refuse(exchange: Exchange, message: Any) -> None:
        exchange.respond(503, "later", "text/plain")

    with HttpPeer(Modern(tools__list=refuse)) as peer, mcpsync.connect(peer.url) as client:
        before = len(peer.requests)
        with pytest.raises(HttpError) as caught:
            client.list_tools()
        assert caught.value.status == 503 and len(peer.requests) == before + 1


def test_close_ends_the_wait() -> None:
    busy = Busy(Modern(), ["30"])
    with HttpPeer(busy) as peer, mcpsync.connect(peer.url) as client:
        closing = threading.Thread(target=lambda: busy.put_off.wait(10) and client.close())
        closing.start()
        with took() as measured, pytest.raises(ClientClosed):
            client.list_tools()
        closing.join()
        assert measured.seconds < 5
