"""The transport before Streamable HTTP, against real sockets."""

from __future__ import annotations

import json
import queue
import random
import threading
import time
from contextlib import contextmanager
from typing import Any, Callable, Dict, Iterator, List, Optional

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectFailed, ConnectionLost, ConnectTimeout, HttpError, MessageTooLarge, RequestTimeout
from mcpsync.transport.base import Frame, Transport
from mcpsync.transport.http.endpoint import Endpoint
from mcpsync.transport.http.legacy_sse import LegacySse
from mcpsync.transport.http.streamable import StreamableHttp
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer
from tests.transport.contract import Connected, TransportContract
from tests.transport.http.wired import PATIENCE, Recorder, Wired, descriptors, until


class Server:
    """One stream, and POSTs whose answers come on it.

    :param endpoint: what the first event names
    """

    def __init__(self, endpoint: str = "/messages?session=7", accepts: int = 202) -> None:
        self.endpoint = endpoint
        self.accepts = accepts
        self.out: queue.SimpleQueue[Optional[Dict[str, Any]]] = queue.SimpleQueue()
        self.notes: List[Any] = []

    def __call__(self, exchange: Exchange) -> None:
        if exchange.request.method == "GET":
            exchange.start()
            exchange.event(self.endpoint, event="endpoint")
            for message in iter(self.next, None):
                exchange.event(message, event="message")
            exchange.end()
            exchange.close()
            return
        message = exchange.request.message
        self.receive(exchange, message)

    def next(self) -> Optional[Dict[str, Any]]:
        try:
            return self.out.get(timeout=PATIENCE)
        except queue.Empty:
            return None

    def receive(self, exchange: Exchange, message: Dict[str, Any]) -> None:
        if message["method"] == "die":
            self.out.put(None)
        elif "id" not in message:
            self.notes.append(message["params"])
        else:
            result = {"params": message["params"], "notes": list(self.notes)}
            self.out.put({"jsonrpc": "2.0", "id": message["id"], "result": result})
        exchange.respond(self.accepts, "Accepted" if self.accepts == 202 else "", "text/plain")


@contextmanager
def served(server: Callable[[Exchange], None], **options: Any) -> Iterator[Any]:
    """A peer, and a connected client."""
    with HttpPeer(server) as peer:
        client = Wired(LegacySse(Endpoint(peer.url), **options), {})
        try:
            yield peer, client
        finally:
            client.close()
            if isinstance(server, Server):
                server.out.put(None)


def answer(client: Wired) -> Any:
    return client.sink.next()["result"]["params"]


@pytest.mark.parametrize("accepts", [200, 202, 204])
@pytest.mark.parametrize("endpoint", ["/messages?session=7", "messages?session=7", "{origin}/messages?session=7"])
def test_requests_and_answers(endpoint: str, accepts: int) -> None:
    server = Server(endpoint, accepts)
    with HttpPeer(server) as peer:
        server.endpoint = endpoint.format(origin=peer.url.rpartition("/")[0])
        client = Wired(LegacySse(Endpoint(peer.url, headers={"Authorization": "Bearer x"})), {})
        client.note("first")
        for number in range(5):
            client.ask(number)
            assert answer(client) == number
        client.close()
        server.out.put(None)
        assert peer.connections == 2
        posts = peer.of("POST")
    assert {request.path for request in posts} == {"/messages?session=7"}
    assert {request.headers["authorization"] for request in peer.requests} == {"Bearer x"}
    assert peer.requests[0].headers["accept"] == "text/event-stream"
    assert posts[0].headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    "endpoint", ["http://localhost:{port}/messages", "https://127.0.0.1:{port}/m", "//example.org/m", "http://[bad/"]
)
def test_a_url_of_another_origin_is_refused(endpoint: str) -> None:
    server = Server()
    with HttpPeer(server) as peer:
        server.endpoint = endpoint.format(port=peer.port)
        transport = LegacySse(Endpoint(peer.url))
        with pytest.raises(ConnectFailed) as caught:
            transport.open(Deadline(PATIENCE))
        server.out.put(None)
        assert len(peer.requests) == 1
    assert "origin" in str(caught.value) or "URL" in str(caught.value)


