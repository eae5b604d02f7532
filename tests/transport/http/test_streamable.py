"""Streamable HTTP against real sockets: answers, streams, sessions, refusals."""

from __future__ import annotations

import json
import threading
import time
from typing import Any, Callable, Dict, List

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import (
    ConnectFailed,
    ConnectionLost,
    HttpError,
    McpError,
    MessageTooLarge,
    RequestTimeout,
    SessionLost,
)
from mcpsync.transport.base import Frame
from mcpsync.transport.http.endpoint import Endpoint
from mcpsync.transport.http.streamable import StreamableHttp
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer
from tests.transport.http.wired import LEGACY, PATIENCE, Wired, until, wired


def echo(exchange: Exchange) -> None:
    exchange.result(exchange.request.message.get("params"))


def echo_stream(exchange: Exchange) -> None:
    exchange.start()
    exchange.event_result(exchange.request.message.get("params"))
    exchange.end()


def by_method(**behaviours: Callable[[Exchange], None]) -> Callable[[Exchange], None]:
    return lambda exchange: behaviours[exchange.request.method](exchange)


# -- requests and their answers --------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [echo, echo_stream])
def test_many_requests_over_one_connection(behaviour: Callable[[Exchange], None]) -> None:
    with HttpPeer(behaviour) as peer, wired(peer.url) as client:
        assert [client.ask(number) for number in range(20)] == list(range(20))
        # an end that comes late, as on a busy machine, leaves its connection to a later request
        assert peer.connections <= (1 if behaviour is echo else 3)


def test_what_a_post_says() -> None:
    with HttpPeer(echo) as peer, wired(peer.url) as client:
        client.ask({"text": "é\u2028"})
        request = peer.requests[0]
    assert (request.method, request.path) == ("POST", "/mcp")
    assert request.headers["accept"] == "application/json, text/event-stream"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["mcp-protocol-version"] == "2026-07-28"
    assert request.headers["mcp-method"] == "tools/call"
    assert request.headers["host"] == "127.0.0.1:%d" % peer.port
    assert "transfer-encoding" not in request.headers
    assert request.message["params"] == {"text": "é\u2028"}


def test_64_threads_at_once() -> None:
    together = threading.Barrier(64)

    def answer(exchange: Exchange) -> None:
        params = exchange.request.message["params"]
        if params[1] == 0:
            together.wait(PATIENCE)  # all are under way at the same time
        (echo if params[0] % 2 else echo_stream)(exchange)

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        got: List[Any] = [None] * 64

        def run(number: int) -> None:
            got[number] = [client.ask([number, turn]) for turn in range(5)]

        threads = [threading.Thread(target=run, args=(number,), name="mcpsync-test") for number in range(64)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
        assert got == [[[number, turn] for turn in range(5)] for number in range(64)]
        assert peer.connections <= 128  # of 320 requests: on a busy machine the end of a stream may be late


@pytest.mark.parametrize("compressed", [False, True])
def test_a_large_upload_and_a_large_answer(compressed: bool) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.respond(
            200,
            {"jsonrpc": "2.0", "id": exchange.request.message["id"], "result": exchange.request.message["params"]},
            compressed=compressed,
        )

    text = "0123456789abcdef" * (10 << 16)
    with HttpPeer(answer) as peer, wired(peer.url) as client:
        assert client.ask(text) == text
        assert client.ask("small") == "small"
        assert peer.connections == 1


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.start(content_type="application/json", framing="close")
        exchange.write(json.dumps({"jsonrpc": "2.0", "id": exchange.request.message["id"], "result": 1}).encode())

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        assert [client.ask(), client.ask()] == [1, 1]
        assert peer.connections == 2


def test_notifications_and_their_refusal() -> None:
    def answer(exchange: Exchange) -> None:
        if exchange.request.message["params"] == "good":
            exchange.respond(202)
        else:
            exchange.respond(400, {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}})

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        client.note("good")
        with pytest.raises(HttpError) as caught:
            client.note("bad")
        client.note("good")
        assert caught.value.status == 400
        assert "no" in caught.value.excerpt
        assert peer.connections == 1


