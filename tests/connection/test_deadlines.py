"""What counts against the time of one call: its connection, a second attempt, what a new session is told first."""

from __future__ import annotations

import json
import threading
import time
from contextlib import contextmanager
from typing import Iterator, List

import pytest

import mcpsync
from mcpsync.connection.call import Wanted
from mcpsync.connection.connection import Connection
from mcpsync.deadline import Timeouts
from mcpsync.errors import McpError, RequestTimeout
from mcpsync.transport.memory import Exchange, ExchangeServer, ServerEnd, StreamServer
from tests.connection.memory_servers import PATIENCE, Peer, connected, settings

pytestmark = pytest.mark.timed


@contextmanager
def takes(least: float, most: float) -> Iterator[None]:
    began = time.monotonic()
    yield
    assert least <= time.monotonic() - began < most


def test_a_request_that_is_made_again_has_what_is_left_of_the_time() -> None:
    peer = Peer("exchange", "modern")
    reads = threading.Semaphore(1)

    def serve(exchange: Exchange) -> None:
        message = json.loads(exchange.request.data)
        if message.get("method") != "resources/read":
            peer.script.take(exchange.request.data, exchange.send, exchange.push)
        elif reads.acquire(blocking=False):
            exchange.wait_ended(0.6)  # and it ends without an answer
        else:
            exchange.wait_ended(PATIENCE)

    peer.server = ExchangeServer(serve, ending_cancels=True, server_name="peer")
    with connected(peer) as connection, takes(0.9, 1.4), pytest.raises(RequestTimeout):
        connection.request("resources/read", {"uri": "item:1"}, Wanted(Timeouts(call=1.0)))


def test_time_that_is_gone_adds_up() -> None:
    wanted = Wanted(Timeouts(call=10, total=20)).after(3).after(4)
    assert (wanted.length, wanted.spent) == (3, 7)
    assert 2.9 < (wanted.time_to_connect().remaining() or 0) <= 3
    idle = Wanted(Timeouts(idle=1, total=20)).after(18)
    assert idle.length == 1
    assert 1.9 < (idle.time_to_connect().remaining() or 0) <= 2


def test_a_server_that_acknowledges_nothing_takes_no_time_from_other_calls() -> None:
    peer = Peer("stream", "modern")
    listening = threading.Event()

    def serve(client: ServerEnd) -> None:
        for data in client:
            message = json.loads(data)
            method = message.get("method")
            if method == "server/discover":
                tools = {"tools": {"listChanged": True}}
                peer.script.answer(message, client.send, {"supportedVersions": ["2026-07-28"], "capabilities": tools})
            elif method == "subscriptions/listen":
                listening.set()
            else:
                peer.script.take(data, client.send, client.send)

    peer.server = StreamServer(serve, server_name="peer")
    connection = Connection(settings(peer, lists=frozenset(["toolsListChanged"])))
    try:
        with takes(0.0, 1.0):
            call = connection.request("tools/call", {"name": "echo", "arguments": {}}, Wanted(Timeouts(call=1.0)))
        assert call["echo"] == {}
        assert listening.is_set()
    finally:
        connection.close()


def test_a_call_that_waits_for_the_connection_waits_no_longer_than_its_time() -> None:
    peer = Peer("stream", "legacy")
    peer.server = StreamServer(lambda client: client.wait_closed(PATIENCE), server_name="peer")  # never answers
    connection = Connection(settings(peer))
    try:
        with takes(0.4, 1.2), pytest.raises(McpError):
            connection.request("tools/call", {"name": "echo"}, Wanted(Timeouts(call=0.5)))
    finally:
        connection.close()


def test_a_tool_that_wants_other_headers_is_listed_and_called_again_within_the_time() -> None:
    peer = Peer("exchange", "modern")
    told: List[str] = []

    def serve(exchange: Exchange) -> None:
        message = json.loads(exchange.request.data)
        method = message.get("method")
        if method == "server/discover":
            peer.script.take(exchange.request.data, exchange.send, exchange.push)
            return
        told.append(method)
        if told == ["tools/call"]:
            error = {"code": -32020, "message": "header mismatch"}
            exchange.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "error": error}).encode())
        elif method == "tools/list":
            exchange.wait_ended(0.6)
            peer.script.answer(message, exchange.send, {"tools": []})
        else:
            exchange.wait_ended(PATIENCE)

    server = ExchangeServer(serve, ending_cancels=True, server_name="peer")
    with mcpsync.connect(server, protocol="modern") as client, takes(0.9, 1.4), pytest.raises(RequestTimeout):
        client.call_tool("paint", timeout=1.0)
    assert told == ["tools/call", "tools/list", "tools/call"]