def page(exchange: Exchange) -> None:
    exchange.respond(200, "<html>hello</html>", "text/html")


def ends(exchange: Exchange) -> None:
    exchange.start()
    exchange.write(b": nothing\n\n")
    exchange.end()


@pytest.mark.parametrize(
    ("behaviour", "says"),
    [
        (lambda exchange: exchange.respond(405), "405"),
        (lambda exchange: exchange.respond(404, "<html>nope</html>", "text/html"), "404"),
        (page, "text/html"),
        (ends, "ended before"),
        (lambda exchange: exchange.reset(), "cannot connect"),
    ],
)
def test_a_server_that_has_no_such_stream(behaviour: Callable[[Exchange], None], says: str) -> None:
    before = descriptors()
    with HttpPeer(behaviour) as peer:
        transport = LegacySse(Endpoint(peer.url))
        with pytest.raises(ConnectFailed) as caught:
            transport.open(Deadline(PATIENCE))
        assert says in str(caught.value)
    assert until(lambda: descriptors() <= before, 2)


@pytest.mark.timed
@pytest.mark.parametrize("phase", ["accept", "headers", "stream"])
def test_a_server_that_never_names_a_url(phase: str) -> None:
    def behaviour(exchange: Exchange) -> None:
        if phase == "stream":
            exchange.start()
        exchange.wait_closed()

    with HttpPeer(None if phase == "accept" else behaviour) as peer:
        transport = LegacySse(Endpoint(peer.url))
        start = time.monotonic()
        with pytest.raises(ConnectTimeout):
            transport.open(Deadline(0.3))
        assert 0.29 < time.monotonic() - start < 0.4


def test_events_right_behind_the_url() -> None:
    def behaviour(exchange: Exchange) -> None:
        exchange.start()
        exchange.write(b'event: endpoint\ndata: /m\n\nevent: message\ndata: {"method": "early"}\n\n: beat\n\n')
        exchange.wait_closed()

    with served(behaviour) as (_, client):
        assert client.sink.next()["method"] == "early"


def test_the_loss_of_the_stream_is_the_loss_of_the_connection() -> None:
    server = Server()
    with served(server) as (peer, client):
        client.ask("x")
        server.out.put(None)
        assert isinstance(client.sink.losses.get(timeout=PATIENCE), ConnectionLost)
        with pytest.raises(ConnectionLost):
            client.ask()
        assert len(peer.of("POST")) == 1


def test_a_post_under_way_ends_with_the_stream() -> None:
    server = Server()
    waiting = threading.Event()

    def receive(exchange: Exchange, message: Any) -> None:
        waiting.set()
        exchange.wait_closed()

    server.receive = receive  # type: ignore[method-assign]
    with served(server) as (_, client):
        asking = client.asking(client.new_call())
        assert waiting.wait(PATIENCE)
        server.out.put(None)
        assert isinstance(asking.join(), ConnectionLost)


def test_refused_and_not_taken() -> None:
    server = Server()

    def receive(exchange: Exchange, message: Any) -> None:
        if message["params"] == "refused":
            exchange.respond(400, "no such session", "text/plain")
        else:
            exchange.wait_closed()

    server.receive = receive  # type: ignore[method-assign]
    with served(server) as (_, client):
        with pytest.raises(HttpError) as caught:
            client.ask("refused")
        assert "no such session" in str(caught.value)
        start = time.monotonic()
        with pytest.raises(RequestTimeout):
            client.ask("silent", seconds=0.2)
        assert 0.2 <= time.monotonic() - client.sent_at < 0.3 + (client.sent_at - start)
        call = client.new_call()
        asking = client.asking(call, params="silent")
        assert until(lambda: client.transport._life.find(call) is not None)
        until(lambda: client.transport._life.find(call).exchange.began)
        assert client.transport.abort(call, "cancelled") is False  # it has to be told: the message may have arrived
        assert isinstance(asking.join(), ConnectionLost)
        assert client.sink.losses.empty()


def test_an_event_that_is_too_large() -> None:
    server = Server()
    with served(server, max_message=1000) as (_, client):
        server.out.put({"method": "x" * 2000})
        assert isinstance(client.sink.losses.get(timeout=PATIENCE), MessageTooLarge)