def test_a_notification_that_is_answered_by_an_endless_stream() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.start()
        assert exchange.wait_closed()

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        client.note(seconds=PATIENCE)


def test_a_message_that_is_not_taken_times_out() -> None:
    with HttpPeer(lambda exchange: exchange.wait_closed() and None) as peer, wired(peer.url) as client:
        start = time.monotonic()
        with pytest.raises(RequestTimeout):
            client.note(seconds=0.2)
        assert 0.2 <= time.monotonic() - start < 0.3


# -- streams ---------------------------------------------------------------------------------------------------


def test_a_stream_that_ends_after_its_answer_keeps_its_connection() -> None:
    """The last chunk comes apart, after the answer was taken."""

    def answer(exchange: Exchange) -> None:
        exchange.start()
        exchange.event_result()
        time.sleep(0.0005)  # so that it comes apart
        exchange.end()

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        for _ in range(20):
            client.ask()
        assert peer.connections <= 10  # of 20 if none were kept; a busy machine sends some ends too late


@pytest.mark.parametrize("tls", [False, True])
def test_streams_that_end_late_share_a_few_connections(authority: Authority, tls: bool) -> None:
    """The end comes when the next requests have long been made; nobody waits for it, and no connection is lost."""

    def answer(exchange: Exchange) -> None:
        exchange.start()
        exchange.event_result()
        if exchange.request.message["params"] == "late":
            time.sleep(0.01)  # longer than anybody waits for it
        exchange.end()

    context = authority.server() if tls else None
    with HttpPeer(answer, context) as peer, wired(peer.url, verify=authority.ca) as client:
        for number in range(100):
            client.ask("late" if number % 4 == 0 else None)
        assert peer.connections <= 15  # of 26 if each end that is late cost one


@pytest.mark.alone
@pytest.mark.timed
def test_a_stream_that_does_not_end_costs_little() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.start()
        exchange.event_result()
        assert exchange.wait_closed()

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        start = time.monotonic()
        for _ in range(20):
            client.ask()
        assert time.monotonic() - start < 0.4
        assert peer.connections == 20


def test_events_without_data_and_of_other_kinds() -> None:  # D7
    def answer(exchange: Exchange) -> None:
        exchange.start()
        exchange.event("", event_id="a1")
        exchange.event(event_id="a2")
        exchange.event(retry=20)
        exchange.write(b": a comment\n\n")
        exchange.event("{}", event="ping")
        exchange.event({"jsonrpc": "2.0", "method": "notifications/progress"})
        exchange.event_result("here")
        exchange.end()

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        assert client.ask() == "here"
        assert [client.sink.next().get("method") for _ in range(2)] == ["notifications/progress", None]
        assert not client.sink.pulse.empty()


@pytest.mark.parametrize("framing", ["chunked", "close", "4000"])
def test_the_first_event_comes_at_once_however_the_body_is_framed(framing: str) -> None:
    taken = threading.Event()

    def answer(exchange: Exchange) -> None:
        exchange.start(framing=framing)
        exchange.event({"jsonrpc": "2.0", "method": "first"})
        assert taken.wait(PATIENCE)
        exchange.event_result("second")
        exchange.close()

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        asking = client.asking(client.new_call())
        assert client.sink.next()["method"] == "first"
        taken.set()
        assert asking.join() == "second"


@pytest.mark.alone
@pytest.mark.timed
def test_a_large_event_in_small_pieces() -> None:  # D9
    text = "x" * 5_000_000
    for size in (128, 8192):

        def answer(exchange: Exchange) -> None:
            exchange.start(framing="close")
            event = b"data: " + json.dumps({"jsonrpc": "2.0", "id": 1, "result": text}).encode() + b"\n\n"
            for start in range(0, len(event), size * 64):
                exchange.write(event[start : start + size * 64])

        with HttpPeer(answer) as peer, wired(peer.url) as client:
            start = time.monotonic()
            assert client.ask() == text
            assert time.monotonic() - start < 1


