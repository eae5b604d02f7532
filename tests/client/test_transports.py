"""Which transport a URL has: found out, remembered, found out again; or said by name."""

from __future__ import annotations

import threading
from typing import Any, Iterator, List

import pytest

import mcpsync
from mcpsync import ConfigError, ConnectFailed, ConnectRejected, HttpError, RpcError, Timeouts
from mcpsync.connection import opening
from tests.faults.watch import Seen, took
from tests.peers.http import Exchange, HttpPeer
from tests.peers.http_servers import Legacy, Modern, Older

QUICK = Timeouts(connect=10, call=10)


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    yield
    opening._verdicts.clear()


def methods(peer: HttpPeer) -> List[str]:
    """What was asked of it, until the session stood."""
    return [
        request.method if request.method != "POST" else request.message["method"]
        for request in peer.requests
        if request.method != "DELETE"
    ]


def html(exchange: Exchange) -> None:
    exchange.respond(404, "<html>not here</html>", "text/html")


# -- found out -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 405])
@pytest.mark.parametrize(
    "body",
    [
        "",
        "<html>Method Not Allowed</html>",
        {"detail": "Not Found"},
        {"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "Bad Request: no session"}},
    ],
    ids=["empty", "html", "json", "rpc"],
)
def test_an_older_server_is_found_behind_the_refusal_of_initialize(status: int, body: Any) -> None:
    server = Older(status=status, refusal=body)
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, timeouts=QUICK) as client:
        assert client.protocol_version == "2024-11-05"
        assert client.call_tool("work").text == "done"
        assert [tool.name for tool in client.list_tools()] == ["work"]
        assert methods(peer)[:5] == ["server/discover", "initialize", "GET", "initialize", "notifications/initialized"]


def test_the_transport_is_remembered_for_its_url_and_every_later_connection_goes_straight_to_it() -> None:
    with HttpPeer(Older()) as peer:
        with mcpsync.connect(peer.url, timeouts=QUICK):
            pass
        before = len(peer.requests)
        with mcpsync.connect(peer.url, timeouts=QUICK) as client:
            assert client.call_tool("work").text == "done"
        assert methods(peer)[before:] == ["GET", "initialize", "notifications/initialized", "tools/call"]


@pytest.mark.parametrize("later", [Legacy, Modern])
def test_a_server_that_was_older_is_looked_at_again_when_it_has_the_older_transport_no_more(later: Any) -> None:
    servers: List[Any] = [Older()]

    def serve(exchange: Exchange) -> None:
        servers[-1](exchange)

    with HttpPeer(serve) as peer:
        with mcpsync.connect(peer.url, timeouts=QUICK):
            pass
        servers.append(later())
        with mcpsync.connect(peer.url, timeouts=QUICK) as client:
            assert client.server_info is not None and client.server_info.name == later.__name__.lower()
            assert client.call_tool("work").text == "done"
        before = len(peer.requests)
        with mcpsync.connect(peer.url, timeouts=QUICK) as client:
            assert client.call_tool("work").text == "done"
        assert methods(peer)[before] != "GET"


def test_a_lost_stream_is_opened_again_without_another_search() -> None:
    states, server = Seen(), Older()
    with HttpPeer(server) as peer:
        backoff = mcpsync.Backoff(delays=(0.01, 0.1, 1.0))
        with mcpsync.connect(peer.url, timeouts=QUICK, on_state=states, backoff=backoff) as client:
            client.call_tool("work")
            before = len(peer.requests)
            server.streams[0].put(None)
            states.wait_for("ready", 2)
            assert client.call_tool("work").text == "done"
            assert methods(peer)[before:] == ["GET", "initialize", "notifications/initialized", "tools/call"]


@pytest.mark.parametrize("protocol", ["legacy", "2024-11-05"])
def test_without_a_modern_probe(protocol: str) -> None:
    with HttpPeer(Older()) as peer, mcpsync.connect(peer.url, protocol=protocol, timeouts=QUICK) as client:
        assert client.call_tool("work").text == "done"
        assert methods(peer)[:3] == ["initialize", "GET", "initialize"]


