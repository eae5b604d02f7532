"""D1: a server that has forgotten the session. D13: packets that vanish, and what counts as a sign of life."""

from __future__ import annotations

import ssl
import threading
from typing import Any, Dict, List, Optional

import pytest

import mcpsync
from mcpsync import Backoff, ConnectionLost, Timeouts
from mcpsync.errors import SessionLost
from tests.faults.watch import Seen, took
from tests.peers.authority import Authority
from tests.peers.http import Exchange, HttpPeer, Relay
from tests.peers.http_servers import Legacy, Modern, Older

WAYS = ["plain", "tls"]


def context(way: str, authority: Authority) -> Optional[ssl.SSLContext]:
    return authority.server() if way == "tls" else None


# -- D1 --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_d1_eight_threads_and_one_new_session(way: str, stream: bool, authority: Authority) -> None:
    server = Legacy(stream=stream)
    with HttpPeer(server, context(way, authority)) as peer:
        options: Dict[str, Any] = {"protocol": "legacy", "verify": authority.ca}
        with mcpsync.connect(peer.url, **options) as client:
            for round in range(1, 4):
                server.forget_sessions()
                together = threading.Barrier(8)
                texts, failures = Seen(), Seen()

                def call() -> None:
                    together.wait()
                    try:
                        texts(client.call_tool("work").text)
                    except mcpsync.McpError as error:
                        failures(error)

                threads = [threading.Thread(target=call) for _ in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                assert failures.items == [] and texts.items == ["done"] * 8
                assert server.initialized == 1 + round


def test_d1_a_session_that_is_forgotten_again_and_again_ends_in_an_error() -> None:
    server = Legacy()

    def forget(exchange: Exchange, message: Any) -> None:
        exchange.respond(404, "no such session", "text/plain")

    server.special["tools/call"] = forget
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, protocol="legacy") as client:
        with took() as measured, pytest.raises(SessionLost) as caught:
            client.call_tool("work")
        assert not caught.value.maybe_executed
        assert measured.seconds < 5 and server.initialized <= 3
        assert client.list_tools()  # in a session of its own, since the last one is gone too


def test_d1_a_404_to_the_long_stream_makes_no_new_session() -> None:
    server = Legacy(stream=True)
    with HttpPeer(server) as peer, mcpsync.connect(peer.url, protocol="legacy") as client:
        peer.wait_requests(1, "GET")
        server.stream = False
        server.out.put(None)  # ends it; the next GET is refused
        peer.wait_requests(2, "GET")
        assert client.call_tool("work").text == "done"
        assert server.initialized == 1


# -- D13 -------------------------------------------------------------------------------------------------------

KEEPALIVE = 0.3


@pytest.mark.timed
@pytest.mark.parametrize("server", [Legacy, Modern, Older])
@pytest.mark.parametrize("way", WAYS)
def test_d13_packets_that_vanish_are_noticed(way: str, server: Any, authority: Authority) -> None:
    states = Seen()
    with HttpPeer(server(), context(way, authority)) as peer, Relay(("127.0.0.1", peer.port)) as relay:
        url = peer.url.replace(str(peer.port), str(relay.port))
        timeouts = Timeouts(keepalive=KEEPALIVE, connect=5, close=1)
        options: Dict[str, Any] = {"verify": authority.ca, "backoff": Backoff((0.05, 0.3, 1, 1, 1))}
        with mcpsync.connect(url, timeouts=timeouts, on_state=states, **options) as client:
            assert client.call_tool("work").text == "done"
            relay.vanish()
            with took() as measured:
                states.wait_for("waiting")
            # three intervals and one ping's, after the interval in which the last sign came
            assert measured.seconds < 5 * KEEPALIVE + 0.5
            relay.heal()
            states.wait_for("ready", 2)
            assert client.call_tool("work").text == "done"


@pytest.mark.parametrize(
    "answer",
    [
        {"code": -32601, "message": "no ping here"},
        404,
        405,
        500,
    ],
    ids=["-32601", "404", "405", "500"],
)
def test_d13_whatever_a_ping_is_answered_with_is_a_sign_of_life(answer: Any) -> None:
    pings = threading.Semaphore(0)
    states = Seen()

    def refuse(exchange: Exchange, message: Any) -> None:
        if isinstance(answer, int):
            exchange.respond(answer, "no", "text/plain")
        else:
            exchange.respond(200, {"jsonrpc": "2.0", "id": message["id"], "error": answer})
        pings.release()

    with HttpPeer(Legacy(ping=refuse, sessions=False)) as peer:
        timeouts = Timeouts(keepalive=0.1)
        with mcpsync.connect(peer.url, protocol="legacy", timeouts=timeouts, on_state=states) as client:
            for _ in range(6):
                assert pings.acquire(timeout=10)
            assert client.call_tool("work").text == "done"
        assert "waiting" not in states.items


def test_d13_a_call_on_a_path_that_vanished_ends_at_its_own_deadline() -> None:
    with HttpPeer(Modern()) as peer, Relay(("127.0.0.1", peer.port)) as relay:
        url = peer.url.replace(str(peer.port), str(relay.port))
        with mcpsync.connect(url) as client:
            client.call_tool("work")
            relay.vanish()
            outcomes: List[Any] = []
            with took() as measured:
                try:
                    client.call_tool("work", timeout=0.5)
                except (mcpsync.RequestTimeout, ConnectionLost) as error:
                    outcomes.append(error)
            assert measured.seconds < 1
            assert isinstance(outcomes[0], mcpsync.RequestTimeout)