@pytest.mark.timed
def test_closing_is_quick() -> None:
    for reader in (True, False):
        server = Server()
        with HttpPeer(server) as peer:
            transport = LegacySse(Endpoint(peer.url))
            if reader:
                took = Wired(transport, {}).close()
            else:
                transport.open(Deadline(PATIENCE))
                start = time.monotonic()
                transport.close(Deadline(PATIENCE))
                took = time.monotonic() - start
            server.out.put(None)
        assert took < 0.2


def test_closing_races_with_opening_and_reading() -> None:
    chance = random.Random(7)
    outcomes: List[str] = []

    def serve(exchange: Exchange) -> None:
        exchange.start()
        if not exchange.wait_closed(chance.uniform(0, 0.003)):
            exchange.event("/messages", event="endpoint")
            exchange.wait_closed()

    def live(transport: LegacySse) -> None:
        try:
            transport.open(Deadline(PATIENCE))
            transport.run(Recorder())
            outcomes.append("closed")
        except (ConnectFailed, ConnectionLost):
            outcomes.append("not opened")

    with HttpPeer(serve) as peer:
        for _ in range(200):
            transport = LegacySse(Endpoint(peer.url))
            thread = threading.Thread(target=live, args=(transport,), name="mcpsync-test-reader")
            thread.start()
            threading.Event().wait(chance.uniform(0, 0.006))  # any moment
            transport.close(Deadline(PATIENCE))
            thread.join(PATIENCE)
    assert len(outcomes) == 200  # each ended in one of the ways that it may


def test_over_tls(authority: Authority) -> None:
    server = Server()
    with HttpPeer(server, tls=authority.server()) as peer:
        client = Wired(LegacySse(Endpoint(peer.url, verify=authority.ca)), {})
        client.ask(1)
        assert answer(client) == 1
        client.close()
        server.out.put(None)


# -- the contract ----------------------------------------------------------------------------------------------


class OverPeers(TransportContract):
    """Each transport has a peer of its own, which ends with the test."""

    @pytest.fixture(autouse=True)
    def peers(self) -> Iterator[None]:
        self.servers: List[Server] = []
        self.running: List[HttpPeer] = []
        yield
        for server in self.servers:
            server.out.put(None)
        for peer in self.running:
            peer.close()

    def run(self, behaviour: Callable[[Exchange], None]) -> Endpoint:
        self.running.append(HttpPeer(behaviour))
        return Endpoint(self.running[-1].url)

    def block(self, connection: Connected) -> None:
        """Any request does."""


class TestLegacySse(OverPeers):
    def echoing(self) -> Transport:
        server = Server()
        self.servers.append(server)
        return LegacySse(self.run(server))

    def deaf(self) -> Transport:
        server = Server()
        server.receive = lambda exchange, message: exchange.wait_closed() and None  # type: ignore[method-assign]
        self.servers.append(server)
        return LegacySse(self.run(server))


class TestStreamableHttp(OverPeers):
    def echoing(self) -> Transport:
        notes: List[Any] = []

        def serve(exchange: Exchange) -> None:
            message = exchange.request.message
            if "id" not in message:
                notes.append(message["params"])
                exchange.respond(202)
            else:
                exchange.result({"params": message["params"], "notes": list(notes)})

        return StreamableHttp(self.run(serve))

    def deaf(self) -> Transport:
        return StreamableHttp(self.run(lambda exchange: exchange.wait_closed() and None))

    def test_a_loss_is_reported_once_and_later_senders_are_told(self) -> None:
        """There is no loss of the connection here: each exchange is lost for itself."""
        with HttpPeer(lambda exchange: exchange.reset()) as peer:
            connection = Connected(StreamableHttp(Endpoint(peer.url)))
            for _ in range(2):
                with pytest.raises(ConnectionLost):
                    connection.ask()
            connection.close()
            assert connection.sink.losses.empty()


def test_listening_on_what_is_there() -> None:
    server = Server()
    with served(server) as (_, client):
        client.transport.listen(Frame(b""), Deadline(PATIENCE))
        server.out.put({"method": "hello"})
        assert client.sink.next()["method"] == "hello"
        assert json.dumps(client.sink.warnings) == "[]"
