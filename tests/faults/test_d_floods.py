"""D25: floods of events. D5 and D20 through the client: what is no answer, and servers that answer nothing more."""

from __future__ import annotations

import json
import resource
import ssl
import sys
import threading
from typing import Any, Callable, Dict, Iterator, Optional

import pytest

import mcpsync
from mcpsync import HttpError, MessageTooLarge, RequestTimeout, RpcError, TransportError
from tests.faults.watch import Seen, took
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Older
from tests.peers.http_tools import ERAS, Tools, serving

WAYS = ["plain", "tls"]


def context(way: str, authority: Authority) -> Optional[ssl.SSLContext]:
    return authority.server() if way == "tls" else None


def log(number: int) -> Dict[str, Any]:
    params = {"level": "info", "data": "line %d" % number}
    return {"jsonrpc": "2.0", "method": "notifications/message", "params": params}


class Flooding(Tools):
    """Tools that say more than anybody wants."""

    def flood(self, exchange: Exchange, message: Any, count: int) -> None:
        exchange.start()
        for start in range(0, count, 500):
            lines = ["data: %s\n\n" % json.dumps(log(number)) for number in range(start, start + 500)]
            exchange.write("".join(lines).encode())
        exchange.event_result(self.result("after all"))
        exchange.end()

    def endless(self, exchange: Exchange, message: Any, comments: bool = False) -> None:
        exchange.start()
        piece = b": nothing\n\n" * 500 if comments else b"data: %s\n\n" % json.dumps(log(1)).encode() * 500
        while not exchange.wait_closed(0):
            exchange.write(piece)

    def one_endless_event(self, exchange: Exchange, message: Any) -> None:
        exchange.start()
        exchange.write(b"data: ")
        while not exchange.wait_closed(0):
            exchange.write(b"x" * 65536)


@pytest.fixture(params=[(era, way) for era in ERAS for way in WAYS], ids="-".join)
def served(request: pytest.FixtureRequest, authority: Authority) -> Iterator[Any]:
    """Such tools on a server of each era, plain and over TLS, and the options to connect to it."""
    era, way = request.param
    tools = Flooding(ERAS[era]())
    with HttpPeer(tools.server, context(way, authority)) as peer:
        yield tools, peer, {"protocol": era, "verify": authority.ca, "name": "peer"}


@pytest.mark.parametrize("handler", ["none", "slow"])
def test_d25_an_answer_behind_ten_thousand_notifications_is_not_held_up(served: Any, handler: str) -> None:
    _, peer, options = served
    hold = threading.Event()
    if handler == "slow":
        options["on_log"] = lambda message: hold.wait(20)
    with mcpsync.connect(peer.url, **options) as client:
        with took() as measured:
            assert client.call_tool("flood", {"count": 10_000}, timeout=20).text == "after all"
        hold.set()
        assert measured.seconds < 6


@pytest.mark.parametrize("comments", [False, True])
def test_d25_a_flood_without_end_ends_with_the_call_and_takes_no_memory(served: Any, comments: bool) -> None:
    _, peer, options = served
    with mcpsync.connect(peer.url, **options) as client:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        flooded = client.submit("endless", {"comments": comments}, timeout=1.0)
        assert client.call_tool("echo", {"text": "meanwhile"}, timeout=5).text == "meanwhile"
        with took() as measured:
            assert isinstance(flooded.exception(10), RequestTimeout)
        assert measured.seconds < 2
        assert client.call_tool("echo", {"text": "on"}).text == "on"
        unit = 1 if sys.platform == "darwin" else 1024
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * unit < 64 << 20


def test_d25_an_event_without_end_is_cut_at_the_limit(served: Any) -> None:
    _, peer, options = served
    with mcpsync.connect(peer.url, max_message=1 << 20, **options) as client:
        with took() as measured, pytest.raises(MessageTooLarge, match="limit of 1048576 bytes"):
            client.call_tool("one_endless_event", timeout=10)
        assert measured.seconds < 3
        assert client.call_tool("echo", {"text": "on"}).text == "on"


# -- D5 --------------------------------------------------------------------------------------------------------

RPC = {"jsonrpc": "2.0", "id": None, "error": {"code": -32050, "message": "out of order"}}
ANSWERS: Dict[str, Any] = {
    "500 and JSON-RPC": (500, RPC, "application/json", RpcError),
    "400 and JSON-RPC": (400, RPC, "application/json", RpcError),
    "502 HTML": (502, "<html>Bad Gateway</html>", "text/html", HttpError),
    "503": (503, "", None, HttpError),
    "429": (429, "slow down", "text/plain", HttpError),
    "200 and nothing": (200, "", "application/json", HttpError),
    "200 and HTML": (200, "<html>login</html>", "text/html", HttpError),
    "200 and broken JSON": (200, '{"jsonrpc": "2.0", ', "application/json", HttpError),
    "200 and another id": (200, {"jsonrpc": "2.0", "id": 987654, "result": {}}, "application/json", HttpError),
}


@pytest.mark.parametrize("name", ANSWERS)
@pytest.mark.parametrize("era", ERAS)
def test_d5_what_is_no_answer_costs_its_call_and_no_other(era: str, name: str) -> None:
    status, body, content_type, kind = ANSWERS[name]
    tools = serving(era)
    tools.silent = lambda exchange, message: exchange.respond(status, body, content_type)  # type: ignore[assignment]
    with HttpPeer(tools.server) as peer, mcpsync.connect(peer.url, protocol=era) as client:
        other = client.submit("late", {"seconds": 0.2})
        with pytest.raises(kind) as caught:
            client.call_tool("silent")
        assert "\n" not in str(caught.value) and len(str(caught.value)) < 500
        if kind is HttpError:
            assert caught.value.status == status
        assert other.result(5).text == "late"
        assert client.call_tool("echo", {"text": "on"}).text == "on"


@pytest.mark.parametrize("status", [400, 404, 500])
def test_d5_the_older_transport_refuses_a_message(status: int) -> None:
    older = Older()

    def serve(exchange: Exchange) -> None:
        if "/messages/" in exchange.request.path and exchange.request.message.get("method") == "tools/call":
            exchange.respond(status, "no", "text/plain")
        else:
            older(exchange)

    with HttpPeer(serve) as peer, mcpsync.connect(peer.url, transport="sse") as client:
        with pytest.raises(HttpError) as caught:
            client.call_tool("work")
        assert caught.value.status == status
        assert client.list_tools()


# -- D20 -------------------------------------------------------------------------------------------------------


@pytest.mark.timed
@pytest.mark.parametrize("era", ERAS)
def test_d20_a_server_that_answers_nothing_more(era: str) -> None:
    tools = serving(era)
    dead: list[bool] = []

    def serve(exchange: Exchange) -> None:
        if dead:
            exchange.wait_closed()
        else:
            tools.server(exchange)

    late = Seen()
    with HttpPeer(serve) as peer:
        timeouts = mcpsync.Timeouts(keepalive=0.2, close=1)
        with mcpsync.connect(peer.url, protocol=era, timeouts=timeouts) as client:
            dead.append(True)

            def call(ask: Callable[..., Any]) -> None:
                with took() as measured, pytest.raises((RequestTimeout, TransportError)):
                    ask()
                late(measured.seconds - 0.5)

            asks = [lambda: client.call_tool("echo", timeout=0.5), lambda: client.submit("echo", timeout=0.5).result()]
            threads = [threading.Thread(target=call, args=(ask,)) for ask in asks * 4]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert max(late.items) < 0.25
            with took() as measured:
                client.close()
            assert measured.seconds < 2
