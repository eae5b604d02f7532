"""D17: whatever a server makes of the probe, a working connection comes of it, and soon."""

from __future__ import annotations

import ssl
from typing import Any, Callable, Dict, Iterator, Optional

import pytest

import mcpsync
from mcpsync import Timeouts
from mcpsync.connection import opening
from tests.faults.watch import took
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Older

WAYS = ["plain", "tls"]
SILENCE = 2.0


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    yield
    opening._verdicts.clear()


def context(way: str, authority: Authority) -> Optional[ssl.SSLContext]:
    return authority.server() if way == "tls" else None


def silent(exchange: Exchange) -> None:
    exchange.wait_closed()


def dies(exchange: Exchange) -> None:
    exchange.reset()


def hangs_up(exchange: Exchange) -> None:
    """Returns without an answer."""


def hangs_up_in_the_middle(exchange: Exchange) -> None:
    exchange.start(framing="1000", content_type="application/json")
    exchange.write(b'{"jsonrpc":')
    exchange.close()


def not_found(exchange: Exchange) -> None:
    error = {"code": -32601, "message": "Method not found"}
    exchange.respond(200, {"jsonrpc": "2.0", "id": exchange.request.message["id"], "error": error})


def invalid_by_event(exchange: Exchange) -> None:
    exchange.start()
    error = {"code": -32600, "message": "Server not initialized"}
    exchange.event({"jsonrpc": "2.0", "id": exchange.request.message["id"], "error": error})
    exchange.end()


def without_session(exchange: Exchange) -> None:
    error = {"code": -32000, "message": "Bad Request: Mcp-Session-Id header is required"}
    exchange.respond(400, {"jsonrpc": "2.0", "id": None, "error": error})


def stream_without_end(exchange: Exchange) -> None:
    exchange.start()
    exchange.write(b": keep alive\n\n")
    exchange.wait_closed()


PROBED: Dict[str, Callable[[Exchange], None]] = {
    "silent": silent,
    "dies": dies,
    "hangs up": hangs_up,
    "hangs up in the middle": hangs_up_in_the_middle,
    "-32601": not_found,
    "-32600 by event": invalid_by_event,
    "400 without body": lambda exchange: exchange.respond(400, b"", None),
    "400 without session": without_session,
    "404 HTML": lambda exchange: exchange.respond(404, "<html>404</html>", "text/html"),
    "405": lambda exchange: exchange.respond(405, b"", None),
    "500": lambda exchange: exchange.respond(500, "Internal Server Error", "text/plain"),
    "202 and nothing": lambda exchange: exchange.respond(202, b"", None),
    "200 and HTML": lambda exchange: exchange.respond(200, "<html>hello</html>", "text/html"),
    "200 and another thing": lambda exchange: exchange.result({"hello": "world"}),
    "stream without end": stream_without_end,
}


SAME_OVER_TLS = ("202 and nothing", "405", "-32600 by event")


@pytest.mark.parametrize(
    ("way", "how"), [(way, how) for way in WAYS for how in PROBED if way == "plain" or how not in SAME_OVER_TLS]
)
def test_d17_a_legacy_server(way: str, how: str, authority: Authority) -> None:
    with HttpPeer(Legacy(probed=PROBED[how]), context(way, authority)) as peer:
        with took() as measured, mcpsync.connect(peer.url, verify=authority.ca) as client:
            assert client.protocol_version == "2025-11-25"
            assert client.call_tool("work").text == "done"
        assert measured.seconds < SILENCE + 1.5


@pytest.mark.parametrize("how", PROBED)
def test_d17_an_older_server(how: str) -> None:
    class Probed(Older):
        def __call__(self, exchange: Exchange) -> None:
            request = exchange.request
            if request.method == "POST" and request.path == "/mcp" and request.message["method"] == "server/discover":
                PROBED[how](exchange)
            else:
                super().__call__(exchange)

    with HttpPeer(Probed()) as peer:
        with took() as measured, mcpsync.connect(peer.url) as client:
            assert client.protocol_version == "2024-11-05"
            assert client.call_tool("work").text == "done"
        assert measured.seconds < SILENCE + 1.5


def test_d17_a_slow_modern_server_is_not_taken_for_a_legacy_one() -> None:
    from tests.peers.http_servers import Modern

    modern = Modern()

    def slow(exchange: Exchange, message: Any) -> None:
        exchange.wait_closed(SILENCE + 0.3)
        exchange.result(modern.discovered())

    with HttpPeer(Modern(server__discover=slow)) as peer, mcpsync.connect(peer.url) as client:
        assert client.protocol_version == "2026-07-28"
        assert client.call_tool("work").text == "done"


def test_d17_silent_to_everything() -> None:
    with HttpPeer(Legacy(probed=silent, initialize=lambda exchange, message: silent(exchange))) as peer:
        with took() as measured, pytest.raises(mcpsync.ConnectTimeout, match=r"server/discover or initialize"):
            mcpsync.connect(peer.url, timeouts=Timeouts(connect=2.5))
        assert measured.seconds < 3.5