def test_a_stream_that_breaks_is_resumed_by_event_id() -> None:  # D4
    waits: List[float] = []

    def post(exchange: Exchange) -> None:
        exchange.start(framing="close")
        exchange.event("", event_id="e1", retry=40)
        exchange.event({"jsonrpc": "2.0", "method": "notifications/progress"}, event_id="e2")
        waits.append(time.monotonic())

    def get(exchange: Exchange) -> None:
        waits.append(time.monotonic())
        exchange.start()
        if len(waits) < 4:
            exchange.event("", event_id="e3")
            waits.append(time.monotonic())
            exchange.end()
        else:
            exchange.event({"jsonrpc": "2.0", "id": 1, "result": "at last"})
            exchange.end()

    with HttpPeer(by_method(POST=post, GET=get)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        assert client.ask() == "at last"
        resumed = peer.of("GET")
    assert [request.headers["last-event-id"] for request in resumed] == ["e2", "e3"]
    assert {request.headers["accept"] for request in resumed} == {"text/event-stream"}
    assert resumed[0].headers["mcp-protocol-version"] == "2025-11-25"
    assert waits[1] - waits[0] >= 0.04
    assert waits[3] - waits[2] >= 0.04


@pytest.mark.parametrize("event_id", ["é", "日本/1"])
def test_an_event_id_is_any_text_and_travels_as_utf_8(event_id: str) -> None:
    def get(exchange: Exchange) -> None:
        exchange.start(framing="close")
        if exchange.request.headers["last-event-id"].encode("latin-1").decode() == event_id:
            exchange.event({"jsonrpc": "2.0", "id": 1, "result": "at last"})

    def post(exchange: Exchange) -> None:
        exchange.start(framing="close")
        exchange.write(("id: %s\nretry: 1\ndata:\n\n" % event_id).encode())

    with HttpPeer(by_method(POST=post, GET=get)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        assert client.ask() == "at last"


@pytest.mark.parametrize("breaks", ["with nothing", "after progress", "in an event"])
def test_a_stream_that_cannot_be_resumed_fails_at_once(breaks: str) -> None:  # D4
    def answer(exchange: Exchange) -> None:
        exchange.start()
        if breaks == "after progress":
            exchange.event({"jsonrpc": "2.0", "method": "notifications/progress"})
        elif breaks == "in an event":
            exchange.write(b'data: {"jsonrpc": "2.0", "id": 1, "result": 1}')
        exchange.close()
        if breaks != "with nothing":
            exchange.end()

    with HttpPeer(answer) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        with pytest.raises(ConnectionLost) as caught:
            client.ask()
        assert caught.value.maybe_executed
        assert len(peer.requests) == 1


def test_a_modern_stream_is_not_resumed() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.start(framing="close")
        exchange.event("", event_id="e1", retry=1)

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        with pytest.raises(ConnectionLost):
            client.ask()
        assert len(peer.requests) == 1


@pytest.mark.parametrize("status", [404, 405])
def test_a_server_that_does_not_resume_after_all(status: int) -> None:
    def post(exchange: Exchange) -> None:
        exchange.start(framing="close")
        exchange.event("", event_id="e1", retry=1)

    behaviour = by_method(POST=post, GET=lambda exchange: exchange.respond(status))
    with HttpPeer(behaviour) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        with pytest.raises(ConnectionLost) as caught:
            client.ask()
        assert str(status) in str(caught.value)
        assert len(peer.of("GET")) == 1


def test_resuming_is_tried_again_while_the_server_is_away() -> None:
    tries: List[int] = []

    def post(exchange: Exchange) -> None:
        exchange.start(framing="close")
        exchange.event("", event_id="e1", retry=1)

    def get(exchange: Exchange) -> None:
        tries.append(1)
        if len(tries) == 1:
            exchange.respond(503, "restarting", "text/plain")
        elif len(tries) == 2:
            exchange.reset()
        else:
            exchange.start()
            exchange.event({"jsonrpc": "2.0", "id": 1, "result": "back"})
            exchange.end()

    with HttpPeer(by_method(POST=post, GET=get)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        assert client.ask() == "back"


def test_an_answer_that_is_too_large() -> None:
    def answer(exchange: Exchange) -> None:
        kind = exchange.request.message["params"]
        if kind == "length":
            exchange.result("x" * 5000)
        elif kind == "chunks":
            exchange.start(content_type="application/json")
            exchange.write(b"[" + b" " * 5000)
        elif kind == "event":
            exchange.start()
            exchange.write(b"data: " + b"x" * 5000)
        else:
            exchange.result("fits")

    with HttpPeer(answer) as peer, wired(peer.url, max_message=1000) as client:
        for kind in ("length", "chunks", "event"):
            with pytest.raises(MessageTooLarge) as caught:
                client.ask(kind)
            assert caught.value.limit == 1000
            assert client.ask("small") == "fits"


def test_a_compressed_body_that_grows_without_bound() -> None:  # D25
    def answer(exchange: Exchange) -> None:
        exchange.respond(200, b"[" + b" " * 50_000_000, compressed=True)

    with HttpPeer(answer) as peer, wired(peer.url, max_message=1_000_000) as client, pytest.raises(MessageTooLarge):
        client.ask()


@pytest.mark.parametrize(
    "headers",
    [
        {"Retry-After": "\u00b2"},
        {"Retry-After": "9" * 5000},
        {"Retry-After": "Fri, 31 Dec 99999 23:59:59 GMT"},
        {"Retry-After": "Fri, 99 Dec 2026 99:99:99 GMT"},
        {"Keep-Alive": "timeout=\u00b2"},
        {"Keep-Alive": "timeout=" + "9" * 5000},
    ],
    ids=lambda headers: "%s %.20s" % next(iter(headers.items())),
)
def test_numbers_in_headers_that_are_none(headers: Dict[str, str]) -> None:
    def answer(exchange: Exchange) -> None:
        exchange.respond(
            503, b"busy", "text/plain", **{name.replace("-", "_"): value for name, value in headers.items()}
        )

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        for _ in range(2):
            with pytest.raises(HttpError, match="HTTP 503"):
                client.ask()


def test_a_refusal_that_is_nested_deeply() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.respond(400, b'{"error":' + b"[" * 200_000)

    with HttpPeer(answer) as peer, wired(peer.url) as client, pytest.raises(HttpError, match="HTTP 400"):
        client.ask()


@pytest.mark.parametrize("kind", ["long line", "many lines", "nested compression"])
def test_headers_without_end(kind: str) -> None:  # D25
    def answer(exchange: Exchange) -> None:
        if kind == "nested compression":
            exchange.respond(200, b"x", Content_Encoding="gzip, gzip, gzip")
            return
        exchange.raw(b"HTTP/1.1 200 OK\r\n")
        line = b"X-More: " + b"x" * (100_000 if kind == "long line" else 10) + b"\r\n"
        for _ in range(100_000):
            exchange.raw(line)

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        with pytest.raises((ConnectionLost, HttpError)) as caught:
            client.ask()
        assert len(str(caught.value)) < 300


# -- answers on other streams ----------------------------------------------------------------------------------


def test_accepted_and_answered_on_the_long_stream() -> None:  # D24
    asked = threading.Event()

    def post(exchange: Exchange) -> None:
        exchange.respond(202)
        asked.set()

    def get(exchange: Exchange) -> None:
        exchange.start()
        exchange.write(b": here\n\n")
        assert asked.wait(PATIENCE)
        exchange.event({"jsonrpc": "2.0", "id": 1, "result": "over there"})
        exchange.wait_closed()

    with HttpPeer(by_method(POST=post, GET=get)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        client.transport.listen(Frame(b""), Deadline(PATIENCE))
        assert client.ask() == "over there"


def test_answered_on_another_stream_while_its_own_is_silent() -> None:  # D24
    under_way = threading.Event()
    ended = threading.Event()

    def post(exchange: Exchange) -> None:
        exchange.start()
        if exchange.request.message["params"] == "first":
            under_way.set()
            assert exchange.wait_closed()
            ended.set()
        else:
            exchange.event({"jsonrpc": "2.0", "id": 1, "result": "for the first"})
            exchange.event_result("for the second")
            exchange.end()

    with HttpPeer(post) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        first = client.asking(client.new_call(), params="first")
        assert under_way.wait(PATIENCE)
        assert client.ask("second") == "for the second"
        assert first.join() == "for the first"
        assert ended.wait(PATIENCE)


def test_accepted_with_no_stream_to_answer_on() -> None:
    with HttpPeer(lambda exchange: exchange.respond(202)) as peer, wired(peer.url) as client:
        with pytest.raises(HttpError) as caught:
            client.ask()
        assert "no stream" in str(caught.value)


def test_a_batch_answers_several() -> None:
    def answer(exchange: Exchange) -> None:
        if exchange.request.message["id"] == 1:
            exchange.start()
            exchange.wait_closed()
        else:
            answers = [{"jsonrpc": "2.0", "id": number, "result": number} for number in (1, 2)]
            exchange.respond(200, json.dumps(answers))

    with HttpPeer(answer) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        first = client.asking(client.new_call())
        peer.wait_requests(1)
        assert client.ask() == 2
        assert first.join() == 1


# -- refusals --------------------------------------------------------------------------------------------------


ERROR = {"code": -32603, "message": "it broke"}


@pytest.mark.parametrize("id_part", [{}, {"id": None}, {"id": "server-error"}, {"id": 1}])
def test_a_json_rpc_error_in_a_refusal(id_part: Any) -> None:  # D5
    def answer(exchange: Exchange) -> None:
        exchange.respond(500, {"jsonrpc": "2.0", **id_part, "error": ERROR})

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        assert client.ask() == ERROR


ODD = {
    "502 page": (502, "<html><h1>Bad\n Gateway</h1></html>", "text/html"),
    "200 empty": (200, "", "application/json"),
    "200 page": (200, "<html>welcome</html>", "text/html"),
    "200 broken": (200, '{"jsonrpc": "2.0", "id"', "application/json"),
    "200 other": (200, '{"jsonrpc": "2.0", "id": 77, "result": 1}', "application/json"),
    "204": (204, "", None),
    "404 page": (404, "<html>not here</html>", "text/html"),
    "401": (401, '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32000, "message": "who?"}}', "application/json"),
    "500 strange": (500, '{"error": {"code": "E42"}}', "application/json"),
    "binary": (500, "\x00\x01\x02", "application/octet-stream"),
}


@pytest.mark.parametrize("name", ODD)
def test_what_is_no_answer(name: str) -> None:  # D5
    status, body, content_type = ODD[name]

    def answer(exchange: Exchange) -> None:
        if exchange.request.message["params"] == "good":
            echo(exchange)
        else:
            exchange.respond(status, body, content_type)

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        with pytest.raises(HttpError) as caught:
            client.ask()
        assert client.ask("good") == "good"
        assert peer.connections == 1
    error = caught.value
    assert error.status == status
    assert str(status) in str(error)
    assert "\n" not in str(error)
    if "html" in body:
        assert "html" in error.excerpt


@pytest.mark.parametrize(
    ("value", "low", "high"), [("7", 7, 7), ("Fri, 31 Dec 1999 23:59:59 GMT", 0, 0), ("soon", None, None)]
)
def test_retry_after(value: str, low: Any, high: Any) -> None:  # D5
    def answer(exchange: Exchange) -> None:
        exchange.respond(429, "slow down", "text/plain", Retry_After=value)

    with HttpPeer(answer) as peer, wired(peer.url) as client, pytest.raises(HttpError) as caught:
        client.ask()
    assert caught.value.retry_after == low == high


def test_an_error_page_without_end() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.start(500, "text/html")
        for _ in range(64):
            exchange.write(b"<p>" + b"x" * 65536)
        exchange.wait_closed()

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        with pytest.raises(HttpError) as caught:
            client.ask()
        assert len(caught.value.excerpt) <= 300


def test_a_status_before_the_upload_is_over() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.respond(413, "too much", "text/plain", Connection="close")
        exchange.close()

    peer = HttpPeer(answer, reads_bodies=False)
    with peer, wired(peer.url) as client, pytest.raises((HttpError, ConnectionLost)):
        client.ask("x" * 20_000_000)


def test_nobody_listens() -> None:
    with HttpPeer(echo) as peer:
        url = peer.url
    with wired(url) as client, pytest.raises(ConnectFailed) as caught:
        client.ask()
    assert "connection refused" in str(caught.value)
    assert url.split("/")[2] in str(caught.value)


def test_a_server_that_speaks_something_else() -> None:
    peer = HttpPeer(lambda exchange: exchange.raw(b"220 mail.example.org ESMTP\r\n"))
    with peer, wired(peer.url) as client, pytest.raises(ConnectionLost):
        client.ask()


# -- sessions --------------------------------------------------------------------------------------------------


class Sessions:
    """A server that gives session ids, knows the last one, and has no long stream."""

    def __init__(self, unknown: int = 404) -> None:
        self.given = 0
        self.unknown = unknown

    def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        if request.method == "DELETE":
            exchange.respond(204, content_type=None)
        elif request.message["method"] == "initialize":
            self.given += 1
            exchange.result("hello", Mcp_Session_Id="session-%d" % self.given)
        elif request.headers.get("mcp-session-id") != "session-%d" % self.given:
            error = {"code": -32000, "message": "Bad Request: No valid session ID provided"}
            exchange.respond(self.unknown, {"jsonrpc": "2.0", "error": error, "id": None})
        elif "id" not in request.message:
            exchange.respond(202)
        else:
            exchange.result(request.headers["mcp-session-id"])


def test_a_session_is_taken_and_sent_and_ended() -> None:
    with HttpPeer(Sessions()) as peer:
        with wired(peer.url, headers_sent=LEGACY) as client:
            client.ask(method="initialize")
            assert client.ask() == "session-1"
            client.note()
        first, *others, last = peer.requests
    assert "mcp-session-id" not in first.headers
    assert {request.headers["mcp-session-id"] for request in [*others, last]} == {"session-1"}
    assert last.method == "DELETE"
    assert last.headers["mcp-protocol-version"] == "2025-11-25"


@pytest.mark.parametrize("status", [404, 400])
def test_a_session_that_the_server_forgot(status: int) -> None:
    sessions = Sessions(status)
    with HttpPeer(sessions) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        client.ask(method="initialize")
        sessions.given += 1
        with pytest.raises(SessionLost):
            client.ask()
        client.ask(method="initialize")
        assert client.ask() == "session-3"
        assert "mcp-session-id" not in peer.requests[2].headers


def test_404_without_a_session_is_none_lost() -> None:
    peer = HttpPeer(lambda exchange: exchange.respond(404))
    with peer, wired(peer.url, headers_sent=LEGACY) as client, pytest.raises(HttpError):
        client.ask()


def test_a_modern_answer_gives_no_session() -> None:
    with HttpPeer(lambda exchange: exchange.result(1, Mcp_Session_Id="x")) as peer:
        with wired(peer.url) as client:
            client.ask()
            client.ask()
        assert len(peer.requests) == 2
        assert all("mcp-session-id" not in request.headers for request in peer.requests)


@pytest.mark.timed
@pytest.mark.parametrize("status", [200, 204, 404, 405, 500, None])
def test_a_goodbye_is_short(status: Any) -> None:  # D12
    def delete(exchange: Exchange) -> None:
        if status is None:
            exchange.wait_closed()
        else:
            exchange.respond(status)

    with HttpPeer(by_method(POST=Sessions(), DELETE=delete)) as peer:
        client = Wired(StreamableHttp(Endpoint(peer.url)), LEGACY)
        client.ask(method="initialize")
        assert client.close() < 2
        assert len(peer.of("DELETE")) == 1
        with pytest.raises(ConnectionLost):
            client.ask()


def test_close_ends_what_is_under_way() -> None:
    def answer(exchange: Exchange) -> None:
        exchange.start()
        exchange.wait_closed()

    with HttpPeer(answer) as peer:
        client = Wired(StreamableHttp(Endpoint(peer.url)))
        askings = [client.asking(client.new_call()) for _ in range(4)]
        peer.wait_requests(4)
        assert client.close() < 0.5
        for asking in askings:
            assert isinstance(asking.join(), ConnectionLost)


# -- the long stream -------------------------------------------------------------------------------------------


def test_the_long_stream_delivers_and_closes() -> None:
    def get(exchange: Exchange) -> None:
        exchange.start()
        exchange.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        assert exchange.wait_closed()

    with HttpPeer(by_method(GET=get)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        client.transport.listen(Frame(b""), Deadline(PATIENCE))
        message, stream = client.sink.frames.get(timeout=PATIENCE)
        assert message["method"] == "notifications/tools/list_changed"
        assert stream is not None
        assert peer.requests[0].headers["accept"] == "text/event-stream"


@pytest.mark.parametrize("status", [400, 404, 405, 500])
def test_a_server_without_a_long_stream(status: int) -> None:  # D2
    with HttpPeer(lambda exchange: exchange.respond(status)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        client.transport.listen(Frame(b""), Deadline(PATIENCE))
        assert until(lambda: not client.transport._life.holds("long stream"))
        assert len(peer.requests) == 1
        assert client.sink.warnings == []


def test_a_long_stream_that_ends_again_and_again_is_opened_in_growing_gaps() -> None:  # D2
    def get(exchange: Exchange) -> None:
        exchange.start()
        exchange.event(retry=30)
        exchange.end()

    with HttpPeer(by_method(GET=get)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        client.transport.listen(Frame(b""), Deadline(PATIENCE))
        moments = [request.at for request in peer.wait_requests(5)]
        gaps = [after - before for before, after in zip(moments, moments[1:])]
        assert all(gap >= least for gap, least in zip(gaps, (0.03, 0.1, 0.2, 0.4))), gaps


def test_a_long_stream_goes_on_after_its_last_event() -> None:
    def get(exchange: Exchange) -> None:
        exchange.start(framing="close")
        if "last-event-id" not in exchange.request.headers:
            exchange.event({"jsonrpc": "2.0", "method": "one"}, event_id="n1", retry=10)
        else:
            exchange.event({"jsonrpc": "2.0", "method": "two"})
            exchange.wait_closed()

    with HttpPeer(by_method(GET=get)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        client.transport.listen(Frame(b""), Deadline(PATIENCE))
        assert [client.sink.next()["method"] for _ in range(2)] == ["one", "two"]
        assert peer.requests[1].headers["last-event-id"] == "n1"


def test_listening_again_replaces_the_long_stream() -> None:
    closed: List[int] = []

    def get(exchange: Exchange) -> None:
        exchange.start()
        exchange.event({"jsonrpc": "2.0", "method": "hello"})
        exchange.wait_closed()
        closed.append(exchange.request.connection)

    with HttpPeer(by_method(GET=get)) as peer, wired(peer.url, headers_sent=LEGACY) as client:
        for number in (1, 2, 3):
            client.transport.listen(Frame(b""), Deadline(PATIENCE))
            client.sink.next()
            assert until(lambda number=number: len(closed) == number - 1)


def test_listening_waits_no_longer_than_it_may() -> None:
    with HttpPeer(lambda exchange: exchange.wait_closed() and None) as peer, wired(peer.url) as client:
        start = time.monotonic()
        client.transport.listen(Frame(b""), Deadline(0.3))
        assert 0.3 <= time.monotonic() - start < 0.5


def test_listening_by_request() -> None:
    go = threading.Event()

    def answer(exchange: Exchange) -> None:
        exchange.start()
        exchange.event({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged"})
        assert go.wait(PATIENCE)
        exchange.end()

    with HttpPeer(answer) as peer, wired(peer.url) as client:
        call = client.new_call()
        data = json.dumps({"jsonrpc": "2.0", "id": call.request_id, "method": "subscriptions/listen"}).encode()
        client.transport.listen(Frame(data, "subscriptions/listen", {"Mcp-Method": "x"}), Deadline(PATIENCE), call)
        assert client.sink.next()["method"] == "notifications/subscriptions/acknowledged"
        go.set()
        request, cause = client.sink.broken_ones.get(timeout=PATIENCE)
        assert request is call
        assert isinstance(cause, McpError)