def test_a_probe_that_is_never_answered_ends_when_the_older_transport_is_found() -> None:
    gone = threading.Event()

    class Silent(Older):
        def __call__(self, exchange: Exchange) -> None:
            if exchange.request.method == "POST" and exchange.request.message.get("method") == "server/discover":
                if exchange.wait_closed():
                    gone.set()
                return
            super().__call__(exchange)

    with HttpPeer(Silent()) as peer:
        with took() as measured, mcpsync.connect(peer.url, timeouts=QUICK) as client:
            assert client.call_tool("work").text == "done"
        assert 1.9 < measured.seconds < 4
        assert gone.wait(5)


def test_modern_servers_and_those_with_sessions_never_see_a_get_that_looks_for_the_older_transport() -> None:
    for server in (Modern(), Legacy()):
        with HttpPeer(server) as peer, mcpsync.connect(peer.url, timeouts=QUICK) as client:
            assert client.call_tool("work").text == "done"
            asked = methods(peer)
            assert "GET" not in asked[: asked.index("tools/call")][:2]


# -- nothing there ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [400, 404, 405])
def test_the_error_names_all_that_was_tried_and_keeps_the_status(status: int) -> None:
    def refuse(exchange: Exchange) -> None:
        exchange.respond(status, "<p>go away</p>", "text/html")

    with HttpPeer(refuse) as peer, pytest.raises(ConnectRejected) as caught:
        mcpsync.connect(peer.url, timeouts=QUICK)
    error = caught.value
    assert isinstance(error, HttpError) and isinstance(error, ConnectFailed)
    assert error.status == status and error.excerpt == "<p>go away</p>"
    text = str(error)
    assert "initialize over Streamable HTTP was refused with HTTP %d" % status in text
    assert "HTTP+SSE could not be opened: HTTP %d" % status in text


@pytest.mark.parametrize("status", [401, 403, 500, 503])
def test_any_other_status_says_nothing_of_the_transport(status: int) -> None:
    with HttpPeer(lambda exchange: exchange.respond(status, "no", "text/plain", Retry_After="7")) as peer:
        with pytest.raises(ConnectRejected) as caught:
            mcpsync.connect(peer.url, timeouts=QUICK)
        assert methods(peer) == ["server/discover", "initialize"]
    assert caught.value.status == status and caught.value.retry_after == 7
    assert caught.value.permanent == (status in (401, 403))


def test_a_json_rpc_error_is_raised_as_such_when_the_older_transport_is_not_there_either() -> None:
    def refuse(exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            exchange.respond(405, b"")
            return
        error = {"code": -32099, "message": "this client is too new"}
        exchange.respond(400, {"jsonrpc": "2.0", "id": None, "error": error})

    with HttpPeer(refuse) as peer:
        with pytest.raises(RpcError) as caught:
            mcpsync.connect(peer.url, timeouts=QUICK)
        assert methods(peer) == ["server/discover", "initialize", "GET"]
    assert caught.value.code == -32099


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, {"code": -32022, "message": "no", "data": {"supported": ["2099-01-01"], "requested": "2025-11-25"}}),
        (400, {"code": -32020, "message": "headers"}),
        (404, {"code": -32601, "message": "Method not found"}),
    ],
)
def test_a_modern_refusal_of_initialize_is_no_sign_of_the_older_transport(status: int, error: Any) -> None:
    with HttpPeer(lambda exchange: exchange.respond(status, {"jsonrpc": "2.0", "id": None, "error": error})) as peer:
        with pytest.raises(mcpsync.McpError):
            mcpsync.connect(peer.url, protocol="legacy", timeouts=QUICK)
        assert "GET" not in methods(peer)


def test_a_get_that_brings_a_stream_without_an_endpoint_ends_in_time() -> None:
    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            exchange.start()
            exchange.wait_closed()
        else:
            exchange.respond(400, b"")

    nothing = pytest.raises(ConnectRejected, match="did not name a URL for messages in time")
    with HttpPeer(serve) as peer, took() as measured, nothing:
        mcpsync.connect(peer.url, timeouts=Timeouts(connect=20))
    assert measured.seconds < 7


def test_the_time_to_connect_bounds_the_search_and_nothing_is_left() -> None:
    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            exchange.start()
            exchange.wait_closed()
        else:
            exchange.respond(405, b"")

    with HttpPeer(serve) as peer, took() as measured, pytest.raises(mcpsync.ConnectTimeout):
        mcpsync.connect(peer.url, timeouts=Timeouts(connect=0.5))
    assert measured.seconds < 1.5


