"""A forked child holds nothing of its parent's connections."""

from __future__ import annotations

import os
import sys
import threading

import pytest

from mcpsync.deadline import Deadline
from mcpsync.errors import ConnectionLost
from tests.peers.http import Exchange, HttpPeer
from tests.transport.http.wired import LEGACY, PATIENCE, wired

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system"),
    pytest.mark.filterwarnings("ignore:This process:DeprecationWarning"),
]


def test_a_child_lets_go_and_the_parent_goes_on() -> None:
    gone = threading.Event()

    def serve(exchange: Exchange) -> None:
        if exchange.request.method == "DELETE":
            exchange.respond(200)
        elif exchange.request.message["params"] == "wait":
            exchange.start()
            exchange.wait_closed()
            gone.set()
        else:
            exchange.result(1, Mcp_Session_Id="s")

    with HttpPeer(serve) as peer:
        ends = os.pipe()
        with wired(peer.url, headers_sent=LEGACY) as client:
            client.ask(method="initialize")
            asking = client.asking(client.new_call(), params="wait")
            peer.wait_requests(2)
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    client.transport.after_fork()
                    client.transport.close(Deadline(1))
                    try:
                        client.note()
                    except ConnectionLost:
                        status = 0
                    os.read(ends[0], 1)  # it lives until the parent has closed
                finally:
                    os._exit(status)
            assert client.ask(2) == 1
            connections = peer.connections
        assert isinstance(asking.join(), ConnectionLost)
        assert gone.wait(PATIENCE)  # the server sees the end, though the child lives
        os.write(ends[1], b"x")
        _, status = os.waitpid(child, 0)
        for end in ends:
            os.close(end)
        assert status == 0, sys.platform
        assert len(peer.of("DELETE")) == 1
        assert connections == 2