# -- by name ---------------------------------------------------------------------------------------------------


def test_sse_by_name_asks_for_nothing_else() -> None:
    with HttpPeer(Older()) as peer, mcpsync.connect(peer.url, transport="sse", timeouts=QUICK) as client:
        assert client.call_tool("work").text == "done"
        assert methods(peer) == ["GET", "initialize", "notifications/initialized", "tools/call"]


def test_http_by_name_looks_for_nothing_else() -> None:
    with HttpPeer(Older()) as peer:
        with pytest.raises(ConnectRejected, match="HTTP 405") as caught:
            mcpsync.connect(peer.url, transport="http", timeouts=QUICK)
        assert methods(peer) == ["server/discover", "initialize"]
    assert caught.value.status == 405
    with HttpPeer(Legacy()) as peer, mcpsync.connect(peer.url, transport="http", timeouts=QUICK) as client:
        assert client.call_tool("work").text == "done"


def test_sse_by_name_at_a_server_without_it() -> None:
    with HttpPeer(html) as peer, pytest.raises(ConnectRejected) as caught:
        mcpsync.connect(peer.url, transport="sse", timeouts=QUICK)
    assert caught.value.status == 404


@pytest.mark.parametrize(
    ("target", "options", "message"),
    [
        (
            "http://127.0.0.1:9/",
            {"transport": "websocket"},
            "transport takes 'auto', 'http', 'sse', 'stdio' or 'stream'",
        ),
        ("http://127.0.0.1:9/", {"transport": "stdio"}, "goes with a command"),
        (["server"], {"transport": "sse"}, "goes with a URL"),
        ("http://127.0.0.1:9/", {"transport": "sse", "protocol": "2026-07-28"}, "is older than protocol"),
    ],
)
def test_names_that_do_not_fit(target: Any, options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        mcpsync.Client(target, **options)


# -- ends in the middle ----------------------------------------------------------------------------------------


def hangs_at(phase: str) -> Any:
    """A server that goes on as an older one, until the phase, where it says nothing more."""
    older = Older()

    def serve(exchange: Exchange) -> None:
        request = exchange.request
        asked = request.method if request.method != "POST" else request.message["method"]
        if request.method == "POST" and "/messages/" in request.path:
            asked = "over SSE"
        if asked == phase:
            exchange.wait_closed()
        elif asked == "GET" and phase == "endpoint":
            exchange.start()
            exchange.wait_closed()
        else:
            older(exchange)

    return serve


LATER_PHASES = ["GET", "endpoint", "over SSE"]


@pytest.mark.parametrize(
    ("phase", "reached"),
    [
        *((phase, "auto") for phase in ["server/discover", "initialize", *LATER_PHASES]),
        *((phase, "remembered") for phase in LATER_PHASES),
    ],
)
def test_closed_while_it_connects(phase: str, reached: str) -> None:
    outcome = Seen()
    serving: List[Any] = [Older()]

    def serve(exchange: Exchange) -> None:
        serving[-1](exchange)

    with HttpPeer(serve) as peer:
        if reached == "remembered":
            with mcpsync.connect(peer.url):
                pass
        serving.append(hangs_at(phase))
        before = len(peer.requests)
        client = mcpsync.Client(peer.url, timeouts=Timeouts(connect=30))

        def connect() -> None:
            try:
                client.open()
            except mcpsync.McpError as error:
                outcome(error)

        thread = threading.Thread(target=connect)
        thread.start()
        last = {"GET": "GET", "endpoint": "GET", "over SSE": "initialize"}.get(phase, phase)
        peer.wait_for(lambda: last in methods_of(peer, before, phase))
        with took() as measured:
            client.close()
            thread.join()
        assert measured.seconds < 2
        assert isinstance(outcome.items[0], mcpsync.ClientClosed), outcome.items


def methods_of(peer: HttpPeer, before: int, phase: str) -> List[str]:
    """What was asked since then; over SSE alone if that is where it hangs."""
    requests = [each for each in peer.requests[before:] if phase != "over SSE" or "/messages/" in each.path]
    return [each.method if each.method != "POST" else each.message["method"] for each in requests]
